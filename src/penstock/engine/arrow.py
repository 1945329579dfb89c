"""Columns of a batch as numbers, through Arrow: what users may give, and what is wrong with what they gave."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.arrow_values import EXACT, BatchProblem, ColumnError, is_text, microseconds, numbers
from penstock.engine.texts import Texts, strings
from penstock.plan.layout import TEXT_HIGH, TEXT_LOW
from penstock.plan.tables import Floats, Ints

Kind: TypeAlias = Literal["int", "float", "bool", "text", "mixed", "none"]
_UNREADABLE = (pa.ArrowException, TypeError, ValueError, OverflowError)
_AS_TEXT = "give the column as text"


@dataclass(frozen=True)
class Values:
    """A column as the kernel takes it; `is_declared` if its type was said and not guessed from a list of values."""

    numbers: Floats
    kind: Kind
    is_declared: bool = True


def columns_of(batch: Any, wanted: Collection[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the names of all columns of a batch, and the wanted columns."""
    if isinstance(batch, Mapping):
        return list(batch), {name: batch[name] for name in batch if name in wanted}
    if isinstance(batch, pa.RecordBatch):
        batch = pa.Table.from_batches([batch])
    elif not isinstance(batch, pa.Table) and not _is_frame(batch):
        batch = _as_table(batch)
    names = [str(name) for name in (batch.column_names if isinstance(batch, pa.Table) else batch.columns)]
    for name in wanted:
        if names.count(name) > 1:
            raise ColumnError(BatchProblem("column-twice", name, "is there more than once", "rename one of them"))
    there = [name for name in names if name in wanted]
    return names, {name: batch[name] for name in there}


def _is_frame(batch: Any) -> bool:
    """Return whether it is a DataFrame. Asks the class: to ask a lazy frame for its columns would make it work."""
    return all(hasattr(type(batch), name) for name in ("columns", "__len__", "__getitem__", "__arrow_c_stream__"))


def _as_table(batch: Any) -> Any:
    if hasattr(batch, "to_arrow"):
        batch = batch.to_arrow()
    try:
        return batch if isinstance(batch, pa.Table) else pa.table(batch)
    except _UNREADABLE:
        takes = "give a pyarrow Table or RecordBatch, a pandas or polars DataFrame, or a dict of columns"
        raise ColumnError(BatchProblem("not-a-batch", "", f"a {type(batch).__name__} is not a batch", takes)) from None


def as_arrow(name: str, column: Any) -> Any:
    """Return a column as a ChunkedArray, or as a list if Arrow has no type for it: one that mixes types."""
    if isinstance(column, pa.ChunkedArray):
        return column
    if isinstance(column, str | bytes | Mapping | set | frozenset) or not hasattr(column, "__len__"):
        told = f"is a {type(column).__name__} and no list or array"
        raise ColumnError(BatchProblem("not-a-column", name, told, "give one value per event"))
    try:
        if not isinstance(column, pa.Array) and hasattr(column, "__arrow_c_stream__"):
            return pa.chunked_array(column)
        array = column if isinstance(column, pa.Array) else _of_numpy(column)
        return _chunked(pa.array(column, from_pandas=True) if array is None else array)
    except _UNREADABLE as error:
        if getattr(column, "ndim", 1) != 1:
            raise ColumnError(BatchProblem("not-a-column", name, str(error), "give one value per event")) from None
        return list(column)


def _of_numpy(column: Any) -> Any:
    """Return a numpy array of numbers or texts as an Arrow array; None if it is something else."""
    if type(column) is not np.ndarray or column.ndim != 1 or not column.dtype.isnative:
        return None
    if column.dtype.kind == "U":
        return strings(column.tolist())
    if column.dtype.kind in "iu" or column.dtype in (np.float32, np.float64):
        values = np.ascontiguousarray(column)
        return pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), len(values), [None, pa.py_buffer(values)])
    return None


def _chunked(array: Any) -> Any:
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def values_of(name: str, column: Any, texts: Texts) -> Values:
    """Return an attribute's column as numbers; new texts get numbers."""
    is_guessed = isinstance(column, list | tuple) or str(getattr(column, "dtype", "")) == "object"
    column = as_arrow(name, column)
    if isinstance(column, list):
        return Values(_mixed(name, column, texts), "mixed", False)
    values = _typed(name, column, texts)
    return Values(values.numbers, values.kind, not is_guessed)


def _typed(name: str, column: Any, texts: Texts) -> Values:
    if pa.types.is_dictionary(column.type) and not is_text(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_null(column.type):
        return Values(np.full(len(column), math.nan), "none")
    if is_text(column.type):
        places, distinct = encoded(name, column)
        codes = np.append(TEXT_LOW + texts.add_all(distinct), math.nan)
        return Values(codes[places], "text")
    if pa.types.is_boolean(column.type):
        return Values(_floats(column), "bool")
    if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type) or pa.types.is_date(column.type):
        times, is_missing = microseconds(name, column)
        checked(name, times[~is_missing])
        return Values(np.where(is_missing, math.nan, times), "int")
    if pa.types.is_integer(column.type):
        _check_whole(name, column)
        return Values(checked(name, _floats(column)), "int")
    if pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        return Values(checked(name, _floats(column)), "float")
    fix = "give numbers, texts, booleans or timestamps; of a nested column, give the parts as columns of their own"
    raise ColumnError(BatchProblem("wrong-type", name, f"values of type {column.type} cannot be compared", fix))


