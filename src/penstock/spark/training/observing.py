"""What models for shedding are made of: sums over a history.

An *observer* sees the events of one query, chunk by chunk and in order, with the matches that were found, and counts.
What it counts are whole numbers in arrays that can be added up, so a history may be observed in many places at once:
each event, window and match belongs to one of them, its *span*, and the others see it only as context.

Nothing here knows Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from penstock.engine.hooks import Hooks
from penstock.engine.matches import Chunk
from penstock.pattern import ast
from penstock.plan.layout import HAVE_TAKEN, WERE_ASKED
from penstock.plan.tables import Bools, Ints

# Of an array, without its first axis, which is the types; None: one number, for all types.
Shape: TypeAlias = tuple[int, ...] | None
# By query, name of the array and type: what was counted, flat; the type is None where the shape is.
Sums: TypeAlias = dict[tuple[int, str, str | None], Ints]


@dataclass(frozen=True)
class Subject:
    """What is observed.

    Attributes:
        query: the query.
        positions: how many bins positions are put into.
        states: how many states its automaton has.
        span: the stretch of time, without its end, whose events and windows are counted here; None: all of them.
    """

    query: ast.Query
    positions: int
    states: int
    span: tuple[int, int] | None = None

    def is_own(self, ts: Ints) -> Bools:
        """Return which times are counted here."""
        if self.span is None:
            return np.ones(len(ts), np.bool_)
        return (ts >= self.span[0]) & (ts < self.span[1])


@dataclass(frozen=True)
class Seen:
    """Events of a query that came together, in order: n events that are in a partition, of a batch of `size`.

    Attributes:
        size: how many events the batch has.
        rows: (n,) their rows in it.
        types: (n,) their types, as numbers.
        events: (6, n) time, position, number, partition, first and last window: see `penstock.plan.layout`.
        is_own: (n,) whether they are counted here.
    """

    size: int
    rows: Ints
    types: Ints
    events: Ints
    is_own: Bools


class Observer(Protocol):
    """Counts something about the events of a query and their matches.

    For each chunk of events: `hooks`, then `take`, then `forget`. When there are no more: `take` with the matches that
    only the end completes, and `end`.
    """

    shapes: Mapping[str, Shape]

    def hooks(self, seen: Seen) -> Hooks | None:
        """Return what the engine shall count of these events; of all observers of a query, one may ask."""

    def take(self, seen: Seen | None, found: Sequence[Chunk]) -> None:
        """Take a chunk of events, and the matches that became known with it."""

    def forget(self, kept: Ints) -> None:
        """Take note that matches to come have no other events than these, by number, and later ones."""

    def end(self) -> None:
        """Take note that no event and no match will follow."""

    def counted(self) -> Mapping[str, Ints]:
        """Return what was counted: per name an array (types, cells), or (1,) for one number."""


class Tally:
    """Counts by type and cell.

    Examples:
        >>> tally = Tally(3)
        >>> tally.add(np.array([1, 0, 1]), np.array([2, 0, 2]))
        >>> tally.array.tolist()
        [[1, 0, 0], [0, 0, 2]]
    """

    def __init__(self, cells: int = 1) -> None:
        self.array: Ints = np.zeros((0, cells), np.int64)

    def add(self, types: Ints, cells: Ints | int = 0, counts: Ints | None = None) -> None:
        """Count one for each pair of a type and a cell, or as many as `counts` says."""
        if not len(types):
            return
        width = self.array.shape[1]
        self._make_room(int(types.max()) + 1)
        flat = self.array.reshape(-1)
        if counts is None:
            flat += np.bincount(types * width + cells, minlength=len(flat))
        else:
            np.add.at(flat, types * width + cells, counts)

    def add_table(self, table: Ints) -> None:
        """Add counts (types, cells)."""
        self._make_room(len(table))
        self.array[: len(table)] += table

    def _make_room(self, types: int) -> None:
        if types > len(self.array):
            more = np.zeros((types - len(self.array), self.array.shape[1]), np.int64)
            self.array = np.concatenate([self.array, more])


class Steps:
    """Counts, per type and state, how many runs were asked about an event, and how many took it.

    What is asked is what `penstock.Hooks.counted` says. From it follow the transitions of pSPICE (thesis 3.2.3.1) and
    the contribution observations of hSPICE (thesis 5.2.1.2), with all positions in one.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.shapes: Mapping[str, Shape] = {"asked": (subject.states,), "taken": (subject.states,)}
        self._asked, self._taken = Tally(subject.states), Tally(subject.states)
        self._counted: Ints = np.zeros((0, subject.states, 2), np.int64)

    def hooks(self, seen: Seen) -> Hooks | None:
        """Count by type."""
        cells = np.full(seen.size, -1, np.int64)
        cells[seen.rows[seen.is_own]] = seen.types[seen.is_own]
        self._counted = np.zeros((int(cells.max(initial=-1)) + 1, self.subject.states, 2), np.int64)
        return Hooks(cells=cells, counted=self._counted)

    def take(self, seen: Seen | None, found: Sequence[Chunk]) -> None:
        """Add what the engine has counted."""
        if seen is not None:
            self._asked.add_table(self._counted[:, :, WERE_ASKED])
            self._taken.add_table(self._counted[:, :, HAVE_TAKEN])

    def forget(self, kept: Ints) -> None:
        """Do nothing: the engine has counted."""

    def end(self) -> None:
        """Do nothing, likewise."""

    def counted(self) -> Mapping[str, Ints]:
        """Return what was counted."""
        return {"asked": self._asked.array, "taken": self._taken.array}


def add_up(total: Sums, more: Sums) -> None:
    """Add sums to a total."""
    for place, counts in more.items():
        total[place] = total[place] + counts if place in total else counts


ObserverOf: TypeAlias = Callable[[Subject], Observer]
