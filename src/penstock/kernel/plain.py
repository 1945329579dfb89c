"""The plain kernel: queries whose conditions are all asked by registers (penstock.plan.plain), event by event.

An event is handled in two phases. First the runs of every state are asked which of them can take it, step by step;
nothing is changed. Then, if there is room for all that follows, the groups of candidates are made true, register by
register. So the kernel can stop before any event, and go on after penstock.kernel.plain_memory has made room.
"""

from __future__ import annotations

import math

from penstock.kernel.asking_plain import ask_openings, ask_runs, is_resolved, resolve, shed_windows
from penstock.kernel.compiling import entry, inlined, part
from penstock.kernel.observing import observe
from penstock.kernel.plain_memory import FIRST_SWEEP, PlainMemory
from penstock.kernel.plain_registers import copy_register, set_registers
from penstock.kernel.scanning import bucket, reach_of, scan
from penstock.plan.layout import (
    COPY_RUN,
    DONE,
    EVENT_LOW,
    EVENT_PART,
    EVENT_POS,
    GROUP_FROM,
    GROUP_KIND,
    GROUP_STEP,
    GROUP_TO,
    HAS_BATCH,
    HAS_BIRTHS,
    HAS_CREATED,
    HAS_FOUND,
    HAS_GROUPS,
    HAS_MATCHES,
    HAS_NODES,
    HAS_STAMP,
    HELD_NEXT,
    HELD_NODE,
    HELD_SEEN,
    LINK_EVENT,
    LINK_PARENT,
    LINK_VARIABLE,
    MATCH_EVENT,
    MATCH_HIGH,
    MATCH_LOW,
    MATCH_NODE,
    MATCH_VARIABLE,
    MORE_CANDIDATES,
    MORE_FOUND,
    MORE_NODES,
    MORE_RUNS,
    NEWEST_LOW,
    NEWEST_POS,
    PICK_HIGH,
    PICK_LOW,
    PICK_RUN,
    PLAIN_BIRTH,
    PLAIN_BIT,
    PLAIN_BY_COUNT,
    PLAIN_ENDS,
    PLAIN_HIGH,
    PLAIN_INDEX,
    PLAIN_KILL,
    PLAIN_KILL_END,
    PLAIN_LAST,
    PLAIN_LOW,
    PLAIN_MASK,
    PLAIN_MAX_RUNS,
    PLAIN_MOVES,
    PLAIN_OBSERVES,
    PLAIN_PART,
    PLAIN_SHEDS,
    PLAIN_SKIPS,
    PLAIN_SOURCE,
    PLAIN_STEP,
    PLAIN_STEP_END,
    PLAIN_TARGET,
    PLAIN_VARIABLE,
    PLAIN_WITHIN,
    REACH,
    SEGMENT_DEAD,
    SEGMENT_NEED,
    SEGMENT_ROOM,
    SEGMENT_SIZE,
    SEGMENT_START,
    SEGMENT_SWEEP,
    SHRINK,
    TAKE,
    TOO_MANY_RUNS,
)
from penstock.plan.plain import PlainTables

State = int


@inlined
def room_for(t: PlainTables, m: PlainMemory) -> int:
    """Return DONE if there is room for what the groups bring, or what there is too little of."""
    nodes, found, runs = m.sizes[HAS_NODES], m.sizes[HAS_FOUND], 0
    is_short = False
    for s in range(len(t.states)):
        need = 0
        for g in range(m.sizes[HAS_GROUPS]):
            size = m.groups[g, GROUP_TO] - m.groups[g, GROUP_FROM]
            if m.groups[g, GROUP_KIND] == TAKE and t.steps[m.groups[g, GROUP_STEP], PLAIN_TARGET] == s:
                need += size
                found += size * t.states[s, PLAIN_ENDS]
            elif m.groups[g, GROUP_KIND] == COPY_RUN:
                need += size
        if t.states[s, PLAIN_STEP] < t.states[s, PLAIN_STEP_END]:
            nodes += need
            runs += m.segments[SEGMENT_SIZE, s] - m.segments[SEGMENT_DEAD, s] + need
            m.segments[SEGMENT_NEED, s] = m.segments[SEGMENT_SIZE, s] + need
            is_short |= m.segments[SEGMENT_NEED, s] > m.segments[SEGMENT_ROOM, s]
    if runs > t.options[PLAIN_MAX_RUNS]:
        return TOO_MANY_RUNS
    if is_short:
        return MORE_RUNS
    if nodes > m.nodes.shape[1]:
        return MORE_NODES
    return MORE_FOUND if found > m.found.shape[1] else DONE


