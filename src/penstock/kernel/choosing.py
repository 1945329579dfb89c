"""Choosing among whole matches: the order in which they count, SELECT LAST, CONSUME and LIMIT at emission.

Matches are columns, as in `penstock.engine.found.Found`: match k has the elements offsets[k] .. offsets[k + 1] - 1,
oldest first. What must be remembered from call to call is in tables of keys (a, b) with open addressing, whose length
is a power of two; a place whose value is 0 is free.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernel.compiling import compiled
from penstock.plan.tables import Bools, Floats, Ints

SmallInts = NDArray[np.int32]

USED, CONSUMED = 1, 2  # what a table of events says: some match holds the event; a match has consumed it


# --- comparing matches --------------------------------------------------------------------------------------


@compiled
def compare_events(offsets: Ints, events: Ints, i: int, j: int) -> int:
    """Compare the events of two matches from the first on: negative if i is earlier; if one runs out, it is."""
    a, b = offsets[i], offsets[j]
    n, m = offsets[i + 1] - a, offsets[j + 1] - b
    for k in range(min(n, m)):
        if events[a + k] != events[b + k]:
            return -1 if events[a + k] < events[b + k] else 1
    return n - m


@compiled
def compare_variables(offsets: Ints, variables: SmallInts, ranks: Ints, i: int, j: int) -> int:
    """Compare two matches of the same events by who binds what: names in order, each with its events in order."""
    a, b = offsets[i], offsets[j]
    n = offsets[i + 1] - a
    for rank in range(len(ranks)):
        for k in range(n):
            is_here, is_there = ranks[variables[a + k]] == rank, ranks[variables[b + k]] == rank
            if is_here != is_there:
                return -1 if is_here else 1
    return 0


@compiled
def is_later(offsets: Ints, events: Ints, variables: SmallInts, count: int, i: int, j: int) -> bool:
    """Return whether match i is later than j: events from the last backwards, then variables likewise (LAST)."""
    a, b = offsets[i], offsets[j]
    n, m = offsets[i + 1] - a, offsets[j + 1] - b
    for k in range(1, min(n, m) + 1):
        if events[a + n - k] != events[b + m - k]:
            return bool(events[a + n - k] > events[b + m - k])
    if n != m:
        return bool(n > m)
    for v in range(count - 1, -1, -1):
        for k in range(n - 1, -1, -1):
            if (variables[a + k] == v) != (variables[b + k] == v):
                return bool(variables[a + k] == v)
    return False


@compiled
def goes_before(
    known: Floats, offsets: Ints, events: Ints, variables: SmallInts, ranks: Ints, i: int, j: int
) -> bool:  # fmt: skip
    """Return whether match i comes strictly before j: known earlier, then its events, then its variables."""
    for k in range(known.shape[0]):
        if known[k, i] != known[k, j]:
            return bool(known[k, i] < known[k, j])
    difference = compare_events(offsets, events, i, j)
    if difference != 0:
        return bool(difference < 0)
    return bool(compare_variables(offsets, variables, ranks, i, j) < 0)


@compiled
def in_order(known: Floats, offsets: Ints, events: Ints, variables: SmallInts, ranks: Ints) -> Ints:
    """Return the matches in the order in which they count.

    Args:
        known: (2, K) when each became known; (0, K) leaves that aside, so that the same assignments come together.
        offsets: (K + 1,)
        events: (E,)
        variables: (E,)
        ranks: (V,) the alphabetical rank of each variable.
    """
    size = len(offsets) - 1
    order, other = np.arange(size), np.zeros(size, np.int64)
    width = 1
    while width < size:  # a merge sort: it is stable, and comparing is what costs
        for start in range(0, size, 2 * width):
            middle, stop = min(start + width, size), min(start + 2 * width, size)
            a, b = start, middle
            for k in range(start, stop):
                if a < middle and (
                    b >= stop or not goes_before(known, offsets, events, variables, ranks, order[b], order[a])
                ):
                    other[k] = order[a]
                    a += 1
                else:
                    other[k] = order[b]
                    b += 1
        order, other = other, order
        width *= 2
    return order


@compiled
def is_same(offsets: Ints, events: Ints, variables: SmallInts, i: int, j: int) -> bool:
    """Return whether two matches bind the same events to the same variables."""
    if compare_events(offsets, events, i, j) != 0:
        return False
    for k in range(offsets[i + 1] - offsets[i]):  # noqa: SIM110 - numba compiles no generators
        if variables[offsets[i] + k] != variables[offsets[j] + k]:
            return False
    return True


@compiled
def numbered(order: Ints, offsets: Ints, events: Ints, variables: SmallInts) -> Ints:
    """Return the number of the assignment at each place of an order in which the same assignments come together."""
    numbers = np.zeros(len(order), np.int64)
    for k in range(1, len(order)):
        numbers[k] = numbers[k - 1] + (not is_same(offsets, events, variables, order[k - 1], order[k]))
    return numbers


# --- one match of several, window by window -----------------------------------------------------------------


@compiled
def write_ranges(owner: Ints, first: int, count: int, out: Ints) -> int:
    """Write (match, low, high) for each stretch of windows that one match owns; return how many there are then."""
    start = 0
    for w in range(1, len(owner) + 1):
        if w == len(owner) or owner[w] != owner[start]:
            if owner[start] >= 0:
                out[0, count], out[1, count], out[2, count] = owner[start], first + start, first + w - 1
                count += 1
            start = w
    return count


@compiled
def one_of_each(order: Ints, groups: Ints, low: Ints, high: Ints, first_only: bool) -> Ints:
    """Of the matches of a group, give each window to the first in order that is in it.

    Args:
        order: (K,) the matches, group by group.
        groups: (K,) the number of the group of each place in `order`, never falling.
        low: (K,)
        high: (K,)
        first_only: give away the earliest window of each group only.

    Returns:
        (3, ·) match, first and last window.
    """
    out = np.zeros((3, int((high - low + 1).sum())), np.int64)
    count, start = 0, 0
    for stop in range(1, len(order) + 1):
        if stop < len(order) and groups[stop] == groups[start]:
            continue
        first, last = low[order[start]], high[order[start]]
        for k in range(start + 1, stop):
            first, last = min(first, low[order[k]]), max(last, high[order[k]])
        owner = np.full(last - first + 1, -1)
        for k in range(stop - 1, start - 1, -1):
            owner[low[order[k]] - first : high[order[k]] - first + 1] = order[k]
        count = write_ranges(owner[:1] if first_only else owner, first, count, out)
        start = stop
    return out[:, :count]


@compiled
def latest(
    order: Ints, offsets: Ints, events: Ints, variables: SmallInts, count: int, low: Ints, high: Ints
) -> Ints:  # fmt: skip
    """SELECT LAST: of the matches with the same last event, give each window to the latest that is in it.

    `order` has the matches by their last event, `count` is the number of variables. Returns as `one_of_each`.
    """
    out = np.zeros((3, int((high - low + 1).sum())), np.int64)
    written, start = 0, 0
    for stop in range(1, len(order) + 1):
        last_event = events[offsets[order[start] + 1] - 1]
        if stop < len(order) and events[offsets[order[stop] + 1] - 1] == last_event:
            continue
        first, last = low[order[start]], high[order[start]]
        for k in range(start + 1, stop):
            first, last = min(first, low[order[k]]), max(last, high[order[k]])
        owner = np.full(last - first + 1, -1)
        for k in range(start, stop):
            match = order[k]
            for w in range(low[match] - first, high[match] - first + 1):
                if owner[w] < 0 or is_later(offsets, events, variables, count, match, owner[w]):
                    owner[w] = match
        written = write_ranges(owner, first, written, out)
        start = stop
    return out[:, :written]


# --- tables -------------------------------------------------------------------------------------------------


@compiled
def place_of(keys: Ints, values: Ints, a: int, b: int) -> int:
    """Return the place of a key in a table, or the free place where it belongs. There must be a free place."""
    place = (a + (b & 0xFFFFF) * 40_503) & (len(values) - 1)
    while values[place] != 0 and (keys[0, place] != a or keys[1, place] != b):
        place = (place + 1) & (len(values) - 1)
    return place


@compiled
def insert(keys: Ints, values: Ints, extra: Ints, new_keys: Ints, new_values: Ints, new_extra: Ints) -> None:
    """Put entries into a table; `extra` (2, ·) goes with them. There must be room."""
    for k in range(len(new_values)):
        place = place_of(keys, values, new_keys[0, k], new_keys[1, k])
        keys[0, place], keys[1, place], values[place] = new_keys[0, k], new_keys[1, k], new_values[k]
        extra[0, place], extra[1, place] = new_extra[0, k], new_extra[1, k]


@compiled
def consume(
    pairs: Ints, offsets: Ints, events: Ints, variables: SmallInts, consuming: Bools,
    about: Ints, keys: Ints, values: Ints, extra: Ints,
) -> Bools:  # fmt: skip
    """CONSUME at emission: return which pairs are left.

    Args:
        pairs: (2, ·) match and window, in the order in which they count.
        offsets: (K + 1,)
        events: (E,)
        variables: (E,)
        consuming: (V,) whether what is bound to a variable is consumed.
        about: (2, K) partition and time of each match, to be kept with its events.
        keys: (2, ·) of a table: event and window. There must be room for all elements of all pairs.
        values: of the table: USED and CONSUMED.
        extra: (2, ·) of the table.
    """
    kept = np.zeros(pairs.shape[1], np.bool_)
    for p in range(pairs.shape[1]):
        match, window = pairs[0, p], pairs[1, p]
        is_left = True
        for k in range(offsets[match], offsets[match + 1]):
            value = values[place_of(keys, values, events[k], window)]
            if value & CONSUMED or (value and consuming[variables[k]]):
                is_left = False
                break
        kept[p] = is_left
        if not is_left:
            continue
        for k in range(offsets[match], offsets[match + 1]):
            place = place_of(keys, values, events[k], window)
            keys[0, place], keys[1, place] = events[k], window
            values[place] |= USED | (CONSUMED if consuming[variables[k]] else 0)
            extra[0, place], extra[1, place] = about[0, match], about[1, match]
    return kept


@compiled
def limit(pairs: Ints, part: Ints, most: int, keys: Ints, values: Ints) -> Bools:
    """LIMIT: return which pairs are among the first `most` of their window.

    Args:
        pairs: (2, ·) match and window, in the order in which they count.
        part: (K,) the partition of each match.
        most: how many each window may have.
        keys: (2, ·) of a table: partition and window. There must be room for all pairs.
        values: of the table: how many it has had.
    """
    kept = np.zeros(pairs.shape[1], np.bool_)
    for p in range(pairs.shape[1]):
        place = place_of(keys, values, part[pairs[0, p]], pairs[1, p])
        if values[place] < most:
            kept[p] = True
            keys[0, place], keys[1, place] = part[pairs[0, p]], pairs[1, p]
            values[place] += 1
    return kept
