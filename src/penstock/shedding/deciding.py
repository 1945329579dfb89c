"""Decisions by looking up: compiled, a few nanoseconds each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.kernel.compiling import compiled, entry, inlined, part
from penstock.kernel.drawing import FIRST, SECOND, STEP, unit
from penstock.plan.tables import Bools, Floats, Ints
from penstock.shedding.views import View

SmallInts = NDArray[Any]  # of bytes
Chances = NDArray[np.uint64]


CERTAIN = 2.0**53  # chances are shares of this: as many numbers can be drawn
_ALWAYS, _NEVER = np.uint64(CERTAIN), np.uint64(0)


def chances(shares: Floats) -> Chances:
    """Return shares from 0 to 1 as what a draw has to be less than: 1 is always, 0 never."""
    whole: Chances = np.ceil(shares * CERTAIN).astype(np.uint64)
    return whole


@inlined
def _bits(x: np.uint64) -> np.uint64:
    """Return 64 bits that look like chance: those that `penstock.kernel.drawing.unit` makes a share of."""
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))


@inlined
def _draw(of_event: np.uint64, window: int) -> np.uint64:
    """Return a number below CERTAIN that depends on an event, a window and a seed alone; see `_of_event`."""
    return _bits(of_event + np.uint64(window) * SECOND) >> np.uint64(11)


@inlined
def _of_event(number: int, seed: int) -> np.uint64:
    return np.uint64(number) * STEP + np.uint64(seed)


@inlined
def size_at(sizes: Ints, k: int) -> int:
    """Return the size of a pair's window; `View.sizes` has one for all, if they are the same."""
    return int(sizes[k if len(sizes) > 1 else 0])


@inlined
def alike_until(sizes: Ints, k: int, stop: int) -> int:
    """Return where a stretch of pairs ends, before `stop`, whose windows have the same size."""
    if len(sizes) == 1:
        return stop
    end = k + 1
    while end < stop and sizes[end] == sizes[k]:
        end += 1
    return end


# Pairs of an event stand together, and what is the same for all of them, or for windows of the same size, is worked out
# once: a division takes longer than a decision. Chances are looked up first and draws made then, in loops of their own:
# the second becomes vector instructions. Nothing but the result depends on what is drawn: a branch that cannot be
# foreseen takes longer than to draw for pairs that go or stay anyway.

_STRETCH = 256  # pairs whose chances are looked up at a time


@inlined
def _draw_alike(chance: np.uint64, of_event: np.uint64, windows: Ints, first: int, stop: int, result: Bools) -> None:
    """Decide about pairs that have the same chance to be dropped."""
    window, count = windows[first], stop - first
    if windows[stop - 1] - window == count - 1:  # each window is the next one: no need to read them
        for k in range(count):
            result[first + k] = _draw(of_event, window + k) < chance
        return
    for k in range(first, stop):
        result[k] = _draw(of_event, windows[k]) < chance


@inlined
def _draw_each(found: Chances, of_event: np.uint64, windows: Ints, first: int, stop: int, result: Bools) -> None:
    """Decide about pairs by the chance that each has."""
    for k in range(first, stop):
        result[k] = _draw(of_event, windows[k]) < found[k - first]


@entry
def _by_cell(
    table: Chances, types: Ints, numbers: Ints, counts: Ints, windows: Ints, positions: Ints, sizes: Ints, seed: int,
    found: Chances, result: Bools,
) -> None:  # fmt: skip
    first = end = 0
    for row in range(len(types)):
        kind, of_event, end = types[row], _of_event(numbers[row], seed), end + counts[row]
        while first < end:
            size, stop = size_at(sizes, first), alike_until(sizes, first, end)
            stop, scale = min(stop, first + _STRETCH), table.shape[1] / size
            for k in range(first, stop):
                found[k - first] = table[kind, int(min(positions[k], size - 1) * scale + 1e-9)]
            _draw_each(found, of_event, windows, first, stop, result)
            first = stop


def by_cell(table: Chances, view: View, seed: int) -> Bools:
    """Return which pairs are dropped, by a table (T, B) of the chance to drop of each type and position."""
    result = np.empty(len(view), np.bool_)
    _by_cell(
        table, view.types, view.numbers, view.pairs_of_events, view.windows, view.positions, view.sizes, seed,
        np.empty(_STRETCH, np.uint64), result,
    )  # fmt: skip
    return result


