"""How much is lost while load is shed: the windows that are never shed, and what would have been shed there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.plan.tables import Bools, Floats, Ints
from penstock.runtime.matching import Operator, Step
from penstock.runtime.stream import PAIR_BITS
from penstock.shedding.estimating import UNKNOWN, Estimate, Gaps, missing, would_be_lost
from penstock.shedding.views import Decision, View

_PRUNE_FROM = 1 << 16


class _Matches(NamedTuple):
    """Matches of marked windows, R of them with E elements.

    Attributes:
        windows: (R,).
        would: (R,) whether they would have been lost.
        sizes: (R,) how many events each has.
        rows: (E,) these events.
    """

    windows: Ints
    would: Bools
    sizes: Ints
    rows: Ints


class Judge:
    """Estimates the loss from the windows that are marked.

    If the strategy drops events from windows or from the stream, what it would have dropped in marked windows is noted,
    and a match with such an event would have been lost. Else matches per window are compared. Events that were let go
    unseen are missing in marked windows, too: `Gaps` says how many matches there were for each that was found.

    Args:
        operator: that is judged.
        is_marked: (W,) the windows that are never shed.
    """

    def __init__(self, operator: Operator, is_marked: Bools) -> None:
        self._operator, self._is_marked = operator, is_marked
        self._would: Ints = np.zeros(0, np.int64)  # pairs of marked windows that would have been shed
        self._found: Ints = np.zeros(len(is_marked), np.int64)  # matches by window
        self._matches: list[_Matches] = []  # of marked windows
        self._is_gone: Bools = np.zeros(operator.stream.size, np.bool_)  # events that were let go
        self._since: int | None = None  # the first event since load is shed
        self._seen = 0  # the event behind the last that was processed
        self._now = 0  # the first event of the last slice: windows are over that end before it
        self._names_events = False

    def let_go(self, first: int, stop: int) -> None:
        """Take events first .. stop-1 that were let go unseen."""
        self._is_gone[first:stop] = True
        self._since = first if self._since is None else self._since

    def note(self, start: int, view: View, decision: Decision, step: Step, *, is_shedding: bool) -> None:
        """Take a slice: what would have been decided about it, and what it brought."""
        self._seen = start + len(view.types)
        if is_shedding and self._since is None:
            self._since = start
        self._now = start + int(view.rows[0]) if len(view) else self._now
        pairs = decision.pairs if decision.events is None else decision.events[view.rows]
        if pairs is not None:
            self._names_events = True
            rows = start + view.rows
            numbers = rows << PAIR_BITS | (view.windows - self._operator.stream.low[rows])
            chosen = pairs & self._is_marked[view.windows]
            self._would = np.concatenate([self._would, numbers[chosen]])
        for _, chunk in step.matches.chunks:
            laid = chunk.laid_out()
            if len(laid):
                self._take(laid.seq, laid.offsets)
        if len(self._would) > _PRUNE_FROM:
            windows = self._operator.stream.of_pairs(self._would)[1]
            self._would = self._would[~self._operator.stream.cut.is_over(windows, self._now)]

    def _take(self, pairs: Ints, offsets: Ints) -> None:
        """Take matches, each with its pairs of an event and a window."""
        rows, windows = self._operator.stream.of_pairs(pairs)
        sizes, windows = np.diff(offsets), windows[offsets[:-1]]
        np.add.at(self._found, windows, 1)
        would = np.logical_or.reduceat(np.isin(pairs, self._would), offsets[:-1])
        chosen = self._is_marked[windows]
        self._matches.append(_Matches(windows[chosen], would[chosen], sizes[chosen], rows[np.repeat(chosen, sizes)]))

    def windows(self) -> Bools:
        """Return (W,) which windows are judged: those that opened when load was shed, and have ended."""
        since, cut = self._seen if self._since is None else self._since, self._operator.stream.cut
        is_judged: Bools = (cut.opens >= since) & (cut.closes <= self._now)
        return is_judged

    def estimate(self) -> Estimate:
        """Return the share of matches that are lost."""
        judged = self.windows()
        marked, since = judged & self._is_marked, self._since or 0
        matches = self._of(judged)
        if not marked.any():
            return UNKNOWN
        offsets = np.concatenate([[0], np.cumsum(matches.sizes)])
        gaps = Gaps.of(self._is_gone[since : self._seen], matches.rows - since, offsets)
        there_were = _by_window(matches.windows, gaps.worth, marked)
        overlap = max(1, round(float(np.mean(self._operator.stream.high - self._operator.stream.low + 1))))
        if self._names_events:
            share = float(marked.sum() / judged.sum())
            lost = _by_window(matches.windows, gaps.worth - ~matches.would, marked)
            spread = gaps.spread(~matches.would)
            return would_be_lost(lost, there_were, max(1, round(overlap * share)), share, spread)
        spread = gaps.spread(np.ones(len(matches.windows), np.bool_))
        others = self._found[judged & ~self._is_marked].astype(np.float64)
        return missing(others, there_were, overlap, spread)

    def _of(self, judged: Bools) -> _Matches:
        """Return the matches of the windows that are judged."""
        none = np.zeros(0, np.int64)
        parts = [_Matches(none, none > 0, none, none), *self._matches]
        windows, would, sizes, rows = (np.concatenate(each) for each in zip(*parts, strict=True))
        chosen = judged[windows]
        return _Matches(windows[chosen], would[chosen], sizes[chosen], rows[np.repeat(chosen, sizes)])


def _by_window(windows: Ints, worth: Floats, marked: Bools) -> Floats:
    """Return what the matches of each marked window are worth together, in order."""
    sums: Floats = np.bincount(windows, worth, minlength=len(marked)).astype(np.float64)[marked]
    return sums
