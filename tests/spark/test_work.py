"""How much work rows are, by hand: an event is 50 units, and one for each run of its key that waits for its type."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import penstock as pk
from penstock.engine.hooks import LEDGER_WIDTH, Hooks
from penstock.plan.layout import LEDGER_CHECKS
from penstock.spark.worker.shedding import Choice, _left
from penstock.spark.worker.windows import Pairs
from penstock.spark.worker.work import EVENT, Work

NONE = np.zeros(3, np.bool_)
# Of two queries, runs that wait in states 0 to 2 for events of types 0 and 1; then an event is 50 + 4 + 7, or 50 + 6
WORK = Work(np.array([0, 1, 0]), [np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 6.0]]), np.array([[0.0, 0.0], [7.0, 0.0]])])


def test_what_rows_take() -> None:
    assert WORK.of_rows.tolist() == [61.0, 56.0, 61.0]


def test_what_is_saved_of_rows_that_are_hidden() -> None:
    first, second = np.zeros((3, 3), np.bool_), np.zeros((2, 3), np.bool_)
    first[1, :2] = second[1, 2] = True
    assert WORK.hidden_from((first, second)).tolist() == [4.0, 0.0, 7.0]
    assert _left(Choice(NONE, NONE, hidden=(first, second)), WORK, None) == 61 - 4 + 56 + 61 - 7


def test_what_is_saved_of_rows_that_are_shed_from_some_windows() -> None:
    """The first row is in four windows and shed from one, the second in two and shed from both, the third in none."""
    rows = np.array([0, 0, 0, 0, 1, 1])
    pairs = Pairs(rows, np.array([0, 1, 2, 3, 2, 3]), rows, rows, np.array([0, 2, 0]), np.array([4, 2, 0]))
    windows = pairs.bits(np.array([True, False, False, False, True, True]))
    assert _left(Choice(NONE, NONE, windows=windows), WORK, pairs) == pytest.approx(0.75 * 61 + 0 + 61)
    assert WORK.of_rows.tolist() == [61.0, 56.0, 61.0], "what is left is not taken from what they take"


def test_what_is_shed_or_overdue_is_no_work() -> None:
    choice = Choice(np.array([True, False, False]), np.array([False, True, False]))
    assert _left(choice, WORK, None) == 61.0


def test_runs_are_those_of_a_key() -> None:
    """Four open runs of two keys: two of each wait for an event B."""
    engine = pk.Engine(pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 h PARTITION BY k"))
    engine.process({"type": ["A"] * 4, "ts": [1, 2, 3, 4], "k": [1, 2, 1, 2]})
    table = pa.table({"type": ["A", "B"], "k": [1, 2]})
    assert Work.of(table, "type", ["k"], engine, by_query=True).of_rows.tolist() == [50.0, 52.0]
    assert Work.of(table, "type", [], engine, by_query=True).of_rows.tolist() == [50.0, 54.0]


ASKED = pk.parse("PATTERN SEQ(A a, B b, C c) WHERE a.v < b.v WITHIN 1 h PARTITION BY k")
ROWS = pa.table({"type": ["B", "C", "A", "C"], "ts": [10, 11, 12, 13], "k": [1] * 4, "v": [5.0] * 4})


def with_runs() -> pk.Engine:
    """Return an engine of one key with four runs that wait for a B, and six for a C."""
    engine = pk.Engine(ASKED, plan="automaton")
    engine.process({"type": list("AAAABB"), "ts": np.arange(6), "k": [1] * 6, "v": [1.0, 2, 3, 4, 9, 2.5]})
    return engine


def runs_asked(row: int, states: np.ndarray | None) -> int:
    """Return how many runs the engine asks about a row that is hidden from those in some states."""
    ledger = np.zeros((1, LEDGER_WIDTH), np.int64)
    batch = {name: ROWS.column(name).to_numpy()[row : row + 1] for name in ROWS.schema.names}
    with_runs().process(batch, [Hooks(states=states, ledger=ledger)])
    return int(ledger[0, LEDGER_CHECKS])


@pytest.mark.parametrize("state", range(4))
def test_what_is_saved_is_what_the_engine_does_not_ask(state: int) -> None:
    work = Work.of(ROWS, "type", ["k"], with_runs(), by_query=True)
    hidden = np.zeros((4, len(ROWS)), np.bool_)
    hidden[state] = True
    saved = [runs_asked(row, None) - runs_asked(row, hidden[:, row : row + 1]) for row in range(len(ROWS))]
    assert work.hidden_from((hidden,)).tolist() == saved
    assert saved == [[0] * 4, [4, 0, 0, 0], [0, 6, 0, 6], [0] * 4][state]
    assert (work.of_rows - EVENT).tolist() == [runs_asked(row, None) for row in range(len(ROWS))]
