"""The rate that a detector is told."""

from __future__ import annotations

import numpy as np
import pytest

import penstock as pk
from penstock.runtime.clocks import VirtualClock
from penstock.runtime.costs import Costs
from penstock.runtime.matching import Operator
from penstock.runtime.running import Loop, Shedder
from penstock.shedding.overload.load import KEEP_ALL, Command, Load
from penstock.shedding.overload.queueing import QueueDetector
from penstock.shedding.strategies.chance import RandomEvent
from penstock.testing.shedders import structured
from tests.runtime.runs import QUERY as SEQUENCE
from tests.runtime.runs import costs, learned

QUERY = pk.parse("PATTERN SEQ(A a, B b) WITHIN 10 EVENTS WINDOW 10 EVENTS EVERY 5 EVENTS")


def test_events_that_are_all_there_at_once_are_no_endless_rate() -> None:
    operator = Operator([(QUERY, 1.0)], is_split=True)
    operator.take({"type": ["A", "B"] * 100, "ts": list(range(200))})
    shedder = Shedder(RandomEvent(), QueueDetector(1.0, 0.8), bound=1.0, f=0.8)
    loop = Loop(operator, VirtualClock(np.zeros(200)), Costs(), shedder, full_time=0.005)
    load = loop._load(0, 0, 200)
    assert load.rate == pytest.approx(200 / 0.2)  # in the time between f · LB and LB, not in no time at all
    assert shedder.detector.command(load, 8).share < 0.9


def test_what_waits_came_at_a_rate_even_if_nothing_comes_any_more() -> None:
    operator = Operator([(QUERY, 1.0)], is_split=True)
    operator.take({"type": ["A", "B"] * 100, "ts": list(range(200))})
    clock = VirtualClock(np.arange(200) / 100)
    clock.spend(10.0)  # the last event came eight seconds ago
    shedder = Shedder(RandomEvent(), QueueDetector(1.0, 0.8), bound=1.0, f=0.8)
    assert Loop(operator, clock, Costs(), shedder, full_time=0.005)._load(0, 0, 200).rate == pytest.approx(100)


def test_a_slice_has_so_much_work_however_many_windows_its_events_are_in() -> None:
    opened = pk.parse("PATTERN SEQ(A a, B b) WITHIN 50 EVENTS WINDOW 50 EVENTS ON A")
    operator = Operator([(opened, 1.0)], is_split=True)
    operator.take({"type": ["B"] * 1000 + ["A"] * 100 + ["B"] * 900, "ts": list(range(2000))})
    shedder = Shedder(RandomEvent(), QueueDetector(1.0, 0.8), bound=1.0, f=0.8)
    loop = Loop(operator, VirtualClock(np.zeros(2000)), Costs(), shedder, full_time=1e-4)
    loop._unit_time = 0.2 / 16 / 600  # so that a slice has 600 events and pairs
    assert loop._slice_end(0, 2000) == 600  # no window is open
    work = [
        int(operator.stream.work[end] - operator.stream.work[at])
        for at in (1050, 1070)
        for end in [loop._slice_end(at, 2000)]
    ]
    assert all(500 < each <= 651 for each in work)  # up to 50 windows: some twelve events


class AllThenNothing:
    """A detector that has all events dropped, and then none, in turns of ten slices."""

    slices = 0

    def command(self, load: Load, events: int) -> Command:
        self.slices += 1
        return Command(1.0) if self.slices // 10 % 2 == 0 else KEEP_ALL


def test_a_slice_of_which_nothing_is_shed_is_short_though_all_of_those_before_were() -> None:
    operator = Operator(SEQUENCE, is_split=True)
    operator.take(structured(100, 3))
    clock = VirtualClock(np.zeros(operator.stream.size))
    far = 1e6  # a bound that no event breaks, with slices as if it were 1 s
    shedder = Shedder(RandomEvent(), AllThenNothing(), bound=far, f=1 - 0.2 / far)
    run = Loop(operator, clock, costs(), shedder, full_time=learned().event_seconds)()
    took = np.diff([0.0, *(moment.at for moment in run.moments)])
    is_shed = np.array([moment.share > 0 for moment in run.moments])
    assert 5 <= (~is_shed).sum() < len(took) - 5
    assert took[~is_shed].max() < 2 * 0.2 / 4  # a quarter of the time between f · LB and LB, by the mean of an event
