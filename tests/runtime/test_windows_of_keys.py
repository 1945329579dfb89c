"""Windows with PARTITION BY are cut from the events of a key: what is learned of it is what it alone would teach."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.engine.matches import Match
from penstock.runtime.clocks import VirtualClock
from penstock.runtime.costs import Costs
from penstock.runtime.learning import learned
from penstock.runtime.matching import Operator
from penstock.runtime.profiles import Constant
from penstock.runtime.running import Loop, Shedder
from penstock.runtime.splitting import SplitError
from penstock.runtime.stream import Stream
from penstock.runtime.training import unshed
from penstock.shedding.history import History
from penstock.shedding.overload.latency import LatencyDetector
from penstock.shedding.overload.queueing import QueueDetector
from penstock.shedding.storing import _taken_apart
from penstock.shedding.strategies.catalogue import STRATEGIES
from penstock.shedding.views import NOTHING

BY_POSITION = sorted(name for name, each in STRATEGIES.items() if each.level in ("window", "run"))
WINDOWS = {
    "counted": "WITHIN 12 EVENTS {} WINDOW 12 EVENTS EVERY 5 EVENTS",
    "timed": "WITHIN 8 s {} WINDOW 8 s EVERY 3 s",
    "with gaps": "WITHIN 6 s {} WINDOW 6 s EVERY 10 s",
    "opened": "WITHIN 8 s {} WINDOW 8 s ON A o WHERE o.v > 6",
    "opened, counted": "WITHIN 15 EVENTS {} WINDOW 15 EVENTS ON A o WHERE o.v > 5",
}
PATTERNS = {
    "plain": "SEQ(A a, B b, C c) WHERE a.v < c.v",
    "previous": "SEQ(A a, B b) WHERE a.v > prev(a.v) AND b.v > prev(b.v)",
    "negated": "SEQ(A a, NOT D d, B b) WHERE d.v > 5",
}
NAMES = ("A", "B", "C", "D", "")


def query(pattern: str, window: str, *, by: str = "PARTITION BY k", rest: str = "") -> pk.Query:
    return pk.parse(f"PATTERN {PATTERNS[pattern]} {WINDOWS[window].format(by)} {rest}")


def events(seed: int, size: int = 600, keys: int = 3) -> dict[str, Any]:
    """Return events of some keys, one of which has most of them."""
    numbers = np.random.default_rng(seed)
    return {
        "type": numbers.choice(np.array(["A", "B", "C", "D"]), size),
        "ts": np.cumsum(numbers.choice([0, 1, 1, 7], size, p=[0.1, 0.5, 0.35, 0.05])) * 250_000,
        "v": numbers.integers(0, 10, size).astype(np.float64),
        "k": np.minimum(numbers.integers(0, 2 * keys, size), keys - 1),
    }


def of_key(stream: dict[str, Any], key: int) -> dict[str, Any]:
    return {name: column[stream["k"] == key] for name, column in stream.items()}


def taken(asked: pk.Query, stream: dict[str, Any]) -> Stream:
    made = Stream([asked], is_split=True, names=NAMES)
    made.take(stream)
    return made


# --- by hand ------------------------------------------------------------------------------------------------------


def test_positions_by_hand() -> None:
    # Key p: events 0, 2, 3, 5, 8; key q: 1, 4, 6, 7. Windows of three events, one every two, of each key.
    rows = {"type": list("AABCBDDCA"), "ts": np.arange(9) * 10, "k": list("pqppqpqqp")}
    asked = pk.parse("PATTERN SEQ(A a, B b) WITHIN 3 EVENTS PARTITION BY k WINDOW 3 EVENTS EVERY 2 EVENTS")
    stream = Stream([asked], is_split=True)
    stream.take(rows)
    view = stream.view(0, 9)
    named = ["p0", "p2", "p4", "q0", "q2"]  # a window is called by its key and the place where it begins
    seen = [
        (row, named[window], at)
        for row, window, at in zip(view.rows.tolist(), view.windows.tolist(), view.positions.tolist(), strict=True)
    ]
    assert seen == [
        (0, "p0", 0), (1, "q0", 0), (2, "p0", 1), (3, "p0", 2), (3, "p2", 0), (4, "q0", 1), (5, "p2", 1),
        (6, "q0", 2), (6, "q2", 0), (7, "q2", 1), (8, "p2", 2), (8, "p4", 0),
    ]  # fmt: skip
    assert stream.sizes.tolist() == [3, 3, 1, 3, 2]
    assert stream.cut.opens.tolist() == [0, 3, 8, 1, 6]
    assert stream.cut.closes.tolist() == [5, 9, 9, 7, 9]  # by the next event of the key; 9: never
    assert [stream.cut.over(now) for now in (4, 5, 6, 7)] == [0, 1, 1, 2]
    assert view.sizes.tolist() == [3] * 12


def test_sizes_and_what_is_left_by_hand() -> None:
    # Windows of a second. Key p has 4 and 2 events, key q has 1 in the first and 5 in the third, none in the second.
    ms = [0, 100, 200, 300, 400, 1000, 1500, 2000, 2100, 2200, 2300, 2400]
    rows = {"type": ["A"] * 12, "ts": np.array(ms) * 1000, "k": list("pqppp") + ["p"] * 2 + ["q"] * 5}
    stream = Stream([pk.parse("PATTERN A a WITHIN 1 s PARTITION BY k WINDOW 1 s")], is_split=True)
    stream.take(rows)
    assert stream.sizes.tolist() == [4, 2, 1, 5]
    assert stream.cut.foreseen.tolist() == [0] * 5 + [4, 4] + [1] * 5
    assert stream.cut.closes.tolist() == [5, 7, 5, 12], "time goes on for all keys"
    assert stream.view(0, 5).sizes.tolist() == [5] * 5, "none is over: as many as have come"
    assert stream.view(5, 12).sizes.tolist() == [4, 4, 1, 1, 1, 1, 1]
    assert stream.left(np.array([0, 2]), 2).tolist() == pytest.approx([1 - 1 / 3, 1 - 1 / 3])
    assert stream.left(np.array([1]), 6).tolist() == [0.75]
    assert stream.left(np.array([3]), 8).tolist() == [0.0]


def test_events_without_a_key_are_in_no_window() -> None:
    rows = {"type": ["A"] * 4, "ts": np.arange(4), "k": np.array([1.0, np.nan, 1.0, 2.0])}
    asked = pk.parse("PATTERN A a WITHIN 3 EVENTS PARTITION BY k WINDOW 3 EVENTS")
    stream = Stream([asked], is_split=True)
    stream.take(rows)
    view = stream.view(0, 4)
    assert (view.rows.tolist(), view.positions.tolist()) == ([0, 2, 3], [0, 1, 0])
    assert len(unshed([(asked, 1.0)], rows, Costs(), is_split=True).run.found) == 3


# --- one key among others is as it is alone ---------------------------------------------------------------------------


@pytest.mark.parametrize("window", WINDOWS)
def test_an_event_is_where_it_is_in_the_stream_of_its_key(window: str) -> None:
    stream = events(1)
    whole = taken(query("plain", window), stream)
    view = whole.view(0, whole.size)
    pairs = 0
    for key in range(3):
        alone = taken(query("plain", window, by=""), of_key(stream, key))
        other, rows = alone.view(0, alone.size), np.flatnonzero(stream["k"] == key)
        chosen = np.isin(view.rows, rows)
        pairs += len(other)
        assert view.rows[chosen].tolist() == rows[other.rows].tolist()
        assert view.positions[chosen].tolist() == other.positions.tolist()
        assert whole.cut.foreseen[rows].tolist() == alone.cut.foreseen.tolist()
        used = np.unique(view.windows[chosen])
        assert used.tolist() == list(range(used[0], used[-1] + 1))
        assert whole.sizes[used].tolist() == alone.sizes.tolist()
    assert pairs == len(view) > 200
    assert len(view.sizes) == len(view)


def history_of(asked: pk.Query, stream: dict[str, Any], bins: int = 6) -> History:
    operator = Operator([(asked, 1.0)], is_split=True, bins=bins, names=NAMES)
    operator.take(stream)
    operator.observe()
    for start in range(0, operator.stream.size, 50):
        operator.process(start, operator.stream.view(start, min(start + 50, operator.stream.size)), NOTHING)
    operator.finish()
    return operator.history(operator.stream.size, Costs())


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("window", WINDOWS)
def test_what_is_observed_of_keys_is_what_each_shows_alone(pattern: str, window: str) -> None:
    stream = events(2)
    whole = history_of(query(pattern, window), stream)
    alone = [history_of(query(pattern, window, by=""), of_key(stream, key)) for key in range(3)]
    assert whole.windows == sum(each.windows for each in alone)
    for name in ("event_counts", "events_met", "contributions"):
        np.testing.assert_allclose(getattr(whole, name)(), sum(getattr(each, name)() for each in alone))
    np.testing.assert_allclose(whole.completed_by_state(0), sum(each.completed_by_state(0) for each in alone))
    for name in ("open_runs", "moves"):
        np.testing.assert_array_equal(
            getattr(whole.queries[0], name), sum(getattr(each.queries[0], name) for each in alone)
        )
    assert whole.contributions().any()
    assert not (whole.contributions() == whole.contributions()[:, :1]).all(), "positions matter"


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("strategy", ["espice", "hspice-pm", "hspice-w", "ebl"])
def test_keys_that_are_alike_teach_what_one_does(strategy: str, window: str) -> None:
    one = of_key(events(3), 2)
    twins = {name: np.repeat(column, 2) for name, column in one.items()} | {"k": np.tile([0, 1], len(one["k"]))}
    models = [
        arrays_of(learned(strategy, [(query("plain", window, by=by), 1.0)], given, bins=6).strategy)
        for by, given in (("PARTITION BY k", twins), ("", one))
    ]
    assert list(models[0]) == list(models[1])
    for name, array in models[1].items():
        np.testing.assert_allclose(models[0][name], array, err_msg=name)
    assert any(array.any() for array in models[0].values())


@pytest.mark.parametrize("strategy", BY_POSITION)
def test_a_stream_of_one_key_teaches_what_it_does_without(strategy: str) -> None:
    one, options = of_key(events(4), 2), {"attributes": ("v",)} if strategy.startswith("gspice") else {}
    models = [
        arrays_of(learned(strategy, [(query("plain", "timed", by=by), 1.0)], one, bins=6, **options).strategy)
        for by in ("PARTITION BY k", "")
    ]
    for name, array in models[1].items():
        np.testing.assert_array_equal(models[0][name], array, err_msg=name)


def arrays_of(strategy: Any) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    _taken_apart(strategy, "", arrays)
    return arrays


# --- running ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rest", ["SELECT EACH", "SELECT FIRST CONSUME a", "SELECT STRICT"])
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("window", WINDOWS)
def test_the_same_matches_as_windows_that_share_their_runs(window: str, pattern: str, rest: str) -> None:
    asked, stream = query(pattern, window, rest=rest), events(5)
    shared = pk.Engine(asked)
    wanted = sorted(named(match) for match in shared.process(stream) + shared.flush())
    found = unshed([(asked, 1.0)], stream, Costs(), is_split=True).run.found
    operator = Operator([(asked, 1.0)], is_split=True)
    operator.take(stream)
    got = []
    for start in range(0, operator.stream.size, 37):
        view = operator.stream.view(start, min(operator.stream.size, start + 37))
        got += [named(match, 20) for match in operator.process(start, view, NOTHING).matches]
    assert sorted(got) == wanted
    assert len(found) == len(wanted)
    assert wanted or rest == "SELECT STRICT"


def named(match: Match, bits: int = 0) -> tuple[Any, ...]:
    return tuple(sorted((name, tuple(seq >> bits for seq in seqs)) for name, seqs in match.events.items()))


@pytest.mark.parametrize("strategy", [*BY_POSITION, "pspice", "random-event"])
def test_an_operator_of_windows_of_keys_keeps_its_bound(strategy: str) -> None:
    asked = [(query("plain", "timed"), 1.0)]
    before, now = events(6, 1500), events(7, 6000)
    plain = unshed(asked, before, Costs(), is_split=True)
    costs = Costs().scaled(plain.capacity / 1000)
    known = unshed(asked, before, costs, is_split=True)
    assert known.history is not None
    operator = Operator(asked, is_split=True, names=known.history.names)
    operator.take(now)
    made = STRATEGIES[strategy].fitted(known.history)
    is_of_runs = made.level == "runs"
    detector = LatencyDetector(1.0, 0.2, known.event_time, known.shed_time) if is_of_runs else QueueDetector(1.0, 0.8)
    clock = VirtualClock(Constant(1.5).arrivals(operator.stream.size, known.capacity))
    shedder = Shedder(made, detector, 1.0, 0.8, 0.0 if is_of_runs else 0.2)
    run = Loop(operator, clock, costs, shedder, full_time=known.event_seconds)()
    assert run.latencies.max() <= 1.0
    assert run.drop_ratio > 0.02
    assert is_of_runs or run.estimate is not None


def test_queries_with_other_keys_are_refused() -> None:
    text = "PATTERN A a WITHIN 1 s PARTITION BY {} WINDOW 1 s"
    with pytest.raises(SplitError, match="same WINDOW and PARTITION BY"):
        learned("espice", [(pk.parse(text.format(key)), 1.0) for key in "kv"], events(1))
