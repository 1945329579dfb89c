"""The rate that a detector is told."""

from __future__ import annotations

import numpy as np
import pytest

import penstock as pk
from penstock.runtime.clocks import VirtualClock
from penstock.runtime.costs import Costs
from penstock.runtime.matching import Operator
from penstock.runtime.running import Loop, Shedder
from penstock.shedding.overload.queueing import QueueDetector
from penstock.shedding.strategies.chance import RandomEvent

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
