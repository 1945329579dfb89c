"""What the plain kernel writes to; penstock.plan.layout names the rows. Growing is done here, outside the kernel."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.kernel.bits import RUNS
from penstock.kernel.memory import STACK, wider
from penstock.kernel.reclaiming import keep_needed
from penstock.plan import layout
from penstock.plan.layout import SEGMENT_NEED, SEGMENT_ROOM, SEGMENT_SIZE, SEGMENT_START, SEGMENT_SWEEP
from penstock.plan.plain import PlainTables
from penstock.plan.tables import Bools, Floats, Ints

SmallInts: TypeAlias = NDArray[np.int32]

BLOCK = 512  # runs, or events, that are worked on at a time: a block of a column stays in the first cache
STRIDE = 16  # neighbours that become candidates at a time: as many places behind them must be free
AHEAD = 32  # events: so far ahead of an event it is known what takes them; a power of two
DEEP = 64
FIRST_SWEEP = 64  # a segment is first swept at this size
_SMALL_ROOM = 4096  # while there is less, to grow costs less than to stop often
_TINY_ROOM = 1024  # while there is less, to stop costs more than the room


class PlainMemory(NamedTuple):
    """All that a plain query keeps between events, and what it needs while it thinks.

    V variables, S states, R registers, F columns, P partitions.
    """

    sizes: Ints  # (HAS_SIZES,) how much of the arrays below is in use, and the work done
    # Events that a run or the rest of a batch may still need, oldest first.
    events: Ints  # (6, ·) time never falls; positions count up within a partition
    fits: Bools  # (V, ·) the event is of a type that the variable takes, and what names the variable alone holds
    columns: Floats  # (F, ·) missing is NaN
    newest: Ints  # (2, P) of each partition: the position and the first window of its newest event
    # Runs, one segment of places per state, oldest first. A run that has left has NaN in REACH.
    segments: Ints  # (9, S) START + ROOM of a state is at most START of the next
    runs: NDArray[np.int32]  # (3, ·), or (4, ·) once runs have been tallied
    registers: Floats  # (R, ·) and RUNS places behind the last: so many are compared at a time
    # Buckets of a state's index, in the places of its segment: the newest group of runs, or -1. A group is
    # neighbours with one key, and is named by twice its first run, and one more if it has several; HELD_NEXT of the
    # first is the next group, or -1, and that of the second where the group ends.
    heads: NDArray[np.int32]  # (·,)
    # Elements of runs: a run is a chain from its newest element to its first; runs share their beginnings.
    nodes: NDArray[np.int32]  # (3, ·) a node's parent is before it, or -1
    found: NDArray[np.int32]  # (4, ·) matches, as they are found, and groups of them that end alike
    over: Ints  # (5, ·) runs that ended without a match; no places unless these are reported
    spans: Ints  # (2, ·) the windows of the matches; no places without WINDOW
    # While thinking: what the event may do; bounds of a step; the stack machine.
    candidates: Ints  # (4, ·)
    groups: Ints  # (·, 4) ranges of candidates that do the same
    # Hooks, for the events of the batch; HAS_BATCH is the place of the first. Not read unless the options say so.
    skips: Bools  # (S, n) runs in this state do not see the event; state 0: it opens none
    sheds: Ints  # (n,) the event is shed from its first window (bit 0), its second (bit 1), ...
    cells: Ints  # (n,) where what happens to the event is counted; -1: nowhere
    observed: Ints  # (cells, S, 2)
    ledger: Ints  # (n, 5) what the event took, see penstock.kernel.tallying; SHED is -1 until it has been decided
    worth: Floats  # (S + 1, n) of the event per run in each state; then the worth up to which it is shed. Or no columns
    open_runs: Ints  # (cells, S) the runs that were open when the cell's events came; or no cells
    moves: Ints  # (S, S) how many runs went from one state to another
    # Open runs, while they are tallied. An event that opened runs is their opener; those of a partition are a list.
    summary: (
        Ints  # (P, S + 2) of each partition: open runs by state, 1 in state 0; its oldest opener in reach, its newest
    )
    tallies: NDArray[
        np.int32
    ]  # (·, S) of each event: the opener after it, or -1; how many of its runs are in each state
    slots: Bools  # (3, ·) of the event's windows: taken by a run, consumed; left to the run at hand
    bounds: Floats  # (·, 3) register, least, most
    pairs: Ints  # (·, 3) two registers and how they must compare
    last: Ints  # (LAST_WIDTH,) whose bounds these are
    block: Ints  # (BLOCK,) the runs that the machine works on
    values: Floats  # (references,)
    sides: Floats  # (sides,) what intervals ask of the event at hand, if it is the one in
    side_events: Ints  # (sides,)
    stack: Floats  # (STACK,)
    lanes: Floats  # (DEEP, BLOCK) the stack of the machine that works on a block at a time
    # Of the query: its constants, the alphabetical rank of each text, which conjuncts may be asked as intervals.
    constants: Floats
    ranks: Ints
    exact: Bools  # (J,)
    # What the event at hand leaves of conditions that are no intervals, see `folding.py`
    foldable: Bools  # (J,) an event may leave less of it than all
    folds: Bools  # (T,) a step has such a condition
    lengths: Ints  # (J,) of what is left
    left: Ints  # (·, 3) as PlainTables.rows
    known: Floats  # (·,) the constants in it
    takers: NDArray[np.int32]  # (BLOCK + AHEAD,) of events: the variable that takes each, NO_WAY or SEVERAL_WAYS
    hints: Ints  # (V, ·, 3) in which indexes an event that the variable takes will be looked up, see `foreseeing.py`
    ahead: Ints  # (AHEAD, ·) where an event, by its place modulo AHEAD, will be looked up: a bucket, then a run, or -1
    ways: Ints  # (S, V) the step by which runs of a state take a variable; NO_WAY if none, SEVERAL_WAYS if several


def new_plain_memory(
    t: PlainTables, variables: int, columns: int, references: int, constants: Floats, room: int = 256
) -> PlainMemory:
    """Return an empty memory for a plain query."""
    states, hints, foldable = len(t.states), hints_of(t, variables), foldable_of(t)
    sides = int(t.conjuncts[:, layout.CONJ_SIDE].max(initial=0)) + 1
    segments = np.zeros((layout.PLAIN_SEGMENT_WIDTH, states), np.int64)
    segments[SEGMENT_ROOM], segments[SEGMENT_SWEEP] = room, FIRST_SWEEP
    segments[SEGMENT_START], places = starts_of(segments[SEGMENT_ROOM])
    return PlainMemory(
        np.zeros(layout.HAS_SIZES, np.int64),
        np.zeros((layout.EVENT_BEFORE, room), np.int64),
        np.zeros((variables, room), np.bool_),
        np.zeros((columns, room), np.float64),
        np.zeros((layout.NEWEST_WIDTH, 1), np.int64),
        segments,
        np.zeros((layout.HELD_WIDTH, places), np.int32),
        new_registers(registers_of(t), places),
        np.full(places, -1, np.int32),
        np.zeros((layout.LINK_WIDTH, 512 * room), np.int32),
        np.zeros((layout.MATCH_WIDTH, room), np.int32),
        np.zeros((layout.OVER_WIDTH, 0), np.int64),
        np.zeros((layout.SPAN_WIDTH, room if t.options[layout.PLAIN_LOW] >= 0 else 0), np.int64),
        np.zeros((layout.PICK_WIDTH, room), np.int64),
        np.zeros((4 * len(t.steps) + 16, layout.GROUP_WIDTH), np.int64),
        np.zeros((states, 0), np.bool_),
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
        np.zeros((0, states, layout.OBSERVED_WIDTH), np.int64),
        np.zeros((0, layout.LEDGER_WIDTH), np.int64),
        np.zeros((states + 1, 0), np.float64),
        np.zeros((0, states), np.int64),
        np.zeros((0, states), np.int64),
        np.zeros((0, states + layout.SUMMARY_WIDTH), np.int64),
        np.zeros((0, states), np.int32),
        np.zeros((layout.SLOT_WIDTH, room), np.bool_),
        np.zeros((8 + len(t.conjuncts), 3), np.float64),
        np.zeros((1 + len(t.conjuncts), 3), np.int64),
        np.full(layout.LAST_WIDTH, -1, np.int64),
        np.zeros(BLOCK, np.int64),
        np.zeros(references + 1, np.float64),
        np.zeros(sides, np.float64),
        np.full(sides, -1, np.int64),
        np.zeros(STACK, np.float64),
        np.zeros((DEEP, BLOCK), np.float64),
        constants,
        np.zeros(0, np.int64),
        np.ones(len(t.conjuncts), np.bool_),
        foldable,
        np.array([foldable[row[layout.PLAIN_CONJUNCT] : row[layout.PLAIN_CONJUNCT_END]].any() for row in t.steps]),
        np.zeros(len(t.conjuncts), np.int64),
        np.zeros_like(t.rows),
        np.zeros(len(t.rows), np.float64),
        np.zeros(BLOCK + AHEAD, np.int32),
        hints,
        np.zeros((AHEAD, hints.shape[1]), np.int64),
        ways_of(t, variables),
    )


def foldable_of(t: PlainTables) -> Bools:
    """Return which conjuncts are no intervals, hang together by AND or OR, and call nothing."""
    foldable = np.zeros(len(t.conjuncts), np.bool_)
    for k, row in enumerate(t.conjuncts):
        codes = set(t.rows[row[layout.CONJ_WHOLE] : row[layout.CONJ_WHOLE_END], 0].tolist())
        foldable[k] = row[layout.CONJ_SLOT] < 0 and layout.CALL not in codes and bool(codes & {layout.AND, layout.OR})
    return foldable


def hints_of(t: PlainTables, variables: int) -> Ints:
    """Return in which indexes events are looked up, see `PlainMemory.hints`."""
    hints: list[dict[tuple[int, int], int]] = [{} for _ in range(variables)]  # per variable: (state, column), if taken
    for step in t.steps[: t.states[-1, layout.PLAIN_STEP_END]]:
        source, target, key = step[layout.PLAIN_SOURCE], step[layout.PLAIN_TARGET], step[layout.PLAIN_KEY]
        of_variable, column = hints[step[layout.PLAIN_VARIABLE]], -2
        if t.states[source, layout.PLAIN_INDEX] >= 0:
            column = -1 if t.options[layout.PLAIN_PART] >= 0 else -2 if key < 0 else _column(t.conjuncts[key])
            if source > 0 and column > -2:
                of_variable[int(source), int(column)] = 1
        index = t.states[target, layout.PLAIN_INDEX]
        for row in t.setters[step[layout.PLAIN_SETTER] : step[layout.PLAIN_SETTER_END]]:
            if row[layout.SET_SLOT] == index and row[layout.SET_KIND] == layout.SET_READ:
                column = row[layout.SET_COLUMN]
        if index >= 0 and column > -2:
            of_variable.setdefault((int(target), int(column)), 0)
    table = np.full((variables, max(map(len, hints), default=0) + 1, layout.HINT_WIDTH), layout.NO_STATE, np.int64)
    for rows, hint in zip(table, hints, strict=True):
        for row, (place, takes) in zip(rows, sorted(hint.items()), strict=False):
            row[:] = *place, takes
    return table


def _column(conjunct: Ints) -> int:
    """Return the column of events that a conjunct compares with; -2 if it is no column."""
    return int(conjunct[layout.CONJ_COLUMN]) if conjunct[layout.CONJ_COLUMN] >= 0 else -2


def ways_of(t: PlainTables, variables: int) -> Ints:
    """Return by which step the runs of each state take each variable, see `PlainMemory.ways`."""
    ways = np.full((len(t.states), variables), layout.NO_WAY, np.int64)
    for state, row in enumerate(t.states):
        for step in range(row[layout.PLAIN_STEP], row[layout.PLAIN_STEP_END]):
            variable = t.steps[step, layout.PLAIN_VARIABLE]
            ways[state, variable] = step if ways[state, variable] == layout.NO_WAY else layout.SEVERAL_WAYS
    return ways


def registers_of(t: PlainTables) -> int:
    """Return how many registers a run has."""
    slots = [int(t.setters[:, layout.SET_SLOT].max(initial=0)), int(t.steps[:, layout.PLAIN_MASK].max(initial=0))]
    implicit = (layout.PLAIN_LOW, layout.PLAIN_HIGH, layout.PLAIN_PART, layout.PLAIN_LAST, layout.PLAIN_BIRTH)
    return 1 + max(slots + [int(t.options[place]) for place in implicit] + [0])


# Where segments and columns begin. Rooms are mostly powers of two; side by side, what is in use of all of them would
# compete for a few places of the first cache (a place for every 4,096 bytes), which takes up to 1.5 times as long.
_APART = 72  # runs between two segments: 9 lines of the cache
_PERIOD, _REST = 512, 328  # a column has so many more than a multiple: 41 lines
_LINE = 64  # bytes


def starts_of(rooms: Ints) -> tuple[Ints, int]:
    """Return where the segments with so much room begin, and how many places there are in all."""
    ends = np.cumsum(rooms + _APART)
    return np.concatenate([[0], ends[:-1]]), int(ends[-1])


def new_registers(rows: int, places: int) -> Floats:
    """Return registers for runs in so many places: every column begins with a line of the cache."""
    least = places + RUNS
    width = least + (_REST - least) % _PERIOD
    raw = np.zeros(rows * width + _LINE // 8, np.float64)
    first = -raw.ctypes.data % _LINE // 8
    return raw[first : first + rows * width].reshape(rows, width)


def with_plain_room(t: PlainTables, memory: PlainMemory, status: int) -> PlainMemory:
    """Return the memory with twice the room for what the kernel says it has too little of."""
    if status == layout.MORE_RUNS:
        return with_wider_segments(t, memory)
    name = {layout.MORE_CANDIDATES: "candidates", layout.MORE_NODES: "nodes", layout.MORE_FOUND: "found"}[status]
    array = getattr(memory, name)
    room = 2 * array.shape[1] + 8
    changed: dict[str, Any] = {name: wider(array, room)}
    grown = memory._replace(**changed)
    if status == layout.MORE_FOUND and memory.spans.shape[1]:
        grown = grown._replace(spans=wider(memory.spans, grown.found.shape[1]))
    if status == layout.MORE_CANDIDATES:
        groups = np.zeros((2 * len(memory.groups), layout.GROUP_WIDTH), np.int64)
        grown = grown._replace(groups=groups, slots=np.zeros((layout.SLOT_WIDTH, room), np.bool_))
    return grown


def with_needed_nodes(memory: PlainMemory, *, is_held: bool) -> PlainMemory:
    """Return the memory without the elements that no run goes back to; in an array of their own, if it `is_held`."""
    to, count = np.empty_like(memory.nodes) if is_held else memory.nodes, int(memory.sizes[layout.HAS_NODES])
    eights, places = np.zeros(count // 8 + 1, np.uint64), np.empty(count, np.int32)
    marked = eights.view(np.uint8)
    kept = keep_needed(memory.segments, memory.runs, memory.nodes, eights, marked, places, to)
    memory.sizes[layout.HAS_NODES] = kept
    return memory._replace(nodes=to)


def must_grow(memory: PlainMemory, sizes: Ints) -> bool:
    """After a sweep: note what the segments need that were short of room; return whether one must grow.

    One that is half empty now need not: what it keeps stays near, and in the cache.

    Args:
        memory: swept.
        sizes: of the segments before that.
    """
    segments = memory.segments
    need, room = segments[SEGMENT_NEED] - (sizes - segments[SEGMENT_SIZE]), segments[SEGMENT_ROOM]
    is_short = (segments[SEGMENT_NEED] > room) & ((2 * need > room) | (room < _SMALL_ROOM))
    segments[SEGMENT_NEED] = np.where(is_short, np.maximum(need, room + 1), 0)
    return bool(is_short.any())


def with_wider_segments(t: PlainTables, memory: PlainMemory) -> PlainMemory:
    """Return the memory with at least twice the room in every segment that needs more than it has.

    What has very little gets four times as much, for to stop costs more than the room; but not if it has an index,
    which has as many buckets, that are better near each other.
    """
    start, size, room = memory.segments[SEGMENT_START], memory.segments[SEGMENT_SIZE], memory.segments[SEGMENT_ROOM]
    need = memory.segments[SEGMENT_NEED]
    times = np.where((room < _TINY_ROOM) & (t.states[:, layout.PLAIN_INDEX] < 0), 4, 2)
    rooms = np.where(need > room, np.maximum(times * room, need + need // 2), room)
    starts, total = starts_of(rooms)
    runs = np.zeros((memory.runs.shape[0], total), np.int32)
    registers = new_registers(memory.registers.shape[0], total)
    for s in range(len(start)):
        here, there = slice(start[s], start[s] + size[s]), slice(starts[s], starts[s] + size[s])
        runs[:, there], registers[:, there] = memory.runs[:, here], memory.registers[:, here]
    segments = memory.segments.copy()
    segments[SEGMENT_START], segments[SEGMENT_ROOM] = starts, rooms
    return memory._replace(segments=segments, runs=runs, registers=registers, heads=np.full(total, -1, np.int32))
