"""The worked examples of shedding, in the operator (SEMANTICS.md 9.1, 9.2, 9.4; thesis example 1)."""

import numpy as np
import pytest

import penstock as pk
from penstock.runtime.costs import Costs
from penstock.runtime.matching import Operator
from penstock.runtime.training import unshed
from penstock.shedding.quality import Found, relaxed, strict
from penstock.shedding.views import NOTHING, Decision

WINDOWS = "PATTERN SEQ(A a, B b, C c) WITHIN 8 EVENTS WINDOW 8 EVENTS EVERY 2 EVENTS SELECT FIRST CONSUME ALL"


def stream(types: str) -> dict[str, object]:
    return {"type": list(types), "ts": np.arange(len(types)) * 1000}


def found(text: str, types: str, shed: tuple[int, ...] = (), window: int = 0) -> tuple[Found, list[tuple[int, ...]]]:
    """Return the matches of a window if some of its events are shed from it."""
    operator = Operator([(pk.parse(text), 1.0)], is_split=True)
    operator.take(stream(types))
    view = operator.stream.view(0, len(types))
    pairs = (view.windows == window) & np.isin(view.rows, shed)
    step = operator.process(0, view, Decision(pairs=pairs) if shed else NOTHING)
    events = [tuple(s[0] >> 20 for s in m.events.values()) for m in step.matches if m.key == (window,)]
    return step.found.between(window, window + 1), events


def test_shedding_one_event_from_one_window() -> None:
    truth, matches = found(WINDOWS, "AABBAC")
    assert matches == [(0, 2, 5)]
    got, matches = found(WINDOWS, "AABBAC", shed=(2,))
    assert matches == [(0, 3, 5)]
    quality = strict(truth, got, [1.0])
    assert (quality.false_negatives, quality.false_positives) == (1, 1)
    quality = relaxed(truth, got, [1.0])
    assert (quality.false_negatives, quality.false_positives) == (0, 0)


def test_positions_in_windows() -> None:
    operator = Operator([(pk.parse(WINDOWS), 1.0)], is_split=True)
    operator.take(stream("AABBACBB"))
    view = operator.stream.view(4, 5)
    assert list(zip(view.windows.tolist(), view.positions.tolist(), strict=True)) == [(0, 4), (1, 2), (2, 0)]


@pytest.mark.parametrize(
    ("shed", "negatives", "positives"), [((1,), 1, 0), ((0,), 2, 1)], ids=["A2 dropped", "A1 dropped"]
)
def test_dropping_an_a_of_a1_a2_b3_b4(shed: tuple[int, ...], negatives: int, positives: int) -> None:
    text = "PATTERN SEQ(A a, B b) WITHIN 4 EVENTS WINDOW 4 EVENTS SELECT FIRST CONSUME ALL"
    truth, matches = found(text, "AABB")
    assert matches == [(0, 2), (1, 3)]
    quality = strict(truth, found(text, "AABB", shed)[0], [1.0])
    assert (quality.false_negatives, quality.false_positives) == (negatives, positives)


def test_abandoned_runs_teach_what_negated_events_are_worth() -> None:
    # R0 C1 X2 R3 X4, one id: the run of R0 is abandoned at C1, the only match is (R3, X4).
    query = pk.parse("PATTERN SEQ(R r, NOT C c, X x) WITHIN 5 EVENTS WINDOW 5 EVENTS SELECT FIRST CONSUME r")
    history = unshed([(query, 1.0)], stream("RCXRX"), Costs(), is_split=True).history
    assert history is not None
    done = history.queries[0]
    assert done.matches.rows.tolist() == [3, 4]
    assert done.matches.states.tolist() == [0, 1]
    assert done.abandoned.rows.tolist() == [0, 1]
    assert done.abandoned.states.tolist() == [0, 1]
    worth = history.contributions()
    assert worth[history.names.index("C"), 1] == 1
    assert worth[history.names.index("X"), 2] == 0
    assert worth[history.names.index("X"), 4] == 1


def test_observations_of_runs_by_state_and_position() -> None:
    # One window, A0 A1 B2: when A1 comes, a run is in state 1; when B2 comes, two are, and the first takes it.
    query = pk.parse("PATTERN SEQ(A a, B b) WITHIN 3 EVENTS WINDOW 3 EVENTS SELECT FIRST CONSUME ALL")
    history = unshed([(query, 1.0)], stream("AAB"), Costs(), is_split=True).history
    assert history is not None
    done = history.queries[0]
    a, b = history.names.index("A"), history.names.index("B")
    assert done.open_runs[a, :, 1].tolist() == [0, 1, 0]
    assert done.open_runs[b, :, 1].tolist() == [0, 0, 2]
    assert done.moves.tolist() == [[0, 2, 0], [0, 0, 1], [0, 0, 0]]
    assert done.stays.tolist() == [1, 2, 0]  # state 0 met three events, two of which opened a run
    assert history.completed_by_state(0)[b, 2].tolist() == [0, 1, 0]
    assert history.completed_by_state(0)[a, 0].tolist() == [1, 0, 0]
