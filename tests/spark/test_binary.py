"""Binary payloads with a schema."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from pyspark.sql import types as st

from penstock.spark.jobs.binary import Binary, ByteOrder, problems_of

FIELDS = (
    st.StructField("flag", st.BooleanType()),
    st.StructField("small", st.ByteType()),
    st.StructField("short", st.ShortType()),
    st.StructField("n", st.IntegerType()),
    st.StructField("id", st.LongType()),
    st.StructField("f", st.FloatType()),
    st.StructField("x", st.DoubleType()),
    st.StructField("at", st.TimestampType()),
    st.StructField("day", st.DateType()),
    st.StructField("kind", st.CharType(4)),
)
PACKED = "?bhiqfdqi4s"


def payload(order: str = ">", kind: bytes = b"Buy ") -> bytes:
    return struct.pack(order + PACKED, True, -1, -2, -3, 2**40, 0.5, 1.25, 1_000_000, 1, kind)


def reader(*fields: st.StructField, order: ByteOrder = "big") -> Binary:
    return Binary(fields, order, "value", "_record", "_problem")


@pytest.mark.parametrize(("order", "mark"), [("big", ">"), ("little", "<")])
def test_every_type(order: ByteOrder, mark: str) -> None:
    columns, reasons = reader(*FIELDS, order=order).read([payload(mark)])
    assert reasons == [None]
    assert {name: column.to_pylist()[0] for name, column in columns.items()} == {
        "flag": True, "small": -1, "short": -2, "n": -3, "id": 2**40, "f": 0.5, "x": 1.25,
        "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "day": date(1970, 1, 2), "kind": "Buy",
    }  # fmt: skip


def test_what_is_malformed_tells_why_and_leaves_the_others_alone() -> None:
    values = [payload(), b"", None, payload() + b"!", payload(kind=b"\xff\xfe\xfd\xfc"), payload(kind=b"Sell")]
    columns, reasons = reader(*FIELDS).read(values)
    assert reasons == [
        None,
        "the payload has 0 bytes, and the schema 44",
        "the payload is null",
        "the payload has 45 bytes, and the schema 44",
        "kind is no UTF-8 text",
        None,
    ]
    assert columns["id"].to_pylist() == [2**40, None, None, None, 2**40, 2**40]
    assert columns["kind"].to_pylist() == ["Buy", None, None, None, None, "Sell"]


@pytest.mark.parametrize(
    ("kind", "found"), [(st.StringType(), ["ab ", "", None]), (st.BinaryType(), [b"ab ", b"", None])]
)
def test_the_last_field_may_take_the_rest(kind: st.DataType, found: list[object]) -> None:
    both = reader(st.StructField("n", st.ShortType()), st.StructField("rest", kind))
    columns, reasons = both.read([b"\0\1ab ", b"\0\2", b"\0"])
    assert columns["n"].to_pylist() == [1, 2, None]
    assert columns["rest"].to_pylist() == found
    assert reasons == [None, None, "the payload has 1 bytes, and the schema at least 2"]


def test_a_partition() -> None:
    batch = pa.record_batch({"value": pa.array([b"\0\1", b"\0"]), "offset": pa.array([5, 6])})
    (found,) = reader(st.StructField("n", st.ShortType()))(iter([batch]))
    assert found.to_pylist() == [
        {"n": 1, "_record": None, "_problem": None, "offset": 5},
        {"n": None, "_record": "00", "_problem": "the payload has 1 bytes, and the schema 2", "offset": 6},
    ]


def test_no_rows() -> None:
    columns, reasons = reader(*FIELDS).read([])
    assert ({len(column) for column in columns.values()}, reasons) == ({0}, [])


def test_fields_that_cannot_be() -> None:
    fields = [
        st.StructField("a", st.StringType()),
        st.StructField("b", st.DecimalType(10, 2)),
        st.StructField("c", st.ArrayType(st.LongType())),
    ]
    assert problems_of(fields) == [
        "a: a string must be the last field; or write char(10)",
        "b: a decimal(10,2) has no fixed width",
        "c: a array<bigint> has no fixed width",
    ]
    assert problems_of(FIELDS) == []
