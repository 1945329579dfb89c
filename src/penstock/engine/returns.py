"""RETURN: values of matches, a column at a time (docs/language.md, section 8).

An expression is evaluated at *seats*: one per match, or, if it ranges over the rounds of a repetition, one per match
and round. What it names is looked up for all seats at once; then its program runs over the columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import pyarrow as pa

from penstock.engine.elements import Elements, Seats, expanded, lists_there
from penstock.engine.found import EventStore, Found
from penstock.engine.functions import Functions
from penstock.engine.rules import rules
from penstock.engine.texts import Texts
from penstock.engine.value_kinds import Kinds, as_arrow, kind_of
from penstock.kernel.blocks import evaluate
from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.pattern.render import render_expression
from penstock.plan.callees import Address, Asks, Callee, called
from penstock.plan.layout import COUNT, SUM
from penstock.plan.planning import Plan, plan
from penstock.plan.tables import Bools, Floats, Ints
from penstock.plan.terms import TEXT_BASE, Calls, Code, Condition, Index, Reference, Terms

_NUMBERS = (Index.FIRST, Index.LAST, Index.NUMBER)


@dataclass(frozen=True)
class Column:
    """A RETURN column: its name, its program, what it says."""

    name: str
    condition: Condition
    expression: ast.Expression


class Returns:
    """The RETURN columns of a query.

    Args:
        plan: of the query.
        store: where values of events are looked up.
        kinds: the type of an attribute, by name: bool, int, float, string, time, duration; None if not known.
        functions: what columns may call.

    Raises:
        NotYetError: a column calls something, and there are no functions.
    """

    def __init__(
        self, plan: Plan, store: EventStore, kinds: Kinds = lambda name: None, functions: Functions | None = None
    ) -> None:
        self.store, self.functions, self._kinds = store, functions, kinds
        self.gathered = rules(plan).gathered
        self.is_by_runs = plan.query.select.policy in (Policy.FIRST, Policy.STRICT)
        self.root = plan.numbered
        variables = [
            replace(info, loops=(-1 - v,)) if v in self.gathered else info
            for v, info in enumerate(plan.numbered.variables)
        ]  # what CUMULATIVE gathers is a list, whose rounds are its own
        calls = Calls.REFUSED if functions is None else Calls.CALLED
        self.terms = Terms(replace(plan.numbered, variables=variables), calls)
        self.columns: list[Column] = []
        for each in plan.query.returns:
            self.terms.add(each.expression)
            name = each.name or render_expression(each.expression)
            self.columns.append(Column(name, self.terms.conditions[-1], each.expression))

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    def kind(self, expression: ast.Expression) -> str | None:
        """Return the type of a column as far as its text and the batches so far tell."""
        callee = called(expression)
        if self.functions is not None and callee is not None and callee[0].asks in (Asks.FUNCTION, Asks.VALUE):
            return self.functions.kind(callee[0])
        return kind_of(expression, self._kinds)

    def ranks(self) -> Ints:
        """Return the ranks of texts, also of those that calls will bring."""
        return self.store.ranks() if self.functions is None else self.functions.ranks()

    def of(self, found: Found) -> list[pa.Array]:
        """Return the columns of matches; what is not there is null."""
        if not self.columns:
            return []
        depths = [len(info.loops) for info in self.terms.numbered.variables]
        looking = _Looking(self, found, Elements(found, depths), self._constants())
        return [looking.column(column) for column in self.columns]

    def _constants(self) -> Floats:
        if self.functions is not None:
            return self.functions.numbers(self.terms.constants)
        plain = [c for c in self.terms.constants if not isinstance(c, Address)]  # all, where there are no functions
        values = [TEXT_BASE + self.store.text_id(c) if isinstance(c, str) else float(c) for c in plain]
        return np.array(values, np.float64)


def return_types(query: ast.Query, kinds: Kinds, of_call: Callable[[Callee], str | None]) -> dict[str, pa.DataType]:
    """Return the types of the RETURN columns by name, as far as types alone tell: null where only values would.

    Args:
        query: the query.
        kinds: the types of its attributes.
        of_call: those of what user functions and remote sources return.
    """
    returns = Returns(plan(query, Calls.DERIVED), _NO_EVENTS, kinds, Functions({}, {}, Texts()))
    found = {}
    for column in returns.columns:
        callee = called(column.expression)
        asked = callee is not None and callee[0].asks in (Asks.FUNCTION, Asks.VALUE)
        kind = of_call(callee[0]) if asked and callee is not None else kind_of(column.expression, kinds)
        flat = _ARROW[_spelled(kind)]
        found[column.name] = pa.list_(flat) if column.condition.depth else flat
    return found


_NO_EVENTS: EventStore = cast(EventStore, None)  # types are known without them
_ARROW = {"int": pa.int64(), "float": pa.float64(), "string": pa.string(), "bool": pa.bool_(), None: pa.null()}


def _spelled(kind: str | None) -> str | None:
    """Times and durations are microseconds."""
    return "int" if kind in ("time", "duration") else kind


@dataclass
class _Looking:
    """Columns for the matches of one call."""

    returns: Returns
    found: Found
    elements: Elements
    constants: Floats
    lists: list[Bools] = field(default_factory=list)  # per variable, once asked for

    def column(self, column: Column) -> pa.Array:
        condition = column.condition
        seats = self.seats(condition)
        looked_up = [self.reference(self.returns.terms.references[r], seats) for r in condition.references]
        local = {r: k for k, r in enumerate(condition.references)}
        program = np.array([(c, local[a] if c == Code.REF else a) for c, a in condition.program], np.int64)
        columns = np.array([values for _, values in looked_up]).reshape(len(looked_up), len(seats.match))
        ranks = self.returns.ranks()  # after the look-up, which may bring texts
        result = evaluate(program, columns, self.constants, ranks)
        for is_there, _ in looked_up:
            result[~is_there] = np.nan
        flat = as_arrow(result, self.returns.kind(column.expression), self.returns.store)
        if not condition.depth:
            return flat
        counts = np.bincount(seats.match, minlength=len(self.found))
        return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32()), flat)

    def seats(self, condition: Condition) -> Seats:
        if not condition.depth:
            return Seats(np.arange(len(self.found), dtype=np.int64), np.zeros((0, len(self.found)), np.int32))
        terms = self.returns.terms
        ranging = {terms.references[r].variable for r in condition.references if terms.depth_of(r) == condition.depth}
        return self.elements.rounds_of(sorted(ranging), condition.depth)

    def reference(self, ref: Reference, seats: Seats) -> tuple[Bools, Floats]:
        """Return, per seat, whether what a reference means is there, and its value."""
        if ref.aggregate >= 0:
            if ref.index == Index.ALL:
                is_there, values = self.over_all(ref)
                return is_there[seats.match], values[seats.match]
            current = self.elements.current(ref.variable, seats)
            start = self.elements.starts[ref.variable][seats.match]
            stop = np.where(current < 0, start, current + (ref.index == Index.UPTO))
            is_there, values = self.aggregate(ref, start, stop)
            return is_there & (current >= 0), values
        at = self.element(ref, seats)
        values = np.full(len(at), np.nan)
        values[at >= 0] = self.values(ref, self.elements.places[ref.variable][at[at >= 0]])
        return at >= 0, values

    def values(self, ref: Reference, places: Ints) -> Floats:
        column = self.returns.terms.columns[ref.column]
        return self.returns.store.column(column.name, column.is_previous, self.found.events[places])

    def element(self, ref: Reference, seats: Seats) -> Ints:
        """Return which element of a variable a reference means, counted over all matches; -1: none."""
        if ref.index in _NUMBERS:
            start, count = self.elements.starts[ref.variable], self.elements.counts[ref.variable]
            wanted = ref.number if ref.index == Index.NUMBER else 1
            number = count if ref.index == Index.LAST else np.full_like(count, wanted)
            return np.where((number >= 1) & (number <= count), start + number - 1, -1)[seats.match]
        current = self.elements.current(ref.variable, seats)
        if ref.index == Index.CURRENT:
            return current
        return np.where(current > self.elements.starts[ref.variable][seats.match], current - 1, -1)

    def over_all(self, ref: Reference) -> tuple[Bools, Floats]:
        if not self.lists:
            returns = self.returns
            self.lists = lists_there(returns.root, self.elements.counts, returns.gathered, returns.is_by_runs)
        start = self.elements.starts[ref.variable]
        is_there, values = self.aggregate(ref, start, start + self.elements.counts[ref.variable])
        return is_there & self.lists[ref.variable], values

    def aggregate(self, ref: Reference, start: Ints, stop: Ints) -> tuple[Bools, Floats]:
        """Return an aggregate over the elements start .. stop-1 of a variable, for each pair of these."""
        is_there = (stop > start) | (ref.aggregate in (COUNT, SUM))
        if ref.column < 0:
            return is_there, (stop - start).astype(np.float64)
        owners, at = expanded(start, stop)
        values = self.values(ref, self.elements.places[ref.variable][at])
        known = ~np.isnan(values)
        ranks = self.returns.store.ranks()
        return is_there, _AGGREGATES[ref.aggregate](owners[known], values[known], len(start), ranks)


# --- aggregates ---------------------------------------------------------------------------------------------


def _is_text(values: Floats) -> Bools:
    return values >= TEXT_BASE


def _counted(owners: Ints, values: Floats, size: int, ranks: Ints) -> Floats:
    return np.bincount(owners, minlength=size).astype(np.float64)


def _summed(owners: Ints, values: Floats, size: int, ranks: Ints) -> Floats:
    # bincount adds from left to right, as the language says; reduceat would not
    weights = np.where(_is_text(values), np.nan, values)
    return np.bincount(owners, weights, minlength=size).astype(np.float64)  # of nothing it would be of integers


def _averaged(owners: Ints, values: Floats, size: int, ranks: Ints) -> Floats:
    count = _counted(owners, values, size, ranks)
    return np.where(count > 0, _summed(owners, values, size, ranks) / np.maximum(count, 1), np.nan)


def _extreme(pick: np.ufunc, worst: float) -> Callable[[Ints, Floats, int, Ints], Floats]:
    def extreme(owners: Ints, values: Floats, size: int, ranks: Ints) -> Floats:
        texts = _is_text(values)
        ids = (values[texts] - TEXT_BASE).astype(np.int64)
        by_rank = np.zeros(len(ranks), np.int64)
        by_rank[ranks[ids]] = ids
        compared = values.copy()
        compared[texts] = ranks[ids]
        best = np.full(size, worst)
        pick.at(best, owners, compared)
        count, count_texts = np.bincount(owners, minlength=size), np.bincount(owners[texts], minlength=size)
        of_texts = (count > 0) & (count_texts == count)
        best[of_texts] = TEXT_BASE + by_rank[best[of_texts].astype(np.int64)]
        best[(count == 0) | ((count_texts > 0) & ~of_texts)] = np.nan  # of none, or of what cannot be compared
        return best

    return extreme


_AGGREGATES: tuple[Callable[[Ints, Floats, int, Ints], Floats], ...] = (
    _counted,
    _summed,
    _averaged,
    _extreme(np.minimum, np.inf),
    _extreme(np.maximum, -np.inf),
)  # in the order of penstock.plan.terms.AGGREGATES
