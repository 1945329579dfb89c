"""Counting in the plain kernel: how many runs were asked about an event, and how many take it, by state."""

from __future__ import annotations

from penstock.kernel.compiling import inlined, part
from penstock.kernel.indexing import bucket, end_of
from penstock.kernel.lean import hook
from penstock.kernel.plain_memory import PlainMemory
from penstock.kernel.scanning import reach_of
from penstock.plan.layout import (
    EVENT_LOW,
    EVENT_PART,
    EVENT_POS,
    GROUP_FROM,
    GROUP_KIND,
    GROUP_STEP,
    GROUP_TO,
    HAS_BATCH,
    HAS_GROUPS,
    HAVE_TAKEN,
    HELD_NEXT,
    PICK_RUN,
    PLAIN_HIGH,
    PLAIN_LAST,
    PLAIN_PART,
    PLAIN_SKIPS,
    PLAIN_SOURCE,
    PLAIN_STEP,
    PLAIN_STEP_END,
    PLAIN_VARIABLE,
    PLAIN_WITHIN,
    REACH,
    SEGMENT_ROOM,
    SEGMENT_SIZE,
    SEGMENT_START,
    TAKE,
    WERE_ASKED,
)
from penstock.plan.plain import PlainTables


@inlined
def is_in_reach(t: PlainTables, m: PlainMemory, run: int, event: int) -> bool:
    """Return whether a run is not over when an event comes, as WITHIN, windows, partition and STRICT say."""
    least = reach_of(t, m, event) - t.options[PLAIN_WITHIN]
    is_open = m.registers[REACH, run] >= least  # not if it has left: then it is NaN
    is_open &= t.options[PLAIN_HIGH] < 0 or m.registers[t.options[PLAIN_HIGH], run] >= m.events[EVENT_LOW, event]
    is_open &= t.options[PLAIN_PART] < 0 or m.registers[t.options[PLAIN_PART], run] == m.events[EVENT_PART, event]
    before = m.events[EVENT_POS, event] - 1
    return is_open & (t.options[PLAIN_LAST] < 0 or m.registers[t.options[PLAIN_LAST], run] == before)


@part
def runs_in_reach(t: PlainTables, m: PlainMemory, state: int, event: int) -> int:
    """Return how many runs of a state are not over; partitions are an index, if there are any."""
    start, size, count = m.segments[SEGMENT_START, state], m.segments[SEGMENT_SIZE, state], 0
    if t.options[PLAIN_PART] < 0:
        for run in range(start, start + size):
            count += is_in_reach(t, m, run, event)
    elif size > 0:
        group = m.heads[bucket(float(m.events[EVENT_PART, event]), start, m.segments[SEGMENT_ROOM, state])]
        while group >= 0:
            for run in range(group >> 1, end_of(m.runs[HELD_NEXT], group)):
                count += is_in_reach(t, m, run, event)
            group = m.runs[HELD_NEXT, group >> 1]
    return count


@part
def observe(t: PlainTables, m: PlainMemory, event: int) -> None:
    """Count for an event that has been asked about, before the groups of candidates are made true.

    Not while asking, which happens again if there is no room.
    """
    at = event - m.sizes[HAS_BATCH]
    cell = m.cells[at]
    if cell < 0:
        return
    for s in range(1, len(t.states)):
        if hook(t.hooks, PLAIN_SKIPS) and m.skips[s, at]:
            continue
        steps = 0
        for step in range(t.states[s, PLAIN_STEP], t.states[s, PLAIN_STEP_END]):
            steps += m.fits[t.steps[step, PLAIN_VARIABLE], event]
        if steps > 0:
            m.observed[cell, s, WERE_ASKED] += steps * runs_in_reach(t, m, s, event)
    for g in range(m.sizes[HAS_GROUPS]):
        if m.groups[g, GROUP_KIND] != TAKE:
            continue
        source, before = t.steps[m.groups[g, GROUP_STEP], PLAIN_SOURCE], -1
        for c in range(m.groups[g, GROUP_FROM], m.groups[g, GROUP_TO]):
            run = m.candidates[PICK_RUN, c]
            if run < 0 or run != before:  # a run has a candidate for each stretch of its windows
                m.observed[cell, source, HAVE_TAKEN] += 1
                m.observed[cell, source, WERE_ASKED] += source == 0
            before = run
