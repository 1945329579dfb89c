"""How much is lost while load is shed: the windows that are never shed, and what would have been shed there."""

from __future__ import annotations

import numpy as np

from penstock.plan.tables import Bools, Ints
from penstock.runtime.matching import Operator, Step
from penstock.runtime.stream import PAIR_BITS
from penstock.shedding.estimating import Estimate, by_window, missing, would_be_lost
from penstock.shedding.views import Decision, View

_PRUNE_FROM = 1 << 16


class Judge:
    """Estimates the loss from the windows that are marked.

    If the strategy drops events from windows or from the stream, what it would have dropped in marked windows is noted,
    and a match with such an event would have been lost. Else matches per window are compared.

    Args:
        operator: that is judged.
        is_marked: (W,) the windows that are never shed.
    """

    def __init__(self, operator: Operator, is_marked: Bools) -> None:
        self._operator, self._is_marked = operator, is_marked
        self._would: Ints = np.zeros(0, np.int64)  # pairs of marked windows that would have been shed
        self._lost: Ints = np.zeros(len(is_marked), np.int64)  # by window: matches that would have been lost
        self._found: Ints = np.zeros(len(is_marked), np.int64)
        self._begun: int | None = None  # the first window that opened when load was shed
        self._ended = 0
        self._names_events = False

    def note(self, start: int, view: View, decision: Decision, step: Step, *, is_shedding: bool) -> None:
        """Take a slice: what would have been decided about it, and what it brought."""
        if is_shedding and len(view):
            self._begun = int(view.windows.max()) if self._begun is None else self._begun
        self._ended = int(view.windows.min()) if len(view) else self._ended
        pairs = decision.pairs if decision.events is None else decision.events[view.rows]
        if pairs is not None:
            self._names_events = True
            rows = start + view.rows
            numbers = rows << PAIR_BITS | (view.windows - self._operator.stream.low[rows])
            chosen = pairs & self._is_marked[view.windows]
            self._would = np.concatenate([self._would, numbers[chosen]])
        np.add.at(self._found, step.found.windows, 1)
        for _, chunk in step.matches.chunks:
            laid = chunk.laid_out()
            hit = np.isin(laid.seq, self._would)
            owners = np.repeat(np.arange(len(laid)), np.diff(laid.offsets))
            lost = np.bincount(owners, weights=hit, minlength=len(laid)) > 0
            windows = self._operator.stream.of_pairs(laid.seq[laid.offsets[:-1]])[1]
            np.add.at(self._lost, windows[lost], 1)
        if len(self._would) > _PRUNE_FROM:
            windows = self._operator.stream.of_pairs(self._would)[1]
            self._would = self._would[windows >= self._ended]

    def estimate(self) -> Estimate:
        """Return the share of matches that are lost, of windows that opened and ended while load was shed."""
        first, last = self._begun or 0, max(self._ended, self._begun or 0)
        marked = self._is_marked[first:last]
        overlap = max(1, round(float(np.mean(self._operator.stream.high - self._operator.stream.low + 1))))
        if self._names_events:
            found, lost = self._found[first:last][marked], self._lost[first:last][marked]
            share = max(1, round(overlap * float(marked.mean()))) if len(marked) else 1
            return would_be_lost(lost.astype(np.float64), found.astype(np.float64), share)
        numbers = np.repeat(np.arange(last - first), self._found[first:last])
        return missing(by_window(numbers, ~marked), by_window(numbers, marked), overlap)
