"""Decisions by looking up: compiled, a few nanoseconds each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.kernel.compiling import compiled
from penstock.plan.tables import Bools, Floats, Ints
from penstock.shedding.views import View

SmallInts = NDArray[Any]  # of bytes
_STEP, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@compiled
def _unit(number: int, window: int, seed: int) -> float:
    """Return a number in [0, 1) that depends on an event, a window and a seed alone."""
    x = np.uint64(number) * _STEP + np.uint64(window) * _SECOND + np.uint64(seed)
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


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
        row = rows[k]
        cell = int(min(positions[k], size - 1) * scale + 1e-9)
        share = levels[parts[cell], utilities[types[row], cell]]
        result[k] = share >= 1.0 or (share > 0.0 and _unit(numbers[row], windows[k], seed) < share)


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
def _gather(table: NDArray[Any], types: Ints, rows: Ints, positions: Ints, sizes: Ints, result: NDArray[Any]) -> None:
    count, size, scale = table.shape[1], 0, 0.0
    for k in range(len(rows)):
        if sizes[k] != size:
            size, scale = sizes[k], count / sizes[k]
        at = int(min(positions[k], size - 1) * scale + 1e-9)
        for s in range(table.shape[2]):
            result[s, k] = table[types[rows[k]], at, s]


def by_state(table: NDArray[Any], view: View) -> NDArray[Any]:
    """Return (S, n): what a table (T, B, S) says about each pair, by state."""
    result = np.empty((table.shape[2], len(view)), table.dtype)
    _gather(table, view.types, view.rows, view.positions, view.sizes, result)
    return result
