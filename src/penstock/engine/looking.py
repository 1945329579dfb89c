"""Expressions over whole matches, many at a time: what RETURN gives, and whether what was postponed holds.

An expression is evaluated at *seats*: one per match, or, if it ranges over the rounds of a repetition, one per match
and round. What it names is looked up for all seats at once; then its program runs over the columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from penstock.engine.elements import Elements, Seats, expanded, lists_there
from penstock.engine.found import EventStore, Found
from penstock.engine.functions import Functions
from penstock.kernel.blocks import evaluate
from penstock.plan.callees import Address
from penstock.plan.layout import COUNT, SUM
from penstock.plan.positions import Numbered
from penstock.plan.tables import Bools, Floats, Ints
from penstock.plan.terms import TEXT_BASE, Code, Condition, Index, Reference, Terms

_NUMBERS = (Index.FIRST, Index.LAST, Index.NUMBER)


@dataclass(frozen=True)
class Expressions:
    """The terms of expressions, and where what they name is found.

    Attributes:
        terms: the expressions, compiled.
        root: the pattern; that of the terms has lists where CUMULATIVE gathers.
        gathered: the variables to which CUMULATIVE binds all events of a group.
        is_by_runs: whether matches are made by runs that never branch.
        store: where values of events are looked up.
        functions: what expressions may call.
    """

    terms: Terms
    root: Numbered
    gathered: frozenset[int]
    is_by_runs: bool
    store: EventStore
    functions: Functions | None

    def over(self, found: Found) -> Looking:
        """Return what evaluates them for some matches."""
        depths = [len(info.loops) for info in self.terms.numbered.variables]
        return Looking(self, found, Elements(found, depths), self._constants())

    def ranks(self) -> Ints:
        """Return the ranks of texts, also of those that calls will bring."""
        return self.store.ranks() if self.functions is None else self.functions.ranks()

    def _constants(self) -> Floats:
        if self.functions is not None:
            return self.functions.numbers(self.terms.constants)
        plain = [c for c in self.terms.constants if not isinstance(c, Address)]  # all, where there are no functions
        values = [TEXT_BASE + self.store.text_id(c) if isinstance(c, str) else float(c) for c in plain]
        return np.array(values, np.float64)


@dataclass
class Looking:
    """Evaluates expressions for the matches of one call."""

    asked: Expressions
    found: Found
    elements: Elements
    constants: Floats
    lists: list[Bools] = field(default_factory=list)  # per variable, once asked for

    def values(self, condition: Condition) -> tuple[Seats, Bools, Floats]:
        """Return the seats of an expression, whether all that it names is there, and its values."""
        seats = self.seats(condition)
        looked_up = [self.reference(self.asked.terms.references[r], seats) for r in condition.references]
        local = {r: k for k, r in enumerate(condition.references)}
        program = np.array([(c, local[a] if c == Code.REF else a) for c, a in condition.program], np.int64)
        columns = np.array([values for _, values in looked_up]).reshape(len(looked_up), len(seats.match))
        ranks = self.asked.ranks()  # after the look-up, which may bring texts
        result = evaluate(program, columns, self.constants, ranks)
        is_there = np.ones(len(seats.match), np.bool_)
        for is_here, _ in looked_up:
            is_there &= is_here
        return seats, is_there, result

    def seats(self, condition: Condition) -> Seats:
        """Return where an expression is evaluated."""
        if not condition.depth:
            return Seats(np.arange(len(self.found), dtype=np.int64), np.zeros((0, len(self.found)), np.int32))
        terms = self.asked.terms
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
        values[at >= 0] = self.column(ref, self.elements.places[ref.variable][at[at >= 0]])
        return at >= 0, values

    def column(self, ref: Reference, places: Ints) -> Floats:
        """Return the column of a reference, for elements by their places in the matches."""
        column = self.asked.terms.columns[ref.column]
        return self.asked.store.column(column.name, column.is_previous, self.found.events[places])

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
        """Return, per match, whether a list is there, and an aggregate over all of it."""
        if not self.lists:
            asked = self.asked
            self.lists = lists_there(asked.root, self.elements.counts, asked.gathered, asked.is_by_runs)
        start = self.elements.starts[ref.variable]
        is_there, values = self.aggregate(ref, start, start + self.elements.counts[ref.variable])
        return is_there & self.lists[ref.variable], values

    def aggregate(self, ref: Reference, start: Ints, stop: Ints) -> tuple[Bools, Floats]:
        """Return an aggregate over the elements start .. stop-1 of a variable, for each pair of these."""
        is_there = (stop > start) | (ref.aggregate in (COUNT, SUM))
        if ref.column < 0:
            return is_there, (stop - start).astype(np.float64)
        owners, at = expanded(start, stop)
        values = self.column(ref, self.elements.places[ref.variable][at])
        known = ~np.isnan(values)
        ranks = self.asked.store.ranks()
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