# --- making groups true ----------------------------------------------------------------------------------------


@inlined
def take(t: PlainTables, m: PlainMemory, event: int, step: int, start: int, stop: int) -> None:
    """Let candidates take the event by a step."""
    target = t.steps[step, PLAIN_TARGET]
    goes_on = t.states[target, PLAIN_STEP] < t.states[target, PLAIN_STEP_END]
    if t.states[target, PLAIN_ENDS] and not (t.options[PLAIN_MOVES] and goes_on):
        note_matches(t, m, event, step, start, stop)
    if goes_on:
        make_runs(t, m, event, step, start, stop)
    if t.options[PLAIN_MOVES] and not is_resolved(t):
        for c in range(start, stop):
            if m.candidates[PICK_RUN, c] >= 0:
                leave(m, t.steps[step, PLAIN_SOURCE], m.candidates[PICK_RUN, c])


@inlined
def leave(m: PlainMemory, state: int, run: int) -> None:
    """Let a run leave its state."""
    m.registers[REACH, run] = math.nan
    m.segments[SEGMENT_DEAD, state] += 1


@inlined
def note_matches(t: PlainTables, m: PlainMemory, event: int, step: int, start: int, stop: int) -> None:
    """Note the matches that candidates have become."""
    k = m.sizes[HAS_FOUND] - start
    m.sizes[HAS_FOUND] += stop - start
    m.sizes[HAS_MATCHES] += stop - start
    for c in range(start, stop):
        run = m.candidates[PICK_RUN, c]
        m.found[MATCH_NODE, k + c] = -1 if run < 0 else m.runs[HELD_NODE, run]
        m.found[MATCH_EVENT, k + c], m.found[MATCH_VARIABLE, k + c] = event, t.steps[step, PLAIN_VARIABLE]
    if t.options[PLAIN_LOW] >= 0:
        for c in range(start, stop):
            m.found[MATCH_LOW, k + c] = m.candidates[PICK_LOW, c]
            m.found[MATCH_HIGH, k + c] = m.candidates[PICK_HIGH, c]


@inlined
def make_nodes(t: PlainTables, m: PlainMemory, event: int, step: int, start: int, stop: int) -> int:
    """Make the elements that candidates add by a step; return the first."""
    first = m.sizes[HAS_NODES]
    m.sizes[HAS_NODES] += stop - start
    for c in range(start, stop):
        run, node = m.candidates[PICK_RUN, c], first + c - start
        m.nodes[LINK_EVENT, node], m.nodes[LINK_VARIABLE, node] = event, t.steps[step, PLAIN_VARIABLE]
        m.nodes[LINK_PARENT, node] = -1 if run < 0 else m.runs[HELD_NODE, run]
    return first


@inlined
def make_runs(t: PlainTables, m: PlainMemory, event: int, step: int, start: int, stop: int) -> None:
    """Make the runs that candidates become by a step."""
    nodes = make_nodes(t, m, event, step, start, stop)
    target, is_new = t.steps[step, PLAIN_TARGET], t.steps[step, PLAIN_SOURCE] == 0
    to = m.segments[SEGMENT_START, target] + m.segments[SEGMENT_SIZE, target]
    m.segments[SEGMENT_SIZE, target] += stop - start
    m.sizes[HAS_CREATED] += stop - start
    for c in range(start, stop):
        i = to + c - start
        m.runs[HELD_NODE, i], m.runs[HELD_SEEN, i] = nodes + c - start, -1
    if is_new:
        m.registers[REACH, to : to + stop - start] = reach_of(t, m, event)
        birth = t.options[PLAIN_BIRTH]
        if birth >= 0:
            m.registers[birth, to : to + stop - start] = m.sizes[HAS_BIRTHS]
            m.sizes[HAS_BIRTHS] += 1
        if t.options[PLAIN_PART] >= 0:
            m.registers[t.options[PLAIN_PART], to : to + stop - start] = m.events[EVENT_PART, event]
    else:
        copy_register(m, m.registers[REACH], REACH, start, stop, to)
        for k in (PLAIN_BIRTH, PLAIN_PART):
            if t.options[k] >= 0:
                copy_register(m, m.registers[t.options[k]], t.options[k], start, stop, to)
    if t.options[PLAIN_LAST] >= 0:
        m.registers[t.options[PLAIN_LAST], to : to + stop - start] = m.events[EVENT_POS, event]
    if t.options[PLAIN_LOW] >= 0:
        for c in range(start, stop):
            m.registers[t.options[PLAIN_LOW], to + c - start] = m.candidates[PICK_LOW, c]
            m.registers[t.options[PLAIN_HIGH], to + c - start] = m.candidates[PICK_HIGH, c]
    set_registers(t, m, step, event, start, stop, to)
    mask = t.steps[step, PLAIN_MASK]
    if mask >= 0:
        for i in range(to, to + stop - start):
            m.registers[mask, i] += t.steps[step, PLAIN_BIT]
    if t.states[target, PLAIN_INDEX] >= 0:
        for i in range(to, to + stop - start):
            add_to_index(t, m, target, i)


