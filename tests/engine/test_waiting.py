"""How many open runs wait for events of a type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.testing import stream


def engine_after(events: str, *texts: str, plan: Any = "automaton") -> pk.Engine:
    engine = pk.Engine([pk.parse(text) for text in texts], plan=plan)
    engine.process(columns(events))
    return engine


def columns(events: str) -> dict[str, list[Any]]:
    """Return events as columns."""
    rows = stream(events)
    names = {name for row in rows for name in row.attributes}
    told = {name: [row.attributes.get(name) for row in rows] for name in sorted(names)}
    return {"type": [row.type for row in rows], "ts": [row.ts for row in rows], **told}


def test_runs_wait_for_the_types_of_what_they_may_take() -> None:
    engine = engine_after("A0 A1 B2", "PATTERN SEQ(A a, B b, C|D c) WITHIN 10 s")
    (runs,) = engine.waiting(["A", "B", "C", "D", "X"])  # two after A; two after A and B
    assert runs.sum(axis=0).tolist() == [0, 2, 2, 2, 0]
    assert np.count_nonzero(runs) == 3


def test_they_wait_for_what_forbids_them() -> None:
    engine = engine_after("A0 A1 A2", "PATTERN SEQ(A a, NOT N n, B b) WITHIN 10 s")
    assert engine.waiting(["N", "B", "A"])[0].sum(axis=0).tolist() == [3, 3, 0]


def test_any_type_will_do_for_a_star() -> None:
    engine = engine_after("A0 B1", "PATTERN SEQ(A a, * x, C c) WITHIN 10 s")
    assert engine.waiting(["A", "Z", "C"])[0].sum(axis=0).tolist() == [1, 1, 2]


def test_the_general_kernel_tells_the_same() -> None:
    text = "PATTERN SEQ(A a, B b, NOT N n) WITHIN 10 s"  # a negation at the end
    assert engine_after("A0 A1 B2", text).waiting(["A", "B", "N"])[0].sum(axis=0).tolist() == [0, 2, 0]


def test_of_a_tree_its_tuples_count() -> None:
    engine = engine_after("A0 B1 A2", "PATTERN SEQ(A a, B b, C c) WITHIN 10 s", plan="tree")
    (runs,) = engine.waiting(["A", "C", "X"])
    assert runs[0, 0] == runs[0, 1] == engine.work["runs"] > 0
    assert runs[:, 2].sum() == runs[1:].sum() == 0


@pytest.mark.parametrize("by_query", [False, True])
def test_queries_that_share_runs_count_as_one_unless_each_is_asked_for(by_query: bool) -> None:
    texts = [f"PATTERN SEQ(A a, B b, {last} c) WITHIN 10 s" for last in ("C", "D")]
    engine = engine_after("A0 B1", *texts)
    each = engine.waiting(["B", "C"], by_query=by_query)
    assert len(each) == (2 if by_query else 1)
    if by_query:
        assert [len(runs) for runs in each] == [len(states) for states in engine.states]
    assert sum(runs.sum(axis=0) for runs in each).tolist() == ([2, 1] if by_query else [1, 1])
