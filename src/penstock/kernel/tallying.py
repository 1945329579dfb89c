"""Open runs by partition and state, and what each event took: the ledger. In the plain kernel, where options say so.

The counts change as runs come and go. That runs are over by WITHIN is noticed when the next event of their partition
comes: each run is counted at its *opener*, too, the event that opened it; openers that are out of reach leave the list
of their partition, and take along what is left of their runs. So nobody looks at runs one by one, and whoever reads the
counts at an event sees the runs in reach only. A run is also over if its windows are (WINDOW), or if it did not take
the event before (STRICT): runs of such queries are counted anew at each event.
"""

from __future__ import annotations

import math

from penstock.kernel.asking_plain import is_resolved
from penstock.kernel.compiling import entry, inlined, part
from penstock.kernel.lean import hook
from penstock.kernel.observing import runs_in_reach
from penstock.kernel.plain_memory import PlainMemory
from penstock.kernel.scanning import reach_of
from penstock.plan.layout import (
    EVENT_PART,
    GROUP_FROM,
    GROUP_KIND,
    GROUP_STEP,
    GROUP_TO,
    HAS_BATCH,
    HAS_CHECKS,
    HAS_CREATED,
    HAS_EVENTS,
    HAS_GROUPS,
    HAS_MATCHES,
    HELD_FIRST,
    HELD_NODE,
    LEAVE,
    LEDGER_CHECKS,
    LEDGER_CREATED,
    LEDGER_MATCHES,
    LEDGER_OPEN,
    LEDGER_SHED,
    LINK_EVENT,
    LINK_PARENT,
    NEWEST_OPENER,
    NEXT_OPENER,
    OLDEST_OPENER,
    PICK_RUN,
    PLAIN_MOVES,
    PLAIN_SKIPS,
    PLAIN_SOURCE,
    PLAIN_STEP,
    PLAIN_STEP_END,
    PLAIN_TALLIES,
    PLAIN_TARGET,
    PLAIN_TRACES,
    PLAIN_WITHIN,
    REACH,
    SEGMENT_DEAD,
    SEGMENT_NEED,
    SEGMENT_ROOM,
    SEGMENT_SIZE,
    SEGMENT_START,
    TAKE,
    TALLY_KEPT,
)
from penstock.plan.plain import PlainTables
from penstock.plan.tables import Ints

# --- runs that come and go -----------------------------------------------------------------------------------------


@inlined
def leave(m: PlainMemory, state: int, run: int) -> None:
    """Let a run leave its state."""
    m.registers[REACH, run] = math.nan
    m.segments[SEGMENT_DEAD, state] += 1


@inlined
def uncount(m: PlainMemory, state: int, run: int) -> None:
    """Uncount a run that leaves its state. It is in reach, so its opener is."""
    opener = m.runs[HELD_FIRST, run]
    m.tallies[opener, state] -= 1
    m.summary[m.events[EVENT_PART, opener], state] -= 1


@part
def state_of(m: PlainMemory, run: int) -> int:
    """Return the state of a run."""
    for s in range(m.segments.shape[1]):
        if m.segments[SEGMENT_START, s] <= run < m.segments[SEGMENT_START, s] + m.segments[SEGMENT_ROOM, s]:
            return s
    return -1


@part
def add_opener(m: PlainMemory, event: int) -> None:
    """Put an event behind the openers of its partition, unless it is there."""
    states = m.tallies.shape[1]
    row = m.summary[m.events[EVENT_PART, event]]
    newest = row[states + NEWEST_OPENER]
    if row[states + OLDEST_OPENER] < 0:
        row[states + OLDEST_OPENER] = event
    elif newest == event:
        return
    else:
        m.tallies[newest, NEXT_OPENER] = event
    m.tallies[event, NEXT_OPENER] = -1
    row[states + NEWEST_OPENER] = event


@inlined
def trace(t: PlainTables, m: PlainMemory, step: int, start: int, stop: int) -> None:
    """Count the runs that take an event by a step."""
    source, target, before = t.steps[step, PLAIN_SOURCE], t.steps[step, PLAIN_TARGET], -1
    for c in range(start, stop):
        run = m.candidates[PICK_RUN, c]
        m.moves[source, target] += run < 0 or run != before  # a run has a candidate for each stretch of its windows
        before = run


@inlined
def tally_taken(t: PlainTables, m: PlainMemory, event: int, step: int, start: int, stop: int) -> None:
    """Count the runs that candidates will become by a step, and uncount those that they leave behind.

    They will stand in the order of the candidates, behind those of earlier groups: SEGMENT_NEED says where.
    """
    source, target = t.steps[step, PLAIN_SOURCE], t.steps[step, PLAIN_TARGET]
    if t.states[target, PLAIN_STEP] < t.states[target, PLAIN_STEP_END]:
        to = m.segments[SEGMENT_START, target] + m.segments[SEGMENT_NEED, target]
        m.segments[SEGMENT_NEED, target] += stop - start
        m.summary[m.events[EVENT_PART, event], target] += stop - start
        if source == 0:
            add_opener(m, event)
        for c in range(start, stop):
            opener = event if source == 0 else m.runs[HELD_FIRST, m.candidates[PICK_RUN, c]]
            m.runs[HELD_FIRST, to + c - start] = opener
            m.tallies[opener, target] += 1
    if t.options[PLAIN_MOVES] and source > 0 and not is_resolved(t):
        for c in range(start, stop):
            uncount(m, source, m.candidates[PICK_RUN, c])


