"""Plain queries: negated events end runs; where an event is shed from some windows, runs live on in these."""

from __future__ import annotations

from penstock.kernel.asking_plain import is_shed
from penstock.kernel.compiling import inlined, part
from penstock.kernel.ending import first_window, note_over, note_windows
from penstock.kernel.indexing import add_to_index
from penstock.kernel.lean import hook
from penstock.kernel.plain_memory import PlainMemory
from penstock.kernel.scanning import scan
from penstock.kernel.tallying import leave, uncount
from penstock.plan.layout import (
    ABANDONED,
    EVENT_LOW,
    HAS_BATCH,
    HAS_CREATED,
    HELD_NODE,
    HELD_SEEN,
    LINK_EVENT,
    PICK_RUN,
    PLAIN_HIGH,
    PLAIN_INDEX,
    PLAIN_KILL,
    PLAIN_KILL_END,
    PLAIN_LOW,
    PLAIN_MOVES,
    PLAIN_REPORTS,
    PLAIN_SHEDS,
    PLAIN_SKIPS,
    PLAIN_TALLIES,
    PLAIN_VARIABLE,
    SEGMENT_SIZE,
    SEGMENT_START,
    TALLY_KEPT,
    TIMED_OUT,
)
from penstock.plan.plain import PlainTables


@part
def copy_run(t: PlainTables, m: PlainMemory, state: int, run: int, low: int, high: int) -> int:
    """Make a copy of a run that lives in windows low .. high; return its place."""
    to = m.segments[SEGMENT_START, state] + m.segments[SEGMENT_SIZE, state]
    m.segments[SEGMENT_SIZE, state] += 1
    m.sizes[HAS_CREATED] += 1
    for k in range(m.runs.shape[0]):
        m.runs[k, to] = m.runs[k, run]
    for k in range(m.registers.shape[0]):
        m.registers[k, to] = m.registers[k, run]
    m.registers[t.options[PLAIN_LOW], to] = low
    m.registers[t.options[PLAIN_HIGH], to] = high
    if t.states[state, PLAIN_INDEX] >= 0:
        add_to_index(t, m, state, to, to + 1)
    return int(to)


@inlined
def follow_taken(t: PlainTables, m: PlainMemory, run: int, low: int, high: int, taken: int) -> None:
    """EACH: say again, for a run that lives in other windows now, from which on something was taken from it."""
    if not t.options[PLAIN_MOVES]:
        m.runs[HELD_SEEN, run] = max(0, taken - low) if 0 <= taken <= high else -1


@part
def kill_in_windows(t: PlainTables, m: PlainMemory, state: int, run: int, event: int) -> None:
    """Let a run end in the windows that a negated event is not shed from, and go on in those from which it is."""
    base, start = m.events[EVENT_LOW, event], first_window(t, m, run)
    low, high = max(start, base), base
    if t.options[PLAIN_LOW] >= 0:
        high = int(m.registers[t.options[PLAIN_HIGH], run])
    seen = -1 if t.options[PLAIN_MOVES] else m.runs[HELD_SEEN, run]
    taken = start + seen if seen >= 0 else -1
    kept_low, kept_high, since = -1, -1, low
    for window in range(low, high + 1):
        is_kept = is_shed(t, m, event, window - base)
        if window < high and is_kept == is_shed(t, m, event, window + 1 - base):
            continue
        if not is_kept:
            if hook(t.hooks, PLAIN_REPORTS):
                note_windows(t, m, state, run, since, window, ABANDONED, event)
        elif kept_low < 0:
            kept_low, kept_high = since, window
        else:
            follow_taken(t, m, copy_run(t, m, state, run, since, window), since, window, taken)
        since = window + 1
    if kept_low == low and kept_high == high:
        return
    if hook(t.hooks, PLAIN_REPORTS):
        note_windows(t, m, state, run, start, base - 1, TIMED_OUT, -1)
    if kept_low < 0:
        leave(m, state, run)
    else:
        m.registers[t.options[PLAIN_LOW], run], m.registers[t.options[PLAIN_HIGH], run] = kept_low, kept_high
        follow_taken(t, m, run, kept_low, kept_high, taken)


@inlined
def kill_noted(t: PlainTables, m: PlainMemory, state: int, run: int, event: int, is_noted: bool | None) -> None:
    """Let a run leave that an event ends; `is_noted` is True or None, see penstock.kernel.plain."""
    if is_noted is not None:
        if hook(t.hooks, PLAIN_SHEDS):
            kill_in_windows(t, m, state, run, event)
            return
        if hook(t.hooks, PLAIN_REPORTS):
            note_over(t, m, state, run, event)
        if hook(t.hooks, PLAIN_TALLIES) == TALLY_KEPT:
            uncount(m, state, run)
    leave(m, state, run)


@inlined
def kill_runs(t: PlainTables, m: PlainMemory, event: int, is_noted: bool | None) -> None:
    """Let the runs leave that a negated event ends; not those that have just taken this event."""
    for s in range(1, len(t.states)):
        for kill in range(t.states[s, PLAIN_KILL], t.states[s, PLAIN_KILL_END]):
            is_hidden = hook(t.hooks, PLAIN_SKIPS) and m.skips[s, event - m.sizes[HAS_BATCH]]
            if m.segments[SEGMENT_SIZE, s] == 0 or is_hidden or not m.fits[t.steps[kill, PLAIN_VARIABLE], event]:
                continue
            for c in range(scan(t, m, s, kill, event, 0)):
                run = m.candidates[PICK_RUN, c]
                if m.nodes[LINK_EVENT, m.runs[HELD_NODE, run]] == event:
                    continue
                kill_noted(t, m, s, run, event, is_noted)
