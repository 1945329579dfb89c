"""What an event is within its partition: its number there, what came before it, and the windows it is in.

A table of keys is two arrays. `slots` holds, at the place that the hash of a key says or the next free one, the number
of the key, or EMPTY, and beside it the key, so that to look one up is one access to memory. `keys` holds the keys by
number, in the order in which they came. A table has twice as many slots as room for keys, a power of two. Where the
room ends, the functions stop, and the caller makes more.
"""

from __future__ import annotations

import numpy as np

from penstock.kernel.compiling import compiled, part
from penstock.plan.layout import EVENT_BEFORE, EVENT_HIGH, EVENT_LOW, EVENT_PART, EVENT_POS, EVENT_SEQ
from penstock.plan.tables import Bools, Floats, Ints

EMPTY = -1
# columns of `partitions`; then one per negation: the latest event that fits it, -1 if none
PART_SEEN, PART_CLOSED, PART_OPENED, PART_ENDS, PART_LATEST = range(5)
# columns of `openings`: the opening event's number, and its time or position
OPENING_SEQ, OPENING_CLOCK, OPENING_WIDTH = range(3)

_ODD, _OTHER_ODD = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_FAR, _NEAR = np.uint64(32), np.uint64(29)


@part
def slot_of(slots: Ints, wanted: Ints, at: int) -> int:
    """Return the slot of a key, the column `at` of `wanted`: the one that holds it, or a free one where it belongs."""
    mixed = np.uint64(0)
    for k in range(wanted.shape[0]):
        # Whole floats differ in their high bits only, texts in their low ones: both must reach all bits.
        mixed ^= np.uint64(wanted[k, at])
        mixed = (mixed ^ (mixed >> _FAR)) * _ODD
        mixed = (mixed ^ (mixed >> _NEAR)) * _OTHER_ODD
        mixed ^= mixed >> _FAR
    slot = int(np.int64(mixed & np.uint64(len(slots) - 1)))
    while slots[slot, 0] != EMPTY:
        is_same = True
        for k in range(wanted.shape[0]):
            is_same = is_same and slots[slot, 1 + k] == wanted[k, at]
        if is_same:
            break
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@part
def add_key(slots: Ints, keys: Ints, size: int, wanted: Ints, at: int, slot: int) -> int:
    """Give a key the next number, and a slot that is free; return how many keys there are now."""
    slots[slot, 0] = size
    for k in range(wanted.shape[0]):
        keys[size, k] = slots[slot, 1 + k] = wanted[k, at]
    return size + 1


@compiled
def number_keys(slots: Ints, keys: Ints, size: int, wanted: Ints, numbers: Ints, start: int) -> tuple[int, int]:
    """Write the number of each key from `start` on; return where the room ended, and how many keys there are now."""
    for at in range(start, wanted.shape[1]):
        slot = slot_of(slots, wanted, at)
        if slots[slot, 0] == EMPTY:
            if size == len(keys):
                return at, size
            size = add_key(slots, keys, size, wanted, at, slot)
        numbers[at] = slots[slot, 0]
    return wanted.shape[1], size


@compiled
def find_keys(slots: Ints, wanted: Ints, numbers: Ints) -> None:
    """Write the number of each key, EMPTY if it has none."""
    for at in range(wanted.shape[1]):
        numbers[at] = slots[slot_of(slots, wanted, at), 0]


@compiled
def previous_values(kinds: Ints, values: Floats, latest: Floats, previous: Floats) -> None:
    """Write the values of the event before of the same kind (partition and type); (P, n) both.

    `latest` (kinds, P) holds those of the latest event of each kind, and keeps them for the next batch.
    """
    for at in range(len(kinds)):
        for p in range(len(values)):
            previous[p, at] = latest[kinds[at], p]
            latest[kinds[at], p] = values[p, at]


@compiled
def place(partitions: Ints, fits: Bools, negated: Ints, first: int, events: Ints) -> None:
    """Write position, and per negation the latest earlier event that fits it, of events whose partition is known.

    `negated` are the variables of the negations, rows of `fits`; `first` is the number of the first event here.
    """
    for at in range(events.shape[1]):
        part = events[EVENT_PART, at]
        events[EVENT_POS, at] = partitions[part, PART_SEEN]
        partitions[part, PART_SEEN] += 1
        for n in range(len(negated)):
            events[EVENT_BEFORE + n, at] = partitions[part, PART_LATEST + n]
            if fits[negated[n], at]:
                partitions[part, PART_LATEST + n] = first + at


@compiled
def open_windows(
    slots: Ints,
    keys: Ints,
    openings: Ints,
    size: int,
    partitions: Ints,
    opens: Bools,
    clock: int,
    length: int,
    events: Ints,
    start: int,
) -> tuple[int, int]:
    """Write the windows of events where `opens` says which of them open one; the windows are keys (partition, number).

    `clock` is the row of events, times or positions, by which a window has a length. Returns as `number_keys` does.
    """
    wanted = np.empty((2, 1), np.int64)
    for at in range(start, events.shape[1]):
        part, now = events[EVENT_PART, at], events[clock, at]
        wanted[0, 0] = part
        if opens[at]:
            if size == len(keys):
                return at, size
            wanted[1, 0] = partitions[part, PART_OPENED]
            openings[size, OPENING_SEQ], openings[size, OPENING_CLOCK] = events[EVENT_SEQ, at], now
            size = add_key(slots, keys, size, wanted, 0, slot_of(slots, wanted, 0))
            if partitions[part, PART_CLOSED] == partitions[part, PART_OPENED]:
                partitions[part, PART_ENDS] = now + length
            partitions[part, PART_OPENED] += 1
        last = partitions[part, PART_OPENED] - opens[at]  # an event is always in the window that it opens
        while partitions[part, PART_CLOSED] < last and now >= partitions[part, PART_ENDS]:
            partitions[part, PART_CLOSED] += 1
            wanted[1, 0] = partitions[part, PART_CLOSED]
            window = slots[slot_of(slots, wanted, 0), 0]
            if window != EMPTY:  # a window that is over may have been forgotten before it was closed
                partitions[part, PART_ENDS] = openings[window, OPENING_CLOCK] + length
        events[EVENT_LOW, at] = partitions[part, PART_CLOSED]
        events[EVENT_HIGH, at] = partitions[part, PART_OPENED] - 1
    return events.shape[1], size
