"""Intake gives what the row-by-row driver of the kernel's tests gives, however a stream is cut into batches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.engine import windows
from penstock.engine.batches import Reader
from penstock.engine.intake import Events, Intake, attributes
from penstock.engine.keytable import KeyTable
from penstock.engine.texts import Texts, renumber_texts
from penstock.errors import InternalError
from penstock.kernel.blocks import BLOCK, evaluate
from penstock.kernel.compiling import compiled
from penstock.kernel.memory import Memory, new_memory
from penstock.kernel.values import value
from penstock.pattern import ast
from penstock.pattern.parser import parse
from penstock.pattern.variables import variables
from penstock.plan import layout
from penstock.plan.layout import EVENT_BEFORE, EVENT_HIGH, EVENT_LOW, EVENT_PART, EVENT_POS
from penstock.plan.planning import Plan, plan
from penstock.plan.tables import Floats, Ints, Tables
from penstock.plan.terms import Code, NotYetError
from penstock.reference import Event
from penstock.reference.conditions import World
from penstock.reference.events import Stream
from penstock.testing import stream
from tests.generators import FUNCTIONS, REMOTES, Case, Profile, cases, seeded
from tests.kernel.driver import Driver

WINDOWED = Profile(window=80, partition=60)
NONE: Ints = np.zeros(0, np.int64)


def planned(query: str) -> Plan:
    return plan(parse(f"PATTERN {query}"))


def as_batch(events: list[Event]) -> dict[str, list[Any]]:
    """Events as a dict of lists; an attribute that no event has is a column of nothing."""
    names = dict.fromkeys(["n", "x", "k", "flag", "v", "price", *(name for e in events for name in e.attributes)])
    rows = {name: [event.attributes.get(name) for event in events] for name in names}
    own = {name: [getattr(event, name) for event in events] for name in ("type", "ts", "seq")}
    return {**rows, **own}


def pieces(events: list[Event], cuts: list[int]) -> Iterator[list[Event]]:
    places = sorted({min(cut, len(events)) for cut in cuts} | {0, len(events)})
    for start, stop in pairwise(places):
        yield events[start:stop]


def joined(taken: list[Events]) -> Events:
    return Events(
        NONE,
        NONE,
        np.concatenate([each.events for each in taken], axis=1),
        np.concatenate([each.fits for each in taken], axis=1),
        np.concatenate([each.columns for each in taken], axis=1),
        sum(each.without_key for each in taken),
    )


def shown(values: Floats, texts: Any) -> list[list[Any]]:
    """Columns with their texts, and None for missing."""

    def one(value: float) -> Any:
        if layout.TEXT_LOW <= value < layout.TEXT_HIGH:
            return texts[int(value - layout.TEXT_LOW)]
        return None if math.isnan(value) else value

    return [[one(value) for value in row] for row in values.tolist()]


def check(case: Case, cuts: list[int], *, with_snapshots: bool = False) -> None:
    events = sorted(case.events, key=lambda event: (event.ts, event.seq))
    driver = Driver(case.query, World(Stream([]), variables(case.query.pattern), FUNCTIONS, REMOTES))
    for event in events:
        driver.add(event)
    reader = Reader(attributes(driver.plan))
    intake = Intake(driver.plan, reader)
    taken = []
    for piece in pieces(events, cuts) if events else [[]]:
        taken.append(intake.take(reader.read(as_batch(piece))))
        if with_snapshots:
            reader, intake = restored(driver.plan, reader, intake)
    result, size = joined(taken), int(driver.memory.sizes[layout.SIZE_EVENTS])
    assert result.events.tolist() == driver.memory.events[:, :size].tolist()
    assert result.fits.tolist() == driver.memory.fits[:, :size].tolist()
    assert shown(result.columns, reader.texts) == shown(driver.memory.columns[:, :size], list(driver.texts))
    assert result.without_key == len(events) - size
    assert [number for each in taken for number in each.numbers.tolist()] == list(range(size))
    check_names(driver, intake, case.query.window)


def check_names(driver: Driver, intake: Intake, window: ast.Window | None) -> None:
    assert intake.keys(range(len(driver.streams))) == list(driver.streams)
    events = driver.memory.events[:, : int(driver.memory.sizes[layout.SIZE_EVENTS])]
    for part, low, high in events[[EVENT_PART, EVENT_LOW, EVENT_HIGH]].T.tolist() if window else []:
        assert window is not None
        for number in range(low, high + 1):
            assert intake.window_name(part, number) == driver.window_name(window, part, number)


def restored(plan: Plan, reader: Reader, intake: Intake) -> tuple[Reader, Intake]:
    again = Reader.from_state(reader.state())
    return again, Intake.from_state(plan, again, intake.state())


@settings(deadline=None, max_examples=60)
@given(cases(WINDOWED), st.lists(st.integers(0, 14), max_size=4), st.booleans())
def test_any_cut_into_batches_gives_what_the_model_gives(case: Case, cuts: list[int], with_snapshots: bool) -> None:
    try:
        plan(case.query)
        check(case, cuts, with_snapshots=with_snapshots)
    except NotYetError:
        assume(False)


def test_many_seeded_cases_give_what_the_model_gives() -> None:
    checked = 0
    for seed, case in enumerate(seeded(600, profile=WINDOWED)):
        try:
            check(case, [Random(seed).randint(0, 14), Random(seed + 1).randint(0, 14)])
        except NotYetError:
            continue
        checked += 1
    assert checked > 300


@pytest.mark.parametrize(
    ("query", "events"),
    [
        ("SEQ(A a, B b) WITHIN 1 h PARTITION BY k", "A0(k=1) B1(k=x) A2 B3(k=1) A4(k=x)"),
        ("SEQ(A a, B b) WITHIN 1 h PARTITION BY k, v", "A0(k=1, v=2) B1(k=1) A2(k=1, v=3) B3(k=1, v=2)"),
        ("SEQ(A a, B b) WHERE prev(b.v) < b.v WITHIN 1 h PARTITION BY k", "B0(k=p, v=1) B1(k=q, v=2) B2(k=p, v=3)"),
        ("SEQ(A a, B b) WITHIN 1 h WINDOW 3 s ON A s WHERE s.v > 1", "A0(v=1) A1(v=2) B2 A3(v=3) B4 B5 B6 A7(v=9)"),
        ("SEQ(A a, B b) WITHIN 1 h WINDOW 3 EVENTS ON A", "A0 A1 B2 A3 B4 B5 B6 A7"),
        (
            "SEQ(A a, B b) WITHIN 1 h WINDOW 5 s ON A s WHERE s.k > 'm' AND s.k <> prev(s.k)",
            "A0(k=z) A1(k=a) A2(k=n) A3(k=n)",
        ),
        ("SEQ(A a, B b) WITHIN 1 h WINDOW 2 s EVERY 5 s", "A0 A1 B2 A3 B4 B5 B6 A7"),
        ("SEQ(A a, NOT C c, B b, NOT * d, A e) WITHIN 1 h PARTITION BY k", "A0(k=1) C1(k=1) C2(k=2) B3(k=1) B4(k=2)"),
        ("SEQ(A a, B b) WHERE a.type <> b.type AND a.ts < b.ts AND a.seq < prev(b.seq) WITHIN 1 h", "A0 B1 B2"),
    ],
)
def test_cases_by_hand(query: str, events: str) -> None:
    case = Case(parse(f"PATTERN {query}"), stream(events))
    for cuts in ([], [1], [2, 4], list(range(9))):
        check(case, cuts, with_snapshots=len(cuts) > 2)


# --- windows that are over ------------------------------------------------------------------------------------


def test_names_of_windows_that_are_over_are_forgotten_unless_a_run_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "FORGET_FROM", 1)
    asked = planned("SEQ(A a, B b) WITHIN 1 h PARTITION BY k WINDOW 10 us ON A")
    reader = Reader(attributes(asked))
    intake = Intake(asked, reader)

    def take(ticks: range, parts: Ints, lows: Ints) -> None:
        for tick in ticks:  # partitions 0 and 2 go on and on, the others have one event
            intake.take(reader.read({"type": ["A", "A"], "ts": [4 * tick] * 2, "k": [tick % 2, 7 + tick]}))
            intake.forget_windows(parts, lows)

    take(range(1000), np.array([0]), np.array([3]))
    assert len(intake.state()["windows"]) < 2 * 510
    assert intake.window_name(0, 3) == 2 * 6
    assert intake.window_name(0, 499) == 2 * 998
    with pytest.raises(InternalError):
        intake.window_name(0, 2)
    take(range(1000, 2000), NONE, NONE)
    assert len(intake.state()["windows"]) < 30


def test_forgetting_windows_changes_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "FORGET_FROM", 0)
    asked = planned("SEQ(A a, B b) WITHIN 1 h PARTITION BY k WINDOW 10 us ON A")
    chance, one, other = Random(5), Reader(attributes(asked)), Reader(attributes(asked))
    forgetting, keeping = Intake(asked, one), Intake(asked, other)
    ts = 0
    for _ in range(200):
        ts += chance.choice([0, 1, 1, 5, 30])
        batch = {"type": [chance.choice("AB")], "ts": [ts], "k": [chance.randint(0, 3)]}
        same = forgetting.take(one.read(batch)), keeping.take(other.read(batch))
        assert same[0].events.tolist() == same[1].events.tolist()
        forgetting.forget_windows(NONE, NONE)
    assert len(forgetting.state()["windows"]) < len(keeping.state()["windows"])


# --- keys -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        (["b", "a", "b"], ["b", "a"]),
        ([2, 1, 2], [2, 1]),
        (np.array([2.0, 1.5, 2.0]), [2.0, 1.5]),
        ([True, False, True], [True, False]),
        ([0.0, -0.0, 1.0], [0.0, 1.0]),
        ([1, "1", 1.0], [1, "1"]),
    ],
)
def test_keys_come_back_as_what_they_were(values: Any, keys: list[Any]) -> None:
    asked = planned("SEQ(A a, B b) WITHIN 1 h PARTITION BY k")
    reader = Reader(attributes(asked))
    intake = Intake(asked, reader)
    intake.take(reader.read({"type": ["A"] * 3, "ts": [1, 2, 3], "k": values}))
    found = [key for (key,) in intake.keys(range(len(keys)))]
    assert found == keys
    assert list(map(type, found)) == list(map(type, keys))


def test_keys_of_no_partition() -> None:
    asked = planned("SEQ(A a, B b) WITHIN 1 h")
    assert Intake(asked, Reader([])).keys([0, 0]) == [(), ()]


def test_a_key_table_numbers_as_a_dict_does() -> None:
    chance = Random(1)
    for width in (1, 2, 3):
        table, known = KeyTable(width), dict[tuple[int, ...], int]()
        for _ in range(5):
            keys = [
                tuple(chance.choice([-1, 0, 1, 2**59, 9 << 50]) * chance.randint(0, 9) for _ in range(width))
                for _ in range(500)
            ]
            wanted = np.array(keys, np.int64).T.copy()
            assert table.number(wanted).tolist() == [known.setdefault(key, len(known)) for key in keys]
            assert KeyTable(width, table.known()).find(wanted).tolist() == table.find(wanted).tolist()


def test_texts_that_are_forgotten_get_other_numbers_and_nothing_changes() -> None:
    asked = planned("SEQ(A a, B b) WHERE prev(b.v) = b.v WITHIN 1 h PARTITION BY k WINDOW 3 s ON A s WHERE s.v < 'n'")
    reader = Reader(attributes(asked))
    intake = Intake(asked, reader)
    reader.texts.add_all(["old", "older"])
    first = {"type": ["B", "B", "A"], "ts": [1, 2, 3], "k": ["p", "q", "q"], "v": ["x", "y", "m"]}
    intake.take(reader.read(first))
    used = np.zeros(len(reader.texts), np.bool_)
    intake.mark_texts(used)
    numbers = reader.texts.forget(used)
    intake.renumber_texts(numbers)
    assert reader.texts.find("old") == -1
    assert intake.keys([0, 1]) == [("p",), ("q",)]
    taken = intake.take(reader.read({"type": ["B", "A"], "ts": [4, 5], "k": ["q", "p"], "v": ["z", "a"]}))
    assert taken.events[EVENT_PART].tolist() == [1, 0]
    assert taken.events[EVENT_POS].tolist() == [2, 1]
    assert taken.events[[EVENT_LOW, EVENT_HIGH]].tolist() == [[0, 0], [0, 0]]
    assert shown(taken.columns, reader.texts) == [["y", None], ["z", "a"]]


def test_a_text_keeps_its_value_when_it_is_renumbered() -> None:
    texts = Texts(["a", "b", "c"])
    values = np.array([texts.code("c"), 1.0, math.nan, texts.code("a")])
    renumber_texts(values, texts.forget(np.array([True, False, True])))
    assert shown(values[None], texts) == [["c", 1.0, None, "a"]]


def test_an_empty_batch_changes_nothing() -> None:
    asked = planned("SEQ(A a, NOT C c, B b) WHERE prev(a.v) > 1 WITHIN 1 h PARTITION BY k WINDOW 3 s ON A")
    reader = Reader(attributes(asked))
    intake = Intake(asked, reader)
    taken = intake.take(reader.read({"type": [], "ts": [], "k": [], "v": []}))
    assert taken.events.shape == (EVENT_BEFORE + 1, 0)
    assert taken.columns.shape == (1, 0)
    assert taken.fits.shape == (3, 0)
    assert intake.count == 0


# --- programs over columns ------------------------------------------------------------------------------------

_VALUES = [math.nan, 0.0, 1.0, -1.5, 2.5, 3.0, math.inf, layout.TEXT_LOW, layout.TEXT_LOW + 1, layout.TEXT_LOW + 2]
_UNARY = [c for c in Code if c in (Code.NEG, Code.NOT, Code.SIGN) or Code.ABS <= c <= Code.LN]
_BINARY = [c for c in Code if c not in _UNARY and c not in (Code.CONST, Code.REF, Code.CALL)]


def random_program(chance: Random) -> list[tuple[int, int]]:
    program, depth = [], 0
    while depth != 1 or chance.random() < 0.8:
        if depth < 2 or chance.random() < 0.4:
            program.append((int(chance.choice([Code.CONST, Code.REF])), chance.randint(0, 2)))
            depth += 1
        if chance.random() < 0.3:
            program.append((int(chance.choice(_UNARY)), 0))
        if depth >= 2 and chance.random() < 0.7:
            program.append((int(chance.choice(_BINARY)), 0))
            depth -= 1
    return program


@compiled
def value_of(tables: Tables, memory: Memory) -> float:
    return value(tables, memory, 0)


@pytest.mark.parametrize("seed", range(40))
def test_a_program_over_columns_gives_what_it_gives_for_each_event(seed: int) -> None:
    chance = Random(seed)
    program = random_program(chance)
    events = chance.choice([0, 1, 50, BLOCK + 7])
    columns = np.array([[chance.choice(_VALUES) for _ in range(events)] for _ in range(3)])
    constants, ranks = np.array([chance.choice(_VALUES) for _ in range(3)]), np.array([2, 0, 1])
    found = evaluate(np.array(program, np.int64), columns, constants, ranks)
    tables = planned("SEQ(A a, B b) WITHIN 1 h").tables._replace(
        conditions=np.array([[0, len(program), 0, 0, 0, -1]], np.int64),
        rows=np.array([(*row, 0) for row in program], np.int64),
        references=np.zeros((3, layout.REF_WIDTH), np.int64),
    )
    memory = new_memory(tables, 3, constants)._replace(ranks=ranks)
    expected = np.empty(events)
    for at in range(events):
        memory.values[:] = columns[:, at]
        expected[at] = value_of(tables, memory)
    np.testing.assert_array_equal(found, expected)
