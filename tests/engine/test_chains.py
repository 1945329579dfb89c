"""Matches that are laid out when somebody asks for them: later, elsewhere or never, they are the same."""

from __future__ import annotations

import gc
import pickle
from random import Random
from typing import Any

import numpy as np
import pytest

from penstock.engine.engine import Engine
from penstock.engine.matches import Later, Matches
from penstock.engine.plain import PlainMatcher
from penstock.pattern.parser import parse
from tests.engine.comparing import difference, found
from tests.generators import seeded

NEVER_FEW, ALWAYS_FEW = 1 << 40, 0  # bytes that a match is thought to take: chains are left alone, or laid out early

QUERIES = {
    "plain": "SEQ(A a, B b, C c) WHERE a.v < b.v WITHIN 200 s",
    "list": "SEQ(A a, B+ b[], C c) WHERE a.v < b[i].v AND b[i].v > b[i-1].v WITHIN 30 s",
    "windows": "SEQ(A a, B b, C c) WHERE a.v < b.v WITHIN 100 s WINDOW 100 s EVERY 40 s",
    "opened windows": "SEQ(A a, B b, C c) WHERE a.v < b.v WITHIN 100 s WINDOW 100 s ON C",
    "keys": "SEQ(A a, B b, C c) WHERE a.v < b.v WITHIN 200 s PARTITION BY id",
    "keys and windows": "SEQ(A a, B b, C c) WHERE a.v < b.v WITHIN 200 s PARTITION BY id WINDOW 200 s EVERY 90 s",
}


def batches(events: int = 8_000, size: int = 1_000) -> list[dict[str, Any]]:
    random = np.random.default_rng(7)
    columns = {
        "type": random.choice(np.array(["A", "B", "C"]), events),
        "ts": np.arange(events) * 1_000_000,
        "v": random.uniform(0, 1, events),
        "id": random.integers(0, 3, events),
    }
    return [{name: column[at : at + size] for name, column in columns.items()} for at in range(0, events, size)]


def engine_of(query: str) -> Engine:
    return Engine(parse(f"PATTERN {query}"), plan="automaton")


@pytest.mark.parametrize("bytes_of_a_match", [NEVER_FEW, ALWAYS_FEW, 64])
@pytest.mark.parametrize("name", QUERIES)
def test_matches_that_are_read_at_the_end_are_those_that_are_read_at_once(
    name: str, bytes_of_a_match: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile the engine has dropped events and elements of runs, and given others their places."""
    monkeypatch.setattr("penstock.engine.chains._LAID_OUT_BYTES", bytes_of_a_match)
    monkeypatch.setattr("penstock.engine.matches._LATER_FROM", 1)
    monkeypatch.setattr("penstock.engine.detector._RECLAIM_FROM", 1)
    at_once, later = engine_of(QUERIES[name]), engine_of(QUERIES[name])
    tables, kept = [], []
    for batch in batches():
        kept.append(later.process(batch))
        tables.append(at_once.process(batch).to_arrow())
    assert sum(map(len, kept)) > 2_000
    is_later = name != "keys and windows"  # which are laid out at once
    assert any(isinstance(chunk, Later) for each in kept for _, chunk in each.chunks) == is_later
    for matches, table in zip(kept, tables, strict=True):
        assert len(matches) == len(table)
        assert matches.to_arrow().equals(table)


def test_the_engine_finds_what_the_reference_finds_if_all_matches_are_laid_out_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.engine.matches._LATER_FROM", 1)
    monkeypatch.setattr("penstock.engine.chains._LAID_OUT_BYTES", NEVER_FEW)
    for seed, case in enumerate(seeded(400, 70_000), start=70_000):
        told = difference(case, found(case, Random(seed), restores=seed % 2 == 1))
        assert not told, f"seed {seed}: {told}\n{case!r}"


def some_later() -> tuple[Engine, Matches]:
    engine = engine_of(QUERIES["plain"])
    matches = engine.process(batches(2_000, 2_000)[0])
    assert any(isinstance(chunk, Later) for _, chunk in matches.chunks)
    return engine, matches


def test_they_can_be_sent_elsewhere() -> None:
    _, matches = some_later()
    assert pickle.loads(pickle.dumps(matches)).to_arrow().equals(matches.to_arrow())


def test_reading_them_twice_gives_the_same() -> None:
    _, matches = some_later()
    assert matches.as_set() == matches.as_set()
    assert len(matches.as_set()) == len(matches)


def test_what_nobody_has_any_more_is_not_kept() -> None:
    engine, matches = some_later()
    matcher = engine._detectors[0].matcher
    assert isinstance(matcher, PlainMatcher)
    assert len(matcher.given_out) > 0
    del matches
    gc.collect()
    assert len(matcher.given_out) == 0
