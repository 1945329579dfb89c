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
from dataclasses import asdict, dataclass
from typing import Any, Self

_SLOPE_DECAY = 0.95  # what earlier batches count for what a unit takes
_FIXED_DECAY = 0.75  # and for what a batch takes anyway, which changes sooner
_OVERHEAD = 0.1  # of half the bound: what a batch of nothing takes at least, as far as nothing else is known
_ANYWAY = 0.3  # and of what the last few took
_PRIOR = 0.1  # what that counts, as a share of a batch: it decides only if all batches were alike
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
    """How long batches last, by what is done in them: d = d_0 + c · u. Times are in microseconds.

    u is the number of events that were not shed, or whatever else the work depends on. c is fitted by least squares
    over decayed sums, with a batch of no event as a weak prior: so it says something, too, when all batches are alike.
    d_0 is what the last few batches leave for it.

    Attributes:
        at: the time of the last batch; `_NEVER` before the first.
        batches: how many there were.
        done: u of the last one.
        count: of batches, with decay; likewise the sums of u, u², d and u · d.
        recent_units: the mean u of the last few batches; `recent_lasted` the mean d.
        expected: how long the last one should last; 0 if nothing was known.
        error: how far off such expectations were, on average.
    """

    at: int = _NEVER
    batches: int = 0
    done: float = 0.0
    count: float = 0.0
    units: float = 0.0
    squares: float = 0.0
    lasted: float = 0.0
    products: float = 0.0
    recent_units: float = 0.0
    recent_lasted: float = 0.0
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
            self._learn(self.done, lasted)
            if self.expected:
                self.error += (1 - _REMEMBERED) * (abs(lasted - self.expected) - self.error)
        self.at = max(self.at, at)

    def _learn(self, units: float, lasted: float) -> None:
        for name, value in (
            ("count", 1.0), ("units", units), ("squares", units * units), ("lasted", lasted),
            ("products", units * lasted),
        ):  # fmt: skip
            setattr(self, name, _SLOPE_DECAY * getattr(self, name) + value)
        share = 1.0 if self.count == 1.0 else 1 - _FIXED_DECAY
        self.recent_units += share * (units - self.recent_units)
        self.recent_lasted += share * (lasted - self.recent_lasted)

    def end(self, units: float, expected: float) -> None:
        """Take note of what was done in a batch, and of how long that should last."""
        self.batches, self.done, self.expected = self.batches + 1, units, expected

    def fit(self, overhead: float) -> tuple[float, float]:
        """Return d_0 and c; a batch of nothing is taken to last `overhead` at least, as long as that is not known."""
        overhead = max(overhead, _ANYWAY * self.recent_lasted)
        count, lasted = self.count + _PRIOR, self.lasted + _PRIOR * overhead
        spread = count * self.squares - self.units**2
        slope = max(0.0, (count * self.products - self.units * lasted) / spread) if spread > 0 else 0.0
        if not self.count:
            return overhead, 0.0
        return max(0.0, self.recent_lasted - slope * self.recent_units), slope

    def state(self) -> dict[str, Any]:
        """Return all that must survive."""
        return asdict(self)

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Self:
        """Go on from a state."""
        return cls(**state)


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

    def expected(self, units: float, rates: BatchRates) -> float:
        """Return how long a batch of so many units lasts."""
        fixed, slope = rates.fit(_OVERHEAD * self.half)
        return fixed + slope * units

    def doable(self, rates: BatchRates) -> float:
        """Return the greatest u that a batch has time for; infinite if nothing is known.

        Where a batch of nothing takes about as long as there is, some work is done all the same: that of the youngest
        events, which are on time even so.

        Args:
            rates: of earlier batches.

        Examples:
            >>> rates = BatchRates(count=1, units=100, squares=1e4, lasted=880_000, products=88e6,
            ...                    recent_units=100, recent_lasted=880_000)
            >>> round(BatchBound(2_000_000, 0.8).doable(rates))
            87
        """
        fixed, slope = rates.fit(_OVERHEAD * self.half)
        least = max(_LEAST * self.half, min(_WORTHWHILE * fixed, self.half))
        return max(self.duration(rates) - fixed, least) / slope if slope > 0 else float("inf")

    def longest_lag(self, units: float, rates: BatchRates) -> float:
        """Return the lag beyond which an event cannot be on time any more, in a batch of so many units.

        Examples:
            >>> rates = BatchRates(count=1, units=100, squares=1e4, lasted=880_000, products=88e6,
            ...                    recent_units=100, recent_lasted=880_000)
            >>> round(BatchBound(2_000_000, 0.8).longest_lag(50, rates) / 1000)
            1328
        """
        return max(self.bound - self.margin(rates) - self.expected(units, rates), _LEAST * self.half)

    def share_by_lag(self, lag: float) -> float:
        """Return what to shed where only the lag is known, as before a shuffle: 1 - (f · bound / lag)².

        It is nothing as long as batches are kept to half of that. Beyond, with the square a lag settles: of
        lag' = o + (R / C) · (1 - share) · lag, the slope where lag' = lag is -(1 - o / lag), between -1 and 0, whatever
        the rate R, the capacity C and the overhead o. With any steeper function it need not.
        """
        return max(0.0, 1.0 - (self.f * self.bound / lag) ** 2) if lag > 0 else 0.0
