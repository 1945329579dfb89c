"""Overload of a host that takes events in batches, one after the other, such as Spark: how much of a batch it can do.

An event waits until the batch that has it begins, its *lag*, and then until it is processed. When one batch follows the
other, what arrives during a batch is in the next one, so the greatest lag is the duration of the batch before. To be on
time, a batch must therefore last no longer than half of what an event may take:

    lag + duration ≤ f · bound,  and  duration ≤ f · bound / 2

The first alone would do, and would swing: a long batch, then one that has no time left, then a long one again. Shedding
by the lag alone, as a fixed function of it, swings too, unless it begins to shed long before there is any need: at
twice the capacity the lag after a batch changes by several times what the lag before it does.

Durations are the differences of the times at which batches began, as the host's log has them. No clock is read: a batch
that is run again leaves the same state behind, bit for bit, whichever of its attempts the host has kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

_DECAY = 0.75  # what earlier batches count
_OVERHEAD = 0.1  # of half the bound: what a batch of nothing takes, as far as nothing else is known
_PRIOR = 0.05  # what that counts, as a share of a batch: it decides only if all batches were alike
_LEAST = 0.1  # of half the bound: so much of a batch is always done, or nothing would be learned
_WORTHWHILE = 0.5  # of what a batch takes anyway: to do less than that gains little
_LATE = 0.9  # bounds: of a lag like this the batch before is the reason
_LONGEST = 9.0  # bounds: what lasted longer counts as that
_PAUSE = 30.0  # bounds: the host was away
_NEVER = -(2**62)


@dataclass
class BatchRates:
    """How long batches last, by what is done in them: d = d_0 + c · u. Times are in microseconds.

    u is the number of events that were not shed, or whatever else the work depends on. The fit is by least squares over
    decayed sums, with a batch of no event as a weak prior: so it says something, too, when all batches are alike.

    Attributes:
        at: the time of the last batch; `_NEVER` before the first.
        batches: how many there were.
        done: u of the last one.
        count: of batches, with decay; likewise the sums of u, u², d and u · d.
    """

    at: int = _NEVER
    batches: int = 0
    done: float = 0.0
    count: float = 0.0
    units: float = 0.0
    squares: float = 0.0
    lasted: float = 0.0
    products: float = 0.0

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
            self._learn(self.done, min(float(gap), lag if lag < _LATE * bound else gap, _LONGEST * bound))
        self.at = max(self.at, at)

    def _learn(self, units: float, lasted: float) -> None:
        for name, value in (
            ("count", 1.0), ("units", units), ("squares", units * units), ("lasted", lasted),
            ("products", units * lasted),
        ):  # fmt: skip
            setattr(self, name, _DECAY * getattr(self, name) + value)

    def end(self, units: float) -> None:
        """Take note of what was done in a batch."""
        self.batches, self.done = self.batches + 1, units

    def fit(self, overhead: float) -> tuple[float, float]:
        """Return d_0 and c, where a batch of nothing is taken to last `overhead`."""
        count, lasted = self.count + _PRIOR, self.lasted + _PRIOR * overhead
        spread = count * self.squares - self.units**2
        slope = max(0.0, (count * self.products - self.units * lasted) / spread) if spread > 0 else 0.0
        return max(0.0, (lasted - slope * self.units) / count), slope

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

    def doable(self, lag: float, rates: BatchRates) -> float:
        """Return the greatest u that a batch has time for; infinite if nothing is known.

        Where a batch of nothing takes longer than there is, the bound cannot be kept, and to shed everything would be
        in vain: work of half as long is done all the same.

        Args:
            lag: of its oldest event.
            rates: of earlier batches.

        Examples:
            >>> rates = BatchRates(count=1, units=100, squares=1e4, lasted=880_000, products=88e6)
            >>> round(BatchBound(2_000_000, 0.8).doable(300_000, rates))
            90
            >>> round(BatchBound(2_000_000, 0.8).doable(1_120_000, rates))
            50
        """
        fixed, slope = rates.fit(_OVERHEAD * self.half)
        left = min(self.half, self.f * self.bound - lag) - fixed
        least = max(_LEAST * self.half, min(_WORTHWHILE * fixed, self.half))
        return max(left, least) / slope if slope > 0 else float("inf")

    @property
    def longest_lag(self) -> float:
        """The lag beyond which an event cannot be on time any more."""
        return self.bound - _LEAST * self.half

    def share_by_lag(self, lag: float) -> float:
        """Return what to shed where only the lag is known, as before a shuffle: 1 - (f · bound / lag)².

        It is nothing as long as batches are kept to half of that. Beyond, with the square a lag settles: of
        lag' = o + (R / C) · (1 - share) · lag, the slope where lag' = lag is -(1 - o / lag), between -1 and 0, whatever
        the rate R, the capacity C and the overhead o. With any steeper function it need not.
        """
        return max(0.0, 1.0 - (self.f * self.bound / lag) ** 2) if lag > 0 else 0.0
