"""Decisions by looking up are those of the slow way to say the same."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.runtime.measures import Run
from penstock.shedding.chance import mixed
from penstock.shedding.deciding import Cells, by_cell, by_level, chances
from penstock.shedding.pane import Pane
from penstock.shedding.views import View

STEP, SECOND = 0x9E3779B97F4A7C15, 0x94D049BB133111EB
TYPES, CELLS, SEED = 3, 8, 5


def view(kind: str) -> View:
    """Return 40 events in up to 6 windows each, of one size, of sizes that differ, or shorter than the table."""
    numbers = np.random.default_rng(7)
    counts = numbers.integers(0, 7, 40)
    rows = np.repeat(np.arange(40), counts)
    windows = np.concatenate([np.arange(first, first + count) for first, count in enumerate(counts)])
    whole = {
        "one": np.full(len(rows), 16),
        "many": numbers.choice([3, 8, 20, 21], len(rows)),
        "short": np.full(len(rows), 5),
    }
    sizes = whole[kind]
    return View(
        numbers.integers(0, TYPES, 40), np.arange(40), numbers.integers(0, 10**9, 40), {}, rows, windows,
        numbers.integers(0, sizes + 2), sizes[:1] if kind == "one" else sizes,
    )  # fmt: skip


def sizes_of(seen: View) -> np.ndarray:
    """Return the size of the window of each pair."""
    return np.broadcast_to(seen.sizes, seen.rows.shape)


def drawn(number: int, window: int) -> float:
    """Return what chance says about a pair: SplitMix64, whose first step `mixed` adds by itself."""
    start = (number * STEP + window * SECOND + SEED - STEP) % 2**64
    return float(mixed(np.array([start], np.uint64), 0)[0] >> np.uint64(11)) * 2.0**-53


def cells_of(position: int, size: int) -> list[int]:
    """Return the cells of a position, last ones for what is behind the end: those whose place in it begins there."""
    at = min(position, size - 1)
    if size >= CELLS:
        return [at * CELLS // size]
    return [cell for cell in range(CELLS) if cell * size // CELLS == at]


@pytest.mark.parametrize("kind", ["one", "many", "short"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_by_level_says_what_the_slow_way_says(kind: str, partitions: int) -> None:
    seen, numbers = view(kind), np.random.default_rng(1)
    utilities = numbers.integers(0, 101, (TYPES, CELLS))
    utilities[1], utilities[2] = 45, 10 * (np.arange(CELLS) * partitions // CELLS)  # the same, if in a partition only
    cells, below, at = Cells.of(utilities, partitions), np.array([45, 10, 70])[:partitions], np.full(partitions, 0.4)
    shares = np.where(np.arange(101) < below[:, None], 1.0, np.where(np.arange(101) == below[:, None], 0.4, 0.0))
    wanted = []
    for row, window, position, size in zip(seen.rows, seen.windows, seen.positions, sizes_of(seen), strict=True):
        whole = cells_of(int(position), int(size))
        utility = round(float(np.mean([utilities[seen.types[row], cell] for cell in whole])))
        first = int(min(position, size - 1) * CELLS // size)
        wanted.append(drawn(int(seen.numbers[row]), int(window)) < shares[first * partitions // CELLS, utility])
    assert by_level(cells, below, chances(at), seen, SEED).tolist() == wanted
    assert 0.2 < np.mean(wanted) < 0.8


@pytest.mark.parametrize("kind", ["one", "many"])
def test_by_cell_says_what_the_slow_way_says(kind: str) -> None:
    seen = view(kind)
    shares = np.random.default_rng(2).choice([0.0, 0.3, 0.8, 1.0], (TYPES, CELLS))
    wanted = [
        drawn(int(seen.numbers[row]), int(window)) < shares[seen.types[row], int(min(at, size - 1) * CELLS // size)]
        for row, window, at, size in zip(seen.rows, seen.windows, seen.positions, sizes_of(seen), strict=True)
    ]
    assert by_cell(chances(shares), seen, SEED).tolist() == wanted


@pytest.mark.parametrize("kind", ["one", "many"])
def test_what_was_shed_is_counted_by_type_and_position(kind: str) -> None:
    seen = view(kind)
    is_shed = np.random.default_rng(3).random(len(seen)) < 0.4
    run = Run(np.zeros(40), shed_by_cell=np.zeros((TYPES, 20)))
    assert run.note_shed(seen, is_shed) == is_shed.sum() == run.shed_pairs
    wanted = np.zeros((TYPES, 20), np.int64)
    for row, position, size in zip(seen.rows[is_shed], seen.positions[is_shed], sizes_of(seen)[is_shed], strict=True):
        wanted[seen.types[row], min(position, size - 1) * 20 // size] += 1
    assert (run.shed_by_cell == wanted).all()


@pytest.mark.parametrize(("length", "is_timed"), [(4, False), (30, False), (25, True), (400, True)])
def test_a_pane_that_events_pass_by_is_the_same_as_one_that_was_asked(length: int, is_timed: bool) -> None:
    numbers = np.random.default_rng(4)
    types, times = numbers.integers(0, 3, 200), np.sort(numbers.integers(0, 500, 200))
    asked, passed = (Pane(length, is_timed, 3) for _ in range(2))
    for first in range(0, 200, 10):
        part = slice(first, first + 10)
        asked.follow(types[part], times[part])
        passed.pass_by(types[part], times[part])
        assert [each.tolist() for each in asked.state().values()] == [each.tolist() for each in passed.state().values()]
