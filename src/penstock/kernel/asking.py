"""What would each run do with an event? Nothing is changed here; the answers are candidates."""

from __future__ import annotations

import numpy as np

from penstock.kernel.compiling import compiled, part
from penstock.kernel.counters import can_go_on, is_open, load_counters, try_ops
from penstock.kernel.hooking import is_hidden, is_shed_from_all, observe_openings, propose, propose_windows
from penstock.kernel.memory import Memory
from penstock.kernel.negation import is_decided, is_in_reach, last_before, latest_forbidding
from penstock.kernel.values import holds
from penstock.plan.layout import (
    ALL,
    BY_COUNT,
    BY_RUNS,
    CAND_STEP,
    CHAIN_EVENT,
    CHAIN_PASSED,
    CHAIN_ROUND,
    CHAIN_STATE,
    CHAIN_VARIABLE,
    COND_REF,
    COND_REF_END,
    CONSUME,
    ENDS_AT_GAP,
    ENDS_BY_TIME,
    EVENT_HIGH,
    EVENT_LOW,
    EVENT_PART,
    HAVE_TAKEN,
    LAST,
    NEVER,
    NODE_EVENT,
    NODE_PARENT,
    NODE_PASSED,
    NODE_ROUND,
    NODE_STATE,
    NODE_VARIABLE,
    OBSERVES,
    PER_WINDOW,
    REF_INDEX,
    REF_VARIABLE,
    RUN_BIRTH,
    RUN_FIRST,
    RUN_HIGH,
    RUN_LENGTH,
    RUN_LOW,
    RUN_NODE,
    SEGMENT_SIZE,
    SEGMENT_START,
    SHEDS,
    SIZE_CHECKS,
    STATE_STEP,
    STATE_STEP_END,
    STATE_WAY,
    STATE_WAY_END,
    STAYS,
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
    WERE_ASKED,
    WINDOWS,
)
from penstock.plan.tables import Bools, Ints, Tables


@part
def unroll(t: Tables, m: Memory, node: int, n: int) -> None:
    """Write the n elements of a chain to scratch, oldest first."""
    for k in range(n - 1, -1, -1):
        m.chain[CHAIN_EVENT, k], m.chain[CHAIN_VARIABLE, k] = m.nodes[NODE_EVENT, node], m.nodes[NODE_VARIABLE, node]
        m.chain[CHAIN_PASSED, k], m.chain[CHAIN_STATE, k] = m.nodes[NODE_PASSED, node], m.nodes[NODE_STATE, node]
        for d in range(t.loops.shape[1]):
            m.chain[CHAIN_ROUND + d, k] = m.nodes[NODE_ROUND + d, node]
        node = m.nodes[NODE_PARENT, node]


@part
def append(t: Tables, m: Memory, n: int, event: int, step: int) -> None:
    """Write the element that a transition would add, at place n; the counters are those after it."""
    variable = t.steps[step, STEP_VARIABLE]
    m.chain[CHAIN_EVENT, n], m.chain[CHAIN_VARIABLE, n] = event, variable
    m.chain[CHAIN_PASSED, n], m.chain[CHAIN_STATE, n] = t.steps[step, STEP_PASSES], t.steps[step, STEP_TARGET]
    for d in range(t.loops.shape[1]):
        m.chain[CHAIN_ROUND + d, n] = m.counters[t.loops[variable, d]] if d < t.variables[variable, VAR_DEPTH] else 0


@part
def is_free_of(t: Tables, m: Memory, n: int, negation: int, newest_only: bool, state: int, window: int) -> bool:
    """Return whether a negation that a run has passed is not violated, as far as that is decided."""
    for k in range(n - 1 if newest_only else 0, n):
        if not (m.chain[CHAIN_PASSED, k] >> negation) & 1:
            continue
        is_asked = newest_only or (last_before(t, m, n, negation, k) >= 0 and is_decided(t, m, n, negation, k, state))
        if is_asked and latest_forbidding(t, m, n, negation, k, t.lists[state], window) >= 0:
            return False
    return True


@part
def end_low(t: Tables, m: Memory, n: int, way: int, low: int, window: int) -> int:
    """Return the first window from `low` on in which a run may end in this way; NEVER if it may not.

    What only the passing of time can tell is left aside. A negation with nothing before it forbids the windows that
    hold the forbidding event; those that start after it are free.
    """
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


@part
def is_closed(t: Tables, m: Memory, condition: int, state: int) -> bool:
    """Return whether the lists that a condition names the last or all elements of get no more of them."""
    for k in range(t.conditions[condition, COND_REF], t.conditions[condition, COND_REF_END]):
        index, variable = t.references[t.rows[k, 0], REF_INDEX], t.references[t.rows[k, 0], REF_VARIABLE]
        if index in (LAST, ALL) and is_open(t, m, state, variable):
            return False
    return True


