"""The plain kernel: queries whose conditions are all asked by registers (penstock.plan.plain), event by event.

An event is handled in two phases. First the runs of every state are asked which of them can take it, step by step;
nothing is changed. Then, if there is room for all that follows, the groups of candidates are made true, register by
register. So the kernel can stop before any event, and go on after penstock.kernel.plain_memory has made room.
"""

from __future__ import annotations

from penstock.kernel.asking_plain import (
    ask_openings,
    ask_runs,
    find_takers,
    is_resolved,
    is_simple,
    resolve,
    resolve_simple,
    shed_windows,
)
from penstock.kernel.compiling import entry, inlined
from penstock.kernel.ending import has_room_to_report, note_taken
from penstock.kernel.foreseeing import MANY_RUNS, foresee
from penstock.kernel.indexing import add_to_index
from penstock.kernel.killing import copy_run, kill_runs
from penstock.kernel.lean import hook
from penstock.kernel.observing import observe
from penstock.kernel.plain_memory import AHEAD, BLOCK, PlainMemory
from penstock.kernel.plain_registers import copy_register, set_registers
from penstock.kernel.plain_room import goes_on, has_kills, has_room_to_kill, room_for, room_to_split
from penstock.kernel.scanning import forget_sides, reach_of
from penstock.kernel.sweeping import is_any_due, sweep_due, sweep_grown
from penstock.kernel.tallying import begin_event, end_event, leave, state_of, tally
from penstock.plan.layout import (
    COPY_RUN,
    DONE,
    ENDED_EVENT,
    ENDED_FIRST,
    ENDED_VARIABLE,
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
    HAS_ENDED,
    HAS_FOUND,
    HAS_GROUPS,
    HAS_MATCHES,
    HAS_NODES,
    HAS_STAMP,
    HELD_NODE,
    HELD_SEEN,
    LEAVE,
    LEDGER_SHED,
    LINK_EVENT,
    LINK_PARENT,
    LINK_VARIABLE,
    MATCH_NODE,
    MORE_CANDIDATES,
    MORE_OVER,
    NEWEST_LOW,
    NEWEST_POS,
    NO_WAY,
    PICK_HIGH,
    PICK_LOW,
    PICK_RUN,
    PLAIN_BIRTH,
    PLAIN_ENDS,
    PLAIN_HIGH,
    PLAIN_INDEX,
    PLAIN_LAST,
    PLAIN_LOW,
    PLAIN_MOVES,
    PLAIN_OBSERVES,
    PLAIN_PART,
    PLAIN_REPORTS,
    PLAIN_SEEN,
    PLAIN_SHEDS,
    PLAIN_SOURCE,
    PLAIN_STEP_END,
    PLAIN_TALLIES,
    PLAIN_TARGET,
    PLAIN_VARIABLE,
    REACH,
    SEGMENT_SIZE,
    SEGMENT_START,
    SHRINK,
    SPAN_HIGH,
    SPAN_LOW,
    TAKE,
)
from penstock.plan.plain import PlainTables
from penstock.plan.tables import Floats, Ints

State = int


# --- making groups true ----------------------------------------------------------------------------------------


@inlined
def take(t: PlainTables, m: PlainMemory, event: int, step: int, start: int, stop: int) -> None:
    """Let candidates take the event by a step."""
    target = t.steps[step, PLAIN_TARGET]
    if t.states[target, PLAIN_ENDS] and not (t.options[PLAIN_MOVES] and goes_on(t, target)):
        note_matches(t, m, event, step, start, stop)
    if goes_on(t, target):
        make_runs(t, m, event, step, start, stop)
    if t.options[PLAIN_MOVES] and not is_resolved(t):
        for c in range(start, stop):
            if m.candidates[PICK_RUN, c] >= 0:
                leave(m, t.steps[step, PLAIN_SOURCE], m.candidates[PICK_RUN, c])


