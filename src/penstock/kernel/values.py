"""What conditions are worth for a chain of elements (docs/language.md, section 3).

The chain is in `Memory.chain`: elements 0 .. n-1, oldest first. A negated event that is being asked about is one more
element at the end, bound to its variable."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernel.compiling import compiled
from penstock.kernel.memory import Memory
from penstock.plan.layout import (
    ABS,
    ADD,
    ALL,
    AND,
    AVG,
    BEFORE,
    CEIL,
    CHAIN_EVENT,
    CHAIN_ROUND,
    CHAIN_VARIABLE,
    COND_CODE,
    COND_CODE_END,
    COND_DEPTH,
    COND_REF,
    COND_REF_END,
    COND_SAME,
    CONST,
    COUNT,
    CURRENT,
    DIV,
    EQ,
    EXP,
    FIRST,
    FLOOR,
    GE,
    GT,
    LAST,
    LE,
    LEAST,
    LN,
    LT,
    MIN,
    MOD,
    MUL,
    NE,
    NEG,
    NOT,
    NUMBER,
    OR,
    POW,
    REF,
    REF_AGGREGATE,
    REF_COLUMN,
    REF_DEPTH,
    REF_INDEX,
    REF_NUMBER,
    REF_VARIABLE,
    ROUND,
    SIGN,
    SQRT,
    SUB,
    SUM,
    TEXT_HIGH,
    TEXT_LOW,
    UPTO,
    VAR_DEPTH,
)
from penstock.plan.tables import Bools, Ints, Tables


@compiled
def truth(x: bool) -> float:
    """Return a truth value as a number."""
    return 1.0 if x else 0.0


@compiled
def is_text(x: float) -> bool:
    """Return whether a value is the code of a text."""
    return TEXT_LOW <= x < TEXT_HIGH


@compiled
def is_less(a: float, b: float, ranks: Ints) -> bool:
    """Compare two values; texts by their rank, a text and a number never."""
    if is_text(a) or is_text(b):
        if not (is_text(a) and is_text(b)):
            return False
        return bool(ranks[int(a - TEXT_LOW)] < ranks[int(b - TEXT_LOW)])
    return a < b


@compiled
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


@compiled
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


@compiled
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


@compiled
def value(t: Tables, m: Memory, condition: int) -> float:
    """Run the program of a condition over the values of its references."""
    top = -1
    for k in range(t.conditions[condition, COND_CODE], t.conditions[condition, COND_CODE_END]):
        code, argument = t.rows[k, 0], t.rows[k, 1]
        if code == CONST:
            top += 1
            m.stack[top] = m.constants[argument]
        elif code == REF:
            top += 1
            m.stack[top] = m.values[argument]
        elif code == NOT:
            m.stack[top] = truth(m.stack[top] != 1.0)
        elif code in (NEG, SIGN) or ABS <= code <= LN:
            m.stack[top] = function(code, m.stack[top])
        else:
            top -= 1
            a, b = m.stack[top], m.stack[top + 1]
            if code == AND:
                m.stack[top] = truth(a == 1.0 and b == 1.0)
            elif code == OR:
                m.stack[top] = truth(a == 1.0 or b == 1.0)
            elif EQ <= code <= GE:
                m.stack[top] = comparison(code, a, b, m.ranks)
            else:
                m.stack[top] = arithmetic(code, a, b)
    return m.stack[0]


@compiled
def in_round(m: Memory, element: int, of: int, depth: int) -> bool:
    """Return whether two elements are in the same round of the outer `depth` loops."""
    for d in range(depth):  # noqa: SIM110 - numba compiles no generators
        if m.chain[CHAIN_ROUND + d, element] != m.chain[CHAIN_ROUND + d, of]:
            return False
    return True


@compiled
def current(t: Tables, m: Memory, n: int, variable: int, seen_from: int) -> int:
    """Return the element of a variable in the round of another element; -1 if there is none."""
    depth = t.variables[variable, VAR_DEPTH]
    for k in range(n - 1, -1, -1):
        if m.chain[CHAIN_VARIABLE, k] == variable and (depth == 0 or in_round(m, k, seen_from, depth)):
            return k
    return -1


@compiled
def element(t: Tables, m: Memory, n: int, reference: int, seen_from: int) -> int:
    """Return the element that a reference to an attribute means; -1 if it is not there."""
    variable, index = t.references[reference, REF_VARIABLE], t.references[reference, REF_INDEX]
    if index == CURRENT:
        return current(t, m, n, variable, seen_from)
    if index == BEFORE:
        here = current(t, m, n, variable, seen_from)
        for k in range(here - 1, -1, -1):
            if m.chain[CHAIN_VARIABLE, k] == variable:
                return k
        return -1
    seen = 0
    found = -1
    for k in range(n):
        if m.chain[CHAIN_VARIABLE, k] == variable:
            seen += 1
            found = k
            if index == FIRST or (index == NUMBER and seen == t.references[reference, REF_NUMBER]):
                return k
    return found if index == LAST else -1


@compiled
def aggregate(t: Tables, m: Memory, n: int, reference: int, seen_from: int, lists: Bools) -> tuple[bool, float]:
    """Return whether an aggregate is there, and its value."""
    variable, index, column = (
        t.references[reference, REF_VARIABLE],
        t.references[reference, REF_INDEX],
        t.references[reference, REF_COLUMN],
    )
    end = n
    if index == ALL:
        if not lists[variable]:
            return False, math.nan
    else:
        end = current(t, m, n, variable, seen_from)
        if end < 0:
            return False, math.nan
        end += index == UPTO
    elements, count = 0, 0
    total, least, most = 0.0, math.inf, -math.inf
    for k in range(end):
        if m.chain[CHAIN_VARIABLE, k] == variable:
            elements += 1
            v = 0.0 if column < 0 else m.columns[column, m.chain[CHAIN_EVENT, k]]
            if not math.isnan(v):
                count += 1
                total = arithmetic(ADD, total, v)
                least = v if count == 1 or is_less(v, least, m.ranks) else least
                most = v if count == 1 or is_less(most, v, m.ranks) else most
    kind = t.references[reference, REF_AGGREGATE]
    if kind == COUNT:
        return True, float(elements if column < 0 else count)
    if kind == SUM:
        return True, total
    if elements == 0:
        return False, math.nan
    if count == 0:
        return True, math.nan
    return True, total / count if kind == AVG else (least if kind == LEAST else most)


@compiled
def resolve(t: Tables, m: Memory, n: int, condition: int, seen_from: int, lists: Bools) -> bool:
    """Put the values of a condition's references into place; return False if one is not there."""
    for k in range(t.conditions[condition, COND_REF], t.conditions[condition, COND_REF_END]):
        reference = t.rows[k, 0]
        if t.references[reference, REF_AGGREGATE] >= 0:
            is_there, result = aggregate(t, m, n, reference, seen_from, lists)
            if not is_there:
                return False
            m.values[reference] = result
        else:
            at = element(t, m, n, reference, seen_from)
            if at < 0:
                return False
            m.values[reference] = m.columns[t.references[reference, REF_COLUMN], m.chain[CHAIN_EVENT, at]]
    return True


