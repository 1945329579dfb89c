"""`detect`: matches of queries in batch and streaming frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame, Observation

from penstock.engine.detector import Mode
from penstock.engine.engine import MAX_RUNS
from penstock.engine.intake import attributes as read_by
from penstock.engine.queries import weighted
from penstock.pattern import ast
from penstock.pattern.durations import DurationError, microseconds
from penstock.pattern.schema import Schema
from penstock.pattern.validate import validate
from penstock.plan.planning import plan as planned
from penstock.plan.terms import Calls
from penstock.shedding.configuration import Shedding
from penstock.spark.columns import ColumnLike, Columns, DetectError, resolve, with_attributes
from penstock.spark.keys import by_same, keyed, reach, types_that_count
from penstock.spark.outputs import OUTPUTS, check_told_apart, events_schema, parted, results_schema, spark_schema
from penstock.spark.parting import in_parts
from penstock.spark.shedding import attributes_of, needs_partitions, shed_of, sheds_from_windows
from penstock.spark.streaming import shuffle_partitions, streamed
from penstock.spark.worker.batch import BatchWorker
from penstock.spark.worker.results import ENDED, MATCHES, SHED
from penstock.spark.worker.spec import Spec

_LEAST_IDLE_US = 1000  # Spark's clock is in milliseconds


def detect(
    queries: ast.Query | Iterable[ast.Query | tuple[ast.Query, float]],
    *,
    type: ColumnLike = "type",  # noqa: A002 - what users call it
    time: ColumnLike = "ts",
    by: ColumnLike | Sequence[ColumnLike] | None = None,
    seq: ColumnLike | None = None,
    attributes: Iterable[ColumnLike] | None = None,
    watermark: str | timedelta | None = None,
    idle: str | timedelta | None = None,
    arrival: ColumnLike | None = None,
    outputs: Sequence[str] = (MATCHES,),
    functions: Mapping[str, Callable[..., Any]] | None = None,
    remotes: Mapping[str, Any] | None = None,
    schema: Schema | None = None,
    buckets: int | None = None,
    max_runs: int = MAX_RUNS,
    plan: Mode = "auto",
    shed: Shedding | None = None,
    ended: bool = False,
    observe: str | Observation = "penstock",
) -> Callable[[DataFrame], DataFrame]:
    """Return a function for `DataFrame.transform` that finds the matches of queries in a frame of events.

    The frame may be a batch or a stream. A row is an event. The result has a row per match: `query`, the keys,
    `window`, `first_ts`, `last_ts`, `known_ts`, `arrived_ts`, `detected_ts`, per variable an array of its events
    (structs with the columns of the frame; null if it is unbound), the RETURN columns.

    Args:
        queries: a query or several, each perhaps with its weight.
        type: the column with the type of an event, by name or as a `Column`.
        time: that of its time: timestamps, or whole microseconds.
        by: the keys: events with different keys have nothing to do with one another, as with PARTITION BY. Without it,
            what the queries say: PARTITION BY, or what SAME makes equal.
        seq: the column with the number of an event, which is unique and breaks ties in time. Without one, events of the
            same time are in an order that is always the same, but arbitrary.
        attributes: what a match holds of each event, besides its type, time and number; all columns, if not given.
        watermark: in a stream, how late events may come ("10 seconds"): they wait so long to be put in order. Without
            it, each micro-batch is put in order by itself, and what is before the one before is late.
        idle: in a stream, how long no event may come before time passes as the clock does ("1 min"): rows that wait are
            processed then, negations at the end decided, runs timed out. Without it, only events tell the time. Spark
            runs batches without rows for this, one after the other: give the stream a trigger.
        arrival: the column with the time at which an event arrived, for `arrived_ts` and latencies.
        outputs: what comes out: "matches", "late", "malformed", "shed", "ended". If it is not matches alone, a column
            `output` tells what a row is, and rows that are no matches are in `event`, with a `reason`; `output` parts
            them.
        functions: the user functions that queries call; `schema` must declare them.
        remotes: the sources that queries look up with REMOTE, likewise.
        schema: what `penstock check --schema` takes. Without it, the frame's columns are the schema.
        buckets: in a stream, how many engines share the keys; as many as there are shuffle partitions, if not given.
        max_runs: how many runs an engine may have; see `penstock.Engine`.
        plan: how matches are found; see `penstock.Engine`.
        shed: in a stream, the latency bound to keep, and what to drop for it; needs `arrival`.
        ended: whether runs that end without a match come out, too: the output "ended". See `penstock.Engine`.
        observe: the name under which counts appear in `observedMetrics` of a stream; of a batch, an `Observation`.

    Raises:
        QueryError: when it is applied: a query does not fit the frame.
        DetectError: likewise: a column is not there or of the wrong type, or an option does not fit.

    Examples:
        >>> import penstock as pk
        >>> from penstock.spark import detect
        >>> query = pk.parse("PATTERN SEQ(Small a, Large b) WHERE b.amount > 10 * a.amount WITHIN 5 min", "fraud")
        >>> fraud = detect(query, type="type", time="ts", by="card")  # then: events.transform(fraud)
    """
    pairs = weighted(queries)
    unknown = [name for name in outputs if name not in OUTPUTS]
    if unknown or not outputs:
        raise DetectError(f"outputs={list(outputs)!r}\n  fix: give some of {', '.join(map(repr, OUTPUTS))}")
    shown = (*outputs, ENDED) if ended and ENDED not in outputs else tuple(outputs)

    def find(frame: DataFrame) -> DataFrame:
        columns, resolver = resolve(frame, type, time, by, seq, arrival, attributes)
        known = schema or resolver.schema()
        for query, _ in pairs:
            _check(query, columns, known)
        parted_by, keys = keyed([query for query, _ in pairs], columns.by)
        more = () if shed is None else attributes_of(shed)
        columns = with_attributes(replace(columns, by=keys), resolver, [*read_by_all(parted_by), *keys, *more])
        keeps = shed is not None and needs_partitions(shed, parted_by)
        chosen = list(zip(parted_by, [weight for _, weight in pairs], strict=True))
        spec = spec_of(chosen, columns, known, keeps_partitions=keeps, ended=ENDED in shown)
        result = spark_schema(spec.results, columns, parted_by)
        check_told_apart(result.names, frame)
        spec = replace(
            spec, watermark_us=_microseconds(watermark), idle_us=_idle(idle), functions=dict(functions or {}),
            remotes=dict(remotes or {}), max_runs=max_runs, plan=plan,
        )  # fmt: skip
        spec.engine()  # what it refuses is refused here, not in a worker
        if shed is not None:
            spec = _with_shedding(spec, shed, parted_by, columns, frame, is_shown=SHED in outputs)
        if not frame.isStreaming:
            return parted(in_parts(resolver, BatchWorker(spec), result), shown, observe)
        partitions = shuffle_partitions(frame)
        return parted(streamed(resolver, spec, result, partitions, buckets or partitions), shown, observe)

    return find


def _with_shedding(
    spec: Spec, shed: Shedding, queries: Sequence[ast.Query], columns: Columns, frame: DataFrame, *, is_shown: bool
) -> Spec:  # fmt: skip
    """Return what workers are told, with what to shed."""
    if not frame.isStreaming:
        raise DetectError("a batch has no latency bound to keep\n  fix: leave shed= out, or read a stream")
    counting = None if sheds_from_windows(shed, queries) else spec.counting  # all take up positions
    return replace(spec, shed=shed_of(shed, spec, columns, is_shown=is_shown), counting=counting)


def check_fits(query: ast.Query, columns: Columns, schema: Schema) -> None:
    """Refuse a query that does not fit the frame.

    Raises:
        QueryError: it names what is not there, or compares what cannot be compared.
        DetectError: it asks for numbers of events, and there are none.
    """
    validate(query, schema, strict=False)
    asks = any(isinstance(node, ast.Attribute) and node.name == "seq" for node in ast.walk(query))
    if columns.seq is None and asks:
        raise DetectError(f"{query.name or 'the query'} asks for .seq, and events have no numbers\n  fix: give seq=")


def _check(query: ast.Query, columns: Columns, schema: Schema) -> None:
    check_fits(query, columns, schema)
    if columns.seq is None and query.window is not None and query.window.on is not None:
        raise DetectError(
            f"{query.name or 'the query'} calls windows by the number of the event that opens them, and events have "
            "no numbers\n  fix: give seq="
        )


def read_by_all(queries: Iterable[ast.Query]) -> list[str]:
    """Return the attributes that queries read."""
    return list(dict.fromkeys(name for query in queries for name in read_by(planned(query, Calls.DERIVED))))


def spec_of(
    queries: Sequence[tuple[ast.Query, float]],
    columns: Columns,
    schema: Schema,
    *,
    keeps_partitions: bool = False,
    ended: bool = False,
) -> Spec:
    """Return what workers are told, with the defaults of `detect`.

    Args:
        queries: with their weights; checked, and partitioned by the keys.
        columns: of the frame, with all that the queries read.
        schema: which declares the functions and remote sources.
        keeps_partitions: whether PARTITION BY must stay, and not be said by SAME: positions are counted by partition.
        ended: whether runs that end without a match come out, too.
    """
    given = [query for query, _ in queries]
    same = None if keeps_partitions else by_same(given, columns.by)
    alone, keys = (given, ()) if same is None else (same, columns.by)
    special = {columns.type, columns.time, columns.seq}
    return Spec(
        queries=tuple(zip(alone, (weight for _, weight in queries), strict=True)),
        type=columns.type,
        time=columns.time,
        seq=columns.seq,
        arrival=columns.arrival,
        by=columns.by,
        keys=keys,
        events=events_schema(columns),
        event=columns.event,
        read=tuple(name for name in read_by_all(alone) if name not in special),
        counting=types_that_count(alone),
        results=results_schema(alone, columns, schema, keys, ended=ended),
        reach=reach(alone, ended=ended),
        max_runs=MAX_RUNS,
        ended=ended,
    )


def _idle(duration: str | timedelta | None) -> int | None:
    found = _microseconds(duration)
    if found is not None and found < _LEAST_IDLE_US:
        raise DetectError(f"idle={duration!r} is less than a millisecond\n  fix: give the longest pause to wait for")
    return found


def _microseconds(duration: str | timedelta | None) -> int | None:
    try:
        return None if duration is None else microseconds(duration)
    except DurationError as error:
        raise DetectError(str(error)) from error
