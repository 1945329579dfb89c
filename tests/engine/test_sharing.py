"""Queries of one engine share the events of their types, and conditions on one event; alone they find the same."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.engine.detector import Detector
from penstock.engine.hooks import Hooks
from penstock.engine.store import Store

QUERIES = (
    "PATTERN SEQ(A a, B b) WHERE a.v > 3 AND a.v < b.v WITHIN 40 us",
    "PATTERN SEQ(A a, B b) WHERE a.v > 3 AND b.v > 3 WITHIN 40 us SELECT FIRST CONSUME a",
    "PATTERN SEQ(A a, B b, C c) WHERE a.v > 3 AND SAME[k] WITHIN 60 us",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE c.v > prev(c.v) WITHIN 30 us SELECT FIRST",
    "PATTERN SEQ(B b, A a) WHERE a.v > 3 AND a.k = 'x' WITHIN 40 us SELECT LAST",
    "PATTERN SEQ(A a, NOT B b, C c) WITHIN 40 us",
    "PATTERN SEQ(A a, B b) WITHIN 5 EVENTS",
    "PATTERN SEQ(A a, B b) WITHIN 40 us SELECT STRICT",
    "PATTERN SEQ(A a, B b) WITHIN 40 us PARTITION BY k",
    "PATTERN SEQ(A a, B b) WITHIN 40 us WINDOW 40 us EVERY 20 us",
    "PATTERN SEQ(A a, B b) WHERE a.v > 3 WITHIN 40 us RETURN a.v + b.v AS total",
    "PATTERN SEQ(* a, B b) WHERE a.v > 8 AND b.v > 8 WITHIN 20 us",
)


def events(seed: int, size: int = 400) -> dict[str, Any]:
    """Return a stream in which most events are of types that no query names."""
    numbers = np.random.default_rng(seed)
    return {
        "type": numbers.choice(list("ABCVWXYZ"), size).tolist(),
        "ts": np.cumsum(numbers.integers(0, 5, size)).tolist(),
        "v": numbers.integers(0, 10, size).tolist(),
        "k": numbers.choice(["x", "y"], size).tolist(),
    }


def in_pieces(batch: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Return a batch in pieces of random sizes."""
    random, at, size = Random(seed), 0, len(batch["ts"])
    pieces = []
    while at < size:
        step = random.choice((1, 7, 50, 200))
        pieces.append({name: column[at : at + step] for name, column in batch.items()})
        at += step
    return pieces


def found(engine: pk.Engine, pieces: list[dict[str, Any]], *, restores: bool = False) -> list[str]:
    """Return what an engine finds, piece by piece."""
    told = []
    for number, piece in enumerate(pieces):
        told += [f"{match}" for match in engine.process(piece)]
        if restores and number % 3 == 1:
            engine = pk.Engine.restore(engine.snapshot())
    return told + [f"{match}" for match in engine.flush()]


@pytest.mark.parametrize("seed", range(12))
def test_many_queries_find_what_each_finds_alone(seed: int) -> None:
    queries = [pk.parse(text, f"q{number}") for number, text in enumerate(QUERIES)]
    pieces = in_pieces(events(seed), seed)
    together = found(pk.Engine(queries), pieces, restores=seed % 2 == 1)
    alone = [line for query in queries for line in found(pk.Engine(query), pieces)]
    assert sorted(together) == sorted(alone)


@pytest.mark.parametrize("plan", ["auto", "automaton"])
@pytest.mark.parametrize("text", QUERIES)
def test_leaving_out_other_types_changes_nothing(text: str, plan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = events(7, 3000)
    for seed in range(2):
        pieces = in_pieces(batch, seed)
        engine = pk.Engine([pk.parse(text, "one"), pk.parse(text, "two")], plan=plan)
        left_out = found(engine, pieces)
        with monkeypatch.context() as patched:
            patched.setattr("penstock.engine.detector.needs_own_types_only", lambda plan: False)
            whole_engine = pk.Engine([pk.parse(text, "one"), pk.parse(text, "two")], plan=plan)
            whole = found(whole_engine, pieces)
        assert left_out == whole
        assert left_out
        assert engine.work["events"] == whole_engine.work["events"]


def test_events_of_other_types_are_not_stored() -> None:
    engine = pk.Engine([pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 s", name) for name in ("one", "two")])
    engine.process({"type": list("AXXXXXXB"), "ts": list(range(8))})
    assert stored(engine) == 2
    assert engine.work["events"] == 16  # of both queries
    alone = pk.Engine(pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 s"))
    alone.process({"type": list("AXXXXXXB"), "ts": list(range(8))})
    assert stored(alone) == 8  # there is nobody to share with


def test_events_that_are_left_out_tell_the_time() -> None:
    engine = pk.Engine([pk.parse("PATTERN SEQ(A a, B b) WITHIN 5 us", name) for name in ("one", "two")])
    engine.process({"type": list("AXXXX"), "ts": [0, 1, 2, 3, 4]})
    assert len(engine.runs()) == 2  # one of each query
    engine.process({"type": list("XXXX"), "ts": [5, 6, 7, 8]})
    assert len(engine.runs()) == 0
    assert engine.open_runs().tolist() == [0, 0, 0]


def test_hooks_are_about_all_events() -> None:
    engine = pk.Engine([pk.parse("PATTERN SEQ(A a, B b) WITHIN 5 us", name) for name in ("one", "two")])
    ledger = np.zeros((4, 5), np.int64)
    engine.process({"type": list("AXXB"), "ts": [0, 1, 2, 3]}, Hooks(ledger=ledger))
    assert ledger[:, 3].tolist() == [1, 2, 2, 2]
    assert stored(engine) == 4


def test_a_condition_that_queries_share_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, ask = [], Store._ask

    def noted(store: Store, *arguments: Any) -> Any:
        asked.append(store)
        return ask(store, *arguments)

    monkeypatch.setattr(Store, "_ask", noted)
    texts = ("a.v > 3 AND a.v < b.v", "a.v > 3 AND b.v < a.v", "3 < a.v", "a.v > 4")
    engine = pk.Engine([pk.parse(f"PATTERN SEQ(A a, B b) WHERE {text} WITHIN 1 s") for text in texts])
    engine.process(events(1))
    assert len(asked) == 3  # a.v > 3 once; 3 < a.v is spelled otherwise


def stored(engine: pk.Engine) -> int:
    """Return how many events are kept for the first queries of an engine."""
    detector: Detector = engine._running[0]
    return detector.store.size