@compiled
def ranges_over(t: Tables, condition: int, variable: int) -> bool:
    """Return whether a condition ranges over the rounds of a variable."""
    if t.variables[variable, VAR_DEPTH] != t.conditions[condition, COND_DEPTH]:
        return False
    for k in range(t.conditions[condition, COND_REF], t.conditions[condition, COND_REF_END]):
        reference = t.rows[k, 0]
        if t.references[reference, REF_VARIABLE] == variable and t.references[reference, REF_DEPTH] > 0:
            return True
    return False


@compiled
def holds(
    t: Tables,
    m: Memory,
    n: int,
    condition: int,
    lists: Bools,
    only: int,
    only_depth: int,
) -> bool:
    """Return whether a condition holds in every round; or, with `only`, in those of an element's outer rounds."""
    if t.conditions[condition, COND_SAME] >= 0:
        column = t.conditions[condition, COND_SAME]
        return n < 2 or m.columns[column, m.chain[CHAIN_EVENT, n - 1]] == m.columns[column, m.chain[CHAIN_EVENT, 0]]
    if t.conditions[condition, COND_DEPTH] == 0:
        return not resolve(t, m, n, condition, 0, lists) or value(t, m, condition) == 1.0
    for k in range(n):
        is_asked = only < 0 or in_round(m, k, only, min(only_depth, t.conditions[condition, COND_DEPTH]))
        if is_asked and ranges_over(t, condition, m.chain[CHAIN_VARIABLE, k]) and resolve(t, m, n, condition, k, lists):  # noqa: SIM102 - numba
            if value(t, m, condition) != 1.0:
                return False
    return True
