"""Decisions by looking up: compiled, a few nanoseconds each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.kernel.compiling import compiled, entry, inlined, part
from penstock.kernel.drawing import FIRST, SECOND, STEP, unit
from penstock.plan.tables import Bools, Floats, Ints
from penstock.shedding.views import View

SmallInts = NDArray[Any]  # of bytes
Chances = NDArray[np.uint64]


CERTAIN = 2.0**53  # chances are shares of this: as many numbers can be drawn


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
    """Return the size of a pair's window; `View.few_sizes` has one for all, if they are the same."""
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
# once: a division takes longer than a decision. Nothing but the result depends on what is drawn: a branch that cannot
# be foreseen takes longer than to draw for pairs that go or stay anyway.


@entry
def _by_cell(
    table: Chances, types: Ints, numbers: Ints, offsets: Ints, windows: Ints, positions: Ints, sizes: Ints, seed: int,
    result: Bools,
) -> None:  # fmt: skip
    for row in range(len(types)):
        kind, of_event, first = types[row], _of_event(numbers[row], seed), offsets[row]
        while first < offsets[row + 1]:
            size, stop = size_at(sizes, first), alike_until(sizes, first, offsets[row + 1])
            scale = table.shape[1] / size
            for k in range(first, stop):
                cell = int(min(positions[k], size - 1) * scale + 1e-9)
                result[k] = _draw(of_event, windows[k]) < table[kind, cell]
            first = stop


def by_cell(table: Chances, view: View, seed: int) -> Bools:
    """Return which pairs are dropped, by a table (T, B) of the chance to drop of each type and position."""
    result = np.zeros(len(view), np.bool_)
    _by_cell(
        table, view.types, view.numbers, view.offsets, view.windows, view.positions, view.few_sizes, seed, result
    )  # fmt: skip
    return result


@entry
def _by_level(
    utilities: SmallInts, parts: SmallInts, levels: Chances, types: Ints, numbers: Ints, offsets: Ints, windows: Ints,
    positions: Ints, sizes: Ints, seed: int, result: Bools,
) -> None:  # fmt: skip
    for row in range(len(types)):
        kind, of_event, first = types[row], _of_event(numbers[row], seed), offsets[row]
        while first < offsets[row + 1]:
            size, stop = size_at(sizes, first), alike_until(sizes, first, offsets[row + 1])
            scale = utilities.shape[1] / size
            if size < utilities.shape[1]:  # a position is several cells
                for k in range(first, stop):
                    at = min(positions[k], size - 1)
                    level = levels[parts[int(at * scale + 1e-9)], _mean_utility(utilities, kind, at, size)]
                    result[k] = _draw(of_event, windows[k]) < level
            else:
                for k in range(first, stop):
                    cell = int(min(positions[k], size - 1) * scale + 1e-9)
                    result[k] = _draw(of_event, windows[k]) < levels[parts[cell], utilities[kind, cell]]
            first = stop


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


def by_level(utilities: SmallInts, parts: SmallInts, levels: Chances, view: View, seed: int) -> Bools:
    """Return which pairs are dropped, by their utility and what each partition of the window drops of it.

    Args:
        utilities: (T, B) whole numbers from 0 to 100, a byte each: they should stay in the cache.
        parts: (B,) the partition that a cell is in.
        levels: (partitions, 101) the chance to drop of each utility.
        view: the pairs.
        seed: of the choice among those of the same utility.
    """
    result = np.zeros(len(view), np.bool_)
    _by_level(
        utilities, parts, levels, view.types, view.numbers, view.offsets, view.windows, view.positions, view.few_sizes,
        seed, result,
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
    _gather(table, view.types, view.rows, view.positions, view.few_sizes, result)
    return result
