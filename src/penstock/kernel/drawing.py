"""Chance that can be replayed, in compiled code: bits that depend on a number alone."""

from __future__ import annotations

import numpy as np

from penstock.kernel.compiling import inlined

STEP, FIRST, SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@inlined
def unit(x: np.uint64) -> float:
    """Return a number in [0, 1) that looks like chance, of 64 bits: the finaliser of SplitMix64.

    `penstock.shedding.chance` has the same for arrays.
    """
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return float((x ^ (x >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53
