"""Which runs of a state can take an event? The innermost loop of the plain kernel.

What a step asks becomes a list of *bounds*: register, least, most. They are worked out once per event; then a block of
runs is compared with them, column by column, in vector instructions (penstock.kernel.bits).
"""

from __future__ import annotations

import math

import numpy as np

from penstock.kernel.bits import RUNS, at_least, at_most, between, less, lowest, same
from penstock.kernel.compiling import inlined
from penstock.kernel.filtering import filter_bounds, filter_members, filter_rest, fold_rest, is_pair, kept_if
from penstock.kernel.folding import ALWAYS
from penstock.kernel.indexing import bucket, end_of, shorten
from penstock.kernel.lanes import operand
from penstock.kernel.lean import hook
from penstock.kernel.plain_memory import STRIDE, PlainMemory
from penstock.kernel.stack import is_text, run_program
from penstock.plan.joins import DOWN, UP
from penstock.plan.layout import (
    ADD,
    CONJ_CODE,
    CONJ_CODE_END,
    CONJ_COLUMN,
    CONJ_LOAD,
    CONJ_LOAD_END,
    CONJ_OP,
    CONJ_SIDE,
    CONJ_SLOT,
    CONJ_WHOLE,
    CONST,
    EQ,
    EVENT_LOW,
    EVENT_PART,
    EVENT_POS,
    EVENT_TS,
    GE,
    GT,
    HAS_CHECKS,
    HELD_NEXT,
    LAST_ASK,
    LAST_BOUNDS,
    LAST_EVENT,
    LE,
    LT,
    NE,
    PICK_ORDER,
    PICK_RUN,
    PLAIN_ASK,
    PLAIN_BIT,
    PLAIN_BY_COUNT,
    PLAIN_CONJUNCT,
    PLAIN_CONJUNCT_END,
    PLAIN_HIGH,
    PLAIN_INDEX,
    PLAIN_KEY,
    PLAIN_LAST,
    PLAIN_MASK,
    PLAIN_PART,
    PLAIN_TALLIES,
    PLAIN_WITHIN,
    REACH,
    REF,
    SEGMENT_PAST,
    SEGMENT_ROOM,
    SEGMENT_SCANS,
    SEGMENT_SIZE,
    SEGMENT_START,
    SUB,
)
from penstock.plan.plain import PlainTables
from penstock.plan.tables import Floats, Ints

_NOBODY, _ONE = np.uint64(0), np.uint64(1)


@inlined
def reach_of(t: PlainTables, m: PlainMemory, event: int) -> int:
    """Return what WITHIN measures of an event: its time, or its position."""
    return m.events[EVENT_POS, event] if t.options[PLAIN_BY_COUNT] else m.events[EVENT_TS, event]


@inlined
def side_of_event(t: PlainTables, m: PlainMemory, conjunct: int, event: int) -> float:
    """Return what the event's side of an interval is worth."""
    column, side = t.conjuncts[conjunct, CONJ_COLUMN], t.conjuncts[conjunct, CONJ_SIDE]
    if column >= 0:
        return m.columns[column, event]
    if m.side_events[side] != event:
        m.sides[side], m.side_events[side] = work_out_side(t, m, conjunct, event), event
    return m.sides[side]


@inlined
def forget_sides(m: PlainMemory) -> None:
    """Forget what was asked of events: they may have other places now."""
    m.last[LAST_ASK] = -1
    for side in range(len(m.side_events)):
        m.side_events[side] = -1


@inlined
def work_out_side(t: PlainTables, m: PlainMemory, conjunct: int, event: int) -> float:
    """Work out what the event's side of an interval is worth."""
    for k in range(t.conjuncts[conjunct, CONJ_LOAD], t.conjuncts[conjunct, CONJ_LOAD_END]):
        if t.rows[k, 1] == 0:
            m.values[t.rows[k, 0]] = m.columns[t.rows[k, 2], event]
    start, stop = t.conjuncts[conjunct, CONJ_CODE], t.conjuncts[conjunct, CONJ_CODE_END]
    if is_rounded_pair(t.rows, start, stop):
        return rounded_pair(t.rows, start, stop, m.values, m.constants)
    return run_program(t.rows, start, stop, m.values, m.constants, m.ranks, m.stack)


