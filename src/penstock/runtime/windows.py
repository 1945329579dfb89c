"""A stream that is cut into windows: which ones an event is in, where they begin and end, how large they are.

With PARTITION BY the windows of a key are cut from its events alone: an event's position in a window is the number of
events of its key before it in that window. Windows are numbered key by key, and those of a key as they open, so that an
event is in an unbroken row of them, from its first to its last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.pattern import ast
from penstock.plan.layout import EVENT_HIGH, EVENT_LOW, EVENT_PART, EVENT_POS
from penstock.plan.tables import Bools, Ints
from penstock.shedding.positions import expanded

AGO = 20  # windows that are over, for what size the next ones will have


@dataclass(frozen=True)
class Cut:
    """The windows of a stream: n events, W windows.

    Attributes:
        low: (n,) the first window of an event.
        high: (n,) its last; less than `low`, if it is in none.
        places: (n,) how many events of its key come before it.
        starts: (W,) the place of a window's first event, among those of its key.
        opens: (W,) this event.
        closes: (W,) the event at which it is known to be over: the first of its key that is not in it any more, or, if
            windows are of time, of the stream; n if there is none.
        sizes: (W,) how many events it has.
        order: (W,) the windows in the order in which they are over.
        foreseen: (n,) how many events the windows of an event are expected to have, as it comes: as many as the last
            ones of its key had, or as they say themselves; 0 if none is over yet.
        keys: (W,) the key that a window is of; -1: there are none.
        joint: (m,) the events that have a key, by key and then in order: key · (n + 1) + event.
    """

    low: Ints
    high: Ints
    places: Ints
    starts: Ints
    opens: Ints
    closes: Ints
    sizes: Ints
    order: Ints
    foreseen: Ints
    keys: Ints
    joint: Ints

    @classmethod
    def of(cls, events: Ints, rows: Ints, times: Ints, window: ast.Window, *, has_keys: bool) -> Cut:
        """Cut a stream.

        Args:
            events: (…, m) those that are in a partition, as an intake has taken them.
            rows: (m,) which events of the stream they are.
            times: (n,) of all events.
            window: how it is cut.
            has_keys: whether it is cut key by key.
        """
        size, parts = len(times), events[EVENT_PART]
        order = np.argsort(parts, kind="stable")
        parts, rows = parts[order], rows[order]
        first, last, at = (events[row][order] for row in (EVENT_LOW, EVENT_HIGH, EVENT_POS))
        inside = np.flatnonzero(last >= first)
        before = _latest_before(parts[inside], first[inside], last[inside])
        opened = np.maximum(last[inside] - before, 0)
        highest = np.cumsum(opened) - 1
        lowest = highest - (last - first)[inside]
        opener, numbers = np.repeat(inside, opened), expanded(before + 1, opened)
        newest = inside[np.searchsorted(lowest, np.arange(len(opener)), side="right") - 1]
        low, high, places = np.zeros(size, np.int64), np.full(size, -1), np.zeros(size, np.int64)
        low[rows[inside]], high[rows[inside]], places[rows] = lowest, highest, at
        sizes = at[newest] - at[opener] + 1
        closes = _closes(parts, rows, newest, _ends(window, numbers, times[rows[opener]]), times)
        foreseen = np.zeros(size, np.int64)
        foreseen[rows[inside]] = _foreseen(window, parts[opener], numbers, sizes, lowest, first[inside])
        return cls(
            low, high, places, at[opener], rows[opener], closes, sizes, np.argsort(closes, kind="stable"), foreseen,
            parts[opener] if has_keys else np.full(len(opener), -1), parts * (size + 1) + rows if has_keys else rows,
        )  # fmt: skip

    @classmethod
    def none(cls, places: Ints) -> Cut:
        """Return a stream without windows: each event is in one of its own."""
        each, ones = np.arange(len(places)), np.ones(len(places), np.int64)
        return cls(each, each, places, places, each, each + 1, ones, each, ones, np.full(len(places), -1), each)

    def over(self, now: int) -> int:
        """Return how many windows, in their `order`, are over when an event comes."""
        return int(np.searchsorted(self.closes, now, side="right", sorter=self.order))

    def is_over(self, windows: Ints, now: int) -> Bools:
        """Return which of some windows are over when an event comes."""
        is_over: Bools = self.closes[windows] <= now
        return is_over

    def last_ones(self, now: int) -> Ints:
        """Return the windows that were over last when an event comes, whatever their key."""
        over = self.over(now)
        return self.order[max(0, over - AGO) : over]

    def passed(self, windows: Ints, now: int) -> tuple[Ints, Ints]:
        """Return how many events windows of keys have had when event `now` comes, and how many they should have."""
        keys, width = self.keys[windows], len(self.low) + 1
        behind = np.searchsorted(self.joint, keys * width + now)
        newest = self.joint[behind - 1] - keys * width
        return behind - np.searchsorted(self.joint, keys * width + self.opens[windows]), self.foreseen[newest]


def _latest_before(parts: Ints, first: Ints, last: Ints) -> Ints:
    """Return the latest window of its key that was open before each event, or, if that is later, before its first."""
    before = first - 1
    is_same = parts[1:] == parts[:-1]
    before[1:] = np.where(is_same, np.maximum(before[1:], last[:-1]), before[1:])
    return before


def _ends(window: ast.Window, numbers: Ints, opened: Ints) -> Ints | None:
    """Return the times at which windows are over; None if these are not known beforehand."""
    if not isinstance(window.length, ast.TimeSpan):
        return None
    every = window.every or window.length
    if window.on is not None or not isinstance(every, ast.TimeSpan):
        return opened + window.length.us
    return numbers * every.us + window.length.us


def _closes(parts: Ints, rows: Ints, newest: Ints, ends: Ints | None, times: Ints) -> Ints:
    """Return at which event of the stream windows are over, whose newest events are given by their order."""
    size, behind = len(times), np.minimum(newest + 1, len(rows) - 1)
    is_same = (newest + 1 < len(rows)) & (parts[behind] == parts[newest])
    closes = np.where(is_same, rows[behind], size)
    if ends is not None:
        closes = np.minimum(closes, np.maximum(np.searchsorted(times, ends), rows[newest] + 1))
    return closes


def _foreseen(window: ast.Window, parts: Ints, numbers: Ints, sizes: Ints, lowest: Ints, first: Ints) -> Ints:
    """Return how many events the windows of each event should have: as many as those of its key that were over last.

    Looked at are the last twenty numbers before its first window, of which some may have had no event: so it does not
    matter what was before, and a history may be studied in parts.

    Args:
        window: how the stream is cut.
        parts: (W,) the key of each window.
        numbers: (W,) its number among those of its key.
        sizes: (W,) how many events it has.
        lowest: (e,) the first window of each event.
        first: (e,) its number.
    """
    if isinstance(window.length, ast.CountSpan):
        return np.full(len(lowest), window.length.events)
    begins = np.searchsorted(parts, parts[lowest])  # keys are in order
    start = np.maximum(begins, lowest - AGO)
    while (is_old := (start < lowest) & (numbers[start] < first - AGO)).any():
        start += is_old
    sums, many = np.concatenate([[0], np.cumsum(sizes)]), lowest - start
    means = np.rint((sums[lowest] - sums[start]) / np.maximum(many, 1))
    foreseen: Ints = np.where(many > 0, np.maximum(means, 1), 0).astype(np.int64)
    return foreseen