@inlined
def note_matches(t: PlainTables, m: PlainMemory, event: int, step: int, start: int, stop: int) -> None:
    """Note the matches that candidates have become: what they share once, and of each the element before the last."""
    first, group = m.sizes[HAS_FOUND], m.sizes[HAS_ENDED]
    m.sizes[HAS_FOUND] += stop - start
    m.sizes[HAS_MATCHES] += stop - start
    m.sizes[HAS_ENDED] += 1
    m.found[ENDED_FIRST, group], m.found[ENDED_EVENT, group] = first, event
    m.found[ENDED_VARIABLE, group] = t.steps[step, PLAIN_VARIABLE]
    if t.steps[step, PLAIN_SOURCE] == 0:
        for k in range(first, first + stop - start):
            m.found[MATCH_NODE, k] = -1
    else:
        before, picked, nodes = m.found[MATCH_NODE], m.candidates[PICK_RUN], m.runs[HELD_NODE]
        for c in range(start, stop):
            before[first + c - start] = nodes[picked[c]]
    if t.options[PLAIN_LOW] >= 0:
        for c in range(start, stop):
            m.spans[SPAN_LOW, first + c - start] = m.candidates[PICK_LOW, c]
            m.spans[SPAN_HIGH, first + c - start] = m.candidates[PICK_HIGH, c]


@inlined
def fill(row: Floats, start: int, stop: int, x: float) -> None:
    """Write a number to places start .. stop-1; a slice would cost more than the few places that it mostly is."""
    for i in range(start, stop):
        row[i] = x


@inlined
def make_elements(t: PlainTables, m: PlainMemory, event: int, step: int, start: int, stop: int, to: int) -> None:
    """Give the runs from place `to` on, which candidates become by a step, their newest element and their reach.

    One loop for all: candidates are mostly few, and to begin a loop takes as long as some of them.
    """
    node, variable, reach = m.sizes[HAS_NODES], t.steps[step, PLAIN_VARIABLE], m.registers[REACH]
    events, variables, parents = m.nodes[LINK_EVENT], m.nodes[LINK_VARIABLE], m.nodes[LINK_PARENT]
    m.sizes[HAS_NODES] += stop - start
    picked, held = m.candidates[PICK_RUN], m.runs[HELD_NODE]
    is_new, opened = t.steps[step, PLAIN_SOURCE] == 0, float(reach_of(t, m, event))
    for c in range(start, stop):
        run, place = 0 if is_new else picked[c], to + c - start
        parent, since = held[run], reach[run]
        events[node], variables[node], parents[node] = event, variable, -1 if is_new else parent
        held[place], reach[place] = node, opened if is_new else since
        node += 1


@inlined
def make_runs(t: PlainTables, m: PlainMemory, event: int, step: int, start: int, stop: int) -> None:
    """Make the runs that candidates become by a step."""
    target = t.steps[step, PLAIN_TARGET]
    to = m.segments[SEGMENT_START, target] + m.segments[SEGMENT_SIZE, target]
    end = to + stop - start
    m.segments[SEGMENT_SIZE, target] += stop - start
    m.sizes[HAS_CREATED] += stop - start
    make_elements(t, m, event, step, start, stop, to)
    if t.options[PLAIN_SEEN]:
        for i in range(to, end):
            m.runs[HELD_SEEN, i] = -1
    birth, part = t.options[PLAIN_BIRTH], t.options[PLAIN_PART]
    if part >= 0:  # it is that of all runs which can take the event
        fill(m.registers[part], to, end, float(m.events[EVENT_PART, event]))
    if birth >= 0 and t.steps[step, PLAIN_SOURCE] == 0:
        fill(m.registers[birth], to, end, float(m.sizes[HAS_BIRTHS]))
        m.sizes[HAS_BIRTHS] += 1
    elif birth >= 0:
        copy_register(m, m.registers[birth], birth, start, stop, to, 0.0)
    if t.options[PLAIN_LAST] >= 0:
        fill(m.registers[t.options[PLAIN_LAST]], to, end, float(m.events[EVENT_POS, event]))
    if t.options[PLAIN_LOW] >= 0:
        for i in range(to, end):
            m.registers[t.options[PLAIN_LOW], i] = m.candidates[PICK_LOW, start + i - to]
            m.registers[t.options[PLAIN_HIGH], i] = m.candidates[PICK_HIGH, start + i - to]
    set_registers(t, m, step, event, start, stop, to)
    if t.states[target, PLAIN_INDEX] >= 0:
        add_to_index(t, m, target, to, end)


