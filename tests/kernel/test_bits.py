"""64 runs at a time: the answers as bits, and the scan that is made of them, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as pk
from penstock.engine.plain import PlainMatcher
from penstock.kernel.bits import RUNS, at_least, at_most, between, less, lowest, same
from penstock.kernel.compiling import compiled
from penstock.kernel.plain_memory import PlainMemory
from penstock.kernel.scanning import scan_all
from penstock.plan.layout import EQ, GE, GT, LE, LT, NE, PICK_RUN
from penstock.plan.tables import Floats, Ints

INF, NAN = float("inf"), float("nan")
NUMBERS = st.sampled_from([NAN, -INF, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, INF])
COMPARED = {LT: np.less, LE: np.less_equal, EQ: np.equal, GE: np.greater_equal, GT: np.greater, NE: np.not_equal}
REGISTERS, PLACES = 4, 400


@compiled
def answers(registers: Floats, at: int, least: float, most: float) -> list[int]:
    """Return what each function says of the runs from `at` on."""
    limits = at_least(registers, 1, at, least), at_most(registers, 1, at, most), between(registers, 1, at, least, most)
    return [int(np.int64(each)) for each in (*limits, less(registers, 1, 2, at), same(registers, 1, 2, at))]


@compiled
def place_of(bits: int) -> int:
    """Return the place of the lowest bit."""
    return lowest(np.uint64(bits))


@compiled
def scanned(m: PlainMemory, start: int, stop: int, bounds: int, pairs: int, count: int) -> int:
    """Scan runs; return how many candidates there are then."""
    return scan_all(m, start, stop, bounds, pairs, count)


def registers_of(seed: int) -> Floats:
    values = np.array([NAN, -INF, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, INF])
    found: Floats = np.random.default_rng(seed).choice(values, (REGISTERS, PLACES + RUNS))
    return found


def bits_of(answers: np.ndarray) -> int:
    return int.from_bytes(np.packbits(answers, bitorder="little").tobytes(), "little", signed=True)


@settings(deadline=None, max_examples=200)  # the first is compiled
@given(st.integers(0, 1000), st.integers(0, PLACES), NUMBERS, NUMBERS)
def test_answers_are_those_of_numpy(seed: int, at: int, least: float, most: float) -> None:
    registers = registers_of(seed)
    one, other = registers[1, at : at + RUNS], registers[2, at : at + RUNS]
    wanted = [one >= least, one <= most, (one >= least) & (one <= most), one < other, one == other]
    assert answers(registers, at, least, most) == [bits_of(each) for each in wanted]


@pytest.mark.parametrize("place", [0, 1, 31, 63])
def test_the_lowest_bit(place: int) -> None:
    assert place_of(int(np.uint64((1 << place) | (1 << 63)).astype(np.int64))) == place


@pytest.fixture(scope="module")
def memory() -> PlainMemory:
    matcher = pk.Engine(pk.parse("PATTERN SEQ(A a, B b) WITHIN 5 s"))._detectors[0].matcher
    assert isinstance(matcher, PlainMatcher)
    return matcher.memory


@settings(deadline=None, max_examples=300)
@given(
    st.integers(0, 1000),
    st.integers(0, PLACES // 8).map(lambda at: 8 * at),
    st.integers(0, PLACES),
    NUMBERS,
    st.lists(st.tuples(st.integers(1, REGISTERS - 1), NUMBERS, NUMBERS), max_size=3),
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), st.sampled_from(list(COMPARED))), max_size=2),
    st.integers(0, 3),
)
def test_a_scan_finds_who_fulfils_all(
    memory: PlainMemory, seed: int, start: int, size: int, reached: float,
    bounds: list[tuple[int, float, float]], pairs: list[tuple[int, int, int]], count: int,
) -> None:  # fmt: skip
    registers, stop = registers_of(seed), min(start + size, PLACES)
    asked = [(0, reached, INF), *bounds]
    picks: Ints = np.full((6, PLACES + 8), -7, np.int64)
    m = memory._replace(
        registers=registers,
        bounds=np.array(asked, np.float64),
        pairs=np.array([*pairs, (0, 0, 0)], np.int64),
        candidates=picks,
    )
    is_wanted = np.ones(max(stop - start, 0), np.bool_)
    for slot, least, most in asked:
        is_wanted &= (registers[slot, start:stop] >= least) & (registers[slot, start:stop] <= most)
    for left, right, op in pairs:
        one, other = registers[left, start:stop], registers[right, start:stop]
        is_wanted &= COMPARED[op](one, other) & ~np.isnan(one) & ~np.isnan(other)
    wanted = (start + np.flatnonzero(is_wanted)).tolist()
    assert scanned(m, start, stop, len(asked), len(pairs), count) == count + len(wanted)
    assert picks[PICK_RUN, count : count + len(wanted)].tolist() == wanted
    assert (picks[PICK_RUN, :count] == -7).all()
