"""eSPICE by hand: thesis chapter 4, table 4.1 and figures 4.2 to 4.4."""

import numpy as np
import pytest

from penstock.shedding.deciding import by_state, chances
from penstock.shedding.overload.choosing_f import choose_f, classes
from penstock.shedding.overload.load import Load
from penstock.shedding.overload.queueing import (
    QueueDetector,
    drop_amount,
    longest_queue,
    overload_ratio,
    partitions,
)
from penstock.shedding.positions import cells
from penstock.shedding.strategies.espice import Espice, utility_table
from penstock.shedding.thresholds import LEVELS, UTILITIES, Occurrences, cdt, find_thresholds, utility_threshold
from penstock.shedding.views import View

UT = np.array([[70, 15, 10, 5, 0], [0, 60, 30, 10, 0]])  # table 4.1
SHARES = np.array([[0.8, 0.5, 0.1, 0.2, 0.5], [0.2, 0.5, 0.9, 0.8, 0.5]])  # S(A, P) and S(B, P), which add up to 1


def pairs(types: list[int], positions: list[int], size: int = 5) -> View:
    count = len(types)
    rows = np.arange(count)
    return View(
        np.array(types), rows, rows, {}, rows, np.zeros(count, np.int64), np.array(positions), np.full(count, size)
    )


def test_cumulative_utility_occurrences_of_table_4_1() -> None:
    table = cdt(UT, SHARES)
    # u = 0: A at 4 and B at 0 and 4: 0.5 + 0.2 + 0.5; u = 5: A at 3; u = 10: A at 2 and B at 3; u = 15: A at 1; ...
    assert table[0] == pytest.approx(1.2)
    assert table[4] == pytest.approx(1.2)
    assert table[5] == pytest.approx(1.4)
    assert table[10] == pytest.approx(2.3)  # as in the thesis: CDT(10) = 2.3
    assert table[15] == pytest.approx(2.8)
    assert table[30] == pytest.approx(3.7)
    assert table[60] == pytest.approx(4.2)
    assert table[70] == table[100] == pytest.approx(5.0)


def test_the_threshold_that_drops_two_events_is_10() -> None:
    table = cdt(UT, SHARES)
    assert utility_threshold(table, 2) == 10
    assert utility_threshold(table, 1.2) == 0
    assert utility_threshold(table, 1.3) == 5
    assert utility_threshold(table, 5) == 70
    assert utility_threshold(table, 99) == 100  # all that there is


def test_an_exact_threshold_drops_a_share_of_the_last_class() -> None:
    threshold = Occurrences.of(UT, SHARES).threshold(2)
    assert threshold.below == 10
    assert threshold.share == pytest.approx((2 - 1.4) / 0.9)


@pytest.mark.parametrize("exact", [True, False])
def test_the_load_shedder_of_algorithm_4(exact: bool) -> None:
    strategy = Espice(UT, SHARES, exact=exact)
    strategy.aim(2 / 5)
    types, positions = [0] * 5 + [1] * 5, [0, 1, 2, 3, 4] * 2
    shed = strategy.decide(pairs(types, positions)).pairs
    assert shed is not None
    kept = [(t, p) for t, p, is_shed in zip(types, positions, shed, strict=True) if not is_shed]
    surely = {(0, 0), (0, 1), (1, 1), (1, 2)}  # utilities of 15 and more
    assert surely <= set(kept)
    if not exact:
        assert set(kept) == surely


def test_each_partition_has_its_own_threshold() -> None:
    ut, shares = np.array([[9, 9, 1, 1]]), np.ones((1, 4))
    strategy = Espice(ut, shares, exact=False)
    strategy.aim(0.5, partitions=2)
    assert strategy.decide(pairs([0] * 4, [0, 1, 2, 3], 4)).pairs.tolist() == [True] * 4  # type: ignore[union-attr]
    strategy.aim(0.5, partitions=1)
    assert strategy.decide(pairs([0] * 4, [0, 1, 2, 3], 4)).pairs.tolist() == [False, False, True, True]  # type: ignore[union-attr]


def test_utilities_are_contributions_from_0_to_100() -> None:
    assert utility_table(np.array([[40.0, 10.0], [0.0, 4.0]])).tolist() == [[100, 25], [0, 10]]
    assert utility_table(np.zeros((1, 2))).tolist() == [[0, 0]]


