"""eSPICE: events from windows, by type and position (thesis, chapter 4; the eSPICE paper)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from penstock.plan.tables import Floats, Ints
from penstock.shedding.deciding import CERTAIN, Cells, by_level
from penstock.shedding.history import History
from penstock.shedding.overload.queueing import drop_amount
from penstock.shedding.strategies.strategy import Strategy
from penstock.shedding.thresholds import LEVELS, UTILITIES, Occurrences, cdt
from penstock.shedding.views import Decision, Effort, Level, View


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
        self._below = np.zeros(1, np.int64)  # by partition: what has less utility goes
        self._at = np.zeros(1, np.uint64)  # and the chance of what has just as much
        self._cells = Cells.of(self.utilities, 1)
        self._partitioned: dict[int, tuple[Cells, list[Occurrences]]] = {}  # by number of partitions

    @classmethod
    def fitted(cls, history: History, **options: Any) -> Self:
        """Count contributions and events by type and position."""
        return cls(utility_table(history.contributions()), history.event_counts() / max(1, history.windows), **options)

    def aim(self, share: float, partitions: int = 1) -> None:
        """Find the threshold of each partition (algorithm 4, lines 1 to 7)."""
        if partitions not in self._partitioned:
            tables = [Occurrences(UTILITIES, table) for table in self.tables(partitions)]
            self._partitioned[partitions] = Cells.of(self.utilities, partitions), tables
        self._cells, occurrences = self._partitioned[partitions]
        if partitions != len(self._below):
            self._below, self._at = np.zeros(partitions, np.int64), np.zeros(partitions, np.uint64)
        for part, each in enumerate(occurrences):
            threshold = each.threshold(drop_amount(share, each.total), exact=self.exact)
            self._below[part] = threshold.below if threshold.share > 0 else 0
            self._at[part] = math.ceil(threshold.share * CERTAIN)

    def tables(self, partitions: int) -> Floats:
        """Return CDT of each partition: (partitions, 101)."""
        cells = self.utilities.shape[1]
        bounds = [-(-part * cells // partitions) for part in range(partitions + 1)]
        parts = [slice(*ends) for ends in pairwise(bounds)]
        return np.stack([cdt(self.utilities[:, part], self.shares[:, part]) for part in parts])

    def decide(self, view: View) -> Decision:
        """Return what is shed of a slice: a single look-up for each pair (algorithm 4, lines 8 to 17)."""
        return Decision(pairs=by_level(self._cells, self._below, self._at, view, self.seed))
