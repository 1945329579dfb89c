"""Emission lets through what the reference's policies do, however the stream is cut into calls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from penstock.engine.emission import Emission
from penstock.engine.found import Found, Progress, nothing
from penstock.pattern.ast import Policy
from penstock.pattern.parser import parse
from penstock.plan.planning import plan
from penstock.plan.terms import NotYetError
from penstock.reference import Match, find
from penstock.testing import SECOND_US, stream
from tests.engine.driving import EmittingDriver, Store, driven
from tests.generators import EVERYTHING, FUNCTIONS, REMOTES, Case, Profile, seeded

CASES = 400
CASES_DEEP = 20_000
# Queries that have something to decide; the others pass through.
CHOOSING = replace(EVERYTHING, returns=False, window=70, consume=60, policies=(*Policy, Policy.LAST, Policy.CUMULATIVE))
WAITING = replace(CHOOSING, negation=4)


def matches(driver: EmittingDriver) -> list[Match]:
    """What was emitted, as the reference's matches."""
    found, query = driver.everything(), driver.query
    names = [variable.name for variable in driver.plan.numbered.variables]
    rows, windows = found.per_window()
    emitted = []
    for row, window in zip(rows.tolist(), windows.tolist(), strict=True):
        span = slice(found.offsets[row], found.offsets[row + 1])
        seq, variables = driver.store.seq(found.events[span]), found.variables[span]
        bindings = ((name, tuple(seq[variables == v].tolist())) for v, name in enumerate(names))
        part = int(found.part[row])
        name = None if query.window is None else driver.window_name(query.window, part, window)
        emitted.append(Match(query.name, driver.keys()[part], name, tuple(b for b in bindings if b[1])))
    return emitted


def compare(first: int, count: int, profile: Profile, pieces: int) -> None:
    compared = 0
    for seed, case in enumerate(seeded(count, first, profile), start=first):
        try:
            emitted = matches(driven(case, seed, pieces=pieces, snapshots=seed % 2 == 0))
        except NotYetError:
            continue
        expected = find(case.query, case.events, functions=FUNCTIONS, remotes=REMOTES)
        assert frozenset(emitted) == expected, f"seed {seed}: {case!r}"
        assert len(emitted) == len(expected), f"seed {seed}: some match came out twice: {case!r}"
        compared += 1
    assert compared > count / 2


@pytest.mark.parametrize("profile", [CHOOSING, WAITING], ids=["choosing", "waiting"])
@pytest.mark.parametrize("pieces", [1, 4])
def test_what_comes_out_is_what_the_reference_finds(profile: Profile, pieces: int) -> None:
    compare(0, CASES, profile, pieces)


