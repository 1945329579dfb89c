"""Tree plans: tuples a block at a time. The stack machine over them, and what is compared with intervals."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernel.compiling import inlined, part
from penstock.kernel.stack import arithmetic, comparison, function, is_text, truth
from penstock.kernel.tree_memory import TreeMemory
from penstock.plan import joins, layout
from penstock.plan.tables import Bools, Floats, Ints
from penstock.plan.tree import TreeTables


@part
def compute(
    rows: Ints, constants: Floats, ranks: Ints, columns: Floats, tuples: Floats, stack: Floats,
    start: int, stop: int, at: int, n: int,
) -> None:  # fmt: skip
    """Run a program on n tuples from place `at` on; leave the values in the first row of the stack."""
    top = -1
    for k in range(start, stop):
        code, argument, column = rows[k, 0], rows[k, 1], rows[k, 2]
        if code == layout.CONST:
            top += 1
            for i in range(n):
                stack[top, i] = constants[argument]
        elif code == layout.REF:
            top += 1
            for i in range(n):
                stack[top, i] = columns[column, int(tuples[argument, at + i])]
        elif code == layout.NOT:
            for i in range(n):
                stack[top, i] = truth(stack[top, i] != 1.0)
        elif code == joins.UP or code == joins.DOWN:
            for i in range(n):
                stack[top, i] = np.nextafter(stack[top, i], math.inf if code == joins.UP else -math.inf)
        elif code in (layout.NEG, layout.SIGN) or layout.ABS <= code <= layout.LN:
            for i in range(n):
                stack[top, i] = function(code, stack[top, i])
        else:
            top -= 1
            for i in range(n):
                stack[top, i] = of_two(code, stack[top, i], stack[top + 1, i], ranks)


@inlined
def of_two(code: int, a: float, b: float, ranks: Ints) -> float:
    """Return what a code makes of two values."""
    if code == layout.AND:
        return truth(a == 1.0 and b == 1.0)
    if code == layout.OR:
        return truth(a == 1.0 or b == 1.0)
    if layout.EQ <= code <= layout.GE:
        return comparison(code, a, b, ranks)
    return arithmetic(code, a, b)


@inlined
def fill(t: TreeTables, tuples: Floats, hits: Ints, node: int, q: int, n: int, at: int) -> None:
    """Write the events of a new tuple of a node and of the hits to places of the parent."""
    sibling = t.nodes[node, joins.NODE_SIBLING]
    for k in range(t.nodes[node, joins.NODE_VARIABLE], t.nodes[node, joins.NODE_VARIABLE_END]):
        v = t.rows[k, 0]
        for i in range(n):
            tuples[v, at + i] = tuples[v, q]
    for k in range(t.nodes[sibling, joins.NODE_VARIABLE], t.nodes[sibling, joins.NODE_VARIABLE_END]):
        v = t.rows[k, 0]
        for i in range(n):
            tuples[v, at + i] = tuples[v, hits[i]]


@part
def close(t: TreeTables, m: TreeMemory, node: int, at: int, n: int) -> int:
    """Make n tuples true whose events and bounds are written behind the others; at the root they are matches."""
    variables = m.fits.shape[0]
    if node < len(t.nodes) - 1:
        row = variables + joins.ROW_REGISTER
        for k in range(t.nodes[node, joins.NODE_REGISTER], t.nodes[node, joins.NODE_REGISTER_END]):
            if t.rows[k, 0] < 0:
                variable, column = t.rows[k, 1], t.rows[k, 2]
                for i in range(n):
                    m.tuples[row, at + i] = m.columns[column, int(m.tuples[variable, at + i])] + 0.0
            else:
                compute(t.rows, m.constants, m.ranks, m.columns, m.tuples, m.stack, t.rows[k, 1], t.rows[k, 2], at, n)
                for i in range(n):
                    m.tuples[row, at + i] = m.stack[0, i] + 0.0  # makes -0.0 equal to 0.0
            row += 1
        m.segments[joins.SEG_SIZE, node] += n
        m.work[joins.WORK_CREATED] += n
        return joins.DONE
    to = m.work[joins.WORK_FOUND]
    if to + n > m.found.shape[1]:
        return joins.MORE_FOUND
    for v in range(variables):
        for i in range(n):
            m.found[v, to + i] = int(m.tuples[v, at + i])
    for i in range(n):
        m.found[variables + joins.FOUND_LOW, to + i] = int(m.tuples[variables + joins.ROW_LOW, at + i])
        m.found[variables + joins.FOUND_HIGH, to + i] = int(m.tuples[variables + joins.ROW_HIGH, at + i])
    m.work[joins.WORK_FOUND] += n
    m.work[joins.WORK_MATCHES] += n
    return joins.DONE


@inlined
def compress(hits: Ints, mask: Bools, n: int) -> int:
    """Keep the hits that the mask keeps; return how many."""
    kept = 0
    for i in range(n):
        hits[kept] = hits[i]
        kept += mask[i]
    return kept


@inlined
def with_right_texts(t: TreeTables, m: TreeMemory, node: int, q: int, hits: int) -> int:
    """Keep the hits whose texts are in order: as numbers they may be in the intervals where texts are not."""
    for k in range(t.nodes[node, joins.NODE_TEST], t.nodes[node, joins.NODE_TEST_END]):
        if t.rows[k, 3] & joins.MAY_BE_TEXT:
            code, mine, row = t.rows[k, 0], m.tuples[t.rows[k, 1], q], t.rows[k, 2]
            is_any = False
            for i in range(hits):
                m.mask[i] = not is_text(m.tuples[row, m.hits[i]])
                is_any |= not m.mask[i]
            if is_any:
                for i in range(hits):
                    m.mask[i] |= comparison(code, m.tuples[row, m.hits[i]], mine, m.ranks) == 1.0
                hits = compress(m.hits, m.mask, hits)
    return hits


@inlined
def with_rest(t: TreeTables, m: TreeMemory, node: int, q: int, hits: int, at: int) -> int:
    """Keep the hits that use no event twice and satisfy what is computed; their events are written to `at`."""
    parent = t.nodes[node, joins.NODE_PARENT]
    for k in range(t.nodes[node, joins.NODE_APART], t.nodes[node, joins.NODE_APART_END]):
        one, other = t.rows[k, 0], t.rows[k, 1]
        for i in range(hits):
            m.mask[i] = m.tuples[one, q] != m.tuples[other, m.hits[i]]
        hits = compress(m.hits, m.mask, hits)
    fill(t, m.tuples, m.hits, node, q, hits, at)
    for k in range(t.nodes[parent, joins.NODE_REST], t.nodes[parent, joins.NODE_REST_END]):
        compute(t.rows, m.constants, m.ranks, m.columns, m.tuples, m.stack, t.rows[k, 0], t.rows[k, 1], at, hits)
        for i in range(hits):
            m.mask[i] = m.stack[0, i] == 1.0
        hits = compress(m.hits, m.mask, hits)
        fill(t, m.tuples, m.hits, node, q, hits, at)
    return hits


@part
def take(t: TreeTables, m: TreeMemory, node: int, q: int, hits: int) -> int:
    """Join a new tuple with those of the hits that satisfy the rest."""
    parent, v = t.nodes[node, joins.NODE_PARENT], m.fits.shape[0]
    if m.segments[joins.SEG_SIZE, parent] + hits > m.segments[joins.SEG_ROOM, parent]:
        m.work[joins.WORK_FULL] = parent
        return joins.MORE_TUPLES
    at = m.segments[joins.SEG_START, parent] + m.segments[joins.SEG_SIZE, parent]
    hits = with_rest(t, m, node, q, with_right_texts(t, m, node, q, hits), at)
    first, low, high = v + joins.ROW_FIRST, v + joins.ROW_LOW, v + joins.ROW_HIGH
    for i in range(hits):
        m.tuples[first, at + i] = min(m.tuples[first, q], m.tuples[first, m.hits[i]])
    if t.options[joins.TREE_PARTITIONED]:
        start, part = v + joins.ROW_START, v + joins.ROW_PART
        for i in range(hits):
            m.tuples[start, at + i] = min(m.tuples[start, q], m.tuples[start, m.hits[i]])
            m.tuples[part, at + i] = m.tuples[part, q]
    if t.options[joins.TREE_WINDOWS]:
        for i in range(hits):
            m.tuples[low, at + i] = max(m.tuples[low, q], m.tuples[low, m.hits[i]])
            m.tuples[high, at + i] = min(m.tuples[high, q], m.tuples[high, m.hits[i]])
    return close(t, m, parent, at, hits)
