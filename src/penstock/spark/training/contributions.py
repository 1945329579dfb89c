"""How often events take part in matches, by type and position: what utilities are made of.

eSPICE, sections 3.3 and 3.6; thesis, sections 4.2.3.1 and 4.2.6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.engine.hooks import Hooks
from penstock.engine.matches import Chunk
from penstock.errors import InternalError
from penstock.pattern import ast
from penstock.plan.layout import EVENT_HIGH, EVENT_LOW, EVENT_PART, EVENT_POS, EVENT_SEQ, EVENT_TS
from penstock.plan.tables import Bools, Ints
from penstock.shedding.positions import cells as bins
from penstock.shedding.positions import expanded
from penstock.spark.training.observing import Observer, Seen, Shape, Subject, Tally

_FAR = np.iinfo(np.int64).max
_PAIRS = 1 << 20  # pairs of a window and an event that are counted together
_GATHER = 1 << 20  # elements of matches that may wait before those that are alike are put together
# What a pair counts in `event_parts`: a whole number, so that sums are the same however they are added up, and one that
# many numbers divide. Where it must be cut into so many that they do not, the first ones get one more.
WHOLE = 720_720

# rows of Held.rows; TYPE is a number, OWN whether it is counted here, NUMBER its place in the stream
SEQ, TYPE, TS, POS, PART, LOW, HIGH, OWN, NUMBER, WIDTH = range(10)
_TAKEN_OVER = (EVENT_SEQ, -1, EVENT_TS, EVENT_POS, EVENT_PART, EVENT_LOW, EVENT_HIGH)


def contributions(subject: Subject) -> Observer:
    """Return what counts the contributions of a query's events."""
    return InSpans(subject) if subject.query.window is None else InWindows(subject)


class Held:
    """The events that matches to come may name, in the order of the stream."""

    def __init__(self) -> None:
        self.rows: Ints = np.zeros((WIDTH, 0), np.int64)
        self._order: Ints | None = None  # by number
        self._next = 0

    def add(self, seen: Seen) -> None:
        """Take events that follow."""
        new = np.empty((WIDTH, len(seen.rows)), np.int64)
        new[: len(_TAKEN_OVER)] = seen.events[_TAKEN_OVER, :]
        new[TYPE], new[OWN] = seen.types, seen.is_own
        new[NUMBER] = np.arange(self._next, self._next + len(seen.rows))
        self._next += len(seen.rows)
        self.rows, self._order = np.concatenate([self.rows, new], axis=1), None

    def keep(self, chosen: Bools) -> None:
        """Forget the others."""
        if not chosen.all():
            self.rows, self._order = self.rows[:, chosen], None

    def of(self, seq: Ints) -> Ints:
        """Return the rows of events by their numbers: (WIDTH, n)."""
        if self._order is None:
            self._order = np.argsort(self.rows[SEQ], kind="stable")
        places = np.searchsorted(self.rows[SEQ], seq, sorter=self._order)
        found: Ints = self.rows[:, self._order[np.minimum(places, len(self._order) - 1)]] if len(seq) else self.rows
        found = found[:, : len(seq)]
        if (found[SEQ] != seq).any():
            raise InternalError("a match names an event that was forgotten")
        return found