@part
def takes(
    t: Tables, m: Memory,
    run: int, step: int, event: int, window: int,
) -> bool:  # fmt: skip
    """Return whether a run (-1: a new one) can take an event by a transition; WITHIN and windows are asked before."""
    m.sizes[SIZE_CHECKS] += 1
    load_counters(t, m, run)
    if not try_ops(t, m, t.steps[step, STEP_OP], t.steps[step, STEP_OP_END]):
        return False
    n = 0 if run < 0 else m.runs[RUN_LENGTH, run]
    if run >= 0:
        unroll(t, m, m.runs[RUN_NODE, run], n)
    append(t, m, n, event, step)
    n += 1
    target = t.steps[step, STEP_TARGET]
    lists = t.lists[target]
    for k in range(t.steps[step, STEP_DUE], t.steps[step, STEP_DUE_END]):
        if t.rows[k, 2] and not is_closed(t, m, t.rows[k, 0], target):
            continue
        only = n - 1 if t.rows[k, 1] else -1
        if not holds(t, m, n, t.rows[k, 0], lists, only, t.loops.shape[1]):
            return False
    for k in range(t.steps[step, STEP_ASK], t.steps[step, STEP_ASK_END]):
        newest = t.rows[k, 1] == 1
        if not is_free_of(t, m, n, t.rows[k, 0], newest, target, window):
            return False
    if t.options[BY_RUNS] and not can_go_on(t, target):
        for way in range(t.states[target, STATE_WAY], t.states[target, STATE_WAY_END]):
            if end_low(t, m, n, way, 0, window) != NEVER:
                return True
        return False
    return True


@part
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


@part
def ask_each(t: Tables, m: Memory, event: int, tally: Ints) -> int:
    """EACH: note every way in which a run or a new one can take the event; return how many, -1 if there is no room."""
    count = 0
    low, high = m.events[EVENT_LOW, event], m.events[EVENT_HIGH, event]
    room = m.candidates.shape[1] - (high - low + 1 if t.options[SHEDS] else 0)
    for s in range(len(t.states)):
        if is_hidden(t, m, s, event):
            continue
        for step in range(t.states[s, STATE_STEP], t.states[s, STATE_STEP_END]):
            if not m.takes[t.steps[step, STEP_VARIABLE]]:
                continue
            start = m.segments[SEGMENT_START, s]
            for run in range(start, start + m.segments[SEGMENT_SIZE, s]):
                low, high = window_low(t, m, run, event), m.runs[RUN_HIGH, run]
                if low > high:
                    continue
                tally[s, WERE_ASKED] += 1
                if takes(t, m, run, step, event, -1):
                    if count >= room:
                        return -1
                    before, count = count, propose_windows(t, m, event, count, run, step, low, high, False)
                    tally[s, HAVE_TAKEN] += count > before
            if s == 0 and takes(t, m, -1, step, event, -1):
                if count >= room:
                    return -1
                low, high = m.events[EVENT_LOW, event], m.events[EVENT_HIGH, event]
                before, count = count, propose_windows(t, m, event, count, -1, step, low, high, False)
                observe_openings(tally, count - before)
    return count


@part
def window_low(t: Tables, m: Memory, run: int, event: int) -> int:
    """Return the first window in which a run could take an event; NEVER if WITHIN or its partition forbids it."""
    first = m.runs[RUN_FIRST, run]
    if m.events[EVENT_PART, first] != m.events[EVENT_PART, event] or not is_in_reach(t, m, first, event):
        return NEVER
    return max(m.runs[RUN_LOW, run], m.events[EVENT_LOW, event])


@part
def is_free(t: Tables, variable: int, taken: Bools, consumed: Bools, slot: int) -> bool:
    """Return whether CONSUME lets a run bind the event to a variable."""
    if not t.options[CONSUME]:
        return True
    return not taken[slot] if t.variables[variable, VAR_CONSUMING] else not consumed[slot]


@part
def mark(t: Tables, variable: int, taken: Bools, consumed: Bools, slot: int) -> None:
    """Note that a run has bound the event to a variable."""
    taken[slot] = True
    consumed[slot] |= t.variables[variable, VAR_CONSUMING]


