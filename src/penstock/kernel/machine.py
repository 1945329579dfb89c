"""Runs, event by event; `process` and `finish` are the entries.

An event is handled in two phases. First every run is asked what it does with it; nothing is changed. Then, if there is
room for all that follows, the candidates are made true. So the kernel can stop before any event, and go on after
`penstock.kernel.memory` has made room."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernel.asking import append, ask_each, ask_first, end_low, takes_alone, unroll
from penstock.kernel.compiling import compiled, entry, part
from penstock.kernel.counters import can_go_on, load_counters, try_ops
from penstock.kernel.hooking import add_observed
from penstock.kernel.memory import Memory
from penstock.kernel.negation import is_in_reach, spoiled, spoiled_until
from penstock.plan.layout import (
    BY_COUNT,
    BY_RUNS,
    CAND_HIGH,
    CAND_LOW,
    CAND_RUN,
    CAND_STEP,
    CHAIN_EVENT,
    CHAIN_PASSED,
    CHAIN_ROUND,
    CHAIN_STATE,
    CHAIN_VARIABLE,
    DONE,
    ENDS_AT_GAP,
    EVENT_LOW,
    EVENT_PART,
    EVENT_POS,
    EVENT_TS,
    FOUND_HIGH,
    FOUND_LENGTH,
    FOUND_LOW,
    FOUND_NODE,
    GONE,
    KNOWN_POS,
    KNOWN_TS,
    LONGER_CHAINS,
    MORE_CANDIDATES,
    MORE_FOUND,
    MORE_NODES,
    MORE_RUNS,
    MORE_WAITING,
    NODE_EVENT,
    NODE_PARENT,
    NODE_PASSED,
    NODE_ROUND,
    NODE_STATE,
    NODE_VARIABLE,
    OBSERVED_WIDTH,
    OBSERVES,
    PER_WINDOW,
    RUN_BIRTH,
    RUN_COUNTER,
    RUN_FIRST,
    RUN_HIGH,
    RUN_LENGTH,
    RUN_LOW,
    RUN_NODE,
    SEGMENT_ROOM,
    SEGMENT_SIZE,
    SEGMENT_START,
    SIZE_BIRTHS,
    SIZE_CREATED,
    SIZE_FOUND,
    SIZE_MATCHES,
    SIZE_NODES,
    SIZE_WAITING,
    STATE_WAY,
    STATE_WAY_END,
    STAYS,
    STEP_OP,
    STEP_OP_END,
    STEP_TARGET,
    WAIT_FIRST,
    WAIT_HIGH,
    WAIT_LENGTH,
    WAIT_LOW,
    WAIT_NODE,
    WAIT_WAY,
    WAY_TRAILING,
    WAY_TRAILING_END,
    WINDOWS,
    WITHIN,
)
from penstock.plan.tables import Ints, Tables


@part
def room_for(t: Tables, m: Memory, count: int, need: Ints) -> int:
    """Return DONE if there is room for what `count` candidates can bring, or what there is too little of."""
    need[:] = 0
    longest = 0
    for k in range(count):
        if m.candidates[CAND_STEP, k] >= 0:
            need[t.steps[m.candidates[CAND_STEP, k], STEP_TARGET]] += 1
        elif m.candidates[CAND_STEP, k] == STAYS:
            need[state_of(m, m.candidates[CAND_RUN, k])] += 1
        if m.candidates[CAND_RUN, k] >= 0:
            longest = max(longest, m.runs[RUN_LENGTH, m.candidates[CAND_RUN, k]])
    for s in range(len(need)):
        if m.segments[SEGMENT_SIZE, s] + need[s] > m.segments[SEGMENT_ROOM, s]:
            return MORE_RUNS
    ways = 1
    for s in range(len(need)):
        ways = max(ways, t.states[s, STATE_WAY_END] - t.states[s, STATE_WAY])
    if m.sizes[SIZE_NODES] + count > m.nodes.shape[1]:
        return MORE_NODES
    if m.sizes[SIZE_FOUND] + count * ways + m.sizes[SIZE_WAITING] > m.found.shape[1]:
        return MORE_FOUND
    if m.sizes[SIZE_WAITING] + count * ways > m.waiting.shape[1]:
        return MORE_WAITING
    if longest + 3 > m.chain.shape[1]:
        return LONGER_CHAINS
    return DONE


@part
def add_run(t: Tables, m: Memory, state: int, first: int, node: int, n: int, low: int, high: int, birth: int) -> None:
    """Add a run with the counters at hand."""
    run = m.segments[SEGMENT_START, state] + m.segments[SEGMENT_SIZE, state]
    m.segments[SEGMENT_SIZE, state] += 1
    m.sizes[SIZE_CREATED] += 1
    m.runs[RUN_FIRST, run], m.runs[RUN_NODE, run], m.runs[RUN_LENGTH, run], m.runs[RUN_BIRTH, run] = (
        first,
        node,
        n,
        birth,
    )
    m.runs[RUN_LOW, run], m.runs[RUN_HIGH, run] = low, high
    for k in range(len(t.counters)):
        m.runs[RUN_COUNTER + k, run] = m.counters[k]


@part
def note(t: Tables, m: Memory, node: int, n: int, first: int, low: int, high: int, at: int, shift: float) -> None:
    """Note a match that becomes known at an event (shifted by a part of a position), or at the end of its span (-1)."""
    k = m.sizes[SIZE_FOUND]
    m.sizes[SIZE_FOUND] += 1
    m.sizes[SIZE_MATCHES] += 1
    m.found[FOUND_NODE, k], m.found[FOUND_LENGTH, k], m.found[FOUND_LOW, k], m.found[FOUND_HIGH, k] = node, n, low, high
    if t.options[BY_COUNT]:
        m.known[KNOWN_TS, k] = 0.0
        m.known[KNOWN_POS, k] = (
            m.events[EVENT_POS, first] + t.options[WITHIN] + 0.5 if at < 0 else m.events[EVENT_POS, at] + shift
        )
    else:
        m.known[KNOWN_TS, k] = m.events[EVENT_TS, first] + t.options[WITHIN] if at < 0 else m.events[EVENT_TS, at]
        m.known[KNOWN_POS, k] = math.inf if at < 0 else m.events[EVENT_POS, at] + shift


@part
def end(
    t: Tables, m: Memory, state: int, node: int, n: int, low: int, high: int, at: int, shift: float, now: int
) -> None:
    """End a run whose chain and counters are at hand: note a match for each way in which it may end.

    `at` is the event that makes the match known, -1 if the end of its span does; `now` is the newest event of its
    partition.
    """
    window = low if t.options[PER_WINDOW] else -1
    first = m.chain[CHAIN_EVENT, 0]
    for way in range(t.states[state, STATE_WAY], t.states[state, STATE_WAY_END]):
        from_low = end_low(t, m, n, way, low, window)
        to_high = high
        for k in range(t.ways[way, WAY_TRAILING], t.ways[way, WAY_TRAILING_END]):
            to_high = spoiled_until(t, m, n, way, t.rows[k, 0], now, to_high)
        if from_low > to_high:
            continue
        if t.ways[way, WAY_TRAILING] == t.ways[way, WAY_TRAILING_END]:
            note(t, m, node, n, first, from_low, to_high, at, shift)
            continue
        k = m.sizes[SIZE_WAITING]
        m.sizes[SIZE_WAITING] += 1
        m.waiting[WAIT_NODE, k], m.waiting[WAIT_FIRST, k], m.waiting[WAIT_LENGTH, k] = node, first, n
        m.waiting[WAIT_WAY, k], m.waiting[WAIT_LOW, k], m.waiting[WAIT_HIGH, k] = way, from_low, to_high


@part
def state_of(m: Memory, run: int) -> int:
    """Return the state of a run."""
    for s in range(m.segments.shape[1]):
        if m.segments[SEGMENT_START, s] <= run < m.segments[SEGMENT_START, s] + m.segments[SEGMENT_ROOM, s]:
            return s
    return -1


@part
def add_node(t: Tables, m: Memory, n: int, parent: int) -> int:
    """Keep the element at place n of the chain; return its node."""
    node = m.sizes[SIZE_NODES]
    m.sizes[SIZE_NODES] += 1
    m.nodes[NODE_EVENT, node], m.nodes[NODE_PARENT, node] = m.chain[CHAIN_EVENT, n], parent
    m.nodes[NODE_VARIABLE, node], m.nodes[NODE_PASSED, node] = m.chain[CHAIN_VARIABLE, n], m.chain[CHAIN_PASSED, n]
    m.nodes[NODE_STATE, node] = m.chain[CHAIN_STATE, n]
    for d in range(t.loops.shape[1]):
        m.nodes[NODE_ROUND + d, node] = m.chain[CHAIN_ROUND + d, n]
    return int(node)


@part
def make_true(
    t: Tables, m: Memory, event: int, count: int,
) -> None:  # fmt: skip
    """Do what the candidates say."""
    moves = t.options[BY_RUNS]
    for k in range(count):
        run, step = m.candidates[CAND_RUN, k], m.candidates[CAND_STEP, k]
        load_counters(t, m, run)
        n = 0 if run < 0 else m.runs[RUN_LENGTH, run]
        if step == STAYS:
            first, node, birth = m.runs[RUN_FIRST, run], m.runs[RUN_NODE, run], m.runs[RUN_BIRTH, run]
            low, high = m.candidates[CAND_LOW, k], m.candidates[CAND_HIGH, k]
            add_run(t, m, state_of(m, run), first, node, n, low, high, birth)
            continue
        if run >= 0:
            unroll(t, m, m.runs[RUN_NODE, run], n)
        if step < 0:
            at, shift = (event, -0.5) if step == ENDS_AT_GAP else (-1, 0.0)
            low, high = m.runs[RUN_LOW, run], m.runs[RUN_HIGH, run]
            now = m.newest[m.events[EVENT_PART, m.runs[RUN_FIRST, run]]]
            end(t, m, state_of(m, run), m.runs[RUN_NODE, run], n, low, high, at, shift, now)
            continue
        try_ops(t, m, t.steps[step, STEP_OP], t.steps[step, STEP_OP_END])
        append(t, m, n, event, step)
        node = add_node(t, m, n, -1 if run < 0 else m.runs[RUN_NODE, run])
        first = event if run < 0 else m.runs[RUN_FIRST, run]
        birth = m.sizes[SIZE_BIRTHS] if run < 0 else m.runs[RUN_BIRTH, run]
        m.sizes[SIZE_BIRTHS] += run < 0
        target = t.steps[step, STEP_TARGET]
        goes_on = can_go_on(t, target)
        if goes_on:
            add_run(t, m, target, first, node, n + 1, m.candidates[CAND_LOW, k], m.candidates[CAND_HIGH, k], birth)
        if not (moves and goes_on):
            low, high = m.candidates[CAND_LOW, k], m.candidates[CAND_HIGH, k]
            end(t, m, target, node, n + 1, low, high, event, 0.0, event)
    if moves:  # last, for a run may have several candidates
        for k in range(count):
            if m.candidates[CAND_RUN, k] >= 0:
                m.runs[RUN_NODE, m.candidates[CAND_RUN, k]] = GONE


@part
def move_run(m: Memory, source: int, target: int) -> None:
    """Copy a run to another place."""
    for k in range(m.runs.shape[0]):
        m.runs[k, target] = m.runs[k, source]


@entry
def sweep_over(t: Tables, m: Memory, now: int) -> None:
    """Drop the runs that are over, as of the newest event; those of FIRST end by themselves."""
    sweep(t, m, now)


@part
def is_over(t: Tables, m: Memory, run: int, now: int) -> bool:
    """Return whether a run is gone or, if it is one of EACH, can take no more; `now` is the newest event, or -1."""
    if m.runs[RUN_NODE, run] == GONE:
        return True
    if now < 0 or t.options[BY_RUNS]:
        return False
    first = m.runs[RUN_FIRST, run]
    newest = m.newest[m.events[EVENT_PART, first]]
    if t.options[WINDOWS] and m.runs[RUN_HIGH, run] < m.events[EVENT_LOW, newest]:
        return True
    return not is_in_reach(t, m, first, newest if t.options[BY_COUNT] else now)


@part
def sweep(t: Tables, m: Memory, now: int) -> None:
    """Drop the runs that are over."""
    for s in range(len(t.states)):
        kept = m.segments[SEGMENT_START, s]
        for run in range(m.segments[SEGMENT_START, s], m.segments[SEGMENT_START, s] + m.segments[SEGMENT_SIZE, s]):
            if not is_over(t, m, run, now):
                if kept != run:
                    move_run(m, run, kept)
                kept += 1
        m.segments[SEGMENT_SIZE, s] = kept - m.segments[SEGMENT_START, s]


@part
def serve_waiting(t: Tables, m: Memory, event: int) -> None:
    """Let an event end or spoil the matches that wait; -1: the stream is over, and all of them are true."""
    kept = 0
    for q in range(m.sizes[SIZE_WAITING]):
        node, first, n = m.waiting[WAIT_NODE, q], m.waiting[WAIT_FIRST, q], m.waiting[WAIT_LENGTH, q]
        way, low, high = m.waiting[WAIT_WAY, q], m.waiting[WAIT_LOW, q], m.waiting[WAIT_HIGH, q]
        is_mine = event >= 0 and m.events[EVENT_PART, first] == m.events[EVENT_PART, event]
        tells_time = is_mine or not t.options[BY_COUNT]
        if event < 0 or (tells_time and not is_in_reach(t, m, first, event)):
            note(t, m, node, n, first, low, high, -1, 0.0)
            continue
        if is_mine:
            unroll(t, m, node, n)
            for k in range(t.ways[way, WAY_TRAILING], t.ways[way, WAY_TRAILING_END]):
                high = spoiled(t, m, n, way, t.rows[k, 0], event, high)
        if low <= high:
            m.waiting[WAIT_NODE, kept], m.waiting[WAIT_FIRST, kept], m.waiting[WAIT_LENGTH, kept] = node, first, n
            m.waiting[WAIT_WAY, kept], m.waiting[WAIT_LOW, kept], m.waiting[WAIT_HIGH, kept] = way, low, high
            kept += 1
    m.sizes[SIZE_WAITING] = kept


@compiled
def process(
    t: Tables, m: Memory, start: int, stop: int,
) -> tuple[int, int]:  # fmt: skip
    """Process events start .. stop-1; return (DONE, stop), or what there is no room for and the event to go on with."""
    need, tally = np.zeros(len(t.states), np.int64), np.zeros((len(t.states), OBSERVED_WIDTH), np.int64)
    for event in range(start, stop):
        takes_some = takes_alone(t, m, event)
        count = 0
        if t.options[OBSERVES]:
            tally[:] = 0
        if t.options[BY_RUNS]:
            count = ask_first(t, m, event, tally)
        elif takes_some:
            count = ask_each(t, m, event, tally)
        if count < 0:
            return MORE_CANDIDATES, event
        status = room_for(t, m, count, need)
        if status != DONE:
            return status, event
        if t.options[OBSERVES]:
            add_observed(t, m, event, tally)
        m.newest[m.events[EVENT_PART, event]] = event
        if m.sizes[SIZE_WAITING] > 0:
            serve_waiting(t, m, event)
        make_true(t, m, event, count)
        if t.options[BY_RUNS] and count > 0:
            sweep(t, m, -1)
    return DONE, stop


@compiled
def finish(t: Tables, m: Memory) -> None:
    """End the stream: what only the passing of time completes is complete. There must be room for all runs."""
    if t.options[BY_RUNS]:
        for s in range(len(t.states)):
            start = m.segments[SEGMENT_START, s]
            for run in range(start, start + m.segments[SEGMENT_SIZE, s]):
                n = m.runs[RUN_LENGTH, run]
                load_counters(t, m, run)
                unroll(t, m, m.runs[RUN_NODE, run], n)
                now = m.newest[m.events[EVENT_PART, m.runs[RUN_FIRST, run]]]
                low, high = m.runs[RUN_LOW, run], m.runs[RUN_HIGH, run]
                end(t, m, s, m.runs[RUN_NODE, run], n, low, high, -1, 0.0, now)
    serve_waiting(t, m, -1)
    m.segments[SEGMENT_SIZE, :] = 0
