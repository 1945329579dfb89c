"""Rounds of loops and members of bags: the part of a run's state that is no state of the automaton."""

from __future__ import annotations

from penstock.kernel.compiling import compiled
from penstock.kernel.memory import Memory
from penstock.plan.layout import (
    COUNTER_INNER,
    COUNTER_INNER_END,
    COUNTER_LIMIT,
    COUNTER_LOW,
    ENTER_LOOP,
    LEAVE_LOOP,
    RUN_COUNTER,
    STATE_STEP,
    STATE_STEP_END,
    STEP_OP,
    STEP_OP_END,
)
from penstock.plan.tables import Tables


@compiled
def load_counters(t: Tables, m: Memory, run: int) -> None:
    """Copy the counters of a run (-1: of a new one) to the first row."""
    for k in range(len(t.counters)):
        m.counters[0, k] = 0 if run < 0 else m.runs[RUN_COUNTER + k, run]


@compiled
def try_ops(t: Tables, m: Memory, start: int, stop: int, row: int) -> bool:
    """Do the operations of a step or an ending on a row of counters; return False if one refuses."""
    for k in range(start, stop):
        what, counter = t.rows[k, 0], t.rows[k, 1]
        if what == LEAVE_LOOP:
            if m.counters[row, counter] < t.counters[counter, COUNTER_LOW]:
                return False
        elif what == ENTER_LOOP:
            limit = t.counters[counter, COUNTER_LIMIT]
            if limit >= 0 and m.counters[row, counter] >= limit:
                return False
            m.counters[row, counter] += 1
            for i in range(t.counters[counter, COUNTER_INNER], t.counters[counter, COUNTER_INNER_END]):
                m.counters[row, t.rows[i, 0]] = 0
        else:
            bit = 1 << t.rows[k, 2]
            if m.counters[row, counter] & bit:
                return False
            m.counters[row, counter] |= bit
    return True


@compiled
def copy_counters(t: Tables, m: Memory) -> None:
    """Copy the first row of counters to the second, to try something on it."""
    for k in range(len(t.counters)):
        m.counters[1, k] = m.counters[0, k]


@compiled
def can_go_on(t: Tables, m: Memory, state: int) -> bool:
    """Return whether a run with the counters of the first row may take further events."""
    for k in range(t.states[state, STATE_STEP], t.states[state, STATE_STEP_END]):
        copy_counters(t, m)
        if try_ops(t, m, t.steps[k, STEP_OP], t.steps[k, STEP_OP_END], 1):
            return True
    return False