@pytest.mark.slow
@pytest.mark.parametrize("profile", [CHOOSING, WAITING], ids=["choosing", "waiting"])
@pytest.mark.parametrize("share", range(10))
def test_what_comes_out_is_what_the_reference_finds_in_many_cases(profile: Profile, share: int) -> None:
    compare(CASES + share * CASES_DEEP // 10, CASES_DEEP // 10, profile, pieces=1 + share % 5)


# --- when -----------------------------------------------------------------------------------------------------


def emitted_after(query: str, events: str) -> list[int]:
    """How many matches are out after each event, and at the end."""
    driver = EmittingDriver(parse(f"PATTERN {query}"))
    for event in stream(events):
        driver.process([event])
    driver.finish()
    counts = [len(found.per_window()[0]) for found in driver.emitted[:-2]]
    return [*np.cumsum(counts).tolist(), len(matches(driver))]


@pytest.mark.parametrize(
    ("query", "events", "expected"),
    [
        # known at the last event: out with it
        ("SEQ(A a, B b) WITHIN 9 s SELECT LAST", "A0 A1 B2 B3", [0, 0, 1, 2, 2]),
        ("SEQ(A a, B b) WITHIN 9 s SELECT CUMULATIVE", "A0 A1 B2 B3", [0, 0, 1, 2, 2]),
        ("SEQ(A a, B b) WITHIN 9 s CONSUME ALL", "A0 A1 B2 B3", [0, 0, 1, 2, 2]),
        # a negation at the end: known when its span has passed
        ("SEQ(A a, NOT N n) WITHIN 3 s", "A0 X3 X4 A5 X9", [0, 0, 1, 1, 2, 2]),
        ("SEQ(A a, NOT N n) WITHIN 3 s CONSUME ALL", "A0 X3 X4 A5 X9", [0, 0, 1, 1, 2, 2]),
        # LAST among such matches: decided WITHIN after the event that ends them
        ("SEQ(A a, B b, NOT N n) WITHIN 3 s SELECT LAST", "A0 A1 B2 X4 X5 X6", [0, 0, 0, 0, 0, 1, 1]),
        ("SEQ(A a, B b, NOT N n) WITHIN 3 s SELECT LAST", "A0 A1 B2 X4", [0, 0, 0, 0, 1]),
        # with CONSUME, those known before must be decided: WITHIN after it is known (A1 at 4)
        ("SEQ(A a, B b, NOT N n) WITHIN 3 s SELECT LAST CONSUME ALL", "A0 A1 B2 X7 X8", [0, 0, 0, 0, 1, 1]),
        ("SEQ(A a, NOT N n) WITHIN 3 EVENTS SELECT LAST", "A0 X1 X2 X3", [0, 0, 0, 1, 1]),
    ],
)
def test_a_match_comes_out_as_soon_as_it_is_decided(query: str, events: str, expected: list[int]) -> None:
    assert emitted_after(query, events) == expected


# --- what is kept ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "SEQ(A a, B b) WITHIN 5 s CONSUME ALL",
        "SEQ(A a, B b) WITHIN 5 EVENTS SELECT LAST CONSUME ALL",
        "SEQ(A a, B b) WITHIN 5 s SELECT CUMULATIVE CONSUME a",
        "SEQ(A a, B b) WITHIN 5 s WINDOW 4 s EVERY 1 s LIMIT 1 PER WINDOW",
        "SEQ(A a, B b) WITHIN 5 EVENTS WINDOW 4 EVENTS EVERY 1 EVENTS LIMIT 1 PER WINDOW CONSUME b",
        "SEQ(A a, B b, NOT N n) WITHIN 5 s WINDOW 8 s EVERY 1 s DISTINCT LIMIT 2 PER WINDOW SELECT LAST CONSUME a",
        "SEQ(A a, OR(SEQ(B? b, NOT N n), C? c)) WITHIN 5 EVENTS WINDOW 8 s DISTINCT LIMIT 2 PER WINDOW CONSUME a",
    ],
)
def test_what_is_remembered_stays_small(query: str) -> None:
    driver = EmittingDriver(parse(f"PATTERN {query}"))
    sizes = []
    for start in range(0, 600, 20):
        driver.process(stream(" ".join(f"{'AB'[n % 2]}{n}" for n in range(start, start + 20))))
        sizes.append(sum(array.size for array in driver.emission.state().values()))
        assert (driver.emission.oldest_event() or start) > start - 40
    assert max(sizes[10:]) < 2_500
    assert sum(map(len, driver.emitted)) > 100 or "WINDOW 8 s DISTINCT" in query


def test_a_plain_query_pays_nothing() -> None:
    asked = plan(parse("PATTERN SEQ(A a, B+ b[], AND(C c, D d)) WITHIN 1 h"))
    emission = Emission(asked, Store(EmittingDriver(asked.query)))
    found = nothing()
    assert emission.is_plain
    assert emission.add(found, Progress(*np.zeros((3, 0), np.int64))) is found


@pytest.mark.parametrize(
    ("query", "is_plain"),
    [
        ("SEQ(A a, B b) WITHIN 1 h SELECT FIRST CONSUME ALL", True),
        ("SEQ(A a, NOT N n) WITHIN 1 h", True),
        ("SEQ(A? a, B{2,} b[], ANY(2, C c, D d, E e)) WITHIN 1 h", True),
        ("OR(A a, SEQ(B b, A c)) WITHIN 1 h WINDOW 5 s", True),
        ("(A+ a[])+ WITHIN 1 h", False),
        ("SEQ(A a, OR(B* b[], C* c[])) WITHIN 1 h", False),
        ("A a WITHIN 1 h CONSUME a", False),
        ("A a WITHIN 1 h WINDOW 5 s DISTINCT", False),
        ("A a WITHIN 1 h WINDOW 5 s LIMIT 1 PER WINDOW SELECT FIRST", False),
        ("A a WITHIN 1 h SELECT LAST", False),
        ("A a WITHIN 1 h SELECT EACH, LAST a", False),
    ],
)
def test_which_queries_are_plain(query: str, is_plain: bool) -> None:
    asked = plan(parse(f"PATTERN {query}"))
    assert Emission(asked, Store(EmittingDriver(asked.query))).is_plain is is_plain


