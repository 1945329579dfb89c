"""How much is lost while load is shed, without the truth: from the windows that are never shed.

None of the papers has it. A share of windows is marked by a hash of their number and processed whole. Two estimates:

- *What would have been lost* (strategies that drop events): of the matches in marked windows, those that hold an event
  that the strategy would have dropped there. They would have been lost, strictly. Each marked window says what happened
  to its own matches, so the number of matches per window, which varies much, does not matter.
- *What is missing* (any strategy): matches per shed window against matches per marked window.

Windows that overlap are not independent: their matches are of the same events. The interval is that of means over
groups of neighbouring windows, as many as overlap.

Events that are let go overdue are missing in marked windows, too. What a match is worth that was found all the same is
told by the gaps themselves: were they elsewhere in the stream, as likely as where they are, only some of them would
have left it whole. A match that a share π of the gaps leave whole stands for 1 / π matches (the estimator of Horvitz
and Thompson), of which all but itself are lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.plan.tables import Bools, Floats, Ints
from penstock.shedding.chance import uniform

Z95 = 1.959964
_MOVES = 200  # of the gaps, to see what they leave whole elsewhere


@dataclass(frozen=True)
class Estimate:
    """A share of matches lost, and where it lies with a probability of 95 %.

    Attributes:
        lost: the estimate.
        low: the least that it may be.
        high: the most.
        matches: that it is based on.
    """

    lost: float
    low: float
    high: float
    matches: float

    def __str__(self) -> str:
        return f"{100 * self.lost:.1f} % lost ({100 * self.low:.1f} to {100 * self.high:.1f} %)"

    @classmethod
    def of(cls, lost: float, error: float, matches: float, least: float = 0.0) -> Estimate:
        """Return an estimate with a standard error; `least` is the least that a loss may be."""
        return cls(max(least, lost), max(least, lost - Z95 * error), min(1.0, lost + Z95 * error), matches)


UNKNOWN = Estimate(0.0, 0.0, 1.0, 0.0)


def would_be_lost(
    lost: Floats, matches: Floats, overlap: int, marked: float = 0.0, spread: float = 0.0
) -> Estimate:  # fmt: skip
    """Return the share of matches that would have been lost.

    Args:
        lost: (W,) in each marked window, in order: matches that would have been lost.
        matches: (W,) all its matches.
        overlap: how many marked windows overlap, about.
        marked: the share of windows that are marked. It is the others that something is lost of: they are a sample,
            too, and the larger a one, the smaller this share is.
        spread: of what stays, by where events were let go (`Gaps.spread`).

    Examples:
        >>> print(would_be_lost(np.array([1.0, 0, 1, 1] * 50), np.full(200, 3.0), 1))
        25.0 % lost (23.0 to 27.0 %)
    """
    groups = max(1, len(lost) // max(1, overlap))
    if not matches.sum() or groups < 2:
        return UNKNOWN
    of = np.arange(len(lost)) * groups // len(lost)
    part, whole = (np.bincount(of, weights=each, minlength=groups).astype(np.float64) for each in (lost, matches))
    ratio, error = _ratio(part, whole)
    error = float(np.hypot(error, (1 - ratio) * spread) / np.sqrt(1 - min(marked, 0.99)))
    return Estimate.of(ratio, error, float(whole.sum()))


def missing(shed: Floats, marked: Floats, overlap: int, spread: float = 0.0) -> Estimate:
    """Return the share of matches that shed windows lack, against marked ones.

    Args:
        shed: (V,) matches of each shed window, in order.
        marked: (W,) of each marked window.
        overlap: how many windows overlap, about.
        spread: of what stays, by where events were let go (`Gaps.spread`).
    """
    if len(shed) < 2 or len(marked) < 2 or not marked.sum():
        return UNKNOWN
    means, errors = zip(*(_mean(each, overlap) for each in (shed, marked)), strict=True)
    relative = [error / max(mean, 1e-12) for mean, error in zip(means, errors, strict=True)]
    kept = means[0] / means[1]
    error = kept * float(np.sqrt(relative[0] ** 2 + relative[1] ** 2 + spread**2))
    return Estimate.of(1 - kept, error, float(marked.sum()), least=-1.0)


@dataclass(frozen=True)
class Gaps:
    """What would be left of the matches that were found, if events had been let go elsewhere in the stream.

    R matches, tried with M moves of all gaps together.

    Attributes:
        is_whole: (M, R) whether a match would still be found; the first move is none, and all are.
    """

    is_whole: Bools

    @classmethod
    def of(cls, gone: Bools, rows: Ints, offsets: Ints) -> Gaps:
        """Move the gaps around.

        Args:
            gone: (n,) the events of a stretch of the stream that were let go.
            rows: (E,) the events of matches, counted from its beginning.
            offsets: (R + 1,) where those of each match begin.

        Examples:
            >>> rows, offsets = np.array([50, 70, 90, 92]), np.array([0, 2, 4])  # 20 of 100 hit the first in 40 places
            >>> Gaps.of(np.arange(100) < 20, rows, offsets).worth.round(1).tolist()
            [1.7, 1.3]
        """
        if not gone.any() or len(offsets) < 2:
            return cls(np.ones((1, len(offsets) - 1), np.bool_))
        # One in each part of the stretch, by chance, so that gaps of any rhythm are seen fairly.
        each = np.arange(_MOVES)
        moves = ((each + uniform(1, each)) / _MOVES * len(gone)).astype(np.int64)
        moves[0] = 0
        is_hit = [np.logical_or.reduceat(gone[(rows + move) % len(gone)], offsets[:-1]) for move in moves]
        return cls(~np.array(is_hit))

    @property
    def worth(self) -> Floats:
        """(R,) 1 / π: for how many matches each stands that was found."""
        worth: Floats = 1 / self.is_whole.mean(axis=0)
        return worth

    def spread(self, stays: Bools) -> float:
        """Return the standard deviation of how much stays, as the gaps move, as a share of the mean.

        Args:
            stays: (R,) the matches that would not have been lost anyway.
        """
        left = self.is_whole[1:] @ (self.worth * stays)
        return float(left.std(ddof=1) / left.mean()) if len(left) > 1 and left.any() else 0.0


def _ratio(part: Floats, whole: Floats) -> tuple[float, float]:
    """Return a ratio of sums and its standard error, by a ratio estimator over groups."""
    ratio = float(part.sum() / whole.sum())
    residuals = part - ratio * whole
    return ratio, float(np.sqrt(len(part) / (len(part) - 1) * (residuals**2).sum()) / whole.sum())


def _mean(values: Floats, overlap: int) -> tuple[float, float]:
    groups = max(2, len(values) // max(1, overlap))
    of = np.arange(len(values)) * groups // len(values)
    sums, sizes = np.bincount(of, weights=values, minlength=groups), np.bincount(of, minlength=groups)
    means = sums / np.maximum(sizes, 1)
    return float(values.mean()), float(means.std(ddof=1) / np.sqrt(groups))