class Cells(NamedTuple):
    """Utilities by type and cell, in partitions of a window.

    Attributes:
        utilities: (T, B) whole numbers from 0 to 100, a byte each: they should stay in the cache.
        parts: (B,) the partition that a cell is in.
        starts: (partitions,) the first cell of each.
        least: (T, partitions) the least utility of a type in each.
        most: (T, partitions) the greatest.
    """

    utilities: SmallInts
    parts: SmallInts
    starts: Ints
    least: SmallInts
    most: SmallInts

    @classmethod
    def of(cls, utilities: Ints, partitions: int) -> Cells:
        """Return utilities in so many partitions, of about as many cells each."""
        parts, whole = np.arange(utilities.shape[1]) * partitions // utilities.shape[1], utilities.astype(np.uint8)
        each = [whole[:, parts == part] for part in range(partitions)]
        return cls(
            whole, parts.astype(np.uint16), np.searchsorted(parts, np.arange(partitions)),
            np.stack([some.min(axis=1, initial=255) for some in each], axis=1),
            np.stack([some.max(axis=1, initial=0) for some in each], axis=1),
        )  # fmt: skip


@entry
def _by_level(
    cells: Cells, below: Ints, at: Chances, types: Ints, numbers: Ints, counts: Ints, windows: Ints, positions: Ints,
    sizes: Ints, seed: int, found: Chances, result: Bools,
) -> None:  # fmt: skip
    count, first, end = cells.utilities.shape[1], 0, 0
    for row in range(len(types)):
        kind, of_event, end = types[row], _of_event(numbers[row], seed), end + counts[row]
        is_even = _is_even(cells, below, kind)
        while first < end:
            size, stop = size_at(sizes, first), alike_until(sizes, first, end)
            if is_even and len(below) == 1 and size >= count:
                _draw_alike(_chance(below[0], at[0], cells.most[kind, 0]), of_event, windows, first, stop, result)
                first = stop
                continue
            stop = min(stop, first + _STRETCH)
            if size < count:
                _find_means(cells, below, at, kind, positions[first:stop], size, found)
            elif is_even:
                _find_parts(cells, below, at, kind, positions[first:stop], size, found)
            else:
                _find_cells(cells, below, at, kind, positions[first:stop], size, found)
            _draw_each(found, of_event, windows, first, stop, result)
            first = stop


@inlined
def _chance(below: int, at: np.uint64, utility: int) -> np.uint64:
    """Return the chance of a utility to be dropped: all that is less than `below` goes, and some of what is as much."""
    return _ALWAYS if utility < below else (at if utility == below else _NEVER)


@inlined
def _is_even(cells: Cells, below: Ints, kind: int) -> bool:
    """Return whether the chance of a type is the same all over each partition."""
    is_even = True
    for p in range(len(below)):
        least, most = cells.least[kind, p], cells.most[kind, p]
        is_even &= least == most or most < below[p] or least > below[p]
    return is_even


@inlined
def _find_parts(
    cells: Cells, below: Ints, at: Chances, kind: int, positions: Ints, size: int, found: Chances
) -> None:  # fmt: skip
    """Look up the chances of pairs where only the partition matters."""
    scale = cells.utilities.shape[1] / size
    for k in range(len(positions)):
        found[k] = _chance(below[0], at[0], cells.most[kind, 0])
    for p in range(1, len(below)):
        if cells.starts[p] == cells.utilities.shape[1]:  # there are more partitions than cells
            break
        start = _first_position(cells.starts[p], scale)
        chance = _chance(below[p], at[p], cells.most[kind, p])
        for k in range(len(positions)):
            found[k] = chance if positions[k] >= start else found[k]


@inlined
def _first_position(cell: int, scale: float) -> int:
    """Return the first position of a cell, in a window that has no fewer positions than cells."""
    at = int(cell / scale)
    while int(at * scale + 1e-9) < cell:
        at += 1
    while at > 0 and int((at - 1) * scale + 1e-9) >= cell:
        at -= 1
    return at


