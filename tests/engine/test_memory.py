"""Memory is bounded by what WITHIN and the rate imply; a cap on runs is an error, never a death."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.engine.engine import Engine
from penstock.engine.matcher import TooManyRunsError
from penstock.engine.queries import EngineError
from penstock.engine.snapshots import unpack
from tests.engine.comparing import again, rows

SECOND_US = 1_000_000
BATCH = 10_000


def batches(count: int, size: int = BATCH, keys: int = 50) -> Iterator[dict[str, Any]]:
    """Yield batches with an event each 10 ms, of three types: `k` are keys that come and go, `id` such that stay."""
    for number in range(count):
        random = np.random.default_rng(number)
        seq = np.arange(number * size, (number + 1) * size)
        yield {
            "type": np.array(["A", "B", "C"], object)[random.integers(0, 3, size)],
            "ts": seq * 10_000,
            "k": (seq // 2_000 * keys + random.integers(0, keys, size)).astype(np.float64),
            "id": random.integers(0, keys, size),
            "x": random.random(size),
        }


def room(engine: Engine) -> dict[str, int]:
    """Return how many bytes the arrays of an engine take, by what holds them."""
    (detector,) = engine._detectors
    memory = detector.matcher.memory  # type: ignore[attr-defined]
    found = {f"memory.{name}": array.nbytes for name, array in memory._asdict().items()}
    store = {
        f"store.{name}": each.nbytes for name, each in vars(detector.store).items() if isinstance(each, np.ndarray)
    }
    emission = detector.emission
    found["emission"] = emission.consumed.values.nbytes + emission.counts.values.nbytes
    return found | store


QUERIES = {
    "plain EACH": "SEQ(A a, B b, C c) WHERE a.x > 0.9 AND a.x < b.x AND b.x < c.x WITHIN 2 s",
    "plain FIRST": "SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 2 s SELECT FIRST",
    "plain FIRST CONSUME": "SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 2 s SELECT FIRST CONSUME ALL",
    "plain STRICT": "SEQ(A a, B b, C c) WITHIN 2 s SELECT STRICT",
    "plain repetition": "SEQ(A a, B{1,2} b[], C c) WHERE a.x > 0.95 AND b[i].x > a.x AND c.x > 0.9 WITHIN 2 s",
    "plain LAST CONSUME": "SEQ(A a, B b) WHERE a.x > 0.9 WITHIN 2 s SELECT LAST CONSUME ALL",
    "plain keys": "SEQ(A a, B b, C c) WHERE SAME[k] WITHIN 20 s",
    "plain partitions": "SEQ(A a, B b, C c) WITHIN 20 s PARTITION BY k SELECT FIRST",
    "plain count": "SEQ(A a, B b) WHERE a.x > 0.9 WITHIN 100 EVENTS",
    "plain count partitions": "SEQ(A a, B b) WITHIN 20 EVENTS PARTITION BY id SELECT FIRST",
    "plain time windows": "SEQ(A a, B b) WHERE a.x > 0.9 WITHIN 2 s WINDOW 2 s EVERY 1 s SELECT FIRST CONSUME ALL",
    "plain count windows": "SEQ(A a, B b) WHERE a.x > 0.9 WITHIN 2 s WINDOW 200 EVENTS EVERY 50 EVENTS",
    "plain opened windows": "SEQ(A a, B b) WHERE a.x > 0.9 AND b.x > 0.9 WITHIN 2 s WINDOW 2 s ON C s WHERE s.x > 0.9",
    "plain closed windows": "SEQ(A a, B b) WHERE a.x > 0.9 AND b.x > 0.99 WITHIN 1 h WINDOW 2 s EVERY 1 s",
    "plain LIMIT": "SEQ(A a, B b) WHERE a.x > 0.9 WITHIN 2 s WINDOW 2 s EVERY 1 s LIMIT 1 PER WINDOW",
    "general EACH": "SEQ(A a, NOT C n, B b) WHERE n.x > b.x AND a.x > 0.9 WITHIN 2 s",
    "general FIRST": "SEQ(A a, NOT C n, B b) WHERE n.x > b.x AND a.x < b.x WITHIN 2 s SELECT FIRST",
    "general waiting": "SEQ(A a, NOT C n) WHERE a.x > 0.9 AND n.x > 0.9 WITHIN 1 s",
    "general partitions": "SEQ(A a, NOT C n, B b) WHERE n.x > b.x WITHIN 20 s PARTITION BY k",
    "general count": "SEQ(A a, NOT C n, B b) WHERE n.x > b.x AND a.x > 0.9 WITHIN 100 EVENTS",
    "general count partitions": "SEQ(A a, NOT C n, B b) WHERE n.x > b.x WITHIN 20 EVENTS PARTITION BY id",
    "general windows": "SEQ(A a, NOT C n, B b) WHERE n.x > b.x AND a.x > 0.9 WITHIN 2 s WINDOW 2 s EVERY 1 s",
    "general closed windows": "SEQ(A a, NOT C n, B b) WHERE a.x > 0.9 AND n.x > b.x WITHIN 1 h WINDOW 2 s EVERY 1 s",
    "general opened windows": "SEQ(A a, NOT C n, B b) WHERE n.x > b.x WITHIN 2 s WINDOW 2 s ON C s WHERE s.x > 0.9",
    "held": "SEQ(A a, B b, NOT C n) WHERE a.x > 0.9 AND b.x > 0.9 AND n.x > 0.9 WITHIN 1 s SELECT LAST CONSUME ALL",
}
# What grows with every key that was ever seen: what is known of each partition. With WITHIN n EVENTS a partition
# that gets no more events keeps its runs for ever, as the language says; so such keys must not come and go.
PER_KEY = {"memory.newest", "store.newest"}


@pytest.mark.parametrize("name", QUERIES)
def test_arrays_stay_as_large_as_they_were(name: str) -> None:
    """The same rate for five times as long takes no more room, but for an array that happens to double late."""
    engine = Engine(pk.parse(f"PATTERN {QUERIES[name]}"), plan="automaton")
    assert (engine._detectors[0].plan.plain is not None) == name.startswith("plain")
    early: dict[str, int] = {}
    matches = 0
    for number, batch in enumerate(batches(50)):
        matches += len(engine.process(batch))
        if number == 9:  # events that nothing needs have been dropped twice
            early = room(engine)
    late = room(engine)
    assert matches > 100
    grown = {key: (early[key], late[key]) for key in late if late[key] > 2.2 * early[key] + 4096 and key not in PER_KEY}
    assert not grown
    assert sum(late.values()) < 20_000_000


@pytest.mark.parametrize("negation", ["", "NOT C n,"])
def test_runs_of_keys_that_are_gone_are_over(negation: str) -> None:
    where = "WHERE n.x > b.x" if negation else ""
    query = f"PATTERN SEQ(A a, {negation} B b) {where} WITHIN 5 s PARTITION BY k SELECT FIRST"
    engine = Engine(pk.parse(query), plan="automaton")
    counts = []
    for batch in batches(12, 1000):
        engine.process(batch)
        engine.snapshot()  # drops what is over
        counts.append(engine.work["runs"])
    assert max(counts) < 200


@pytest.mark.parametrize("plan", ["automaton", "tree"])
@pytest.mark.parametrize("name", ["plain EACH", "plain keys", "general EACH", "plain count", "held"])
def test_snapshots_do_not_grow(name: str, plan: Any) -> None:
    engine = Engine(pk.parse(f"PATTERN {QUERIES[name]}"), plan=plan)
    sizes = []
    for number, batch in enumerate(batches(9)):
        engine.process(batch)
        if number % 3 == 2:
            sizes.append(len(engine.snapshot()))
    assert max(sizes) < 1.5 * min(sizes) + 4096


def test_one_large_batch_takes_no_more_than_many_small_ones() -> None:
    """Except for the events themselves, and matches, which are handed out as they are found."""
    for name in ("plain EACH", "plain FIRST", "general EACH", "general FIRST", "general waiting"):
        query = pk.parse(f"PATTERN {QUERIES[name]}")
        small, large = Engine(query, plan="automaton"), Engine(query, plan="automaton")
        expected = [row for batch in batches(30, 1000) for row in rows(small.process(batch))]
        (whole,) = batches(1, 1)
        parts = list(batches(30, 1000))
        whole = {key: np.concatenate([part[key] for part in parts]) for key in whole}
        assert rows(large.process(whole)) == expected
        for array in ("runs", "nodes"):
            one, other = (room(engine)[f"memory.{array}"] for engine in (small, large))
            assert other <= 2.1 * one + 1_000_000, (name, array)


# --- the cap --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["SEQ(A a, B b) WITHIN 1 h", "SEQ(A a, NOT C n, B b) WHERE n.seq > b.seq WITHIN 1 h"])
@pytest.mark.parametrize("most", [1, 100, 1000])
def test_too_many_runs(query: str, most: int) -> None:
    engine = Engine(pk.parse(f"PATTERN {query}"), max_runs=most, plan="automaton")
    engine.process({"type": ["A"] * most, "ts": range(most)})
    assert engine.work["runs"] == most
    before = engine.snapshot()
    with pytest.raises(TooManyRunsError) as caught:
        engine.process({"type": ["A"] * 2000, "ts": [most] * 2000})
    assert f"more than {most:,} runs" in str(caught.value)
    assert f"max_runs={10 * most:_}" in str(caught.value)
    for use in (lambda: engine.process({"type": ["B"], "ts": [most]}), engine.flush, engine.snapshot):
        with pytest.raises(EngineError, match="too many runs in an earlier batch\n  fix: restore it from a snapshot"):
            use()
    restored = Engine.restore(before)
    assert len(restored.process({"type": ["B"], "ts": [most]})) == most
    assert again(restored).work["matches"] == most


@pytest.mark.parametrize("query", ["SEQ(A a, B b) WITHIN 1 s", "SEQ(A a, NOT C n, B b) WHERE n.seq > b.seq WITHIN 1 s"])
def test_runs_that_are_over_do_not_count(query: str) -> None:
    """At any time there are at most 11 runs, though a sweep may not have dropped the older ones yet."""
    engine = Engine(pk.parse(f"PATTERN {query}"), max_runs=12, plan="automaton")
    size = 5000
    engine.process({"type": ["A"] * size, "ts": [SECOND_US // 10 * number for number in range(size)]})
    assert engine.work["runs_created"] == size
    assert len(engine.runs()) == 11


def test_the_tree_has_a_cap_too() -> None:
    engine = Engine(pk.parse("PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 1 h"), max_runs=100, plan="tree")
    (batch,) = batches(1, 1000)
    with pytest.raises(TooManyRunsError, match="more than 100 runs"):
        engine.process(batch)


# --- chains of elements ---------------------------------------------------------------------------------------


def test_matches_that_wait_to_be_handed_out_keep_their_events() -> None:
    """Elements are reclaimed in the middle of a batch, after the run of a match is over."""
    for query in ("SEQ(A a, B b) WITHIN 1 s", "SEQ(A a, NOT C n, B b) WHERE n.seq > b.seq WITHIN 1 s"):
        engine = Engine(pk.parse(f"PATTERN {query}"), plan="automaton")
        size = 40_000
        times = [0, 1, *(2 * SECOND_US + 10_000 * number for number in range(size))]
        (match,) = engine.process({"type": ["A", "B", *["A"] * size], "ts": times})
        assert match.events == {"a": (0,), "b": (1,)}


def test_one_event_may_need_most_of_the_room() -> None:
    """An event that lengthens all runs at once: reclaiming does not help, so the arrays grow."""
    size = 15_000
    engine = Engine(pk.parse("PATTERN SEQ(A a, B b, C c) WHERE a.x < 0 WITHIN 1 h"), plan="automaton")
    assert not engine.process({"type": ["A"] * size, "ts": range(size), "x": [1.0] * size})
    engine = Engine(pk.parse("PATTERN SEQ(A a, B b, C c) WITHIN 1 h"), plan="automaton")
    engine.process({"type": ["A"] * size, "ts": [0] * size})
    engine.process({"type": ["B"] * 2, "ts": [1] * 2})
    assert engine.work["runs"] == 3 * size
    assert len(engine.process({"type": ["C"], "ts": [2]})) == 2 * size


def test_a_snapshot_holds_only_what_is_needed() -> None:
    engine = Engine(pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 s"), plan="automaton")
    size = 3000  # too few to reclaim
    engine.process({"type": ["A"] * size, "ts": [100_000 * number for number in range(size)]})
    state = unpack(engine.snapshot())["detectors"]["0"]
    assert state["matcher"]["nodes"].shape[1] == 11
    assert state["store"]["size"] == 11
    assert len(engine.kept()) == 11
