"""Which f: the largest that leaves each partition enough events of little utility to drop (thesis 4.2.4.3)."""

from __future__ import annotations

import numpy as np

from penstock.plan.tables import Bools, Floats, Ints
from penstock.shedding.overload.queueing import drop_amount, partitions

CANDIDATES = tuple(round(0.95 - 0.05 * k, 2) for k in range(10))  # 0.95 down to 0.5
_ROUNDS = 50


def classes(values: Floats, counts: Floats, number: int = 3) -> Ints:
    """Return the class of importance of each value, 0 the least: k-means in one dimension.

    Examples:
        >>> classes(np.array([0.0, 1.0, 50.0, 52.0, 99.0]), np.ones(5)).tolist()
        [0, 0, 1, 1, 2]
    """
    distinct = np.unique(values[counts > 0])
    if len(distinct) <= number:
        return np.searchsorted(distinct, values)
    centres = np.linspace(distinct[0], distinct[-1], number)
    for _ in range(_ROUNDS):
        nearest = np.abs(values[..., None] - centres).argmin(axis=-1)
        sums = np.array([(values * counts)[nearest == k].sum() for k in range(number)])
        sizes = np.array([counts[nearest == k].sum() for k in range(number)])
        moved = np.where(sizes > 0, sums / np.maximum(sizes, 1e-300), centres)
        if np.allclose(moved, centres):
            break
        centres = moved
    result: Ints = np.abs(values[..., None] - centres).argmin(axis=-1)
    return result


def choose_f(
    utilities: Floats, shares: Floats, q_max: float, ratio: float, candidates: tuple[float, ...] = CANDIDATES
) -> float:
    """Return the largest f with at least ρ events of the lowest class in each partition; the least, if there is none.

    A large f drops nothing in short bursts; a small one makes larger partitions, in which there is more to choose from.

    Args:
        utilities: (T, B) UT.
        shares: (T, B) how many events of a type a cell has in a window.
        q_max: the longest queue.
        ratio: δ, the share of events to drop.
    """
    is_low: Bools = classes(utilities, shares) == 0
    low, window = (shares * is_low).sum(axis=0), float(shares.sum())
    for f in sorted(candidates, reverse=True):
        count = partitions(window, q_max, f)
        parts = np.arange(len(low)) * count // len(low)
        if (np.bincount(parts, weights=low, minlength=count) >= drop_amount(ratio, window / count)).all():
            return f
    return min(candidates)
