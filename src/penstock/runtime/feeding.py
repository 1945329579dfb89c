"""A load generator: another process that says, at the times of a profile, which events have arrived.

Both processes look at the same file in memory; nothing else passes between them.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

import numpy as np

from penstock.plan.tables import Floats

_HEAD, _STOP, _BEGUN, _HEADER = range(4)  # events that have arrived; whether to stop; when it began; size
_NAP_SECONDS = 2e-4
_PATIENCE_SECONDS = 30.0


class Feeder:
    """Real arrivals of events that lie ready, from a process of their own. It is a clock: `penstock.runtime.clocks`.

    The operator may be busy for as long as it likes: the feeder keeps to its schedule, and an event's latency counts
    from the time at which the schedule has it. Use it as a context manager.

    Args:
        schedule: when each event arrives, in seconds.
    """

    def __init__(self, schedule: Floats) -> None:
        self.arrivals, self._schedule = schedule, schedule
        self._header: Floats = np.zeros(_HEADER)

    def __enter__(self) -> Self:
        self._folder = TemporaryDirectory(prefix="penstock-")
        path = Path(self._folder.name) / "arrivals"
        numbers = np.memmap(path, np.float64, "w+", shape=(_HEADER + len(self._schedule),))
        numbers[:_HEADER], numbers[_HEADER:] = 0, self._schedule
        self._header = numbers[:_HEADER]
        self._process = subprocess.Popen([sys.executable, "-m", "penstock.runtime.feeding", str(path)])
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not self._header[_BEGUN]:
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__(None, None, None)
                raise RuntimeError("the load generator did not start")
            time.sleep(_NAP_SECONDS)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._header[_STOP] = 1
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._header = np.array(self._header)
        self._folder.cleanup()

    def now(self) -> float:
        """Return the time."""
        return time.monotonic() - float(self._header[_BEGUN])

    def arrived(self) -> int:
        """Return how many events have arrived."""
        return int(self._header[_HEAD])

    def wait(self, seen: int) -> None:
        """Sleep until more than `seen` events have arrived."""
        while self.arrived() <= seen:
            if self._process.poll() is not None and self.arrived() <= seen:
                raise RuntimeError("the load generator has ended before all events arrived")
            time.sleep(_NAP_SECONDS)

    def work(self, first: int, seconds: Floats) -> Floats:
        """Return that events that were processed together are done now."""
        return np.full(len(seconds), self.now())

    def spend(self, seconds: float) -> None:
        """Do nothing: it has passed."""


def feed(path: str) -> None:
    """Let events arrive on time."""
    numbers = np.memmap(path, np.float64, "r+")
    header, schedule = numbers[:_HEADER], np.array(numbers[_HEADER:])
    begun = time.monotonic()
    header[_BEGUN] = begun
    head = 0
    while head < len(schedule) and not header[_STOP]:
        now = time.monotonic() - begun
        due = int(np.searchsorted(schedule, now, side="right"))
        if due > head:
            header[_HEAD] = head = due
        else:
            time.sleep(min(_NAP_SECONDS, max(0.0, float(schedule[head]) - now)))


if __name__ == "__main__":
    feed(sys.argv[1])
