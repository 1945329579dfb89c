"""eSPICE: events from windows, by type and position (thesis, chapter 4; the eSPICE paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from penstock.plan.tables import Floats, Ints
from penstock.shedding.deciding import by_cell
from penstock.shedding.history import History
from penstock.shedding.overload.queueing import drop_amount
from penstock.shedding.strategies.strategy import Strategy
from penstock.shedding.thresholds import LEVELS, Occurrences, cdt, utility_threshold
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
        self._drops: Floats = np.zeros(self.utilities.shape)  # the share of events that a cell loses

    @classmethod
    def fitted(cls, history: History, **options: Any) -> Self:
        """Count contributions and events by type and position."""
        return cls(
            utility_table(history.contributions()), history.event_counts() / max(1, history.windows), **options
        )

    def aim(self, share: float, partitions: int = 1) -> None:
        """Find the threshold of each partition (algorithm 4, lines 1 to 7)."""
        positions = self.utilities.shape[1]
        bounds = np.arange(partitions + 1) * positions // partitions
        for start, stop in zip(bounds[:-1], bounds[1:], strict=True):
            if stop > start:
                part = slice(start, stop)
                self._drops[:, part] = self._of(self.utilities[:, part], self.shares[:, part], share)

    def _of(self, utilities: Ints, shares: Floats, share: float) -> Floats:
        """Return what the cells of a partition lose if a share of its events must go."""
        amount = drop_amount(share, float(shares.sum()))
        if amount <= 0:
            return np.zeros(utilities.shape)
        if not self.exact:
            return (utilities <= utility_threshold(cdt(utilities, shares), amount)).astype(np.float64)
        threshold = Occurrences.of(utilities, shares).threshold(amount)
        return np.where(utilities < threshold.below, 1.0, np.where(utilities == threshold.below, threshold.share, 0.0))

    def decide(self, view: View) -> Decision:
        """Return what is shed of a slice: a single look-up for each pair (algorithm 4, lines 8 to 17)."""
        return Decision(pairs=by_cell(self._drops, view, self.seed))
