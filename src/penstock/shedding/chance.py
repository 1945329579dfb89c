"""Chance that can be replayed: a number in [0, 1) that depends on a seed and on what is decided about, nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.plan.tables import Floats, Ints

_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mixed(numbers: NDArray[Any], seed: int) -> NDArray[np.uint64]:
    """Return 64 random bits for each number, always the same for a seed (the finaliser of SplitMix64)."""
    x = np.asarray(numbers).astype(np.uint64) + np.uint64((seed + 1) * _STEP & 0xFFFFFFFFFFFFFFFF)
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    bits: NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return bits


def uniform(seed: int, *numbers: Ints) -> Floats:
    """Return a number in [0, 1) for each row of numbers.

    Examples:
        >>> bool(uniform(1, np.arange(5))[3] == uniform(1, np.array([3]))[0])
        True
        >>> round(float(uniform(7, np.arange(100_000)).mean()), 2)
        0.5
    """
    bits: NDArray[np.uint64] = np.zeros(1, np.uint64)
    for each in numbers:
        bits = mixed(bits ^ np.asarray(each).astype(np.uint64), seed)
    unit: Floats = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return unit
