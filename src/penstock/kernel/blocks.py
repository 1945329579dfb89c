"""Programs of conditions over whole columns of events: one value per event, as `values.value` gives it for one.

A program runs over a block of events at a time, so that its stack stays in the cache.
"""

from __future__ import annotations

import numpy as np

from penstock.kernel.calling import arity_of, call_block
from penstock.kernel.compiling import compiled, part
from penstock.kernel.stack import arithmetic, comparison, function, truth
from penstock.plan.layout import ABS, AND, CALL, CONST, EQ, GE, LN, NEG, NOT, OR, REF, SIGN
from penstock.plan.tables import Floats, Ints

BLOCK = 1024


@part
def depth_of(program: Ints, constants: Floats) -> int:
    """Return how deep the stack of a program gets."""
    deepest = depth = 0
    for k in range(len(program)):
        code = program[k, 0]
        if code in (CONST, REF):
            depth += 1
        elif code == CALL:
            depth += 1 - arity_of(constants, program[k, 1])
        elif not (code in (NOT, NEG, SIGN) or ABS <= code <= LN):
            depth -= 1
        deepest = max(deepest, depth)
    return deepest


@part
def combine(code: int, left: Floats, right: Floats, size: int, ranks: Ints) -> None:
    """Put the results of an operation on two values in place of the left ones."""
    if code == AND:
        for at in range(size):
            left[at] = truth(left[at] == 1.0 and right[at] == 1.0)
    elif code == OR:
        for at in range(size):
            left[at] = truth(left[at] == 1.0 or right[at] == 1.0)
    elif EQ <= code <= GE:
        for at in range(size):
            left[at] = comparison(code, left[at], right[at], ranks)
    else:
        for at in range(size):
            left[at] = arithmetic(code, left[at], right[at])


@compiled
def evaluate(program: Ints, columns: Floats, constants: Floats, ranks: Ints) -> Floats:
    """Run a program for every event.

    Args:
        program: (n, 2) codes and arguments; a REF means a row of `columns`.
        columns: (R, events) missing is NaN.
        constants: what a CONST means.
        ranks: alphabetical rank per text; may be empty if no two texts are compared by < <= > >=.
    """
    events = columns.shape[1]
    result = np.empty(events, np.float64)
    stack = np.empty((depth_of(program, constants), BLOCK), np.float64)
    for start in range(0, events, BLOCK):
        size, top = min(BLOCK, events - start), -1
        for k in range(len(program)):
            code, argument = program[k, 0], program[k, 1]
            if code == CONST:
                top += 1
                stack[top, :size] = constants[argument]
            elif code == REF:
                top += 1
                stack[top, :size] = columns[argument, start : start + size]
            elif code == NOT:
                for at in range(size):
                    stack[top, at] = truth(stack[top, at] != 1.0)
            elif code in (NEG, SIGN) or ABS <= code <= LN:
                for at in range(size):
                    stack[top, at] = function(code, stack[top, at])
            elif code == CALL:
                top += 1 - arity_of(constants, argument)
                call_block(constants, argument, stack, top * BLOCK, BLOCK, size)
            else:
                top -= 1
                combine(code, stack[top], stack[top + 1], size, ranks)
        result[start : start + size] = stack[0, :size]
    return result
