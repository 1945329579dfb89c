"""What a query says about choosing among the matches that the kernel finds (docs/language.md, sections 5 to 7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.pattern.ast import Policy
from penstock.plan import layout
from penstock.plan.automaton import Automaton, may_repeat
from penstock.plan.planning import Plan
from penstock.plan.tables import Bools, Ints


@dataclass(frozen=True)
class Rules:
    """The policies of a query, by the numbers of its variables, and what follows from its automaton."""

    policy: Policy
    listed: dict[int, Policy]  # those of SELECT EACH, LAST b
    variables: tuple[int, ...]  # those that are not negated, in the order of the text
    ranks: Ints  # (V,) the alphabetical rank of each variable's name
    consuming: Bools  # (V,) whether what is bound to it is consumed when a match is emitted
    limit: int | None
    is_distinct: bool
    is_by_count: bool
    within: int  # microseconds; positions
    waits: bool  # a match may become known later than at its last event
    may_repeat: bool  # the same assignment may be found twice

    @property
    def consumes(self) -> bool:
        """Whether a match that is emitted takes events away from others."""
        return bool(self.consuming.any())

    @property
    def groups(self) -> bool:
        """Whether one match is made of all that have the same last event."""
        return self.policy in (Policy.LAST, Policy.CUMULATIVE) or bool(self.listed)

    @property
    def is_plain(self) -> bool:
        """Whether every match that is found is emitted as it is."""
        chooses = self.groups or self.consumes or self.limit is not None or self.is_distinct
        return not chooses and not self.may_repeat

    @property
    def gathered(self) -> frozenset[int]:
        """The variables to which CUMULATIVE binds all events of a group."""
        if self.policy is Policy.CUMULATIVE:
            return frozenset(self.variables)
        return frozenset(v for v, policy in self.listed.items() if policy is Policy.CUMULATIVE)


def rules(plan: Plan) -> Rules:
    """Read off a plan how its matches are chosen."""
    query, variables = plan.query, plan.numbered.variables
    by_runs = query.select.policy in (Policy.FIRST, Policy.STRICT)
    consumed = {name.text for name in query.consume.variables}
    names = sorted(variable.name for variable in variables)
    return Rules(
        policy=query.select.policy,
        listed={plan.numbered.number_of(each.variable): each.policy for each in query.select.variables},
        variables=tuple(v for v, variable in enumerate(variables) if not variable.is_negated),
        ranks=np.array([names.index(variable.name) for variable in variables], np.int64),
        consuming=np.array([not by_runs and (query.consume.all or v.name in consumed) for v in variables], np.bool_),
        limit=query.limit,
        is_distinct=query.window is not None and query.window.distinct,
        is_by_count=bool(plan.tables.options[layout.BY_COUNT]),
        within=int(plan.tables.options[layout.WITHIN]),
        waits=_waits(plan.automaton, by_runs),
        may_repeat=may_repeat(plan.automaton, by_runs),
    )


def _waits(machine: Automaton, by_runs: bool) -> bool:
    """Whether a negation at the end, or a run that may go on, keeps a match from being known at its last event."""
    if any(way.negations for state in machine.states for way in state.endings):
        return True
    return by_runs and any(state.endings and machine.leaving(n) for n, state in enumerate(machine.states))