def encoded(name: str, column: Any) -> tuple[Ints, Any]:
    """Return a column of texts as places among its distinct texts, an Arrow array; -1 is missing."""
    array = _one_dictionary(column) if pa.types.is_dictionary(column.type) else None
    # A dictionary may hold many texts that this batch does not, or missing ones.
    if array is None or len(array.dictionary) > len(array) or array.dictionary.null_count:
        plain = column if array is None else array.cast(pa.large_string())
        plain = plain.cast(pa.large_string()) if pa.types.is_string_view(plain.type) else plain
        array = _one_dictionary(_chunked(plain.dictionary_encode()))
    places = numbers(array.indices.cast(pa.int64()), -1)
    try:
        array.dictionary.validate(full=True)
    except pa.ArrowInvalid as error:
        raise ColumnError(BatchProblem("not-utf8", name, f"a text is not UTF-8: {error}")) from None
    return places, array.dictionary


def _one_dictionary(column: Any) -> Any:
    """Return a column of dictionaries as one array; Arrow cannot do that for views, so those become plain texts."""
    if pa.types.is_string_view(column.type.value_type):
        parts = [(chunk.indices, chunk.dictionary.cast(pa.large_string())) for chunk in column.chunks]
        kind = pa.dictionary(column.type.index_type, pa.large_string())
        column = pa.chunked_array([pa.DictionaryArray.from_arrays(*part) for part in parts], kind)
    return column.unify_dictionaries().combine_chunks()


def _floats(column: Any) -> Floats:
    if not pa.types.is_float64(column.type):
        column = column.cast(pa.float64(), safe=False)
    floats: Floats = numbers(column, math.nan)
    return floats


def _check_whole(name: str, column: Any) -> None:
    """Refuse whole numbers that a float cannot hold."""
    if column.type.bit_width < 64:
        return
    least, most = pc.min_max(column).as_py().values()
    if least is not None and (least < -EXACT or most > EXACT):
        signed = column.type == pa.int64()
        ints = numbers(column)
        row = int(np.argmax((ints > EXACT) | (ints < -EXACT) if signed else ints > EXACT))
        raise ColumnError(_inexact(name, row, int(ints[row])))


def _inexact(name: str, row: int, number: int) -> BatchProblem:
    told = f"row {row}: {number} is not exact as a 64-bit float, which whole numbers are only up to 2**53"
    return BatchProblem("too-large", name, told, _AS_TEXT)


def checked(name: str, numbers: Any) -> Any:
    """Return numbers, none of which may look like the code of a text."""
    if len(numbers) and np.fmax.reduce(numbers) >= TEXT_LOW:
        inside = (numbers >= TEXT_LOW) & (numbers < TEXT_HIGH)
        if inside.any():
            row = int(np.argmax(inside))
            told = f"row {row}: {numbers[row]:.0f} is between 2**52 and 2**52 + 2**40, where penstock keeps its texts"
            raise ColumnError(BatchProblem("text-range", name, told, _AS_TEXT))
    return numbers


def _mixed(name: str, column: list[Any], texts: Texts) -> Floats:
    """Return a list of values of several types as numbers, one by one."""
    numbers = np.array([_one(name, row, value) for row, value in enumerate(column)], np.float64)
    checked(name, numbers)
    rows = [row for row, value in enumerate(column) if isinstance(value, str)]
    try:
        numbers[rows] = TEXT_LOW + texts.add_all([str(column[row]) for row in rows])
    except UnicodeEncodeError as error:
        raise ColumnError(BatchProblem("not-utf8", name, f"a text is not Unicode: {error}")) from None
    return numbers


def _one(name: str, row: int, value: Any) -> float:
    """Return a value that is no text as a number."""
    if isinstance(value, np.generic):
        value = value.item()
    match value:
        case None | str():
            return math.nan
        case int() if abs(value) > EXACT:
            raise ColumnError(_inexact(name, row, value))
        case int() | float():
            return float(value)
    told = f"row {row}: a {type(value).__name__} cannot be compared"
    raise ColumnError(BatchProblem("wrong-type", name, told, "give numbers, texts, booleans or None"))


def column_of(values: list[Any]) -> pa.Array:
    """Return values as an Arrow array; as texts, if they mix numbers and texts, which Arrow does not."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array(map(str, values), pa.string())


def common_kind(before: Kind, now: Kind) -> Kind:
    """Return what an attribute is that was of one kind in earlier batches and is of another now."""
    if now in (before, "none"):
        return before
    if before == "none":
        return now
    return "float" if {before, now} == {"int", "float"} else "mixed"