@inlined
def is_rounded_pair(rows: Ints, start: int, stop: int) -> bool:
    """Return whether a program is a sum or a difference, perhaps rounded: most sides that are no columns are."""
    is_pair = 3 <= stop - start <= 4 and rows[start + 1, 0] in (REF, CONST) and rows[start + 2, 0] in (ADD, SUB)
    return is_pair and (stop - start == 3 or rows[start + 3, 0] in (UP, DOWN))


@inlined
def rounded_pair(rows: Ints, start: int, stop: int, values: Floats, constants: Floats) -> float:
    """Return the value of such a program; the machine takes three times as long."""
    x = constants[rows[start, 1]] if rows[start, 0] == CONST else values[rows[start, 1]]
    y = constants[rows[start + 1, 1]] if rows[start + 1, 0] == CONST else values[rows[start + 1, 1]]
    if is_text(x) or is_text(y):
        return math.nan
    z = x + y if rows[start + 2, 0] == ADD else x - y
    if stop - start == 4:
        z = np.nextafter(z, math.inf if rows[start + 3, 0] == UP else -math.inf)
    return z


@inlined
def bound(m: PlainMemory, count: int, slot: int, least: float, most: float) -> int:
    """Add a bound; return how many there are then."""
    m.bounds[count, 0], m.bounds[count, 1], m.bounds[count, 2] = slot, least, most
    return count + 1


@inlined
def bound_by(m: PlainMemory, count: int, slot: int, op: int, x: float) -> int:
    """Add the bound `register op x`, or narrow that on the same register.

    Returns how many there are then, -1 if nothing fulfils them.
    """
    if math.isnan(x):
        return -1
    if op in (LT, GT):
        x = np.nextafter(x, -math.inf if op == LT else math.inf)
        if math.isinf(x) and (x < 0) == (op == LT):
            return -1  # nothing is below -inf or above inf; the largest number is below inf
    least, most = -math.inf if op in (LT, LE) else x, math.inf if op in (GT, GE) else x
    for b in range(1, count):
        if int(m.bounds[b, 0]) == slot:
            m.bounds[b, 1], m.bounds[b, 2] = max(m.bounds[b, 1], least), min(m.bounds[b, 2], most)
            return count
    return bound(m, count, slot, least, most)


@inlined
def bounds_to_ask(t: PlainTables, m: PlainMemory, step: int, event: int, by_part: bool, key: int) -> int:
    """Like `bounds_of`, but if they were just worked out for a step from another state, they are still there."""
    if m.last[LAST_ASK] != t.steps[step, PLAIN_ASK] or m.last[LAST_EVENT] != event:
        m.last[LAST_ASK], m.last[LAST_EVENT] = t.steps[step, PLAIN_ASK], event
        m.last[LAST_BOUNDS] = bounds_of(t, m, step, event, by_part, key)
    return m.last[LAST_BOUNDS]


@inlined
def bounds_of(t: PlainTables, m: PlainMemory, step: int, event: int, by_part: bool, key: int) -> int:
    """Work out the bounds of a step for an event; return how many, -1 if no run can take it.

    Without what the runs are found by in an index: the partition if `by_part`, or the conjunct `key`.
    """
    count = bound(m, 0, REACH, float(reach_of(t, m, event) - t.options[PLAIN_WITHIN]), math.inf)
    if t.options[PLAIN_HIGH] >= 0:
        count = bound(m, count, t.options[PLAIN_HIGH], float(m.events[EVENT_LOW, event]), math.inf)
    if t.options[PLAIN_PART] >= 0 and not by_part:
        part = float(m.events[EVENT_PART, event])
        count = bound(m, count, t.options[PLAIN_PART], part, part)
    if t.options[PLAIN_LAST] >= 0:
        before = float(m.events[EVENT_POS, event] - 1)
        count = bound(m, count, t.options[PLAIN_LAST], before, before)
    for k in range(t.steps[step, PLAIN_CONJUNCT], t.steps[step, PLAIN_CONJUNCT_END]):
        if t.conjuncts[k, CONJ_SLOT] >= 0 and m.exact[k] and k != key:
            count = bound_by(
                m, count, t.conjuncts[k, CONJ_SLOT], t.conjuncts[k, CONJ_OP], side_of_event(t, m, k, event)
            )
            if count < 0:
                return -1
    return count


