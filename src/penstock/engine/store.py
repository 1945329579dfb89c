"""The events of one query that are still needed, and what is asked about them."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

import numpy as np

from penstock.engine.batches import Reader
from penstock.engine.found import Progress
from penstock.engine.functions import Functions
from penstock.engine.intake import Events
from penstock.engine.sharing import condition_key, shared_truth
from penstock.kernel.blocks import evaluate
from penstock.kernel.memory import wider
from penstock.plan.layout import (
    EVENT_BEFORE,
    EVENT_HIGH,
    EVENT_LOW,
    EVENT_PART,
    EVENT_POS,
    EVENT_SEQ,
    EVENT_TS,
    TEXT_LOW,
)
from penstock.plan.planning import Plan
from penstock.plan.postponing import is_pending
from penstock.plan.tables import Bools, Floats, Ints
from penstock.plan.terms import Code, Derived

_SMALLEST = 1024
_PROGRESS = (EVENT_TS, EVENT_POS, EVENT_LOW)


class Store:
    """The events of one query, oldest first, as the kernels read them (`penstock.kernel.memory`).

    An event has a running number, counted from the start of the stream, and a place here, which changes when events
    that are no longer needed are dropped.
    """

    def __init__(self, plan: Plan, reader: Reader, functions: Functions) -> None:
        self.plan, self.reader, self.functions = plan, reader, functions
        self.size = 0
        self.kept = 0  # events that were left when some were dropped
        rows = EVENT_BEFORE + len(plan.numbered.negations)
        self.events: Ints = np.zeros((rows, _SMALLEST), np.int64)  # rows that say nothing are 0, and never written
        self._used = [int(row) for row in self._rows()]
        self.fits: Bools = np.zeros((len(plan.numbered.variables), _SMALLEST), np.bool_)
        self.columns: Floats = np.zeros((len(plan.terms.columns), _SMALLEST), np.float64)
        self.numbers: Ints = np.zeros(_SMALLEST, np.int64)
        self.has_text: Bools = np.zeros(len(plan.terms.columns), np.bool_)  # per column: a text was seen in it
        self.newest: Ints = np.zeros((len(_PROGRESS), 0), np.int64)  # per partition, of its newest processed event
        self._rows_of = {(each.name, each.is_previous): row for row, each in enumerate(plan.terms.columns)}
        self._own = [_programs(plan, variable) for variable in range(len(plan.numbered.variables))]
        self._derived = [(column, *_over_columns(each)) for column, each in plan.terms.derived.items()]
        self._pending = [c for c, each in enumerate(plan.terms.columns) if is_pending(each.node)]
        self.is_calling = plan.terms.is_calling

    def constants(self) -> Floats:
        """Return the constants of the query as numbers."""
        return self.functions.numbers(self.plan.terms.constants)

    # --- events in, events out --------------------------------------------------------------------------------

    def append(self, taken: Events) -> None:
        """Add the events of a batch."""
        start, stop = self.size, self.size + taken.events.shape[1]
        self._make_room(stop)
        self.size = stop
        self.numbers[start:stop] = taken.numbers
        for row in self._used:
            self.events[row, start:stop] = taken.events[row]
        self.columns[:, start:stop] = taken.columns
        before = self.events[EVENT_BEFORE:, start:stop]
        places = np.clip(self.places(before), 0, max(0, stop - 1))
        is_here = self.numbers[places] == before  # it may have been dropped from among others
        before[:] = np.where(is_here, places, -1)
        self.has_text |= (taken.columns >= TEXT_LOW).any(axis=1)
        self.fits[:, start:stop] = taken.fits
        # What calls nothing first: then calls need not be made for, nor take, what it rules out.
        self._ask_own(slice(start, stop), is_derived=False, shared=taken.shared)
        if self._derived:
            self._derive(np.arange(start, stop))
            self._ask_own(slice(start, stop), is_derived=True)
        self.functions.check()

    def is_short_for(self, count: int) -> bool:
        """Whether it must grow to take so many events, though many that are here may not be needed any more."""
        return self.size + count > self.events.shape[1] and 2 * self.size >= 3 * self.kept

    @property
    def now(self) -> int:
        """The time of the stream: that of its newest event, or what it has been advanced to; 0 if it has none."""
        return int(self.newest[0, self.events[EVENT_PART, self.size - 1]]) if self.size else 0

    def renew(self) -> None:
        """Work out again what was not there when events came in, and ask again what follows from it."""
        is_pending = self.columns[self._pending, : self.size] == 1.0
        places = np.flatnonzero(is_pending.any(axis=0))
        if len(places):
            self._derive(places)
            self._ask_own(places, is_derived=True)
            self.functions.check()

    def _make_room(self, size: int) -> None:
        room = self.events.shape[1]
        if size > room:
            room = max(size, 2 * room)
            events, self.events = self.events, np.zeros((len(self.events), room), np.int64)
            for row in self._used:
                self.events[row, : self.size] = events[row, : self.size]
            self.fits, self.columns = wider(self.fits, room), wider(self.columns, room)
            self.numbers = wider(self.numbers[None], room)[0]

    def _ask_own(self, places: slice | Ints, *, is_derived: bool, shared: dict[Any, Any] | None = None) -> None:
        """An event fits a variable only if the conditions hold that name this variable alone.

        What others may want to know, too, is worked out of all events; else only those are asked that fit otherwise.
        """
        for variable, programs in enumerate(self._own):
            for program, columns, key in programs:
                if is_derived != any(column in self.plan.terms.derived for column in columns):
                    continue
                if shared is not None and not is_derived:
                    truth = shared_truth(shared, key, partial(self._ask, program, columns, places))
                    self.fits[variable, places] &= truth
                else:
                    fitting = np.flatnonzero(self.fits[variable, places])
                    asked = fitting + places.start if isinstance(places, slice) else places[fitting]
                    self.fits[variable, asked] = self._ask(program, columns, asked) == 1.0

    def _ask(self, program: Ints, columns: list[int], places: slice | Ints) -> Floats:
        """Return what a condition on one event says of events."""
        values = np.stack([self.columns[column, places] for column in columns]) if columns else self.columns[:0, places]
        return evaluate(program, values, self.constants(), self.ranks())

    def _derive(self, places: Ints) -> None:
        """Work out derived columns, for the events that fit a variable which asks for them."""
        for column, program, columns, variables in self._derived:
            chosen = places[self.fits[np.ix_(variables, places)].any(axis=0)]
            derived = evaluate(program, self.columns[np.ix_(columns, chosen)], self.constants(), self.ranks())
            self.columns[column, chosen] = derived
            self.has_text[column] |= bool((derived >= TEXT_LOW).any())

    def keep(self, kept: Bools) -> Ints:
        """Drop events; return the new place of each, -1 if it is dropped."""
        places = np.cumsum(kept) - 1
        places[~kept] = -1
        count, first = int(kept.sum()), int(np.argmax(kept))
        is_end = bool(kept[first:].all())  # then nothing has to be picked
        for table in (*(self.events[row : row + 1] for row in self._used), self.fits, self.columns, self.numbers[None]):
            here = table[:, : self.size]
            table[:, :count] = here[:, first:] if is_end and count else here[:, kept]
        before = self.events[EVENT_BEFORE:, :count]
        before[:] = np.where(before >= 0, places[before], -1)
        self.size = self.kept = count
        return places

    def places(self, numbers: Ints) -> Ints:
        """Return the places of events that are here, by their running numbers."""
        known = self.numbers[: self.size]
        if self.size and known[-1] - known[0] == self.size - 1:
            return np.asarray(numbers - known[0], np.int64)
        found: Ints = np.searchsorted(known, numbers)
        return found

    # --- how far the stream is --------------------------------------------------------------------------------

    def progress(self, start: int, stop: int) -> Progress:
        """Take note that events start .. stop-1 are processed; return how far the stream is then."""
        if not self.plan.query.partition:
            start = max(start, stop - 1)
        parts = self.events[EVENT_PART, start:stop]
        partitions = max(self.newest.shape[1], int(parts.max(initial=-1)) + 1)
        if partitions > self.newest.shape[1]:
            self.newest = wider(self.newest, max(partitions, 2 * self.newest.shape[1]))
        self.newest[:, parts] = self.events[_PROGRESS, start:stop]  # of several in a partition the last one stays
        return Progress(*self.newest)

    def advance(self, ts: int) -> Progress:
        """Take note that time has come to `ts` in all partitions; return how far the stream is then."""
        self.newest[0] = np.maximum(self.newest[0], ts)
        return Progress(*self.newest)

    # --- penstock.engine.found.EventStore ---------------------------------------------------------------------

    def ts(self, events: Ints) -> Ints:
        """Return times, in microseconds."""
        return self._row(EVENT_TS, events)

    def pos(self, events: Ints) -> Ints:
        """Return positions in the partition."""
        return self._row(EVENT_POS, events)

    def seq(self, events: Ints) -> Ints:
        """Return the users' numbers."""
        return self._row(EVENT_SEQ, events)

    def _row(self, row: int, events: Ints) -> Ints:
        values: Ints = self.events[row, self.places(events)]
        return values

    def column(self, name: str, is_previous: bool, events: Ints) -> Floats:
        """Return an attribute, or that of the previous event of the same type; or, by its text, a derived column."""
        values: Floats = self.columns[self._rows_of[name, is_previous], self.places(events)]
        return values

    def text(self, ids: Ints) -> list[str]:
        """Return texts by their ids."""
        return [self.reader.texts[int(each)] for each in ids]

    def text_id(self, text: str) -> int:
        """Return the id of a text, which may be new."""
        return self.reader.texts.add(text)

    def ranks(self) -> Ints:
        """Return the alphabetical rank of each text by its id; none if no column has texts."""
        is_asked = self.is_calling or bool(self._derived) or bool(self.has_text.any())
        return self.functions.ranks() if is_asked else np.zeros(0, np.int64)

    # --- snapshots --------------------------------------------------------------------------------------------

    def _rows(self) -> Ints:
        """Return the rows of events that say something: without partitions and windows, some are 0 throughout."""
        query = self.plan.query
        is_used = np.ones(len(self.events), np.bool_)
        is_used[EVENT_PART], is_used[[EVENT_LOW, EVENT_HIGH]] = bool(query.partition), query.window is not None
        return np.flatnonzero(is_used)

    def state(self) -> dict[str, Any]:
        """Return all that must survive."""
        numbers = self.numbers[: self.size]
        has_gaps = bool(self.size) and numbers[-1] - numbers[0] != self.size - 1
        return {
            "size": self.size,
            "kept": self.kept,
            "numbers": numbers if has_gaps else numbers[:1],
            "has_text": self.has_text,
            "newest": self.newest,
            **{f"events.{row}": self.events[row, : self.size] for row in self._used},
            **{f"fits.{row}": each[: self.size] for row, each in enumerate(self.fits)},
            **{f"columns.{row}": each[: self.size] for row, each in enumerate(self.columns)},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        size = int(state["size"])
        self.size = 0  # what is here is not kept
        self._make_room(size + size // 4)
        self.size, self.kept = size, int(state.get("kept", size))  # an older snapshot does not say
        for row in self._used:
            self.events[row, :size] = state[f"events.{row}"]
        for name, table in (("fits", self.fits), ("columns", self.columns)):
            for row, each in enumerate(table):
                each[:size] = state[f"{name}.{row}"]
        numbers = state["numbers"]
        self.numbers[:size] = numbers if len(numbers) == size else numbers[0] + np.arange(size)
        self.has_text, self.newest = state["has_text"].copy(), state["newest"].copy()


def _programs(plan: Plan, variable: int) -> list[tuple[Ints, list[int], Hashable]]:
    """Return the conditions that name a variable alone: programs over columns, these, and what the condition says."""
    found = []
    for number in plan.own[variable]:
        condition = plan.terms.conditions[number]
        local = {reference: k for k, reference in enumerate(condition.references)}
        program = [(code, local[a] if code == Code.REF else a) for code, a in condition.program]
        columns = [plan.terms.references[reference].column for reference in condition.references]
        found.append((np.array(program, np.int64), columns, condition_key(plan, program, columns)))
    return found


def _over_columns(derived: Derived) -> tuple[Ints, Ints, Ints]:
    """Return the program of a derived column over the columns that it reads, these, and the variables that ask."""
    columns = list(dict.fromkeys(argument for code, argument in derived.program if code == Code.REF))
    program = [(code, columns.index(a) if code == Code.REF else a) for code, a in derived.program]
    return np.array(program, np.int64), np.array(columns, np.int64), np.array(sorted(derived.variables), np.int64)
