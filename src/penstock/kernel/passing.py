"""The passing of time without events: what WITHIN ends, and what it makes true."""

from __future__ import annotations

from penstock.kernel.asking import unroll
from penstock.kernel.compiling import compiled, part
from penstock.kernel.counters import load_counters
from penstock.kernel.machine import end, note, sweep
from penstock.kernel.memory import Memory
from penstock.plan.layout import (
    BY_RUNS,
    EVENT_PART,
    EVENT_TS,
    GONE,
    RUN_FIRST,
    RUN_HIGH,
    RUN_LENGTH,
    RUN_LOW,
    RUN_NODE,
    SEGMENT_SIZE,
    SEGMENT_START,
    SIZE_WAITING,
    WAIT_FIRST,
    WAIT_HIGH,
    WAIT_LENGTH,
    WAIT_LOW,
    WAIT_NODE,
    WAIT_WAY,
    WITHIN,
)
from penstock.plan.tables import Tables


@part
def is_over(t: Tables, m: Memory, first: int, ts: int) -> bool:
    """Return whether no event at a time or later is within reach of a first event."""
    return m.events[EVENT_TS, first] + t.options[WITHIN] < ts


@part
def end_runs(t: Tables, m: Memory, ts: int) -> None:
    """FIRST, STRICT: end the runs that can take no event at a time or later; some are matches then."""
    for s in range(len(t.states)):
        start = m.segments[SEGMENT_START, s]
        for run in range(start, start + m.segments[SEGMENT_SIZE, s]):
            if not is_over(t, m, m.runs[RUN_FIRST, run], ts):
                continue
            n = m.runs[RUN_LENGTH, run]
            load_counters(t, m, run)
            unroll(t, m, m.runs[RUN_NODE, run], n)
            now = m.newest[m.events[EVENT_PART, m.runs[RUN_FIRST, run]]]
            end(t, m, s, m.runs[RUN_NODE, run], n, m.runs[RUN_LOW, run], m.runs[RUN_HIGH, run], -1, 0.0, now)
            m.runs[RUN_NODE, run] = GONE
    sweep(t, m, -1)


@compiled
def pass_time(t: Tables, m: Memory, ts: int) -> None:
    """Let time come to `ts`. There must be room for all runs and all that waits; WITHIN must be a time."""
    if t.options[BY_RUNS]:
        end_runs(t, m, ts)
    kept = 0
    for q in range(m.sizes[SIZE_WAITING]):
        node, first, n = m.waiting[WAIT_NODE, q], m.waiting[WAIT_FIRST, q], m.waiting[WAIT_LENGTH, q]
        way, low, high = m.waiting[WAIT_WAY, q], m.waiting[WAIT_LOW, q], m.waiting[WAIT_HIGH, q]
        if is_over(t, m, first, ts):
            note(t, m, node, n, first, low, high, -1, 0.0)
        else:
            m.waiting[WAIT_NODE, kept], m.waiting[WAIT_FIRST, kept], m.waiting[WAIT_LENGTH, kept] = node, first, n
            m.waiting[WAIT_WAY, kept], m.waiting[WAIT_LOW, kept], m.waiting[WAIT_HIGH, kept] = way, low, high
            kept += 1
    m.sizes[SIZE_WAITING] = kept
