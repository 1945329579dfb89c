"""E-BL: events from windows by the weight of their type, at random within a type (thesis 3.3.1, after He et al.)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from penstock.plan.tables import Floats
from penstock.shedding.deciding import by_cell, chances
from penstock.shedding.strategies.strategy import Strategy
from penstock.shedding.summing import Tables
from penstock.shedding.views import Decision, Effort, Level, View


@dataclass
class EBL(Strategy):
    """Drops from each type the more, the less a type weighs in the patterns and the more often it is in a window.

    A type's utility is how often it is in the patterns, times weights, divided by how often it is in a window. From
    type T a share x_T = min(1, λ / U_T) is dropped, with λ such that the shares come to the amount; what is in no
    pattern has no utility and goes first. The thesis does not say how amounts follow from utilities; this is a share
    that is inversely proportional.

    Attributes:
        utilities: (T,).
        frequencies: (T,) of a type in a window.
        seed: of the sampling.
    """

    name: ClassVar[str] = "ebl"
    level: ClassVar[Level] = "window"
    effort: ClassVar[Effort] = Effort(per="pair")

    utilities: Floats
    frequencies: Floats
    seed: int = 1

    def __post_init__(self) -> None:
        self._chances = chances(np.zeros((len(self.utilities), 1)))

    @classmethod
    def fitted(cls, history: Tables, **options: Any) -> Self:
        """Learn frequencies from windows, and from the patterns how often they name a type."""
        frequencies = history.events_met().sum(axis=1) / max(1, history.windows)
        repetition = sum((query.weight * query.named for query in history.queries), np.zeros(len(history.names)))
        return cls(repetition / np.maximum(frequencies, 1e-12), frequencies, **options)

    def aim(self, share: float, partitions: int = 1) -> None:
        """Find λ by bisection."""
        amount = share * float(self.frequencies.sum())
        is_free = self.utilities == 0
        low, high = 0.0, float(self.utilities.max(initial=0.0))
        free = float(self.frequencies[is_free].sum())
        if amount <= free:
            shares = np.where(is_free, amount / max(free, 1e-12), 0.0)
        else:
            for _ in range(60):
                middle = (low + high) / 2
                low, high = (middle, high) if (self._of(middle) @ self.frequencies) < amount else (low, middle)
            shares = self._of(high)
        self._chances = chances(shares[:, None])

    def _of(self, level: float) -> Floats:
        """Return x_T for a λ."""
        return np.where(self.utilities > 0, np.minimum(1.0, level / np.maximum(self.utilities, 1e-300)), 1.0)

    def decide(self, view: View) -> Decision:
        """Return what is shed of a slice."""
        return Decision(pairs=by_cell(self._chances, view, self.seed))