@inlined
def make_true(t: PlainTables, m: PlainMemory, event: int) -> None:
    """Do what the groups say."""
    for g in range(m.sizes[HAS_GROUPS]):
        kind, start, stop = m.groups[g, GROUP_KIND], m.groups[g, GROUP_FROM], m.groups[g, GROUP_TO]
        if kind == TAKE:
            take(t, m, event, m.groups[g, GROUP_STEP], start, stop)
            continue
        if kind == LEAVE and m.groups[g, GROUP_STEP] >= 0:
            for c in range(start, stop):
                leave(m, t.steps[m.groups[g, GROUP_STEP], PLAIN_SOURCE], m.candidates[PICK_RUN, c])
            continue
        for c in range(start, stop):
            run = m.candidates[PICK_RUN, c]
            if kind == COPY_RUN:
                copy_run(t, m, state_of(m, run), run, m.candidates[PICK_LOW, c], m.candidates[PICK_HIGH, c])
            elif kind == SHRINK:
                m.registers[t.options[PLAIN_LOW], run] = m.candidates[PICK_LOW, c]
                m.registers[t.options[PLAIN_HIGH], run] = m.candidates[PICK_HIGH, c]
            else:
                leave(m, state_of(m, run), run)


# --- entries -----------------------------------------------------------------------------------------------------


@inlined
def note_newest(m: PlainMemory, event: int) -> None:
    """Note that an event is the newest of its partition."""
    part = m.events[EVENT_PART, event]
    m.newest[NEWEST_POS, part], m.newest[NEWEST_LOW, part] = m.events[EVENT_POS, event], m.events[EVENT_LOW, event]


# `is_noted` is True or None, and hooks are None if there are none: what asks for None is left out before the rest is
# compiled, and so is what only that calls.


@inlined
def is_shed_by_worth(t: PlainTables, m: PlainMemory, event: int, is_noted: bool | None) -> bool:
    """Return whether an event is worth too little to the open runs."""
    if is_noted is None:
        return False
    return bool(hook(t.hooks, PLAIN_TALLIES)) and bool(m.ledger[event - m.sizes[HAS_BATCH], LEDGER_SHED])


@inlined
def room_to_note(t: PlainTables, m: PlainMemory, event: int) -> int:
    """Return DONE if there is room for runs that are split or end, or what there is too little of."""
    status = room_to_split(t, m, event) if hook(t.hooks, PLAIN_SHEDS) and has_kills(t) else DONE
    if status == DONE and hook(t.hooks, PLAIN_REPORTS) and not has_room_to_report(t, m, event):
        return MORE_OVER
    return status


@inlined
def room_for_all(t: PlainTables, m: PlainMemory, event: int, is_noted: bool | None) -> int:
    """Return DONE if there is room for all that an event does, or what there is too little of."""
    status = room_for(t, m) if m.sizes[HAS_GROUPS] > 0 else DONE
    if status != DONE:
        return status
    if has_kills(t) and not has_room_to_kill(t, m):
        return MORE_CANDIDATES
    if is_noted is None:
        return DONE
    return room_to_note(t, m, event)


@inlined
def note_groups(t: PlainTables, m: PlainMemory, event: int, is_noted: bool | None) -> None:
    """Note what the groups will do, before they are made true."""
    if is_noted is not None:
        if hook(t.hooks, PLAIN_TALLIES):
            tally(t, m, event)
        if hook(t.hooks, PLAIN_REPORTS):
            note_taken(t, m, event)


@inlined
def is_reporting(t: PlainTables, is_noted: bool | None) -> bool:
    """Return whether runs that end are reported: then they are swept outside the kernel."""
    if is_noted is None:
        return False
    return bool(hook(t.hooks, PLAIN_REPORTS))