class InSpans:
    """Counts for a query without WINDOW, where an event has no position but in a match.

    Its position is how far it is from the first event of the match, as a part of WITHIN: bin 0 is the beginning, the
    last bin is where WITHIN ends. An event that is not in a match has no position, so events are counted by type only:
    each could have been anywhere.

    What is counted, per type, of the events that are in a partition: `seen`, the events; `matched`, those that are in a
    match; and per bin `contributions`, how often one is in a match there; `contributing`, how many are. And `matches`.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        size = subject.positions
        self.shapes: Mapping[str, Shape] = {
            "seen": (), "matched": (), "contributions": (size,), "contributing": (size,), "matches": None,
        }  # fmt: skip
        self._seen, self._matched, self._contributions, self._contributing = Tally(), Tally(), Tally(size), Tally(size)
        self._matches = 0
        self._held = Held()
        self._pairs: Ints = np.zeros((3, 0), np.int64)  # place in the stream, bin, type of what was in a match
        self._kept = 0

    def hooks(self, seen: Seen) -> Hooks | None:
        """Ask for nothing."""
        return None

    def take(self, seen: Seen | None, found: Sequence[Chunk]) -> None:
        """Count events and matches."""
        if seen is not None:
            self._seen.add(seen.types[seen.is_own])
            self._held.add(seen)
        for chunk in found:
            self._matches += int(self.subject.is_own(chunk.last_ts).sum())
            self._add(chunk)

    def _add(self, chunk: Chunk) -> None:
        events = self._held.of(chunk.seq)
        cells = self._bins(chunk, events)
        is_own = events[OWN] > 0
        self._contributions.add(events[TYPE, is_own], cells[is_own])
        pairs = np.stack([events[NUMBER], cells, events[TYPE]])[:, is_own]
        self._pairs = np.concatenate([self._pairs, pairs], axis=1)
        if self._pairs.shape[1] > _GATHER + 2 * self._kept:
            self._pairs = self._pairs[:, self._distinct(self._pairs)]
            self._kept = self._pairs.shape[1]

    def _bins(self, chunk: Chunk, events: Ints) -> Ints:
        within, lengths = self.subject.query.within, np.diff(chunk.offsets)
        if isinstance(within, ast.CountSpan):
            passed = events[POS] - np.repeat(np.minimum.reduceat(events[POS], chunk.offsets[:-1]), lengths)
            length = within.events
        else:
            assert within is not None, "a query without WITHIN is refused"
            passed, length = events[TS] - np.repeat(chunk.first_ts, lengths), max(1, within.us)
        size = self.subject.positions
        cells: Ints = np.minimum(passed * size // length, size - 1)  # WITHIN itself is still within
        return cells

    def _distinct(self, pairs: Ints) -> Ints:
        """Return the places of pairs, one of those that are the same."""
        keys = pairs[0] * self.subject.positions + pairs[1]
        return np.unique(keys, return_index=True)[1]

    def forget(self, kept: Ints) -> None:
        """Let go of the events that no match will name any more."""
        self._held.keep(np.isin(self._held.rows[SEQ], kept))
        self._finish(~np.isin(self._pairs[0], self._held.rows[NUMBER]))

    def end(self) -> None:
        """Count what is left."""
        self._finish(np.ones(self._pairs.shape[1], np.bool_))

    def _finish(self, is_done: Bools) -> None:
        """Count the events, each once, that will be in no more matches."""
        pairs, self._pairs = self._pairs[:, is_done], self._pairs[:, ~is_done]
        pairs = pairs[:, self._distinct(pairs)]
        self._contributing.add(pairs[2], pairs[1])
        self._matched.add(pairs[2, np.unique(pairs[0], return_index=True)[1]])

    def counted(self) -> Mapping[str, Ints]:
        """Return what was counted."""
        return {
            "seen": self._seen.array, "matched": self._matched.array, "contributions": self._contributions.array,
            "contributing": self._contributing.array, "matches": np.array([self._matches]),
        }  # fmt: skip


@dataclass(frozen=True)
class _Windows:
    """Windows whose events are all known, by partition and number; each has an unbroken stretch of events.

    Attributes:
        part: (W,) which partition, as a place in an order of them.
        number: (W,) its number there.
        first: (W,) place of its first event.
        size: (W,) how many events it has.
    """

    part: Ints
    number: Ints
    first: Ints
    size: Ints

    @classmethod
    def of(cls, part: Ints, low: Ints, high: Ints) -> _Windows:
        """Return the windows low .. high of events that are sorted by partition, then by position."""
        is_first = np.ones(len(part), np.bool_)
        is_first[1:] = part[1:] != part[:-1]
        is_last = np.roll(is_first, -1)
        opens_from = np.maximum(low, np.where(is_first, low, np.roll(high, 1) + 1))
        closes_to = np.minimum(high, np.where(is_last, high, np.roll(low, -1) - 1))
        opened, closed = np.maximum(0, high - opens_from + 1), np.maximum(0, closes_to - low + 1)
        places = np.arange(len(part))
        first, last = np.repeat(places, opened), np.repeat(places, closed)  # both by partition and number
        return cls(part[first], expanded(opens_from, opened), first, last - first + 1)

    def where(self, chosen: Bools) -> _Windows:
        """Return some of them."""
        return _Windows(self.part[chosen], self.number[chosen], self.first[chosen], self.size[chosen])

    def find(self, part: Ints, number: Ints) -> Ints:
        """Return the places of windows that are here."""
        known = np.unique(self.number)
        here = self.part * len(known) + np.searchsorted(known, self.number)
        found: Ints = np.searchsorted(here, part * len(known) + np.searchsorted(known, number))
        return found


class InWindows:
    """Counts for a query with WINDOW: an event has a position in each of its windows.

    A position is the number of events before it in the window, scaled to the bins by the size that the window has in
    the end. A window is counted when it is over and no more matches can come in it; until then its events wait.

    What is counted: `seen`, the events that are in a partition, by type. Per type and bin: `events`, pairs of an event
    and a window that it is in; `contributions`, how often it is in a match there; `contributing`, in how many pairs it
    is. `windows`, those with an event in them, `window_events`, how many they have in all, and `matches`.

    Where a window has fewer events than there are bins, a position is several, and is counted in each of them. In
    `event_parts` and `contribution_parts` it counts in parts, which make up `WHOLE`, as in a history of one process.
    """

    def __init__(self, subject: Subject) -> None:
        assert subject.query.window is not None, "without windows there is InSpans"
        self.subject, self.window = subject, subject.query.window
        size = subject.positions
        self.shapes: Mapping[str, Shape] = {
            "seen": (), "events": (size,), "contributions": (size,), "contributing": (size,),
            "event_parts": (size,), "contribution_parts": (size,),
            "windows": None, "window_events": None, "matches": None,
        }  # fmt: skip
        self._seen, self._events, self._contributions, self._contributing = Tally(), *(Tally(size) for _ in range(3))
        self._event_parts, self._contribution_parts = Tally(size), Tally(size)
        self._windows = self._window_events = self._matches = 0
        every = self.window.every or self.window.length
        self._every = every.us if isinstance(every, ast.TimeSpan) else every.events
        self._is_timed = isinstance(self.window.length, ast.TimeSpan) and self.window.on is None
        self._held = Held()
        self._closed: Ints = np.zeros(0, np.int64)  # by partition: the windows before this one are over
        self._over = -_FAR  # in all partitions, likewise
        self._elements: Ints = np.zeros((5, 0), np.int64)  # of matches: partition, window, position, type, how often
        self._kept = 0

    def hooks(self, seen: Seen) -> Hooks | None:
        """Ask for nothing."""
        return None

    def take(self, seen: Seen | None, found: Sequence[Chunk]) -> None:
        """Take events and matches."""
        if seen is not None:
            self._seen.add(seen.types[seen.is_own])
            self._note_closed(seen)
            self._held.add(seen)
        for chunk in found:
            self._add(chunk)
        if self._elements.shape[1] > _GATHER + 2 * self._kept:
            self._gather()

    def _note_closed(self, seen: Seen) -> None:
        part, low = seen.events[EVENT_PART], seen.events[EVENT_LOW]
        more = int(part.max(initial=-1)) + 1 - len(self._closed)
        if more > 0:
            self._closed = np.concatenate([self._closed, np.full(more + len(self._closed), -_FAR)])
        self._closed[part] = low  # of several in a partition, the last one stays
        if self._is_timed and len(low):
            self._over = int(low[-1])

    def _add(self, chunk: Chunk) -> None:
        assert chunk.windows is not None, "matches of a query with windows have one"
        numbers = self._held.of(chunk.windows)[HIGH] if self.window.on is not None else chunk.windows // self._every
        is_own = self._is_own(numbers)
        self._matches += int(is_own.sum())
        owners = np.repeat(np.arange(len(chunk)), np.diff(chunk.offsets))
        chosen = is_own[owners]
        events = self._held.of(chunk.seq[chosen])
        elements = np.stack(
            [events[PART], numbers[owners[chosen]], events[POS], events[TYPE], np.ones(events.shape[1], np.int64)]
        )
        self._elements = np.concatenate([self._elements, elements], axis=1)

    def _is_own(self, numbers: Ints) -> Bools:
        """Return which windows are counted here: those that begin in the span."""
        return self.subject.is_own(numbers if self.subject.span is None else numbers * self._every)

    def _gather(self) -> None:
        """Put together what is the same."""
        elements = self._elements[:, np.lexsort(self._elements[:4])]
        is_new = np.ones(elements.shape[1], np.bool_)
        is_new[1:] = (elements[:4, 1:] != elements[:4, :-1]).any(axis=0)
        counts = np.add.reduceat(elements[4], np.flatnonzero(is_new))
        self._elements = np.concatenate([elements[:4, is_new], counts[None]])
        self._kept = len(counts)

    # --- windows that are over --------------------------------------------------------------------------------

    def forget(self, kept: Ints) -> None:
        """Count the windows that are over and in which no match will come any more."""
        rows = self._held.rows
        parts, of = np.unique(rows[PART], return_inverse=True)
        bounds = np.maximum(self._closed[parts], self._over)
        is_kept = np.isin(rows[SEQ], kept)
        np.minimum.at(bounds, of[is_kept], rows[LOW, is_kept])
        self._finish(parts, of, bounds)

    def end(self) -> None:
        """Count all that are left."""
        parts, of = np.unique(self._held.rows[PART], return_inverse=True)
        self._finish(parts, of, np.full(len(parts), _FAR))

    def _finish(self, parts: Ints, of: Ints, bounds: Ints) -> None:
        """Count the windows before a bound in each partition; `of` says which partition each event is of."""
        rows = self._held.rows
        chosen = np.flatnonzero((rows[LOW] < bounds[of]) & (rows[LOW] <= rows[HIGH]))
        chosen = chosen[np.argsort(of[chosen], kind="stable")]
        if len(chosen):
            part, low, high = of[chosen], rows[LOW, chosen], np.minimum(rows[HIGH, chosen], bounds[of[chosen]] - 1)
            windows = _Windows.of(part, low, high)
            windows = windows.where(self._is_own(windows.number))
            self._windows += len(windows.number)
            self._window_events += int(windows.size.sum())
            self._count_events(rows[TYPE, chosen], windows)
            self._count_elements(parts, bounds, windows, rows[POS, chosen])
        rows[LOW] = np.maximum(rows[LOW], bounds[of])
        self._held.keep(rows[LOW] <= rows[HIGH])

    def _count_events(self, types: Ints, windows: _Windows) -> None:
        """Count the events of windows, some windows at a time: windows overlap, so there may be many pairs."""
        size = self.subject.positions
        ends = np.cumsum(np.maximum(windows.size, size))
        start = 0
        while start < len(ends):
            before = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + _PAIRS, side="right")))
            first, sizes = windows.first[start:stop], windows.size[start:stop]
            at = expanded(np.zeros(len(sizes), np.int64), sizes)
            met, of = types[np.repeat(first, sizes) + at], np.repeat(sizes, sizes)
            self._count(self._events, met, at, of)
            self._count_parts(self._event_parts, met, at, of)
            start = stop

    def _count_elements(self, parts: Ints, bounds: Ints, windows: _Windows, positions: Ints) -> None:
        """Count what matches hold of the events of windows."""
        of = np.searchsorted(parts, self._elements[0])
        is_done = self._elements[1] < bounds[of]
        done, self._elements = self._elements[:, is_done], self._elements[:, ~is_done]
        if not done.shape[1]:
            return
        window = windows.find(of[is_done], done[1])
        at, sizes = done[2] - positions[windows.first[window]], windows.size[window]
        self._count(self._contributions, done[3], at, sizes, done[4])
        self._count_parts(self._contribution_parts, done[3], at, sizes, done[4])
        once = np.unique(window * int(sizes.max()) + at, return_index=True)[1]
        self._count(self._contributing, done[3, once], at[once], sizes[once])

    def _count(self, tally: Tally, types: Ints, at: Ints, sizes: Ints, counts: Ints | None = None) -> None:
        first, many = bins(at, sizes, self.subject.positions)
        if int(many.max(initial=1)) == 1:
            tally.add(types, first, counts)
            return
        counts = None if counts is None else np.repeat(counts, many)
        tally.add(np.repeat(types, many), expanded(first, many), counts)

    def _count_parts(self, tally: Tally, types: Ints, at: Ints, sizes: Ints, counts: Ints | None = None) -> None:
        first, many = bins(at, sizes, self.subject.positions)
        part, rest = np.divmod(WHOLE, np.repeat(many, many))
        parts = part + (expanded(np.zeros_like(many), many) < rest)
        if counts is not None:
            parts *= np.repeat(counts, many)
        tally.add(np.repeat(types, many), expanded(first, many), parts)

    def counted(self) -> Mapping[str, Ints]:
        """Return what was counted."""
        return {
            "seen": self._seen.array, "events": self._events.array, "contributions": self._contributions.array,
            "contributing": self._contributing.array,
            "event_parts": self._event_parts.array, "contribution_parts": self._contribution_parts.array,
            "windows": np.array([self._windows]),
            "window_events": np.array([self._window_events]), "matches": np.array([self._matches]),
        }  # fmt: skip
