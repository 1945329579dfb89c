"""Binary payloads with a schema: the fields one after the other, each of a fixed width.

    boolean, tinyint   1 byte               timestamp   8 bytes: microseconds since 1970, UTC
    smallint           2 bytes              date        4 bytes: days since 1970
    int, float         4 bytes              char(n)     n bytes of UTF-8, filled up with spaces or zeros
    bigint, double     8 bytes              string, binary   all that is left: as the last field only

Numbers are two's complement and IEEE 754. No field can be missing. A payload of another length is malformed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import types as st

ByteOrder: TypeAlias = Literal["big", "little"]

# By type of field: what numpy reads, and what Arrow makes of it.
_NUMBERS: dict[type[st.DataType], tuple[str, pa.DataType]] = {
    st.BooleanType: ("u1", pa.bool_()),
    st.ByteType: ("i1", pa.int8()),
    st.ShortType: ("i2", pa.int16()),
    st.IntegerType: ("i4", pa.int32()),
    st.LongType: ("i8", pa.int64()),
    st.FloatType: ("f4", pa.float32()),
    st.DoubleType: ("f8", pa.float64()),
    st.TimestampType: ("i8", pa.timestamp("us", "UTC")),
    st.DateType: ("i4", pa.date32()),
}
_TAILS: dict[type[st.DataType], pa.DataType] = {st.StringType: pa.string(), st.BinaryType: pa.binary()}


def problems_of(fields: Iterable[st.StructField]) -> list[str]:
    """Return why payloads cannot be read with such fields; nothing, if they can."""
    fields = list(fields)
    found = []
    for number, field in enumerate(fields):
        kind = type(field.dataType)
        if kind in _TAILS and number < len(fields) - 1:
            found.append(f"{field.name}: a {field.dataType.simpleString()} must be the last field; or write char(10)")
        elif kind not in _NUMBERS and kind not in _TAILS and kind is not st.CharType:
            found.append(f"{field.name}: a {field.dataType.simpleString()} has no fixed width")
    return found


@dataclass(frozen=True)
class Binary:
    """Reads payloads; what `mapInArrow` calls.

    Attributes:
        fields: what is in them.
        byte_order: of numbers.
        value: the column with the payloads. Columns for the fields come out in its place; in front of the other
            columns, which stay as they are.
        record: the column that gets the payload of malformed rows, in hexadecimal.
        problem: the column that gets the reason.
    """

    fields: tuple[st.StructField, ...]
    byte_order: ByteOrder
    value: str
    record: str
    problem: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows with the fields of their payloads."""
        for batch in batches:
            values = batch.column(self.value).to_pylist()
            columns, reasons = self.read(values)
            hexed = [value.hex() if reason and value else None for value, reason in zip(values, reasons, strict=True)]
            others = {name: batch.column(name) for name in batch.schema.names if name != self.value}
            told = {self.record: pa.array(hexed, pa.string()), self.problem: pa.array(reasons, pa.string())}
            yield pa.record_batch({**columns, **told, **others})

    def read(self, values: list[bytes | None]) -> tuple[dict[str, pa.Array], list[str | None]]:
        """Return the columns of payloads, and for each payload why it is malformed; None if it is not."""
        layout = self._layout()
        has_tail = type(self.fields[-1].dataType) in _TAILS
        reasons = [self._length_problem(value, layout.itemsize, has_tail) for value in values]
        empty = bytes(layout.itemsize)
        whole = [empty if reason or value is None else value for value, reason in zip(values, reasons, strict=True)]
        table = np.frombuffer(b"".join(value[: layout.itemsize] for value in whole), layout)
        columns: dict[str, pa.Array] = {}
        for number, field in enumerate(self.fields):
            if type(field.dataType) in _NUMBERS:
                columns[field.name] = _numbers(table[f"f{number}"], field.dataType, reasons)
            else:
                is_tail = type(field.dataType) in _TAILS
                bodies = [value[layout.itemsize :] for value in whole] if is_tail else table[f"f{number}"].tolist()
                columns[field.name] = _texts(field, bodies, reasons)
        return columns, reasons

    def _layout(self) -> np.dtype[Any]:
        order = ">" if self.byte_order == "big" else "<"
        parts = []
        for number, field in enumerate(self.fields):
            if isinstance(field.dataType, st.CharType):
                parts.append((f"f{number}", f"S{field.dataType.length}"))
            elif type(field.dataType) in _NUMBERS:
                parts.append((f"f{number}", order + _NUMBERS[type(field.dataType)][0]))
        return np.dtype(parts)

    @staticmethod
    def _length_problem(value: bytes | None, size: int, has_tail: bool) -> str | None:
        if value is None:
            return "the payload is null"
        if len(value) == size or (has_tail and len(value) > size):
            return None
        return f"the payload has {len(value)} bytes, and the schema {'at least ' if has_tail else ''}{size}"


def _numbers(values: Any, data_type: st.DataType, reasons: list[str | None]) -> pa.Array:
    native = values.astype(values.dtype.newbyteorder("="))
    mask = np.array([reason is not None for reason in reasons], np.bool_)
    kind = _NUMBERS[type(data_type)][1]
    if isinstance(data_type, st.BooleanType):
        return pa.array(native != 0, kind, mask=mask)
    return pa.array(native, mask=mask).cast(kind)


def _texts(field: st.StructField, bodies: list[bytes], reasons: list[str | None]) -> pa.Array:
    """Return texts; a body that is no UTF-8 makes its payload malformed."""
    if isinstance(field.dataType, st.BinaryType):
        pairs = zip(bodies, reasons, strict=True)
        return pa.array([None if reason else body for body, reason in pairs], pa.binary())
    found: list[str | None] = []
    for number, body in enumerate(bodies):
        text = None
        if reasons[number] is None:
            try:
                text = body.decode()
            except UnicodeDecodeError:
                reasons[number] = f"{field.name} is no UTF-8 text"
        found.append(text.rstrip(" \0") if text is not None and isinstance(field.dataType, st.CharType) else text)
    return pa.array(found, pa.string())
