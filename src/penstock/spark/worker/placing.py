"""Names for buckets by which Spark spreads them over the partitions of a shuffle.

Spark puts a row into the partition that the hash of its key says. The hashes of 0 and 1 are both odd: two buckets of
these names would share one of two partitions, and a core would have nothing to do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SEED = 42  # of Spark's hash partitioning
_TRIES = 16  # names to choose from, for each partition


def names(buckets: int, partitions: int) -> tuple[int, ...]:
    """Return a name for each bucket, so that neighbours are in neighbouring partitions.

    The first is 0 for any number of partitions: a checkpoint that was made with another number is found, and refused.
    """
    every = np.arange(_TRIES * max(buckets, partitions), dtype=np.int32)
    places = hashed(every) % partitions
    of_step = [every[places == (places[0] + step) % partitions].tolist() for step in range(min(buckets, partitions))]
    return tuple(of_step[bucket % partitions][bucket // partitions] for bucket in range(buckets))


def hashed(numbers: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return what Spark's `hash` gives for integers: Murmur3 with 32 bits."""
    with np.errstate(over="ignore"):
        mixed = numbers.view(np.uint32) * np.uint32(0xCC9E2D51)
        mixed = _rotated(mixed, 15) * np.uint32(0x1B873593)
        mixed = _rotated(np.uint32(_SEED) ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        mixed = mixed ^ np.uint32(4)  # bytes
        mixed = (mixed ^ (mixed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        mixed = (mixed ^ (mixed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        found: NDArray[np.int32] = (mixed ^ (mixed >> np.uint32(16))).view(np.int32)
    return found


def _rotated(x: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    return (x << np.uint32(bits)) | (x >> np.uint32(32 - bits))
