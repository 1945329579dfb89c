"""How much was shed, in one measure for all strategies that drop events, and one for those that drop runs."""

from __future__ import annotations

import numpy as np
import pytest

import penstock as pk
from penstock.runtime.matching import Operator, Step
from penstock.runtime.measures import Run
from penstock.shedding.strategies.catalogue import STRATEGIES
from penstock.shedding.views import Decision
from penstock.testing.shedders import structured
from tests.runtime.runs import shed_run

QUERY = pk.parse("PATTERN SEQ(A a, B b, C c) WITHIN 4 EVENTS WINDOW 4 EVENTS EVERY 4 EVENTS")


def operated(hidden: list[tuple[int, int]], *, is_observed: bool = False) -> tuple[Run, Operator, Step]:
    """Process A A B C, with events hidden from the runs in a state, in one window; and count."""
    operator = Operator([(QUERY, 1.0)], is_split=True)
    operator.take({"type": ["A", "A", "B", "C"], "ts": [1, 2, 3, 4]})
    if is_observed:
        operator.observe()
    view = operator.stream.view(0, 4)
    states = np.zeros((len(operator.engine.states[0]), 4), np.bool_)
    for state, event in hidden:
        states[state, event] = True
    operator.keeps_ledger = False  # as in real time
    step = operator.process(0, view, Decision(hidden=(states,)))
    run = Run(np.zeros(4), shed_by_cell=np.zeros((len(operator.stream.names), 20)))
    run.note_shed(view, step.is_shed, step.hidden)
    return run, operator, step


def test_an_event_hidden_from_some_runs_is_shed_in_part() -> None:
    # B comes when two runs wait for it, and might have opened one: it is hidden from two of three.
    run, _, step = operated([(1, 2)])
    assert step.met is not None
    assert step.met.tolist() == [1, 2, 3, 3], "each run is decided about, also one that it is hidden from"
    assert run.shed_pairs == pytest.approx(2 / 3)
    assert run.drop_ratio == pytest.approx(2 / 3 / 4)
    assert run.shed_by_cell.sum(axis=0)[10] == pytest.approx(2 / 3)  # the third of four positions
    # The second A opens no run: one of two. B then meets one run and the start, and is hidden from the run. C meets the
    # same two, and is hidden from both: (0 + 1/2 + 1/2 + 1) / 4.
    run, _, _ = operated([(0, 1), (1, 2), (0, 3), (1, 3)])
    assert run.drop_ratio == pytest.approx(0.5)
    # States that no run is in: nothing was shed.
    assert operated([(2, 1), (2, 2)])[0].drop_ratio == 0


def test_counting_what_is_hidden_leaves_what_is_learned_as_it_was() -> None:
    _, operator, _ = operated([(1, 2)], is_observed=True)
    assert operator.counting is not None
    # A: the start. A: the start and a run. B and C: the start and two runs that no B was shown to.
    by_state = operator.counting[0].open_runs.sum(axis=0)
    assert by_state[:3].tolist() == [4, 1 + 2 + 2, 0]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_says_what_it_has_shed(strategy: str) -> None:
    run, _ = shed_run(strategy, 1.8, structured(100, 5))
    assert 0.02 < run.drop_ratio <= 1
    if run.runs_dropped:
        assert run.drop_ratio == run.runs_dropped / run.runs_made
    else:
        assert sum(moment.shed for moment in run.moments) == pytest.approx(run.drop_ratio * run.pairs)
        assert run.shed_by_cell.sum() == pytest.approx(run.shed_pairs)
