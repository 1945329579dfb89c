"""Overload of a host that takes events in batches, one after the other, such as Spark: how much of a batch it can do.

An event waits until the batch that has it begins, its *lag*, and then until the batch is over. When one batch follows
the other, what arrives during a batch is in the next one, so the greatest lag is the duration of the batch before. Two
rules keep the bound:

- A batch does no more than it has time for: half of f · bound, or half of what an uncertain host leaves.
- An event that cannot be on time is not processed: one with lag + expected duration + margin > bound. After a batch
  that took too long, whatever the reason, the oldest events go, and the rest is on time; the next batch is not cut
  short, as most of a short batch is the host's own time.

What a batch takes is fitted to those before, and the margin follows from how far off the fit has been: so a busy host,
on which batches of the same work last now longer and now shorter, gets more room. Nothing else is remembered.

Durations are the differences of the times at which batches began, as the host's log has them. No clock is read: a batch
that is run again leaves the same state behind, bit for bit, whichever of its attempts the host has kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np

from penstock.plan.tables import Floats

_SLOPE_DECAY = 0.95  # what earlier batches count for what a row and a unit take
_FIXED_DECAY = 0.75  # and for what a batch takes anyway, which changes sooner
_OVERHEAD = 0.1  # of half the bound: what a batch of nothing takes at least, as far as nothing else is known
_ANYWAY = 0.5  # and of what the last few took
_BY_ROWS = 0.02  # and what their rows took, before any work on them
_PRIOR = 0.3  # what these two count, as a share of a batch: they decide only if all batches were alike
_LEAST = 0.1  # of half the bound: so much of a batch is always done, or nothing would be learned
_WORTHWHILE = 0.25  # of what a batch takes anyway: to do less than that gains little
_MARGIN = 0.05  # bounds: what is always kept free
_ERRORS = 3.0  # and so many times the mean error of the fit
_REMEMBERED = 0.9  # what earlier errors count
_LATE = 0.9  # bounds: of a lag like this the batch before is the reason
_LONGEST = 9.0  # bounds: what lasted longer counts as that
_PAUSE = 30.0  # bounds: the host was away
_NEVER = -(2**62)


@dataclass
class BatchRates:
    """How long batches last, by what comes and what is done in them: d = d_0 + b · n + c · u, in microseconds.

    n is the number of events that come, shed or not: the host reads and moves them all. u is what the work on those
    that are not shed depends on: their number, times what each of them is. b and c are fitted by least squares over
    decayed sums. A batch of nothing and one of events that are all shed are weak priors: so they say something, too,
    when all batches are alike. d_0 is what the last few batches leave for it.

    Attributes:
        at: the time of the last batch; `_NEVER` before the first.
        batches: how many there were.
        rows: n of the last one.
        done: u of the last one.
        sums: (4, 4) of the products of 1, n, u and d, with decay.
        recent: (4,) their means over the last few batches.
        expected: how long the last one should last; 0 if nothing was known.
        error: how far off such expectations were, on average.
    """

    at: int = _NEVER
    batches: int = 0
    rows: float = 0.0
    done: float = 0.0
    sums: Floats = field(default_factory=lambda: np.zeros((4, 4)))
    recent: Floats = field(default_factory=lambda: np.zeros(4))
    expected: float = 0.0
    error: float = 0.0

    def begin(self, at: int, lag: float, bound: float) -> None:
        """Take note of when a batch begins, and so of how long the one before has lasted.

        The first one says nothing: it has everything to start. Nor does one before a long pause.

        Args:
            at: its time.
            lag: of its oldest event that is not overdue: if it is short, the host was idle before.
            bound: of the latency.
        """
        gap = at - self.at
        if self.batches > 1 and 0 < gap < _PAUSE * bound:
            lasted = min(float(gap), lag if lag < _LATE * bound else gap, _LONGEST * bound)
            self.learn(self.rows, self.done, lasted)
            if self.expected:
                self.error += (1 - _REMEMBERED) * (abs(lasted - self.expected) - self.error)
        self.at = max(self.at, at)

    def learn(self, rows: float, units: float, lasted: float) -> None:
        """Take in how long a batch has lasted."""
        seen = np.array([1.0, rows, units, lasted])
        share = 1 - _FIXED_DECAY if self.sums[0, 0] else 1.0
        self.sums = _SLOPE_DECAY * self.sums + np.outer(seen, seen)
        self.recent = self.recent + share * (seen - self.recent)

    def end(self, rows: float, units: float, expected: float) -> None:
        """Take note of what came and what was done in a batch, and of how long that should last."""
        self.batches, self.rows, self.done, self.expected = self.batches + 1, rows, units, expected

    def fit(self, overhead: float) -> tuple[float, float, float]:
        """Return d_0, b and c; as long as nothing else is known, a batch of nothing lasts `overhead` at least."""
        if not self.sums[0, 0]:
            return overhead, 0.0, 0.0
        rows, lasted = self.recent[1], self.recent[3]
        anyway = max(overhead, _ANYWAY * lasted)
        sums = self.sums.copy()
        for seen in ((1.0, 0.0, 0.0, anyway), (1.0, rows, 0.0, anyway + _BY_ROWS * lasted)):
            sums += _PRIOR * np.outer(seen, seen)
        _, by_row, by_unit = least_squares(sums)
        return max(0.0, float(lasted - by_row * rows - by_unit * self.recent[2])), by_row, by_unit

    def state(self) -> dict[str, Any]:
        """Return all that must survive."""
        return asdict(self)

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Self:
        """Go on from a state."""
        arrays = {name: np.array(state[name]) for name in ("sums", "recent")}
        return cls(**{**state, **arrays})


def least_squares(sums: Floats) -> tuple[float, ...]:
    """Return the factors, none below 0, by which the first columns make up the last, of the sums of their products.

    Examples:
        >>> seen = np.array([[1, 10, 5, 25], [1, 20, 5, 35], [1, 20, 8, 38.0]])
        >>> [round(x, 6) for x in least_squares(seen.T @ seen)]
        [10.0, 1.0, 1.0]
    """
    size = len(sums) - 1
    scales = np.sqrt(np.maximum(np.diag(sums)[:size], 1e-12))
    used = np.ones(size, np.bool_)
    while used.any():
        at = np.flatnonzero(used)
        products = sums[np.ix_(at, at)] / np.outer(scales[at], scales[at])
        factors = np.linalg.lstsq(products, sums[at, size] / scales[at], rcond=1e-9)[0] / scales[at]
        if (factors >= 0).all():
            found = np.zeros(size)
            found[at] = factors
            return tuple(found.tolist())
        used[at[np.argmin(factors * scales[at])]] = False  # the one that is furthest below
    return (0.0,) * size


@dataclass(frozen=True)
class BatchBound:
    """A latency bound, for a host that works in batches.

    Attributes:
        bound: in microseconds.
        f: the share of it to aim at.
    """

    bound: float
    f: float

    @property
    def half(self) -> float:
        """How long a batch may last, if one follows the other."""
        return self.f * self.bound / 2

    def margin(self, rates: BatchRates) -> float:
        """Return what is kept free of the bound, as batches do not last as long as they should."""
        return min(_MARGIN * self.bound + _ERRORS * rates.error, self.bound / 2)

    def duration(self, rates: BatchRates) -> float:
        """Return how long a batch may last, if those before it did as well."""
        return min(self.half, (self.bound - self.margin(rates)) / 2)

    def expected(self, rows: float, units: float, rates: BatchRates) -> float:
        """Return how long a batch of so many rows and units lasts."""
        fixed, by_row, by_unit = rates.fit(_OVERHEAD * self.half)
        return fixed + by_row * rows + by_unit * units

    def doable(self, rows: float, rates: BatchRates) -> float:
        """Return the greatest u that a batch of so many rows has time for; infinite if nothing is known.

        Where a batch of nothing takes about as long as there is, some work is done all the same: that of the youngest
        events, which are on time even so.

        Args:
            rows: that come.
            rates: of earlier batches.

        Examples:
            >>> rates = BatchRates()
            >>> for _ in range(20):
            ...     rates.learn(100, 100, 900_000)
            ...     rates.learn(100, 50, 650_000)
            >>> round(BatchBound(2_000_000, 0.8).doable(100, rates))
            80
        """
        fixed, by_row, by_unit = rates.fit(_OVERHEAD * self.half)
        fixed += by_row * rows
        least = max(_LEAST * self.half, min(_WORTHWHILE * fixed, self.half))
        return max(self.duration(rates) - fixed, least) / by_unit if by_unit > 0 else float("inf")

    def longest_lag(self, rows: float, units: float, rates: BatchRates) -> float:
        """Return the lag beyond which an event cannot be on time any more, in a batch of so many rows and units."""
        return max(self.bound - self.margin(rates) - self.expected(rows, units, rates), _LEAST * self.half)

    def share_by_lag(self, lag: float) -> float:
        """Return what to shed where only the lag is known, as before a shuffle: 1 - (f · bound / lag)².

        It is nothing as long as batches are kept to half of that. Beyond, with the square a lag settles: of
        lag' = o + (R / C) · (1 - share) · lag, the slope where lag' = lag is -(1 - o / lag), between -1 and 0, whatever
        the rate R, the capacity C and the overhead o. With any steeper function it need not.
        """
        return max(0.0, 1.0 - (self.f * self.bound / lag) ** 2) if lag > 0 else 0.0