# --- many at once ---------------------------------------------------------------------------------------------


def test_consumption_goes_on_from_call_to_call() -> None:
    case = Case(parse("PATTERN SEQ(A a, B b) WITHIN 1 h CONSUME a"), stream("A0 A1 B2 B3 B4"))
    assert [m.bindings for m in matches(driven(case, 0, pieces=6))] == [
        (("a", (0,)), ("b", (2,))),
        (("a", (1,)), ("b", (2,))),
    ]


def test_many_matches_in_one_call() -> None:
    driver = EmittingDriver(parse("PATTERN SEQ(A a, B b) WITHIN 1 h CONSUME ALL"))
    count = 300
    driver.process(stream(" ".join([f"A{n}" for n in range(count)] + [f"B{n}" for n in range(count, 2 * count)])))
    pairs = driver.everything().events.reshape(-1, 2)
    assert pairs.tolist() == [[n, n + count] for n in range(count)]
    assert driver.store.ts(np.array([2])).tolist() == [2 * SECOND_US]


def test_found_matches_can_be_picked_twice() -> None:
    driver = driven(Case(parse("PATTERN SEQ(A a, B+ b[]) WITHIN 1 h"), stream("A0 B1 B2")), 0)
    found = driver.everything()
    twice: Found = found.pick(np.array([2, 0, 2]))
    assert [twice.events[a:b].tolist() for a, b in zip(twice.offsets[:-1], twice.offsets[1:], strict=True)] == [
        found.events[found.offsets[k] : found.offsets[k + 1]].tolist() for k in (2, 0, 2)
    ]


# --- rules that random cases seldom need ----------------------------------------------------------------------

# In the window, (A1, C2, B3) is known at 6 and its group decided after 8, (A0, C2, B4) known at 5 and decided after 9.
_CROSSING = "A0(v=1) A1(v=2) C2 B3(v=2) B4(v=1) X5@8.5 X6@30"
_CROSSED = "SEQ(A a, C c, B b, NOT N n) WHERE a.v = b.v WITHIN 5 s WINDOW 100 s"


@pytest.mark.parametrize(
    ("query", "events"),
    [
        (f"{_CROSSED} SELECT LAST CONSUME c", _CROSSING),
        (f"{_CROSSED} SELECT CUMULATIVE CONSUME c", _CROSSING),
        (f"{_CROSSED} LIMIT 1 PER WINDOW SELECT LAST", _CROSSING),
        (f"{_CROSSED} LIMIT 1 PER WINDOW SELECT CUMULATIVE", _CROSSING),
        # two readings of the same assignment, known at 0 and at 3
        ("SEQ(A a, OR(SEQ(B? b, NOT N n), C? c)) WITHIN 3 s", "A0 X1 X9"),
        # N spoils what opens with A1 in the window from 0, so there the same match is known earlier
        ("SEQ(A+ a[], B b, NOT N n) WITHIN 5 s WINDOW 6 s EVERY 2 s DISTINCT LIMIT 5 PER WINDOW SELECT CUMULATIVE",
         "A0 A1 B2 N3@5.5 X4@10.5 X5@30"),
        # much to remember: the consumed events are in reach, the windows are open
        ("SEQ(A a, B b) WITHIN 1 h CONSUME a", " ".join([*(f"A{n}" for n in range(99)), "B100 X101 B102 X103 B104"])),
        ("A a WITHIN 1 s PARTITION BY k WINDOW 1000 s LIMIT 1 PER WINDOW",
         " ".join(f"A{n}(k={n % 99})" for n in range(250))),
    ],
)  # fmt: skip
def test_cases_by_hand(query: str, events: str) -> None:
    case = Case(parse(f"PATTERN {query}"), stream(events))
    driver = EmittingDriver(case.query, snapshots=True)
    for event in case.events:
        driver.process([event])
    driver.finish()
    emitted, expected = matches(driver), find(case.query, case.events)
    assert expected
    assert frozenset(emitted) == expected
    assert len(emitted) == len(expected)
