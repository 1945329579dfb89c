"""A history as sums, which those of its parts add up to: all that strategies by type, position and state learn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from penstock.plan.tables import Floats
from penstock.shedding.history import History, Progress


class Tables(Protocol):
    """What these strategies ask: of a history, or of its sums."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the types."""

    @property
    def queries(self) -> tuple[Progress, ...]:
        """How the runs of each query fared."""

    @property
    def windows(self) -> int:
        """How many windows there were."""

    def events_met(self) -> Floats:
        """Return how many events of a type a cell had, as decisions see positions, over all windows: (T, B)."""

    def completed_by_state(self, query: int) -> Floats:
        """Return how often an event contributed to a run in a state that completed: (T, B, S)."""


@dataclass(frozen=True)
class Summed:
    """The sums of a history, or of many.

    Attributes:
        names: of the types, T of them.
        queries: of each, what it is; open runs and what completed are in `sums`.
        sums: `windows`, one number; `events` (T, B); per query `open.0`, `completed.0` and so on, (T, B, S).
    """

    names: tuple[str, ...]
    queries: tuple[Progress, ...]
    sums: Mapping[str, Floats]

    @classmethod
    def of(cls, history: History) -> Summed:
        """Sum up a history."""
        sums = {"windows": np.array([float(history.windows)]), "events": history.events_met()}
        for place, query in enumerate(history.queries):
            sums[f"open.{place}"] = query.open_runs.astype(np.float64)
            sums[f"completed.{place}"] = history.completed_by_state(place)
        return cls(history.names, history.queries, sums)

    def with_sums(self, sums: Mapping[str, Floats]) -> Summed:
        """Return it with other sums of the same shapes."""
        queries = tuple(
            replace(query, open_runs=np.rint(sums[f"open.{place}"]).astype(np.int64))
            for place, query in enumerate(self.queries)
        )
        return Summed(self.names, queries, sums)

    @property
    def windows(self) -> int:
        """How many windows there were."""
        return round(float(self.sums["windows"][0]))

    def events_met(self) -> Floats:
        """Return how many events of a type a cell had, as decisions see positions, over all windows: (T, B)."""
        return self.sums["events"]

    def completed_by_state(self, query: int) -> Floats:
        """Return how often an event contributed to a run in a state that completed: (T, B, S)."""
        return self.sums[f"completed.{query}"]
