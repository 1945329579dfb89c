"""eSPICE: events from windows, by type and position (thesis, chapter 4; the eSPICE paper)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from penstock.plan.tables import Floats, Ints
from penstock.shedding.deciding import CERTAIN, by_level
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
        self._levels = np.zeros((1, LEVELS), np.uint64)  # the chance to be dropped, by partition and utility
        self._parts = np.zeros(self.utilities.shape[1], np.uint16)  # the partition of each cell
        self._bytes = self.utilities.astype(np.uint8)
        self._tables: dict[int, Floats] = {}  # by number of partitions, (partitions, LEVELS): occurrences

    @classmethod
    def fitted(cls, history: History, **options: Any) -> Self:
        """Count contributions and events by type and position."""
        return cls(utility_table(history.contributions()), history.event_counts() / max(1, history.windows), **options)

    def aim(self, share: float, partitions: int = 1) -> None:
        """Find the threshold of each partition (algorithm 4, lines 1 to 7)."""
        tables, cells = self.tables(partitions), self.utilities.shape[1]
        if partitions != len(self._levels):
            self._parts = (np.arange(cells) * partitions // cells).astype(np.uint16)
        self._levels = np.zeros((partitions, LEVELS), np.uint64)
        for levels, table in zip(self._levels, tables, strict=True):
            threshold = Occurrences(UTILITIES, table).threshold(drop_amount(share, float(table[-1])), exact=self.exact)
            if threshold.share > 0:
                levels[: int(threshold.below)] = int(CERTAIN)
                levels[int(threshold.below)] = math.ceil(threshold.share * CERTAIN)

    def tables(self, partitions: int) -> Floats:
        """Return CDT of each partition: (partitions, 101)."""
        if partitions not in self._tables:
            parts = np.arange(self.utilities.shape[1]) * partitions // self.utilities.shape[1]
            each = [cdt(self.utilities[:, parts == part], self.shares[:, parts == part]) for part in range(partitions)]
            self._tables[partitions] = np.stack(each)
        return self._tables[partitions]

    def decide(self, view: View) -> Decision:
        """Return what is shed of a slice: a single look-up for each pair (algorithm 4, lines 8 to 17)."""
        return Decision(pairs=by_level(self._bytes, self._parts, self._levels, view, self.seed))
