"""Texts do not grow for ever: those that nothing holds any more are forgotten, and nothing else changes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import penstock as pk
from penstock.engine import engine as module
from penstock.reference import Event, find

QUERIES = {
    "plain": "PATTERN SEQ(A a, B b, C c) WHERE SAME[id] AND a.k <= c.k WITHIN 40 s",
    "tree": "PATTERN SEQ(A a, B b, C c) WHERE SAME[id] AND a.k <= c.k WITHIN 40 s",
    "general": "PATTERN SEQ(A a, B b, NOT C c) WHERE SAME[id] AND a.k <= b.k AND b.k <> 'k3' WITHIN 40 s",
    "keys": "PATTERN SEQ(A a, B b) WHERE a.id = b.id AND a.k > 'k1' WITHIN 40 s PARTITION BY k",
}


def some_events(count: int) -> list[Event]:
    """Return events whose ids are new all the time."""
    random = Random(7)
    ids = [f"id{k // 6 + random.randint(0, 3)}" for k in range(count)]
    return [
        Event(random.choice("ABC"), k * 1_000_000, k, {"id": ids[k], "k": f"k{random.randint(0, 4)}"})
        for k in range(count)
    ]


def batch(events: list[Event]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {"type": [e.type for e in events], "ts": [e.ts for e in events]}
    return columns | {name: [e.value(name) for e in events] for name in ("id", "k")}


@pytest.mark.parametrize("name", QUERIES)
def test_texts_are_forgotten_and_matches_stay_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FORGET_FROM", 16)
    query, events = pk.parse(QUERIES[name]), some_events(900)
    engine = pk.Engine(query, plan="tree" if name == "tree" else "automaton")
    matches, most = pk.Matches(), 0
    for start in range(0, len(events), 30):
        matches += engine.process(batch(events[start : start + 30]))
        most = max(most, len(engine._reader.texts))
        if start == 450:
            engine = pk.Engine.restore(engine.snapshot())
    matches += engine.flush()
    assert most < 100 < len({event.value("id") for event in events})
    rows = sorted((match.key, tuple(match.events.items())) for match in matches)
    truth = sorted((match.key, match.bindings) for match in find(query, events))
    assert rows == truth
    assert len(truth) > 20
