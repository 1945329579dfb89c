"""Plain queries: runs that are over are dropped, many at a time, and the indexes of those that stay."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.kernel.compiling import entry, inlined, part
from penstock.kernel.indexing import add_to_index
from penstock.kernel.lean import hook
from penstock.kernel.plain_memory import FIRST_SWEEP, PlainMemory
from penstock.kernel.scanning import reach_of
from penstock.plan.layout import (
    GROUP_STEP,
    HAS_GROUPS,
    HELD_NEXT,
    HELD_SEEN,
    NEWEST_LOW,
    NEWEST_POS,
    PLAIN_BY_COUNT,
    PLAIN_HIGH,
    PLAIN_INDEX,
    PLAIN_LAST,
    PLAIN_PART,
    PLAIN_SEEN,
    PLAIN_TALLIES,
    PLAIN_TARGET,
    PLAIN_WITHIN,
    REACH,
    SEGMENT_DEAD,
    SEGMENT_KEPT,
    SEGMENT_PAST,
    SEGMENT_ROOM,
    SEGMENT_SCANS,
    SEGMENT_SIZE,
    SEGMENT_START,
    SEGMENT_SWEEP,
)
from penstock.plan.plain import PlainTables

_SMALL, _LARGE = 1024, 1 << 16  # runs of a state that is swept when it must be
_MANY_SCANS = 16
_STRETCH = 32  # neighbours that are moved at a time, by a loop that the compiler turns into vector instructions


@inlined
def is_over(t: PlainTables, m: PlainMemory, run: int) -> bool:
    """Return whether a run that has not left can take no more, for other reasons than the time or the count of all."""
    part = 0 if t.options[PLAIN_PART] < 0 else int(m.registers[t.options[PLAIN_PART], run])
    newest = m.newest[NEWEST_POS, part]
    if t.options[PLAIN_BY_COUNT] and m.registers[REACH, run] < newest - t.options[PLAIN_WITHIN]:
        return True
    if t.options[PLAIN_LAST] >= 0 and m.registers[t.options[PLAIN_LAST], run] < newest:
        return True
    return t.options[PLAIN_HIGH] >= 0 and m.registers[t.options[PLAIN_HIGH], run] < m.newest[NEWEST_LOW, part]


@inlined
def list_staying(t: PlainTables, m: PlainMemory, start: int, stop: int, now: int) -> int:
    """List the runs of start .. stop-1 that are not over, from place `start` of HELD_NEXT on; return where it ends.

    That row is free for it: the index, of which it is a part, is built anew behind every sweep.
    """
    reach, staying = m.registers[REACH], m.runs[HELD_NEXT]
    is_counted_apart = t.options[PLAIN_BY_COUNT] and t.options[PLAIN_PART] >= 0
    least = -math.inf if is_counted_apart else float(reach_of(t, m, now) - t.options[PLAIN_WITHIN])
    end = start
    for run in range(start, stop):
        staying[end] = run
        end += int(reach[run] >= least)  # not if it has left: NaN
    if not (is_counted_apart or t.options[PLAIN_LAST] >= 0 or t.options[PLAIN_HIGH] >= 0):
        return end
    listed, end = end, start
    for at in range(start, listed):
        run = staying[at]
        staying[end] = run
        end += int(not is_over(t, m, run))
    return end


@inlined
def is_scattered(staying: NDArray[np.int32], start: int, end: int) -> bool:
    """Return whether what stays stands in many short stretches."""
    breaks = 0
    for at in range(start + 1, end):
        breaks += staying[at] - staying[at - 1] != 1
    return bool(16 * breaks > end - start)


@inlined
def close_up(column: Any, staying: NDArray[np.int32], start: int, end: int, scattered: bool) -> None:
    """Move what stays of a column to the places start .. end-1; neighbours move together, if most have some."""
    if scattered:
        for at in range(start, end):
            column[at] = column[staying[at]]
        return
    at = start
    while at < end:
        source = staying[at]
        if at + _STRETCH <= end and staying[at + _STRETCH - 1] - source == _STRETCH - 1:
            for k in range(_STRETCH):
                column[at + k] = column[source + k]
            at += _STRETCH
        else:
            column[at] = column[source]
            at += 1


@part
def sweep(t: PlainTables, m: PlainMemory, state: int, now: int) -> None:
    """Drop the runs of a state that are over, a column at a time, and build its index anew."""
    start, size = m.segments[SEGMENT_START, state], m.segments[SEGMENT_SIZE, state]
    end, staying = list_staying(t, m, start, start + size, now), m.runs[HELD_NEXT]
    moved = start
    while moved < end and staying[moved] == moved:
        moved += 1
    scattered = is_scattered(staying, moved, end)
    for k in range(m.runs.shape[0]):
        if k != HELD_NEXT and (k != HELD_SEEN or t.options[PLAIN_SEEN]):
            close_up(m.runs[k], staying, moved, end, scattered)
    for k in range(m.registers.shape[0]):
        close_up(m.registers[k], staying, moved, end, scattered)
    kept = end - start
    m.segments[SEGMENT_SIZE, state], m.segments[SEGMENT_DEAD, state], m.segments[SEGMENT_PAST, state] = kept, 0, 0
    m.segments[SEGMENT_KEPT, state], m.segments[SEGMENT_SCANS, state] = kept, 0
    is_lazy = t.states[state, PLAIN_INDEX] >= 0 and not hook(t.hooks, PLAIN_TALLIES)  # else its work is accounted for
    growth = (2 * kept if kept < _LARGE else kept) if is_lazy else kept // 2
    m.segments[SEGMENT_SWEEP, state] = FIRST_SWEEP + kept + growth
    if t.states[state, PLAIN_INDEX] >= 0:
        m.heads[start : start + m.segments[SEGMENT_ROOM, state]] = -1
        add_to_index(t, m, state, start, end)


@inlined
def is_due(m: PlainMemory, state: int) -> bool:
    """Return whether a state has grown enough since it was last swept, or many of its runs have left."""
    size = m.segments[SEGMENT_SIZE, state]
    return bool(size > m.segments[SEGMENT_SWEEP, state] or m.segments[SEGMENT_DEAD, state] > FIRST_SWEEP + size // 4)


@inlined
def is_any_due(m: PlainMemory) -> bool:
    """Return whether a state is to be swept."""
    is_any = False
    for s in range(1, m.segments.shape[1]):
        is_any |= is_due(m, s)
    return is_any


@inlined
def is_put_off(t: PlainTables, m: PlainMemory, state: int) -> bool:
    """Return whether a state that is due had better wait: it is small, and not many have looked through what is over.

    To look at a run that is over costs a tenth of moving one that is not; but not in an index.
    """
    if t.states[state, PLAIN_INDEX] >= 0 or hook(t.hooks, PLAIN_TALLIES):
        return False
    size, kept = m.segments[SEGMENT_SIZE, state], m.segments[SEGMENT_KEPT, state]
    most, is_passed_over = min(_LARGE, _SMALL + 3 * kept), 2 * m.segments[SEGMENT_PAST, state] > size - kept
    is_in_the_way = m.segments[SEGMENT_SCANS, state] >= _MANY_SCANS and not is_passed_over
    if size >= most or size <= m.segments[SEGMENT_SWEEP, state] or is_in_the_way:
        return False
    m.segments[SEGMENT_SWEEP, state] = min(most, size + size // 4)
    return True


@inlined
def sweep_grown(t: PlainTables, m: PlainMemory, now: int) -> None:
    """EACH: sweep the states that are due, of those that have got runs."""
    for g in range(m.sizes[HAS_GROUPS]):
        s = t.steps[m.groups[g, GROUP_STEP], PLAIN_TARGET]
        if is_due(m, s) and not is_put_off(t, m, s):
            sweep(t, m, s, now)


@inlined
def sweep_due(t: PlainTables, m: PlainMemory, now: int) -> None:
    """Sweep the states that are due."""
    for s in range(1, len(t.states)):
        if is_due(m, s) and not is_put_off(t, m, s):
            sweep(t, m, s, now)


@entry
def sweep_all(t: PlainTables, m: PlainMemory, now: int) -> None:
    """Sweep every state; `now` is the newest event that was processed, -1 if none was."""
    if now >= 0:
        for s in range(1, len(t.states)):
            sweep(t, m, s, now)
