"""Arrivals from another process: on schedule, all of them, and the loop sees each event once."""

import time

import numpy as np

from penstock.runtime.feeding import Feeder
from penstock.runtime.matching import Operator
from penstock.runtime.profiles import Constant
from penstock.runtime.running import Loop, Shedder
from penstock.shedding.overload.queueing import QueueDetector
from penstock.shedding.quality import strict
from penstock.shedding.strategies.espice import Espice
from penstock.testing.shedders import structured
from tests.runtime.runs import QUERY, costs, history, truth

EVENTS = structured(100, 51)


def test_events_arrive_on_schedule_and_not_before() -> None:
    schedule = np.linspace(0.0, 0.3, 301)
    with Feeder(schedule) as feeder:
        seen = []
        while feeder.arrived() < 301:
            before = feeder.now()
            arrived = feeder.arrived()
            seen.append((before, arrived, feeder.now()))
            time.sleep(0.002)
        assert feeder.arrived() == 301
    for _, arrived, now in seen:
        assert arrived <= np.searchsorted(schedule, now, side="right")


def test_the_feeder_ends_with_its_process() -> None:
    with Feeder(np.array([0.0, 3600.0])) as feeder:
        feeder.wait(0)
        assert feeder.arrived() == 1
        process = feeder._process
    assert process.poll() is not None


def test_in_real_time_all_is_found_if_there_is_time_enough() -> None:
    operator = Operator(QUERY, is_split=True, names=history().names)
    operator.take(EVENTS)
    shedder = Shedder(Espice.fitted(history()), QueueDetector(60.0), 60.0)
    with Feeder(Constant(1.0).arrivals(operator.stream.size, 20_000)) as clock:
        run = Loop(operator, clock, costs(), shedder, full_time=1e-5)()
    assert strict(truth(EVENTS).found, run.found, [1.0]).lost == 0
    assert run.shed_pairs == run.overdue == 0
    assert (run.latencies > 0).all()


def test_in_real_time_what_comes_too_fast_is_shed_and_counted() -> None:
    operator = Operator(QUERY, is_split=True, names=history().names)
    operator.take(EVENTS)
    shedder = Shedder(Espice.fitted(history()), QueueDetector(0.01), 0.01)  # no machine is that fast
    with Feeder(Constant(1.0).arrivals(operator.stream.size, 1e6)) as clock:
        run = Loop(operator, clock, costs(), shedder, full_time=1e-5)()
    assert run.shed_pairs + run.overdue > 0
    stream = operator.stream
    seen = int((stream.high - stream.low + 1).sum())
    assert run.pairs <= seen
    assert (run.pairs < seen) == (run.overdue > 0)
