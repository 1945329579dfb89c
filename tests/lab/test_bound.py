"""The bound is kept by every strategy on the queries of thesis table 4.2, on made streams and on recorded ones."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

import penstock as pk
from penstock.lab.generators import Soccer, Stocks
from penstock.lab.readers import read_minute_bars, read_soccer_match
from penstock.runtime.clocks import VirtualClock
from penstock.runtime.costs import Costs
from penstock.runtime.matching import Operator
from penstock.runtime.measures import Run
from penstock.runtime.profiles import Constant
from penstock.runtime.running import Loop, Shedder
from penstock.runtime.training import Unshed, unshed
from penstock.shedding.overload.latency import LatencyDetector
from penstock.shedding.overload.load import Detector
from penstock.shedding.overload.queueing import QueueDetector
from penstock.shedding.strategies.catalogue import STRATEGIES

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
BOUND, F, CAPACITY = 1.0, 0.8, 2000.0
ROWS = 24_000
QUERIES = ("q1", "q2", "q3", "q4", "q6")


def queries(name: str, move: float) -> list[tuple[pk.Query, float]]:
    """Return queries of table 4.2 with windows of 400 events, or 10 s; what counts as a move is as given."""
    if name == "q3":  # Q1 or Q2: both in one operator, in the windows of Q2
        (one, _), (other, _) = (queries(each, move)[0] for each in ("q1", "q2"))
        return [(replace(one, window=other.window, source=None), 1.0), (other, 1.0)]
    text = (ROOT / "tests" / "queries" / f"thesis-table4.2-{name}.cep").read_text(encoding="utf-8")
    for old, new in (("1200 events", "400 events"), ("600 events", "400 events"), ("30 seconds", "10 seconds"),
                     ("1.01", str(1 + move)), ("0.99)", f"{1 - move})"), ("0.99\n", f"{1 - move}\n")):  # fmt: skip
        text = text.replace(old, new)
    return [(pk.parse(text), 1.0)]


@cache
def events(name: str, source: str) -> pa.Table:
    if source == "made":
        stream = Soccer(seed=1) if name == "q6" else Stocks(seed=1, symbols=60, leaders=1)
        return stream.table(2 * ROWS)
    if not DATA.is_dir():
        pytest.skip("the recorded streams are not beside the project")
    if name == "q6":
        return read_soccer_match(DATA / "soccer_match_positions_2019.parquet").slice(0, 2 * ROWS)
    return read_minute_bars(DATA / "us_minute_bars_2018.parquet", leaders=1, rows=2 * ROWS)


@cache
def prepared(name: str, source: str) -> tuple[Unshed, Costs, pa.Table]:
    """Return what was learned from the first half of a stream, the costs, and the second half."""
    table, move = events(name, source), 0.01 if source == "made" else 0.0005
    half = table.num_rows // 2
    plain = unshed(queries(name, move), table.slice(0, half), Costs(), is_split=True, is_observed=False)
    costs = Costs().scaled(plain.capacity / CAPACITY)
    return unshed(queries(name, move), table.slice(0, half), costs, is_split=True), costs, table.slice(half)


def shed_run(name: str, source: str, strategy: str, rate: float) -> Run:
    learned, costs, later = prepared(name, source)
    assert learned.history is not None
    operator = Operator(
        queries(name, 0.01 if source == "made" else 0.0005), is_split=True, names=learned.history.names
    )  # fmt: skip
    operator.take(later)
    made = STRATEGIES[strategy].fitted(learned.history)
    detector: Detector = QueueDetector(BOUND, F)
    if made.level == "runs":
        detector = LatencyDetector(BOUND, (1 - F) * BOUND, learned.event_time, learned.shed_time)
    clock = VirtualClock(Constant(rate).arrivals(operator.stream.size, learned.capacity))
    return Loop(operator, clock, costs, Shedder(made, detector, BOUND, F), full_time=learned.event_seconds)()


@pytest.mark.parametrize("strategy", ["espice", "pspice", "hspice-pm", "gspice-sh"])
@pytest.mark.parametrize("source", ["made", "recorded"])
@pytest.mark.parametrize("name", QUERIES)
def test_the_bound_is_kept(name: str, source: str, strategy: str) -> None:
    run = shed_run(name, source, strategy, 1.8)
    assert run.latencies.max() <= BOUND


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1.2, 1.4, 1.6, 1.8, 2.0, 10.0])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("source", ["made", "recorded"])
@pytest.mark.parametrize("name", QUERIES)
def test_the_bound_is_kept_by_all_at_all_rates(name: str, source: str, strategy: str, rate: float) -> None:
    run = shed_run(name, source, strategy, rate)
    assert run.latencies.max() <= BOUND
