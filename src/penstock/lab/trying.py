"""One setting in one process: the truth, the training, and a run for each of its cells."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.lab.cells import Cell, Setting, written
from penstock.lab.data import halves_of, query_of
from penstock.lab.spec import Experiment, Value
from penstock.pattern import ast
from penstock.runtime.clocks import VirtualClock
from penstock.runtime.costs import Costs
from penstock.runtime.matching import Operator
from penstock.runtime.measures import Run
from penstock.runtime.profiles import Profile, Stepped
from penstock.runtime.running import Loop, Shedder
from penstock.runtime.training import Unshed, unshed
from penstock.shedding.overload.fitting import Fit
from penstock.shedding.overload.latency import LatencyDetector
from penstock.shedding.overload.load import Detector
from penstock.shedding.overload.queueing import QueueDetector
from penstock.shedding.quality import relaxed, strict
from penstock.shedding.strategies.catalogue import strategy_of
from penstock.shedding.strategies.strategy import Strategy

Row = dict[str, Any]
Queries = list[tuple[ast.Query, float]]
CURVE = 30  # parts of a run whose greatest latencies are kept
_RISE = 3.0  # times the capacity, at the beginning of a run


@dataclass(frozen=True)
class Prepared:
    """What the cells of a setting share.

    Attributes:
        queries: as they are run.
        events: the second half of the stream.
        costs: such that the operator has the capacity that the spec says.
        learned: unshed operation on the first half.
        truth: unshed operation on the second.
    """

    queries: Queries
    events: pa.Table
    costs: Costs
    learned: Unshed
    truth: Unshed

    @property
    def match_probability(self) -> float:
        """Matches per run that was opened, both counted in each window (thesis 3.3.2.1)."""
        assert self.learned.history is not None
        opened = sum(int(query.moves[0].sum()) for query in self.learned.history.queries)
        return len(self.learned.run.found) / max(1, opened)


def tried(setting: Setting) -> Iterator[Row]:
    """Run the cells of a setting; yield what was measured of each."""
    if not setting.cells:
        return
    experiment = setting.experiment
    path = "" if experiment.sweep is None else experiment.sweep.path
    first_value = setting.cells[0][1]
    prepared = _prepare(experiment, path, first_value, setting.seed, setting.costs or Costs())
    for cell, value in setting.cells:
        is_option = path.startswith("strategy.") and value is not None
        options = {path.removeprefix("strategy."): value} if is_option else {}
        yield {
            **_key(cell),
            "fingerprint": setting.fingerprint(cell, value),
            "costs": written(setting.costs),
            **_run(cell, experiment, prepared, options),
        }


def _key(cell: Cell) -> Row:
    return {name: getattr(cell, name) for name in ("spec", "experiment", "x", "value", "rate", "strategy", "seed")}


def _prepare(experiment: Experiment, path: str, value: Value | None, seed: int, costs: Costs) -> Prepared:
    kind, _, name = path.partition(".")
    given = {} if value is None else {name: value}
    data = experiment.data
    if kind == "data":
        data = data.model_copy(update={"options": {**data.options, **given}})
    past, events = halves_of(data, seed)
    changed = given if kind in ("query", "test") else {}
    queries = [(query_of(each, changed), each.weight) for each in experiment.queries]
    learned_from = [(query_of(each, given if kind == "query" else {}), each.weight) for each in experiment.queries]
    factors = [each.cost for each in experiment.queries]
    if kind == "cost" and value is not None:
        factors[0] *= float(value)
    costs = Costs(**{**vars(costs), "factors": tuple(factors)})
    bins = _bins(learned_from, past, int(value)) if kind == "bin" and value is not None else None
    learned = unshed(learned_from, past, costs, is_split=True, bins=bins)
    costs = costs.scaled(learned.capacity / experiment.capacity)
    learned = _slower(learned, learned.capacity / experiment.capacity)
    truth = unshed(queries, events, costs, is_split=True, is_observed=False)
    return Prepared(queries, events, costs, learned, truth)


def _slower(learned: Unshed, factor: float) -> Unshed:
    """Return unshed operation as it would be on a machine that is so much slower: only its times differ."""

    def fit(given: Fit) -> Fit:
        return replace(given, factors=tuple(factor * each for each in given.factors), error=factor**2 * given.error)

    history = learned.history
    assert history is not None
    queries = tuple(replace(query, rewards=factor * query.rewards) for query in history.queries)
    slower = replace(history, queries=queries)
    return replace(
        learned, history=slower, event_seconds=factor * learned.event_seconds,
        event_time=fit(learned.event_time), shed_time=fit(learned.shed_time),
    )  # fmt: skip


def _bins(queries: Queries, events: pa.Table, size: int) -> int:
    """Return how many cells of so many positions a window has."""
    operator = Operator(queries, is_split=True)
    operator.take(events)
    return max(1, round(operator.bins / size))


def _run(cell: Cell, experiment: Experiment, prepared: Prepared, options: Mapping[str, Value | None]) -> Row:
    chosen = next(each for each in experiment.strategies if each.name == cell.strategy)
    begun = time.perf_counter()
    assert prepared.learned.history is not None
    strategy = strategy_of(cell.strategy).fitted(prepared.learned.history, **{**chosen.options, **options})
    built = time.perf_counter()
    operator = Operator(prepared.queries, is_split=True, names=prepared.learned.history.names)
    operator.take(prepared.events)
    capacity = prepared.truth.capacity
    profile, settled = risen(cell.rate, operator.stream.size, capacity, experiment.f * experiment.bound)
    arrivals = profile.arrivals(operator.stream.size, capacity)
    shedder = Shedder(strategy, _detector(strategy, experiment, prepared.learned), experiment.bound, experiment.f)
    run = Loop(
        operator, VirtualClock(arrivals), prepared.costs, shedder, full_time=prepared.truth.event_seconds,
    )()  # fmt: skip
    done = time.perf_counter()
    return {
        **_quality(run, prepared, operator, settled), **_load(run, experiment),
        "curve": [float(part.max(initial=0.0)) for part in np.array_split(run.latencies, CURVE)],
        "match_probability": prepared.match_probability, "events": operator.stream.size, "pairs": run.pairs,
        "overhead": run.overhead, "model_seconds": built - begun, "run_seconds": done - built,
    }  # fmt: skip


def _detector(strategy: Strategy, experiment: Experiment, learned: Unshed) -> Detector:
    if strategy.level == "runs":
        buffer = (1 - experiment.f) * experiment.bound
        return LatencyDetector(experiment.bound, buffer, learned.event_time, learned.shed_time)
    return QueueDetector(experiment.bound, experiment.f)


def risen(rate: float, events: int, capacity: float, delay: float) -> tuple[Profile, int]:
    """Return a load that soon makes an operator late, and the first event from which on it is as it will be.

    Some events come at three times the capacity first, until the operator is behind by the delay from which on it
    sheds, and the rest at the rate: at a rate of 120 %, most of a short run would be over before.

    Examples:
        >>> profile, settled = risen(1.25, 100, 10.0, 0.8)
        >>> profile.arrivals(100, 10.0)[[0, 1, 12, 13]].round(3).tolist(), settled
        ([0.0, 0.033, 0.4, 0.48], 16)
    """
    rises = min(round(_RISE / (_RISE - 1) * delay * capacity), events)
    settled = min(round(2 * delay * capacity), events // 2)
    return Stepped(((rises, _RISE), (max(events - rises, 1), rate))), settled


def _quality(run: Run, prepared: Prepared, operator: Operator, settled: int) -> Row:
    """Compare windows that open when the load has settled."""
    opens = operator.stream.cut.opens
    first = int(np.searchsorted(opens, settled))
    wanted, got = (found.between(first, len(opens)) for found in (prepared.truth.run.found, run.found))
    weights = [weight for _, weight in prepared.queries]
    exact, loose = strict(wanted, got, weights), relaxed(wanted, got, weights)
    return {
        "strict_fn": exact.lost, "strict_fp": exact.invented, "relaxed_fn": loose.lost, "relaxed_fp": loose.invented,
        "truth": len(wanted),
    }  # fmt: skip


def _load(run: Run, experiment: Experiment) -> Row:
    return {
        "drop_ratio": run.drop_ratio, "runs_dropped": run.runs_dropped,
        "overdue": run.overdue / max(1, len(run.latencies)), "latency_max": float(run.latencies.max(initial=0.0)),
        "latency_p50": run.percentile(0.5), "latency_p99": run.percentile(0.99), "latency_p999": run.percentile(0.999),
        "over_bound": run.over(experiment.bound),
    }  # fmt: skip