@inlined
def _find_cells(
    cells: Cells, below: Ints, at: Chances, kind: int, positions: Ints, size: int, found: Chances
) -> None:  # fmt: skip
    """Look up the chances of pairs by cell."""
    scale = cells.utilities.shape[1] / size
    if len(below) == 1:
        for k in range(len(positions)):
            cell = int(min(positions[k], size - 1) * scale + 1e-9)
            found[k] = _chance(below[0], at[0], cells.utilities[kind, cell])
        return
    for k in range(len(positions)):
        cell = int(min(positions[k], size - 1) * scale + 1e-9)
        p = cells.parts[cell]
        found[k] = _chance(below[p], at[p], cells.utilities[kind, cell])


@inlined
def _find_means(
    cells: Cells, below: Ints, at: Chances, kind: int, positions: Ints, size: int, found: Chances
) -> None:  # fmt: skip
    """Look up the chances of pairs in a window where a position is several cells, by their mean utility."""
    scale = cells.utilities.shape[1] / size
    for k in range(len(positions)):
        place = min(positions[k], size - 1)
        p = cells.parts[int(place * scale + 1e-9)]
        found[k] = _chance(below[p], at[p], _mean_utility(cells.utilities, kind, place, size))


@part
def _mean_utility(utilities: SmallInts, kind: int, position: int, size: int) -> int:
    """Return the mean utility of the cells of a position, in a window that has fewer positions than cells."""
    count, total = utilities.shape[1], 0
    first, stop = _first_cell(position, count, size), _first_cell(position + 1, count, size)
    for cell in range(first, stop):
        total += utilities[kind, cell]
    return round(total / (stop - first))


@inlined
def _first_cell(position: int, count: int, size: int) -> int:
    """Return the first of the cells of a position, in a window that has fewer positions than cells."""
    return -(-position * count // size)


def by_level(cells: Cells, below: Ints, at: Chances, view: View, seed: int) -> Bools:
    """Return which pairs are dropped, by their utility and what each partition of the window drops of it.

    Args:
        cells: the utilities, in as many partitions.
        below: (partitions,) what has less utility goes.
        at: (partitions,) the chance to drop of what has just as much.
        view: the pairs.
        seed: of the choice among those of the same utility.
    """
    result = np.empty(len(view), np.bool_)
    _by_level(
        cells, below, at, view.types, view.numbers, view.pairs_of_events, view.windows, view.positions,
        view.sizes, seed, np.empty(_STRETCH, np.uint64), result,
    )  # fmt: skip
    return result


@compiled
def _by_utility(utilities: Floats, below: float, share: float, numbers: Ints, seed: int, result: Bools) -> None:
    for k in range(len(utilities)):
        u = utilities[k]
        result[k] = u < below or (u == below and (share >= 1.0 or unit(_of_event(numbers[k], seed)) < share))


def by_utility(utilities: Floats, below: float, share: float, numbers: Ints, seed: int) -> Bools:
    """Return which have less utility than a threshold, and a share of those that have exactly that."""
    result = np.zeros(len(utilities), np.bool_)
    _by_utility(utilities, below, share, numbers, seed, result)
    return result


@compiled
def _gather(table: Floats, types: Ints, rows: Ints, positions: Ints, sizes: Ints, result: Floats) -> None:
    count, size, scale = table.shape[1], 0, 0.0
    for k in range(len(rows)):
        if size_at(sizes, k) != size:
            size = size_at(sizes, k)
            scale = count / size
        at, row = min(positions[k], size - 1), types[rows[k]]
        first = int(at * scale + 1e-9)
        stop = first + 1
        if size < count:
            first, stop = _first_cell(at, count, size), _first_cell(at + 1, count, size)
        for s in range(table.shape[2]):
            total = 0.0
            for cell in range(first, stop):
                total += table[row, cell, s]
            result[s, k] = total / (stop - first)


def by_state(table: Floats, view: View) -> Floats:
    """Return (S, n): what a table (T, B, S) says about each pair, by state; the mean, if a position is many cells."""
    result = np.empty((table.shape[2], len(view)))
    _gather(table, view.types, view.rows, view.positions, view.sizes, result)
    return result
