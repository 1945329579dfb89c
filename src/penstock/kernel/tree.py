"""Tree plans, event by event: tuples of events in segments of arrays, one segment per node of the tree.

An event becomes a tuple of each leaf that takes it; the new tuples of a node are joined with those that its sibling has
stored *before* this event, and so on to the root, whose tuples are matches. So every new tuple holds the event, as its
last, and no stored one does. If there is no room, everything of the event is taken back and `process` stops before it;
`with_more` makes room.
"""

from __future__ import annotations

import math

import numpy as np

from penstock.kernel.compiling import entry, inlined, part
from penstock.kernel.stack import is_text
from penstock.kernel.tree_blocks import close, compute, take
from penstock.kernel.tree_memory import BLOCK, LEAST_GROWTH, PADDING, TreeMemory
from penstock.plan import joins, layout
from penstock.plan.tables import Bools, Floats, Ints
from penstock.plan.tree import TreeTables

# --- which tuples ------------------------------------------------------------------------------------------------


@inlined
def add_test(tests: Floats, count: int, row: int, low: float, high: float) -> int:
    """Note an interval; return how many there are then."""
    tests[0, count], tests[1, count], tests[2, count] = row, low, high
    return count + 1


@inlined
def test_values(nodes: Ints, rows: Ints, tuples: Floats, tests: Floats, node: int, q: int, count: int) -> int:
    """Note what conditions ask of the sibling's registers; return how many tests there are, -1 if none can pass."""
    for k in range(nodes[node, joins.NODE_TEST], nodes[node, joins.NODE_TEST_END]):
        code, x, flags = rows[k, 0], tuples[rows[k, 1], q], rows[k, 3]
        low, high = -math.inf, math.inf
        if math.isnan(x):
            if not flags & joins.LOOSE:
                return -1
        elif code == layout.EQ:
            low = high = x
        elif is_text(x) and not flags & joins.LOOSE:
            if not flags & joins.MAY_BE_TEXT:
                return -1
            low, high = layout.TEXT_LOW, layout.TEXT_HIGH  # `passes` compares ranks
        elif code == layout.LE:
            high = x
        elif code == layout.GE:
            low = x
        elif (code == layout.LT and x == -math.inf) or (code == layout.GT and x == math.inf):
            return -1
        elif code == layout.LT:
            high = np.nextafter(x, -math.inf)
        else:
            low = np.nextafter(x, math.inf)
        count = add_test(tests, count, rows[k, 2], low, high)
    return count


@inlined
def test(t: TreeTables, m: TreeMemory, node: int, q: int, now: int, horizon: int) -> int:
    """Note what a new tuple asks of the tuples of its sibling; return how many tests, -1 if none can pass.

    The first is about the first event; for a leaf it says all about order and time.
    """
    variables, sibling = m.fits.shape[0], t.nodes[node, joins.NODE_SIBLING]
    count = add_test(m.tests, int(np.int64(0)), variables + joins.ROW_FIRST, float(horizon), now - 1.0)
    about = -1
    for k in range(t.nodes[node, joins.NODE_ORDER], t.nodes[node, joins.NODE_ORDER_END]):
        theirs, mine = t.rows[k, 0], m.tuples[t.rows[k, 2], q]
        if sibling >= variables and theirs != about:
            count = add_test(m.tests, count, theirs, -math.inf, now - 1.0)
            about = theirs
        if t.rows[k, 1]:
            m.tests[1, count - 1] = max(m.tests[1, count - 1], mine + 1)
        else:
            m.tests[2, count - 1] = min(m.tests[2, count - 1], mine - 1)
        if m.tests[1, count - 1] > m.tests[2, count - 1]:
            return -1
    if t.options[joins.TREE_PARTITIONED]:
        part = m.tuples[variables + joins.ROW_PART, q]
        count = add_test(m.tests, count, variables + joins.ROW_PART, part, part)
        if t.options[joins.TREE_BY_COUNT]:
            least = float(m.events[layout.EVENT_POS, now] - t.options[joins.TREE_WITHIN])
            count = add_test(m.tests, count, variables + joins.ROW_START, least, math.inf)
    if t.options[joins.TREE_WINDOWS]:
        count = add_test(m.tests, count, variables + joins.ROW_HIGH, m.tuples[variables + joins.ROW_LOW, q], math.inf)
        count = add_test(m.tests, count, variables + joins.ROW_LOW, -math.inf, m.tuples[variables + joins.ROW_HIGH, q])
    return test_values(t.nodes, t.rows, m.tuples, m.tests, node, q, count)


