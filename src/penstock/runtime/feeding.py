"""A load generator: another process that says, at the times of a profile, which events have arrived."""

from __future__ import annotations

import time
from multiprocessing import get_context
from multiprocessing.shared_memory import SharedMemory
from types import TracebackType
from typing import Any, Self

import numpy as np

from penstock.plan.tables import Floats

_HEAD, _STOP, _BEGUN, _HEADER = range(4)  # events that have arrived; whether to stop; when it began; size
_NAP_SECONDS = 2e-4


class Feeder:
    """Real arrivals of events that lie ready, from a process of their own. It is a clock: `penstock.runtime.clocks`.

    The operator may be busy for as long as it likes: the feeder keeps to its schedule, and an event's latency counts
    from the time at which the schedule has it. Use it as a context manager.

    Args:
        schedule: when each event arrives, in seconds.
    """

    def __init__(self, schedule: Floats) -> None:
        self._memory = SharedMemory(create=True, size=8 * (_HEADER + 2 * len(schedule)))
        self._header, planned, self.arrivals = _parts(self._memory, len(schedule))
        self._header[:] = 0
        planned[:], self.arrivals[:] = schedule, np.inf
        context: Any = get_context("spawn")
        self._process = context.Process(target=_feed, args=(self._memory.name, len(schedule)), daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        while not self._header[_BEGUN]:
            time.sleep(_NAP_SECONDS)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._header[_STOP] = 1
        self._process.join(5)
        if self._process.is_alive():
            self._process.terminate()
        arrivals = self.arrivals.copy()
        del self._header, self.arrivals  # the memory cannot be closed while arrays look at it
        self.arrivals = arrivals
        self._memory.close()
        self._memory.unlink()

    def now(self) -> float:
        """Return the time."""
        return time.monotonic() - float(self._header[_BEGUN])

    def arrived(self) -> int:
        """Return how many events have arrived."""
        return int(self._header[_HEAD])

    def wait(self) -> None:
        """Sleep until another event has arrived."""
        before = self.arrived()
        while self.arrived() == before and before < len(self.arrivals):
            time.sleep(_NAP_SECONDS)

    def work(self, first: int, seconds: Floats) -> Floats:
        """Return that events that were processed together are done now."""
        return np.full(len(seconds), self.now())

    def spend(self, seconds: float) -> None:
        """Do nothing: it has passed."""


def _parts(memory: SharedMemory, events: int) -> tuple[Floats, Floats, Floats]:
    numbers: Floats = np.ndarray(_HEADER + 2 * events, np.float64, memory.buf)
    return numbers[:_HEADER], numbers[_HEADER : _HEADER + events], numbers[_HEADER + events :]


def _feed(name: str, events: int) -> None:
    """Let events arrive on time."""
    memory = SharedMemory(name)
    header, schedule, arrivals = _parts(memory, events)
    begun = time.monotonic()
    header[_BEGUN] = begun
    head = 0
    while head < events and not header[_STOP]:
        now = time.monotonic() - begun
        due = int(np.searchsorted(schedule, now, side="right"))
        if due > head:
            arrivals[head:due] = schedule[head:due]
            header[_HEAD] = due
            head = due
        else:
            time.sleep(min(_NAP_SECONDS, max(0.0, float(schedule[head]) - now)))
    del header, schedule, arrivals
    memory.close()
