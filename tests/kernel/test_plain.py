"""The hard parts of the plain kernel, each by hand and against the reference."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import penstock as pk
from penstock.engine.matches import Matches
from penstock.kernel import plain_memory
from penstock.plan import layout
from penstock.plan.plain import PlainTables
from tests.engine.comparing import again, as_lists, case_of, difference, engine_of, pieces
from tests.generators import Case, seeded

Bound = list[tuple[int, ...]]


def is_plain(case: Case) -> bool:
    return engine_of(case.query)._detectors[0].plan.plain is not None


def compared(case: Case, cuts: tuple[int, ...] = ()) -> Matches:
    """Return what the plain kernel finds, which is what the reference finds."""
    engine, matches = engine_of(case.query, plan="automaton"), Matches()
    assert engine._detectors[0].plan.plain is not None
    for piece in pieces(case.events, cuts):
        matches += engine.process(as_lists(piece))
    matches += engine.flush()
    assert not difference(case, matches)
    return matches


def bound(query: str, events: str) -> Bound:
    """Return the events of each match, as the plain kernel and the reference find them, fed whole and one by one."""
    case = case_of(query, events)
    found = [compared(case, cuts) for cuts in ((), tuple(range(len(case.events))))]
    one, other = (sorted((m.window or 0, *(e for each in m.events.values() for e in each)) for m in f) for f in found)
    assert one == other
    return one if case.query.window else [each[1:] for each in one]


# --- what intervals ask of the event -------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [(0.9, 0.2), (0.2, 0.9), (0.3, 1.0)])
def test_bounds_are_rounded_outwards(a: float, b: float) -> None:
    """0.9 - 0.2 is 0.7, but 0.2 + 0.7 is less than 0.9."""
    assert bound("SEQ(A a, B b) WHERE abs(a.v - b.v) <= 0.7 WITHIN 1 h", f"A0(v={a}) B1(v={b})") == [(0, 1)]


@pytest.mark.parametrize("side", ["b.v - 2", "2 - b.v", "b.v + 2", "b.v * 2", "-b.v"])
def test_sides_of_the_event(side: str) -> None:
    query, letters, found = f"SEQ(A a, B b) WHERE a.v < {side} WITHIN 1 h", Random(5), 0
    for _ in range(5):
        events = [f"{letters.choice('AB')}{n}(v={letters.randrange(-4, 5)})" for n in range(9)]
        found += len(bound(query, " ".join(events)))
    assert found


# --- CONSUME in windows that overlap --------------------------------------------------------------------------


def test_two_runs_compete_in_some_windows_only() -> None:
    """B2 goes to A0 where both are, and to A1 in the window that A0 is not in."""
    query = "SEQ(A a, B b) WITHIN 1 h WINDOW 4 s EVERY 1 s SELECT FIRST CONSUME ALL"
    second = 1_000_000
    found = bound(query, "A0 A1 B2")
    assert found == [(-second, 0, 2), (0, 0, 2), (second, 1, 2)]


def test_a_run_goes_on_in_the_windows_in_which_it_got_nothing() -> None:
    query = "SEQ(A a, B b) WITHIN 1 h WINDOW 4 s EVERY 1 s SELECT FIRST CONSUME ALL"
    assert bound(query, "A0 A1 B2 B3") == [
        (-1_000_000, 0, 2),
        (0, 0, 2),
        (0, 1, 3),
        (1_000_000, 1, 2),
    ]


@pytest.mark.parametrize("consume", ["ALL", "a", "b", "a, b", "c", "b, c"])
@pytest.mark.parametrize("window", ["4 s EVERY 1 s", "6 s EVERY 2 s", "5 EVENTS EVERY 2 EVENTS", "7 s EVERY 8 s"])
def test_windows_split(window: str, consume: str) -> None:
    query = f"SEQ(A a, B b, C c) WHERE a.v < c.v WITHIN 1 h WINDOW {window} SELECT FIRST CONSUME {consume}"
    letters = Random(3)
    found = 0
    for _ in range(12):
        events = " ".join(f"{letters.choice('AABC')}{n}(v={letters.randrange(4)})" for n in range(9))
        found += len(bound(query, events))
    assert found


def test_a_consumed_event_is_gone_in_its_windows_for_openings_too() -> None:
    """`* x` would open a run with an event that another run takes."""
    assert bound("SEQ(A|B a, B b) WITHIN 1 h SELECT FIRST CONSUME ALL", "A0 B1 B2 B3") == [(0, 1), (2, 3)]


# --- keys -----------------------------------------------------------------------------------------------------


def keyed(*keys: Any) -> Case:
    """Return a case of half As, then half Bs, with these keys."""
    query = pk.parse("PATTERN SEQ(A a, B b) WHERE a.v = b.v WITHIN 1 h")
    events = case_of("A a WITHIN 1 s", " ".join(f"{'AB'[2 * n >= len(keys)]}{n}" for n in range(len(keys)))).events
    return Case(
        query, [pk.reference.Event(e.type, e.ts, e.seq, {"v": key}) for e, key in zip(events, keys, strict=True)]
    )


def test_both_zeros_are_the_same_key() -> None:
    assert len(compared(keyed(0.0, -0.0, 0, -0.0, 0.0, 0))) == 9


def test_missing_keys_equal_nothing() -> None:
    nan = float("nan")
    assert [m.events for m in compared(keyed(nan, None, 1.0, nan, None, 1.0))] == [{"a": (2,), "b": (5,)}]


def test_keys_of_all_kinds_are_told_apart() -> None:
    keys = ["1", 1, True, "", 1.5, "u"]
    found = {(m["a"][0], m["b"][0] - len(keys)) for m in compared(keyed(*keys, *keys))}
    assert found == {(k, k) for k in range(6)} | {(1, 2), (2, 1)}


def test_many_keys_in_few_buckets() -> None:
    keys = [n * 2.0**k for k in range(20) for n in range(1, 8)]
    found = compared(keyed(*keys, *reversed(keys)))
    assert len(found) == sum(keys.count(key) for key in keys)


# --- texts ----------------------------------------------------------------------------------------------------


def test_texts_are_in_alphabetical_order_whenever_they_come() -> None:
    query = "SEQ(A a, B b) WHERE a.k < b.k WITHIN 1 h"
    assert bound(query, "A0(k=m) B1(k=z) B2(k=a) B3(k=n) B4(k=m) B5(k=mm)") == [(0, 1), (0, 3), (0, 5)]


def test_texts_and_numbers_are_in_no_order() -> None:
    """An interval of numbers would take in texts, which are large numbers inside."""
    query = "SEQ(A a, B b) WHERE a.v < b.v WITHIN 1 h"
    assert bound(query, "A0(v=1) B1(v=u) B2(v=2) A3(v=u) B4(v=w) B5(v=9)") == [(0, 2), (0, 5), (3, 4)]


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "=", "<>"])
def test_every_comparison_of_texts_in_batches_of_their_own(sign: str) -> None:
    query = f"SEQ(A a, B b) WHERE a.k {sign} b.k WITHIN 1 h"
    assert bound(query, "A0(k=5) A1(k=m) B2(k=5) B3(k=b) B4(k=m) A5 B6(k=z) A7(k=aa) B8(k=6) B9(k=a)")


# --- registers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "condition",
    ["COUNT(a[]) < b.v", "COUNT(a[].v) = b.v", "SUM(a[].v) >= b.v", "AVG(a[].v) > b.v", "MIN(a[].v) = b.v",
     "MAX(a[].v) <= b.v", "SUM(a[].v) / COUNT(a[]) < b.v", "a[first].v < b.v", "a[last].v < b.v", "a[2].v < b.v",
     "SUM(a[..i].v) < 6", "a[i].v > a[i-1].v", "MIN(a[].k) < b.k", "MAX(a[].k) > b.k"],
)  # fmt: skip
@pytest.mark.parametrize("select", ["", "SELECT FIRST", "SELECT LAST"])
def test_running_aggregates_leave_out_what_is_missing(condition: str, select: str) -> None:
    case = case_of(
        f"SEQ(A+ a[], B b) WHERE {condition} WITHIN 1 h {select}",
        "A0(v=3,k=p) A1(v=null) A2(v=1,k=q) B3(v=2,k=q) A4(k=a) B5(v=null,k=b) A6(v=5,k=z) B7(v=4,k=o) B8(v=1)",
    )
    engine = engine_of(case.query, plan="automaton")
    assert not difference(case, engine.process(as_lists(case.events)) + engine.flush())
    assert is_plain(case) or condition in ("a[2].v < b.v", "SUM(a[..i].v) < 6")


def test_an_aggregate_of_missing_values_only() -> None:
    assert bound("SEQ(A+ a[], B b) WHERE SUM(a[].v) = 0 WITHIN 1 h", "A0 A1 B2") == [(0, 1, 2), (0, 2), (1, 2)]
    assert bound("SEQ(A+ a[], B b) WHERE AVG(a[].v) <> 7 WITHIN 1 h", "A0 A1(v=2) B2") == [(0, 1, 2), (1, 2)]


# --- ANY, AND, STRICT -----------------------------------------------------------------------------------------


def test_members_of_any_are_taken_once_in_any_order() -> None:
    query = "ANY(2, A a, B b, C c) WITHIN 1 h"
    assert bound(query, "B0 A1 A2 C3") == [(0, 3), (1, 0), (1, 3), (2, 0), (2, 3)]


def test_members_with_conditions_between_them() -> None:
    query = "SEQ(ANY(2, A a, B b, A c), C d) WHERE a.v > 0 AND c.v < 4 AND d.v > 1 WITHIN 1 h"
    assert bound(query, "A0(v=1) B1(v=2) A2(v=3) C3(v=2) C4(v=4)")
    assert bound(f"{query} SELECT FIRST", "A0(v=1) B1(v=2) A2(v=3) C3(v=2) C4(v=4)")


def test_strict_ends_runs_at_the_next_event_of_their_partition() -> None:
    query = "SEQ(A a, B b) WITHIN 1 h PARTITION BY k SELECT STRICT"
    assert bound(query, "A0(k=p) A1(k=q) B2(k=p) C3(k=q) B4(k=q) A5(k=q) B6(k=q)") == [(0, 2), (5, 6)]
    assert bound("SEQ(A a, B+ b[], C c) WITHIN 1 h SELECT STRICT", "A0 B1 B2 C3 A4 B5 A6 C7") == [(0, 1, 2, 3)]


# --- WITHIN ---------------------------------------------------------------------------------------------------


def test_a_count_is_one_of_the_partition() -> None:
    query = "SEQ(A a, B b) WITHIN 3 EVENTS PARTITION BY k"
    assert bound(query, "A0(k=p) A1(k=q) C2(k=q) C3(k=q) B4(k=p) B5(k=q) C6(k=p) B7(k=p)") == [(0, 4)]


def test_time_is_inclusive_and_ties_count() -> None:
    query = "SEQ(A a, B b) WITHIN 2 s"
    assert bound(query, "A0@0 B1@0 B2@2 B3@2.000001 A4@3 B5@5") == [(0, 1), (0, 2), (4, 5)]


# --- room -----------------------------------------------------------------------------------------------------


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """Start all arrays with room for one; return how often each grew, by what the kernel asked for."""
    grown: dict[int, int] = {}

    make: Any = plain_memory.new_plain_memory

    def new(*what: Any) -> plain_memory.PlainMemory:
        memory: plain_memory.PlainMemory = make(*what, room=1)
        return memory._replace(
            nodes=memory.nodes[:, :1].copy(),
            found=memory.found[:, :1].copy(),
            candidates=memory.candidates[:, :1].copy(),
        )

    def more(t: PlainTables, memory: plain_memory.PlainMemory, status: int) -> plain_memory.PlainMemory:
        grown[status] = grown.get(status, 0) + 1
        return plain_memory.with_plain_room(t, memory, status)

    monkeypatch.setattr("penstock.engine.plain.new_plain_memory", new)
    monkeypatch.setattr("penstock.engine.plain.with_plain_room", more)
    return grown


def test_every_array_grows_from_one(tiny: dict[int, int]) -> None:
    """Random cases that start with no room find what they should."""
    count = 0
    for seed, case in enumerate(seeded(300, 20_000), start=20_000):
        if is_plain(case):
            compared(case, (seed % 7,))
            count += 1
    assert count > 50
    needed = {layout.MORE_RUNS, layout.MORE_NODES, layout.MORE_FOUND, layout.MORE_CANDIDATES}
    assert set(tiny) == needed
    assert min(tiny.values()) > 20


LONG = {
    "index": "SEQ(A a, B b, C c) WHERE a.id = b.id AND b.v < c.v WITHIN 40 s",
    "groups in an index": "ANY(3, A a, B b, C c) WHERE SAME[id] WITHIN 25 s",
    "no index": "SEQ(A a, B b) WHERE a.v < b.v WITHIN 40 s",
    "FIRST": "SEQ(A a, B b, C c) WHERE a.v < c.v WITHIN 60 s SELECT FIRST",
    "CONSUME": "SEQ(A a, B b) WHERE a.v < b.v WITHIN 40 s WINDOW 20 s EVERY 5 s SELECT FIRST CONSUME ALL",
    "STRICT": "SEQ(A a, B b) WITHIN 40 s PARTITION BY id SELECT STRICT",
    "count": "SEQ(A a, B b) WHERE a.v < b.v WITHIN 15 EVENTS PARTITION BY id",
    "ANY": "SEQ(ANY(2, A a, B b, C c), A d) WHERE a.v > 3 AND b.v > 3 AND c.v > 3 AND d.v = 0 WITHIN 12 s",
    "lists": "SEQ(A a, B{1,2} b[], C c) WHERE a.id = c.id AND b[i].v < a.v WITHIN 10 s",
}


@pytest.mark.parametrize("name", LONG)
def test_sweeps_in_the_middle(name: str, tiny: dict[int, int]) -> None:
    """Streams long enough for sweeps, reclaimed nodes, and blocks of runs; with snapshots, whole and in pieces."""
    random = Random(name)
    words = [f"{random.choice('ABC')}{n}(v={random.randrange(6)},id={random.randrange(4)})" for n in range(260)]
    case = case_of(LONG[name], " ".join(words))
    whole = compared(case)
    assert len(whole) > 20
    engine, matches = engine_of(case.query, plan="automaton"), Matches()
    for piece in pieces(case.events, range(0, 260, 37)):
        matches += engine.process(as_lists(piece))
        engine = again(engine)
    assert not difference(case, matches + engine.flush())