@inlined
def search(tuples: Floats, row: int, start: int, stop: int, x: float) -> int:
    """Return the first place in start .. stop whose value in a row that ascends is at least x."""
    while start < stop:
        middle = (start + stop) // 2
        if tuples[row, middle] < x:
            start = middle + 1
        else:
            stop = middle
    return start


@inlined
def places(t: TreeTables, m: TreeMemory, node: int, now: int, horizon: int) -> tuple[int, int]:
    """Return the stored tuples that a scan must look at; those of a leaf are in order, so some are known to fail."""
    sibling, first = t.nodes[node, joins.NODE_SIBLING], m.fits.shape[0] + joins.ROW_FIRST
    start = m.segments[joins.SEG_START, sibling]
    stop = start + m.segments[joins.SEG_OLD, sibling]
    if sibling >= m.fits.shape[0]:
        return start, stop
    live = start + m.segments[joins.SEG_LIVE, sibling]
    while live < stop and m.tuples[first, live] < horizon:
        live += 1
    m.segments[joins.SEG_LIVE, sibling] = live - start
    if m.tests[1, 0] > horizon:
        live = search(m.tuples, first, live, stop, m.tests[1, 0])
    if m.tests[2, 0] < now - 1:
        stop = search(m.tuples, first, live, stop, m.tests[2, 0] + 1)
    return live, stop


@inlined
def scan(tuples: Floats, tests: Floats, mask: Bools, hits: Ints, done: int, count: int, start: int, stop: int) -> int:
    """Note which of at most BLOCK stored tuples pass the tests from the `done`-th on; return how many."""
    n = stop - start
    for j in range(n):
        mask[j] = True
    for k in range(done, count):
        values, low, high = tuples[int(tests[0, k]), start:stop], tests[1, k], tests[2, k]
        for j in range(n):
            mask[j] &= (values[j] >= low) & (values[j] <= high)
    passed = 0
    for j in range(n):
        hits[passed] = start + j
        passed += mask[j]
    return passed


@inlined
def bucket(nodes: Ints, rows: Ints, segments: Ints, tuples: Floats, node: int, of: int, q: int) -> int:
    """Return the place in the index of a node for the keys of a tuple of another; -1 if one is missing."""
    mixed = np.int64(0)
    for k in range(nodes[of, joins.NODE_KEY], nodes[of, joins.NODE_KEY_END]):
        x = tuples[rows[k, 0], q]
        if math.isnan(x):
            return -1
        bits = np.float64(x).view(np.int64)  # of a small whole number, only the upper ones are set
        mixed = (mixed ^ bits ^ (bits >> 32)) * np.int64(-7046029254386353131)
        mixed ^= mixed >> 32
    return segments[joins.SEG_START, node] + (mixed & (segments[joins.SEG_ROOM, node] - 1))


@inlined
def look_up(
    tuples: Floats, tests: Floats, links: Ints, hits: Ints, first: int, count: int, least: float, j: int
) -> tuple[int, int, int]:
    """Note which stored tuples pass the tests, from j backwards in their chain, until one's first event is too old.

    Return how many, at most BLOCK, where to go on, and how many were looked at.
    """
    passed, looked = 0, 0
    while j >= 0 and passed < BLOCK:
        if tuples[first, j] < least:
            return passed, -1, looked
        looked += 1
        is_hit = True
        for k in range(count):
            x = tuples[int(tests[0, k]), j]
            is_hit &= (x >= tests[1, k]) & (x <= tests[2, k])
        hits[passed] = j
        passed += is_hit
        j = links[1, j]
    return passed, j, looked


