"""Load profiles: when events arrive, given how many the operator can process in a second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from penstock.plan.tables import Floats, Ints


class Profile(Protocol):
    """Says when events arrive."""

    def arrivals(self, events: int, capacity: float) -> Floats:
        """Return the times at which so many events arrive, in seconds, ascending.

        Args:
            events: how many.
            capacity: events that the operator can process in a second.
        """


@dataclass(frozen=True)
class Constant:
    """The same rate all the time.

    Attributes:
        share: of the capacity; 1.2 is 120 %.
    """

    share: float

    def arrivals(self, events: int, capacity: float) -> Floats:
        """Return times at equal distances.

        Examples:
            >>> Constant(2.0).arrivals(4, 100).tolist()
            [0.0, 0.005, 0.01, 0.015]
        """
        times: Floats = np.arange(events) / (self.share * capacity)
        return times


@dataclass(frozen=True)
class Stepped:
    """One rate after the other.

    Attributes:
        parts: (share of the events, share of the capacity) of each.
    """

    parts: tuple[tuple[float, float], ...]

    def arrivals(self, events: int, capacity: float) -> Floats:
        """Return times at equal distances within each part."""
        ends = np.rint(np.cumsum([part for part, _ in self.parts]) * events / sum(p for p, _ in self.parts))
        sizes = np.diff(np.concatenate([[0], ends])).astype(np.int64)
        gaps = np.concatenate(
            [np.full(size, 1 / (share * capacity)) for size, (_, share) in zip(sizes, self.parts, strict=True)]
        )
        times: Floats = np.cumsum(gaps) - gaps
        return times


def peaks(base: float = 0.5, factor: float = 1000.0, sizes: tuple[float, ...] = (0.3, 0.1, 0.2, 0.1)) -> Stepped:
    """Return DARLING's load (section 6.1): four peaks with 30, 10, 20 and 10 % of the events, at 1000 times the rate.

    What is left of the events comes between them, in equal parts.
    """
    between = (1 - sum(sizes)) / (len(sizes) + 1)
    parts = [(between, base)]
    for size in sizes:
        parts += [(size, base * factor), (between, base)]
    return Stepped(tuple(parts))


@dataclass(frozen=True)
class Ramp:
    """A rate that rises, or falls, evenly from event to event.

    Attributes:
        start: share of the capacity at the beginning.
        end: at the end.
    """

    start: float
    end: float

    def arrivals(self, events: int, capacity: float) -> Floats:
        """Return times at distances that change evenly."""
        gaps = 1 / (np.linspace(self.start, self.end, events) * capacity)
        times: Floats = np.cumsum(gaps) - gaps
        return times


@dataclass(frozen=True)
class Bursts:
    """A rate with bursts at equal distances.

    Attributes:
        base: share of the capacity between bursts.
        burst: in a burst.
        every: events from burst to burst.
        length: events in a burst.
    """

    base: float
    burst: float
    every: int
    length: int

    def arrivals(self, events: int, capacity: float) -> Floats:
        """Return the times."""
        is_burst = np.arange(events) % self.every < self.length
        gaps = 1 / (np.where(is_burst, self.burst, self.base) * capacity)
        times: Floats = np.cumsum(gaps) - gaps
        return times


@dataclass(frozen=True)
class Recorded:
    """Arrivals as they were recorded, faster or slower.

    Attributes:
        times: in microseconds, of every event.
        speed: how many times as fast.
    """

    times: Ints
    speed: float = 1.0

    def arrivals(self, events: int, capacity: float) -> Floats:
        """Return the times, from 0 on."""
        times: Floats = (self.times[:events] - self.times[0]) / (1e6 * self.speed)
        return times
