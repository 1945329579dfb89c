"""`learn`: a model of any strategy, from a history of any size, as a Spark job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from penstock.engine.batches import TIME, TYPE
from penstock.engine.engine import MAX_RUNS
from penstock.engine.queries import weighted
from penstock.pattern import ast
from penstock.pattern.schema import Schema
from penstock.plan.tables import Floats
from penstock.runtime.learning import NoMatchError, has_windows_apart, studied
from penstock.runtime.windows import AGO
from penstock.shedding.configuration import Fitted
from penstock.shedding.strategies.catalogue import strategy_of
from penstock.shedding.strategies.gspice import Gspice
from penstock.shedding.strategies.strategy import Strategy
from penstock.shedding.summing import Summed
from penstock.shedding.zobrist import ENDS, edges_between
from penstock.spark.columns import ColumnLike, DetectError, Resolver, quoted, resolve
from penstock.spark.parting import in_parts
from penstock.spark.training.collecting import collect, reach_of_sums, spec_of_sums
from penstock.spark.training.fitting import espice_of, pspice_of
from penstock.spark.training.studying import StudyWorker, kinds_from
from penstock.spark.worker.spec import Spec

_SUMS = "name string, place bigint, sum double"
_KINDS = "key bigint, type int, cell int, inputs array<double>, worth double, count double"
_PANES = 4  # of events, before a slice of time
_NO_MODEL = ("random-event", "random-run")


@dataclass(frozen=True)
class Learned:
    """A strategy with its model, and of how many rows.

    Attributes:
        fitted: what `penstock.Shedding` takes as `model=` (`fitted.strategy`) and `types=` (`fitted.types`).
        rows: of the history.
    """

    fitted: Fitted
    rows: int


def learn(
    frame: DataFrame,
    queries: ast.Query | Iterable[ast.Query | tuple[ast.Query, float]],
    strategy: str = "espice",
    *,
    type: ColumnLike = "type",  # noqa: A002 - what users call it
    time: ColumnLike = "ts",
    by: ColumnLike | Sequence[ColumnLike] | None = None,
    seq: ColumnLike | None = None,
    positions: int = 100,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    schema: Schema | None = None,
    max_runs: int = MAX_RUNS,
    **options: Any,
) -> Learned:
    """Learn a model for shedding, in parallel as `collect` has it.

    eSPICE and pSPICE learn from what `collect` sums up. The others learn from the queries run over each part as one
    process runs them, and the sums of the parts are those of the whole, exactly. With keys, positions are those in the
    windows of a key. Windows of a number of events, or that an event opens, and `prev`, link all of a history without
    keys: it is one part then, which must fit into the memory of a worker, as each part must. hSPICE goes by the size
    that a window was expected to have, which the twenty windows before tell, so a slice of time has these, too.

    gSPICE takes attributes that are columns, not how they change; the ranges of their values are found first, within a
    ten-thousandth. A pane of a number of events is cut short where a slice of time begins and its first events are few
    and far between; with keys, events of other parts are not in it.

    Args:
        frame: a batch of events, all types of them: others take up positions, too.
        queries: a query or several, each perhaps with its weight.
        strategy: what the model is for.
        type: the column with the type of an event; like `time`, `by`, `seq` and what follows, as `collect` has it.
        positions: into how many bins positions are put.
        options: of the strategy, such as `attributes` or `pane` of gSPICE.

    Raises:
        QueryError: a query does not fit the frame.
        DetectError: a column is not there or of the wrong type, or an option does not fit.
        NoMatchError: no query has a match in the history.

    Examples:
        learned = learn(history, query, "hspice-pm", by="card")
        shed = pk.Shedding(bound="2 s", strategy="hspice-pm", model=learned.fitted.strategy, types=learned.fitted.types)
    """
    made = strategy_of(strategy)
    if strategy in _NO_MODEL:
        raise DetectError(f"{strategy} has nothing to learn\n  fix: give it without a model")
    collected = partial(
        collect, frame, queries, type=type, time=time, by=by, seq=seq, positions=positions, functions=functions,
        schema=schema, max_runs=max_runs,
    )  # fmt: skip
    if strategy == "espice":
        model = collected()
        return Learned(espice_of(model, **options), model.rows)
    if strategy.startswith("pspice"):
        model = collected(model="transition")
        return Learned(pspice_of(model, with_time=strategy == "pspice", **options), model.rows)
    if frame.isStreaming:
        raise DetectError("learn takes a history, and this is a stream\n  fix: read it as a batch: spark.read")
    pairs = weighted(queries)
    found, resolver = resolve(frame, type, time, by, seq, None, ())
    spec = replace(
        spec_of_sums(pairs, found, resolver, schema or resolver.schema()),
        functions=dict(functions or {}), max_runs=max_runs, plan="automaton",
    )  # fmt: skip
    return _studied(made, resolver, replace(spec, reach=reach_of_parts(spec, strategy)), positions, options)


def _studied(
    made: type[Strategy], resolver: Resolver, spec: Spec, positions: int, options: dict[str, Any]
) -> Learned:  # fmt: skip
    """Run the queries over each part of a history; learn from what all parts add up to."""
    overview = _Overview.of(resolver, spec)
    worker = StudyWorker(spec, names=overview.names, bins=positions, strategy=made.name)
    if issubclass(made, Gspice):
        worker = replace(worker, spec=replace(spec, reach=overview.with_pane(spec.reach, made, options)))
        fitted: Strategy = _gspice(made, resolver, worker, options)
    else:
        sums = _summed(resolver, worker)
        fitted = made.fitted(sums, **options)  # type: ignore[arg-type]  # sums have what these learn from of a History
    return Learned(Fitted(fitted, overview.names), overview.rows)


@dataclass(frozen=True)
class _Overview:
    """What is known of a history at a glance.

    Attributes:
        names: of the types, in alphabetical order, and "" as the last.
        rows: how many there are.
        between: the mean time between one event and the next, in microseconds.
    """

    names: tuple[str, ...]
    rows: int
    between: float

    @classmethod
    def of(cls, resolver: Resolver, spec: Spec) -> _Overview:
        ts = resolver.microseconds(spec.time)
        events = resolver.select(spec.seq).where(quoted(spec.type).isNotNull() & quoted(spec.time).isNotNull())
        counted = events.groupBy(quoted(spec.type)).agg(sf.count(sf.lit(1)), sf.min(ts), sf.max(ts)).collect()
        rows = sum(int(row[1]) for row in counted)
        whole = max((row[3] for row in counted), default=0) - min((row[2] for row in counted), default=0)
        return cls((*sorted(str(row[0]) for row in counted), ""), rows, whole / max(1, rows))

    def with_pane(
        self, reach: tuple[int, int] | None, made: type[Gspice], options: Mapping[str, Any]
    ) -> tuple[int, int] | None:  # fmt: skip
        """Return a reach that has a pane in it: of a number of events, as long as some panes take on average."""
        if reach is None:
            return None
        pane = int(options.get("pane", made.PANE))
        length = pane if options.get("pane_is_timed", False) else round(_PANES * pane * self.between)
        return max(reach[0], length), reach[1]


def reach_of_parts(spec: Spec, strategy: str) -> tuple[int, int] | None:
    """Return how far before and after it the stream must be known to study what happens at a time; None: all of it.

    Windows that are matched on their own depend on nothing else; events are in windows that began before them. How
    large these were expected to be, which hSPICE asks, depends on those that were over last.
    """
    queries = [query for query, _ in spec.queries]
    if not has_windows_apart(spec.queries, strategy):
        return reach_of_sums(queries)
    window = queries[0].window
    assert window is not None, "they have windows"
    looks_back = any(isinstance(node, ast.Previous) for query in queries for node in ast.walk(query))
    if window.on is not None or looks_back or not isinstance(window.length, ast.TimeSpan):
        return None
    every = window.every or window.length
    assert isinstance(every, ast.TimeSpan), "as the length"
    ago = window.length.us + AGO * every.us if strategy_of(strategy).level == "run" or strategy == "hspice-w" else 0
    return max(2 * window.length.us, ago), window.length.us


def _summed(resolver: Resolver, worker: StudyWorker) -> Summed:
    """Return the sums of all parts."""
    rows = in_parts(resolver, worker, _SUMS).groupBy("name", "place").agg(sf.sum("sum").alias("sum")).collect()
    empty = _nothing(worker)
    sums: dict[str, Floats] = {name: np.zeros_like(array) for name, array in empty.sums.items()}
    for name, place, number in rows:
        sums[name].reshape(-1)[place] = number
    if not any(sums[name].any() for name in sums if name.startswith("completed")):
        raise NoMatchError
    return empty.with_sums(sums)


def _nothing(worker: StudyWorker) -> Summed:
    """Return the sums of a history without events: the shapes, and what queries are."""
    spec = worker.spec
    columns = {TYPE: pa.array([], pa.string()), TIME: pa.array([], pa.timestamp("us"))}
    columns |= {name: pa.array([], spec.events.field(name).type) for name in spec.read}
    events = pa.table(columns)
    history = studied(
        spec.queries, events, strategy=worker.strategy, names=worker.names, bins=worker.bins,
        functions=spec.functions, max_runs=spec.max_runs,
    )  # fmt: skip
    return Summed.of(history)


def _gspice(made: type[Gspice], resolver: Resolver, worker: StudyWorker, options: dict[str, Any]) -> Gspice:
    """Return gSPICE: the ranges of attributes first, then what was seen of each kind of event."""
    spec, given = worker.spec, dict(options)
    ranges, asked = int(given.pop("attribute_ranges", 10)), given.pop("attributes", None)
    depth, seed = int(given.pop("depth", 12)), int(given.pop("seed", 1))
    numeric = tuple(n for n in spec.read if _is_number(spec.events.field(n).type))
    unknown = [name for name in asked or () if name not in numeric]
    if unknown:
        raise DetectError(
            f"attributes={list(asked)!r}: {unknown[0]!r} is no number that the queries read\n"
            f"  fix: give some of {', '.join(numeric) or 'none: they read no numbers'}"
        )
    attributes = numeric if asked is None else tuple(asked)
    edges = [_edges(resolver, name, ranges) for name in attributes]
    features = made.features_of(len(worker.names), attributes, edges, seed=seed, **given)
    frame = in_parts(resolver, replace(worker, features=features), _KINDS).groupBy("key").agg(
        *(sf.any_value(name).alias(name) for name in ("type", "cell", "inputs")),  # the same for all of a key
        *(sf.sum(name).alias(name) for name in ("worth", "count")),
    )  # fmt: skip
    seen = kinds_from(frame.toArrow())
    if not seen.worth.any():
        raise NoMatchError
    return made.of(features, seen, depth=depth, seed=seed)


def _edges(resolver: Resolver, name: str, count: int) -> Floats:
    """Return where the values of an attribute are cut into ranges, as one process does."""
    value = quoted(name).cast("double")
    values = resolver.select(None).select(value.alias("value")).where(sf.abs("value") < float("inf"))
    ends = values.approxQuantile("value", list(ENDS), 1e-4)
    return edges_between(ends[0], ends[1], count) if ends else np.zeros(0)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))
