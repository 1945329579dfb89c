"""Plain queries: open runs are counted by state and by what they have left of WITHIN, and some of them dropped."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernel.compiling import entry, inlined
from penstock.kernel.drawing import STEP, unit
from penstock.kernel.plain_memory import PlainMemory
from penstock.kernel.sweeping import is_over, sweep
from penstock.kernel.tallying import leave, uncount
from penstock.plan.layout import (
    HAS_EVENTS,
    HELD_NEXT,
    NEWEST_POS,
    PLAIN_BY_COUNT,
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


@entry
def count_cells(t: PlainTables, m: PlainMemory, now: int, left: Floats, sizes: Ints) -> None:
    """Count the open runs of each state by what they have left, in equal parts: one per column of `sizes`.

    A run's part is kept in HELD_NEXT until `drop_cells`, which builds the indexes anew; -1: it is over, or must stay.

    Args:
        t: of the query.
        m: likewise.
        now: the time of the stream.
        left: by partition, the share that its runs have left, NaN if they must stay; empty: what is left of WITHIN.
        sizes: (S, B) the counts.
    """
    bins, within = sizes.shape[1], max(1, t.options[PLAIN_WITHIN])
    parts = m.runs[HELD_NEXT]
    for s in range(1, len(t.states)):
        start = m.segments[SEGMENT_START, s]
        for run in range(start, start + m.segments[SEGMENT_SIZE, s]):
            share = 1 - used_of(t, m, run, now) / within
            if len(left) > 0 and not math.isnan(share):
                share = left[0 if t.options[PLAIN_PART] < 0 else int(m.registers[t.options[PLAIN_PART], run])]
            if math.isnan(share):
                parts[run] = -1
                continue
            parts[run] = min(max(int(share * bins), 0), bins - 1)
            sizes[s, parts[run]] += 1


@entry
def choose_cells(utility: Floats, sizes: Ints, count: int, some: Floats, wanted: Ints) -> None:
    """Say of how many runs of each cell the `count` of least utility are; of cells of the same, the first ones' go.

    Nothing is sorted: the greatest utility of which runs go is searched for among those that are left in question, of
    which about half fall away each time.

    Args:
        utility: (cells,) what a run of a cell is worth.
        sizes: (cells,) how many runs there are.
        count: how many go.
        some: (cells,) room for utilities.
        wanted: (cells,) the result, 0 so far.
    """
    left, total = 0, 0
    for cell in range(len(sizes)):
        some[left] = utility[cell]
        left += int(sizes[cell] > 0)
        total += sizes[cell]
    if total <= count:
        for cell in range(len(sizes)):
            wanted[cell] = sizes[cell]
        return
    least, most = -math.inf, math.inf  # the limit is more than the one, and no more than the other
    while left > 0:
        limit, upto = some[left // 2], 0
        for cell in range(len(sizes)):
            upto += sizes[cell] if utility[cell] <= limit else 0
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
    for cell in range(len(sizes)):
        if utility[cell] < most:
            wanted[cell] = sizes[cell]
            count -= sizes[cell]
    for cell in range(len(sizes)):
        if utility[cell] == most:
            wanted[cell] = min(count, sizes[cell])
            count -= wanted[cell]


@entry
def drop_cells(t: PlainTables, m: PlainMemory, sizes: Ints, wanted: Ints, seed: int) -> None:
    """Drop so many runs of each cell that `count_cells` has counted; both arrays count down.

    Args:
        t: of the query.
        m: likewise.
        sizes: (S, B) how many runs there are.
        wanted: (S, B) how many of them go.
        seed: of the choice among the runs of a cell; -1: the oldest go first.
    """
    for s in range(1, len(t.states)):
        start = m.segments[SEGMENT_START, s]
        for run in range(start, start + m.segments[SEGMENT_SIZE, s]):
            part = m.runs[HELD_NEXT, run]
            if part < 0 or wanted[s, part] == 0:
                continue
            # Each run goes with the probability that is left for it: in the end exactly as many have gone as must.
            goes = seed < 0 or unit(np.uint64(seed + run) * STEP) * sizes[s, part] < wanted[s, part]
            sizes[s, part] -= 1
            if goes:
                wanted[s, part] -= 1
                leave(m, s, run)
                if t.options[PLAIN_TALLIES] == TALLY_KEPT:
                    uncount(m, s, run)
        sweep(t, m, s, m.sizes[HAS_EVENTS] - 1)
