"""Negation in the kernel: is there an event where none may be? (docs/language.md, section 2)"""

from __future__ import annotations

from penstock.kernel.compiling import part
from penstock.kernel.counters import is_open
from penstock.kernel.hooking import was_hidden
from penstock.kernel.memory import Memory
from penstock.kernel.values import holds, in_round
from penstock.plan.layout import (
    BY_COUNT,
    CHAIN_EVENT,
    CHAIN_PASSED,
    CHAIN_ROUND,
    CHAIN_VARIABLE,
    COND_REF,
    COND_REF_END,
    EVENT_BEFORE,
    EVENT_HIGH,
    EVENT_LOW,
    EVENT_POS,
    EVENT_TS,
    FIRST,
    NEG_BEFORE,
    NEG_BEFORE_END,
    NEG_DEPTH,
    NEG_DUE,
    NEG_DUE_END,
    NEG_VARIABLE,
    NUMBER,
    REF_DEPTH,
    REF_INDEX,
    REF_NUMBER,
    REF_VARIABLE,
    WITHIN,
)
from penstock.plan.tables import Bools, Tables


@part
def is_in_reach(t: Tables, m: Memory, first: int, event: int) -> bool:
    """Return whether WITHIN lets a run that opened with one event take another."""
    if t.options[BY_COUNT]:
        return bool(m.events[EVENT_POS, event] - m.events[EVENT_POS, first] <= t.options[WITHIN])
    return bool(m.events[EVENT_TS, event] - m.events[EVENT_TS, first] <= t.options[WITHIN])


@part
def forbids(t: Tables, m: Memory, n: int, negation: int, lists: Bools) -> bool:
    """Return whether the last element of the chain, a negated event, satisfies all conditions that name it."""
    for k in range(t.negations[negation, NEG_DUE], t.negations[negation, NEG_DUE_END]):
        if not holds(t, m, n, t.rows[k, 0], lists, n - 1, t.negations[negation, NEG_DEPTH]):
            return False
    return True


@part
def is_decided(t: Tables, m: Memory, n: int, negation: int, instance: int, state: int) -> bool:
    """Return whether what the conditions say about a negated event cannot change any more (FIRST)."""
    for k in range(t.negations[negation, NEG_DUE], t.negations[negation, NEG_DUE_END]):
        condition = t.rows[k, 0]
        for r in range(t.conditions[condition, COND_REF], t.conditions[condition, COND_REF_END]):
            reference = t.rows[r, 0]
            if t.references[reference, REF_VARIABLE] != t.negations[negation, NEG_VARIABLE] and not is_fixed(
                t, m, n, reference, instance, t.negations[negation, NEG_DEPTH], state
            ):
                return False
    return True


@part
def is_fixed(t: Tables, m: Memory, n: int, reference: int, instance: int, depth: int, state: int) -> bool:
    """Return whether what a reference means to a negation before element `instance` cannot change any more."""
    variable, index = t.references[reference, REF_VARIABLE], t.references[reference, REF_INDEX]
    rounds = min(t.references[reference, REF_DEPTH], depth)
    for d in range(rounds):
        if m.chain[CHAIN_ROUND + d, instance] != m.counters[t.loops[variable, d]]:
            return True  # that round is over
    if not is_open(t, m, rounds * len(t.states) + state, variable):
        return True
    if index in (FIRST, NUMBER):
        wanted = t.references[reference, REF_NUMBER] if index == NUMBER else 1
        for k in range(n):
            if m.chain[CHAIN_VARIABLE, k] == variable:
                wanted -= 1
        return bool(wanted <= 0)
    return False


@part
def last_before(t: Tables, m: Memory, n: int, negation: int, instance: int) -> int:
    """Return the last element bound before a negation whose next element is `instance`; -1 if none is."""
    for k in range(n - 1, -1, -1):
        for b in range(t.negations[negation, NEG_BEFORE], t.negations[negation, NEG_BEFORE_END]):
            if t.rows[b, 0] == m.chain[CHAIN_VARIABLE, k] and (instance < 0 or in_round(m, k, instance, t.rows[b, 1])):
                return k
    return -1


@part
def latest_forbidding(
    t: Tables,
    m: Memory,
    n: int,
    negation: int,
    instance: int,
    lists: Bools,
    window: int,
) -> int:
    """Return the latest event before element `instance` that a negation forbids, in its span; -1 if there is none.

    If nothing is bound before the negation, the span reaches back by WITHIN from the last element. With a window (not
    -1), only the window's events count.
    """
    event = m.chain[CHAIN_EVENT, instance]
    behind = last_before(t, m, n, negation, instance)
    low_pos, low_ts = -1, -(2**62)
    if behind >= 0:
        low_pos = m.events[EVENT_POS, m.chain[CHAIN_EVENT, behind]] + 1
    elif t.options[BY_COUNT]:
        low_pos = m.events[EVENT_POS, m.chain[CHAIN_EVENT, n - 1]] - t.options[WITHIN]
    else:
        low_ts = m.events[EVENT_TS, m.chain[CHAIN_EVENT, n - 1]] - t.options[WITHIN]
    candidate = m.events[EVENT_BEFORE + negation, event]
    while candidate >= 0 and m.events[EVENT_POS, candidate] >= low_pos and m.events[EVENT_TS, candidate] >= low_ts:
        is_seen = m.fits[t.negations[negation, NEG_VARIABLE], candidate]  # not if it is shed
        is_seen = is_seen and not was_hidden(t, m, n, candidate)
        if is_seen and (window < 0 or m.events[EVENT_LOW, candidate] <= window <= m.events[EVENT_HIGH, candidate]):
            m.chain[CHAIN_EVENT, n], m.chain[CHAIN_VARIABLE, n], m.chain[CHAIN_PASSED, n] = (
                candidate,
                t.negations[negation, NEG_VARIABLE],
                0,
            )
            for d in range(t.loops.shape[1]):
                m.chain[CHAIN_ROUND + d, n] = m.chain[CHAIN_ROUND + d, instance]
            if forbids(t, m, n + 1, negation, lists):
                return candidate
        candidate = m.events[EVENT_BEFORE + negation, candidate]
    return -1


@part
def spoiled(t: Tables, m: Memory, n: int, way: int, negation: int, event: int, high: int) -> int:
    """Return the last window up to `high` that an event after a chain does not spoil, by a negation at its end."""
    if not m.fits[t.negations[negation, NEG_VARIABLE], event] or m.events[EVENT_LOW, event] > high:
        return high
    if not is_in_reach(t, m, m.chain[CHAIN_EVENT, 0], event) or was_hidden(t, m, n, event):
        return high
    m.chain[CHAIN_EVENT, n], m.chain[CHAIN_VARIABLE, n] = event, t.negations[negation, NEG_VARIABLE]
    m.chain[CHAIN_PASSED, n] = 0
    for d in range(t.loops.shape[1]):
        m.chain[CHAIN_ROUND + d, n] = 0
    if forbids(t, m, n + 1, negation, t.lists[len(t.states) + way]):
        return m.events[EVENT_LOW, event] - 1
    return high


@part
def spoiled_until(t: Tables, m: Memory, n: int, way: int, negation: int, now: int, high: int) -> int:
    """Return the last window up to `high` that none of the events after a chain, until `now`, spoils."""
    last = m.events[EVENT_POS, m.chain[CHAIN_EVENT, n - 1]]
    event = now
    while event >= 0 and m.events[EVENT_POS, event] > last:
        high = spoiled(t, m, n, way, negation, event, high)
        event = m.events[EVENT_BEFORE + negation, event]
    return high
