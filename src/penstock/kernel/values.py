"""What conditions are worth for a chain of elements (docs/language.md, section 3).

The chain is in `Memory.chain`: elements 0 .. n-1, oldest first. A negated event that is being asked about is one more
element at the end, bound to its variable."""

from __future__ import annotations

import math

from penstock.kernel.compiling import part
from penstock.kernel.memory import Memory
from penstock.kernel.stack import arithmetic, comparison, function, is_less, is_text, run_program, truth  # noqa: F401
from penstock.plan.layout import (
    ADD,
    ALL,
    AVG,
    BEFORE,
    CHAIN_EVENT,
    CHAIN_ROUND,
    CHAIN_VARIABLE,
    COND_CODE,
    COND_CODE_END,
    COND_DEPTH,
    COND_REF,
    COND_REF_END,
    COND_SAME,
    COUNT,
    CURRENT,
    FIRST,
    LAST,
    LEAST,
    NUMBER,
    REF_AGGREGATE,
    REF_COLUMN,
    REF_DEPTH,
    REF_INDEX,
    REF_NUMBER,
    REF_VARIABLE,
    SUM,
    UPTO,
    VAR_DEPTH,
)
from penstock.plan.tables import Bools, Tables


@part
def value(t: Tables, m: Memory, condition: int) -> float:
    """Run the program of a condition over the values of its references."""
    start, stop = t.conditions[condition, COND_CODE], t.conditions[condition, COND_CODE_END]
    return run_program(t.rows, start, stop, m.values, m.constants, m.ranks, m.stack)


@part
def in_round(m: Memory, element: int, of: int, depth: int) -> bool:
    """Return whether two elements are in the same round of the outer `depth` loops."""
    for d in range(depth):  # noqa: SIM110 - numba compiles no generators
        if m.chain[CHAIN_ROUND + d, element] != m.chain[CHAIN_ROUND + d, of]:
            return False
    return True


@part
def current(t: Tables, m: Memory, n: int, variable: int, seen_from: int) -> int:
    """Return the element of a variable in the round of another element; -1 if there is none."""
    depth = t.variables[variable, VAR_DEPTH]
    for k in range(n - 1, -1, -1):
        if m.chain[CHAIN_VARIABLE, k] == variable and (depth == 0 or in_round(m, k, seen_from, depth)):
            return k
    return -1


@part
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


@part
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


@part
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


@part
def ranges_over(t: Tables, condition: int, variable: int) -> bool:
    """Return whether a condition ranges over the rounds of a variable."""
    if t.variables[variable, VAR_DEPTH] != t.conditions[condition, COND_DEPTH]:
        return False
    for k in range(t.conditions[condition, COND_REF], t.conditions[condition, COND_REF_END]):
        reference = t.rows[k, 0]
        if t.references[reference, REF_VARIABLE] == variable and t.references[reference, REF_DEPTH] > 0:
            return True
    return False


@part
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
