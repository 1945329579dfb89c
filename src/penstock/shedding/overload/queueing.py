"""eSPICE's overload detector: from the queue to a share of events (thesis 4.2.4; eSPICE 3.4)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.shedding.overload.load import KEEP_ALL, Command, Load

_FULL = 0.75  # of the way from f · LB to LB: here all events go


def longest_queue(bound: float, event_time: float) -> float:
    """Return q_max = LB / l_p: how many events may wait before the bound is broken (section 4.2.4)."""
    return bound / max(event_time, 1e-12)


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
    """Sheds a share δ of the events while q_size > f · q_max, with the l_p that events take lately, shed or not.

    The paper's δ assumes that a dropped event saves the mean time of an event. With some strategies it saves less:
    events of little utility often cost little. Then the queue grows on though δ is shed. With `rising`, the share
    therefore rises from δ to all events as the wait l_q goes through the first three quarters of f · LB .. LB.

    Attributes:
        bound: LB, in seconds.
        f: the share of the bound from which on events are shed.
        rising: whether the share rises as the bound comes near; else it is δ, as in the paper.
    """

    bound: float
    f: float = 0.8
    rising: bool = True

    def command(self, load: Load, events: int) -> Command:
        """Return the share of events to drop."""
        q_max = longest_queue(self.bound, load.time)
        if load.queue <= self.f * q_max and load.waited <= self.f * self.bound:
            return KEEP_ALL
        kept = 1.0 - overload_ratio(load.rate, load.full_time)
        if self.rising:
            way = (load.waited - self.f * self.bound) / ((1 - self.f) * self.bound)
            kept *= min(1.0, max(0.0, 1.0 - way / _FULL))
        return Command(1.0 - kept)
