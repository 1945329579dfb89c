"""What a run of an operator was like: latencies, what was shed, how it went over time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from penstock.kernel.compiling import entry
from penstock.plan.tables import Bools, Floats, Ints
from penstock.shedding.deciding import alike_until, size_at
from penstock.shedding.estimating import Estimate
from penstock.shedding.quality import Found
from penstock.shedding.views import View


@dataclass(frozen=True)
class Moment:
    """The operator at the end of a slice.

    Attributes:
        at: the time, in seconds.
        latency: the greatest of the slice.
        queue: events that waited when it began.
        share: that was to be shed.
        shed: pairs that were, see `Run`.
        pairs: that there were.
        runs: open runs.
        matches: found in the slice.
    """

    at: float
    latency: float
    queue: int
    share: float
    shed: float
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
        shed_pairs: of these, shed by the strategy. If an event is hidden from k of the n runs that it would have met in
            a window, where the one that it may open is one of them, that is k / n of a pair. In real time this is
            counted in some slices, and taken to be the same in those that follow.
        shed_by_cell: (T, 20) the same by type and position.
        overdue: events that were let go unseen, because they could not have been on time any more.
        runs_dropped: whole runs that were shed.
        runs_made: all runs that there were; one that takes an event makes a new one.
        deciding: seconds of the processor spent on decisions: to see the load, to ask the detector, to aim, to decide
            about pairs or to find and drop runs.
        working: seconds of the processor spent on all that is done with slices.
        estimate: what is lost, as far as windows that are never shed can tell; None if there are none.
    """

    latencies: Floats
    found: Found = field(default_factory=lambda: Found.joined([]))
    moments: list[Moment] = field(default_factory=list)
    pairs: int = 0
    shed_pairs: float = 0
    shed_by_cell: Floats = field(default_factory=lambda: np.zeros((0, 20)))
    overdue: int = 0
    runs_dropped: int = 0
    runs_made: int = 0
    deciding: float = 0.0
    working: float = 0.0
    estimate: Estimate | None = None

    def note_shed(self, view: View, is_shed: Bools, hidden: Floats | None = None) -> float:
        """Count the pairs of a slice; return how many of them were shed, or hidden from runs."""
        parts = is_shed if hidden is None else np.where(is_shed, 1.0, hidden)
        shed = int(np.count_nonzero(is_shed)) if hidden is None else float(parts.sum())
        self.pairs += len(view)
        self.shed_pairs += shed
        if shed:
            _count_cells(parts, view.types, view.pairs_of_events, view.positions, view.sizes, self.shed_by_cell)
        return shed

    def percentile(self, share: float) -> float:
        """Return the latency that this share of events keep below."""
        return float(np.quantile(self.latencies, share)) if len(self.latencies) else 0.0

    def over(self, bound: float) -> float:
        """Return the share of events that were later than a bound."""
        return float(np.mean(self.latencies > bound)) if len(self.latencies) else 0.0

    @property
    def drop_ratio(self) -> float:
        """The share that was shed: of runs, if these are what is dropped; else of pairs of event and window."""
        if self.runs_dropped:
            return self.runs_dropped / max(1, self.runs_made)
        return self.shed_pairs / self.pairs if self.pairs else 0.0

    @property
    def overhead(self) -> float:
        """Decisions, as a share of all time of the processor."""
        return self.deciding / self.working if self.working else 0.0


@entry
def _count_cells(shed: Floats | Bools, types: Ints, pairs: Ints, positions: Ints, sizes: Ints, counts: Floats) -> None:
    """Add what was shed by type and position; without a branch, which could not be foreseen."""
    first = end = 0
    for row in range(len(types)):
        kind, end = types[row], end + pairs[row]
        while first < end:
            size, stop = size_at(sizes, first), alike_until(sizes, first, end)
            scale = counts.shape[1] / size
            for k in range(first, stop):
                counts[kind, int(min(positions[k], size - 1) * scale + 1e-9)] += shed[k]
            first = stop
