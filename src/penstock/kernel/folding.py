"""Conditions that are no intervals, made short for one event: what reads only the event is worked out once.

Of `a.x > 0 AND b.y > 5 OR a.x < 0 AND b.y < -5` an event b with y = 7 leaves `a.x > 0` to ask the runs, and one with
y = 0 leaves nothing: no run can take it.
"""

from __future__ import annotations

from penstock.kernel.compiling import inlined, part
from penstock.kernel.stack import arithmetic, comparison, function, truth
from penstock.plan.layout import ABS, AND, CONST, EQ, GE, LN, NEG, NOT, OR, REF, SIGN
from penstock.plan.tables import Floats, Ints

ALWAYS, NEVER = 0, -1  # in place of the length of what is left
_BOOLEAN, _KNOWN, _FLAGS = 1, 2, 2  # flags of a value on the stack: it is 0 or 1; it is worked out. And their bits


@part
def fold(
    rows: Ints, program: tuple[int, int], loads: tuple[int, int], columns: Floats, event: int, constants: Floats,
    ranks: Ints, left: Ints, known: Floats, stack: Floats, marks: Ints,
) -> int:  # fmt: skip
    """Write what an event leaves of a program to the same rows of `left`; return how long it is, ALWAYS or NEVER.

    A CONST that is left means a place of `known`. The program calls no functions.

    Args:
        rows: programs and loads.
        program: from where to where it is.
        loads: from where to where it is said what its references mean.
        columns: of events.
        event: the place of the event.
        constants: those of the query.
        ranks: of texts.
        left: (·, 3) for what is left.
        known: (·,) for the values in it, as long.
        stack: for the values on the stack that are worked out.
        marks: where the code of each value on the stack begins, and its flags.
    """
    at, top, used = program[0], -1, program[0]
    for k in range(program[0], program[1]):
        code, argument = rows[k, 0], rows[k, 1]
        begin, flags, x = at, 0, 0.0
        if code == CONST:
            flags, x = _KNOWN, constants[argument]
        elif code == REF:
            for load in range(loads[0], loads[1]):
                if rows[load, 0] == argument and rows[load, 1] != 1:
                    flags, number = _KNOWN, rows[load, 2]
                    x = columns[number, event] if rows[load, 1] == 0 else constants[number]
        elif code == NOT or code in (NEG, SIGN) or ABS <= code <= LN:
            begin, flags, x = marks[top] >> _FLAGS, marks[top] & _KNOWN, stack[top]
            x = truth(x != 1.0) if code == NOT else function(code, x)
            flags |= _BOOLEAN if code == NOT else 0
            top -= 1
        else:
            a, b = marks[top - 1], marks[top]
            x, y = stack[top - 1], stack[top]
            begin, top = a >> _FLAGS, top - 2
            if a & b & _KNOWN:
                flags, x = _KNOWN, combined(code, x, y, ranks)
            elif code in (AND, OR) and (a | b) & _KNOWN:
                is_one = (x if a & _KNOWN else y) == 1.0
                if is_one == (code == OR):
                    flags, x = _KNOWN, truth(code == OR)
                elif (b if a & _KNOWN else a) & _BOOLEAN:  # it decides alone
                    begin, at = keep_one(left, a, b, at)
                    top += 1
                    marks[top] = begin << _FLAGS | _BOOLEAN
                    continue
            flags |= _BOOLEAN if code in (AND, OR) or EQ <= code <= GE else 0
        if flags & _KNOWN:
            at = begin
            left[at, 0], left[at, 1], known[used] = CONST, used, x
            used += 1
        else:
            left[at, 0], left[at, 1] = code, argument
        at += 1
        top += 1
        marks[top], stack[top] = begin << _FLAGS | flags, x
    if marks[0] & _KNOWN:
        return ALWAYS if stack[0] == 1.0 else NEVER
    return at - program[0]


@inlined
def combined(code: int, x: float, y: float, ranks: Ints) -> float:
    """Return the result of an operation on two values."""
    if code == AND:
        return truth(x == 1.0 and y == 1.0)
    if code == OR:
        return truth(x == 1.0 or y == 1.0)
    return comparison(code, x, y, ranks) if EQ <= code <= GE else arithmetic(code, x, y)


@inlined
def keep_one(left: Ints, a: int, b: int, at: int) -> tuple[int, int]:
    """Drop that of two values which is worked out, and is one instruction; return where the other begins and ends."""
    begin, middle = a >> _FLAGS, b >> _FLAGS
    if b & _KNOWN:
        return begin, middle
    for k in range(middle, at):
        left[k - 1, 0], left[k - 1, 1] = left[k, 0], left[k, 1]
    return begin, at - 1