@inlined
def add_to_index(t: PlainTables, m: PlainMemory, state: int, run: int) -> None:
    """Put a run first in its bucket; a run without a key can take nothing, and stands in none."""
    key = m.registers[t.states[state, PLAIN_INDEX], run]
    if math.isnan(key):
        return
    at = bucket(key, m.segments[SEGMENT_START, state], m.segments[SEGMENT_ROOM, state])
    m.runs[HELD_NEXT, run] = m.heads[at]
    m.heads[at] = run


@part
def state_of(m: PlainMemory, run: int) -> int:
    """Return the state of a run."""
    for s in range(m.segments.shape[1]):
        if m.segments[SEGMENT_START, s] <= run < m.segments[SEGMENT_START, s] + m.segments[SEGMENT_ROOM, s]:
            return s
    return -1


@part
def copy_run(t: PlainTables, m: PlainMemory, c: int) -> None:
    """Make a copy of a candidate's run that lives in the candidate's windows."""
    run = m.candidates[PICK_RUN, c]
    state = state_of(m, run)
    to = m.segments[SEGMENT_START, state] + m.segments[SEGMENT_SIZE, state]
    m.segments[SEGMENT_SIZE, state] += 1
    m.sizes[HAS_CREATED] += 1
    for k in range(m.runs.shape[0]):
        m.runs[k, to] = m.runs[k, run]
    for k in range(m.registers.shape[0]):
        m.registers[k, to] = m.registers[k, run]
    m.registers[t.options[PLAIN_LOW], to] = m.candidates[PICK_LOW, c]
    m.registers[t.options[PLAIN_HIGH], to] = m.candidates[PICK_HIGH, c]
    if t.states[state, PLAIN_INDEX] >= 0:
        add_to_index(t, m, state, to)


@inlined
def make_true(t: PlainTables, m: PlainMemory, event: int) -> None:
    """Do what the groups say."""
    for g in range(m.sizes[HAS_GROUPS]):
        kind, start, stop = m.groups[g, GROUP_KIND], m.groups[g, GROUP_FROM], m.groups[g, GROUP_TO]
        if kind == TAKE:
            take(t, m, event, m.groups[g, GROUP_STEP], start, stop)
            continue
        for c in range(start, stop):
            run = m.candidates[PICK_RUN, c]
            if kind == COPY_RUN:
                copy_run(t, m, c)
            elif kind == SHRINK:
                m.registers[t.options[PLAIN_LOW], run] = m.candidates[PICK_LOW, c]
                m.registers[t.options[PLAIN_HIGH], run] = m.candidates[PICK_HIGH, c]
            else:
                leave(m, state_of(m, run), run)


# --- runs that are over ------------------------------------------------------------------------------------------


@inlined
def is_over(t: PlainTables, m: PlainMemory, run: int, now: int) -> bool:
    """Return whether a run has left or can take no more; `now` is the newest event."""
    reach = m.registers[REACH, run]
    if math.isnan(reach):
        return True
    part = 0 if t.options[PLAIN_PART] < 0 else int(m.registers[t.options[PLAIN_PART], run])
    newest = m.newest[NEWEST_POS, part] if t.options[PLAIN_BY_COUNT] else reach_of(t, m, now)
    if reach < newest - t.options[PLAIN_WITHIN]:
        return True
    if t.options[PLAIN_LAST] >= 0 and m.registers[t.options[PLAIN_LAST], run] < m.newest[NEWEST_POS, part]:
        return True
    return t.options[PLAIN_HIGH] >= 0 and m.registers[t.options[PLAIN_HIGH], run] < m.newest[NEWEST_LOW, part]


