"""The stack machine over a block of runs at a time: the same operation for every run, then the next operation.

Its values are those of penstock.kernel.stack; operations that are common have a loop of their own, which the compiler
turns into vector instructions.
"""

from __future__ import annotations

import math

from penstock.kernel.calling import arity_of, call_block
from penstock.kernel.compiling import inlined, part
from penstock.kernel.plain_memory import PlainMemory
from penstock.kernel.stack import arithmetic, comparison, function, is_text, truth
from penstock.plan.layout import (
    ABS,
    ADD,
    AND,
    CALL,
    CONST,
    EQ,
    GE,
    GT,
    LE,
    LN,
    LT,
    MUL,
    NEG,
    NOT,
    OR,
    REF,
    SIGN,
    SUB,
)
from penstock.plan.plain import PlainTables
from penstock.plan.tables import Floats, Ints


@inlined
def operand(
    t: PlainTables, m: PlainMemory, rows: Ints, constants: Floats, loads: tuple[int, int], at: int, event: int
) -> tuple[int, float]:
    """Return the register that the instruction `at`, a REF or a CONST, reads of a run; or -1, and its value."""
    if rows[at, 0] == CONST:
        return -1, constants[rows[at, 1]]
    for load in range(loads[0], loads[1]):
        if t.rows[load, 0] == rows[at, 1]:
            place, number = t.rows[load, 1], t.rows[load, 2]
            if place == 1:
                return number, 0.0
            return -1, m.columns[number, event] if place == 0 else m.constants[number]
    return -1, math.nan


@inlined
def push(
    t: PlainTables, m: PlainMemory, loads: tuple[int, int], reference: int, event: int, top: int, size: int
) -> None:
    """Push the value of a reference for every run of the block."""
    lane = m.lanes[top]
    for k in range(loads[0], loads[1]):
        if t.rows[k, 0] == reference:
            number = t.rows[k, 2]
            if t.rows[k, 1] == 1:
                column = m.registers[number]
                for i in range(size):
                    lane[i] = column[m.block[i]]
            else:
                x = m.columns[number, event] if t.rows[k, 1] == 0 else m.constants[number]
                for i in range(size):
                    lane[i] = x
            return


@inlined
def compare(code: int, a: Floats, b: Floats, ranks: Ints, size: int) -> None:
    """Put 1 where a comparison is true, else 0, in place of the left values."""
    has_texts = False
    for i in range(size):
        has_texts |= is_text(a[i]) | is_text(b[i])
    if has_texts:
        for i in range(size):
            a[i] = comparison(code, a[i], b[i], ranks)
    elif code in (GT, GE):
        for i in range(size):
            a[i] = truth((a[i] > b[i]) | ((a[i] == b[i]) & (code == GE)))
    elif code in (LT, LE):
        for i in range(size):
            a[i] = truth((a[i] < b[i]) | ((a[i] == b[i]) & (code == LE)))
    elif code == EQ:
        for i in range(size):
            a[i] = truth(a[i] == b[i])
    else:
        for i in range(size):
            a[i] = truth((a[i] < b[i]) | (a[i] > b[i]))  # what is missing is neither


@inlined
def combine(m: PlainMemory, code: int, top: int, size: int) -> None:
    """Put the result of an operation on two values in place of the lower one."""
    a, b = m.lanes[top], m.lanes[top + 1]
    if code in (ADD, SUB, MUL):
        sign = -1.0 if code == SUB else 1.0
        for i in range(size):
            x = a[i] * b[i] if code == MUL else a[i] + sign * b[i]
            a[i] = math.nan if is_text(a[i]) or is_text(b[i]) else x
    elif EQ <= code <= GE:
        compare(code, a, b, m.ranks, size)
    elif code == AND:
        for i in range(size):
            a[i] = truth(a[i] == 1.0 and b[i] == 1.0)
    elif code == OR:
        for i in range(size):
            a[i] = truth(a[i] == 1.0 or b[i] == 1.0)
    else:
        for i in range(size):
            a[i] = arithmetic(code, a[i], b[i])


@part
def run_lanes(
    t: PlainTables, m: PlainMemory, rows: Ints, constants: Floats, code: tuple[int, int], loads: tuple[int, int],
    event: int, size: int,
) -> None:  # fmt: skip
    """Run a program in `rows` for the first `size` runs of the block; the results are in the first lane."""
    top = -1
    for k in range(code[0], code[1]):
        what, argument = rows[k, 0], rows[k, 1]
        if what == REF:
            top += 1
            push(t, m, loads, argument, event, top, size)
        elif what == CONST:
            top += 1
            m.lanes[top, :size] = constants[argument]
        elif what == NOT:
            for i in range(size):
                m.lanes[top, i] = truth(m.lanes[top, i] != 1.0)
        elif what in (NEG, SIGN) or ABS <= what <= LN:
            for i in range(size):
                m.lanes[top, i] = function(what, m.lanes[top, i])
        elif what == CALL:
            top += 1 - arity_of(m.constants, argument)
            call_block(m.constants, argument, m.lanes, top * m.lanes.shape[1], m.lanes.shape[1], size)
        else:
            top -= 1
            combine(m, what, top, size)