@inlined
def pass_over(m: PlainMemory, state: int) -> int:
    """Return how many of the first runs of a state have left or are out of reach of an event, and so of all later ones.

    Runs are made in the order of time, so most that are out of reach are among the first.
    """
    past, size = m.segments[SEGMENT_PAST, state], m.segments[SEGMENT_SIZE, state]
    reach, least, start = m.registers[REACH], m.bounds[0, 1], m.segments[SEGMENT_START, state]
    while past < size and not reach[start + past] >= least:
        past += 1
    m.segments[SEGMENT_PAST, state] = past
    return past & -8  # vectors that begin with a line of the cache are read faster


@inlined
def take_in(t: PlainTables, m: PlainMemory, step: int, event: int, bounds: int) -> tuple[int, int]:
    """Take in among the bounds what an event leaves of conditions that are no intervals, if it is one comparison.

    Returns how many bounds there are then, -1 if nothing fulfils them, and how many pairs of registers to compare.
    """
    pairs = 0
    if not m.folds[step]:
        return bounds, pairs
    for k in range(t.steps[step, PLAIN_CONJUNCT], t.steps[step, PLAIN_CONJUNCT_END]):
        start = t.conjuncts[k, CONJ_WHOLE]
        if not m.foldable[k] or m.lengths[k] <= 0 or not is_pair(m, m.left, (start, start + m.lengths[k])):
            continue
        loads, op = (t.conjuncts[k, CONJ_LOAD], t.conjuncts[k, CONJ_LOAD_END]), m.left[start + 2, 0]
        left, x = operand(t, m, m.left, m.known, loads, start, event)
        right, y = operand(t, m, m.left, m.known, loads, start + 1, event)
        if left >= 0 and right >= 0:
            m.pairs[pairs, 0], m.pairs[pairs, 1], m.pairs[pairs, 2] = left, right, op
            pairs += 1
        elif op != NE:
            slot, op, x = (left, op, y) if left >= 0 else (right, mirrored(op), x)
            m.last[LAST_ASK] = -1
            bounds = bound_by(m, bounds, slot, op, x)
            if bounds < 0:
                return bounds, pairs
        else:
            continue
        m.lengths[k] = ALWAYS  # nothing is left to ask then
    return bounds, pairs


@inlined
def mirrored(op: int) -> int:
    """Return what a comparison is if its sides change places: LT, LE, GT and GE are numbered in this order."""
    return op if op == EQ else (op + 2 if op <= LE else op - 2)


@inlined
def in_bounds(m: PlainMemory, slot: int, least: float, most: float, at: int) -> np.uint64:
    """Return of which of the runs from `at` on a register is in an interval, as bits; most have one side only."""
    if most == math.inf:
        return at_least(m.registers, slot, at, least)
    return at_most(m.registers, slot, at, most) if least == -math.inf else between(m.registers, slot, at, least, most)


@inlined
def as_pair(m: PlainMemory, pair: int, at: int) -> np.uint64:
    """Return of which of the runs from `at` on two registers compare as they must, as bits."""
    left, right, (if_less, if_same, if_more) = m.pairs[pair, 0], m.pairs[pair, 1], kept_if(m.pairs[pair, 2])
    found = _NOBODY
    if if_less:
        found |= less(m.registers, left, right, at)
    if if_same:
        found |= same(m.registers, left, right, at)
    if if_more:
        found |= less(m.registers, right, left, at)
    return found


@inlined
def pick_out(picked: Ints, found: np.uint64, at: int, count: int) -> int:
    """Add the runs from `at` on whose bits are set to the candidates; return how many there are then."""
    while found != _NOBODY:
        picked[count] = at + lowest(found)
        found &= found - _ONE
        count += 1
    return count


@inlined
def scan_all(m: PlainMemory, start: int, stop: int, bounds: int, pairs: int, count: int) -> int:
    """Add the runs start .. stop-1 that fulfil all bounds to the candidates; return how many there are then.

    Mostly none of RUNS fulfils the first bound after that by time; then nothing else is asked.

    Args:
        m: the memory.
        start: the first run.
        stop: where the runs end.
        bounds: how many bounds there are.
        pairs: how many pairs of registers are compared.
        count: how many candidates there are.
    """
    reached, picked, first = m.bounds[0, 1], m.candidates[PICK_RUN], min(1, bounds - 1)
    slot, least, most = int(m.bounds[first, 0]), m.bounds[first, 1], m.bounds[first, 2]
    for at in range(start, stop, RUNS):
        found = in_bounds(m, slot, least, most, at)
        if found == _NOBODY:
            continue
        if first > 0:
            found &= at_least(m.registers, REACH, at, reached)
        for b in range(2, bounds):
            found &= in_bounds(m, int(m.bounds[b, 0]), m.bounds[b, 1], m.bounds[b, 2], at)
        for pair in range(pairs):
            found &= as_pair(m, pair, at)
        if stop - at < RUNS:  # behind the last run is anything
            found &= (_ONE << np.uint64(stop - at)) - _ONE
        count = pick_out(picked, found, at, count)
    return count