@part
def sweep(t: PlainTables, m: PlainMemory, state: int, now: int) -> None:
    """Drop the runs of a state that are over, and build its index anew."""
    start, size = m.segments[SEGMENT_START, state], m.segments[SEGMENT_SIZE, state]
    kept = start
    for run in range(start, start + size):
        if is_over(t, m, run, now):
            continue
        if kept != run:
            for k in range(m.runs.shape[0]):
                m.runs[k, kept] = m.runs[k, run]
            for k in range(m.registers.shape[0]):
                m.registers[k, kept] = m.registers[k, run]
        kept += 1
    m.segments[SEGMENT_SIZE, state], m.segments[SEGMENT_DEAD, state] = kept - start, 0
    m.segments[SEGMENT_SWEEP, state] = FIRST_SWEEP + (kept - start) + (kept - start) // 2
    if t.states[state, PLAIN_INDEX] >= 0:
        m.heads[start : start + m.segments[SEGMENT_ROOM, state]] = -1
        for run in range(start, kept):
            add_to_index(t, m, state, run)


@inlined
def sweep_due(t: PlainTables, m: PlainMemory, now: int) -> None:
    """Sweep the states that have grown by half since they were last swept, or of whose runs many have left."""
    for s in range(1, len(t.states)):
        size = m.segments[SEGMENT_SIZE, s]
        if size > m.segments[SEGMENT_SWEEP, s] or m.segments[SEGMENT_DEAD, s] > FIRST_SWEEP + size // 4:
            sweep(t, m, s, now)


@entry
def sweep_all(t: PlainTables, m: PlainMemory, now: int) -> None:
    """Sweep every state; `now` is the newest event that was processed, -1 if none was."""
    if now >= 0:
        for s in range(1, len(t.states)):
            sweep(t, m, s, now)


# --- entries -----------------------------------------------------------------------------------------------------


@inlined
def has_room_to_kill(t: PlainTables, m: PlainMemory) -> bool:
    """Return whether all runs that a negation may end could be candidates, those that this event makes too."""
    for s in range(1, len(t.states)):
        if t.states[s, PLAIN_KILL] < t.states[s, PLAIN_KILL_END]:
            size = max(m.segments[SEGMENT_SIZE, s], m.segments[SEGMENT_NEED, s] if m.sizes[HAS_GROUPS] > 0 else 0)
            if size >= m.candidates.shape[1]:
                return False
    return True


@inlined
def kill_runs(t: PlainTables, m: PlainMemory, event: int) -> None:
    """Let the runs leave that a negated event ends; not those that have just taken this event."""
    for s in range(1, len(t.states)):
        for kill in range(t.states[s, PLAIN_KILL], t.states[s, PLAIN_KILL_END]):
            is_hidden = t.options[PLAIN_SKIPS] and m.skips[s, event - m.sizes[HAS_BATCH]]
            if m.segments[SEGMENT_SIZE, s] == 0 or is_hidden or not m.fits[t.steps[kill, PLAIN_VARIABLE], event]:
                continue
            for c in range(scan(t, m, s, kill, event, 0)):
                run = m.candidates[PICK_RUN, c]
                if m.nodes[LINK_EVENT, m.runs[HELD_NODE, run]] != event:
                    leave(m, s, run)


@inlined
def process_event(t: PlainTables, m: PlainMemory, event: int) -> int:
    """Process an event; return DONE, or what there is no room for; then nothing has changed."""
    m.sizes[HAS_GROUPS] = 0
    m.sizes[HAS_STAMP] = (m.sizes[HAS_STAMP] + 1) & 0x3FFFFFFF  # an event that is asked again is not seen yet
    count = ask_runs(t, m, event)
    if count < 0 or count + t.states[0, PLAIN_STEP_END] >= m.candidates.shape[1]:
        return MORE_CANDIDATES
    if is_resolved(t):
        count = resolve(t, m, event, count)
    else:
        count = ask_openings(t, m, event, count)
        if t.options[PLAIN_SHEDS]:
            count = shed_windows(t, m, event, count)
    if count < 0:
        return MORE_CANDIDATES
    if m.sizes[HAS_GROUPS] > 0:
        status = room_for(t, m)
        if status != DONE:
            return status
    if not has_room_to_kill(t, m):
        return MORE_CANDIDATES
    if t.options[PLAIN_OBSERVES]:
        observe(t, m, event)
    part = m.events[EVENT_PART, event]
    m.newest[NEWEST_POS, part], m.newest[NEWEST_LOW, part] = m.events[EVENT_POS, event], m.events[EVENT_LOW, event]
    if m.sizes[HAS_GROUPS] > 0:
        make_true(t, m, event)
    kill_runs(t, m, event)
    sweep_due(t, m, event)
    return DONE


@entry
def process(t: PlainTables, m: PlainMemory, start: int, stop: int) -> tuple[int, int]:
    """Process events start .. stop-1; return (DONE, stop), or what there is no room for and the event to go on with."""
    for event in range(start, stop):
        status = process_event(t, m, event)
        if status != DONE:
            return status, event
    return DONE, stop
