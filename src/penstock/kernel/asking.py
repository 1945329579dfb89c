"""What would each run do with an event? Nothing is changed here; the answers are candidates."""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.kernel.counters import can_go_on, copy_counters, load_counters, try_ops
from penstock.kernel.memory import Memory
from penstock.kernel.negation import is_decided, is_in_reach, last_before, latest_forbidding
from penstock.kernel.values import holds
from penstock.plan.layout import (
    BY_RUNS,
    CAND_HIGH,
    CAND_LOW,
    CAND_RUN,
    CAND_STATE,
    CAND_STEP,
    CHAIN_EVENT,
    CHAIN_PASSED,
    CHAIN_ROUND,
    CHAIN_VARIABLE,
    CONSUME,
    ENDS_AT_GAP,
    ENDS_BY_TIME,
    EVENT_HIGH,
    EVENT_LOW,
    EVENT_PART,
    NEVER,
    NODE_EVENT,
    NODE_PARENT,
    NODE_PASSED,
    NODE_ROUND,
    NODE_VARIABLE,
    PER_WINDOW,
    RUN_BIRTH,
    RUN_FIRST,
    RUN_HIGH,
    RUN_LENGTH,
    RUN_LOW,
    RUN_NODE,
    SEGMENT_SIZE,
    SEGMENT_START,
    STATE_STEP,
    STATE_STEP_END,
    STATE_WAY,
    STATE_WAY_END,
    STEP_ASK,
    STEP_ASK_END,
    STEP_DUE,
    STEP_DUE_END,
    STEP_OP,
    STEP_OP_END,
    STEP_PASSES,
    STEP_TARGET,
    STEP_VARIABLE,
    STRICT,
    VAR_CONSUMING,
    VAR_DEPTH,
    VAR_OWN,
    VAR_OWN_END,
    WAY_ASK,
    WAY_ASK_END,
    WAY_DUE,
    WAY_DUE_END,
    WAY_OP,
    WAY_OP_END,
    WINDOWS,
)
from penstock.plan.tables import Bools, Tables


@njit(cache=True)
def unroll(t: Tables, m: Memory, node: int, n: int) -> None:
    """Write the n elements of a chain to scratch, oldest first."""
    for k in range(n - 1, -1, -1):
        m.chain[CHAIN_EVENT, k], m.chain[CHAIN_VARIABLE, k], m.chain[CHAIN_PASSED, k] = (
            m.nodes[NODE_EVENT, node],
            m.nodes[NODE_VARIABLE, node],
            m.nodes[NODE_PASSED, node],
        )
        for d in range(t.loops.shape[1]):
            m.chain[CHAIN_ROUND + d, k] = m.nodes[NODE_ROUND + d, node]
        node = m.nodes[NODE_PARENT, node]


@njit(cache=True)
def append(t: Tables, m: Memory, n: int, event: int, step: int) -> None:
    """Write the element that a transition would add, at place n; the counters are those after it."""
    variable = t.steps[step, STEP_VARIABLE]
    m.chain[CHAIN_EVENT, n], m.chain[CHAIN_VARIABLE, n], m.chain[CHAIN_PASSED, n] = (
        event,
        variable,
        t.steps[step, STEP_PASSES],
    )
    for d in range(t.loops.shape[1]):
        m.chain[CHAIN_ROUND + d, n] = m.counters[0, t.loops[variable, d]] if d < t.variables[variable, VAR_DEPTH] else 0


@njit(cache=True)
def is_free_of(t: Tables, m: Memory, n: int, negation: int, newest_only: bool, state: int, window: int) -> bool:
    """Return whether a negation that a run has passed is not violated, as far as that is decided."""
    for k in range(n - 1 if newest_only else 0, n):
        if not (m.chain[CHAIN_PASSED, k] >> negation) & 1:
            continue
        is_asked = newest_only or (last_before(t, m, n, negation, k) >= 0 and is_decided(t, m, n, negation, k, state))
        if is_asked and latest_forbidding(t, m, n, negation, k, t.lists[state], window) >= 0:
            return False
    return True


@njit(cache=True)
def end_low(t: Tables, m: Memory, n: int, way: int, low: int, window: int) -> int:
    """Return the first window from `low` on in which a run may end in this way; NEVER if it may not.

    What only the passing of time can tell is left aside. A negation with nothing before it forbids the windows that
    hold the forbidding event; those that start after it are free.
    """
    copy_counters(t, m)
    if not try_ops(t, m, t.ways[way, WAY_OP], t.ways[way, WAY_OP_END], 1):
        return NEVER
    lists = t.lists[len(t.states) + way]
    for k in range(t.ways[way, WAY_DUE], t.ways[way, WAY_DUE_END]):
        if not holds(t, m, n, t.rows[k, 0], lists, -1, 0):
            return NEVER
    for a in range(t.ways[way, WAY_ASK], t.ways[way, WAY_ASK_END]):
        negation = t.rows[a, 0]
        for k in range(n):
            if (m.chain[CHAIN_PASSED, k] >> negation) & 1:
                event = latest_forbidding(t, m, n, negation, k, lists, window)
                if event >= 0:
                    is_leading = last_before(t, m, n, negation, k) < 0
                    if not (is_leading and t.options[WINDOWS] and window < 0):
                        return NEVER
                    low = max(low, m.events[EVENT_HIGH, event] + 1)
    return low


