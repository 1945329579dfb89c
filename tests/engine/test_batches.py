"""What may be given as a batch, what comes out, and what is said about a batch that is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.batches import Batch, BatchError, Reader
from penstock.errors import PenstockError
from penstock.plan.terms import TEXT_BASE

ROWS: dict[str, list[Any]] = {
    "type": ["A", "B", "A"],
    "ts": [10, 20, 20],
    "seq": [5, 7, 9],
    "x": [1.5, None, 3.0],
    "k": ["p", "q", None],
}


def shown(reader: Reader, column: Any) -> list[Any]:
    def one(value: float) -> Any:
        if TEXT_BASE <= value < TEXT_BASE + len(reader.texts):
            return reader.texts[int(value - TEXT_BASE)]
        return None if math.isnan(value) else value

    return [one(value) for value in column.tolist()]


def read(column: Any, name: str = "x") -> list[Any]:
    """Read one attribute."""
    reader = Reader([name])
    size = len(column)
    batch = reader.read({"type": ["A"] * size, "ts": range(size), name: column})
    assert batch.columns[name].dtype == np.float64
    return shown(reader, batch.columns[name])


def refused(batch: Any, *attributes: str, reader: Reader | None = None) -> BatchError:
    """Return the error that a batch gives, which leaves the reader as it was."""
    reader = reader or Reader(attributes)
    before = reader.state()
    with pytest.raises(BatchError) as caught:
        reader.read(batch)
    np.testing.assert_equal(reader.state(), before)
    return caught.value


def with_column(name: str, column: Any) -> dict[str, Any]:
    return {**ROWS, name: column}


# --- what may be given ----------------------------------------------------------------------------------------


def table() -> pa.Table:
    return pa.table(ROWS)


SOURCES: dict[str, Callable[[], Any]] = {
    "dict of lists": lambda: ROWS,
    "dict of arrays": lambda: {n: np.array(v, object if None in v else None) for n, v in ROWS.items()},
    "dict of Arrow arrays": lambda: {name: pa.array(values) for name, values in ROWS.items()},
    "dict of pandas series": lambda: {name: pd.Series(values) for name, values in ROWS.items()},
    "dict of polars series": lambda: {name: pl.Series(values) for name, values in ROWS.items()},
    "table": table,
    "table in chunks": lambda: pa.concat_tables([table()[:1], table()[1:1], table()[1:]]),
    "record batch": lambda: table().to_batches()[0],
    "stream of record batches": lambda: pa.RecordBatchReader.from_batches(table().schema, table().to_batches()),
    "pandas": lambda: pd.DataFrame(ROWS),
    "pandas with an index": lambda: pd.DataFrame(ROWS, index=["u", "v", "w"]),
    "pandas categorical": lambda: pd.DataFrame(ROWS).astype({"type": "category", "k": "category"}),
    "polars": lambda: pl.DataFrame(ROWS),
    "polars categorical": lambda: pl.DataFrame(ROWS).with_columns(pl.col("k", "type").cast(pl.Categorical)),
    "dictionary": lambda: table().set_column(4, "k", table()["k"].dictionary_encode()),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same(source: str) -> None:
    reader = Reader(["x", "k", "ts", "seq", "type"])
    batch = reader.read(SOURCES[source]())
    assert (batch.size, batch.ts.tolist(), batch.seq.tolist()) == (3, [10, 20, 20], [5, 7, 9])
    assert [reader.types[code] for code in batch.types.tolist()] == ["A", "B", "A"]
    assert {name: shown(reader, column) for name, column in batch.columns.items()} == {
        "x": [1.5, None, 3.0],
        "k": ["p", "q", None],
        "ts": [10, 20, 20],
        "seq": [5, 7, 9],
        "type": ["A", "B", "A"],
    }
    assert {array.dtype for array in (batch.ts, batch.seq, batch.types)} == {np.dtype(np.int64)}


DAY_US = 86_400_000_000


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (np.array([1, 2], np.int8), [1, 2]),
        (np.array([1, 2], np.uint64), [1, 2]),
        (np.array([1, math.nan], np.float32), [1, None]),
        (pa.array([1, None]), [1, None]),
        (pa.array([None, None]), [None, None]),
        ([True, None, False], [1, None, 0]),
        (pa.array([Decimal("1.5"), None]), [1.5, None]),
        (pa.array(["a", None, "b", "a"], pa.large_string()), ["a", None, "b", "a"]),
        (pa.array(["a", None, "b"], pa.string_view()), ["a", None, "b"]),
        (pa.DictionaryArray.from_arrays([0, 1, None, 2], ["a", None, "b"]), ["a", None, None, "b"]),
        (pa.DictionaryArray.from_arrays([0, 0], ["a", "b", "c", "d"]), ["a", "a"]),
        (pa.DictionaryArray.from_arrays([0, 1], pa.array([5, 6])), [5, 6]),
        (pa.array([3, None], pa.timestamp("s")), [3_000_000, None]),
        (pa.array([-1, 1999], pa.timestamp("ns", "Europe/Berlin")), [-1, 1]),
        (pa.array([2], pa.duration("ms")), [2000]),
        ([date(1970, 1, 2), None], [DAY_US, None]),
        ([datetime(1970, 1, 2, tzinfo=UTC)], [DAY_US]),
        ([timedelta(seconds=2)], [2_000_000]),
        (
            [1, "1", None, True, 2.5, "é", math.nan, np.int64(4), np.str_("s")],
            [1, "1", None, 1, 2.5, "é", None, 4, "s"],
        ),
        (np.array(["b", 1, None], object), ["b", 1, None]),
        ((1, "a"), [1, "a"]),
        ([2**53, -(2**53)], [2**53, -(2**53)]),
        ([2**52 - 1, 2**52 + 2**40], [2**52 - 1, 2**52 + 2**40]),
        (["x" * 10_000_000, ""], ["x" * 10_000_000, ""]),
    ],
)
def test_values_of_attributes(column: Any, values: list[Any]) -> None:
    assert read(column) == values


@pytest.mark.parametrize(
    ("column", "ts"),
    [
        (pa.array([1, 2], pa.int32()), [1, 2]),
        (pa.array([-1, 2], pa.timestamp("s", "UTC")), [-1_000_000, 2_000_000]),
        (pa.array([-1, 1999], pa.timestamp("ns")), [-1, 1]),
        (np.array(["1970-01-01T00:00:01", "1970-01-01T00:00:02"], "datetime64[ms]"), [1_000_000, 2_000_000]),
        (pd.to_datetime(pd.Series([0, 1]), unit="s", utc=True), [0, 1_000_000]),
        (pl.Series([0, 1]).cast(pl.Datetime("ms", "Asia/Tokyo")), [0, 1000]),
    ],
)
def test_times(column: Any, ts: list[int]) -> None:
    assert Reader([]).read({"type": ["A", "B"], "ts": column}).ts.tolist() == ts


def test_columns_may_have_other_names_and_conditions_still_call_them_type_ts_and_seq() -> None:
    reader = Reader(["ts", "when", "type"], type="kind", time="when", seq="id")
    batch = reader.read({"kind": ["A"], "when": [5], "id": [8], "ts": ["not the time"], "type": [3]})
    assert {name: shown(reader, column) for name, column in batch.columns.items()} == {
        "ts": [5],
        "when": [5],
        "type": ["A"],
    }
    assert batch.seq.tolist() == [8]


def test_events_without_numbers_are_numbered_as_they_come() -> None:
    reader = Reader([])
    batches = [reader.read({"type": ["A"] * n, "ts": [0] * n}) for n in (2, 0, 3)]
    assert [batch.seq.tolist() for batch in batches] == [[0, 1], [], [2, 3, 4]]


def test_numbers_need_not_follow_the_time() -> None:
    reader = Reader([])
    reader.read({"type": ["A", "A"], "ts": [1, 2], "seq": [9, 4]})
    assert reader.read({"type": ["A"], "ts": [2], "seq": [5]}).seq.tolist() == [5]


@pytest.mark.parametrize(
    "empty", [{"type": [], "ts": [], "x": []}, table()[:0], pd.DataFrame(ROWS)[:0], pl.DataFrame(ROWS)[:0]]
)
def test_an_empty_batch_is_a_batch(empty: Any) -> None:
    batch = Reader(["x", "type"]).read(empty)
    assert (batch.size, len(batch.ts), len(batch.types), len(batch.columns["x"])) == (0, 0, 0, 0)


def test_columns_that_no_query_names_are_not_looked_at() -> None:
    batch = Reader([]).read({**ROWS, "deep": [[1], [2], object()], "huge": [2**60, 2**80, "x"]})
    assert batch.columns == {}
    frame = pd.DataFrame({**ROWS, "mixed": [1, "a", object()]})
    assert Reader(["x"]).read(frame).columns["x"][0] == 1.5


def test_a_million_distinct_types_and_texts() -> None:
    size = 1_000_000
    names = pa.array(np.arange(size)).cast(pa.string())
    reader = Reader(["k"])
    batch = reader.read(pa.table({"type": names, "ts": np.arange(size), "k": names}))
    assert len(reader.texts) == len(reader.types) == size
    assert batch.types[-1] == size - 1
    assert reader.texts[int(batch.columns["k"][123_456] - TEXT_BASE)] == "123456"


# --- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "column", "told", "fix"),
    [
        ("x", [[1], [2], [3]], "list<", "columns of their own"),
        ("x", [{"a": 1}] * 3, "struct<", "columns of their own"),
        ("x", [b"1"] * 3, "binary", "texts"),
        ("x", [1, "a", object()], "row 2: a object cannot be compared", "None"),
        ("x", [1, 2, 2**53 + 1], "row 2: 9007199254740993 is not exact", "as text"),
        ("x", pa.array([None, -(2**60), 1]), "row 1: -1152921504606846976 is not exact", "as text"),
        ("x", np.array([1, 2**63, 1], np.uint64), "row 1: 9223372036854775808 is not exact", "as text"),
        ("x", [1, "a", 2**70], "row 2: 1180591620717411303424 is not exact", "as text"),
        ("x", [1, 2**52, 3], "row 1: 4503599627370496 is between 2**52 and", "as text"),
        ("x", [1.0, None, 2.0**52 + 1], "row 2: 4503599627370497 is between", "as text"),
        ("x", ["a", 0, 2**52 + 3], "row 2: 4503599627370499 is between", "as text"),
        ("x", pa.array([0, 2**62, 0], pa.timestamp("s")), "too far away", ""),
        ("x", ["a", "\ud800", "b"], "not Unicode", ""),
        ("x", "abc", "is a str and no list", "one value per event"),
        ("x", 5, "is a int and no list", "one value per event"),
        ("x", {1, 2, 3}, "is a set and no list", "one value per event"),
        ("x", np.zeros((3, 2)), "1-dimensional", "one value per event"),
        ("type", [1, 2, 3], "types are of type int64", "give texts"),
        ("type", ["A", 2, "B"], "types are not all texts", "give texts"),
        ("type", ["A", None, "B"], "row 1 has no type", "drop"),
        ("type", [None] * 3, "row 0 has no type", "drop"),
        ("ts", [0.5, 1.5, 2.5], "times are of type double", "seconds · 1_000_000"),
        ("ts", ["0", "1", "2"], "times are of type string", "timestamp"),
        ("ts", [0, "1", 2], "not all integers", "timestamp"),
        ("ts", [1, None, 2], "row 1 has no value", "drop"),
        ("ts", pa.array([1, None, 2], pa.timestamp("us")), "row 1 has no value", "drop"),
        ("ts", [2**62, 2**62 + 1, 2**62 + 2], "2**62 microseconds", ""),
        ("ts", [20, 10, 30], "row 1 (ts 10, seq 7) is before row 0 (ts 20, seq 5)", "sort the batch by (ts, seq)"),
        ("seq", [1, 3, 2], "row 2 (ts 20, seq 2) is before row 1 (ts 20, seq 3)", "sort the batch by (ts, seq)"),
        ("seq", [1, 2, 2], "rows 1 and 2 have the same number, 2", "uniquely"),
        ("seq", [7, 1, 7], "rows 0 and 2 have the same number, 7", "uniquely"),
        ("seq", [1, 2.5, 3], "numbers are of type double", "integers"),
        ("seq", [1, None, 3], "row 1 has no value", "drop"),
        ("seq", np.array([1, 2, 2**63], np.uint64), "beyond 2**63", ""),
        ("x", [1, 2], "columns differ in length: 'type' has 3", "one value per event"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_column(name: str, column: Any, told: str, fix: str) -> None:
    error = refused(with_column(name, column), "x")
    assert told in str(error)
    assert len(error.problems) == 1
    assert fix in error.problems[0].fix
    assert error.problems[0].column == name or "length" in told
    assert isinstance(error, PenstockError)


def test_all_problems_come_at_once() -> None:
    error = refused({"type": [1, 2], "ts": [1.5, 2.5], "x": [[1], [2]], "pricey": [1, 2]}, "x", "price", "far")
    assert [problem.code for problem in error.problems] == ["missing-column"] * 2 + ["wrong-type"] * 3
    assert (
        "column 'price': is missing; the batch has 'type', 'ts', 'x', 'pricey'\n  fix: did you mean 'pricey'?"
        in str(error)
    )
    assert "column 'far': is missing" in str(error)


@pytest.mark.parametrize("batch", [5, "text", [1, 2], [{"type": "A", "ts": 1}], object()])
def test_what_is_not_a_batch(batch: Any) -> None:
    assert "is not a batch" in str(refused(batch))
    assert "DataFrame" in str(refused(batch))


def test_a_table_without_columns() -> None:
    assert "the batch has no columns\n  fix: add it, or say what it is called" in str(refused({}))


def test_a_column_that_is_there_twice() -> None:
    twice = pa.table([pa.array(["A"]), pa.array([1]), pa.array([2])], ["type", "ts", "ts"])
    assert "column 'ts': is there more than once" in str(refused(twice))
    frame = pd.DataFrame([["A", 1, 2, 3]], columns=["type", "ts", "x", "x"])
    assert "column 'x': is there more than once" in str(refused(frame, "x"))


def test_a_text_that_is_not_utf8() -> None:
    broken = pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff"))
    assert "not UTF-8" in str(refused({"type": ["A"], "ts": [1], "x": broken}, "x"))


def test_numbers_and_times_that_a_condition_names_are_exact() -> None:
    rows = {"type": ["A"], "ts": [2**52], "seq": [2**60]}
    Reader([]).read(rows)
    error = refused(rows, "ts", "seq")
    assert [problem.code for problem in error.problems] == ["text-range", "too-large"]


@pytest.mark.parametrize(("ts", "seq"), [(1, 9), (3, 4), (3, 5)])
def test_a_batch_that_starts_before_the_end_of_the_last(ts: int, seq: int) -> None:
    reader = Reader(["x"])
    reader.read({"type": ["A", "A"], "ts": [2, 3], "seq": [1, 5], "x": ["a", "b"]})
    error = refused({"type": ["New"], "ts": [ts], "seq": [seq], "x": ["new"]}, reader=reader)
    assert f"starts (ts {ts}, seq {seq}), not after the end of the batch before (ts 3, seq 5)" in str(error)
    assert reader.read({"type": ["A"], "ts": [3], "seq": [6], "x": ["c"]}).size == 1


def test_numbers_come_in_all_batches_or_in_none() -> None:
    reader = Reader([])
    reader.read({"type": ["A"], "ts": [1], "seq": [1]})
    assert "column 'seq': is missing" in str(refused({"type": ["A"], "ts": [2]}, reader=reader))
    reader = Reader([])
    reader.read({"type": ["A"], "ts": [1]})
    assert "column 'seq': is new" in str(refused({"type": ["A"], "ts": [2], "seq": [1]}, reader=reader))
    assert "column 'id': is missing" in str(refused({"type": ["A"], "ts": [1]}, reader=Reader([], seq="id")))


@pytest.mark.parametrize(("first", "second"), [("number", "text"), ("text", "number")])
def test_a_column_stays_number_or_text(first: str, second: str) -> None:
    columns = {"number": pa.array([1]), "text": pa.array(["a"]), "none": pa.array([None])}
    reader = Reader(["x"])
    reader.read({"type": ["A"], "ts": [1], "x": columns[first]})
    reader.read({"type": ["A"], "ts": [2], "x": columns["none"]})
    error = refused({"type": ["A"], "ts": [3], "x": columns[second]}, reader=reader)
    assert f"column 'x': is {second} here and was {first} in an earlier batch" in str(error)


def test_lists_have_no_type_that_could_change() -> None:
    reader = Reader(["x"])
    for ts, value in enumerate([1, "a", None, 2.5, True]):
        reader.read({"type": ["A"], "ts": [ts], "x": [value]})


# --- state ----------------------------------------------------------------------------------------------------

KEYS = st.one_of(st.none(), st.text(max_size=3), st.integers(-5, 5), st.booleans(), st.floats(-2, 2))


def comparable(reader: Reader, batches: list[Batch]) -> list[Any]:
    result: list[Any] = []
    for batch in batches:
        columns = {name: shown(reader, column) for name, column in batch.columns.items()}
        for row in range(batch.size):
            own = int(batch.ts[row]), int(batch.seq[row]), reader.types[int(batch.types[row])]
            result.append((own, {name: column[row] for name, column in columns.items()}))
    return result


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 3), KEYS), max_size=12), st.lists(st.integers(0, 12)))
def test_any_cut_gives_the_same_and_survives_snapshots(rows: list[tuple[str, int, Any]], cuts: list[int]) -> None:
    times = np.cumsum([gap for _, gap, _ in rows]).tolist()
    whole = {"type": [row[0] for row in rows], "ts": times, "x": [row[2] for row in rows]}
    reader = Reader(["x", "type", "ts", "seq"])
    expected = comparable(reader, [reader.read(whole)])
    places = sorted({min(cut, len(rows)) for cut in cuts} | {0, len(rows)})
    pieced, batches = Reader(["x", "type", "ts", "seq"]), []
    for start, stop in zip(places, [*places[1:], len(rows)], strict=True):
        batches.append(pieced.read({name: column[start:stop] for name, column in whole.items()}))
        pieced = Reader.from_state(pieced.state())
    assert comparable(pieced, batches) == expected
    assert [seq for (_, seq, _), _ in expected] == list(range(len(rows)))


def test_a_reader_goes_on_from_its_state() -> None:
    reader = Reader(["x"], type="kind")
    reader.read({"kind": ["A"], "ts": [5], "x": pa.array(["a"])})
    again = Reader.from_state(reader.state())
    np.testing.assert_equal(again.state(), reader.state())
    assert "is missing" in str(refused({"type": ["A"], "ts": [6]}, reader=again))
    assert "not after the end" in str(refused({"kind": ["A"], "ts": [4], "x": ["a"]}, reader=again))
    assert "was text" in str(refused({"kind": ["A"], "ts": [6], "x": pa.array([1])}, reader=again))
