"""Overload of a host that takes events in batches, one after the other, such as Spark: how much of a batch it can do.

An event waits until the batch that has it begins, its *lag*, and then until it is processed. When one batch follows the
other, what arrives during a batch is in the next one, so the greatest lag is the duration of the batch before. To be on
time, a batch must therefore last no longer than half of what an event may take:

    lag + duration ≤ f · bound,  and  duration ≤ f · bound / 2

The first alone would do, and would swing: a long batch, then one that has no time left, then a long one again. Shedding
by the lag alone, as a fixed function of it, swings too, unless it begins to shed long before there is any need: at
twice the capacity the lag after a batch changes by several times what the lag before it does.

Everything that a decision depends on is in `BatchRates`, which a host commits with its state after each batch, and in
the time at which the batch began, as the host's log has it: so a batch that is run again is shed in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

_SMOOTH = 0.3  # how much the newest batch counts in means
_DECAY = 0.8  # what earlier batches count, in sums
_FIXED_US = 10_000.0  # what a batch of nothing takes, as far as nothing else is known
_MOST_WAITING = 0.35  # of half the bound, before a batch is processed; as much again after it
_LEAST_WORK = 0.1  # of half the bound: so much is always processed, or nothing would be learned
_NEVER = -(2**62)


@dataclass
class BatchRates:
    """How long things took in earlier batches. Times are in microseconds.

    A batch's work is fitted as w = w_0 + c · u, where u is the number of events that were not shed, or whatever else the
    work depends on: decayed sums over batches, and one batch of no event as a prior.

    Attributes:
        at: the time of the last batch; `_NEVER` before the first.
        lasted: from its time to the end of its work.
        before: from the time of a batch to the beginning of its work, on average.
        after: from the end of the work to the next batch.
        count: of batches, with decay; likewise the sums of u, u², w and u · w.
    """

    at: int = _NEVER
    lasted: float = 0.0
    before: float = 0.0
    after: float = 0.0
    count: float = 0.0
    units: float = 0.0
    squares: float = 0.0
    work: float = 0.0
    products: float = 0.0

    def begin(self, at: int) -> None:
        """Take note of when a batch began."""
        if self.at != _NEVER and at > self.at:
            self.after = _moved(self.after, max(0.0, at - self.at - self.lasted))
        self.at = at

    def end(self, before: float, units: float, work: float) -> None:
        """Take note of how long a batch took.

        Args:
            before: from its time to the beginning of its work.
            units: u.
            work: w.
        """
        self.before = _moved(self.before, max(0.0, before))
        self.lasted = before + work
        for name, value in (("count", 1.0), ("units", units), ("squares", units * units), ("work", work),
                            ("products", units * work)):  # fmt: skip
            setattr(self, name, _DECAY * getattr(self, name) + value)

    @property
    def fit(self) -> tuple[float, float]:
        """w_0 and c."""
        count, work = self.count + 1.0, self.work + _FIXED_US
        spread = count * self.squares - self.units**2
        slope = (count * self.products - self.units * work) / spread if spread > 0 else 0.0
        slope = max(0.0, slope)
        return max(0.0, (work - slope * self.units) / count), slope

    def doable(self, budget: float) -> float:
        """Return the greatest u whose work fits into a time; infinite if nothing is known."""
        fixed, slope = self.fit
        return max(0.0, budget - fixed) / slope if slope > 0 else float("inf")

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

    Examples:
        >>> bound = BatchBound(2_000_000, 0.8)
        >>> round(bound.budget(300_000, BatchRates(before=100_000, after=50_000)))
        650000
        >>> round(bound.budget(1_200_000, BatchRates(before=100_000, after=50_000)))
        300000
    """

    bound: float
    f: float

    @property
    def half(self) -> float:
        """How long a batch may last, if one follows the other."""
        return self.f * self.bound / 2

    def before(self, rates: BatchRates) -> float:
        """Return how long after its time the work of a batch begins; the first batch of a process says little."""
        return min(rates.before, _MOST_WAITING * self.half)

    def budget(self, lag: float, rates: BatchRates) -> float:
        """Return how long the work of a batch may take.

        What passes between two batches is work of the host, or nothing at all if batches begin at fixed times: it is
        taken to be work as far as it is no longer than what passes before the work begins.

        Args:
            lag: of its oldest event.
            rates: of earlier batches.
        """
        before = self.before(rates)
        left = min(self.f * self.bound - lag - before, self.half - before - min(rates.after, before))
        return max(left, _LEAST_WORK * self.half)

    def longest_lag(self, rates: BatchRates) -> float:
        """Return the lag beyond which an event cannot be on time any more."""
        return self.bound - self.before(rates) - _LEAST_WORK * self.half

    def share_by_lag(self, lag: float) -> float:
        """Return what to shed where only the lag is known, as before a shuffle: 1 - (f · bound / 2 / lag)².

        It is nothing as long as batches are kept to half the bound. Beyond, with the square a lag settles: of
        lag' = o + (R / C) · (1 - share) · lag, the slope where lag' = lag is -(1 - o / lag), between -1 and 0, whatever
        the rate R, the capacity C and the overhead o. With any steeper function it need not.
        """
        return max(0.0, 1.0 - (self.half / lag) ** 2) if lag > 0 else 0.0


def _moved(mean: float, value: float) -> float:
    return value if not mean else (1 - _SMOOTH) * mean + _SMOOTH * value
