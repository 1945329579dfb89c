"""What finds matches: one protocol for the kernels that the engine runs on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from penstock.engine.found import Found
from penstock.engine.hooks import Hooks
from penstock.errors import PenstockError
from penstock.kernel.dropping import choose_cells
from penstock.plan.tables import Bools, Floats, Ints

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


def quota(utility: Floats, sizes: Ints, count: int) -> Ints:
    """Return of how many runs of each cell of `sizes` the `count` of least utility are; of all, if there are fewer."""
    wanted = np.zeros(utility.size, np.int64)
    used = np.empty(utility.size, np.int64)
    choose_cells(utility.reshape(-1), sizes.reshape(-1), count, np.empty(utility.size), used, wanted)
    return wanted


def lowest(utility: Floats, states: Ints, left: Floats, count: int) -> Ints:
    """Return the places of the `count` runs of least utility, or of all if there are fewer; see `drop_runs`.

    Runs of the same state and part of WITHIN are alike, so those of one cell that is needed in part go oldest first.
    """
    bins = utility.shape[1]
    cells = states * bins + np.clip((left * bins).astype(np.int64), 0, bins - 1)
    sizes = np.bincount(cells, minlength=utility.size)
    wanted = quota(utility, sizes, count)
    is_whole = wanted == sizes
    chosen = is_whole[cells] & (wanted[cells] > 0)
    for cell in np.flatnonzero((wanted > 0) & ~is_whole):
        chosen[np.flatnonzero(cells == cell)[: wanted[cell]]] = True
    places: Ints = np.flatnonzero(chosen)
    return places


class Matcher(Protocol):
    """A kernel with its memory, for one query; its events are in a `Store`."""

    def run(self, start: int) -> Iterator[tuple[Found, int, int]]:
        """Process the events of the store from place `start` on; yield matches, and the events that they are of."""

    def flush(self) -> Iterator[tuple[Found, int, int]]:
        """End the stream; yield what only that completes."""

    def advance(self, ts: int) -> Iterator[tuple[Found, int, int]]:
        """Let time come to `ts`: no earlier event will follow; yield what that completes."""

    def windows(self) -> tuple[Ints, Ints]:
        """Return, for every run and every match that waits, its partition and its first window."""

    @property
    def work(self) -> dict[str, int]:
        """What has been done so far: checks, runs_created, matches; and the number of open runs."""

    def needed(self) -> Bools:
        """Return which events of the store are still needed; all of them have been processed."""

    def move_events(self, places: Ints) -> None:
        """Follow the store: events have new places."""

    def live_values(self) -> Iterator[Floats]:
        """Yield the values that are kept and that may be texts, as views to change in place; `reindex` must follow."""

    def reindex(self) -> None:
        """Follow a change of the values that are kept: texts have new numbers."""

    def state(self) -> dict[str, Any]:
        """Return all that must survive, as arrays."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; the store has been restored."""


class RunMatcher(Matcher, Protocol):
    """A kernel that keeps runs, which hooks may be about."""

    def runs(self) -> Found:
        """Return the open runs, as if they were matches."""

    def set_hooks(self, hooks: Hooks | None, start: int) -> None:
        """Say what is shed and counted of the events from place `start` on."""

    def open_runs(self) -> Ints:
        """Return how many runs are open in each state."""

    def drop_runs(self, count: int, utility: Floats) -> Ints:
        """Drop the `count` runs of least utility, or all if there are fewer; return how many of each state.

        Args:
            count: how many.
            utility: (S, B) of a run by its state and by what it has left of WITHIN, in B equal parts, the least first.
        """
