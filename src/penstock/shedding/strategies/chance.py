"""The baselines that know nothing: events at random, runs at random (PM-BL, thesis 3.3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from penstock.plan.tables import Floats
from penstock.shedding.chance import uniform
from penstock.shedding.history import History
from penstock.shedding.strategies.strategy import Strategy
from penstock.shedding.views import Decision, Effort, Level, View


@dataclass
class RandomEvent(Strategy):
    """Drops events of the stream with the same probability each."""

    name: ClassVar[str] = "random-event"
    level: ClassVar[Level] = "stream"
    effort: ClassVar[Effort] = Effort(per="event")

    seed: int = 1
    _share = 0.0

    @classmethod
    def fitted(cls, history: History, **options: Any) -> Self:
        """Return it: there is nothing to learn."""
        return cls(**options)

    def aim(self, share: float, partitions: int = 1) -> None:
        """Drop this share."""
        self._share = share

    def decide(self, view: View) -> Decision:
        """Return what is shed of a slice."""
        return Decision(events=uniform(self.seed, view.numbers) < self._share)


@dataclass
class RandomRun(Strategy):
    """PM-BL: drops runs with the same probability each.

    Attributes:
        states: how many states each query had that it was learned from, so that it is known of which queries it is;
            none, if it was not learned.
    """

    name: ClassVar[str] = "random-run"
    level: ClassVar[Level] = "runs"
    effort: ClassVar[Effort] = Effort(per="run", many=0.0)

    states: tuple[int, ...] = ()

    @classmethod
    def fitted(cls, history: History, **options: Any) -> Self:
        """Return it: there is nothing to learn."""
        return cls(tuple(len(query.ends) for query in history.queries), **options)

    def aim(self, share: float, partitions: int = 1) -> None:
        """Do nothing: how many runs go is said when they go."""

    def run_utilities(self, query: int) -> Floats:
        """Return that all runs are worth the same: the operator chooses among equals by chance."""
        return np.zeros((1, 1))
