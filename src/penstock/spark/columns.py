"""The columns of a DataFrame that detection reads, found by name or as expressions, checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from penstock.errors import PenstockError
from penstock.pattern.schema import Schema
from penstock.pattern.variables import ANY_TYPE, BUILT_IN
from penstock.spark.worker.spec import TIE

ColumnLike: TypeAlias = str | Column

_HIDDEN = "_penstock_"

_VALUE_TYPES: tuple[tuple[tuple[type[st.DataType], ...], str], ...] = (
    ((st.ByteType, st.ShortType, st.IntegerType, st.LongType), "int"),
    ((st.FloatType, st.DoubleType, st.DecimalType), "float"),
    ((st.StringType, st.CharType, st.VarcharType), "string"),
    ((st.BooleanType,), "bool"),
    ((st.TimestampType, st.TimestampNTZType, st.DateType), "time"),
    ((st.DayTimeIntervalType,), "duration"),
)


class DetectError(PenstockError):
    """`detect` was asked for something that cannot be; raised on the driver, before the query starts."""


@dataclass(frozen=True)
class Columns:
    """What is read of a DataFrame.

    Attributes:
        type: name of the column with the type of an event.
        time: of its time.
        seq: of its number; None if there is none.
        arrival: of its arrival time, likewise.
        by: of the keys.
        event: of what a match holds of each event.
        fields: all of them, with their Spark types.
    """

    type: str
    time: str
    seq: str | None
    arrival: str | None
    by: tuple[str, ...]
    event: tuple[str, ...]
    fields: tuple[st.StructField, ...]

    def field(self, name: str) -> st.StructField:
        """Return a field by its name."""
        return next(each for each in self.fields if each.name == name)

    def kinds(self) -> dict[str, str]:
        """Return the types of the attributes that queries can name, in the language's words."""
        return _kinds(self.fields)


def value_type(data_type: st.DataType) -> str | None:
    """Return the type of a column in the language's words; None if conditions cannot name such a column."""
    return next((kind for types, kind in _VALUE_TYPES if isinstance(data_type, types)), None)


def _kinds(fields: Iterable[st.StructField]) -> dict[str, str]:
    found = {field.name: value_type(field.dataType) for field in fields}
    return {name: kind for name, kind in found.items() if kind is not None}


class Resolver:
    """Turns what users give for a column, a name or an expression, into a named column of a frame.

    Args:
        frame: the events.
    """

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame
        self._fields = {field.name: field for field in frame.schema.fields}
        self._chosen: dict[str, tuple[Column, st.StructField]] = {}

    def add(self, given: ColumnLike, role: str) -> str:
        """Take a column; return its name.

        Raises:
            DetectError: there is no such column.
        """
        if isinstance(given, str):
            if given not in self._fields:
                raise DetectError(_no_column(given, role, list(self._fields)))
            self._chosen.setdefault(given, (quoted(given), self._fields[given]))
            return given
        if not isinstance(given, Column):
            raise DetectError(f"{role}={given!r} is no column\n  fix: give a name or a pyspark.sql.Column")
        field = self._frame.select(given).schema.fields[0]
        self._chosen[field.name] = given, field
        return field.name

    def add_all(self) -> tuple[str, ...]:
        """Take every column of the frame; return their names, with those that were made before."""
        for name in self._fields:
            self.add(name, "attributes")
        return tuple(self._chosen)

    @property
    def fields(self) -> tuple[st.StructField, ...]:
        """The columns that were taken."""
        return tuple(field for _, field in self._chosen.values())

    def has(self, name: str) -> bool:
        """Whether the frame has a column of this name."""
        return name in self._fields

    def schema(self) -> Schema:
        """Return what `penstock check` would be told of the frame."""
        kinds = _kinds([*self._fields.values(), *self.fields])
        own = {name: kind for name, kind in kinds.items() if name not in BUILT_IN}  # those every event has
        return Schema.model_validate({"types": {ANY_TYPE: own}})

    def microseconds(self, name: str) -> Column:
        """Return a column of times as whole microseconds since 1970, as workers see them."""
        column, field = self._chosen[name]
        if isinstance(field.dataType, st.TimestampType):
            return sf.unix_micros(column)
        if isinstance(field.dataType, st.TimestampNTZType | st.DateType):
            epoch = sf.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
            return sf.timestamp_diff("MICROSECOND", epoch, column.cast("timestamp_ntz"))
        return column.cast("long")

    def select(self, seq: str | None, *more: Column) -> DataFrame:
        """Return the frame with the columns that were taken, then `TIE`, then others.

        Without numbers of the users' own, rows of the same time are put in the order of their hashes: any order would
        do, but it must be the same when a batch is run again.
        """
        if seq is not None:
            tie = self._chosen[seq][0].cast("long")
        else:
            tie = sf.xxhash64(*(column for column, field in self._chosen.values() if not _has_map(field.dataType)))
        chosen = [column.alias(name) for name, (column, _) in self._chosen.items()]
        return self._frame.select(*chosen, tie.alias(TIE), *more)


