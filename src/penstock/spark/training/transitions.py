"""How runs fare, event by event: what the Markov chains of pSPICE are made of (thesis, section 3.2.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from penstock.engine.hooks import Hooks
from penstock.engine.matches import Chunk
from penstock.pattern import ast
from penstock.plan.layout import EVENT_PART, EVENT_TS, HAVE_TAKEN
from penstock.plan.tables import Ints
from penstock.shedding.reach import events_within
from penstock.spark.training.observing import Seen, Shape, Subject, Tally


class Transitions:
    """Counts, per type and state, the runs that were open when an event came, and those that took it.

    What is counted: `seen`, the events of a type; `open` and `taken`, by state; `reach`, over all events, how many of
    their partition were within WITHIN before each, with itself; and `matches`.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        states = subject.states
        self.shapes: Mapping[str, Shape] = {
            "seen": (), "open": (states,), "taken": (states,), "reach": None, "matches": None,
        }  # fmt: skip
        self._seen, self._open, self._taken = Tally(), Tally(states), Tally(states)
        self._reach, self._matches = 0, 0
        self._now: tuple[Ints, Ints] = np.zeros((0, states), np.int64), np.zeros((0, states, 2), np.int64)
        self._before: Ints = np.zeros((2, 0), np.int64)  # partitions and times of events within WITHIN

    def hooks(self, seen: Seen) -> Hooks | None:
        """Count by type."""
        cells = np.full(seen.size, -1, np.int64)
        cells[seen.rows[seen.is_own]] = seen.types[seen.is_own]
        types, states = int(cells.max(initial=-1)) + 1, self.subject.states
        self._now = np.zeros((types, states), np.int64), np.zeros((types, states, 2), np.int64)
        return Hooks(cells=cells, open_runs=self._now[0], counted=self._now[1])

    def take(self, seen: Seen | None, found: Sequence[Chunk]) -> None:
        """Add what the engine has counted."""
        self._matches += sum(int(self.subject.is_own(chunk.last_ts).sum()) for chunk in found)
        if seen is None:
            return
        self._seen.add(seen.types[seen.is_own])
        self._open.add_table(self._now[0])
        self._taken.add_table(self._now[1][:, :, HAVE_TAKEN])
        self._reach += self._within(seen)

    def _within(self, seen: Seen) -> int:
        """Return, over the events that are counted here, how many of their partition are within WITHIN before them."""
        within = self.subject.query.within
        if isinstance(within, ast.CountSpan):
            return within.events * int(seen.is_own.sum())
        assert isinstance(within, ast.TimeSpan), "a query without WITHIN is refused"
        parts, ts = np.concatenate([self._before, seen.events[[EVENT_PART, EVENT_TS]]], axis=1)
        if not len(ts):
            return 0
        is_own = np.concatenate([np.zeros(self._before.shape[1], np.bool_), seen.is_own])
        counts = events_within(parts, ts, within.us)
        self._before = np.stack([parts, ts])[:, ts >= int(ts.max()) - within.us]
        return int(counts[is_own].sum())

    def forget(self, kept: Ints) -> None:
        """Do nothing: the engine has counted."""

    def end(self) -> None:
        """Do nothing, likewise."""

    def counted(self) -> Mapping[str, Ints]:
        """Return what was counted."""
        return {
            "seen": self._seen.array, "open": self._open.array, "taken": self._taken.array,
            "reach": np.array([self._reach]), "matches": np.array([self._matches]),
        }  # fmt: skip