def test_positions_scale_with_the_window() -> None:
    # N = 100, ws = 200: sf = 2, every two positions are one (section 4.2.6.1).
    first, many = cells(np.array([0, 1, 2, 199]), np.full(4, 200), 100)
    assert first.tolist() == [0, 0, 1, 99]
    assert many.tolist() == [1, 1, 1, 1]
    # ws = 2, N = 4: a position is two cells, and its utility their mean.
    utilities, shares = np.array([[10, 30, 50, 70]]), np.full((1, 4), 0.5)
    strategy = Espice(utilities, shares, exact=False)
    strategy.aim(0.5)  # u_th = 30: the first position, with a mean of 20, goes; the second, with 60, stays
    assert strategy.decide(pairs([0, 0], [0, 1], 2)).pairs.tolist() == [True, False]  # type: ignore[union-attr]
    strategy.aim(0.25)  # u_th = 10: its mean of 20 keeps the first position, too
    assert not strategy.decide(pairs([0, 0], [0, 1], 2)).pairs.any()  # type: ignore[union-attr]
    table = np.array([[[1.0], [3.0], [5.0], [7.0]]])
    assert by_state(table, pairs([0, 0], [0, 1], 2)).tolist() == [[2.0, 6.0]]


def test_queue_partitions_and_amount_by_hand() -> None:
    # LB = 1 s, l_p = 0.2 ms: q_max = 5,000. f = 0.8 leaves 1,000 events, so 1,200 events need 2 partitions of 600.
    q_max = longest_queue(1.0, 0.0002)
    assert q_max == pytest.approx(5000)
    assert partitions(1200, q_max, 0.8) == 2
    assert partitions(1000, q_max, 0.8) == 1
    # R = 6,000 = 1.2 μ: δ = 1 - 5,000 / 6,000 = 1 / 6, ρ = 100 of 600.
    assert overload_ratio(6000, 0.0002) == pytest.approx(1 / 6)
    assert drop_amount(1 / 6, 600) == pytest.approx(100)
    assert overload_ratio(4000, 0.0002) == 0


def test_the_detector_sheds_from_f_q_max_on() -> None:
    detector = QueueDetector(1.0, 0.8, rising=False)

    def load(queue: int) -> Load:
        return Load(waited=0.0, queue=queue, rate=6000, full_time=0.0002, time=0.0002)

    assert detector.command(load(4000), 64).share == 0
    assert detector.command(load(4001), 64).share == pytest.approx(1 / 6)


def test_the_share_rises_as_the_bound_comes_near() -> None:
    detector = QueueDetector(1.0, 0.8)

    def share(waited: float) -> float:
        return detector.command(Load(waited, queue=0, rate=6000, full_time=0.0002, time=0.0002), 64).share

    assert share(0.8) == 0
    # A third of the way leaves 1 - (1/3) / (3/4) = 5/9 of the 5/6 that δ leaves; three quarters leave nothing.
    assert share(0.8 + 0.2 / 3) == pytest.approx(1 - 5 / 6 * 5 / 9)
    assert share(0.96) == share(0.99) == 1


def test_classes_of_importance_and_f() -> None:
    assert classes(np.array([0.0, 1.0, 50.0, 52.0, 99.0]), np.ones(5)).tolist() == [0, 0, 1, 1, 2]
    # All worthless events are in the first half of the window: only one partition over all of it has enough of them.
    utilities, shares = np.array([[0.0] * 50 + [90.0] * 50]), np.full((1, 100), 10.0)
    assert choose_f(utilities, shares, q_max=2500, ratio=0.3, candidates=(0.9, 0.8, 0.6)) == 0.6
    # They are everywhere: the largest f will do.
    utilities = np.array([[0.0, 90.0] * 50])
    assert choose_f(utilities, shares, q_max=2500, ratio=0.3, candidates=(0.9, 0.8, 0.6)) == 0.9


@pytest.mark.parametrize("is_exact", [True, False])
def test_compiled_thresholds_are_those_of_the_definition(is_exact: bool) -> None:
    numbers = np.random.default_rng(2)
    tables = np.cumsum(numbers.integers(0, 3, (4, LEVELS)) * numbers.random((4, LEVELS)), axis=1)
    below, at = np.zeros(4, np.int64), np.zeros(4, np.uint64)
    for share in (0.0, 0.001, 0.3, 0.77, 1.0, 1.2):
        find_thresholds(tables, share, is_exact, below, at)
        for part, table in enumerate(tables):
            wanted = Occurrences(UTILITIES, table).threshold(share * float(table[-1]), exact=is_exact)
            assert below[part] == (wanted.below if wanted.share > 0 else 0)
            assert at[part] == chances(np.array([wanted.share]))[0]
