"""Hooks about runs mean the same on the general kernel as on the plain one, and as leaving events out by hand."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.engine.general import GeneralMatcher
from penstock.engine.hooks import Hooks
from penstock.engine.tree import TreeMatcher
from penstock.reference import Event
from tests.engine.comparing import again
from tests.engine.test_hooks import CONSUME, EACH, FIRST, WINDOW, batch, some_events, truth, windows_of

Rows = set[tuple[Any, ...]]

# What the plain kernel does not run; by time, so that leaving an event out changes nothing but that.
NEGATIONS = [
    "PATTERN SEQ(NOT C n, A a, B b) WHERE n.v > b.v WITHIN 8 s",
    "PATTERN SEQ(A a, NOT C n, B b) WHERE n.v > b.v WITHIN 8 s",
    "PATTERN SEQ(A a, NOT C n, B b) WHERE n.v > b.v WITHIN 8 s SELECT FIRST CONSUME ALL",
    "PATTERN SEQ(A a, B b, NOT C n) WHERE n.v >= b.v WITHIN 5 s",
    "PATTERN SEQ(A a, B+ b[], NOT C n) WHERE n.v > 2 WITHIN 5 s SELECT FIRST",
    "PATTERN SEQ(A a, NOT C n, B b) WHERE n.v > b.v WITHIN 8 s PARTITION BY v SELECT FIRST",
]
LISTS = [
    "PATTERN SEQ(A a, B{1,3} b[], C c) WHERE b[2].v < c.v WITHIN 20 s",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE b[2].v < c.v WITHIN 20 s SELECT FIRST",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE b[2].v < c.v WITHIN 20 s SELECT FIRST CONSUME ALL",
    "PATTERN SEQ(A a, B+ b[]) WITHIN 20 s SELECT FIRST",
]


@pytest.fixture
def on_general(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make queries run on the general kernel from now on, plain or not."""
    return lambda: monkeypatch.setattr("penstock.plan.planning.why_not_plain", lambda *_, **__: "a test says so")


def engine_of(text: str) -> pk.Engine:
    return pk.Engine(pk.parse(text), plan="automaton")


def rows(matches: pk.Matches) -> list[tuple[Any, ...]]:
    return [(match.window, tuple(match.events.items())) for match in matches]


def found(text: str, events: list[Event], *, cut: int = 0, **hooks: Any) -> Rows:
    """Return what is found in two batches with hooks; with a cut, the engine is restored from a snapshot there."""
    engine, every = engine_of(text), []
    for start, stop in ((0, cut), (cut, len(events))):
        some = {n: each if n == "counted" else each[..., start:stop] for n, each in hooks.items()}
        every += rows(engine.process(batch(events[start:stop]), Hooks(**some)))
        engine = again(engine) if start < stop else engine
    every += rows(engine.flush())
    assert len(set(every)) == len(every)
    return set(every)


def states_of(text: str) -> int:
    return len(engine_of(text).states[0])


@pytest.mark.parametrize("text", [*NEGATIONS, *LISTS])
@pytest.mark.parametrize("seed", range(6))
def test_an_event_that_no_run_sees_is_as_if_it_had_not_come(text: str, seed: int) -> None:
    """Also where a negation looks back at it, batches and a snapshot later."""
    assert isinstance(engine_of(text)._detectors[0].matcher, GeneralMatcher)
    events, random = some_events(seed), np.random.default_rng(seed)
    shed = random.random(len(events)) < 0.3
    kept = [event for event, is_shed in zip(events, shed, strict=True) if not is_shed]
    hidden = np.tile(shed, (states_of(text), 1))
    assert found(text, events, cut=10 * seed, states=hidden) == truth(text, kept)


@pytest.mark.parametrize("text", [*NEGATIONS, *LISTS])
def test_hooks_that_decide_nothing_change_nothing(text: str) -> None:
    events = some_events(1)
    nothing: dict[str, Any] = {"states": np.zeros((states_of(text), len(events)), np.bool_)}
    nothing["cells"], nothing["counted"] = np.full(len(events), -1), np.zeros((1, states_of(text), 2), np.int64)
    if text in LISTS:
        nothing["windows"] = np.zeros(len(events), np.int64)
    assert found(text, events, cut=30, **nothing) == truth(text, events) != set()
    assert not nothing["counted"].any()


