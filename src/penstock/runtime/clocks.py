"""Time as an operator sees it: virtual, by what work costs, or real."""

from __future__ import annotations

import time
from typing import Protocol

import numpy as np

from penstock.plan.tables import Floats


class Clock(Protocol):
    """Tells the time and when events have arrived. Seconds from the start of the stream."""

    arrivals: Floats  # of each event, as far as they have arrived

    def now(self) -> float:
        """Return the time."""

    def arrived(self) -> int:
        """Return how many events have arrived."""

    def wait(self, seen: int) -> None:
        """Let time pass until more than `seen` events have arrived, of which there are more."""

    def work(self, first: int, seconds: Floats) -> Floats:
        """Let the time pass that it took to process events; return when each was done.

        Args:
            first: the first of them.
            seconds: what each cost, in virtual time.
        """

    def spend(self, seconds: float) -> None:
        """Let time pass that work took which is of no event."""


class VirtualClock:
    """Time that advances by the cost of work alone: the same on every machine, bit for bit."""

    def __init__(self, arrivals: Floats) -> None:
        self.arrivals, self._now = arrivals, 0.0

    def now(self) -> float:
        """Return the time."""
        return self._now

    def arrived(self) -> int:
        """Return how many events have arrived."""
        return int(self.arrivals.searchsorted(self._now, side="right"))

    def wait(self, seen: int) -> None:
        """Go to the next arrival."""
        self._now = max(self._now, float(self.arrivals[seen]))

    def work(self, first: int, seconds: Floats) -> Floats:
        """Process events one after the other, each when it is there: done = max(done before, arrival) + cost."""
        if not len(seconds):
            return seconds
        spent = np.cumsum(seconds)
        idle = self.arrivals[first : first + len(seconds)] - (spent - seconds)
        done: Floats = spent + np.maximum.accumulate(np.maximum(idle, self._now))
        self._now = float(done[-1])
        return done

    def spend(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds


class WallClock:
    """Real time. Events arrive as a schedule says; see `penstock.runtime.feeding` for arrivals from another process."""

    def __init__(self, schedule: Floats) -> None:
        self.arrivals, self._start = schedule, time.perf_counter()

    def now(self) -> float:
        """Return the time."""
        return time.perf_counter() - self._start

    def arrived(self) -> int:
        """Return how many events have arrived."""
        return int(self.arrivals.searchsorted(self.now(), side="right"))

    def wait(self, seen: int) -> None:
        """Sleep until the next arrival."""
        time.sleep(max(0.0, float(self.arrivals[seen]) - self.now()))

    def work(self, first: int, seconds: Floats) -> Floats:
        """Return that events that were processed together are done now."""
        return np.full(len(seconds), self.now())

    def spend(self, seconds: float) -> None:
        """Do nothing: it has passed."""
