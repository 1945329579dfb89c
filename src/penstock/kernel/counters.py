"""Rounds of loops and members of bags: the part of a run's state that is no state of the automaton."""

from __future__ import annotations

from penstock.kernel.compiling import part
from penstock.kernel.memory import Memory
from penstock.plan.layout import (
    COUNTER_INNER,
    COUNTER_INNER_END,
    ENTER_LOOP,
    OPEN,
    OPEN_BY_BAG,
    RUN_COUNTER,
    STATE_STEP,
    STATE_STEP_END,
    VAR_BAG,
    VAR_BIT,
)
from penstock.plan.tables import Tables


@part
def load_counters(t: Tables, m: Memory, run: int) -> None:
    """Take the counters of a run (-1: of a new one) to hand."""
    for k in range(len(t.counters)):
        m.counters[k] = 0 if run < 0 else m.runs[RUN_COUNTER + k, run]


@part
def try_ops(t: Tables, m: Memory, start: int, stop: int) -> bool:
    """Do the operations of a step on the counters at hand; return False if one refuses."""
    for k in range(start, stop):
        what, counter = t.rows[k, 0], t.rows[k, 1]
        if what == ENTER_LOOP:
            m.counters[counter] += 1
            for i in range(t.counters[counter, COUNTER_INNER], t.counters[counter, COUNTER_INNER_END]):
                m.counters[t.rows[i, 0]] = 0
        else:
            bit = 1 << t.rows[k, 2]
            if m.counters[counter] & bit:
                return False
            m.counters[counter] |= bit
    return True


@part
def is_open(t: Tables, m: Memory, row: int, variable: int) -> bool:
    """Return whether the run whose counters are at hand may still bind a variable, by a row of `Tables.open`."""
    if t.open[row, variable] == OPEN_BY_BAG:
        return not (m.counters[t.variables[variable, VAR_BAG]] >> t.variables[variable, VAR_BIT]) & 1
    return bool(t.open[row, variable] == OPEN)


@part
def can_go_on(t: Tables, state: int) -> bool:
    """Return whether runs in a state may take further events. A bag that needs members always has some left."""
    return bool(t.states[state, STATE_STEP] < t.states[state, STATE_STEP_END])
