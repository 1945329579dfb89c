"""Hooks in the general kernel: what runs do not see, from which windows an event is shed, what is counted.

Each asks its option first, so that nothing is looked up where no hook is given.
"""

from __future__ import annotations

from penstock.kernel.compiling import part
from penstock.kernel.memory import Memory
from penstock.plan.layout import (
    CAND_HIGH,
    CAND_LOW,
    CAND_RUN,
    CAND_STEP,
    CHAIN_EVENT,
    CHAIN_STATE,
    EVENT_LOW,
    HAVE_TAKEN,
    HOOK_CELL,
    HOOK_SHED,
    HOOKS_FROM,
    SHEDS,
    SKIPS,
    WERE_ASKED,
)
from penstock.plan.tables import Ints, Tables


@part
def is_hidden(t: Tables, m: Memory, state: int, event: int) -> bool:
    """Return whether runs in a state do not see an event."""
    return bool(t.options[SKIPS]) and bool(m.skips[state, event])


@part
def was_hidden(t: Tables, m: Memory, n: int, event: int) -> bool:
    """Return whether the run whose chain is at hand did not see an event: in the state that it was in then."""
    if not t.options[SKIPS]:
        return False
    k = n - 1
    while k >= 0 and m.chain[CHAIN_EVENT, k] >= event:
        k -= 1
    return bool(m.skips[m.chain[CHAIN_STATE, k] if k >= 0 else 0, event])


@part
def is_shed(t: Tables, m: Memory, event: int, window: int) -> bool:
    """Return whether an event is shed from one of its windows."""
    if not t.options[SHEDS]:
        return False
    bits = m.hooks[HOOK_SHED, event - t.options[HOOKS_FROM]]
    return bool((bits >> (window - m.events[EVENT_LOW, event])) & 1)


@part
def is_shed_from_all(t: Tables, m: Memory, event: int, low: int, high: int) -> bool:
    """Return whether an event is shed from all windows low .. high."""
    if not t.options[SHEDS]:
        return False
    for window in range(low, high + 1):  # noqa: SIM110 - numba compiles no generators
        if not is_shed(t, m, event, window):
            return False
    return True


@part
def propose(m: Memory, count: int, run: int, step: int, low: int, high: int) -> int:
    """Note a candidate; return how many there are then."""
    m.candidates[CAND_RUN, count], m.candidates[CAND_STEP, count] = run, step
    m.candidates[CAND_LOW, count], m.candidates[CAND_HIGH, count] = low, high
    return count + 1


@part
def propose_windows(
    t: Tables, m: Memory, event: int, count: int,
    run: int, step: int, low: int, high: int, is_kept: bool,
) -> int:  # fmt: skip
    """Note a candidate for each stretch of windows from which the event is not shed; or (`is_kept`) is shed."""
    if not t.options[SHEDS]:
        return count if is_kept else propose(m, count, run, step, low, high)
    start = low
    for window in range(low, high + 2):
        if window > high or is_shed(t, m, event, window) != is_kept:
            if window > start:
                count = propose(m, count, run, step, start, window - 1)
            start = window + 1
    return count


@part
def observe_openings(tally: Ints, count: int) -> None:
    """Count the runs that an event opens: whether it would is not asked of any run, so both counts are the same."""
    tally[0, WERE_ASKED] += count
    tally[0, HAVE_TAKEN] += count


@part
def add_observed(t: Tables, m: Memory, event: int, tally: Ints) -> None:
    """Add what happened to an event, per state, to its cell."""
    cell = m.hooks[HOOK_CELL, event - t.options[HOOKS_FROM]]
    if cell >= 0:
        for s in range(len(t.states)):
            for k in range(tally.shape[1]):
                m.observed[cell, s, k] += tally[s, k]