@part
def tally(t: PlainTables, m: PlainMemory, event: int) -> None:
    """Count what the groups will bring, before they are made true; but not twice, if there is no room for them.

    A run is copied or shrunk only in windows, where runs are counted anew (TALLY_ANEW).
    """
    is_kept = hook(t.hooks, PLAIN_TALLIES) == TALLY_KEPT
    for s in range(len(t.states)):
        m.segments[SEGMENT_NEED, s] = m.segments[SEGMENT_SIZE, s]
    for g in range(m.sizes[HAS_GROUPS]):
        kind, step = m.groups[g, GROUP_KIND], m.groups[g, GROUP_STEP]
        start, stop = m.groups[g, GROUP_FROM], m.groups[g, GROUP_TO]
        if kind == TAKE:
            if hook(t.hooks, PLAIN_TRACES):
                trace(t, m, step, start, stop)
            if is_kept:
                tally_taken(t, m, event, step, start, stop)
        elif kind == LEAVE and is_kept:
            for c in range(start, stop):
                run = m.candidates[PICK_RUN, c]
                uncount(m, state_of(m, run) if step < 0 else t.steps[step, PLAIN_SOURCE], run)


@part
def drop_openers(t: PlainTables, m: PlainMemory, event: int) -> None:
    """Uncount the runs of an event's partition that are over when it comes."""
    states, row = len(t.states), m.summary[m.events[EVENT_PART, event]]
    least, opener = reach_of(t, m, event) - t.options[PLAIN_WITHIN], row[states + OLDEST_OPENER]
    while opener >= 0 and reach_of(t, m, opener) < least:
        for s in range(1, states):
            row[s] -= m.tallies[opener, s]
            m.tallies[opener, s] = 0
        opener = m.tallies[opener, NEXT_OPENER]
    row[states + OLDEST_OPENER] = opener


@entry
def recount(t: PlainTables, m: PlainMemory) -> None:
    """Count all runs that are there."""
    states = len(t.states)
    m.tallies[:, :] = 0
    m.summary[:, :] = 0
    m.summary[:, 0] = 1
    m.summary[:, states:] = -1
    for s in range(1, states):
        start = m.segments[SEGMENT_START, s]
        for run in range(start, start + m.segments[SEGMENT_SIZE, s]):
            if math.isnan(m.registers[REACH, run]):
                continue
            node = m.runs[HELD_NODE, run]
            while m.nodes[LINK_PARENT, node] >= 0:
                node = m.nodes[LINK_PARENT, node]
            opener = m.nodes[LINK_EVENT, node]
            m.runs[HELD_FIRST, run] = opener
            m.tallies[opener, s] += 1
            m.summary[m.events[EVENT_PART, opener], s] += 1
    for event in range(m.sizes[HAS_EVENTS]):
        for s in range(1, states):
            if m.tallies[event, s] > 0:
                add_opener(m, event)


# --- events --------------------------------------------------------------------------------------------------------


@inlined
def is_worthless(m: PlainMemory, row: Ints, at: int) -> bool:
    """Return whether an event is worth too little to the open runs of its partition (thesis, equation 5.4)."""
    if m.worth.shape[1] == 0:
        return False
    total, states = 0.0, m.tallies.shape[1]
    for s in range(states):
        total += m.worth[s, at] * row[s]
    return bool(total <= m.worth[states, at])


@part
def begin_event(t: PlainTables, m: PlainMemory, event: int) -> None:
    """Decide whether an event is shed, and note what is open, once; begin to count, each time that it is asked."""
    at, states, row = event - m.sizes[HAS_BATCH], len(t.states), m.summary[m.events[EVENT_PART, event]]
    line = m.ledger[at]
    line[LEDGER_CHECKS], line[LEDGER_CREATED] = -m.sizes[HAS_CHECKS], -m.sizes[HAS_CREATED]
    line[LEDGER_MATCHES] = -m.sizes[HAS_MATCHES]
    if line[LEDGER_SHED] >= 0:
        return
    if hook(t.hooks, PLAIN_TALLIES) == TALLY_KEPT:
        drop_openers(t, m, event)
    else:
        for s in range(1, states):
            row[s] = runs_in_reach(t, m, s, event)
    line[LEDGER_SHED] = is_worthless(m, row, at)
    if len(m.open_runs) > 0 and m.cells[at] >= 0:
        for s in range(states):
            m.open_runs[m.cells[at], s] += row[s]
    if not line[LEDGER_SHED]:
        for s in range(states):
            if not (hook(t.hooks, PLAIN_SKIPS) and m.skips[s, at]):
                line[LEDGER_OPEN] += row[s]


@part
def end_event(m: PlainMemory, event: int) -> None:
    """Note what has been done since an event was last asked about."""
    line = m.ledger[event - m.sizes[HAS_BATCH]]
    line[LEDGER_CHECKS] += m.sizes[HAS_CHECKS]
    line[LEDGER_CREATED] += m.sizes[HAS_CREATED]
    line[LEDGER_MATCHES] += m.sizes[HAS_MATCHES]
