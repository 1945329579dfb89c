"""Decisions by looking up: compiled, a few nanoseconds each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.kernel.compiling import compiled
from penstock.kernel.drawing import SECOND, STEP, unit
from penstock.plan.tables import Bools, Floats, Ints
from penstock.shedding.views import View

SmallInts = NDArray[Any]  # of bytes


@compiled
def _unit(number: int, window: int, seed: int) -> float:
    """Return a number in [0, 1) that depends on an event, a window and a seed alone."""
    return unit(np.uint64(number) * STEP + np.uint64(window) * SECOND + np.uint64(seed))


@compiled
def _by_cell(
    table: Floats, types: Ints, numbers: Ints, rows: Ints, windows: Ints, positions: Ints, sizes: Ints, seed: int,
    result: Bools,
) -> None:  # fmt: skip
    count, size, scale = table.shape[1], 0, 0.0
    for k in range(len(rows)):
        if sizes[k] != size:
            size, scale = sizes[k], count / sizes[k]
        row = rows[k]
        share = table[types[row], int(min(positions[k], size - 1) * scale + 1e-9)]
        result[k] = share >= 1.0 or (share > 0.0 and _unit(numbers[row], windows[k], seed) < share)


def by_cell(table: Floats, view: View, seed: int) -> Bools:
    """Return which pairs are dropped, by a table (T, B) of the share to drop of each type and position."""
    result = np.zeros(len(view), np.bool_)
    _by_cell(
        table, view.types, view.numbers, view.rows, view.windows, view.positions, view.sizes, seed, result
    )  # fmt: skip
    return result


@compiled
def _by_level(
    utilities: SmallInts, parts: SmallInts, levels: Floats, types: Ints, numbers: Ints, rows: Ints, windows: Ints,
    positions: Ints, sizes: Ints, seed: int, result: Bools,
) -> None:  # fmt: skip
    # A division takes longer than all the rest: it is done once for windows of the same size.
    count, size, scale = utilities.shape[1], 0, 0.0
    for k in range(len(rows)):
        if sizes[k] != size:
            size, scale = sizes[k], count / sizes[k]
        row, at = rows[k], min(positions[k], size - 1)
        cell = int(at * scale + 1e-9)
        utility = int(utilities[types[row], cell])
        if size < count:  # a position is several cells: the mean of their utilities
            first, stop, total = _first_cell(at, count, size), _first_cell(at + 1, count, size), 0
            for each in range(first, stop):
                total += utilities[types[row], each]
            utility = round(total / (stop - first))
        share = levels[parts[cell], utility]
        result[k] = share >= 1.0 or (share > 0.0 and _unit(numbers[row], windows[k], seed) < share)


@compiled
def _first_cell(position: int, count: int, size: int) -> int:
    """Return the first of the cells of a position, in a window that has fewer positions than cells."""
    return -(-position * count // size)


def by_level(utilities: SmallInts, parts: SmallInts, levels: Floats, view: View, seed: int) -> Bools:
    """Return which pairs are dropped, by their utility and what each partition of the window drops of it.

    Args:
        utilities: (T, B) whole numbers from 0 to 100, a byte each: they should stay in the cache.
        parts: (B,) the partition that a cell is in.
        levels: (partitions, 101) the share to drop of each utility.
        view: the pairs.
        seed: of the choice among those of the same utility.
    """
    result = np.zeros(len(view), np.bool_)
    _by_level(
        utilities, parts, levels, view.types, view.numbers, view.rows, view.windows, view.positions, view.sizes, seed,
        result,
    )  # fmt: skip
    return result


@compiled
def _by_utility(utilities: Floats, below: float, share: float, numbers: Ints, seed: int, result: Bools) -> None:
    for k in range(len(utilities)):
        u = utilities[k]
        result[k] = u < below or (u == below and (share >= 1.0 or _unit(numbers[k], 0, seed) < share))


def by_utility(utilities: Floats, below: float, share: float, numbers: Ints, seed: int) -> Bools:
    """Return which have less utility than a threshold, and a share of those that have exactly that."""
    result = np.zeros(len(utilities), np.bool_)
    _by_utility(utilities, below, share, numbers, seed, result)
    return result


@compiled
def _gather(table: Floats, types: Ints, rows: Ints, positions: Ints, sizes: Ints, result: Floats) -> None:
    count, size, scale = table.shape[1], 0, 0.0
    for k in range(len(rows)):
        if sizes[k] != size:
            size, scale = sizes[k], count / sizes[k]
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
