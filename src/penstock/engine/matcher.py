"""What finds matches: one protocol for the kernels that the engine runs on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from penstock.engine.found import Found
from penstock.errors import PenstockError
from penstock.plan.tables import Bools, Ints

MAX_FOUND = 1 << 14  # matches that a kernel keeps before it hands them out: so many stay in the cache


class TooManyRunsError(PenstockError):
    """A query has more runs than the engine may keep."""

    def __init__(self, most: int, at: int) -> None:
        self.most, self.at = most, at
        super().__init__(
            f"the query has more than {most:,} runs: the engine stopped before an event instead of running out of "
            "memory, and takes no more batches\n"
            "  fix: shorten WITHIN, add conditions between variables, use SELECT FIRST, or allow more: "
            f"Engine(query, max_runs={10 * most:_})"
        )


class Matcher(Protocol):
    """A kernel with its memory, for one query; its events are in a `Store`."""

    def run(self, start: int) -> Iterator[tuple[Found, int, int]]:
        """Process the events of the store from place `start` on; yield matches, and the events that they are of."""

    def flush(self) -> Iterator[tuple[Found, int, int]]:
        """End the stream; yield what only that completes."""

    def runs(self) -> Found:
        """Return the open runs, as if they were matches."""

    def windows(self) -> tuple[Ints, Ints]:
        """Return, for every run and every match that waits, its partition and its first window."""

    @property
    def work(self) -> dict[str, int]:
        """What has been done so far: checks, runs_created, matches; and the number of open runs."""

    def needed(self) -> Bools:
        """Return which events of the store are still needed; all of them have been processed."""

    def move_events(self, places: Ints) -> None:
        """Follow the store: events have new places."""

    def state(self) -> dict[str, Any]:
        """Return all that must survive, as arrays."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; the store has been restored."""
