"""Shedding on Spark: what fits a stream and its queries, said before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from penstock.engine.hooks import MAX_WINDOWS, HookError
from penstock.engine.snapshots import SnapshotError
from penstock.errors import PenstockError
from penstock.pattern import ast
from penstock.shedding.configuration import Fitted, Shedding
from penstock.shedding.overload.batches import BatchBound
from penstock.shedding.storing import load
from penstock.shedding.strategies.catalogue import strategy_of
from penstock.shedding.strategies.chance import RandomRun
from penstock.shedding.strategies.gspice import Gspice
from penstock.shedding.strategies.strategy import Strategy
from penstock.spark.columns import Columns, DetectError
from penstock.spark.worker.shedding import Shed
from penstock.spark.worker.spec import Spec

IN_WINDOWS = ("window", "run")


def attributes_of(shed: Shedding) -> tuple[str, ...]:
    """Return the columns that a strategy reads besides those that the queries do."""
    model = shed.model if isinstance(shed.model, Strategy) or shed.model is None else shed.fitted().strategy
    return tuple(model.features.attributes) if isinstance(model, Gspice) else ()


def sheds_from_windows(shed: Shedding, queries: Sequence[ast.Query]) -> bool:
    """Whether a strategy asks where in its windows an event is."""
    return strategy_of(shed.strategy).level in IN_WINDOWS and any(query.window is not None for query in queries)


def needs_partitions(shed: Shedding, queries: Sequence[ast.Query]) -> bool:
    """Whether something is counted by partition, so that PARTITION BY must stay: open runs, or positions in windows."""
    return shed.strategy == "hspice-w" or sheds_from_windows(shed, queries)


def shed_of(shed: Shedding, spec: Spec, columns: Columns, *, is_shown: bool) -> Shed:
    """Return what workers are told about shedding.

    Raises:
        DetectError: the strategy or its model does not fit the queries, or what it needs is not there.
    """
    queries = [query for query, _ in spec.queries]
    if columns.arrival is None:
        raise DetectError(
            "shedding keeps a bound on the time since events arrived, and nothing says when\n"
            "  fix: give arrival=, such as the timestamp of Kafka"
        )
    engine = spec.engine()
    fitted = _fitted(shed, [len(states) for states in engine.states])
    strategy = fitted.strategy
    in_windows = queries[0] if sheds_from_windows(shed, queries) else None
    if in_windows is not None:
        _check_windows(strategy, queries)
    _check_model(fitted, [len(states) for states in engine.states])
    _check_weights(shed, [weight for _, weight in spec.queries])
    attributes = attributes_of(shed)
    missing = [name for name in attributes if columns.kinds().get(name) not in ("int", "float", "bool")]
    if missing:
        raise DetectError(
            f"the model of {strategy.name} reads {', '.join(missing)}, which the frame does not have as numbers\n"
            "  fix: train it with attributes that the frame has"
        )
    if strategy.level == "runs" or strategy.name == "hspice-w":
        try:
            for detector in engine._detectors:
                detector.keep_plain_runs()
        except HookError as error:
            raise DetectError(f"{strategy.name} cannot shed from this query: {error}") from error
    bound = BatchBound(shed.bound_seconds * 1e6, shed.f)
    leaves_out = all(map(takes_no_note, queries))
    unshed = shed.unshed if spec.by and in_windows is None and _drops_rows(strategy) else 0.0
    return Shed(
        strategy, fitted.types, bound, shed.seed, columns.arrival, attributes, in_windows, unshed, leaves_out, is_shown,
        uuid4().hex,
    )  # fmt: skip


def _drops_rows(strategy: Strategy) -> bool:
    """Whether it drops whole rows: then it is known which matches of a key would have been lost."""
    return strategy.level in ("stream", "window") and strategy.name != "hspice-w"


def _fitted(shed: Shedding, states: Sequence[int]) -> Fitted:
    if shed.strategy == RandomRun.name and shed.model is None:
        return Fitted(RandomRun(tuple(states)), None)
    try:
        return shed.fitted()
    except SnapshotError:
        raise
    except PenstockError as error:
        raise DetectError(str(error)) from error


def _check_windows(strategy: Strategy, queries: Sequence[ast.Query]) -> None:
    window = queries[0].window
    if any(query.window != window or query.partition != queries[0].partition for query in queries):
        raise DetectError(
            f"{strategy.name} sheds events from windows, and the queries have different ones\n"
            "  fix: give all of them the same WINDOW and PARTITION BY, or detect them apart"
        )
    if window is None or window.every is None:
        return
    length, every = (
        each.us if isinstance(each, ast.TimeSpan) else each.events for each in (window.length, window.every)
    )
    if -(-length // every) > MAX_WINDOWS:
        raise DetectError(
            f"an event is in {-(-length // every)} windows, and {strategy.name} tells {MAX_WINDOWS} apart\n"
            "  fix: make EVERY longer, or shed events of the stream (gspice-sh, random-event) or runs (pspice)"
        )


def _check_model(fitted: Fitted, states: Sequence[int]) -> None:
    """Refuse a model of other queries, as far as its tables tell."""
    strategy, types = fitted
    if types is None and strategy.level != "runs" and strategy.name != "random-event":
        raise DetectError(
            f"the model of {strategy.name} does not say which types it is about\n  fix: Shedding(types=…)"
        )
    known = _states_of(strategy)
    if known is not None and known != list(states):
        raise DetectError(
            f"the model of {strategy.name} is of queries with {known} states, and these have {list(states)}\n"
            "  fix: train it with the same queries, in the same order"
        )


def _check_weights(shed: Shedding, weights: Sequence[float]) -> None:
    """Refuse weights that are not those of the model: it is the model that has them, so others would change nothing."""
    if not isinstance(shed.model, Path | str) or all(weight == 1 for weight in weights):
        return
    trained = load(shed.model)[1].get("weights")
    if trained is not None and list(trained) != list(weights):
        options = " ".join(f"--weight {weight:g}" for weight in weights)
        raise DetectError(
            f"the model of {shed.strategy} was trained with the weights {_listed(trained)}, and the queries have "
            f"{_listed(weights)}\n  fix: penstock train … {options}"
        )


def _listed(weights: Sequence[float]) -> str:
    return ", ".join(f"{weight:g}" for weight in weights)


def _states_of(strategy: Any) -> list[int] | None:
    if isinstance(strategy, RandomRun):
        return list(strategy.states)
    tables = getattr(strategy, "tables", None)
    if not isinstance(tables, tuple) or not all(isinstance(each, np.ndarray) for each in tables):
        return None
    return [each.shape[0] if strategy.level == "runs" else each.shape[-1] for each in tables]


def takes_no_note(query: ast.Query) -> bool:
    """Whether an event that is shed may stay away from the engine: nobody counts it, and it is no one's neighbour."""
    window = query.window
    spans = [query.within, *([] if window is None else [window.length, window.every])]
    return (
        query.select.policy is not ast.Policy.STRICT
        and all(span is None or isinstance(span, ast.TimeSpan) for span in spans)
        and (window is None or window.on is None)
        and not any(isinstance(node, ast.Previous) for node in ast.walk(query))
    )
