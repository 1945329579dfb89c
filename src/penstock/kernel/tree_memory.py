"""What the kernel of tree plans writes to. Growing is done outside the kernel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.plan import joins, layout
from penstock.plan.tables import Bools, Floats, Ints
from penstock.plan.tree import TreeTables

BLOCK = 512
PADDING = 72  # places, so that the rows of a tuple do not fall into the same set of a cache
LEAST_GROWTH = 64  # a segment is swept when it has grown by this and by half


class TreeMemory(NamedTuple):
    """All that a tree plan keeps between events, and what it needs while it thinks.

    V variables, F columns, N nodes, K registers of the node that has most. Tuples hold numbers of events as floats,
    which are exact.
    """

    # Events, oldest first, as in penstock.kernel.memory.
    events: Ints  # (6, ·) time never falls; positions count up within a partition
    fits: Bools  # (V, ·) the event is of a type that the variable takes
    columns: Floats  # (F, ·) missing is NaN
    constants: Floats
    ranks: Ints  # (texts,) alphabetical rank
    # Tuples, a segment of places per node in the order in which they were made: in a leaf, that of its events.
    segments: Ints  # (SEG_WIDTH, N) START + ROOM of a node is START of the next; ROOM is a power of 2; between events
    #   SIZE = OLD, 0 if the node is not kept; tuples of a leaf before LIVE are out of WITHIN; beyond LIMIT it is swept
    tuples: Floats  # (V + 5 + K, ·) an event per variable of the node, ROW_FIRST ..., registers; never -0.0
    links: Ints  # (2, ·) by hash, in a node's places: the newest tuple; by tuple: the one before it, -1: none
    latest: Ints  # (·,) newest position of each partition; for WITHIN n EVENTS with PARTITION BY only
    found: Ints  # (V + 2, ·) matches: events, first and last window
    work: Ints  # (WORK,) matches in `found`; since the beginning: tuples looked at, tuples made, matches; what is full
    # While thinking.
    tests: Floats  # (3, ·) a row of the sibling's tuples, least and most
    hits: Ints  # (BLOCK,) stored tuples that pass the tests
    mask: Bools  # (BLOCK,)
    stack: Floats  # (·, BLOCK) of the stack machine, for BLOCK tuples at once


def new_tree_memory(t: TreeTables, variables: int, columns: int, constants: Floats, room: int = 256) -> TreeMemory:
    """Return an empty memory for a tree plan; `room` is a power of 2."""
    nodes, height = len(t.nodes), variables + joins.ROW_REGISTER + int(t.options[joins.TREE_REGISTERS])
    segments = np.zeros((joins.SEG_WIDTH, nodes), np.int64)
    segments[joins.SEG_START], segments[joins.SEG_ROOM], segments[joins.SEG_LIMIT] = (
        np.arange(nodes) * room,
        room,
        LEAST_GROWTH,
    )
    return TreeMemory(
        np.zeros((layout.EVENT_BEFORE, room), np.int64),
        np.zeros((variables, room), np.bool_),
        np.zeros((columns, room), np.float64),
        constants,
        np.zeros(0, np.int64),
        segments,
        np.zeros((height, nodes * room + PADDING), np.float64),
        np.full((2, nodes * room + PADDING), -1, np.int64),
        np.zeros(1, np.int64),
        np.zeros((variables + joins.FOUND_ROWS, room), np.int64),
        np.zeros(joins.WORK, np.int64),
        np.zeros((3, height + len(t.rows)), np.float64),
        np.zeros(BLOCK, np.int64),
        np.zeros(BLOCK, np.bool_),
        np.zeros((int(t.options[joins.TREE_STACK]), BLOCK), np.float64),
    )


def oldest(t: TreeTables, memory: TreeMemory, horizon: int) -> int:
    """Return the oldest event that a tuple holds or, from `horizon` on, may still be needed; call `sweep_all` first."""
    needed = horizon
    for n in range(len(t.nodes) - 1):
        start, size = memory.segments[joins.SEG_START, n], memory.segments[joins.SEG_SIZE, n]
        firsts = memory.tuples[len(memory.fits) + joins.ROW_FIRST, start : start + size]
        needed = min(needed, int(firsts.min(initial=needed)))
    return needed


def renumber(memory: TreeMemory, dropped: int) -> None:
    """Follow the event store when its oldest events, which no tuple holds, are dropped."""
    memory.tuples[: len(memory.fits) + joins.ROW_START] -= dropped
