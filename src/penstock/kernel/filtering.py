"""Which of some runs fulfil the conditions that are no intervals, and what else is asked run by run."""

from __future__ import annotations

from penstock.kernel.compiling import inlined, part
from penstock.kernel.folding import ALWAYS, NEVER, fold
from penstock.kernel.lanes import operand, run_lanes
from penstock.kernel.plain_memory import BLOCK, PlainMemory
from penstock.kernel.stack import run_program
from penstock.plan.layout import (
    CONJ_LOAD,
    CONJ_LOAD_END,
    CONJ_SLOT,
    CONJ_WHOLE,
    CONJ_WHOLE_END,
    CONST,
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    PICK_RUN,
    PLAIN_CONJUNCT,
    PLAIN_CONJUNCT_END,
    REF,
)
from penstock.plan.plain import PlainTables
from penstock.plan.tables import Floats, Ints


@part
def load(t: PlainTables, m: PlainMemory, start: int, stop: int, run: int, event: int) -> None:
    """Put the values of references into place, from the event, the run's registers, or constants."""
    for k in range(start, stop):
        place, number = t.rows[k, 1], t.rows[k, 2]
        if place == 0:
            m.values[t.rows[k, 0]] = m.columns[number, event]
        elif place == 1:
            m.values[t.rows[k, 0]] = m.registers[number, run]
        else:
            m.values[t.rows[k, 0]] = m.constants[number]


@part
def holds_by_registers(t: PlainTables, m: PlainMemory, conjunct: int, run: int, event: int) -> bool:
    """Return whether a condition that is no interval holds."""
    load(t, m, t.conjuncts[conjunct, CONJ_LOAD], t.conjuncts[conjunct, CONJ_LOAD_END], run, event)
    start, stop = t.conjuncts[conjunct, CONJ_WHOLE], t.conjuncts[conjunct, CONJ_WHOLE_END]
    return run_program(t.rows, start, stop, m.values, m.constants, m.ranks, m.stack) == 1.0


@inlined
def fold_rest(t: PlainTables, m: PlainMemory, step: int, event: int) -> bool:
    """Work out what an event leaves of the conditions that are no intervals; return whether a run may fulfil them."""
    may_hold = True
    if not m.folds[step]:
        return may_hold
    for k in range(t.steps[step, PLAIN_CONJUNCT], t.steps[step, PLAIN_CONJUNCT_END]):
        if m.foldable[k]:
            code = (t.conjuncts[k, CONJ_WHOLE], t.conjuncts[k, CONJ_WHOLE_END])
            loads = (t.conjuncts[k, CONJ_LOAD], t.conjuncts[k, CONJ_LOAD_END])
            m.lengths[k] = fold(
                t.rows, code, loads, m.columns, event, m.constants, m.ranks, m.left, m.known, m.stack, m.block
            )
            may_hold &= m.lengths[k] != NEVER
    return may_hold


@inlined
def is_pair(m: PlainMemory, rows: Ints, code: tuple[int, int]) -> bool:
    """Return whether a program compares two values as numbers."""
    if code[1] - code[0] != 3 or rows[code[0] + 1, 0] not in (REF, CONST):
        return False
    op = rows[code[0] + 2, 0]
    return EQ <= op <= GE and (op in (EQ, NE) or len(m.ranks) == 0)


@inlined
def kept_if(op: int) -> tuple[bool, bool, bool]:
    """Return whether a comparison holds if the left value is less, the same, more."""
    return op in (LT, LE, NE), op in (LE, EQ, GE), op in (GE, GT, NE)


@inlined
def filter_pair(
    t: PlainTables, m: PlainMemory, rows: Ints, constants: Floats, code: tuple[int, int], loads: tuple[int, int],
    event: int, first: int, count: int,
) -> int:  # fmt: skip
    """Keep the candidates from `first` on for which a comparison of two values holds: most that is left is one."""
    op, (left, x) = rows[code[0] + 2, 0], operand(t, m, rows, constants, loads, code[0], event)
    right, y = operand(t, m, rows, constants, loads, code[0] + 1, event)
    if_less, if_same, if_more = kept_if(op)
    a, b, picked, kept = m.registers[max(left, 0)], m.registers[max(right, 0)], m.candidates[PICK_RUN], first
    for c in range(first, count):
        run = picked[c]
        u, v = a[run] if left >= 0 else x, b[run] if right >= 0 else y
        picked[kept] = run
        kept += int(((u < v) & if_less) | ((u == v) & if_same) | ((u > v) & if_more))
    return kept


@inlined
def filter_lanes(
    t: PlainTables, m: PlainMemory, rows: Ints, constants: Floats, code: tuple[int, int], loads: tuple[int, int],
    event: int, first: int, count: int,
) -> int:  # fmt: skip
    """Keep the candidates from `first` on for which a program says so."""
    picked, kept = m.candidates[PICK_RUN], first
    for at in range(first, count, BLOCK):
        size = min(BLOCK, count - at)
        for lane in range(size):
            m.block[lane] = picked[at + lane]
        run_lanes(t, m, rows, constants, code, loads, event, size)
        for lane in range(size):
            picked[kept] = m.block[lane]
            kept += int(m.lanes[0, lane] == 1.0)
    return kept


@inlined
def filter_rest(t: PlainTables, m: PlainMemory, step: int, event: int, first: int, count: int) -> int:
    """Keep the candidates from `first` on for which the conditions hold that are no intervals."""
    for k in range(t.steps[step, PLAIN_CONJUNCT], t.steps[step, PLAIN_CONJUNCT_END]):
        if count == first:
            return first
        if t.conjuncts[k, CONJ_SLOT] >= 0 and (
            m.exact[k] or t.conjuncts[k, CONJ_WHOLE] == t.conjuncts[k, CONJ_WHOLE_END]
        ):
            continue  # an interval, or one that another condition implies
        rows, constants, code = t.rows, m.constants, (t.conjuncts[k, CONJ_WHOLE], t.conjuncts[k, CONJ_WHOLE_END])
        if m.foldable[k]:
            if m.lengths[k] == NEVER:
                return first
            if m.lengths[k] == ALWAYS:
                continue
            rows, constants, code = m.left, m.known, (code[0], code[0] + m.lengths[k])
        loads = (t.conjuncts[k, CONJ_LOAD], t.conjuncts[k, CONJ_LOAD_END])
        if is_pair(m, rows, code):
            count = filter_pair(t, m, rows, constants, code, loads, event, first, count)
        else:
            count = filter_lanes(t, m, rows, constants, code, loads, event, first, count)
    return count


@inlined
def filter_members(m: PlainMemory, slot: int, bit: int, first: int, count: int) -> int:
    """Keep the candidates from `first` on whose bag does not have the member yet."""
    members, picked, kept = m.registers[slot], m.candidates[PICK_RUN], first
    for c in range(first, count):
        run = picked[c]
        picked[kept] = run
        kept += int((int(members[run]) & bit) == 0)
    return kept


@inlined
def filter_bounds(m: PlainMemory, index: int, key: float, bounds: int, first: int, count: int) -> int:
    """Keep the candidates from `first` on, which have a key and are in reach, that fulfil the other bounds."""
    picked = m.candidates[PICK_RUN]
    for b in range(1, bounds):
        slot, least, most, kept = int(m.bounds[b, 0]), m.bounds[b, 1], m.bounds[b, 2], first
        if slot == index:
            if not least <= key <= most:
                return first
            continue
        column = m.registers[slot]
        for c in range(first, count):
            run = picked[c]
            picked[kept] = run
            kept += int((column[run] >= least) & (column[run] <= most))
        count = kept
    return count
