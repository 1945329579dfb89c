"""The frames that users see: their types, known before anything runs, and the parting of what came out."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as sf
from pyspark.sql import types as st
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from penstock.engine.matches import Layout
from penstock.engine.returns import return_types
from penstock.engine.rules import rules
from penstock.pattern import ast
from penstock.pattern.render import render_expression
from penstock.pattern.schema import Schema
from penstock.plan.callees import Asks, Callee
from penstock.plan.planning import plan
from penstock.plan.terms import Calls
from penstock.spark.columns import Columns, DetectError, quoted
from penstock.spark.worker.results import (
    BY,
    COUNTED,
    COUNTS,
    COUNTS_TYPE,
    ENDED,
    EVENT,
    LATE,
    MALFORMED,
    MATCHES,
    OUTPUT,
    REASON,
    SHED,
    TIME,
    TIMES,
    WHY,
)

OUTPUTS = (MATCHES, LATE, MALFORMED, SHED, ENDED)
_ENDED = {WHY: pa.string(), BY: pa.int64()}  # behind all other columns, and only if they are asked for


def events_schema(columns: Columns) -> pa.Schema:
    """Return the columns that workers get, as Arrow has them."""
    return _arrow(columns.fields)


def results_schema(
    queries: Sequence[ast.Query], columns: Columns, schema: Schema, keys: Sequence[str] = (), *, ended: bool = False
) -> pa.Schema:
    """Return the columns that workers give back.

    Args:
        queries: to be found.
        columns: of the frame.
        schema: which declares the functions and remote sources.
        keys: those of queries without PARTITION BY.
        ended: whether runs that end without a match come out, too.

    Raises:
        DetectError: two queries give a column of one name different types; the type of a RETURN column is not known.
    """
    events = events_schema(columns)
    event = pa.struct([events.field(name) for name in columns.event])
    window = _window_type(queries)
    found: dict[str, pa.DataType] = {OUTPUT: pa.string(), "query": pa.string()}
    for query in queries:
        layout = layout_of(query, keys)
        key_types = [events.field(name).type for name in layout.keys]
        variables = [pa.list_(event)] * len(layout.variables)
        returns = list(_return_types(query, columns, schema).values())
        types = [pa.string(), *key_types, window, TIME, TIME, TIME, *variables, *returns]
        for name, kind in zip(layout.names(), types, strict=True):
            if found.setdefault(name, kind) != kind:
                raise DetectError(
                    f"two queries have a column {name}, of type {found[name]} and of type {kind}\n"
                    "  fix: give one of them another name: RETURN … AS another"
                )
    names = [OUTPUT, "query", *(keys or _keys(queries)), "window", *TIMES]
    fixed = found | dict.fromkeys(TIMES, TIME)
    ordered = {name: fixed[name] for name in names} | fixed
    rest = {EVENT: pa.struct(list(events)), REASON: pa.string(), COUNTS: COUNTS_TYPE, **(_ENDED if ended else {})}
    for name in rest:
        if name in ordered:
            raise DetectError(
                f"a variable, key or RETURN column is called {name}, which penstock uses\n  fix: rename it"
            )
    return pa.schema((ordered | rest).items())


def check_told_apart(names: Sequence[str], frame: DataFrame) -> None:
    """Refuse columns of results whose names differ in their case only, where Spark takes them for the same."""
    if str(frame.sparkSession.conf.get("spark.sql.caseSensitive")).lower() == "true":
        return
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise DetectError(
                f"there is a column {other} and a column {name}, which Spark does not tell apart\n"
                "  fix: rename a variable or a RETURN column, detect the queries apart, or set spark.sql.caseSensitive"
            )


def layout_of(query: ast.Query, keys: Sequence[str] = ()) -> Layout:
    """Return the columns of a query's matches; `keys` are those of a query without PARTITION BY."""
    planned = plan(query, Calls.DERIVED)
    variables = tuple(planned.numbered.variables[v].name for v in rules(planned).variables)
    returns = tuple(each.name or render_expression(each.expression) for each in query.returns)
    return Layout(query.name, tuple(keys) or tuple(name.text for name in query.partition), variables, returns)


def _keys(queries: Sequence[ast.Query]) -> list[str]:
    return list(dict.fromkeys(name.text for query in queries for name in query.partition))


def _window_type(queries: Sequence[ast.Query]) -> pa.DataType:
    """A window is called by its start; or by its first position, or by the number of the event that opened it."""
    windows = [query.window for query in queries if query.window is not None]
    is_timed = all(window.on is None and isinstance(window.length, ast.TimeSpan) for window in windows)
    return TIME if is_timed else pa.int64()


