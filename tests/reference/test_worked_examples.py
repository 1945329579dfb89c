"""The worked examples 1 to 4 of SEMANTICS.md, section 9."""

from __future__ import annotations

import pytest

from penstock.pattern.parser import parse
from penstock.reference import Match, Quality, find, quality
from penstock.testing import stream
from tests.reference.answers import found, open_runs

# --- 1: the thesis, example 1 ---------------------------------------------------------------------------------

THESIS = "SEQ(A a, B b, C c) WITHIN 8 EVENTS WINDOW 8 EVENTS EVERY 2 EVENTS"


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("FIRST CONSUME ALL", "0: 0 2 5"),
        ("FIRST CONSUME a, b", "0: 0 2 5 | 0: 1 3 5"),
        ("LAST", "0: 1 3 5"),
    ],
)
def test_1_matches_of_the_first_window(select: str, expected: str) -> None:
    assert found(f"{THESIS} SELECT {select}", "A0 A1 B2 B3 A4 C5") == expected


def test_1_open_runs_of_the_first_window() -> None:
    first_window = [
        run
        for run in open_runs(f"{THESIS} SELECT FIRST CONSUME ALL", "A0 A1 B2 B3 A4 C5").split(" | ")
        if run.startswith("0:")
    ]
    assert first_window == ["0: 1 3 -", "0: 4 - -"]


def test_1_a4_is_at_4_2_and_0_in_the_first_three_windows() -> None:
    only_a4 = "A a WHERE a.seq = 4 WITHIN 8 EVENTS WINDOW 8 EVENTS EVERY 2 EVENTS"
    windows = [int(match.split(":")[0]) for match in found(only_a4, "A0 A1 B2 B3 A4 C5").split(" | ")]
    assert [4 - start for start in windows] == [4, 2, 0]


def test_1_shedding_b2() -> None:
    query = parse(f"PATTERN {THESIS} SELECT FIRST CONSUME ALL")
    truth, shed = find(query, stream("A0 A1 B2 B3 A4 C5")), find(query, stream("A0 A1 B3 A4 C5"))
    assert [match.events for match in shed] == [(0, 3, 5)]
    assert quality(truth, shed) == Quality(truth=1, found=1, false_negatives=1, false_positives=1)
    assert quality(truth, shed, "relaxed") == Quality(truth=1, found=1, false_negatives=0, false_positives=0)


# --- 2: eSPICE ------------------------------------------------------------------------------------------------

ESPICE = "SEQ(A a, B b) WITHIN 8 EVENTS SELECT"


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("FIRST CONSUME ALL", "1 3 | 2 4"),
        ("LAST", "2 3 | 2 4"),
        ("LAST CONSUME ALL", "2 3"),
    ],
)
def test_2_matches(select: str, expected: str) -> None:
    assert found(f"{ESPICE} {select}", "A1 A2 B3 B4") == expected


@pytest.mark.parametrize(
    ("kept", "false_negatives", "false_positives"),
    [
        ("A1 B3 B4", 1, 0),  # without A2
        ("A2 B3 B4", 2, 1),  # without A1
    ],
)
def test_2_dropping_an_a(kept: str, false_negatives: int, false_positives: int) -> None:
    query = parse(f"PATTERN {ESPICE} FIRST CONSUME ALL")
    judged = quality(find(query, stream("A1 A2 B3 B4")), find(query, stream(kept)))
    assert (judged.false_negatives, judged.false_positives) == (false_negatives, false_positives)


# --- 3: the state-based paper ---------------------------------------------------------------------------------


def test_3_eight_runs() -> None:
    query = "SEQ(req a, avail+ b[], unlock c) WITHIN 10 min"
    expected = "1 - - | 1 3 - | 1 3,4 - | 1 4 - | 2 - - | 2 3 - | 2 3,4 - | 2 4 -"
    assert open_runs(query, "req1 req2 avail3 avail4") == expected


# --- 4: the thesis, 6.1 ---------------------------------------------------------------------------------------

SHOPLIFTING = "SEQ(R r, NOT C c, X x) WHERE SAME[id] WITHIN 2 h SELECT"


@pytest.mark.parametrize("select", ["EACH", "FIRST"])
def test_4_the_only_match(select: str) -> None:
    assert found(f"{SHOPLIFTING} {select}", "R0(id=7) C1(id=7) X2(id=7) R3(id=7) X4(id=7)") == "3 4"


@pytest.mark.parametrize("select", ["EACH", "FIRST"])
@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ("R0(id=7)", "0 -"),
        ("R0(id=7) C1(id=7)", ""),  # abandoned
        ("R0(id=7) C1(id=8)", "0 -"),  # another item was paid
        ("R0(id=7) C1(id=7) X2(id=7) R3(id=7)", "3 -"),
    ],
)
def test_4_the_run_is_abandoned_at_c1(select: str, events: str, expected: str) -> None:
    assert open_runs(f"{SHOPLIFTING} {select}", events) == expected


def test_matches_of_the_examples_are_of_type_match() -> None:
    (match,) = find(parse(f"PATTERN {THESIS} SELECT LAST", "thesis"), stream("A0 A1 B2 B3 A4 C5"))
    assert match == Match("thesis", (), 0, (("a", (1,)), ("b", (3,)), ("c", (5,))))
    assert (match.first_ts, match.last_ts) == (1_000_000, 5_000_000)
