"""What a user says about shedding, and the strategy that comes of it."""

from __future__ import annotations

import numpy as np
import pytest

import penstock as pk
from penstock.runtime.clocks import VirtualClock
from penstock.runtime.matching import Operator
from penstock.runtime.profiles import Constant
from penstock.runtime.running import Loop, Shedder
from penstock.shedding.storing import ModelError
from penstock.shedding.strategies.catalogue import STRATEGIES
from penstock.shedding.strategies.chance import RandomRun
from penstock.testing.shedders import FIRST, structured
from tests.runtime.runs import BOUND, CAPACITY, F, costs, detector, learned

WITHOUT_MODEL = ("random-event", "random-run")


@pytest.mark.parametrize("name", STRATEGIES)
def test_chance_needs_no_model_and_all_others_do(name: str) -> None:
    shedding = pk.Shedding(bound="1 s", strategy=name)
    if name in WITHOUT_MODEL:
        fitted = shedding.fitted()
        assert (fitted.strategy.name, fitted.types) == (name, None)
        return
    with pytest.raises(ModelError, match=f"^{name} needs a model\n  fix: train one"):
        shedding.fitted()


@pytest.mark.parametrize("queries", [1, 2])
def test_runs_are_dropped_by_chance_without_a_model(queries: int) -> None:
    both = [(pk.parse(FIRST), 1.0), (pk.parse(FIRST.replace("SEQ(A a, B b, C c)", "SEQ(A a, C c)")), 1.0)]
    operator = Operator(both[:queries], is_split=True)
    operator.take(structured(150, 4))
    clock = VirtualClock(Constant(2.0 / queries).arrivals(operator.stream.size, CAPACITY))
    strategy = pk.Shedding(bound="1 s", strategy="random-run").fitted().strategy
    shedder = Shedder(strategy, detector("runs"), BOUND, F)
    run = Loop(operator, clock, costs(), shedder, full_time=queries * learned().event_seconds)()
    assert run.runs_dropped > 100
    assert run.latencies.max() <= BOUND


def test_one_row_of_utilities_is_about_all_states() -> None:
    queries = [pk.parse("PATTERN SEQ(A a, B b, C c) WITHIN 1 h"), pk.parse("PATTERN SEQ(A a, C c) WITHIN 1 h")]
    for asked in (queries[:1], queries):
        engine = pk.Engine(asked, plan="automaton")
        engine.process({"type": ["A", "B"] * 400, "ts": np.arange(800)})
        before = [engine.open_runs(query).copy() for query in range(len(asked))]
        half = sum(int(each.sum()) for each in before) // 2
        utilities = [RandomRun().run_utilities(query) for query in range(len(asked))]
        assert engine.drop_runs_of_all(half, utilities, seed=3) == half
        for query, runs in enumerate(before):  # about as many of each state and query: none is preferred
            left = engine.open_runs(query)[runs > 0] / runs[runs > 0]
            assert np.abs(left - 0.5).max() < 0.1
