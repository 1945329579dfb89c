"""Plain queries: runs that end without a match, where an option says that they are reported.

A run has ended when nothing more can be bound to it and it has become no match. One that moved on has not, nor, under
EACH, one from which something was taken: what became of it is another run. In windows that holds window by window.
"""

from __future__ import annotations

import math

from penstock.kernel.asking_plain import is_resolved
from penstock.kernel.compiling import entry, inlined, part
from penstock.kernel.dropping import used_of
from penstock.kernel.lean import hook
from penstock.kernel.plain_memory import PlainMemory
from penstock.kernel.tallying import leave
from penstock.plan.layout import (
    ABANDONED,
    EVENT_HIGH,
    EVENT_LOW,
    GROUP_FROM,
    GROUP_KIND,
    GROUP_STEP,
    GROUP_TO,
    HAS_GROUPS,
    HAS_OVER,
    HELD_NODE,
    HELD_SEEN,
    LEAVE,
    OVER_BY,
    OVER_HIGH,
    OVER_LOW,
    OVER_NODE,
    OVER_WHY,
    PICK_LOW,
    PICK_RUN,
    PLAIN_ENDS,
    PLAIN_HIGH,
    PLAIN_LOW,
    PLAIN_MOVES,
    PLAIN_SHEDS,
    PLAIN_SOURCE,
    REACH,
    SEGMENT_SIZE,
    SEGMENT_START,
    SHRINK,
    TAKE,
    TIMED_OUT,
)
from penstock.plan.plain import PlainTables


@inlined
def has_room_to_report(t: PlainTables, m: PlainMemory, event: int) -> bool:
    """Return whether all runs could end at an event: in windows that have closed, and in the others.

    Those are one stretch, unless the event is shed from some of them.
    """
    needed, most = m.sizes[HAS_OVER], 2
    if hook(t.hooks, PLAIN_SHEDS):
        most += m.events[EVENT_HIGH, event] - m.events[EVENT_LOW, event]
    for s in range(1, m.segments.shape[1]):
        needed += most * m.segments[SEGMENT_SIZE, s]
    return bool(needed <= m.over.shape[1])


@inlined
def note(m: PlainMemory, run: int, low: int, high: int, why: int, by: int) -> None:
    """Note that a run has ended in windows low .. high, if these are any."""
    if low <= high:
        at = m.sizes[HAS_OVER]
        m.over[OVER_NODE, at], m.over[OVER_LOW, at], m.over[OVER_HIGH, at] = m.runs[HELD_NODE, run], low, high
        m.over[OVER_WHY, at], m.over[OVER_BY, at] = why, by
        m.sizes[HAS_OVER] = at + 1


@inlined
def first_window(t: PlainTables, m: PlainMemory, run: int) -> int:
    """Return the first window of a run; 0 without WINDOW."""
    return 0 if t.options[PLAIN_LOW] < 0 else int(m.registers[t.options[PLAIN_LOW], run])


@part
def note_windows(t: PlainTables, m: PlainMemory, state: int, run: int, low: int, high: int, why: int, by: int) -> None:
    """Note that a run has ended in windows low .. high, but for those in which something was taken from it."""
    if t.states[state, PLAIN_ENDS]:
        return  # it was a match, too
    if not t.options[PLAIN_MOVES] and m.runs[HELD_SEEN, run] >= 0:
        high = min(high, first_window(t, m, run) + m.runs[HELD_SEEN, run] - 1)
    note(m, run, low, high, why, by)


@part
def note_over(t: PlainTables, m: PlainMemory, state: int, run: int, event: int) -> None:
    """Note that a run has ended: an event forbade it, in the windows that the event is in; or (-1) time has passed."""
    low = first_window(t, m, run)
    high = low if t.options[PLAIN_LOW] < 0 else int(m.registers[t.options[PLAIN_HIGH], run])
    closed = high if event < 0 else m.events[EVENT_LOW, event] - 1
    note_windows(t, m, state, run, low, min(high, closed), TIMED_OUT, -1)
    note_windows(t, m, state, run, max(low, closed + 1), high, ABANDONED, event)


@part
def note_taken(t: PlainTables, m: PlainMemory, event: int) -> None:
    """Before groups are made true: note from which runs something is taken, from which of their windows on.

    A run that moves on does so in the windows that are open; in those that have closed it has timed out.
    """
    is_closing = t.options[PLAIN_MOVES] and t.options[PLAIN_LOW] >= 0
    for g in range(m.sizes[HAS_GROUPS]):
        kind = m.groups[g, GROUP_KIND]
        if kind == TAKE and t.steps[m.groups[g, GROUP_STEP], PLAIN_SOURCE] == 0:
            continue
        is_leaving = kind in (SHRINK, LEAVE) or (kind == TAKE and not is_resolved(t))  # of a run, once
        for c in range(m.groups[g, GROUP_FROM], m.groups[g, GROUP_TO]):
            run = m.candidates[PICK_RUN, c]
            low = first_window(t, m, run)
            if is_closing and is_leaving:
                note(m, run, low, m.events[EVENT_LOW, event] - 1, TIMED_OUT, -1)
            if not t.options[PLAIN_MOVES] and m.runs[HELD_SEEN, run] < 0:
                m.runs[HELD_SEEN, run] = 0 if t.options[PLAIN_LOW] < 0 else m.candidates[PICK_LOW, c] - low


@entry
def end_over(t: PlainTables, m: PlainMemory, now: int, ends_all: bool) -> None:
    """Note the runs that are over by time `now`, or all, and let them leave; there is room for them."""
    for s in range(1, len(t.states)):
        start = m.segments[SEGMENT_START, s]
        for run in range(start, start + m.segments[SEGMENT_SIZE, s]):
            if math.isnan(m.registers[REACH, run]):
                continue
            if ends_all or math.isnan(used_of(t, m, run, now)):
                note_over(t, m, s, run, -1)
                leave(m, s, run)
