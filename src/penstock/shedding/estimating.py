"""How much is lost while load is shed, without the truth: from the windows that are never shed.

None of the papers has it. A share of windows is marked by a hash of their number and processed whole. Two estimates:

- *What would have been lost* (strategies that drop events): of the matches in marked windows, those that hold an event
  that the strategy would have dropped there. They would have been lost, strictly. Each marked window says what happened
  to its own matches, so the number of matches per window, which varies much, does not matter.
- *What is missing* (any strategy): matches per shed window against matches per marked window.

Windows that overlap are not independent: their matches are of the same events. The interval is that of means over
groups of neighbouring windows, as many as overlap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.plan.tables import Bools, Floats, Ints

Z95 = 1.959964


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


UNKNOWN = Estimate(0.0, 0.0, 1.0, 0.0)


def would_be_lost(lost: Floats, matches: Floats, overlap: int) -> Estimate:
    """Return the share of matches that would have been lost.

    Args:
        lost: (W,) in each marked window, in order: matches that would have been lost.
        matches: (W,) all its matches.
        overlap: how many marked windows overlap, about.

    Examples:
        >>> print(would_be_lost(np.array([1.0, 0, 1, 1] * 50), np.full(200, 3.0), 1))
        25.0 % lost (23.0 to 27.0 %)
    """
    groups = max(1, len(lost) // max(1, overlap))
    if not matches.sum() or groups < 2:
        return UNKNOWN
    of = np.arange(len(lost)) * groups // len(lost)
    sums = [np.bincount(of, weights=each, minlength=groups).astype(np.float64) for each in (lost, matches)]
    return _ratio(*sums)


def missing(shed: Floats, marked: Floats, overlap: int) -> Estimate:
    """Return the share of matches that shed windows lack, against marked ones.

    Args:
        shed: (V,) matches of each shed window, in order.
        marked: (W,) of each marked window.
        overlap: how many windows overlap, about.
    """
    if len(shed) < 2 or len(marked) < 2 or not marked.sum():
        return UNKNOWN
    means, errors = zip(*(_mean(each, overlap) for each in (shed, marked)), strict=True)
    lost = 1 - means[0] / means[1]
    error = (means[0] / means[1]) * np.sqrt((errors[0] / max(means[0], 1e-12)) ** 2 + (errors[1] / means[1]) ** 2)
    return Estimate(
        float(lost), float(max(-1.0, lost - Z95 * error)), float(min(1.0, lost + Z95 * error)), marked.sum()
    )


def _ratio(part: Floats, whole: Floats) -> Estimate:
    """Return a ratio of sums with the interval of a ratio estimator over groups."""
    ratio = float(part.sum() / whole.sum())
    residuals = part - ratio * whole
    error = float(np.sqrt(len(part) / (len(part) - 1) * (residuals**2).sum()) / whole.sum())
    return Estimate(ratio, max(0.0, ratio - Z95 * error), min(1.0, ratio + Z95 * error), float(whole.sum()))


def _mean(values: Floats, overlap: int) -> tuple[float, float]:
    groups = max(2, len(values) // max(1, overlap))
    of = np.arange(len(values)) * groups // len(values)
    sums, sizes = np.bincount(of, weights=values, minlength=groups), np.bincount(of, minlength=groups)
    means = sums / np.maximum(sizes, 1)
    return float(values.mean()), float(means.std(ddof=1) / np.sqrt(groups))


def by_window(windows: Ints, chosen: Bools) -> Floats:
    """Return how many matches each chosen window has, in order.

    Args:
        windows: (R,) of matches.
        chosen: (W,) which windows.
    """
    counts: Floats = np.bincount(windows, minlength=len(chosen)).astype(np.float64)[: len(chosen)][chosen]
    return counts
