"""What the kernel writes to: a few wide arrays; penstock.plan.layout names their rows.

Growing is not done inside the kernel: it stops before an event for which there might not be room, and `with_room` or
`with_larger_segments` makes room.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.plan import layout
from penstock.plan.layout import RUN_COUNTER, SEGMENT_ROOM, SEGMENT_SIZE, SEGMENT_START
from penstock.plan.tables import Bools, Floats, Ints, Tables

STACK = 512


class Memory(NamedTuple):
    """All that a query keeps between events, and what it needs while it thinks.

    V, N, K, D are the query's numbers of variables, negations, counters and nested loops, F its number of columns.
    """

    sizes: Ints  # (SIZES,) how much of the arrays below is in use
    # Events that a run, a negation or the rest of a batch may still need, oldest first.
    events: Ints  # (6 + N, ·) time never falls; positions count up within a partition
    fits: Bools  # (V, ·) the event is of a type that the variable takes
    columns: Floats  # (F, ·) missing is NaN
    newest: Ints  # (partitions,) the newest event of each that was processed; -1 if it is gone, as are its runs then
    # Runs, one segment of places per state, in no order.
    segments: Ints  # (3, S) START + ROOM of a state is at most START of the next
    runs: Ints  # (6 + K, ·)
    # Elements of runs: a run is a chain from its newest element to its first; runs share their beginnings.
    nodes: Ints  # (5 + D, ·) a node's parent is before it
    # Matches that a negation at their end keeps waiting, and matches that are found.
    waiting: Ints  # (6, ·)
    found: Ints  # (4, ·)
    known: Floats  # (2, ·) when a match became known
    # Hooks, read where the options say so. `hooks` begins with the event at HOOKS_FROM.
    skips: Bools  # (S, ·) runs in this state do not see the event; state 0: it opens none
    hooks: Ints  # (2, n) from which of its windows the event is shed, by bits; where it is counted, -1: nowhere
    observed: Ints  # (cells, S, 2)
    # While thinking: a chain unrolled, oldest element first; what the event may do.
    chain: Ints  # (4 + D, ·)
    counters: Ints  # (K,) of the run at hand
    takes: Bools  # (V,) the event fits the variable, and what names the variable alone holds
    candidates: Ints  # (4, ·)
    values: Floats  # (R,) of the references of the condition at hand
    stack: Floats  # (STACK,)
    # Constants of the query, and the alphabetical rank of each text.
    constants: Floats
    ranks: Ints


def new_memory(tables: Tables, columns: int, constants: Floats, room: int = 256) -> Memory:
    """Return an empty memory for a query."""
    variables, negations = len(tables.variables), len(tables.negations)
    counters, depth, states = len(tables.counters), tables.loops.shape[1], len(tables.states)
    segments = np.zeros((layout.SEGMENT_WIDTH, states), np.int64)
    segments[SEGMENT_START], segments[SEGMENT_ROOM] = np.arange(states) * room, room
    return Memory(
        np.zeros(layout.SIZES, np.int64),
        np.zeros((layout.EVENT_BEFORE + negations, room), np.int64),
        np.zeros((variables, room), np.bool_),
        np.zeros((columns, room), np.float64),
        np.full(1, -1, np.int64),
        segments,
        np.zeros((RUN_COUNTER + counters, states * room), np.int64),
        np.zeros((layout.NODE_ROUND + depth, room), np.int64),
        np.zeros((layout.WAIT_WIDTH, room), np.int64),
        np.zeros((layout.FOUND_WIDTH, room), np.int64),
        np.zeros((layout.KNOWN_WIDTH, room), np.float64),
        np.zeros((states, 0), np.bool_),
        np.zeros((layout.HOOK_WIDTH, 0), np.int64),
        np.zeros((0, states, layout.OBSERVED_WIDTH), np.int64),
        np.zeros((layout.CHAIN_ROUND + depth, room), np.int64),
        np.zeros(counters, np.int64),
        np.zeros(variables, np.bool_),
        np.zeros((layout.CAND_WIDTH, room), np.int64),
        np.zeros(len(tables.references), np.float64),
        np.zeros(STACK, np.float64),
        constants,
        np.zeros(0, np.int64),
    )


def wider(array: NDArray[Any], room: int) -> NDArray[Any]:
    """Return a table with more columns."""
    result = np.zeros((array.shape[0], room), array.dtype)
    result[:, : array.shape[1]] = array
    return result


def with_room(memory: Memory, names: tuple[str, ...], room: int) -> Memory:
    """Return the memory with at least `room` columns in the named tables."""
    changed: dict[str, Any] = {n: wider(getattr(memory, n), room) for n in names if getattr(memory, n).shape[1] < room}
    return memory._replace(**changed)


def with_partitions(memory: Memory, partitions: int) -> Memory:
    """Return the memory with room for what is known of so many partitions."""
    if partitions <= len(memory.newest):
        return memory
    newest = np.full(2 * partitions, -1, np.int64)
    newest[: len(memory.newest)] = memory.newest
    return memory._replace(newest=newest)


def with_larger_segments(memory: Memory) -> Memory:
    """Return the memory with twice the room in every segment of runs."""
    start, size, room = memory.segments[SEGMENT_START], memory.segments[SEGMENT_SIZE], memory.segments[SEGMENT_ROOM]
    rooms = 2 * room
    starts = np.concatenate([[0], np.cumsum(rooms)[:-1]])
    runs = np.zeros((memory.runs.shape[0], int(rooms.sum())), np.int64)
    for s in range(len(start)):
        runs[:, starts[s] : starts[s] + size[s]] = memory.runs[:, start[s] : start[s] + size[s]]
    return memory._replace(segments=np.stack([starts, size, rooms]).astype(np.int64), runs=runs)
