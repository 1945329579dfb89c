"""Columns of Arrow as arrays of numpy, without a copy where there is a way. Loads no kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import PenstockError
from penstock.plan.tables import Ints

EXACT = 2**53  # whole numbers up to here are exact as 64-bit floats
_PER_UNIT = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}


@dataclass(frozen=True)
class BatchProblem:
    """One thing that is wrong with a batch: a short fixed name, the column, what is wrong, and a fix."""

    code: str
    column: str
    message: str
    fix: str = ""

    def __str__(self) -> str:
        told = f"column '{self.column}': {self.message}" if self.column else self.message
        return f"{told}\n  fix: {self.fix}" if self.fix else told


class ColumnError(PenstockError):
    """A column that cannot be read; `Reader` gathers these into one `BatchError`."""

    def __init__(self, problem: BatchProblem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def numbers(column: Any, missing: float = 0) -> Any:
    """Return a column of numbers as a numpy array, with a number for null.

    Not by `to_numpy` and `fill_null`, whose first call imports pandas if it is installed.
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    array = array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)
    if not len(array):
        return np.zeros(0, array.type.to_pandas_dtype())
    is_there, values = array.buffers()
    found = np.frombuffer(values, array.type.to_pandas_dtype())[array.offset : array.offset + len(array)]
    if not array.null_count:
        return found
    bits = np.unpackbits(np.frombuffer(is_there, np.uint8), bitorder="little")
    return np.where(bits[array.offset : array.offset + len(array)], found, missing).astype(found.dtype)


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is text, or a dictionary of texts."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def microseconds(name: str, column: Any) -> tuple[Ints, Any]:
    """Return a column of times or durations as microseconds, rounded down, and where it is missing."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s" if pa.types.is_date32(column.type) else "ms"))
    factor, divisor = _PER_UNIT[column.type.unit]
    is_missing = column.is_null().to_numpy()
    ticks = numbers(column.cast(pa.int64()))
    if factor > 1 and len(ticks) and max(abs(int(ticks.min())), abs(int(ticks.max()))) > 2**62 // factor:
        raise ColumnError(BatchProblem("time-range", name, "a time is too far away to be counted in microseconds"))
    return ticks * factor // divisor, is_missing