@njit(cache=True)
def takes(
    t: Tables, m: Memory,
    run: int, step: int, event: int, window: int,
) -> bool:  # fmt: skip
    """Return whether a run (-1: a new one) can take an event by a transition; WITHIN and windows are asked before."""
    load_counters(t, m, run)
    if not try_ops(t, m, t.steps[step, STEP_OP], t.steps[step, STEP_OP_END], 0):
        return False
    n = 0 if run < 0 else m.runs[RUN_LENGTH, run]
    if run >= 0:
        unroll(t, m, m.runs[RUN_NODE, run], n)
    append(t, m, n, event, step)
    n += 1
    target = t.steps[step, STEP_TARGET]
    lists = t.lists[target]
    for k in range(t.steps[step, STEP_DUE], t.steps[step, STEP_DUE_END]):
        only = n - 1 if t.rows[k, 1] else -1
        if not holds(t, m, n, t.rows[k, 0], lists, only, t.loops.shape[1]):
            return False
    for k in range(t.steps[step, STEP_ASK], t.steps[step, STEP_ASK_END]):
        newest = t.rows[k, 1] == 1
        if not is_free_of(t, m, n, t.rows[k, 0], newest, target, window):
            return False
    if t.options[BY_RUNS] and not can_go_on(t, m, target):
        for way in range(t.states[target, STATE_WAY], t.states[target, STATE_WAY_END]):
            if end_low(t, m, n, way, 0, window) != NEVER:
                return True
        return False
    return True


@njit(cache=True)
def takes_alone(t: Tables, m: Memory, event: int) -> bool:
    """Note which variables the event could be bound to, by its type and what names the variable alone."""
    some = False
    for v in range(len(t.variables)):
        m.takes[v] = m.fits[v, event]
        if m.takes[v]:
            m.chain[CHAIN_EVENT, 0], m.chain[CHAIN_VARIABLE, 0] = event, v
            for d in range(t.loops.shape[1]):
                m.chain[CHAIN_ROUND + d, 0] = 0
            for k in range(t.variables[v, VAR_OWN], t.variables[v, VAR_OWN_END]):
                if not holds(t, m, 1, t.rows[k, 0], t.lists[0], -1, 0):
                    m.takes[v] = False
                    break
            some |= m.takes[v]
    return some


@njit(cache=True)
def ask_each(t: Tables, m: Memory, event: int) -> int:
    """EACH: note every way in which a run or a new one can take the event; return how many, -1 if there is no room."""
    count = 0
    room = m.candidates.shape[1]
    for s in range(len(t.states)):
        expired = 0
        for run in range(m.segments[SEGMENT_START, s], m.segments[SEGMENT_START, s] + m.segments[SEGMENT_SIZE, s]):
            first = m.runs[RUN_FIRST, run]
            if m.events[EVENT_PART, first] != m.events[EVENT_PART, event]:
                continue
            low = max(m.runs[RUN_LOW, run], m.events[EVENT_LOW, event])
            if low > m.runs[RUN_HIGH, run] or not is_in_reach(t, m, first, event):
                expired += 1
                continue
            for step in range(t.states[s, STATE_STEP], t.states[s, STATE_STEP_END]):
                if m.takes[t.steps[step, STEP_VARIABLE]] and takes(t, m, run, step, event, -1):
                    if count == room:
                        return -1
                    (
                        m.candidates[CAND_RUN, count],
                        m.candidates[CAND_STEP, count],
                        m.candidates[CAND_LOW, count],
                        m.candidates[CAND_HIGH, count],
                    ) = run, step, low, m.runs[RUN_HIGH, run]
                    count += 1
    for step in range(t.states[0, STATE_STEP], t.states[0, STATE_STEP_END]):
        if m.takes[t.steps[step, STEP_VARIABLE]] and takes(t, m, -1, step, event, -1):
            if count == room:
                return -1
            (
                m.candidates[CAND_RUN, count],
                m.candidates[CAND_STEP, count],
                m.candidates[CAND_LOW, count],
                m.candidates[CAND_HIGH, count],
            ) = -1, step, m.events[EVENT_LOW, event], m.events[EVENT_HIGH, event]
            count += 1
    return count


@njit(cache=True)
def is_free(t: Tables, variable: int, taken: Bools, consumed: Bools, slot: int) -> bool:
    """Return whether CONSUME lets a run bind the event to a variable."""
    if not t.options[CONSUME]:
        return True
    return not taken[slot] if t.variables[variable, VAR_CONSUMING] else not consumed[slot]


