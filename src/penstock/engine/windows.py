"""Which windows an event is in, as an interval of numbers, and what they are called (docs/language.md, section 7)."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.engine.functions import Functions
from penstock.engine.keytable import FIRST_ROOM, KeyTable
from penstock.errors import InternalError
from penstock.kernel.blocks import evaluate
from penstock.kernel.intake import EMPTY, OPENING_CLOCK, OPENING_SEQ, OPENING_WIDTH, PART_CLOSED, open_windows
from penstock.pattern import ast
from penstock.plan.layout import EVENT_HIGH, EVENT_LOW, EVENT_POS, EVENT_TS, TEXT_LOW
from penstock.plan.positions import number
from penstock.plan.tables import Bools, Floats, Ints
from penstock.plan.terms import Calls, Code, Column, Terms

FORGET_FROM = 1024  # fewer windows are not worth a search for those to forget
_ORDER = (Code.LT, Code.LE, Code.GT, Code.GE)


class Opening:
    """`ON S s WHERE …` as programs over the columns `terms.columns`."""

    def __init__(self, opening: ast.Opening, calls: Calls) -> None:
        self.types = opening.event.types
        self.terms = Terms(number(opening.event), calls.without_columns)
        for conjunct in ast.conjuncts(opening.where):
            if not isinstance(conjunct, ast.Same):  # an event has all in common with itself
                self.terms.add(conjunct)
        programs = [condition.program for condition in self.terms.conditions]
        columns = [reference.column for reference in self.terms.references]
        rows = [[(code, columns[a] if code == Code.REF else a) for code, a in program] for program in programs]
        self._programs = [np.array(program, np.int64) for program in rows]
        self._is_ordering = any(code in _ORDER for program in programs for code, _ in program)

    def holds(self, columns: Floats, functions: Functions) -> Bools:
        """Return which events satisfy the condition."""
        constants = functions.numbers(self.terms.constants)
        needs_ranks = self._is_ordering and bool(self.terms.is_calling or (columns >= TEXT_LOW).any())
        ranks = functions.ranks() if needs_ranks else np.zeros(0, np.int64)
        result = np.ones(columns.shape[1], np.bool_)
        for program in self._programs:
            result &= evaluate(program, columns, constants, ranks) == 1.0
        functions.check()
        return result


class Windows:
    """The windows of a query: none, every so often, or opened by events."""

    def __init__(self, window: ast.Window | None, functions: Functions, calls: Calls) -> None:
        self.opening = None if window is None or window.on is None else Opening(window.on, calls)
        self._is_cut, self._functions = window is not None, functions
        self._length, is_timed = (0, False) if window is None else _size(window.length)
        self._every = 0 if window is None else _size(window.every or window.length)[0]
        self._clock = EVENT_TS if is_timed else EVENT_POS
        # Windows that events have opened: keys (partition, number), and for each its `openings`.
        self._keys = KeyTable(2)
        self._openings = np.zeros((len(self._keys.keys), OPENING_WIDTH), np.int64)
        self._kept = 0  # windows that were left when some were forgotten

    @property
    def columns(self) -> list[Column]:
        """The columns that it takes to know which events open a window."""
        return self.opening.terms.columns if self.opening else []

    def set(self, events: Ints, partitions: Ints, fits: Bools, columns: Floats) -> None:
        """Write the windows of events; `fits` says which are of the opening's type, `columns` are the opening's."""
        if self.opening is not None:
            opens = fits & self.opening.holds(columns, self._functions)
            at = self._open(events, partitions, opens, 0)
            while at < len(opens):
                self._grow()
                at = self._open(events, partitions, opens, at)
        elif self._is_cut:
            low = (events[self._clock] - self._length) // self._every + 1
            events[EVENT_LOW] = low if self._clock == EVENT_TS else np.maximum(low, 0)
            events[EVENT_HIGH] = events[self._clock] // self._every

    def _open(self, events: Ints, partitions: Ints, opens: Bools, start: int) -> int:
        keys = self._keys
        at, keys.size = open_windows(
            keys.slots, keys.keys, self._openings, keys.size,
            partitions, opens, self._clock, self._length, events, start,
        )  # fmt: skip
        return at

    def _grow(self) -> None:
        self._keys.grow()
        self._openings = np.concatenate([self._openings, np.zeros_like(self._openings)])

    def names(self, parts: Ints, numbers: Ints) -> Ints:
        """Return what windows are called: start time, start position, or `seq` of the opening event."""
        if self.opening is None:
            return numbers * self._every
        rows = self._keys.find(np.stack([parts, numbers]))
        if (rows == EMPTY).any():
            raise InternalError("a window was forgotten that is still asked for")
        names: Ints = self._openings[rows, OPENING_SEQ]
        return names

    def forget(self, partitions: Ints, now: int, parts: Ints, lows: Ints) -> None:
        """Forget windows that are over, except those from number `lows` on in `parts`, which runs still name."""
        if self._keys.size < max(FORGET_FROM, 2 * self._kept):
            return
        keys, openings = self._keys.known(), self._openings[: self._keys.size]
        needed_from = np.full(len(partitions), np.iinfo(np.int64).max)
        np.minimum.at(needed_from, parts, lows)
        is_open = keys[:, 1] >= partitions[keys[:, 0], PART_CLOSED]
        if self._clock == EVENT_TS:  # also where no event has come to close them
            is_open &= openings[:, OPENING_CLOCK] + self._length > now
        is_kept = is_open | (keys[:, 1] >= needed_from[keys[:, 0]])
        # As many may come again; where they do not, the room shrinks from time to time.
        self._restore(keys[is_kept], openings[is_kept], max(FIRST_ROOM, len(self._keys.keys) // 2))

    def _restore(self, keys: Ints, openings: Ints, room: int = FIRST_ROOM) -> None:
        self._keys, self._kept = KeyTable(2, keys, room), len(keys)
        self._openings = np.zeros((len(self._keys.keys), OPENING_WIDTH), np.int64)
        self._openings[: len(keys)] = openings

    def state(self) -> dict[str, Any]:
        """Return all that must survive."""
        return {"windows": self._keys.known(), "openings": self._openings[: self._keys.size].copy()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._restore(state["windows"], state["openings"])


def _size(span: ast.Span) -> tuple[int, bool]:
    return (span.us, True) if isinstance(span, ast.TimeSpan) else (span.events, False)
