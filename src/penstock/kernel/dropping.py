"""Plain queries: open runs are counted by state and by what they have left of WITHIN, and some of them dropped."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.kernel.compiling import entry, inlined, part
from penstock.kernel.drawing import STEP, unit
from penstock.kernel.lean import hook
from penstock.kernel.plain_memory import PlainMemory
from penstock.kernel.sweeping import is_due, is_over, sweep
from penstock.kernel.tallying import leave, uncount
from penstock.plan.layout import (
    HAS_EVENTS,
    NEWEST_POS,
    PLAIN_BY_COUNT,
    PLAIN_HIGH,
    PLAIN_LAST,
    PLAIN_PART,
    PLAIN_TALLIES,
    PLAIN_WITHIN,
    REACH,
    SEGMENT_SIZE,
    SEGMENT_START,
    TALLY_KEPT,
)
from penstock.plan.plain import PlainTables
from penstock.plan.tables import Floats, Ints

SmallInts = NDArray[np.int32]


@inlined
def used_of(t: PlainTables, m: PlainMemory, run: int, now: int) -> float:
    """Return how much of WITHIN a run has used up; NaN if it is over or has left."""
    if t.options[PLAIN_BY_COUNT]:
        part = 0 if t.options[PLAIN_PART] < 0 else int(m.registers[t.options[PLAIN_PART], run])
        now = m.newest[NEWEST_POS, part]
    used = now - m.registers[REACH, run]
    return math.nan if not used <= t.options[PLAIN_WITHIN] or is_over(t, m, run) else used


@entry
def count_open(t: PlainTables, m: PlainMemory, now: int, counts: Ints) -> None:
    """Count the open runs of each state; `now`: the time of the stream."""
    for s in range(1, len(t.states)):
        start, count = m.segments[SEGMENT_START, s], 0
        for run in range(start, start + m.segments[SEGMENT_SIZE, s]):
            count += not math.isnan(used_of(t, m, run, now))
        counts[s] = count


class Room(NamedTuple):
    """What is needed while runs are counted and dropped, and kept from one time to the next.

    B columns of what runs have left, S states, P partitions.
    """

    parts: Ints  # (2, P) the column of a partition's runs, and the reach that the open ones have at least
    columns: SmallInts  # (places of runs,) the column of each run; -1: it is over, or must stay
    cells: Ints  # (3, S, B) the runs that there are, those that go, and the cells that have runs
    some: Floats  # (S * B,)


@inlined
def column_of(t: PlainTables, m: PlainMemory, run: int, now: int, left: Floats, bins: int) -> int:
    """Return the column of a run; see `find_columns`."""
    share = 1 - used_of(t, m, run, now) / max(1, t.options[PLAIN_WITHIN])
    if len(left) > 0 and not math.isnan(share):
        share = left[0 if t.options[PLAIN_PART] < 0 else int(m.registers[t.options[PLAIN_PART], run])]
    return -1 if math.isnan(share) else min(max(int(share * bins), 0), bins - 1)


@part
def find_parts(t: PlainTables, m: PlainMemory, now: int, left: Floats, bins: int, parts: Ints) -> None:
    """Say in which column the runs of each partition are, and which of them are open: none, if they must stay."""
    for p in range(len(left)):
        newest = m.newest[NEWEST_POS, p] if t.options[PLAIN_BY_COUNT] else now
        is_in = not math.isnan(left[p])
        parts[0, p] = min(max(int(left[p] * bins), 0), bins - 1) if is_in else -1
        parts[1, p] = newest - t.options[PLAIN_WITHIN] if is_in else np.iinfo(np.int64).max


@part
def find_columns(t: PlainTables, m: PlainMemory, now: int, left: Floats, bins: int, room: Room) -> None:
    """Say in which of so many columns each run is, by what it has left, in equal parts; -1: it is over, or must stay.

    Args:
        t: of the query.
        m: likewise.
        now: the time of the stream.
        left: by partition, the share that its runs have left, NaN if they must stay; empty: what is left of WITHIN.
        bins: how many columns there are.
        room: for the result.
    """
    is_by_part = len(left) > 0 and t.options[PLAIN_PART] >= 0
    is_by_part &= t.options[PLAIN_LAST] < 0 and t.options[PLAIN_HIGH] < 0  # else runs are over for other reasons, too
    if is_by_part:
        find_parts(t, m, now, left, bins, room.parts)
    part_of, reach = m.registers[max(t.options[PLAIN_PART], 0)], m.registers[REACH]
    of_parts, least, columns = room.parts[0], room.parts[1], room.columns
    for s in range(1, len(t.states)):
        start = m.segments[SEGMENT_START, s]
        stop = start + m.segments[SEGMENT_SIZE, s]
        if is_by_part:
            for run in range(start, stop):
                p = int(part_of[run])
                columns[run] = of_parts[p] if reach[run] >= least[p] else -1  # not if it has left: NaN
        else:
            for run in range(start, stop):
                columns[run] = column_of(t, m, run, now, left, bins)


@part
def count_all(t: PlainTables, m: PlainMemory, columns: SmallInts, sizes: Ints) -> None:
    """Count the runs of each state and column."""
    for s in range(1, len(t.states)):
        start = m.segments[SEGMENT_START, s]
        for run in range(start, start + m.segments[SEGMENT_SIZE, s]):
            if columns[run] >= 0:
                sizes[s, columns[run]] += 1


@entry
def count_cells(t: PlainTables, m: PlainMemory, now: int, left: Floats, room: Room) -> None:
    """Count the open runs of each state by what they have left: see `find_columns`, and `Room.cells`."""
    sizes = room.cells[0]
    sizes[:, :] = 0
    find_columns(t, m, now, left, sizes.shape[1], room)
    count_all(t, m, room.columns, sizes)


@part
def choose(utility: Floats, sizes: Ints, count: int, some: Floats, used: Ints, wanted: Ints) -> None:
    """Say of how many runs of each cell the `count` of least utility are; see `choose_cells`."""
    cells, total = 0, 0
    for cell in range(len(sizes)):
        used[cells], some[cells] = cell, utility[cell]
        cells += int(sizes[cell] > 0)
        total += sizes[cell]
    if total <= count:
        for k in range(cells):
            wanted[used[k]] = sizes[used[k]]
        return
    least, most, left = -math.inf, math.inf, cells  # the limit is more than the one, and no more than the other
    while left > 0:
        limit, upto = some[left // 2], 0
        for k in range(cells):
            upto += sizes[used[k]] if utility[used[k]] <= limit else 0
        if upto >= count:
            most = limit
        else:
            least = limit
        kept = 0
        for k in range(left):
            value = some[k]
            some[kept] = value
            kept += int(least < value < most)
        left = kept
    alike = 0
    for k in range(cells):
        if utility[used[k]] < most:
            wanted[used[k]] = sizes[used[k]]
            count -= sizes[used[k]]
        elif utility[used[k]] == most:
            alike += sizes[used[k]]
    before = 0
    for k in range(cells):  # the same part of each, in whole numbers that add up to what is left to go
        if utility[used[k]] == most:
            upto = before + sizes[used[k]]
            wanted[used[k]] = count * upto // alike - count * before // alike
            before = upto


@entry
def choose_cells(utility: Floats, sizes: Ints, count: int, some: Floats, used: Ints, wanted: Ints) -> None:
    """Say of how many runs of each cell the `count` of least utility are; of cells of the same, the same part of each.

    Nothing is sorted: the greatest utility of which runs go is searched for among those that are left in question, of
    which about half fall away each time. Most cells have no runs, and are looked at once.

    Args:
        utility: (cells,) what a run of a cell is worth.
        sizes: (cells,) how many runs there are.
        count: how many go.
        some: (cells,) room for utilities.
        used: (cells,) room for the cells that have runs.
        wanted: (cells,) the result, 0 so far.
    """
    choose(utility, sizes, count, some, used, wanted)


@part
def drop_all(t: PlainTables, m: PlainMemory, columns: SmallInts, sizes: Ints, wanted: Ints, seed: int) -> int:
    """Drop as `drop_cells` does."""
    dropped, is_kept = 0, hook(t.hooks, PLAIN_TALLIES) == TALLY_KEPT
    for s in range(1, len(t.states)):
        start, going = m.segments[SEGMENT_START, s], 0
        for column in range(wanted.shape[1]):
            going += wanted[s, column]
        dropped += going
        for run in range(start, start + m.segments[SEGMENT_SIZE, s] if going > 0 else start):
            column = columns[run]
            if column < 0 or wanted[s, column] == 0:
                continue
            # Each run goes with the probability that is left for it: in the end exactly as many have gone as must.
            goes = seed < 0 or unit(np.uint64(seed + run) * STEP) * sizes[s, column] < wanted[s, column]
            sizes[s, column] -= 1
            if goes:
                wanted[s, column] -= 1
                leave(m, s, run)
                if is_kept:
                    uncount(m, s, run)
        # Who goes next depends on places, and these on sweeps: where runs have been tallied, as in virtual time, all is
        # swept as ever. Else a few that have left may stay where they are, as they do when an event takes them.
        if len(m.summary) > 0 or is_due(m, s):
            sweep(t, m, s, m.sizes[HAS_EVENTS] - 1)
    return dropped


@entry
def drop_cells(t: PlainTables, m: PlainMemory, room: Room, wanted: Ints, seed: int) -> int:
    """Drop runs that `count_cells` has just counted; return how many.

    Args:
        t: of the query.
        m: likewise.
        room: as `count_cells` has left it.
        wanted: (S, B) how many go of each cell; counts down.
        seed: of the choice among the runs of a cell; -1: the oldest go first.
    """
    return drop_all(t, m, room.columns, room.cells[0], wanted, seed)


@entry
def drop_least(
    t: PlainTables, m: PlainMemory, now: int, left: Floats, utility: Floats, count: int, seed: int, room: Room
) -> int:  # fmt: skip
    """Drop the `count` open runs of least utility, or all if there are fewer; return how many: all of it in one call.

    Args:
        t: of the query.
        m: likewise.
        now: as for `find_columns`.
        left: likewise.
        utility: (S, B) what a run of each state and column is worth.
        count: how many go.
        seed: as for `drop_cells`.
        room: with as many cells.
    """
    sizes, wanted = room.cells[0], room.cells[1]
    room.cells[:2] = 0
    find_columns(t, m, now, left, sizes.shape[1], room)
    count_all(t, m, room.columns, sizes)
    choose(utility.reshape(-1), sizes.reshape(-1), count, room.some, room.cells[2].reshape(-1), wanted.reshape(-1))
    return drop_all(t, m, room.columns, sizes, wanted, seed)
