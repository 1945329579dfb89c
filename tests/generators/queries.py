"""Random queries: a pattern, conditions on it, and every combination of clauses."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.pattern.variables import Variable, variables
from penstock.testing import SECOND_US
from tests.generators.choices import Choices
from tests.generators.expressions import Expressions, same
from tests.generators.patterns import Patterns
from tests.generators.profile import EVERYTHING, Profile
from tests.generators.scope import Scope

_WITHIN_S = (10, 5, 3, 20, 3600, 2, 8)
_WITHIN_EVENTS = (8, 5, 4, 6, 10, 3, 14)
_CONJUNCTS = (0, 1, 1, 2, 1, 2, 3)
_WEIGHTS = {Policy.EACH: 5, Policy.FIRST: 4}  # of the other policies, 2


def query(choices: Choices, profile: Profile = EVERYTHING) -> ast.Query:
    """Return a valid query."""
    pattern = Patterns(choices, profile).pattern()
    known = variables(pattern)
    where = _where(choices, profile, known) if profile.where else None
    within = _within(choices, profile)
    window = _window(choices, profile) if choices.chance(profile.window) else None
    select = _select(choices, profile, known)
    return ast.Query(
        pattern,
        where,
        within,
        partition=_partition(choices) if choices.chance(profile.partition) else (),
        window=window,
        limit=1 + choices.below(2) if profile.limit and window and choices.chance(30) else None,
        select=select,
        consume=_consume(choices, known) if choices.chance(profile.consume) else ast.Consume(),
        returns=_returns(choices, profile, known, select) if profile.returns and choices.chance(50) else (),
    )


def _conjunction(conjuncts: list[ast.Expression]) -> ast.Expression | None:
    if len(conjuncts) < 2:
        return conjuncts[0] if conjuncts else None
    return ast.And(tuple(conjuncts))


def _where(choices: Choices, profile: Profile, known: Mapping[str, Variable]) -> ast.Expression | None:
    negated = [name for name, variable in known.items() if variable.negated]
    conjuncts: list[ast.Expression] = []
    for _ in range(choices.pick(_CONJUNCTS)):
        if choices.chance(12):
            conjuncts.append(same(choices))
        else:
            named = choices.pick(negated) if negated and choices.chance(50) else None
            conjuncts.append(Expressions(choices, profile, Scope(choices, known, named)).condition())
    return _conjunction(conjuncts)


def _within(choices: Choices, profile: Profile) -> ast.Span:
    if profile.count_within and choices.chance(35):
        return ast.CountSpan(choices.pick(_WITHIN_EVENTS))
    return ast.TimeSpan(choices.pick(_WITHIN_S) * SECOND_US)


def _partition(choices: Choices) -> tuple[ast.Name, ...]:
    names = choices.pick((("k",), ("k",), ("k",), ("n",), ("k", "flag")))
    return tuple(map(ast.Name, names))


def _window(choices: Choices, profile: Profile) -> ast.Window:
    length: ast.Span
    every: ast.Span
    if profile.count_window and choices.chance(50):
        length, every = ast.CountSpan(choices.pick((6, 4, 8, 10))), ast.CountSpan(choices.pick((2, 3, 12, 1, 11)))
    else:
        length = ast.TimeSpan(choices.pick((6, 4, 8, 15)) * SECOND_US)
        every = ast.TimeSpan(choices.pick((2, 3, 16, 5, 18)) * SECOND_US)
    distinct = profile.distinct and choices.chance(35)
    kind = choices.below(7)
    if kind < 4:
        return ast.Window(length, every if kind else None, distinct=distinct)
    types = choices.pick((("A",), ("B",), ("A", "C"), ("A",), ()) if profile.wildcard else (("A",), ("A", "C")))
    event = ast.Event(types, "s")
    conjuncts: list[ast.Expression] = []
    if kind > 4:
        scope = Scope(choices, {"s": Variable(event, (), False)})
        conjuncts = [Expressions(choices, profile, scope).condition() for _ in range(1 + choices.below(2))]
    return ast.Window(length, on=ast.Opening(event, _conjunction(conjuncts)), distinct=distinct)


def _positive(known: Mapping[str, Variable]) -> list[str]:
    return [name for name, variable in known.items() if not variable.negated]


def _some(choices: Choices, names: list[str]) -> list[str]:
    """Return one to three of the names, in any order."""
    return choices.shuffled(names)[: 1 + choices.below(min(3, len(names)))]


def _select(choices: Choices, profile: Profile, known: Mapping[str, Variable]) -> ast.Select:
    is_per_variable = choices.chance(profile.per_variable)
    policy = choices.pick([policy for policy in profile.policies for _ in range(_WEIGHTS.get(policy, 2))])
    if policy is not Policy.EACH or not is_per_variable:
        return ast.Select(policy)
    policies = Policy.LAST, Policy.FIRST, Policy.CUMULATIVE
    listed = [ast.SelectVariable(choices.pick(policies), name) for name in _some(choices, _positive(known))]
    return ast.Select(policy, tuple(listed))


def _consume(choices: Choices, known: Mapping[str, Variable]) -> ast.Consume:
    if choices.chance(50):
        return ast.Consume(all=True)
    return ast.Consume(variables=tuple(ast.Name(name) for name in _some(choices, _positive(known))))


def _returns(
    choices: Choices, profile: Profile, known: Mapping[str, Variable], select: ast.Select
) -> tuple[ast.Return, ...]:
    """Return columns. What CUMULATIVE gathers becomes a list, so no column compares it with something else."""
    positive = {name: known[name] for name in _positive(known)}
    gathered = {each.variable for each in select.variables if each.policy is Policy.CUMULATIVE}
    if select.policy is Policy.CUMULATIVE:
        gathered = set(positive)
    others = {name: variable for name, variable in positive.items() if name not in gathered}
    columns: list[ast.Return] = []
    for number in range(1 + choices.below(2)):
        alone = choices.pick(sorted(gathered)) if gathered and (not others or choices.chance(50)) else None
        scope = Scope(choices, others if alone is None else {alone: positive[alone]})
        making = Expressions(choices, profile, scope)
        expression = making.value() if choices.chance(80) else making.condition()
        columns.append(ast.Return(expression, f"r{number}" if number or choices.chance(50) else None))
    return tuple(columns)
