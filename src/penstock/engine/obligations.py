"""What runs and matches still owe: conditions and RETURN columns whose lookups are not there yet, for many at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from penstock.engine.found import Found
from penstock.engine.functions import Functions
from penstock.engine.looking import Expressions, Looking
from penstock.engine.value_kinds import Kinds, kind_of
from penstock.pattern import ast
from penstock.plan.postponing import lookups
from penstock.plan.tables import Bools, Floats
from penstock.plan.terms import Calls, Condition, Index, Program

_CLOSING = (Index.LAST, Index.ALL)
Waiting = Counter[tuple[str, object]]  # by source and key: how many wait


@dataclass(frozen=True)
class _Key:
    """The key of a lookup, as an expression of a match."""

    source: str
    node: ast.Expression
    whole: Condition  # where all that the obligation names is there
    alone: Condition  # where all that the key names is


@dataclass(frozen=True)
class _Obligation:
    """An expression with lookups. All of its conditions have the same seats."""

    pending: Condition  # whether a value is not there yet
    proof: Condition | None  # the conjunct itself; None if any value will do
    keys: tuple[_Key, ...]
    is_early: bool  # of what is bound it says now what it will always say: no list must be closed first


@dataclass(frozen=True)
class Judged:
    """What is known of K runs or matches."""

    is_open: Bools  # (K,) a value that it needs is not there yet
    is_false: Bools  # (K,) a conjunct does not hold


class Obligations:
    """The conjuncts, or RETURN columns, of a query that look something up.

    Args:
        expressions: where what they name is found.
        nodes: conjuncts, or what is returned.
        functions: what looks up.
        kinds: the types of attributes.
        are_conditions: whether matches must fulfil them; else they only need their values.
    """

    def __init__(
        self,
        expressions: Expressions,
        nodes: Iterable[ast.Expression],
        functions: Functions,
        kinds: Kinds,
        *,
        are_conditions: bool,
    ) -> None:
        self.expressions, self.functions, self._kinds = expressions, functions, kinds
        self._obligations = [self._obligation(node, are_conditions) for node in nodes if any(lookups(node))]
        # Calls that are no derived column are made per run: whether they are all there is known only then.
        self.asks_per_run = expressions.terms.is_calling

    def __bool__(self) -> bool:
        return bool(self._obligations)

    def _obligation(self, node: ast.Expression, is_condition: bool) -> _Obligation:
        terms, found = self.expressions.terms, list(lookups(node))
        pending = ast.Or(tuple(dict.fromkeys(each.is_pending for each in found)))
        terms.add(ast.Or((pending, node)))
        whole, calls = terms.conditions[-1], terms.calls
        terms.calls = calls.without_columns  # the key of a derived column is none itself
        remotes = dict.fromkeys(each.remote for each in found)
        programs = [(remote, terms.program(remote.key)) for remote in remotes]
        terms.calls = calls
        references = tuple(dict.fromkeys([*whole.references, *(r for _, (_, used) in programs for r in used)]))
        whole = replace(whole, references=references)  # all that is named must be there for any of it to count
        keys = (
            _Key(remote.source, remote.key, replace(whole, program=key), self._alone(key, used))
            for remote, (key, used) in programs
        )
        return _Obligation(
            replace(whole, program=terms.program(pending)[0]),
            replace(whole, program=terms.program(node)[0]) if is_condition else None,
            tuple(keys),
            self._is_early(whole),
        )

    def _is_early(self, condition: Condition) -> bool:
        return not any(self.expressions.terms.references[r].index in _CLOSING for r in condition.references)

    def _alone(self, program: Program, used: tuple[int, ...]) -> Condition:
        terms = self.expressions.terms
        named = frozenset(terms.references[r].variable for r in used)
        return Condition(program, used, named, max((terms.depth_of(r) for r in used), default=0))

    def judged(self, found: Found, *, are_runs: bool = False) -> Judged:
        """Judge matches; or runs, by what is decided of them."""
        judged = Judged(np.zeros(len(found), np.bool_), np.zeros(len(found), np.bool_))
        looking = self.expressions.over(found) if len(found) else None
        for each in self._obligations if looking is not None else ():
            if each.is_early or not are_runs:
                assert looking is not None
                self._judge(each, looking, judged)
        return judged

    def _judge(self, obligation: _Obligation, looking: Looking, judged: Judged) -> None:
        seats, is_there, pending = looking.values(obligation.pending)
        judged.is_open[seats.match[is_there & (pending == 1.0)]] = True
        if obligation.proof is not None:
            _, _, proof = looking.values(obligation.proof)
            judged.is_false[seats.match[is_there & (pending != 1.0) & (proof != 1.0)]] = True

    def asking(self, found: Found, source: str, keys: Floats, *, are_runs: bool = False) -> Bools:
        """Return which matches need one of these keys of a source; or which runs have what the key is made of."""
        asking = np.zeros(len(found), np.bool_)
        for _, matches, values in self._keys(found, {source}, are_runs):
            asking[matches[np.isin(values, keys)]] = True
        return asking

    def count(self, found: Found, *, are_runs: bool = False) -> Waiting:
        """Return how many matches, or runs, wait for each key that is awaited."""
        counts = Waiting()
        awaited = self.functions.answers.awaited
        pairs: dict[tuple[str, str | None], list[Floats]] = {}
        for key, matches, values in self._keys(found, {source for source, _ in awaited}, are_runs):
            kind = kind_of(key.node, self._kinds)
            pairs.setdefault((key.source, kind), []).append(np.stack([values, matches.astype(np.float64)]))
        for (source, kind), each in pairs.items():
            of_each_once = np.unique(np.concatenate(each, axis=1), axis=1)[0]
            values, numbers = np.unique(of_each_once, return_counts=True)
            for value, number in zip(self.functions.as_python(values, kind), numbers.tolist(), strict=True):
                if (source, value) in awaited:
                    counts[source, value] += number
        return counts

    def _keys(self, found: Found, sources: set[str], are_runs: bool) -> Iterable[tuple[_Key, np.ndarray, Floats]]:
        """Yield the keys of lookups in some sources, with the matches that ask for them and their values."""
        looking = self.expressions.over(found) if len(found) else None
        for obligation in self._obligations if looking is not None else ():
            for key in obligation.keys:
                if key.source in sources and (not are_runs or self._is_early(key.alone)):
                    assert looking is not None
                    seats, is_there, values = looking.values(key.alone if are_runs else key.whole)
                    is_there = is_there & ~np.isnan(values)
                    yield key, seats.match[is_there], values[is_there]


def where(expressions: Expressions, query: ast.Query, functions: Functions, kinds: Kinds) -> Obligations:
    """Return the conjuncts of a query that look something up."""
    assert expressions.terms.calls is Calls.DERIVED, "what events have looked up is in their columns"
    return Obligations(expressions, ast.conjuncts(query.where), functions, kinds, are_conditions=True)


def returns(expressions: Expressions, query: ast.Query, functions: Functions, kinds: Kinds) -> Obligations:
    """Return the RETURN columns of a query that look something up."""
    nodes = (each.expression for each in query.returns)
    return Obligations(expressions, nodes, functions, kinds, are_conditions=False)
