"""eSPICE: events from windows, by type and position (thesis, chapter 4; the eSPICE paper)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from penstock.plan.tables import Floats, Ints
from penstock.shedding.deciding import Cells, Chances, by_level
from penstock.shedding.history import History
from penstock.shedding.strategies.strategy import Strategy
from penstock.shedding.thresholds import LEVELS, cdt, find_thresholds
from penstock.shedding.views import Decision, Effort, Level, View

# What is ready for a number of partitions: utilities, CDT of each, and its threshold: what has less goes, and of what
# has as much so many.
Partitioned: TypeAlias = tuple[Cells, Floats, Ints, Chances]


def utility_table(contributions: Floats) -> Ints:
    """Return UT(T, P): contributions, brought to whole numbers from 0 to 100 (equation 4.1, section 4.2.3.1).

    Examples:
        >>> utility_table(np.array([[14.0, 3.0, 2.0, 1.0, 0.0]])).tolist()
        [[100, 21, 14, 7, 0]]
    """
    most = float(contributions.max(initial=0.0))
    table: Ints = np.rint(contributions * (LEVELS - 1) / most if most > 0 else contributions).astype(np.int64)
    return table


@dataclass
class Espice(Strategy):
    """Drops from a window what has least utility there; each partition of the window has a threshold of its own.

    Attributes:
        utilities: (T, B) UT, from 0 to 100.
        shares: (T, B) how many events of a type a cell has in a window: the position shares S(T, P), times the
            positions of a cell.
        exact: whether of the events at the threshold only as many go as must; the paper drops all of them.
        seed: of the choice among those.
    """

    name: ClassVar[str] = "espice"
    level: ClassVar[Level] = "window"
    effort: ClassVar[Effort] = Effort(per="pair")

    utilities: Ints
    shares: Floats
    exact: bool = True
    seed: int = 1

    def __post_init__(self) -> None:
        self._partitioned: dict[int, Partitioned] = {}  # by number of partitions
        self.aim(0.0)

    @classmethod
    def fitted(cls, history: History, **options: Any) -> Self:
        """Count contributions and events by type and position."""
        return cls(utility_table(history.contributions()), history.event_counts() / max(1, history.windows), **options)

    def aim(self, share: float, partitions: int = 1) -> None:
        """Find the threshold of each partition (algorithm 4, lines 1 to 7)."""
        if partitions not in self._partitioned:
            below, at = np.zeros(partitions, np.int64), np.zeros(partitions, np.uint64)
            self._partitioned[partitions] = Cells.of(self.utilities, partitions), self.tables(partitions), below, at
        self._aimed = self._partitioned[partitions]
        _, tables, below, at = self._aimed
        find_thresholds(tables, share, self.exact, below, at)

    def tables(self, partitions: int) -> Floats:
        """Return CDT of each partition: (partitions, 101)."""
        cells = self.utilities.shape[1]
        bounds = [-(-part * cells // partitions) for part in range(partitions + 1)]
        parts = [slice(*ends) for ends in pairwise(bounds)]
        return np.stack([cdt(self.utilities[:, part], self.shares[:, part]) for part in parts])

    def decide(self, view: View) -> Decision:
        """Return what is shed of a slice: a single look-up for each pair (algorithm 4, lines 8 to 17)."""
        cells, _, below, at = self._aimed
        return Decision(pairs=by_level(cells, below, at, view, self.seed))