def _return_types(query: ast.Query, columns: Columns, schema: Schema) -> dict[str, pa.DataType]:
    kinds = columns.kinds()

    def of_call(callee: Callee) -> str | None:
        if callee.asks is Asks.FUNCTION:
            declared = schema.functions.get(callee.name)
            return None if declared is None else declared.returns
        remote = schema.remotes.get(callee.name)
        if remote is None:
            return None
        return remote.row[callee.column] if remote.row is not None and callee.column else remote.value

    found = return_types(query, kinds.get, of_call)
    for name, kind in found.items():
        if pa.types.is_null(kind):
            raise DetectError(
                f"the type of RETURN {name} is not known\n"
                "  fix: declare the function or the remote source: detect(…, schema=pk.Schema(…))"
            )
    return found


def _arrow(fields: Sequence[st.StructField]) -> pa.Schema:
    return to_arrow_schema(st.StructType([st.StructField(f.name, f.dataType, True) for f in fields]), timezone="UTC")


def spark_schema(schema: pa.Schema, columns: Columns, queries: Sequence[ast.Query]) -> st.StructType:
    """Return an Arrow schema of results as Spark has it; the types of events and keys are the frame's own."""
    keys = [*_keys(queries), *columns.by]
    event = st.StructType([_nullable(columns.field(name)) for name in columns.event])
    found = []
    for each in schema:
        if each.name == EVENT:
            kind: st.DataType = st.StructType([_nullable(field) for field in columns.fields])
        elif pa.types.is_list(each.type) and pa.types.is_struct(each.type.value_type):
            kind = st.ArrayType(event, True)
        elif each.name in keys:
            kind = columns.field(each.name).dataType
        else:
            kind = from_arrow_schema(pa.schema([each])).fields[0].dataType
        found.append(st.StructField(each.name, kind, True))
    return st.StructType(found)


def _nullable(field: st.StructField) -> st.StructField:
    return st.StructField(field.name, field.dataType, True)


def parted(frame: DataFrame, outputs: Sequence[str], observation: str | Observation) -> DataFrame:
    """Return the results that were asked for, with the counts observed on the way."""
    frame = frame.observe(observation, *_sums())
    found, ended = _parted_names(frame, COUNTS)
    names = [name for name in found if name != OUTPUT]
    if tuple(outputs) == (MATCHES,):
        return frame.where(sf.col(OUTPUT) == MATCHES).select(*map(quoted, names))
    return frame.where(sf.col(OUTPUT).isin(*outputs)).select(OUTPUT, *map(quoted, names), EVENT, REASON, *ended)


def _parted_names(frame: DataFrame, last: str) -> tuple[list[str], list[str]]:
    """Return the columns of matches, and those behind the last of the other ones that tell how runs ended."""
    names = frame.columns
    behind = names[names.index(last) + 1 :]
    return names[: names.index(EVENT)], list(_ENDED) if set(_ENDED) <= set(behind) else []


def output(frame: DataFrame, name: str) -> DataFrame:
    """Return one of the outputs of `detect(…, outputs=…)`.

    Matches; late, malformed or shed rows, each with its reason; or runs that ended without a match: what they have of
    the columns of matches, `why` each ended ("abandoned" or "timed out") and `by` which event (its `seq`, or null).

    Args:
        frame: what `detect` gave; in a stream, that of `foreachBatch`.
        name: "matches", "late", "malformed", "shed" or "ended".
    """
    is_there = name in OUTPUTS and {OUTPUT, EVENT, REASON} <= set(frame.columns)
    found, ended = _parted_names(frame, REASON) if is_there else ([], [])
    if not is_there or (name == ENDED and not ended):
        raise DetectError(f"there is no output {name!r}\n  fix: detect(…, outputs=['matches', {name!r}])")
    rows = frame.where(sf.col(OUTPUT) == name)
    if name == MATCHES:
        return rows.drop(OUTPUT, EVENT, REASON, *ended)
    if name == ENDED:
        return rows.select(*map(quoted, _of_runs(frame.schema, found)), *ended)
    return rows.select(f"{EVENT}.*", REASON)


def _of_runs(schema: st.StructType, names: Sequence[str]) -> list[str]:
    """Return those columns of matches that runs have: what is bound, and from when to when."""
    stop = names.index("last_ts") + 1
    fixed = [name for name in names[:stop] if name != OUTPUT]
    return [*fixed, *(name for name in names[stop:] if _is_variable(schema[name].dataType))]


def _is_variable(kind: st.DataType) -> bool:
    return isinstance(kind, st.ArrayType) and isinstance(kind.elementType, st.StructType)


def _sums() -> list[Column]:
    counted = [sf.sum(sf.col(f"{COUNTS}.{name}")).alias(name) for name in COUNTED]
    # A list for each piece of work, to be summed by who reads it: a sum for each bin would be most of what Spark plans.
    return [*counted, sf.collect_list(sf.col(f"{COUNTS}.latency")).alias("latency")]