def test_a_negated_event_is_hidden_from_the_runs_of_a_state() -> None:
    events = [Event(kind, k, k, {"v": v}) for k, (kind, v) in enumerate(zip("ACAB", (0, 9, 0, 1), strict=True))]
    text = "PATTERN SEQ(A a, NOT C n, B b) WHERE n.v > b.v WITHIN 8 s"
    assert engine_of(text).states == [[(), ("a",), ("a", "b")]]
    late, both = (None, (("a", (2,)), ("b", (3,)))), (None, (("a", (0,)), ("b", (3,))))
    assert found(text, events) == {late}
    for state, wanted in ((0, {late}), (1, {late, both}), (2, {late})):
        hidden = np.zeros((3, 4), np.bool_)
        hidden[state, 1] = True
        assert found(text, events, states=hidden) == wanted


def test_before_its_first_event_a_run_is_in_state_0() -> None:
    events = [Event(kind, k, k, {"v": 0}) for k, kind in enumerate("CA")]
    text = "PATTERN SEQ(NOT C n, A a) WITHIN 8 s"
    hidden = np.array([[True, False], [False, False]])
    assert found(text, events) == set()
    assert found(text, events, states=hidden) == {(None, (("a", (1,)),))}


@pytest.mark.parametrize("text", LISTS)
@pytest.mark.parametrize("seed", range(6))
def test_an_event_that_is_shed_from_a_window_is_gone_from_that_window_only(text: str, seed: int) -> None:
    events, random = some_events(seed, 30), np.random.default_rng(seed)
    shed = random.integers(0, 16, len(events)) * (random.random(len(events)) < 0.5)
    text = text.replace("WITHIN 20 s", f"WITHIN 20 s {WINDOW}")
    wanted = set()
    for number in {window for event in events for window in windows_of(event)}:
        inside = [(e, b) for e, b in zip(events, shed.tolist(), strict=True) if number in windows_of(e)]
        left = [event for event, bits in inside if not bits >> (number - windows_of(event)[0]) & 1]
        wanted |= {row for row in truth(text, left) if row[0] == number * 3_000_000}
    assert found(text, events, cut=20, windows=shed) == wanted


def test_a_query_without_windows_has_one() -> None:
    events = [Event(kind, k, k, {"v": 0}) for k, kind in enumerate("AAB")]
    text = "PATTERN SEQ(A a, B+ b[]) WITHIN 1 h SELECT FIRST CONSUME ALL"
    assert found(text, events, windows=np.array([1, 0, 0])) == {(None, (("a", (1,)), ("b", (2,))))}


# --- plain queries on both kernels ------------------------------------------------------------------------------

STRICT = f"{EACH} SELECT STRICT"
PLAIN = [EACH, FIRST, CONSUME, STRICT, f"{FIRST} CONSUME b", EACH.replace("B b", "NOT B b")]
PLAIN += ["PATTERN AND(A a, B b, C c) WITHIN 10 s SELECT FIRST", f"{EACH} PARTITION BY v"]


@pytest.mark.parametrize("text", PLAIN)
@pytest.mark.parametrize("seed", range(4))
def test_both_kernels_do_the_same(text: str, seed: int, on_general: Callable[[], None]) -> None:
    events, random = some_events(seed, 80), np.random.default_rng(seed)
    assert not isinstance(engine_of(text)._detectors[0].matcher, GeneralMatcher)
    hooks: dict[str, Any] = {"states": random.random((states_of(text), 80)) < 0.2}
    hooks["cells"] = random.integers(-1, 3, 80)
    if "NOT" not in text:
        hooks["windows"] = (random.random(80) < 0.2).astype(np.int64)
    counts = [np.zeros((3, states_of(text), 2), np.int64) for _ in range(2)]
    plain = found(text, events, cut=33, counted=counts[0], **hooks)
    on_general()
    assert isinstance(engine_of(text)._detectors[0].matcher, GeneralMatcher)
    assert found(text, events, cut=33, counted=counts[1], **hooks) == plain
    if "NOT" in text:  # the general kernel asks about a negation later: runs that it has doomed are asked until then
        assert (counts[0] <= counts[1]).all()
        counts = [each[..., 1] for each in counts]
    assert counts[0].tolist() == counts[1].tolist()
    assert counts[0].any()


@pytest.mark.parametrize("is_general", [False, True])
@pytest.mark.parametrize("text", [EACH, FIRST, CONSUME])
def test_each_event_is_counted_once(text: str, is_general: bool, on_general: Callable[[], None]) -> None:
    """Though the kernel stops before it, for more room, and asks again; runs that are over are not asked."""
    if is_general:
        on_general()
    size = 700
    kinds = ["A"] * size + ["B"] * size + ["A", "B"]
    times = [0] * 2 * size + [60_000_000] * 2
    events = [
        Event(kind, ts, k, {"v": int(kind == "B")}) for k, (kind, ts) in enumerate(zip(kinds, times, strict=True))
    ]
    counted = np.zeros((2, 4, 2), np.int64)
    engine = engine_of(text)
    cells = np.where(np.array(kinds) == "A", 0, -1)
    cells[[size, size + 1, -1]] = 1  # two of the first B, and the last
    engine.process(batch(events), Hooks(cells=cells, counted=counted))
    assert counted[0].tolist() == [[size + 1, size + 1], [0, 0], [0, 0], [0, 0]]
    asked, taken = {EACH: (2 * size + 1,) * 2, FIRST: (size + 1,) * 2, CONSUME: (2 * size, 3)}[text]
    assert counted[1, 1].tolist() == [asked, taken]


