"""Matches of a plain query as the kernel finds them: chains of elements, laid out when somebody asks for them.

A thousand matches with one beginning share it as long as they are chains; laid out, each has its own. So a program that
counts matches, or looks at few of them, does not pay for what it does not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from threading import Lock

import numpy as np

from penstock.engine.found import Laid, SmallInts
from penstock.kernel.plain_memory import PlainMemory
from penstock.kernel.reclaiming import lay_out, match_offsets, repeat_per_window
from penstock.plan.layout import (
    ENDED_EVENT,
    ENDED_FIRST,
    ENDED_VARIABLE,
    EVENT_PART,
    HAS_ENDED,
    HAS_FOUND,
    MATCH_NODE,
    SPAN_HIGH,
    SPAN_LOW,
)
from penstock.plan.tables import Ints

_LAID_OUT_BYTES = 64  # of a match, about
_NO_INTS, _NO_SMALL_INTS = np.zeros((0, 0), np.int64), np.zeros((0, 0), np.int32)


def endings(memory: PlainMemory) -> SmallInts:
    """Return of each match in the memory the event and the variable of its last element."""
    count, groups = int(memory.sizes[HAS_FOUND]), int(memory.sizes[HAS_ENDED])
    sizes = np.diff(memory.found[ENDED_FIRST, :groups], append=count)
    return np.repeat(memory.found[ENDED_EVENT : ENDED_VARIABLE + 1, :groups], sizes, axis=1)


def spare(chains: list[Chains], array: SmallInts | Ints) -> bool:
    """Return whether an array must be left as it is for the chains that hold it; if they are few, they let it go.

    So matches that nobody reads hold no more memory than they would take laid out.
    """
    if sum(each.nbytes for each in chains) >= array.nbytes:
        return bool(chains)
    for each in chains:
        each.laid_out()
    return False


class Chains:
    """The matches that are in a memory now.

    Args:
        memory: of the plain kernel. Its elements and events are not copied: they must not change, see `spare`.
        places: of each variable among those that are not negated.
        has_windows: whether matches are in windows.
        has_parts: whether matches have keys.
    """

    def __init__(self, memory: PlainMemory, places: SmallInts, *, has_windows: bool, has_parts: bool) -> None:
        count, groups = int(memory.sizes[HAS_FOUND]), int(memory.sizes[HAS_ENDED])
        self.nodes, self.events = memory.nodes, memory.events
        self._before = memory.found[MATCH_NODE, :count].copy()
        self._ended = memory.found[ENDED_FIRST:, :groups].copy()
        self.spans: Ints | None = memory.spans[:, :count].copy() if has_windows else None
        self.has_parts = has_parts
        self._places = places
        self._laid: Laid | None = None
        self._lock = Lock()  # matches may be read elsewhere while the engine goes on
        self._count()

    def __len__(self) -> int:
        return self._rows

    @property
    def nbytes(self) -> int:
        """About how many bytes the matches take when they are laid out."""
        return self._rows * _LAID_OUT_BYTES

    def part(self) -> Ints:
        """Return the partition of each match, as long as they are not laid out."""
        part: Ints = self.events[EVENT_PART, self._last()[0]]
        return part

    def parted(self, owners: SmallInts, places: Sequence[SmallInts]) -> Iterator[tuple[int, Chains]]:
        """Yield the matches of each owner that has some; then they are there instead of here.

        Args:
            owners: of each variable: whose a match is whose last element is of it.
            places: of each owner, the places of the variables, as above.
        """
        sizes, owner = np.diff(self._ended[0], append=len(self._before)), owners[self._ended[2]]
        for each in np.unique(owner).tolist():
            groups = np.flatnonzero(owner == each)
            counts = sizes[groups]
            firsts = (np.cumsum(counts) - counts).astype(np.int32)
            rows = np.repeat(self._ended[0, groups] - firsts, counts) + np.arange(int(counts.sum()), dtype=np.int32)
            part = copy(self)
            part._before, part._places, part._lock = self._before[rows], places[each], Lock()
            part._ended = np.concatenate([firsts[None], self._ended[1:, groups]])
            part.spans = None if self.spans is None else self.spans[:, rows]
            part._count()
            yield each, part

    def _count(self) -> None:
        spans = self.spans
        self._rows = len(self._before) if spans is None else int((spans[SPAN_HIGH] - spans[SPAN_LOW] + 1).sum())

    def _last(self) -> SmallInts:
        sizes = np.diff(self._ended[0], append=len(self._before))
        return np.repeat(self._ended[1:], sizes, axis=1)

    def laid_out(self) -> Laid:
        """Return the matches as users get them; then the chains are not needed any more."""
        with self._lock:
            if self._laid is None:
                self._laid = self._lay_out()
                self.nodes, self.events, self._ended, self.spans = _NO_SMALL_INTS, _NO_INTS, _NO_SMALL_INTS, None
            return self._laid

    def _lay_out(self) -> Laid:
        count, last = len(self._before), self._last()
        offsets = np.zeros(count + 1, np.int64)
        match_offsets(self.nodes, self._before, offsets)
        variables, seq = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int64)
        times = np.empty((2, count), np.int64)
        lay_out(self.nodes, self._before, last, self.events, self._places, offsets, variables, seq, times)
        part = self.events[EVENT_PART, last[0]] if self.has_parts else None
        if self.spans is None:
            return Laid(offsets, variables, seq, times[0], times[1], part)
        rows = self._rows
        starts, windows, owners = np.zeros(rows + 1, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int64)
        pieces = np.empty(0, np.int32), np.empty(0, np.int64), np.empty((2, rows), np.int64)
        repeat_per_window(self.spans, offsets, variables, seq, times, starts, *pieces, windows, owners)
        pieces = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int64), pieces[2]
        repeat_per_window(self.spans, offsets, variables, seq, times, starts, *pieces, windows, owners)
        part = None if part is None else part[owners]
        return Laid(starts, pieces[0], pieces[1], pieces[2][0], pieces[2][1], part, windows)
