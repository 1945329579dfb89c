"""`collect`: what a model for shedding needs, summed up over a history of any size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from penstock.engine.detector import Mode
from penstock.engine.engine import MAX_RUNS
from penstock.engine.queries import weighted
from penstock.pattern import ast
from penstock.pattern.render import render
from penstock.pattern.schema import Schema
from penstock.spark.columns import ColumnLike, Columns, DetectError, Resolver, resolve, with_attributes
from penstock.spark.detecting import check_fits, read_by_all, spec_of
from penstock.spark.keys import keyed, reach
from penstock.spark.parting import in_parts
from penstock.spark.training.models import Model, Observed
from penstock.spark.training.observing import Subject
from penstock.spark.training.watching import ALL_QUERIES, MODELS, CollectWorker, observers_of
from penstock.spark.worker.spec import Spec

_ROWS = "query int, name string, type string, place int, sum bigint"


def collect(
    frame: DataFrame,
    queries: ast.Query | Iterable[ast.Query | tuple[ast.Query, float]],
    *,
    type: ColumnLike = "type",  # noqa: A002 - what users call it
    time: ColumnLike = "ts",
    by: ColumnLike | Sequence[ColumnLike] | None = None,
    seq: ColumnLike | None = None,
    positions: int = 100,
    model: str = "contribution",
    runs: bool = False,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    remotes: Mapping[str, Any] | None = None,
    schema: Schema | None = None,
    max_runs: int = MAX_RUNS,
    plan: Mode = "auto",
) -> Model:
    """Run queries over a history and sum up what a model for shedding needs.

    It is one pass, in parallel: by key, if the queries have PARTITION BY or `by` is given; else by slices of time, each
    with as much before and after as it takes; in one piece, if matches depend on all before. Whatever the way, the sums
    are those of one process, exactly. (SAME parts nothing here: positions are those of the whole stream.) A worker adds
    up in arrays, Spark adds these, and the driver gets a row for each sum that is not zero.

    What is summed up for "contribution": see `penstock.spark.training.contributions`: `InWindows` for queries with
    WINDOW, `InSpans` for those without, where the position of an event is how far into WITHIN it is in a match.

    Args:
        frame: a batch of events, all types of them: others take up positions, too.
        queries: a query or several, each perhaps with its weight.
        type: the column with the type of an event, by name or as a `Column`; likewise `time`, `by` and `seq`, as
            `detect` has them. Numbers must be unique: of two events with the same, one may be left out.
        positions: how many bins positions in windows, or parts of WITHIN, are put into.
        model: what is observed: "contribution", or "transition" for pSPICE: see `penstock.spark.training.transitions`.
        runs: whether runs are counted, too, by type and state: `asked` and `taken`, as `penstock.Hooks` has them. It
            keeps queries from tree plans, and takes a look at every open run at every event.
        functions: what queries call; like `remotes`, `schema`, `max_runs` and `plan`, as `detect` has it.

    Raises:
        QueryError: a query does not fit the frame.
        DetectError: a column is not there or of the wrong type, or an option does not fit.

    Examples:
        >>> import penstock as pk
        >>> from penstock.spark.training.collecting import collect
        >>> query = pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 min WINDOW 1 min EVERY 10 s")
        >>> def train(events):
        ...     model = collect(events, query, time="at", seq="id", positions=50)
        ...     model.save("models/pairs")
        ...     return model.utility()
    """
    _check_options(frame, model, positions, runs=runs)
    pairs = weighted(queries)
    columns, resolver = resolve(frame, type, time, by, seq, None, ())
    spec = replace(
        spec_of_sums(pairs, columns, resolver, schema or resolver.schema()),
        functions=dict(functions or {}), remotes=dict(remotes or {}), max_runs=max_runs,
        plan="automaton" if runs or model == "transition" else plan,
    )  # fmt: skip
    states = spec.engine().states  # what it refuses is refused here, not in a worker
    rows = in_parts(resolver, CollectWorker(spec, model=model, positions=positions, runs=runs), _ROWS)
    totals = rows.groupBy("query", "name", "type", "place").agg(sf.sum("sum").alias("sum")).collect()
    return model_of(pairs, states, [tuple(row) for row in totals], model, positions, runs=runs)


def _check_options(frame: DataFrame, model: str, positions: int, *, runs: bool) -> None:
    if frame.isStreaming:
        raise DetectError("collect sums up a history, and this is a stream\n  fix: read it as a batch: spark.read")
    if model not in MODELS:
        raise DetectError(f"model={model!r}\n  fix: give one of {', '.join(map(repr, MODELS))}")
    if model == "transition" and runs:
        raise DetectError("model='transition' counts runs already\n  fix: leave runs= out")
    if positions < 1:
        raise DetectError(f"positions={positions!r}\n  fix: give a number of bins, 1 or more")


def spec_of_sums(
    pairs: Sequence[tuple[ast.Query, float]], columns: Columns, resolver: Resolver, schema: Schema
) -> Spec:
    """Return what workers are told."""
    for query, _ in pairs:
        check_fits(query, columns, schema)
    queries, keys = parted_by([replace(query, returns=(), source=None) for query, _ in pairs], columns.by)
    columns = with_attributes(replace(columns, by=keys), resolver, [*read_by_all(queries), *keys])
    weights = [weight for _, weight in pairs]
    spec = spec_of(list(zip(queries, weights, strict=True)), columns, schema, keeps_partitions=True)
    return replace(spec, counting=None, reach=reach_of_sums(queries))


def parted_by(queries: Sequence[ast.Query], by: Sequence[str]) -> tuple[list[ast.Query], tuple[str, ...]]:
    """Return the queries and their keys: those that part the stream, not those that SAME makes equal in a match."""
    if by or all(query.partition for query in queries):
        return keyed(queries, by)
    return list(queries), ()


def reach_of_sums(queries: Sequence[ast.Query]) -> tuple[int, int] | None:
    """Return how far before and after it the stream must be known to count what happens at a time; None: all of it.

    An event is in matches that end up to WITHIN later. A window belongs to the time at which it begins. The runs that
    are asked about an event have begun up to WITHIN before.
    """
    spans = []
    for query in queries:
        known = reach([query])
        if known is None:
            return None
        before, after = known
        window = query.window.length if query.window is not None else None
        spans.append((before, window.us if isinstance(window, ast.TimeSpan) else before + after))
    return max(before for before, _ in spans), max(after for _, after in spans)


def model_of(
    pairs: Sequence[tuple[ast.Query, float]],
    states: Sequence[Sequence[tuple[str, ...]]],
    totals: Iterable[tuple[Any, ...]],
    model: str,
    positions: int,
    *,
    runs: bool = False,
) -> Model:
    """Return a model of sums.

    Args:
        pairs: the queries with their weights.
        states: what is bound in each state of each query.
        totals: rows of query, name, type, place in the array, sum; each cell once.
        model: what it is for, with how many `positions`; `runs`: whether they were counted.
    """
    cells = {(query, name, kind, place): number for query, name, kind, place, number in totals}
    types = sorted({kind for _, _, kind, _ in cells if kind is not None})
    codes = {kind: code for code, kind in enumerate(types)}
    found = []
    for at, ((query, weight), bound) in enumerate(zip(pairs, states, strict=True)):
        subject = Subject(query, positions, len(bound))
        shapes = {k: v for each in observers_of(subject, model, runs=runs) for k, v in each.shapes.items()}
        sums = {k: np.zeros(() if v is None else (len(types), *v), np.int64) for k, v in shapes.items()}
        for (of, name, kind, place), number in cells.items():
            if of == at:
                sums[name].reshape(1 if kind is None else len(types), -1)[codes.get(kind, 0), place] = number
        found.append(Observed(render(query), query.name, weight, tuple(bound), sums))
    rows, malformed = (cells.get((ALL_QUERIES, name, None, 0), 0) for name in ("rows", "malformed"))
    return Model(model, positions, tuple(types), tuple(found), rows, malformed)