# --- dropping runs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_general", [False, True])
@pytest.mark.parametrize("count", [0, 1, 7, 1_000])
def test_runs_of_least_utility_are_dropped(count: int, is_general: bool, on_general: Callable[[], None]) -> None:
    if is_general:
        on_general()
    events, engine = some_events(3), engine_of(EACH)
    engine.process(batch(events[:40]))
    before = [match.events for match in engine.runs()]
    by_state = [sum(len(run) == size for run in before) for size in (0, 1, 2, 3)]
    dropped = engine.drop_runs(count, np.repeat([[9.0], [1.0], [5.0], [9.0]], 4, axis=1))
    assert dropped.tolist() == [0, min(count, by_state[1]), min(max(0, count - by_state[1]), by_state[2]), 0]
    left = [match.events for match in engine.runs()]
    assert len(left) == len(before) - dropped.sum()
    assert all(run in before for run in left)
    later = {row[1] for row in rows(engine.process(batch(events[40:])))}
    wanted = {row[1] for row in truth(EACH, events)}
    assert later <= wanted
    old = {e.seq for e in events[:40]}
    for match in wanted:  # a match is there if the part of it that was a run was not dropped
        part = {name: seqs for name, seqs in match if seqs[0] in old}
        if len(part) < 3:
            assert (match in later) == (not part or part in left)


def test_runs_with_little_time_left_go_first() -> None:
    for within in ("100 s", "10 EVENTS"):
        engine = engine_of(f"PATTERN SEQ(A a, NOT C n, B b) WHERE n.v > b.v WITHIN {within}")
        engine.process(batch([Event("A", k * 10_000_000, k, {"v": 0}) for k in range(10)]))
        assert engine.drop_runs(4, np.tile(np.arange(10.0), (3, 1))).tolist() == [0, 4, 0]
        assert [match["a"] for match in engine.runs()] == [(k,) for k in range(4, 10)]


# --- trees ------------------------------------------------------------------------------------------------------


def on_a_tree(events: list[Event]) -> tuple[pk.Engine, pk.Matches]:
    """Return an engine that has chosen a tree by itself, and its matches so far."""
    engine = pk.Engine(pk.parse(EACH))
    matches = engine.process(batch(events))
    assert isinstance(engine._detectors[0].matcher, TreeMatcher)
    return engine, matches


def rare_ends(count: int) -> list[Event]:
    random = Random(5)
    kinds = random.choices("ABC", (250, 250, 1), k=count)
    return [Event(kind, k * 250_000, k, {"v": random.randint(0, 3)}) for k, kind in enumerate(kinds)]


def test_hooks_about_runs_change_a_tree_to_an_automaton() -> None:
    events = rare_ends(2400)
    engine, matches = on_a_tree(events[:2000])
    work = engine.work
    hidden = np.zeros((4, 400), np.bool_)
    hidden[:, ::3] = True
    matches += engine.process(batch(events[2000:]), Hooks(states=hidden))
    assert not isinstance(engine._detectors[0].matcher, TreeMatcher)
    assert engine.work["matches"] == len(matches) >= work["matches"]
    kept = events[:2000] + [event for k, event in enumerate(events[2000:]) if k % 3]
    assert set(rows(matches)) == {(m.window, m.bindings) for m in pk.reference.find(pk.parse(EACH), kept)}
    restored = again(engine)
    restored.process(batch([Event("A", 10**10 + k, 10**6 + k, {"v": 0}) for k in range(9000)]))
    assert not isinstance(restored._detectors[0].matcher, TreeMatcher)


def test_looking_at_runs_changes_a_tree_to_an_automaton() -> None:
    events = rare_ends(1500)
    automaton = engine_of(EACH)
    automaton.process(batch(events))
    listed = sorted(rows(automaton.runs()))
    assert len(listed) > 100
    engine, _ = on_a_tree(events)
    assert sorted(rows(engine.runs())) == listed
    engine, _ = on_a_tree(events)
    utility = np.ones((4, 1))
    assert engine.drop_runs(10**6, utility).sum() == automaton.drop_runs(10**6, utility).sum() == len(listed)
