"""How much a stream loses while load is shed, from what is observed of each micro-batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from penstock.shedding.estimating import Estimate, would_be_lost

if TYPE_CHECKING:
    from penstock.spark.progress import Progress

TOGETHER = 4  # micro-batches whose matches may have events in common


@dataclass
class Loss:
    """Estimates the share of matches that is lost in micro-batches that shed something.

    It is that of the keys that `Shedding(unshed=…)` marks: their rows are all processed, and a match with a row that
    would have been shed, be it by the strategy or as it was overdue, would have been lost. The interval is about time,
    not about which keys are marked.

    Attributes:
        lost: matches of marked keys that would have been lost, by micro-batch; some in a row count together.
        matches: all matches of marked keys, likewise.
        batches: how many micro-batches have shed something.
    """

    lost: list[int] = field(default_factory=list)
    matches: list[int] = field(default_factory=list)
    batches: int = 0

    def add(self, progress: Progress) -> None:
        """Take a micro-batch."""
        if not progress.shed:
            return
        if self.batches % TOGETHER == 0:
            self.lost.append(0)
            self.matches.append(0)
        self.batches += 1
        self.lost[-1] += progress.judged_lost
        self.matches[-1] += progress.judged

    def estimate(self) -> Estimate:
        """Return the share, with an interval of 95 %; from 0 to 1 as long as nothing is known."""
        return would_be_lost(np.array(self.lost, np.float64), np.array(self.matches, np.float64), 1)


def estimated_loss(batches: Iterable[Progress]) -> Estimate:
    """Return the share of matches that a stream has lost, as `Loss` has it.

    Args:
        batches: of a stream, one after the other, as a `Listener` gets them.

    Examples:
        >>> from penstock.spark.progress import Progress
        >>> told = {"rows": 90, "processed": 60, "shed": 30, "judged": 8, "judged_lost": 3}
        >>> print(estimated_loss(Progress.of(n, 500, told, 0) for n in range(40)))
        37.5 % lost (37.5 to 37.5 %)
    """
    loss = Loss()
    for each in batches:
        loss.add(each)
    return loss.estimate()