@inlined
def join(t: TreeTables, m: TreeMemory, node: int, q: int, now: int, horizon: int) -> int:
    """Join a new tuple of a node with what its sibling has stored."""
    sibling, is_leaf = t.nodes[node, joins.NODE_SIBLING], t.nodes[node, joins.NODE_SIBLING] < m.fits.shape[0]
    is_indexed = t.nodes[node, joins.NODE_KEY] < t.nodes[node, joins.NODE_KEY_END]
    count = test(t, m, node, q, now, horizon)
    if count < 0:
        return joins.DONE
    least = m.tests[1, 0] if is_leaf else -1.0  # in a chain of a leaf's tuples those behind an old one are older still
    at, stop, first, done = 0, 0, m.fits.shape[0] + joins.ROW_FIRST, 1 if is_leaf else 0
    if is_indexed:
        at = m.links[0, bucket(t.nodes, t.rows, m.segments, m.tuples, sibling, node, q)]
    else:
        at, stop = places(t, m, node, now, horizon)
        m.work[joins.WORK_CHECKS] += stop - at
    while at >= 0 if is_indexed else at < stop:
        if is_indexed:
            hits, at, looked = look_up(m.tuples, m.tests, m.links, m.hits, first, count, least, at)
            m.work[joins.WORK_CHECKS] += looked
        else:
            hits = scan(m.tuples, m.tests, m.mask, m.hits, done, count, at, min(stop, at + BLOCK))
            at += BLOCK
        if hits > 0:
            status = take(t, m, node, q, hits)
            if status != joins.DONE:
                return status
    return joins.DONE


# --- events ------------------------------------------------------------------------------------------------------


@inlined
def arrive(t: TreeTables, m: TreeMemory, v: int, event: int) -> int:
    """Add an event to a leaf, if it satisfies what names the variable alone."""
    size, variables = m.segments[joins.SEG_SIZE, v], m.fits.shape[0]
    one = int(np.int64(1))  # for a plain 1, numba compiles what it is handed to anew
    if size == m.segments[joins.SEG_ROOM, v]:
        m.work[joins.WORK_FULL] = v
        return joins.MORE_TUPLES
    at = m.segments[joins.SEG_START, v] + size
    m.tuples[v, at] = event
    for k in range(t.nodes[v, joins.NODE_REST], t.nodes[v, joins.NODE_REST_END]):
        compute(t.rows, m.constants, m.ranks, m.columns, m.tuples, m.stack, t.rows[k, 0], t.rows[k, 1], at, one)
        if m.stack[0, 0] != 1.0:
            return joins.DONE
    m.tuples[variables + joins.ROW_FIRST, at] = event
    m.tuples[variables + joins.ROW_START, at] = m.events[layout.EVENT_POS, event]
    m.tuples[variables + joins.ROW_PART, at] = m.events[layout.EVENT_PART, event]
    m.tuples[variables + joins.ROW_LOW, at] = m.events[layout.EVENT_LOW, event]
    m.tuples[variables + joins.ROW_HIGH, at] = m.events[layout.EVENT_HIGH, event]
    return close(t, m, v, at, one)


@inlined
def propagate(t: TreeTables, m: TreeMemory, event: int, horizon: int) -> int:
    """Join what is new, from the leaves to the root."""
    for node in range(m.fits.shape[0], len(t.nodes)):
        for side in range(joins.NODE_LEFT, joins.NODE_RIGHT + 1):
            son = t.nodes[node, side]
            if t.nodes[son, joins.NODE_JOINS] and m.segments[joins.SEG_OLD, t.nodes[son, joins.NODE_SIBLING]] > 0:
                start = m.segments[joins.SEG_START, son]
                for q in range(start + m.segments[joins.SEG_OLD, son], start + m.segments[joins.SEG_SIZE, son]):
                    status = join(t, m, son, q, event, horizon)
                    if status != joins.DONE:
                        return status
    return joins.DONE


