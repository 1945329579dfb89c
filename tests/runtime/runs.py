"""Runs of an operator on structured streams, for tests."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import penstock as pk
from penstock.runtime.clocks import VirtualClock
from penstock.runtime.costs import Costs
from penstock.runtime.matching import Operator
from penstock.runtime.measures import Run
from penstock.runtime.profiles import Constant, Profile
from penstock.runtime.relearning import Learner
from penstock.runtime.running import Loop, Shedder
from penstock.runtime.training import Unshed, unshed
from penstock.shedding.history import History
from penstock.shedding.overload.latency import LatencyDetector
from penstock.shedding.overload.load import Detector
from penstock.shedding.overload.queueing import QueueDetector
from penstock.shedding.strategies.catalogue import STRATEGIES
from penstock.testing.shedders import FIRST, structured

QUERY = [(pk.parse(FIRST), 1.0)]
CAPACITY = 1000.0
BOUND, F = 1.0, 0.8


@cache
def costs() -> Costs:
    """Return costs with which the operator can do 1,000 events a second."""
    plain = unshed(QUERY, structured(60, 1), Costs(), is_split=True, is_observed=False)
    return Costs().scaled(plain.capacity / CAPACITY)


@cache
def learned(seed: int = 1) -> Unshed:
    return unshed(QUERY, structured(200, seed), costs(), is_split=True)


def history(seed: int = 1) -> History:
    found = learned(seed).history
    assert found is not None
    return found


def detector(level: str) -> Detector:
    if level == "runs":
        return LatencyDetector(BOUND, (1 - F) * BOUND, learned().event_time, learned().shed_time)
    return QueueDetector(BOUND, F)


def shed_run(
    strategy: str,
    profile: Profile | float,
    events: dict[str, Any],
    *,
    unshed: float = 0.0,
    learner: Learner | None = None,
    seed: int = 1,
) -> tuple[Run, Loop]:
    """Run over events under load; the seed is that of the windows that are left unshed."""
    operator = Operator(QUERY, is_split=True, names=history().names)
    operator.take(events)
    made = STRATEGIES[strategy].fitted(history())
    shape = Constant(profile) if isinstance(profile, float) else profile
    clock = VirtualClock(shape.arrivals(operator.stream.size, CAPACITY))
    shedder = Shedder(made, detector(made.level), BOUND, F, unshed, seed)
    loop = Loop(operator, clock, costs(), shedder, full_time=learned().event_seconds, learner=learner)
    return loop(), loop


def truth(events: dict[str, Any]) -> Run:
    return unshed(QUERY, events, costs(), is_split=True, is_observed=False).run


def joined(*parts: dict[str, Any]) -> dict[str, Any]:
    """Return streams one after the other."""
    result = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    result["ts"] = np.arange(len(result["ts"])) * 1000
    return result
