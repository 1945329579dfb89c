"""Models are built anew when the stream changes, from the windows that are not shed; and these tell what is lost."""

from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.runtime.clocks import VirtualClock
from penstock.runtime.costs import Costs
from penstock.runtime.matching import Operator
from penstock.runtime.profiles import Constant
from penstock.runtime.relearning import Learner
from penstock.runtime.running import Loop, Shedder
from penstock.runtime.training import unshed
from penstock.shedding.drift import LibraryDrift, MatchesDrift, MatrixDrift
from penstock.shedding.markov import deviation
from penstock.shedding.overload.queueing import QueueDetector
from penstock.shedding.quality import strict
from penstock.shedding.strategies.pspice import Pspice
from penstock.testing.shedders import structured
from tests.runtime.runs import history, joined, learned, shed_run, truth

PER_WINDOW = len(learned().run.found) / history().windows


def changed(windows: int, seed: int) -> dict[str, Any]:
    """Return a stream in which what matters is elsewhere, and there is twice as much of it."""
    stream = structured(windows, seed)
    types = stream["type"].reshape(-1, 40)[:, ::-1].copy()  # the first is the last
    swapped = np.where(types == "A", "C", np.where(types == "C", "A", types))
    swapped[:, 18] = "B"
    return {**stream, "type": swapped.reshape(-1)}


BEFORE, AFTER = structured(150, 31), changed(450, 32)
EVENTS = joined(BEFORE, AFTER)


def lost_at_the_end(strategy: str, learner: Learner | None) -> float:
    run, loop = shed_run(strategy, 1.7, EVENTS, unshed=0.2, learner=learner)
    assert run.latencies.max() <= 1.0
    windows = len(loop.operator.stream.sizes)
    part = windows * 3 // 4, windows
    return strict(truth(EVENTS).found.between(*part), run.found.between(*part), [1.0]).lost


def test_espice_learns_anew_when_unshed_windows_have_other_matches() -> None:
    learner = Learner(MatchesDrift(PER_WINDOW, threshold=0.3, windows=20), windows=30)
    with_learning = lost_at_the_end("espice", learner)
    without = lost_at_the_end("espice", None)
    assert learner.retrained
    assert all(at > 150 * 40 for at in learner.retrained)
    assert with_learning < 0.8 * without


@pytest.mark.parametrize("method", ["ADWIN", "KSWIN", "PageHinkley"])
def test_a_detector_of_a_library_sees_it_too(method: str) -> None:
    sign = LibraryDrift(method)
    steady = np.random.default_rng(1).poisson(4, 400).astype(float)
    before = [sign.observe(value) for value in steady]
    after = [sign.observe(value + 30) for value in steady]
    assert any(after)
    assert method != "ADWIN" or not any(before)  # the others have false alarms


def test_pspice_learns_anew_when_the_transition_matrix_deviates() -> None:
    model = Pspice.fitted(history())
    learner = Learner(MatrixDrift(model.matrices, threshold=1e-4), windows=60)
    lost_at_the_end("pspice", learner)
    assert any(at > 150 * 40 for at in learner.retrained)


def test_the_matrix_of_every_query_is_watched() -> None:
    def stream(shares: list[float], seed: int) -> dict[str, Any]:
        types = np.random.default_rng(seed).choice(np.array(["X", "Y", "A", "B"]), 3000, p=shares)
        return {"type": types, "ts": np.arange(3000) * 1000}

    window = "WITHIN 20 EVENTS WINDOW 20 EVENTS EVERY 20 EVENTS"
    queries = [(pk.parse(f"PATTERN SEQ({one} p, {two} q) {window}"), 1.0) for one, two in ("XY", "AB")]
    before, after = stream([0.25, 0.25, 0.25, 0.25], 1), stream([0.25, 0.25, 0.45, 0.05], 2)
    seen = [unshed(queries, each, Costs(), is_split=True) for each in (before, after)]
    models = [Pspice.fitted(each.history) for each in seen if each.history is not None]
    sign = MatrixDrift(models[0].matrices, threshold=2e-3)
    assert deviation(models[0].matrices[0], models[1].matrices[0]) < sign.threshold  # that of the first query stays
    operator = Operator(queries, is_split=True)
    operator.take(joined(before, after))
    clock = VirtualClock(Constant(0.5).arrivals(6000, seen[0].capacity))
    learner = Learner(sign, windows=40)
    shedder = Shedder(models[0], QueueDetector(1.0), bound=1.0)
    Loop(operator, clock, Costs(), shedder, full_time=seen[0].event_seconds, learner=learner)()
    assert learner.retrained
    assert all(at > 3000 for at in learner.retrained)


def test_nothing_is_learned_anew_while_nothing_changes() -> None:
    learner = Learner(MatchesDrift(PER_WINDOW, threshold=0.6, windows=40), windows=30)
    shed_run("espice", 1.7, structured(300, 33), unshed=0.2, learner=learner)
    assert not learner.retrained