@part
def index(t: TreeTables, m: TreeMemory, node: int, start: int, stop: int) -> None:
    """Put stored tuples into the index of their node, if it has one."""
    if t.nodes[node, joins.NODE_KEY] < t.nodes[node, joins.NODE_KEY_END]:
        for q in range(start, stop):
            at = bucket(t.nodes, t.rows, m.segments, m.tuples, node, node, q)
            if at >= 0:
                m.links[1, q], m.links[0, at] = m.links[0, at], q


@part
def sweep(t: TreeTables, m: TreeMemory, node: int, horizon: int) -> None:
    """Drop the tuples of a node that are out of WITHIN, and index the others anew."""
    start, variables = m.segments[joins.SEG_START, node], m.fits.shape[0]
    by_part = t.options[joins.TREE_BY_COUNT] and t.options[joins.TREE_PARTITIONED]
    kept = start
    for q in range(start, start + m.segments[joins.SEG_SIZE, node]):
        if by_part:
            newest = m.latest[int(m.tuples[variables + joins.ROW_PART, q])]
            is_over = m.tuples[variables + joins.ROW_START, q] < newest - t.options[joins.TREE_WITHIN]
        else:
            is_over = m.tuples[variables + joins.ROW_FIRST, q] < horizon
        if not is_over:
            if kept < q:
                for row in range(m.tuples.shape[0]):
                    m.tuples[row, kept] = m.tuples[row, q]
            kept += 1
    for at in range(start, start + m.segments[joins.SEG_ROOM, node]):
        m.links[0, at] = -1
    size = kept - start
    m.segments[joins.SEG_SIZE, node], m.segments[joins.SEG_OLD, node], m.segments[joins.SEG_LIVE, node] = size, size, 0
    m.segments[joins.SEG_LIMIT, node] = size + max(LEAST_GROWTH, size // 2)
    index(t, m, node, start, kept)


@inlined
def commit(t: TreeTables, m: TreeMemory, horizon: int) -> None:
    """Keep the new tuples of the nodes that are stored, forget those of the others."""
    for node in range(len(t.nodes) - 1):
        size, old = m.segments[joins.SEG_SIZE, node], m.segments[joins.SEG_OLD, node]
        if not t.nodes[node, joins.NODE_KEEPS]:
            m.segments[joins.SEG_SIZE, node] = old
        elif size > old:
            start = m.segments[joins.SEG_START, node]
            index(t, m, node, start + old, start + size)
            m.segments[joins.SEG_OLD, node] = size
            if size > m.segments[joins.SEG_LIMIT, node]:
                sweep(t, m, node, horizon)


@inlined
def take_back(m: TreeMemory, found: int, checks: int, created: int, matches: int) -> None:
    """Undo what has been done for an event that was not committed."""
    for node in range(m.segments.shape[1]):
        m.segments[joins.SEG_SIZE, node] = m.segments[joins.SEG_OLD, node]
    m.work[joins.WORK_FOUND], m.work[joins.WORK_CHECKS] = found, checks
    m.work[joins.WORK_CREATED], m.work[joins.WORK_MATCHES] = created, matches


@inlined
def first_since(events: Ints, clock: int, stop: int, least: int) -> int:
    """Return the first of the events before `stop` that is not before a time or position; `stop` if none is."""
    start = 0
    while start < stop:
        middle = (start + stop) // 2
        if events[clock, middle] < least:
            start = middle + 1
        else:
            stop = middle
    return start


@entry
def process(t: TreeTables, m: TreeMemory, start: int, stop: int) -> tuple[int, int]:
    """Process events start .. stop-1; return (DONE, stop), or what there is no room for and the event to go on with."""
    by_part = t.options[joins.TREE_BY_COUNT] and t.options[joins.TREE_PARTITIONED]
    clock = layout.EVENT_POS if t.options[joins.TREE_BY_COUNT] else layout.EVENT_TS
    horizon = 0  # the first event that is within reach of the one at hand
    if not by_part and start < stop:
        horizon = first_since(m.events, clock, start, m.events[clock, start] - t.options[joins.TREE_WITHIN])
    for event in range(start, stop):
        if by_part:
            if m.events[layout.EVENT_PART, event] >= len(m.latest):
                return joins.MORE_PARTITIONS, event
            m.latest[m.events[layout.EVENT_PART, event]] = m.events[layout.EVENT_POS, event]
        else:
            while m.events[clock, horizon] < m.events[clock, event] - t.options[joins.TREE_WITHIN]:
                horizon += 1
        found, checks = m.work[joins.WORK_FOUND], m.work[joins.WORK_CHECKS]
        created, matches = m.work[joins.WORK_CREATED], m.work[joins.WORK_MATCHES]
        status, is_taken = joins.DONE, False
        if not t.options[joins.TREE_WINDOWS] or m.events[layout.EVENT_LOW, event] <= m.events[layout.EVENT_HIGH, event]:
            for v in range(m.fits.shape[0]):
                if m.fits[v, event] and status == joins.DONE:
                    is_taken = True
                    status = arrive(t, m, v, event)
        if status == joins.DONE and is_taken:
            status = propagate(t, m, event, horizon)
        if status != joins.DONE:
            take_back(m, found, checks, created, matches)
            return status, event
        if is_taken:
            commit(t, m, horizon)
    return joins.DONE, stop


@entry
def reindex(t: TreeTables, m: TreeMemory) -> None:
    """Make the index of every node, in links that are empty."""
    for node in range(len(t.nodes) - 1):
        start = m.segments[joins.SEG_START, node]
        index(t, m, node, start, start + m.segments[joins.SEG_SIZE, node])


@entry
def sweep_all(t: TreeTables, m: TreeMemory, horizon: int) -> None:
    """Drop the tuples of all nodes that are out of WITHIN; `horizon` is the first event within reach."""
    for node in range(len(t.nodes) - 1):
        sweep(t, m, node, horizon)


# --- growing ----------------------------------------------------------------------------------------------------


def with_more(t: TreeTables, memory: TreeMemory, status: int) -> TreeMemory:
    """Return the memory with twice the room of what `process` says is full."""
    if status == joins.MORE_FOUND:
        return memory._replace(found=np.concatenate([memory.found, np.zeros_like(memory.found)], axis=1))
    if status == joins.MORE_PARTITIONS:
        return memory._replace(latest=np.concatenate([memory.latest, np.zeros(len(memory.latest) + 8, np.int64)]))
    start, size, rooms = (
        memory.segments[joins.SEG_START],
        memory.segments[joins.SEG_SIZE],
        memory.segments[joins.SEG_ROOM].copy(),
    )
    rooms[memory.work[joins.WORK_FULL]] *= 2
    starts = np.concatenate([[0], np.cumsum(rooms)[:-1]])
    tuples = np.zeros((memory.tuples.shape[0], int(rooms.sum()) + PADDING), np.float64)
    for n in range(len(start)):
        tuples[:, starts[n] : starts[n] + size[n]] = memory.tuples[:, start[n] : start[n] + size[n]]
    segments = memory.segments.copy()
    segments[joins.SEG_START], segments[joins.SEG_ROOM] = starts, rooms
    grown = memory._replace(segments=segments, tuples=tuples, links=np.full((2, tuples.shape[1]), -1, np.int64))
    reindex(t, grown)
    return grown
