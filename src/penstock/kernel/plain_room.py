"""Plain queries: is there room for all that an event brings? Asked before anything is changed."""

from __future__ import annotations

from penstock.kernel.asking_plain import is_shed
from penstock.kernel.compiling import inlined, part
from penstock.kernel.plain_memory import STRIDE, PlainMemory
from penstock.plan.layout import (
    COPY_RUN,
    DONE,
    EVENT_HIGH,
    EVENT_LOW,
    GROUP_FROM,
    GROUP_KIND,
    GROUP_STEP,
    GROUP_TO,
    HAS_FOUND,
    HAS_GROUPS,
    HAS_NODES,
    MORE_FOUND,
    MORE_NODES,
    MORE_RUNS,
    PLAIN_ENDS,
    PLAIN_KILL,
    PLAIN_KILL_END,
    PLAIN_MAX_RUNS,
    PLAIN_STEP,
    PLAIN_STEP_END,
    PLAIN_TARGET,
    PLAIN_VARIABLE,
    SEGMENT_DEAD,
    SEGMENT_NEED,
    SEGMENT_ROOM,
    SEGMENT_SIZE,
    TAKE,
    TOO_MANY_RUNS,
)
from penstock.plan.plain import PlainTables


@inlined
def goes_on(t: PlainTables, state: int) -> bool:
    """Return whether runs can be in a state: there are steps from it."""
    return bool(t.states[state, PLAIN_STEP] < t.states[state, PLAIN_STEP_END])


@inlined
def room_for(t: PlainTables, m: PlainMemory) -> int:
    """Return DONE if there is room for what the groups bring, or what there is too little of."""
    nodes, found, made, copies = m.sizes[HAS_NODES], m.sizes[HAS_FOUND], 0, 0
    for g in range(m.sizes[HAS_GROUPS]):
        if m.groups[g, GROUP_KIND] == TAKE:
            target = t.steps[m.groups[g, GROUP_STEP], PLAIN_TARGET]
            m.segments[SEGMENT_NEED, target] = m.segments[SEGMENT_SIZE, target]
        elif m.groups[g, GROUP_KIND] == COPY_RUN:
            copies += m.groups[g, GROUP_TO] - m.groups[g, GROUP_FROM]
    is_short = False
    if copies > 0:  # it is not known here of which state they are
        for s in range(len(t.states)):
            m.segments[SEGMENT_NEED, s] = m.segments[SEGMENT_SIZE, s] + copies
            is_short |= goes_on(t, s) and m.segments[SEGMENT_NEED, s] > m.segments[SEGMENT_ROOM, s]
    for g in range(m.sizes[HAS_GROUPS]):
        if m.groups[g, GROUP_KIND] == TAKE:
            size = m.groups[g, GROUP_TO] - m.groups[g, GROUP_FROM]
            target = t.steps[m.groups[g, GROUP_STEP], PLAIN_TARGET]
            found += size * t.states[target, PLAIN_ENDS]
            if goes_on(t, target):
                made += size
                m.segments[SEGMENT_NEED, target] += size
                is_short |= m.segments[SEGMENT_NEED, target] > m.segments[SEGMENT_ROOM, target]
    if m.registers.shape[1] > t.options[PLAIN_MAX_RUNS]:  # else there are no places for too many
        runs = made + copies
        for s in range(len(t.states)):
            runs += m.segments[SEGMENT_SIZE, s] - m.segments[SEGMENT_DEAD, s]
        if runs > t.options[PLAIN_MAX_RUNS]:
            return TOO_MANY_RUNS
    if is_short:
        return MORE_RUNS
    if nodes + made > m.nodes.shape[1]:
        return MORE_NODES
    return MORE_FOUND if found > m.found.shape[1] else DONE


@inlined
def has_kills(t: PlainTables) -> bool:
    """Return whether the query has negations."""
    return bool(t.states[0, PLAIN_KILL] < t.states[len(t.states) - 1, PLAIN_KILL_END])


@inlined
def has_room_to_kill(t: PlainTables, m: PlainMemory) -> bool:
    """Return whether all runs that a negation may end could be candidates, those that this event makes too."""
    for s in range(1, len(t.states)):
        if t.states[s, PLAIN_KILL] < t.states[s, PLAIN_KILL_END]:
            size = max(m.segments[SEGMENT_SIZE, s], m.segments[SEGMENT_NEED, s] if m.sizes[HAS_GROUPS] > 0 else 0)
            if size + STRIDE >= m.candidates.shape[1]:
                return False
    return True


@part
def room_to_split(t: PlainTables, m: PlainMemory, event: int) -> int:
    """Return DONE if there is room for the runs that go on in windows from which a negated event is shed, or MORE_RUNS.

    A run is split into as many as there are stretches of such windows.
    """
    stretches, base, is_short, copies = 0, m.events[EVENT_LOW, event], False, 0
    for slot in range(m.events[EVENT_HIGH, event] - base + 1):
        stretches += is_shed(t, m, event, slot) and (slot == 0 or not is_shed(t, m, event, slot - 1))
    if stretches < 2:
        return DONE
    for s in range(1, len(t.states)):
        is_killing, size = False, m.segments[SEGMENT_SIZE, s]
        for kill in range(t.states[s, PLAIN_KILL], t.states[s, PLAIN_KILL_END]):
            is_killing |= m.fits[t.steps[kill, PLAIN_VARIABLE], event]
        for g in range(m.sizes[HAS_GROUPS]):
            kind, step = m.groups[g, GROUP_KIND], m.groups[g, GROUP_STEP]
            if kind == COPY_RUN or (kind == TAKE and t.steps[step, PLAIN_TARGET] == s):
                size += m.groups[g, GROUP_TO] - m.groups[g, GROUP_FROM]
        if is_killing:
            copies += size * (stretches - 1)
            m.segments[SEGMENT_NEED, s] = size * stretches
            is_short |= size * stretches > m.segments[SEGMENT_ROOM, s]
    if m.registers.shape[1] > t.options[PLAIN_MAX_RUNS]:
        for s in range(len(t.states)):
            copies += m.segments[SEGMENT_SIZE, s] - m.segments[SEGMENT_DEAD, s]
        if copies > t.options[PLAIN_MAX_RUNS]:
            return TOO_MANY_RUNS
    return MORE_RUNS if is_short else DONE
