"""What a run of an operator was like: latencies, what was shed, how it went over time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from penstock.plan.tables import Floats, Ints
from penstock.shedding.estimating import Estimate
from penstock.shedding.quality import Found


@dataclass(frozen=True)
class Moment:
    """The operator at the end of a slice.

    Attributes:
        at: the time, in seconds.
        latency: the greatest of the slice.
        queue: events that waited when it began.
        share: that was to be shed.
        shed: pairs that were.
        pairs: that there were.
        runs: open runs.
        matches: found in the slice.
    """

    at: float
    latency: float
    queue: int
    share: float
    shed: int
    pairs: int
    runs: int
    matches: int


@dataclass
class Run:
    """What came of a run.

    Attributes:
        latencies: (n,) of each event, in seconds, until it was processed or shed.
        found: the matches.
        moments: how it went.
        pairs: events in windows, in all.
        shed_pairs: of these, shed by the strategy.
        shed_by_cell: (T, 20) the same by type and position.
        overdue: events that were let go unseen, because they could not have been on time any more.
        runs_dropped: whole runs that were shed.
        deciding: seconds spent on decisions.
        working: seconds spent on everything.
        estimate: what is lost, as far as windows that are never shed can tell; None if there are none.
    """

    latencies: Floats
    found: Found = field(default_factory=lambda: Found.joined([]))
    moments: list[Moment] = field(default_factory=list)
    pairs: int = 0
    shed_pairs: int = 0
    shed_by_cell: Ints = field(default_factory=lambda: np.zeros((0, 20), np.int64))
    overdue: int = 0
    runs_dropped: int = 0
    deciding: float = 0.0
    working: float = 0.0
    estimate: Estimate | None = None

    def percentile(self, share: float) -> float:
        """Return the latency that this share of events keep below."""
        return float(np.quantile(self.latencies, share)) if len(self.latencies) else 0.0

    def over(self, bound: float) -> float:
        """Return the share of events that were later than a bound."""
        return float(np.mean(self.latencies > bound)) if len(self.latencies) else 0.0

    @property
    def drop_ratio(self) -> float:
        """The share of pairs of event and window that were shed."""
        return self.shed_pairs / self.pairs if self.pairs else 0.0

    @property
    def overhead(self) -> float:
        """Decisions, as a share of all time."""
        return self.deciding / self.working if self.working else 0.0
