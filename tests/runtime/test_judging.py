"""What windows that are never shed tell about the loss in the others."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from penstock.runtime.judging import Judge
from penstock.runtime.matching import Operator
from penstock.shedding.estimating import Estimate, Gaps, would_be_lost
from penstock.shedding.quality import Found, strict
from penstock.testing.shedders import structured
from tests.runtime.runs import QUERY, shed_run, truth

SEEDS = range(50, 58)
# Rates at which something is lost; from 3.0 on, events are let go unseen, at 5.0 a tenth of all.
CASES = [
    ("random-event", 1.5), ("ebl", 2.5), ("pspice", 1.2), ("pspice", 2.0), ("espice", 3.0), ("espice", 5.0),
    ("gspice-sh", 3.0),
]  # fmt: skip


class Judged(NamedTuple):
    """A run: the estimate, the same if nobody knew which events were let go, and what was lost of the other windows."""

    estimate: Estimate
    without_gaps: Estimate
    truth: float
    overdue: int

    @property
    def is_inside(self) -> bool:
        return self.estimate.low <= self.truth <= self.estimate.high


@cache
def judged(strategy: str, rate: float) -> list[Judged]:
    """Return runs of streams that differ, with other windows left unshed in each."""
    results = []
    for seed in SEEDS:
        events = structured(500, seed)
        run, loop = shed_run(strategy, rate, events, unshed=0.2, seed=seed)
        assert run.estimate is not None
        assert loop._judge is not None
        chosen = loop._judge.windows() & ~loop._marked
        shed = [
            Found(f.queries[m], f.windows[m], f.events[m])
            for f in (truth(events).found, run.found)
            for m in [chosen[f.windows]]
        ]
        loop._judge._is_gone[:] = False
        results.append(Judged(run.estimate, loop._judge.estimate(), strict(shed[0], shed[1], [1.0]).lost, run.overdue))
    return results


@pytest.mark.parametrize(("strategy", "rate"), CASES)
def test_the_truth_lies_in_the_interval_of_the_estimate(strategy: str, rate: float) -> None:
    runs = judged(strategy, rate)
    for run in runs:
        assert run.estimate.high - run.estimate.low < 0.5, "an interval that wide says nothing"
        assert 0 < run.truth < 1
    inside = sum(run.is_inside for run in runs)
    assert inside >= len(runs) - 1, f"the interval of 95 % has the truth in {inside} of {len(runs)} runs"


def test_estimates_are_neither_too_low_nor_too_high() -> None:
    runs = [run for case in CASES for run in judged(*case)]
    errors = np.array([run.estimate.lost - run.truth for run in runs])
    assert np.mean([run.is_inside for run in runs]) > 0.9
    assert 0.3 < (errors < 0).mean() < 0.7
    assert abs(errors.mean()) < 0.015


def test_events_that_were_let_go_are_in_the_estimate() -> None:
    runs = judged("espice", 5.0)
    assert min(run.overdue for run in runs) > 2000
    assert abs(np.mean([run.estimate.lost - run.truth for run in runs])) < 0.03
    assert np.mean([run.without_gaps.lost - run.truth for run in runs]) < -0.04  # so it is seen if they are not


# --- by hand ----------------------------------------------------------------------------------------------------


def test_what_a_match_stands_for_by_hand() -> None:
    # Ten events, of which two in a row were let go. A match of one event is hit by them at 2 of 10 places: it stands
    # for 10 / 8. One of events 3 and 4 is hit at 3 places, one of 3 and 8 at 4.
    gone = np.arange(10) >= 8
    worth = Gaps.of(gone, np.array([3, 3, 4, 3, 6]), np.array([0, 1, 3, 5])).worth
    assert worth.tolist() == pytest.approx([10 / 8, 10 / 7, 10 / 6], rel=0.01)
    assert Gaps.of(gone & False, np.array([3, 3, 4]), np.array([0, 1, 3])).worth.tolist() == [1.0, 1.0]
    assert not len(Gaps.of(gone, np.zeros(0, np.int64), np.zeros(1, np.int64)).worth)


def test_the_spread_is_that_of_what_the_gaps_leave() -> None:
    # Two of ten events in a row: one match of one event, which they hit at 2 of 10 places, stays with 8 / 10, so its
    # deviation is 0.4 of 0.8. Two matches that are hit at the same places have the same; two at others less.
    gone = np.arange(10) >= 8
    one = Gaps.of(gone, np.array([3]), np.array([0, 1]))
    assert one.spread(np.array([True])) == pytest.approx(0.5, rel=0.02)
    assert one.spread(np.array([False])) == 0.0
    alike = Gaps.of(gone, np.array([3, 3]), np.array([0, 1, 2]))
    assert alike.spread(np.array([True, True])) == pytest.approx(one.spread(np.array([True])))
    apart = Gaps.of(gone, np.array([3, 7]), np.array([0, 1, 2]))
    assert apart.spread(np.array([True, True])) == pytest.approx(0.306, rel=0.02)  # 4 places of 10 hit one of two
    assert Gaps.of(gone & False, np.array([3]), np.array([0, 1])).spread(np.array([True])) == 0.0


def test_the_windows_that_are_judged_opened_under_load_and_are_over() -> None:
    operator = Operator(QUERY, is_split=True)
    operator.take(structured(10, 1))  # windows of 40 events, one every 20
    judge = Judge(operator, np.ones(len(operator.stream.sizes), np.bool_))
    assert not judge.windows().any()
    judge.let_go(130, 135)
    judge.let_go(150, 152)
    judge._seen, judge._now = 300, 262
    assert np.flatnonzero(judge.windows()).tolist() == [7, 8, 9, 10, 11]  # opened at 140 to 220, over at 260


def test_the_windows_that_are_not_marked_are_a_sample_too() -> None:
    lost, matches = np.array([1.0, 0, 1, 1] * 50), np.full(200, 3.0)
    widths = [each.high - each.low for m in (0.0, 0.5) for each in [would_be_lost(lost, matches, 1, marked=m)]]
    assert widths[1] / widths[0] == pytest.approx(np.sqrt(2))  # as many others as marked ones: twice the variance