@inlined
def observe_asked(t: PlainTables, m: PlainMemory, event: int, hooks: Ints | None) -> None:
    """Count what happens to an event, if a hook says so."""
    if hooks is not None and hook(t.hooks, PLAIN_OBSERVES):
        observe(t, m, event)


@inlined
def shed_asked(t: PlainTables, m: PlainMemory, event: int, count: int, hooks: Ints | None) -> int:
    """Cut the candidates to the windows from which an event is not shed, if a hook says so."""
    if hooks is None:
        return count
    return shed_windows(t, m, event, count) if hook(t.hooks, PLAIN_SHEDS) else count


@inlined
def process_event(t: PlainTables, m: PlainMemory, event: int, variable: int, is_noted: bool | None) -> int:
    """Process an event; return DONE, or what there is no room for; then nothing has changed.

    `variable` is what `find_takers` says.
    """
    m.sizes[HAS_GROUPS] = 0
    m.sizes[HAS_STAMP] = (m.sizes[HAS_STAMP] + 1) & 0x3FFFFFFF  # an event that is asked again is not seen yet
    if variable == NO_WAY or is_shed_by_worth(t, m, event, is_noted):
        note_newest(m, event)
        return DONE
    count = ask_runs(t, m, event, variable)
    if count < 0 or count + t.states[0, PLAIN_STEP_END] >= m.candidates.shape[1]:
        return MORE_CANDIDATES
    if is_resolved(t):
        if is_simple(t, m):
            count = resolve_simple(t, m, event, count, variable)
        else:
            count = resolve(t, m, event, count, variable)
    else:
        count = ask_openings(t, m, event, count, variable)
        count = shed_asked(t, m, event, count, t.hooks)
    if count < 0:
        return MORE_CANDIDATES
    status = room_for_all(t, m, event, is_noted)
    if status != DONE:
        return status
    observe_asked(t, m, event, t.hooks)
    note_groups(t, m, event, is_noted)
    note_newest(m, event)
    if m.sizes[HAS_GROUPS] > 0:
        make_true(t, m, event)
    if has_kills(t):
        kill_runs(t, m, event, is_noted)
    if (m.sizes[HAS_GROUPS] > 0 or has_kills(t)) and not is_reporting(t, is_noted):
        if t.options[PLAIN_MOVES] or has_kills(t):
            sweep_due(t, m, event)
        else:
            sweep_grown(t, m, event)
    return DONE


@entry
def process(t: PlainTables, m: PlainMemory, start: int, stop: int) -> tuple[int, int]:
    """Process events start .. stop-1; return (DONE, stop), or what there is no room for and the event to go on with."""
    forget_sides(m)
    foresees = m.hints.shape[1] > 1 and m.registers.shape[1] >= MANY_RUNS
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        known = min(last + AHEAD, stop) if foresees else last
        find_takers(m, first, known)
        for event in range(first, last):
            if foresees:
                foresee(t, m, start, first, known, event)
            status = process_event(t, m, event, m.takers[event - first], None)
            if status != DONE:
                return status, event
    return DONE, stop


@entry
def process_noted(t: PlainTables, m: PlainMemory, start: int, stop: int) -> tuple[int, int]:
    """Like `process`, with a ledger, reports of runs that end, and runs that negations end in some windows only.

    It is compiled by itself, so that nobody else pays for it. Runs that are over must be reported before they are
    swept, so it stops for that: MORE_OVER.
    """
    forget_sides(m)
    for event in range(start, stop):
        if hook(t.hooks, PLAIN_TALLIES):
            begin_event(t, m, event)
        find_takers(m, event, event + 1)
        status = process_event(t, m, event, m.takers[0], True)
        if status != DONE:
            return status, event
        if hook(t.hooks, PLAIN_TALLIES):
            end_event(m, event)
        if hook(t.hooks, PLAIN_REPORTS) and is_any_due(m):
            return MORE_OVER, event + 1
    return DONE, stop
