"""Runs that become many among a few hundred events: the bound is kept all the same."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.runtime.clocks import VirtualClock
from penstock.runtime.costs import Costs
from penstock.runtime.matching import Operator
from penstock.runtime.measures import Run
from penstock.runtime.pacing import Pace
from penstock.runtime.profiles import Constant
from penstock.runtime.running import Loop, Shedder
from penstock.runtime.training import Unshed, unshed
from penstock.shedding.overload.latency import LatencyDetector
from penstock.shedding.overload.load import Detector
from penstock.shedding.overload.queueing import QueueDetector
from penstock.shedding.strategies.catalogue import STRATEGIES

TEXT = """
PATTERN SEQ(S s, ANY(4, D1 a, D2 b, D3 c, D4 d, D5 e, D6 f)) WHERE a.v > 0 AND b.v > 0 AND c.v > 0 AND d.v > 0
AND e.v > 0 AND f.v > 0 WITHIN 300 EVENTS WINDOW 300 EVENTS ON S s SELECT LAST
"""
QUERY = [(pk.parse(TEXT), 1.0)]
BOUND, F, CAPACITY = 1.0, 0.8, 20_000.0


def rushes(number: int, seed: int) -> dict[str, Any]:
    """Return a stream in which, for sixty events in each 6,000, all take part that the pattern names."""
    numbers, size = np.random.default_rng(seed), 6000 * number
    names = np.array(["S", *(f"D{k}" for k in range(1, 7)), "X"], object)
    codes = numbers.integers(1, 8, size)
    at = 6000 * np.arange(number) + numbers.integers(1000, 4000, number)
    codes[at] = 0
    is_near = np.zeros(size, np.int64)
    for place in at:
        is_near[place : place + 60] = 1
    quiet = numbers.integers(0, size, 20 * number)
    codes[quiet[is_near[quiet] == 0]] = 0  # windows in which nothing comes of it
    return {"type": names[codes], "ts": np.arange(size) * 1000, "v": is_near}


@cache
def learned() -> tuple[Unshed, Costs]:
    plain = unshed(QUERY, rushes(4, 1), Costs(), is_split=True, is_observed=False)
    costs = Costs().scaled(plain.capacity / CAPACITY)
    return unshed(QUERY, rushes(4, 1), costs, is_split=True), costs


def shed_run(strategy: str, rate: float) -> Run:
    known, costs = learned()
    assert known.history is not None
    operator = Operator(QUERY, is_split=True, names=known.history.names)
    operator.take(rushes(4, 2))
    made = STRATEGIES[strategy].fitted(known.history)
    detector: Detector = QueueDetector(BOUND, F)
    if made.level == "runs":
        detector = LatencyDetector(BOUND, (1 - F) * BOUND, known.event_time, known.shed_time)
    clock = VirtualClock(Constant(rate).arrivals(operator.stream.size, CAPACITY))
    return Loop(operator, clock, costs, Shedder(made, detector, BOUND, F), full_time=known.event_seconds)()


@pytest.mark.parametrize("strategy", ["ebl", "espice", "pspice", "hspice-pm", "hspice-w", "gspice-sh"])
def test_a_rush_of_runs_does_not_break_the_bound(strategy: str) -> None:
    run = shed_run(strategy, 1.2)
    assert max(moment.runs for moment in run.moments) > 50_000
    assert run.latencies.max() <= BOUND
    assert run.shed_pairs + run.runs_dropped > 0


def test_what_comes_after_a_window_is_closed_is_hardly_paid_for() -> None:
    limited, events = [(replace(QUERY[0][0], limit=1, source=None), 1.0)], rushes(1, 1)
    operator = Operator(limited, is_split=True)
    operator.take(events)
    clock = VirtualClock(np.zeros(operator.stream.size))
    run = Loop(operator, clock, Costs(), slice_events=2)()
    known = unshed(limited, events, Costs(), is_split=True, is_observed=False)
    assert len(known.run.found) == len(run.found) > 0
    assert clock.now() <= known.event_seconds * operator.stream.size < 1.5 * clock.now()


def test_where_no_run_branches_slices_are_as_long_as_time_says() -> None:
    plans = {policy: Operator(policy_of(policy), is_split=True) for policy in ("FIRST", "STRICT", "LAST", "EACH")}
    assert {policy: plan.branches for policy, plan in plans.items()} == {
        "FIRST": False, "STRICT": False, "LAST": True, "EACH": True,
    }  # fmt: skip


def policy_of(policy: str) -> list[tuple[pk.Query, float]]:
    text = f"PATTERN SEQ(A a, B b, C c) WITHIN 40 EVENTS WINDOW 40 EVENTS EVERY 20 EVENTS SELECT {policy}"
    return [(pk.parse(text), 1.0)]


def test_so_many_events_fit_even_if_each_doubles_the_time() -> None:
    for room in (0.001, 0.05, 0.25):
        for event_time in (1e-6, 1e-4, 3e-3):
            events = Pace().events(room, event_time)
            times = event_time * 2.0 ** np.arange(events + 1)
            assert times[:-1].sum() <= room or events == 1
            assert times.sum() > room


def test_a_pair_takes_its_part_of_the_time_for_each_open_run() -> None:
    pace = Pace()
    pace.note(6.0, 3.0, 0, 0)  # no run was open: what it took says nothing about them
    assert pace.by_run == 0.0
    pace.note(6.0, 3.0, 5, 20)
    assert pace.by_run == pytest.approx(2.0 / 10)
    pace.note(0.0, 0.0, 20, 20)  # all were shed
    assert pace.by_run == pytest.approx(2.0 / 10)
