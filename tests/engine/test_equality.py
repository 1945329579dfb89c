"""The engine finds what the reference matcher finds, over the whole language."""

from __future__ import annotations

from random import Random

import pytest

from penstock.engine.matches import Matches
from penstock.pattern.ast import Policy
from tests.engine.comparing import again, as_lists, case_of, difference, engine_of, found, pieces
from tests.generators import Profile, seeded

CASES = 5_000
CASES_DEEP = 100_000
SHARES = 20
TREES = Profile(negation=0, repetition=0, policies=(Policy.EACH, Policy.LAST, Policy.CUMULATIVE))


def compare(first: int, count: int) -> None:
    """Compare cases, each fed in random pieces; every other engine is restored from a snapshot between some."""
    for seed, case in enumerate(seeded(count, first), start=first):
        told = difference(case, found(case, Random(seed), restores=seed % 2 == 1))
        assert not told, f"seed {seed}: {told}\n{case!r}"


@pytest.mark.parametrize("share", range(SHARES))
def test_the_engine_finds_what_the_reference_finds(share: int) -> None:
    compare(share * CASES // SHARES, CASES // SHARES)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_the_engine_finds_what_the_reference_finds_in_many_cases(share: int) -> None:
    compare(CASES + share * CASES_DEEP // SHARES, CASES_DEEP // SHARES)


@pytest.mark.parametrize("first", range(30_000, 30_600, 100))
def test_dropping_events_as_soon_as_nothing_needs_them_changes_nothing(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Usually events are looked through when there are thousands; here after every batch, of one or two events."""
    monkeypatch.setattr("penstock.engine.detector._RECLAIM_FROM", 1)
    monkeypatch.setattr("penstock.engine.detector._RECLAIM_BATCHES", 0)
    for seed, case in enumerate(seeded(100, first), start=first):
        engine, matches = engine_of(case.query), Matches()
        for number, piece in enumerate(pieces(case.events, range(seed % 2, 14, 2))):
            matches += engine.process(as_lists(piece))
            engine._detectors[0].store.kept = 0
            engine = again(engine) if number == seed % 9 else engine
        told = difference(case, matches + engine.flush())
        assert not told, f"seed {seed}: {told}\n{case!r}"


def test_negated_events_are_found_after_others_were_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each knows the one before it by its place, which changes: N4 is the one that forbids, and N6 leads to it."""
    monkeypatch.setattr("penstock.engine.detector._RECLAIM_FROM", 1)
    monkeypatch.setattr("penstock.engine.detector._RECLAIM_BATCHES", 0)
    query = "SEQ(A a, NOT N n, B b) WHERE n.v = a.v AND n.seq < b.seq WITHIN 10 s"
    case = case_of(query, "C0 C1 C2 A3@100(v=1) N4@101(v=1) A5@101(v=2) N6@102(v=3) B7@103")
    engine, matches = engine_of(case.query), Matches()
    for piece in pieces(case.events, [1, 7]):
        matches += engine.process(as_lists(piece))
    assert engine._detectors[0].store.size < len(case.events)
    assert [match["a"] for match in matches] == [(5,)]
    assert not difference(case, matches + engine.flush())


def test_a_negated_event_that_was_dropped_is_not_taken_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quiet partitions keep their events, so there are gaps: those of key 3 stand where the one of key 2 was."""
    monkeypatch.setattr("penstock.engine.detector._RECLAIM_FROM", 1)
    monkeypatch.setattr("penstock.engine.detector._RECLAIM_BATCHES", 0)
    query = "SEQ(A a, NOT N n, B b) WHERE n.v > b.v WITHIN 3 EVENTS PARTITION BY id"
    kinds = [("A", 1), ("N", 2), *[("C", 3)] * 40, *[("N", 3)] * 3, *[("C", 2)] * 20, ("A", 2), ("B", 2)]
    events = " ".join(f"{kind}{n}(id={key},v={int(kind == 'N')})" for n, (kind, key) in enumerate(kinds))
    case = case_of(query, events)
    engine, matches = engine_of(case.query), Matches()
    for piece in pieces(case.events, [len(kinds) - 2]):
        matches += engine.process(as_lists(piece))
        engine._detectors[0].store.kept = 0
    assert len(matches) == 1
    assert not difference(case, matches + engine.flush())


def test_both_plans_find_the_same() -> None:
    """The automaton and the tree, each against the reference, on queries that have a tree."""
    compared = 0
    for seed, case in enumerate(seeded(1_500, 0, TREES)):
        tree = engine_of(case.query, plan="tree")
        if tree._detectors[0].why_no_tree is None:
            automaton = engine_of(case.query, plan="automaton")
            for engine in (tree, automaton):
                told = difference(case, found(case, Random(seed), restores=seed % 2 == 1, engine=engine))
                assert not told, f"seed {seed}: {told}"
            compared += 1
    assert compared > 500


@pytest.mark.parametrize("seed", [67_394, 84_352, 88_270])
def test_a_condition_is_decided_when_its_lists_are_closed_and_not_before(seed: int) -> None:
    """Seldom cases: a negation's condition on a later list that goes on; a list whose last element is in a bag."""
    (case,) = seeded(1, seed)
    assert not difference(case, found(case, Random(seed)))


@pytest.mark.parametrize(
    ("query", "events"),
    [
        # Worked example 1 of SEMANTICS.md, in its first windows.
        ("SEQ(A a, B b, C c) WITHIN 8 EVENTS WINDOW 8 EVENTS EVERY 2 EVENTS SELECT FIRST CONSUME ALL",
         "A0 A1 B2 B3 A4 C5"),
        ("SEQ(A a, B b, C c) WITHIN 8 EVENTS WINDOW 8 EVENTS EVERY 2 EVENTS SELECT FIRST CONSUME a, b",
         "A0 A1 B2 B3 A4 C5"),
        ("SEQ(A a, B b, C c) WITHIN 8 EVENTS WINDOW 8 EVENTS EVERY 2 EVENTS SELECT LAST", "A0 A1 B2 B3 A4 C5"),
        # Worked example 2.
        ("SEQ(A a, B b) WITHIN 8 EVENTS SELECT FIRST CONSUME ALL", "A1 A2 B3 B4"),
        ("SEQ(A a, B b) WITHIN 8 EVENTS SELECT LAST", "A1 A2 B3 B4"),
        ("SEQ(A a, B b) WITHIN 8 EVENTS SELECT LAST CONSUME ALL", "A1 A2 B3 B4"),
        # Worked example 4.
        ("SEQ(R r, NOT C c, X x) WHERE SAME[id] WITHIN 1 h", "R0(id=1) C1(id=1) X2(id=1) R3(id=1) X4(id=1)"),
        # Matches that only the passing of time completes, some of them at the end of the stream.
        ("SEQ(A a, NOT N n) WITHIN 3 s", "A0 A2 N3 A4 A9 A11"),
        ("SEQ(A a, B+ b[], NOT N n) WITHIN 5 s SELECT CUMULATIVE CONSUME ALL", "A0 B1 B2 A3 B4 N9 A12 B13"),
        # More is asked of the attribute by which runs are found.
        ("SEQ(A a, B b) WHERE a.v = b.v AND a.v < b.id WITHIN 1 h", "A0(v=1) A1(v=2) B2(v=1,id=1) B3(v=2,id=3)"),
        ("SEQ(A a, B b) WHERE a.v = b.v AND a.v = b.id WITHIN 1 h", "A0(v=1) A1(v=2) B2(v=1,id=1) B3(v=2,id=3)"),
        # Values of RETURN from events that were in earlier batches.
        ("SEQ(A a, B+ b[]) WITHIN 1 h RETURN a.v AS v, SUM(b[].v) AS s, a.k AS k", "A0(v=1,k=u) B1(v=2) B2 B3(v=4)"),
    ],
)  # fmt: skip
def test_cases_by_hand(query: str, events: str) -> None:
    case = case_of(query, events)
    for seed in range(6):
        matches = found(case, Random(seed), restores=seed % 2 == 1)
        assert len(matches)
        assert not difference(case, matches)


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "=", "<>"])
@pytest.mark.parametrize("sides", [("5", "a.v"), ("a.v", "5"), ("a.v", "a.x")])
def test_a_comparison_that_an_event_leaves_is_asked_as_it_stands(op: str, sides: tuple[str, str]) -> None:
    """Of a value with a register, whichever stands first, and of two registers: none of them stands alone in WHERE."""
    query = f"SEQ(A a, B b) WHERE (b.v > 0 AND {sides[0]} {op} {sides[1]} OR b.v < 0 AND a.x = 1) WITHIN 1 min"
    case = case_of(query, "A0(v=4, x=5) A1(v=5, x=5) A2(v=6, x=5) A3(v=7, x=1) A4(x=5) B5(v=1) B6(v=-1) B7(v=0)")
    told = difference(case, found(case, Random(1)))
    assert not told, told