@inlined
def list_group(listed: Ints, count: int, start: int, stop: int) -> int:
    """List neighbours, the newest first as in the whole chain, however it is parted into groups.

    Places behind them are written, too: most groups take one round then, and which do not need not be guessed.
    Returns how many are listed then.
    """
    last = stop - 1
    while last >= start:
        for k in range(STRIDE):
            listed[count + k] = last - k
        count += min(STRIDE, last - start + 1)
        last -= STRIDE
    return count


@inlined
def scan_index(t: PlainTables, m: PlainMemory, state: int, step: int, key: float, bounds: int, first: int) -> int:
    """Like `scan_all`, for the runs of a state that may have a key; not those that have the step's member.

    The oldest become candidates first: so those that will be over first stand first in the group that they become, and
    can be cut off it.
    """
    index, count, before, checks = t.states[state, PLAIN_INDEX], 0, -1, 0
    head = bucket(key, m.segments[SEGMENT_START, state], m.segments[SEGMENT_ROOM, state])
    keys, reach, following, listed = m.registers[index], m.registers[REACH], m.runs[HELD_NEXT], m.candidates[PICK_ORDER]
    least, group = m.bounds[0, 1], m.heads[head]
    while group >= 0:
        start, end = group >> 1, end_of(following, group)
        alive, after = start, following[start]
        checks += end - start
        if keys[start] == key:  # other keys may be in the same bucket
            while alive < end and not reach[alive] >= least:
                alive += 1
            count = list_group(listed, count, alive, end)
        if alive > start and not hook(t.hooks, PLAIN_TALLIES):  # they are over for good; else the work is accounted for
            shorten(m, head, before, alive, end, after)
        before = before if alive == end else alive
        group = after
    m.sizes[HAS_CHECKS] += checks
    members, bit, kept = m.registers[max(t.steps[step, PLAIN_MASK], 0)], t.steps[step, PLAIN_BIT], first
    picked = m.candidates[PICK_RUN]
    for c in range(count - 1, -1, -1):
        run = listed[c]
        picked[kept] = run
        kept += int((reach[run] >= least) & ((int(members[run]) & bit) == 0))
    return filter_bounds(m, index, key, bounds, first, kept)


@inlined
def scan(t: PlainTables, m: PlainMemory, state: int, step: int, event: int, first: int) -> int:
    """Put the runs of a state that can take an event by a step behind `first` candidates; return how many in all."""
    index = t.states[state, PLAIN_INDEX]
    by_part, key = index >= 0 and index == t.options[PLAIN_PART], t.steps[step, PLAIN_KEY]
    bounds = bounds_to_ask(t, m, step, event, by_part, key)
    if bounds < 0 or (not fold_rest(t, m, step, event) and not hook(t.hooks, PLAIN_TALLIES)):
        return first
    start, size = m.segments[SEGMENT_START, state], m.segments[SEGMENT_SIZE, state]
    if by_part or key >= 0:
        wanted = float(m.events[EVENT_PART, event]) if by_part else side_of_event(t, m, key, event)
        count = scan_index(t, m, state, step, wanted, bounds, first)
    else:
        past = 0 if hook(t.hooks, PLAIN_TALLIES) else pass_over(m, state)  # where the work is accounted for, as ever
        m.sizes[HAS_CHECKS] += size - past
        m.segments[SEGMENT_SCANS, state] += 1
        bounds, pairs = take_in(t, m, step, event, bounds)
        if bounds < 0:
            return first
        count = scan_all(m, start + past, start + size, bounds, pairs, first)
        if t.steps[step, PLAIN_MASK] >= 0:
            count = filter_members(m, t.steps[step, PLAIN_MASK], t.steps[step, PLAIN_BIT], first, count)
    return filter_rest(t, m, step, event, first, count)
