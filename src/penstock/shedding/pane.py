"""The predecessor pane: how often each type came just before an event (thesis 6.1.1), counted before any shedding."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.kernel.compiling import compiled
from penstock.plan.tables import Ints


@dataclass
class Pane:
    """Follows the stream with a pane of fixed length.

    Attributes:
        length: L_ω, in events or in microseconds.
        is_timed: whether it is in microseconds.
        size: how many types there are.
    """

    length: int
    is_timed: bool
    size: int
    _types: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    _times: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def follow(self, types: Ints, times: Ints) -> tuple[Ints, Ints, Ints]:
        """Take events that come next; return the types, where these events are in them, and where each pane begins."""
        before = len(self._types)
        all_types, all_times = np.concatenate([self._types, types]), np.concatenate([self._times, times])
        begins = self._begins(all_times, before)
        self._keep(all_types, all_times)
        return all_types, np.arange(before, len(all_types)), begins

    def pass_by(self, types: Ints, times: Ints) -> None:
        """Take events that come next, and that nobody asks about."""
        is_long = len(types) >= self.length
        if self.is_timed:
            is_long = len(times) > 0 and bool(times[0] < times[-1] - self.length)
        if is_long:  # what came before is in no pane any more
            self._keep(types, times)
        else:
            self._keep(np.concatenate([self._types, types]), np.concatenate([self._times, times]))

    def _keep(self, types: Ints, times: Ints) -> None:
        """Keep the events that panes of later ones may begin with."""
        first = max(0, len(types) - self.length)
        if self.is_timed:
            first = int(np.searchsorted(times, times[-1] - self.length)) if len(times) else 0
        self._types, self._times = types[first:], times[first:]

    def _begins(self, times: Ints, start: int) -> Ints:
        """Return the first event of each pane: ω_e = {e_i: j - L ≤ i < j}, or those of the last L microseconds."""
        at = np.arange(start, len(times))
        begins: Ints = (
            np.searchsorted(times, times[start:] - self.length) if self.is_timed else np.maximum(at - self.length, 0)
        )
        return begins

    def state(self) -> dict[str, Any]:
        """Return all that must survive."""
        return {"types": self._types, "times": self._times}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._types, self._times = np.asarray(state["types"], np.int64), np.asarray(state["times"], np.int64)


def frequencies(types: Ints, at: Ints, begins: Ints, size: int) -> Ints:
    """Return F_e = (F_T1, …) of events: (n, T) how often each type is among types[begins[k] : at[k]].

    Examples:
        >>> frequencies(np.array([0, 1, 2, 0]), np.array([3]), np.array([0]), 3).tolist()
        [[1, 1, 1]]
    """
    result = np.zeros((len(at), size), np.int64)
    _slide(types, at, begins, result)
    return result


@compiled
def _slide(types: Ints, at: Ints, begins: Ints, result: Ints) -> None:
    """Write the frequencies of panes whose ends and beginnings do not fall."""
    counts = np.zeros(result.shape[1], np.int64)
    begin, end = begins[0] if len(begins) else 0, begins[0] if len(begins) else 0
    for k in range(len(at)):
        while end < at[k]:
            counts[types[end]] += 1
            end += 1
        while begin < begins[k]:
            counts[types[begin]] -= 1
            begin += 1
        for t in range(len(counts)):
            result[k, t] = counts[t]