@compiled
def by_birth(t: Tables, m: Memory, event: int) -> tuple[Ints, Ints]:
    """Return the runs that an event tells something, the oldest first, and their states.

    They are those of its partition, and those of others whose time is over: there may come no more events to say so.
    """
    runs = np.empty(m.segments[SEGMENT_SIZE].sum(), np.int64)
    states = np.empty(len(runs), np.int64)
    count = 0
    for s in range(len(t.states)):
        start = m.segments[SEGMENT_START, s]
        for run in range(start, start + m.segments[SEGMENT_SIZE, s]):
            first = m.runs[RUN_FIRST, run]
            is_mine = m.events[EVENT_PART, first] == m.events[EVENT_PART, event]
            if is_mine or not (t.options[BY_COUNT] or is_in_reach(t, m, first, event)):
                runs[count], states[count] = run, s
                count += 1
    births = np.empty(count, np.int64)
    for k in range(count):
        births[k] = m.runs[RUN_BIRTH, runs[k]]
    order = np.argsort(births)
    return runs[:count][order], states[:count][order]


@part
def first_step(t: Tables, m: Memory, run: int, s: int, event: int, taken: Bools, consumed: Bools) -> int:
    """Return the step by which a run takes an event: the first in its order of preference; -1 if it does not."""
    window = m.runs[RUN_LOW, run] if t.options[PER_WINDOW] else -1
    slot = window - m.events[EVENT_LOW, event] if t.options[PER_WINDOW] else 0
    low = max(m.runs[RUN_LOW, run], m.events[EVENT_LOW, event])
    if is_hidden(t, m, s, event) or is_shed_from_all(t, m, event, low, m.runs[RUN_HIGH, run]):
        return -1
    for step in range(t.states[s, STATE_STEP], t.states[s, STATE_STEP_END]):
        v = t.steps[step, STEP_VARIABLE]
        may_take = m.takes[v] and is_free(t, v, taken, consumed, slot)
        if may_take and takes(t, m, run, step, event, window):
            mark(t, v, taken, consumed, slot)
            return step
    return -1


@part
def steps_that_fit(t: Tables, m: Memory, state: int) -> int:
    """Return by how many steps a run in a state may try to take the event."""
    count = 0
    for step in range(t.states[state, STATE_STEP], t.states[state, STATE_STEP_END]):
        count += m.takes[t.steps[step, STEP_VARIABLE]]
    return count


@compiled
def ask_first(t: Tables, m: Memory, event: int, tally: Ints) -> int:
    """FIRST, STRICT: note what each run does: take the event (a step), end (ENDS_*); new runs come last."""
    windows = m.events[EVENT_HIGH, event] - m.events[EVENT_LOW, event] + 1
    pieces = max(1, windows) + 1 if t.options[SHEDS] else 1
    room = m.segments[SEGMENT_SIZE].sum() * pieces + (len(t.steps) + 1) * max(1, windows)
    if room > m.candidates.shape[1]:
        return -1
    slots = max(1, windows) if t.options[PER_WINDOW] else 1
    taken, consumed = np.zeros(slots, np.bool_), np.zeros(slots, np.bool_)
    count = 0
    runs, states = by_birth(t, m, event)
    for k in range(len(runs)):
        run = runs[k]
        low, high = window_low(t, m, run, event), m.runs[RUN_HIGH, run]
        if low > high:
            count = propose(m, count, run, ENDS_BY_TIME, m.runs[RUN_LOW, run], high)
            continue
        step = first_step(t, m, run, states[k], event, taken, consumed)
        if t.options[OBSERVES] and not is_hidden(t, m, states[k], event):
            tally[states[k], WERE_ASKED] += steps_that_fit(t, m, states[k])
            tally[states[k], HAVE_TAKEN] += step >= 0
        if step >= 0:
            count = propose_windows(t, m, event, count, run, step, low, high, False)
            if not t.options[STRICT]:
                count = propose_windows(t, m, event, count, run, STAYS, low, high, True)
        elif t.options[STRICT]:
            count = propose(m, count, run, ENDS_AT_GAP, low, high)
    if windows <= 0 or is_hidden(t, m, 0, event):
        return count
    return ask_openings(t, m, event, taken, consumed, count, tally)


@part
def ask_openings(
    t: Tables, m: Memory, event: int,
    taken: Bools, consumed: Bools, count: int, tally: Ints,
) -> int:  # fmt: skip
    """FIRST, STRICT: note the runs that an event opens, one per variable, and per window where windows differ."""
    for slot in range(len(taken)):
        window = m.events[EVENT_LOW, event] + slot if t.options[PER_WINDOW] else -1
        low = window if t.options[PER_WINDOW] else m.events[EVENT_LOW, event]
        high = window if t.options[PER_WINDOW] else m.events[EVENT_HIGH, event]
        if is_shed_from_all(t, m, event, low, high):
            continue
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
            before, count = count, propose_windows(t, m, event, count, -1, step, low, high, False)
            observe_openings(tally, count - before)
    return count
