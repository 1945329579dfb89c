"""The stack machine that conditions run on (penstock.plan.terms): what operations are worth."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernel.calling import arity_of, call_block
from penstock.kernel.compiling import inlined, part
from penstock.plan.joins import DOWN, UP
from penstock.plan.layout import (
    ABS,
    ADD,
    AND,
    CALL,
    CEIL,
    CONST,
    DIV,
    EQ,
    EXP,
    FLOOR,
    GE,
    GT,
    LE,
    LN,
    LT,
    MIN,
    MOD,
    MUL,
    NE,
    NEG,
    NOT,
    OR,
    POW,
    REF,
    ROUND,
    SIGN,
    SQRT,
    SUB,
    TEXT_HIGH,
    TEXT_LOW,
)
from penstock.plan.tables import Floats, Ints


@inlined
def truth(x: bool) -> float:
    """Return a truth value as a number."""
    return 1.0 if x else 0.0


@inlined
def is_text(x: float) -> bool:
    """Return whether a value is the code of a text."""
    return TEXT_LOW <= x < TEXT_HIGH


@inlined
def is_less(a: float, b: float, ranks: Ints) -> bool:
    """Compare two values; texts by their rank, a text and a number never."""
    if is_text(a) or is_text(b):
        if not (is_text(a) and is_text(b)):
            return False
        i, j = int(a - TEXT_LOW), int(b - TEXT_LOW)
        return bool(i < len(ranks) and j < len(ranks) and ranks[i] < ranks[j])  # else a result of arithmetic, no text
    return a < b


@part
def arithmetic(code: int, a: float, b: float) -> float:
    """Return a result, or NaN if there is none."""
    if is_text(a) or is_text(b):
        return math.nan
    if code == ADD:
        return a + b
    if code == SUB:
        return a - b
    if code == MUL:
        return a * b
    if code == DIV:
        return math.nan if b == 0 else a / b
    if code == MOD:
        return math.nan if b == 0 else a % b
    if code == POW:
        if math.isnan(a) or math.isnan(b) or (a == 0 and b < 0) or (a < 0 and b != math.floor(b)):
            return math.nan
        return a**b
    if math.isnan(a) or math.isnan(b):
        return math.nan
    return min(a, b) if code == MIN else max(a, b)


@part
def function(code: int, a: float) -> float:
    """Return the value of a function of one number, or NaN if there is none."""
    if is_text(a) or math.isnan(a):
        return math.nan
    if code == NEG:
        return 0.0 - a
    if code == ABS:
        return abs(a)
    if code == SQRT:
        return math.nan if a < 0 else math.sqrt(a)
    if code == FLOOR:
        return float(np.floor(a))
    if code == CEIL:
        return float(np.ceil(a))
    if code == ROUND:
        return float(np.rint(a))
    if code == EXP:
        return float(np.exp(a))
    if code == LN:
        return math.nan if a <= 0 else math.log(a)
    return truth(a > 0) - truth(a < 0)


@part
def comparison(code: int, a: float, b: float, ranks: Ints) -> float:
    """Return 1 if a comparison is true, else 0."""
    if math.isnan(a) or math.isnan(b):
        return 0.0
    if code == EQ:
        return truth(a == b)
    if code == NE:
        return truth(a != b)
    if code == LT:
        return truth(is_less(a, b, ranks))
    if code == GT:
        return truth(is_less(b, a, ranks))
    if is_text(a) != is_text(b):
        return 0.0
    return truth(not is_less(b, a, ranks)) if code == LE else truth(not is_less(a, b, ranks))


@part
def run_program(
    rows: Ints, start: int, stop: int, values: Floats, constants: Floats, ranks: Ints, stack: Floats
) -> float:
    """Run the program in rows start .. stop-1 over the values of its references."""
    top = -1
    for k in range(start, stop):
        code, argument = rows[k, 0], rows[k, 1]
        if code == CONST:
            top += 1
            stack[top] = constants[argument]
        elif code == REF:
            top += 1
            stack[top] = values[argument]
        elif code == NOT:
            stack[top] = truth(stack[top] != 1.0)
        elif code in (NEG, SIGN) or ABS <= code <= LN:
            stack[top] = function(code, stack[top])
        elif code in (UP, DOWN):
            stack[top] = np.nextafter(stack[top], math.inf if code == UP else -math.inf)
        elif code == CALL:
            top += 1 - arity_of(constants, argument)
            call_block(constants, argument, stack, top, 1, 1)
        else:
            top -= 1
            a, b = stack[top], stack[top + 1]
            if code == AND:
                stack[top] = truth(a == 1.0 and b == 1.0)
            elif code == OR:
                stack[top] = truth(a == 1.0 or b == 1.0)
            elif EQ <= code <= GE:
                stack[top] = comparison(code, a, b, ranks)
            else:
                stack[top] = arithmetic(code, a, b)
    return stack[0]
