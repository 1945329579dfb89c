"""A batch as one query sees it: partitions, positions, previous values and windows of its events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock.engine.batches import Batch, Reader
from penstock.engine.functions import Functions
from penstock.engine.keytable import KeyTable
from penstock.engine.sharing import rows_of_types
from penstock.engine.texts import renumber_texts, text_numbers
from penstock.engine.windows import Opening, Windows
from penstock.kernel.intake import PART_LATEST, place, previous_values
from penstock.plan.layout import EVENT_BEFORE, EVENT_PART, EVENT_SEQ, EVENT_TS, TEXT_HIGH, TEXT_LOW
from penstock.plan.planning import Plan
from penstock.plan.tables import Bools, Floats, Ints

_TYPE_BITS = 32  # of a partition and a type in one number: one is found faster than two


@dataclass(frozen=True)
class Events:
    """The events of a batch that are in a partition, as `Memory` keeps events.

    Attributes:
        numbers: their running numbers, counted from the start of the stream.
        rows: their rows in the batch.
        events: (6 + N, n) as `Memory.events`; the latest event that fits a negation is a running number, -1 if none.
        fits: (V, n) as `Memory.fits`.
        columns: (F, n) as `Memory.columns`.
        without_key: how many events of the batch are in no partition.
        shared: what queries with the same events have worked out about them; None if all events are here.
    """

    numbers: Ints
    rows: Ints
    events: Ints
    fits: Bools
    columns: Floats
    without_key: int
    shared: dict[Any, Any] | None = None


def attributes(plan: Plan) -> tuple[str, ...]:
    """Return the attributes that a query reads in conditions, PARTITION BY and WINDOW … ON: what a `Reader` needs."""
    window = plan.query.window
    opening = [] if window is None or window.on is None else Opening(window.on, plan.terms.calls).terms.columns
    names = [column.name for column in (*plan.terms.columns, *opening) if column.node is None]
    return tuple(dict.fromkeys([*names, *(name.text for name in plan.query.partition)]))


class Intake:
    """Turns batches into the events of one query; what it counts goes on from batch to batch.

    Examples:
        >>> import penstock as pk
        >>> from penstock.plan.planning import plan
        >>> planned = plan(pk.parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5 min PARTITION BY k"))
        >>> reader = Reader(attributes(planned))
        >>> intake = Intake(planned, reader)
        >>> batch = reader.read({"type": ["A", "A", "B"], "ts": [1, 2, 3], "x": [1, 2, 3], "k": ["p", "q", "p"]})
        >>> events = intake.take(batch).events
        >>> events[EVENT_PART].tolist(), intake.keys([1])
        ([0, 1, 0], [('q',)])
    """

    def __init__(self, plan: Plan, reader: Reader, functions: Functions | None = None) -> None:
        self.plan, self.reader, self.functions = plan, reader, functions or Functions({}, {}, reader.texts)
        self.count = 0  # events so far
        self.now = 0  # time of the newest event of the stream
        self._windows = Windows(plan.query.window, self.functions, plan.terms.calls)
        opening = self._windows.opening
        self._taken = [info.types for info in plan.numbered.variables] + ([opening.types] if opening else [])
        self._types_key = frozenset(name for names in self._taken for name in names)
        self._fitting: Bools = np.zeros((len(self._taken), 0), np.bool_)  # by type
        self._negated = np.array([info.variable for info in plan.numbered.negations], np.int64)
        # Partitions: their keys, which are bits of floats, and what `penstock.kernel.intake` counts in each.
        self._key_names = [name.text for name in plan.query.partition]
        self._key_kinds = ["none"] * len(self._key_names)
        self._parts = KeyTable(len(self._key_names))
        self._partitions: Ints = np.zeros((0, PART_LATEST + len(self._negated)), np.int64)
        # Columns: those of WHERE, then those that only the opening of windows asks for.
        self._columns = list(dict.fromkeys([*plan.terms.columns, *self._windows.columns]))
        self._of_opening = [self._columns.index(column) for column in self._windows.columns]
        self._previous = [column.name for column in self._columns if column.is_previous]
        # Per kind, which is a partition and a type: the values of its latest event that `prev` asks for.
        self._kinds = KeyTable(1)
        self._latest: Floats = np.zeros((0, len(self._previous)), np.float64)

    def take(self, batch: Batch, *, own_types_only: bool = False) -> Events:
        """Return the events of a batch, which are now before all later ones.

        Args:
            batch: the next one.
            own_types_only: leave out those that no variable takes, if they are many (`sharing.needs_own_types_only`).
        """
        own = rows_of_types(batch, self._types_key, self._is_taken) if own_types_only else None
        if own is not None:
            taken = self._taken_rows(batch, own, own, np.zeros((0, len(own))), batch.size)
            shared = batch.shared.setdefault((self._types_key, "conditions"), {})
            return replace(taken, numbers=taken.numbers[0] + own if len(own) else own, shared=shared)
        keys = self._key_rows(batch)
        is_kept = ~np.isnan(keys).any(axis=0)
        is_all = bool(is_kept.all())
        rows = np.arange(batch.size) if is_all else np.flatnonzero(is_kept)
        chosen = slice(None) if is_all else rows  # a slice spares copies
        return self._taken_rows(batch, rows, chosen, keys[:, chosen], len(rows))

    def _taken_rows(self, batch: Batch, rows: Ints, chosen: slice | Ints, keys: Floats, count: int) -> Events:
        """Return the events of some rows; `count` is how many are counted."""
        events = np.zeros((EVENT_BEFORE + len(self._negated), len(rows)), np.int64)
        types = batch.types[chosen]
        events[EVENT_TS], events[EVENT_SEQ] = batch.ts[chosen], batch.seq[chosen]
        events[EVENT_PART] = self._partition_numbers(keys)
        columns = self._column_rows(batch, chosen, events[EVENT_PART], types)
        fits = self._fits(types)
        place(self._partitions, fits, self._negated, self.count, events)
        self._windows.set(events, self._partitions, fits[-1], columns[self._of_opening])
        first, self.count = self.count, self.count + count
        self.now = int(batch.ts[-1]) if batch.size else self.now
        variables, asked = len(self.plan.numbered.variables), len(self.plan.terms.columns)
        numbers = np.arange(first, first + len(rows))
        return Events(numbers, rows, events, fits[:variables], columns[:asked], batch.size - count)

    def _is_taken(self) -> Bools:
        """Return, by the number of a type, whether a variable takes it."""
        is_taken: Bools = np.any(self._fits(np.arange(len(self.reader.types))), axis=0, keepdims=True)[0]
        return is_taken

    # --- partitions -------------------------------------------------------------------------------------------

    def _key_rows(self, batch: Batch) -> Floats:
        for place_, name in enumerate(self._key_names):
            if batch.kinds[name] != "none" and self._key_kinds[place_] != "float":
                self._key_kinds[place_] = batch.kinds[name]
        keys = [batch.columns[name] + 0.0 for name in self._key_names]  # -0 and 0 become the same bits
        return np.array(keys, np.float64).reshape(len(keys), batch.size)

    def _partition_numbers(self, keys: Floats) -> Ints:
        if self._key_names:
            numbers = self._parts.number(np.ascontiguousarray(keys).view(np.int64))
        else:
            numbers = np.zeros(keys.shape[1], np.int64)
        first = np.zeros(self._partitions.shape[1], np.int64)
        first[PART_LATEST:] = -1  # no event
        self._partitions = _longer(self._partitions, self._parts.size if self._key_names else 1, first)
        return numbers

    def keys(self, parts: Sequence[int] | Ints) -> list[tuple[Any, ...]]:
        """Return the PARTITION BY values of partitions: texts as str, whole numbers as int unless of a float column."""
        if not self._key_names:
            return [()] * len(parts)
        values = self._parts.keys.view(np.float64)
        distinct, places = np.unique(np.asarray(parts, np.int64), return_inverse=True)
        shown = [tuple(map(self._shown, values[part].tolist(), self._key_kinds)) for part in distinct.tolist()]
        return [shown[place_] for place_ in places.tolist()]

    def key_numbers(self) -> Floats:
        """Return the PARTITION BY values of all partitions, in the order of their numbers: (P, keys)."""
        numbers: Floats = self._parts.known().view(np.float64)
        return numbers

    def _shown(self, value: float, kind: str) -> Any:
        if TEXT_LOW <= value < TEXT_HIGH:
            return self.reader.texts[int(value - TEXT_LOW)]
        if kind == "bool":
            return bool(value)
        return int(value) if kind != "float" and value.is_integer() else value

    # --- columns ----------------------------------------------------------------------------------------------

    def _column_rows(self, batch: Batch, chosen: slice | Ints, parts: Ints, types: Ints) -> Floats:
        columns = np.empty((len(self._columns), len(parts)), np.float64)
        for place_, column in enumerate(self._columns):
            columns[place_] = batch.columns[column.name][chosen] if column.node is None else np.nan  # the store's work
        if self._previous:
            asked = [place_ for place_, column in enumerate(self._columns) if column.is_previous]
            columns[asked] = self._previous_rows(columns[asked], parts, types)
        return columns

    def _previous_rows(self, values: Floats, parts: Ints, types: Ints) -> Floats:
        if self._key_names:
            kinds = self._kinds.number((parts << _TYPE_BITS | types)[None])
        else:  # there are few, so each is looked up once
            counts = np.bincount(types)
            kinds = np.zeros_like(counts)
            kinds[counts > 0] = self._kinds.number(np.flatnonzero(counts)[None])
            kinds = kinds[types]
        self._latest = _longer(self._latest, self._kinds.size, np.full(len(self._previous), np.nan))
        previous = np.empty_like(values)
        previous_values(kinds, values, self._latest, previous)
        return previous

    def _fits(self, types: Ints) -> Bools:
        """Return which events are of a type that a variable takes; the opening of windows is a last row."""
        codes = self.reader.types
        if len(codes) != self._fitting.shape[1]:
            self._fitting = np.zeros((len(self._taken), len(codes)), np.bool_)
            for variable, names in enumerate(self._taken):
                known = [code for code in map(codes.find, names) if code >= 0]
                self._fitting[variable, known if names else slice(None)] = True
        return np.take(self._fitting, types, axis=1)

    def previous_rows(self, other: Intake) -> list[int]:
        """Return where, among the previous values here, those are that another intake asks for."""
        return [self._previous.index(name) for name in other._previous]

    # --- windows ----------------------------------------------------------------------------------------------

    def window_name(self, part: int, number: int) -> int:
        """Return what a window is called: start time, start position, or `seq` of the opening event."""
        return int(self.window_names(np.array([part]), np.array([number]))[0])

    def window_names(self, parts: Ints, numbers: Ints) -> Ints:
        """Return what windows are called."""
        return self._windows.names(parts, numbers)

    def forget_windows(self, parts: Ints, lows: Ints) -> None:
        """Forget what windows that are over were called. To be called when all events taken have been processed.

        Args:
            parts: the partition of each run and match that is still kept.
            lows: the first window of each.
        """
        self._windows.forget(self._partitions, self.now, parts, lows)

    # --- texts and state --------------------------------------------------------------------------------------

    def mark_texts(self, used: Bools) -> None:
        """Mark the texts that it needs, before `Texts.forget`."""
        used[text_numbers(self._parts.keys.view(np.float64))] = True
        used[text_numbers(self._latest)] = True

    def renumber_texts(self, numbers: Ints) -> None:
        """Follow `Texts.forget`, which returns the new numbers."""
        keys = self._parts.known()
        renumber_texts(keys.view(np.float64), numbers)
        self._parts = KeyTable(len(self._key_names), keys)
        renumber_texts(self._latest, numbers)

    def state(self) -> dict[str, Any]:
        """Return all that must survive, as arrays, lists of texts and numbers."""
        partitions = self._parts.size if self._key_names else len(self._partitions)
        return {
            "count": self.count,
            "now": self.now,
            "key_kinds": list(self._key_kinds),
            "keys": self._parts.known(),
            "partitions": self._partitions[:partitions].copy(),
            "kinds": self._kinds.known(),
            "latest": self._latest[: self._kinds.size].copy(),
            **self._windows.state(),
        }

    @classmethod
    def from_state(
        cls, plan: Plan, reader: Reader, state: dict[str, Any], functions: Functions | None = None
    ) -> Intake:
        """Return an intake that goes on where the one with this state stood; the reader has been restored as well."""
        intake = cls(plan, reader, functions)
        intake.count, intake.now = int(state["count"]), int(state["now"])
        intake._key_kinds = list(state["key_kinds"])
        intake._parts = KeyTable(len(intake._key_names), state["keys"])
        intake._partitions, intake._latest = state["partitions"].copy(), state["latest"].copy()
        intake._kinds = KeyTable(1, state["kinds"])
        intake._windows.restore(state)
        return intake


def _longer(rows: Any, size: int, row: Any) -> Any:
    """Return at least `size` rows: those that are there, and copies of a new one."""
    if size <= len(rows):
        return rows
    news = np.empty((max(size, 2 * len(rows)), rows.shape[1]), rows.dtype)
    news[:] = row
    news[: len(rows)] = rows
    return news
