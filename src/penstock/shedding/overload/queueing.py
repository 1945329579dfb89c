"""eSPICE's overload detector: from the queue to a share of events (thesis 4.2.4; eSPICE 3.4)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from penstock.shedding.overload.load import KEEP_ALL, Command, Load


def longest_queue(bound: float, event_time: float) -> float:
    """Return q_max = LB / l_p: how many events may wait before the bound is broken (section 4.2.4)."""
    return bound / event_time


def partitions(window: float, q_max: float, f: float) -> int:
    """Return β = ⌈ws / (q_max - f · q_max)⌉, the parts of a window that each need their own threshold (4.2.4.1).

    Examples:
        >>> partitions(1200, 5000, 0.8), partitions(1201, 6000, 0.8), partitions(900, 5000, 0.8)
        (2, 2, 1)
    """
    return max(1, math.ceil(window / max(1.0, q_max * (1 - f)) - 1e-9))


def overload_ratio(rate: float, event_time: float) -> float:
    """Return δ = 1 - μ / R, the share of events that must go; 0 if the operator keeps up (4.2.4.2)."""
    return max(0.0, 1.0 - 1.0 / (event_time * rate)) if rate > 0 else 0.0


def drop_amount(share: float, partition_size: float) -> float:
    """Return ρ = δ · p_size, the events that must go from each partition of each window (4.2.4.2)."""
    return share * partition_size


@dataclass
class QueueDetector:
    """Sheds while q_size > f · q_max.

    With `feedback`, the share starts at δ and is then adjusted to what it brings: the mean time of an event under
    shedding is measured, and the share changes so that an event takes τ* = 1 / R + (f · LB - l_q) / K: as long as it
    takes the next one to arrive, and so much less as brings the queue back to f · LB within K events. The paper's δ
    assumes that a dropped event saves the mean time of an event. It does not: events of little utility often cost
    little, and what is dropped from a window is still looked at.

    Attributes:
        bound: LB, in seconds.
        f: the share of the bound from which on events are shed.
        feedback: whether the share is adjusted; else it is δ, as in the paper.
    """

    bound: float
    f: float = 0.8
    feedback: bool = True
    _share: float = field(default=0.0, init=False)
    _events: int = field(default=0, init=False)  # since the share was last adjusted

    def command(self, load: Load, events: int) -> Command:
        """Return the share of events to drop."""
        q_max = longest_queue(self.bound, load.full_time)
        is_full = load.queue > self.f * q_max or load.waited > self.f * self.bound
        if not self.feedback:
            return Command(overload_ratio(load.rate, load.full_time)) if is_full else KEEP_ALL
        if self._share == 0.0:
            if not is_full:
                return KEEP_ALL
            self._share, self._events = max(0.01, overload_ratio(load.rate, load.full_time)), 0
        elif self._events >= self._horizon(q_max) / 8:
            self._adjust(load, q_max)
        self._events += events
        return Command(self._share)

    def _horizon(self, q_max: float) -> float:
        """Return K, half the events between f · q_max and q_max."""
        return max(8.0, (1 - self.f) * q_max / 2)

    def _adjust(self, load: Load, q_max: float) -> None:
        wanted = 1.0 / max(load.rate, 1e-9) + (self.f * self.bound - load.waited) / self._horizon(q_max)
        kept = (1.0 - self._share) * min(1.25, max(0.5, wanted / max(load.time, 1e-12)))
        self._share, self._events = 1.0 - min(1.0, max(kept, 1e-3)), 0

    def reset(self) -> None:
        """Forget what was commanded before."""
        self._share, self._events = 0.0, 0
