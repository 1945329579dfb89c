"""Plain queries: the index of a state, by the key of its runs. A bucket is a chain of groups of runs, newest first.

A group is neighbours with one key, which one event made; `PlainMemory.heads` says how it is named.
"""

from __future__ import annotations

import math

import numpy as np

from penstock.kernel.compiling import inlined
from penstock.kernel.plain_memory import PlainMemory, SmallInts
from penstock.plan.layout import HELD_NEXT, PLAIN_INDEX, SEGMENT_ROOM, SEGMENT_START
from penstock.plan.plain import PlainTables

_ODD, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


@inlined
def bucket(x: float, start: int, room: int) -> int:
    """Return the bucket of a key among those of a segment, which has as many as it has room for runs."""
    bits = np.float64(x + 0.0).view(np.int64)  # 0.0 and -0.0 are equal
    mixed = np.uint64(bits ^ (bits >> 32)) * _ODD  # whole numbers differ in their high bits only, texts in their low
    return start + int(np.int64(((mixed >> _HALF) * np.uint64(room)) >> _HALF))


@inlined
def as_group(following: SmallInts, start: int, stop: int) -> int:
    """Return how an index names the runs start .. stop-1, neighbours with one key: see `PlainMemory.heads`."""
    if stop - start == 1:
        return 2 * start
    following[start + 1] = stop
    return 2 * start + 1


@inlined
def end_of(following: SmallInts, group: int) -> int:
    """Return where a group ends."""
    start = group >> 1
    return following[start + 1] if group & 1 else start + 1


@inlined
def shorten(m: PlainMemory, head: int, before: int, start: int, stop: int, after: int) -> None:
    """Let a group in a chain, behind that which begins with the run `before`, be the runs start .. stop-1; or go."""
    following, group = m.runs[HELD_NEXT], after
    if start < stop:
        following[start], group = after, as_group(following, start, stop)
    if before < 0:
        m.heads[head] = group
    else:
        following[before] = group


@inlined
def add_to_index(t: PlainTables, m: PlainMemory, state: int, start: int, stop: int) -> None:
    """Put runs first in their buckets, neighbours with one key as a group.

    A run without a key can take nothing, and stands in none.
    """
    first, room = m.segments[SEGMENT_START, state], m.segments[SEGMENT_ROOM, state]
    keys, following = m.registers[t.states[state, PLAIN_INDEX]], m.runs[HELD_NEXT]
    at = start
    while at < stop:
        key, end = keys[at], at + 1
        while end < stop and keys[end] == key:
            end += 1
        if not math.isnan(key):
            head = bucket(key, first, room)
            following[at] = m.heads[head]
            m.heads[head] = as_group(following, at, end)
        at = end
