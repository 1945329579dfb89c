"""Shedding and counting hooks: what is shed is gone from where it is shed, and from nowhere else."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.engine.hooks import HookError, Hooks
from penstock.engine.matcher import quota
from penstock.kernel.plain import process
from penstock.plan.plain import PlainTables
from penstock.reference import Event, find

TYPES = "ABC"
EACH = "PATTERN SEQ(A a, B b, C c) WHERE a.v < b.v WITHIN 20 s"
FIRST = f"{EACH} SELECT FIRST"
CONSUME = f"{EACH} SELECT FIRST CONSUME ALL"
WINDOW = "WINDOW 12 s EVERY 3 s"
NEGATIONS = [
    "PATTERN SEQ(A a, NOT B b, C c) WITHIN 20 s",
    "PATTERN SEQ(A a, NOT B b, C c) WHERE b.v > a.v WITHIN 20 s SELECT FIRST",
    "PATTERN SEQ(A a, B b, NOT A n, C c) WHERE n.v > b.v WITHIN 20 s SELECT FIRST CONSUME ALL",
    "PATTERN SEQ(A a, NOT B m, NOT C n, A b, C c) WHERE m.v = a.v AND n.v > a.v WITHIN 20 s",
]


def some_events(seed: int, count: int = 60) -> list[Event]:
    random = Random(seed)
    ts = np.cumsum([random.choice([0, 1, 1, 2]) for _ in range(count)]) * 1_000_000
    return [Event(random.choice(TYPES), int(ts[k]), k, {"v": random.randint(0, 3)}) for k in range(count)]


def batch(events: list[Event]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {"type": [e.type for e in events], "ts": [e.ts for e in events]}
    return columns | {"seq": [e.seq for e in events], "v": [e.value("v") for e in events]}


def found(text: str, events: list[Event], hooks: Hooks | None = None) -> set[tuple[Any, ...]]:
    engine = pk.Engine(pk.parse(text), plan="automaton")
    matches = engine.process(batch(events), hooks) + engine.flush()
    rows = [(match.window, tuple(match.events.items())) for match in matches]
    assert len(set(rows)) == len(rows)
    return set(rows)


def truth(text: str, events: list[Event]) -> set[tuple[Any, ...]]:
    return {(match.window, match.bindings) for match in find(pk.parse(text), events)}


@pytest.mark.parametrize(
    "query", [EACH, FIRST, CONSUME, f"{FIRST.replace('SEQ(A a, B b, C c)', 'SEQ(A a, NOT B b, C c)')}"]
)
@pytest.mark.parametrize("seed", range(8))
def test_an_event_that_is_shed_is_as_if_it_had_not_come(query: str, seed: int) -> None:
    events, random = some_events(seed), np.random.default_rng(seed)
    shed = random.random(len(events)) < 0.3
    kept = [event for event, is_shed in zip(events, shed, strict=True) if not is_shed]
    assert found(query, events, Hooks(events=shed)) == truth(query, kept) != truth(query, events)


def windows_of(event: Event) -> range:
    return range((event.ts - 12_000_000) // 3_000_000 + 1, event.ts // 3_000_000 + 1)


@pytest.mark.parametrize("query", [EACH, FIRST, CONSUME, *NEGATIONS])
@pytest.mark.parametrize("seed", range(8))
def test_an_event_that_is_shed_from_a_window_is_gone_from_that_window_only(query: str, seed: int) -> None:
    events, random = some_events(seed, 40), np.random.default_rng(seed)
    shed = random.integers(0, 16, len(events)) * (random.random(len(events)) < 0.5)
    text = query.replace("WITHIN 20 s", f"WITHIN 20 s {WINDOW}")
    wanted = set()
    for number in {window for event in events for window in windows_of(event)}:
        left = [
            event
            for event, bits in zip(events, shed.tolist(), strict=True)
            if number in windows_of(event) and not bits >> (number - windows_of(event)[0]) & 1
        ]
        wanted |= {row for row in truth(text, left) if row[0] == number * 3_000_000}
    assert found(text, events, Hooks(windows=shed)) == wanted != truth(text, events)


@pytest.mark.parametrize("policy", ["EACH", "FIRST"])
def test_many_runs_go_on_in_windows_from_which_a_negated_event_is_shed(policy: str) -> None:
    """There are more parts of runs than there is room for at first."""
    text = f"PATTERN SEQ(A a, NOT B b, C c) WITHIN 20 s {WINDOW} SELECT {policy}"
    events = [Event("A", 9_000_000, k, {"v": 0}) for k in range(400)]
    events += [Event("B", 10_000_000, 400, {"v": 0}), Event("C", 11_000_000, 401, {"v": 0})]
    shed = np.zeros(402, np.int64)
    shed[400] = 0b0101
    windows = [row[0] for row in found(text, events, Hooks(windows=shed))]
    assert {window: windows.count(window) for window in set(windows)} == {0: 400, 6_000_000: 400}


def test_example_1_of_the_thesis() -> None:
    """Without B2 in its first window, A0 goes on with B3."""
    text = "PATTERN SEQ(A a, B b, C c) WITHIN 8 EVENTS WINDOW 8 EVENTS EVERY 2 EVENTS SELECT FIRST CONSUME ALL"
    events = [Event(kind, k, k, {"v": 0}) for k, kind in enumerate("AABBAC")]
    first = {row for row in found(text, events) if row[0] == 0}
    assert first == {(0, (("a", (0,)), ("b", (2,)), ("c", (5,))))}
    shed = found(text, events, Hooks(windows=np.array([0, 0, 1, 0, 0, 0])))
    assert {row for row in shed if row[0] == 0} == {(0, (("a", (0,)), ("b", (3,)), ("c", (5,))))}
    assert shed - first - {(0, (("a", (0,)), ("b", (3,)), ("c", (5,))))} == found(text, events) - first


def test_an_event_is_hidden_from_the_runs_of_a_state() -> None:
    events = [Event(kind, k, k, {"v": k}) for k, kind in enumerate("ABABC")]
    engine = pk.Engine(pk.parse(EACH), plan="automaton")
    assert engine.states == [[(), ("a",), ("a", "b"), ("a", "b", "c")]]
    hidden = np.zeros((4, 5), np.bool_)
    hidden[1, 1] = True  # B1 from the runs that have a
    hidden[0, 2] = True  # A2 opens no run
    assert found(EACH, events, Hooks(states=hidden)) == {(None, (("a", (0,)), ("b", (3,)), ("c", (4,))))}


def test_what_happens_is_counted_by_cell_and_state() -> None:
    events = [Event(kind, k, k, {"v": v}) for k, (kind, v) in enumerate(zip("AABCB", (1, 5, 3, 0, 9), strict=True))]
    counted = np.zeros((3, 4, 2), np.int64)
    cells = np.array([TYPES.index(event.type) for event in events])
    cells[-1] = -1
    assert found(EACH, events, Hooks(cells=cells, counted=counted)) == found(EACH, events)
    wanted = np.zeros((3, 4, 2), np.int64)
    wanted[0, 0] = 2, 2  # both A open a run
    wanted[1, 1] = 2, 1  # B2 is offered to both, and one takes it
    wanted[2, 2] = 1, 1
    assert counted.tolist() == wanted.tolist()


@pytest.mark.parametrize("count", [0, 1, 7, 1_000])
def test_runs_of_least_utility_are_dropped(count: int) -> None:
    events = some_events(3)
    engine = pk.Engine(pk.parse(EACH), plan="automaton")
    engine.process(batch(events[:40]))
    before = [match.events for match in engine.runs()]
    by_state = [sum(len(run) == size for run in before) for size in (0, 1, 2, 3)]
    utility = np.repeat([[9.0], [1.0], [5.0], [9.0]], 4, axis=1)  # those with one event first
    dropped = engine.drop_runs(count, utility)
    assert dropped.tolist() == [0, min(count, by_state[1]), min(max(0, count - by_state[1]), by_state[2]), 0]
    left = [match.events for match in engine.runs()]
    assert len(left) == len(before) - dropped.sum()
    assert all(run in before for run in left)
    later = {tuple(match.events.items()) for match in engine.process(batch(events[40:]))}
    assert later <= {row[1] for row in truth(EACH, events)}


def test_runs_with_little_time_left_go_first() -> None:
    engine = pk.Engine(pk.parse("PATTERN SEQ(A a, B b) WITHIN 100 s"), plan="automaton")
    engine.process(batch([Event("A", k * 10_000_000, k, {"v": 0}) for k in range(10)]))
    utility = np.tile(np.arange(10.0), (3, 1))
    assert engine.drop_runs(4, utility).tolist() == [0, 4, 0]
    assert [match["a"] for match in engine.runs()] == [(k,) for k in range(4, 10)]


def test_hooks_that_do_not_fit_are_refused() -> None:
    engine = pk.Engine(pk.parse(EACH), plan="automaton")
    with pytest.raises(HookError, match=r"hooks.events has the shape \(3,\), and the batch needs \(2,\)"):
        engine.process(batch(some_events(0, 2)), Hooks(events=np.zeros(3, np.bool_)))
    with pytest.raises(HookError, match=r"needs hooks\.counted"):
        engine.process(batch(some_events(0, 2)), Hooks(cells=np.zeros(2, np.int64)))
    narrow: Any = np.zeros((1, 4, 2), np.int32)
    with pytest.raises(HookError, match="must be an array of int64"):
        engine.process(batch(some_events(0, 2)), Hooks(cells=np.zeros(2, np.int64), counted=narrow))


@pytest.mark.parametrize("is_first", [True, False])
def test_who_asks_for_a_tree_has_no_runs(is_first: bool) -> None:
    tree = pk.Engine(pk.parse(EACH), plan="tree")
    if not is_first:
        tree.process(batch(some_events(0, 2)))
        with pytest.raises(HookError, match="plan='automaton'"):
            tree.runs()
    with pytest.raises(HookError, match="plan='automaton'"):
        tree.process(batch(some_events(0, 2)), Hooks(windows=np.zeros(2, np.int64)))
    with pytest.raises(HookError, match="plan='automaton'"):
        tree.drop_runs(1, np.ones((4, 1)))


@pytest.mark.parametrize("seed", range(20))
def test_of_each_cell_as_many_runs_go_as_if_all_were_sorted(seed: int) -> None:
    numbers = np.random.default_rng(seed)
    shape = numbers.integers(1, 8, 2)
    utility = numbers.integers(0, 5, shape) / 4 if seed % 2 else numbers.random(shape)
    sizes = numbers.integers(0, 4, shape)
    for count in (0, 1, int(sizes.sum()) // 2, int(sizes.sum()), int(sizes.sum()) + 5):
        cells = np.repeat(np.arange(sizes.size), sizes.reshape(-1))
        going = cells[np.argsort(utility.reshape(-1)[cells], kind="stable")][:count]
        wanted = np.bincount(going, minlength=sizes.size)
        got = quota(utility, sizes, count)
        if seed % 2 == 0:  # no two are alike
            assert got.tolist() == wanted.tolist()
            continue
        alike = np.unique(utility, return_inverse=True)[1].reshape(-1)
        there, gone, told = (np.bincount(alike, each.reshape(-1)) for each in (sizes, wanted, got))
        assert told.tolist() == gone.tolist()
        fair = (sizes.reshape(-1) * gone[alike]) / np.maximum(there[alike], 1)  # the same part of each
        assert (got <= sizes.reshape(-1)).all()
        assert (np.abs(got - fair) < 1).all()


def test_the_kernel_has_code_for_hooks_only_where_there_may_be_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for hooks that say nothing yet: else it would be compiled again when the first event is shed."""
    used: list[bool] = []

    def noting(tables: PlainTables, *rest: Any) -> Any:
        used.append(tables.hooks is not None)
        return process(tables, *rest)

    monkeypatch.setattr("penstock.engine.plain.process", noting)
    engine = pk.Engine(pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 min"), plan="automaton")
    for ts, hooks in enumerate([None, pk.Hooks(), pk.Hooks(states=np.zeros((3, 1), np.bool_)), None]):
        engine.process({"type": ["A"], "ts": [ts]}, hooks)
    assert used == [False, True, True, False]
