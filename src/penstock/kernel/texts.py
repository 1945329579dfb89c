"""A dictionary of texts over arrays: their UTF-8 bytes end to end, and slots as in `penstock.kernel.intake`.

The dictionary is `slots` (·, 2), the number of a text, or EMPTY, beside its hash; `pool`, the bytes; and `ends`, where
text n starts at `ends[n]` and stops at `ends[n + 1]`. What is looked up has the same form: `data` and `offsets`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernel.compiling import compiled, part
from penstock.kernel.intake import EMPTY
from penstock.plan.tables import Ints

Bytes = NDArray[np.uint8]

_PRIME, _ODD = np.uint64(0x100000001B3), np.uint64(0xBF58476D1CE4E5B9)
_FAR = np.uint64(32)


@part
def hash_of(data: Bytes, start: int, stop: int) -> int:
    """Return a hash of some bytes (FNV-1a, mixed once more because its low bits alone are weak)."""
    mixed = np.uint64(0xCBF29CE484222325)
    for at in range(start, stop):
        mixed = (mixed ^ np.uint64(data[at])) * _PRIME
    mixed = (mixed ^ (mixed >> _FAR)) * _ODD
    return int(np.int64(mixed ^ (mixed >> _FAR)))


@part
def is_at(pool: Bytes, first: int, data: Bytes, start: int, size: int) -> bool:
    """Return whether the pool holds the same bytes."""
    for k in range(size):  # noqa: SIM110 - numba compiles no generators
        if pool[first + k] != data[start + k]:
            return False
    return True


@part
def text_slot(slots: Ints, pool: Bytes, ends: Ints, data: Bytes, start: int, stop: int, hashed: int) -> int:
    """Return the slot of a text: the one that holds it, or a free one where it belongs."""
    slot = hashed & (len(slots) - 1)
    while slots[slot, 0] != EMPTY:
        known = slots[slot, 0]
        is_likely = slots[slot, 1] == hashed and ends[known + 1] - ends[known] == stop - start
        if is_likely and is_at(pool, ends[known], data, start, stop - start):
            break
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@compiled
def find_texts(slots: Ints, pool: Bytes, ends: Ints, data: Bytes, offsets: Ints, numbers: Ints) -> None:
    """Write the number of each text, EMPTY if it has none."""
    for at in range(len(numbers)):
        start, stop = offsets[at], offsets[at + 1]
        numbers[at] = slots[text_slot(slots, pool, ends, data, start, stop, hash_of(data, start, stop)), 0]


@compiled
def number_texts(
    slots: Ints, pool: Bytes, ends: Ints, size: int, data: Bytes, offsets: Ints, numbers: Ints, begin: int
) -> tuple[int, int]:
    """Write the number of each text from `begin` on; return where the room ended, and how many texts there are now."""
    for at in range(begin, len(numbers)):
        start, stop = offsets[at], offsets[at + 1]
        hashed = hash_of(data, start, stop)
        slot = text_slot(slots, pool, ends, data, start, stop, hashed)
        if slots[slot, 0] == EMPTY:
            if size + 1 == len(ends) or ends[size] + stop - start > len(pool):
                return at, size
            for k in range(stop - start):  # to copy a slice takes a second longer to compile
                pool[ends[size] + k] = data[start + k]
            ends[size + 1] = ends[size] + stop - start
            slots[slot, 0], slots[slot, 1] = size, hashed
            size += 1
        numbers[at] = slots[slot, 0]
    return len(numbers), size


@compiled
def fill_slots(slots: Ints, pool: Bytes, ends: Ints, size: int) -> None:
    """Put texts that differ into empty slots."""
    for number in range(size):
        hashed = hash_of(pool, ends[number], ends[number + 1])
        slot = hashed & (len(slots) - 1)
        while slots[slot, 0] != EMPTY:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot, 0], slots[slot, 1] = number, hashed