def resolve(
    frame: DataFrame,
    type: ColumnLike,  # noqa: A002 - what users call it
    time: ColumnLike,
    by: ColumnLike | Sequence[ColumnLike] | None,
    seq: ColumnLike | None,
    arrival: ColumnLike | None,
    attributes: Iterable[ColumnLike] | None,
) -> tuple[Columns, Resolver]:
    """Find the columns of a frame.

    Raises:
        DetectError: a column that is not there, or whose type does not do.
    """
    resolver = Resolver(frame)
    if any(field.name == TIE or field.name.startswith(_HIDDEN) for field in frame.schema.fields):
        raise DetectError(f"a column is called {TIE} or {_HIDDEN}…, which penstock uses itself\n  fix: rename it")
    keys = [] if by is None else [by] if isinstance(by, str | Column) else list(by)
    type_, time_ = resolver.add(type, "type"), resolver.add(time, "time")
    seq_ = None if seq is None else resolver.add(seq, "seq")
    by_ = tuple(resolver.add(each, "by") for each in keys)
    if attributes is None:
        event = resolver.add_all()
    else:
        wanted = [resolver.add(each, "attributes") for each in attributes]
        event = tuple(dict.fromkeys([type_, time_, *([seq_] if seq_ else []), *wanted]))
    arrival_ = None if arrival is None else resolver.add(arrival, "arrival")
    columns = Columns(type_, time_, seq_, arrival_, by_, event, resolver.fields)
    _check_types(columns)
    return columns, resolver


def with_attributes(columns: Columns, resolver: Resolver, names: Iterable[str]) -> Columns:
    """Take the columns too that queries name; return the columns then. One that is not there is the queries' error."""
    for name in names:
        if resolver.has(name):
            resolver.add(name, "attributes")
    return replace(columns, fields=resolver.fields)


def _check_types(columns: Columns) -> None:
    problems = []
    for role, name, kinds, wanted, cast in (
        ("type", columns.type, ("string",), "texts", "string"),
        ("time", columns.time, ("time", "int"), "timestamps or whole microseconds", "timestamp"),
        ("seq", columns.seq, ("int",), "whole numbers", "long"),
        ("arrival", columns.arrival, ("time",), "timestamps", "timestamp"),
    ):
        if name is None:
            continue
        data_type = columns.field(name).dataType
        if value_type(data_type) not in kinds:
            problems.append(
                f"{role}={name!r}: the column is of type {data_type.simpleString()}; it must be {wanted}\n"
                f'  fix: give another column, or {role}=sf.col({name!r}).cast("{cast}")'
            )
    problems += [
        f"by={name!r}: a column of type {columns.field(name).dataType.simpleString()} is no key\n"
        "  fix: give a column of texts, numbers, truth values or times, such as a field of it"
        for name in columns.by
        if value_type(columns.field(name).dataType) is None
    ]
    if problems:
        raise DetectError("\n".join(problems))


def _no_column(name: str, role: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, 1)
    fix = f"did you mean {near[0]!r}?" if near else f"the frame has {', '.join(map(repr, known))}"
    return f"{role}={name!r}: there is no such column\n  fix: {fix}"


def quoted(name: str) -> Column:
    """Return the column of a name, whatever characters are in it."""
    return sf.col("`" + name.replace("`", "``") + "`")


def _has_map(data_type: st.DataType) -> bool:
    """Whether Spark cannot hash it."""
    if isinstance(data_type, st.StructType):
        return any(_has_map(field.dataType) for field in data_type.fields)
    if isinstance(data_type, st.ArrayType):
        return _has_map(data_type.elementType)
    return isinstance(data_type, st.MapType | st.VariantType)
