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