@njit(cache=True)
def mark(t: Tables, variable: int, taken: Bools, consumed: Bools, slot: int) -> None:
    """Note that a run has bound the event to a variable."""
    taken[slot] = True
    consumed[slot] |= t.variables[variable, VAR_CONSUMING]


@njit(cache=True)
def ask_first(t: Tables, m: Memory, event: int) -> int:
    """FIRST, STRICT: note what each run does: take the event (a step), end (ENDS_*); new runs come last."""
    count = 0
    room = m.candidates.shape[1]
    if (
        m.segments[SEGMENT_SIZE].sum()
        + (len(t.steps) + 1) * (m.events[EVENT_HIGH, event] - m.events[EVENT_LOW, event] + 1)
        > room
    ):
        return -1
    in_some = m.events[EVENT_LOW, event] <= m.events[EVENT_HIGH, event]
    windows = max(1, m.events[EVENT_HIGH, event] - m.events[EVENT_LOW, event] + 1) if t.options[PER_WINDOW] else 1
    taken = np.zeros(windows, np.bool_)
    consumed = np.zeros(windows, np.bool_)
    runs = 0
    for s in range(len(t.states)):
        for run in range(m.segments[SEGMENT_START, s], m.segments[SEGMENT_START, s] + m.segments[SEGMENT_SIZE, s]):
            if m.events[EVENT_PART, m.runs[RUN_FIRST, run]] == m.events[EVENT_PART, event]:
                m.candidates[CAND_RUN, runs] = run
                m.candidates[CAND_LOW, runs] = m.runs[RUN_BIRTH, run]
                m.candidates[CAND_STATE, runs] = s
                runs += 1
    by_birth = np.argsort(m.candidates[CAND_LOW, :runs])
    asked, states = m.candidates[CAND_RUN, :runs].copy(), m.candidates[CAND_STATE, :runs].copy()
    for place in range(runs):
        run, s = asked[by_birth[place]], states[by_birth[place]]
        if max(m.runs[RUN_LOW, run], m.events[EVENT_LOW, event]) > m.runs[RUN_HIGH, run] or not is_in_reach(
            t, m, m.runs[RUN_FIRST, run], event
        ):
            (
                m.candidates[CAND_RUN, count],
                m.candidates[CAND_STEP, count],
                m.candidates[CAND_LOW, count],
                m.candidates[CAND_HIGH, count],
            ) = run, ENDS_BY_TIME, m.runs[RUN_LOW, run], m.runs[RUN_HIGH, run]
            count += 1
            continue
        window = m.runs[RUN_LOW, run] if t.options[PER_WINDOW] else -1
        slot = window - m.events[EVENT_LOW, event] if t.options[PER_WINDOW] else 0
        chosen = -1
        for step in range(t.states[s, STATE_STEP], t.states[s, STATE_STEP_END]):
            v = t.steps[step, STEP_VARIABLE]
            may_take = m.takes[v] and is_free(t, v, taken, consumed, slot)
            if may_take and takes(t, m, run, step, event, window):
                chosen = step
                break
        if chosen >= 0:
            mark(t, t.steps[chosen, STEP_VARIABLE], taken, consumed, slot)
        elif t.options[STRICT]:
            chosen = ENDS_AT_GAP
        if chosen != -1:
            low = max(m.runs[RUN_LOW, run], m.events[EVENT_LOW, event])
            (
                m.candidates[CAND_RUN, count],
                m.candidates[CAND_STEP, count],
                m.candidates[CAND_LOW, count],
                m.candidates[CAND_HIGH, count],
            ) = run, chosen, low, m.runs[RUN_HIGH, run]
            count += 1
    if in_some:
        count = ask_openings(t, m, event, taken, consumed, count)
    return count


@njit(cache=True)
def ask_openings(
    t: Tables, m: Memory, event: int,
    taken: Bools, consumed: Bools, count: int,
) -> int:  # fmt: skip
    """FIRST, STRICT: note the runs that an event opens, one per variable, and per window where windows differ."""
    for slot in range(len(taken)):
        window = m.events[EVENT_LOW, event] + slot if t.options[PER_WINDOW] else -1
        opened = count
        for step in range(t.states[0, STATE_STEP], t.states[0, STATE_STEP_END]):
            v = t.steps[step, STEP_VARIABLE]
            if not m.takes[v] or not is_free(t, v, taken, consumed, slot):
                continue
            is_again = False
            for k in range(opened, count):
                is_again |= t.steps[m.candidates[CAND_STEP, k], STEP_VARIABLE] == v
            if is_again or not takes(t, m, -1, step, event, window):
                continue
            mark(t, v, taken, consumed, slot)
            low = window if t.options[PER_WINDOW] else m.events[EVENT_LOW, event]
            high = window if t.options[PER_WINDOW] else m.events[EVENT_HIGH, event]
            (
                m.candidates[CAND_RUN, count],
                m.candidates[CAND_STEP, count],
                m.candidates[CAND_LOW, count],
                m.candidates[CAND_HIGH, count],
            ) = -1, step, low, high
            count += 1
    return count
