"""Shedding in the workers, without Spark: what is shed follows from rows and state, and everything is counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import types as st

import penstock as pk
from penstock.engine.snapshots import SnapshotError, pack, unpack
from penstock.pattern import ast
from penstock.pattern.schema import Schema
from penstock.runtime.costs import Costs
from penstock.runtime.training import unshed
from penstock.shedding.overload.batches import BatchBound, BatchRates
from penstock.shedding.strategies.catalogue import STRATEGIES
from penstock.spark.columns import Columns, DetectError
from penstock.spark.detecting import spec_of
from penstock.spark.keys import keyed
from penstock.spark.shedding import attributes_of, needs_partitions, shed_of, sheds_from_windows
from penstock.spark.worker.bucket import Bucket, Given
from penstock.spark.worker.packing import BUCKET, Pack
from penstock.spark.worker.results import COUNTS, OUTPUT, SHED
from penstock.spark.worker.shedding import Shedder
from penstock.spark.worker.spec import NOW, TIE, Spec
from penstock.spark.worker.work import EVENT

QUERY = pk.parse("PATTERN SEQ(A a, B b, C c) WHERE a.v < b.v WITHIN 4 s PARTITION BY k", "abc")
FIELDS = {
    "type": st.StringType(), "ts": st.TimestampType(), "id": st.LongType(), "k": st.LongType(), "v": st.LongType(),
    "arrived": st.TimestampType(),
}  # fmt: skip
SECOND = 1_000_000
ROWS = 600
SCHEMA = Schema.model_validate({"types": {"*": {"k": "int", "v": "int"}}})
EVERY = sorted(STRATEGIES)


def events(rows: int, first: int = 0, seed: int = 0) -> dict[str, Any]:
    """Return events, 100 a second."""
    random = np.random.default_rng(seed + first)
    return {
        "type": random.choice(["A", "B", "C", "D"], rows),
        "ts": (first + np.arange(rows)) * SECOND // 100,
        "k": random.integers(0, 5, rows),
        "v": random.integers(0, 50, rows),
    }


@pytest.fixture(scope="module")
def history() -> Any:
    return unshed([(QUERY, 1.0)], events(4000, seed=7), Costs(), is_split=False, bins=1).history


def shedding(name: str, history: Any, **options: Any) -> pk.Shedding:
    """Return what a user would say."""
    made: dict[str, Any] = {"bound": "1 s", "strategy": name, **options}
    if not name.startswith("random"):
        made |= {"model": STRATEGIES[name].fitted(history), "types": history.names}
    return pk.Shedding(**made)


def spec_for(shed: pk.Shedding, query: ast.Query = QUERY, *, arrival: str | None = "arrived") -> Spec:
    """Return what workers are told."""
    fields = tuple(st.StructField(name, kind) for name, kind in FIELDS.items())
    (query,), keys = keyed([query], ())
    columns = Columns("type", "ts", "id", arrival, keys, tuple(FIELDS), fields)
    spec = spec_of([(query, 1.0)], columns, SCHEMA, keeps_partitions=needs_partitions(shed, [query]))
    assert set(attributes_of(shed)) <= set(FIELDS)
    counting = None if sheds_from_windows(shed, [query]) else spec.counting
    return replace(spec, max_runs=10**6, shed=shed_of(shed, spec, columns, is_shown=True), counting=counting)


def packed(spec: Spec, number: int, now: int, lag_us: int, rows: int = ROWS) -> list[dict[str, Any]]:
    """Return a micro-batch whose rows have waited up to `lag_us`, as it comes to the one bucket."""
    raw = events(rows, number * rows)
    arrived = now - np.linspace(lag_us, 0, rows).astype(np.int64)
    ids = np.arange(rows) + number * rows
    moment = pa.timestamp("us", "UTC")
    table = pa.table(
        {
            "type": pa.array(raw["type"]), "ts": pa.array(raw["ts"]).cast(moment), "id": pa.array(ids),
            "k": pa.array(raw["k"]), "v": pa.array(raw["v"]), "arrived": pa.array(arrived).cast(moment),
            TIE: pa.array(ids), BUCKET: pa.array(np.zeros(rows, np.int32)), NOW: pa.array(np.full(rows, now)),
        }
    )  # fmt: skip
    return [row for batch in Pack(spec, [0])(table.to_batches()) for row in batch.to_pylist()]


Slow = Callable[[float], BatchRates]  # the rates, of how much work a row is


def blob_with(spec: Spec, rates: BatchRates | Slow) -> bytes:
    """Return the state of a bucket that has measured these rates, and has had a batch."""
    bucket = Bucket(spec, [0])
    list(bucket.step(Given.of(packed(spec, 0, SECOND, 1000)), 0))
    bucket.snapshot()  # sweeps
    an_event = EVENT + sum(runs.sum() for runs in bucket.matching.engine.waiting(["A", "B", "C"])) / 3 / 5  # 5 keys
    bucket.shedder.rates = rates if isinstance(rates, BatchRates) else rates(an_event)  # type: ignore[union-attr]
    blob = bucket.snapshot()
    Bucket.forget_live()
    return blob


def slow(rows: float, lasted_us: float, runs: float = 0.0) -> Slow:
    """Return rates by which a batch of so many rows lasts so long; with so many runs, if these are what is shed."""

    def of(an_event: float) -> BatchRates:
        units = rows * (runs or an_event)
        rates = BatchRates(SECOND, 2, rows, units)
        for _ in range(20):
            rates.learn(0.0, 0.0, 0.0)
            rates.learn(rows, 0.0, 0.0)
            rates.learn(rows, units, lasted_us)
        return rates

    return of


def step(spec: Spec, blob: bytes, rows: list[dict[str, Any]]) -> tuple[dict[str, Any], list[int], bytes]:
    """Return the counts of a batch, the ids of the rows that it shed, and the state after it."""
    bucket = Bucket.of(spec, [0], blob)
    tables = list(bucket.step(Given.of(rows), 0))
    counts = next(row for row in pa.concat_tables(tables).column(COUNTS).to_pylist() if row is not None)
    shed = [row["event"]["id"] for table in tables for row in table.to_pylist() if row[OUTPUT] == SHED]
    return counts, sorted(shed), bucket.snapshot()


def adds_up(counts: dict[str, Any]) -> bool:
    return bool(counts["rows"] == sum(counts[name] for name in ("processed", "late", "malformed", "shed", "held")))


def test_durations_that_were_fitted_to_other_units_are_forgotten(history: Any) -> None:
    """As a release before this one has left them in a checkpoint: they would be off by the units."""
    spec = spec_for(shedding("espice", history))
    blob = blob_with(spec, slow(ROWS, 5 * SECOND))
    state = unpack(blob)
    assert Bucket.of(spec, [0], blob).shedder.rates.sums.any()  # type: ignore[union-attr]
    Bucket.forget_live()
    state["shedding"]["units"] = "events"
    assert not Bucket.of(spec, [0], pack(state)).shedder.rates.sums.any()  # type: ignore[union-attr]
    Bucket.forget_live()


@pytest.mark.parametrize("name", EVERY)
def test_nothing_is_shed_without_need(name: str, history: Any) -> None:
    spec = spec_for(shedding(name, history))
    blob = blob_with(spec, slow(ROWS, 20_000, 100.0 if spec.shed.strategy.level == "runs" else 0.0))  # type: ignore
    counts, shed, _ = step(spec, blob, packed(spec, 1, 2 * SECOND, 100_000))
    assert (counts["shed"], counts["shed_runs"], counts["shed_partly"], shed) == (0, 0, 0, [])
    assert adds_up(counts)


def run_twice(spec: Spec, blob: bytes) -> tuple[Any, Any, Any, Any]:
    """Run a batch twice from the same state; return its counts, the rows it shed, and the state after either run."""
    rows = packed(spec, 1, 2 * SECOND, 200_000)
    first, shed, after = step(spec, blob, rows)
    Bucket.forget_live()
    again, shed_again, after_again = step(spec, blob, rows)
    assert shed == shed_again
    ignored = {"work_us": 0, "latency": 0}
    assert first | ignored == again | ignored
    return first, shed, after, after_again


@pytest.mark.parametrize("name", EVERY)
def test_a_batch_that_is_run_again_sheds_the_same(name: str, history: Any) -> None:
    spec = spec_for(shedding(name, history))
    is_about_runs = spec.shed is not None and spec.shed.strategy.level == "runs"
    blob = blob_with(spec, slow(ROWS, 2_000_000, 40.0 if is_about_runs else 0.0))
    first, shed, after, after_again = run_twice(spec, blob)
    assert first["shed"] + first["shed_runs"] + first["shed_partly"] > 0, "the test sheds nothing"
    assert len(shed) == first["shed"]
    assert adds_up(first)
    assert after == after_again


def test_about_as_much_is_shed_as_there_is_too_much(history: Any) -> None:
    spec = spec_for(shedding("random-event", history))
    asked = int((events(ROWS, ROWS)["type"] != "D").sum())
    blob = blob_with(spec, slow(asked, 800_000))
    counts, _, _ = step(spec, blob, packed(spec, 1, 60 * SECOND, 200_000))  # after a pause that says nothing
    assert counts["shed"] / asked == pytest.approx(0.5, abs=0.06)  # there are 400 ms


@pytest.mark.parametrize("name", EVERY)
def test_rows_that_cannot_be_on_time_go_before_the_shuffle(name: str, history: Any) -> None:
    spec = spec_for(shedding(name, history))
    counts, shed, _ = step(spec, blob_with(spec, BatchRates()), packed(spec, 1, 9 * SECOND, 2 * SECOND))
    late = int((events(ROWS, ROWS)["type"] != "D")[: ROWS // 2].sum())  # no query asks for D
    assert counts["shed_early"] >= late
    assert counts["shed_overdue"] >= late
    assert adds_up(counts)
    assert len(shed) == counts["shed"]


def test_runs_are_dropped_to_as_many_as_there_is_time_for(history: Any) -> None:
    spec = spec_for(shedding("pspice", history))
    blob = blob_with(spec, slow(ROWS, 1_600_000, 100.0))
    counts, shed, _ = step(spec, blob, packed(spec, 1, 60 * SECOND, 200_000))  # after a pause that says nothing
    assert counts["shed_runs"] > 0
    assert shed == []


def test_a_checkpoint_of_before_shedding_is_read(history: Any) -> None:
    spec = spec_for(shedding("random-event", history))
    state = unpack(blob_with(spec, BatchRates()))
    old = {name: value for name, value in state.items() if name not in ("shedding", "waiting_worth")}
    counts, _, _ = step(spec, pack(old), packed(spec, 1, 2 * SECOND, 1000))
    assert counts["processed"] == ROWS


def test_a_checkpoint_in_which_buckets_had_other_names_is_refused(history: Any) -> None:
    spec = spec_for(shedding("random-event", history))
    state = unpack(blob_with(spec, BatchRates())) | {"version": 2}
    with pytest.raises(SnapshotError, match="the checkpoint has format 2; this penstock reads 3"):
        step(spec, pack(state), packed(spec, 1, 2 * SECOND, 1000))


def test_a_type_that_the_model_does_not_know_stays(history: Any) -> None:
    made = shedding("espice", history)
    spec = spec_for(made.model_copy(update={"types": ("A", "x", "y", "z")}))
    counts, shed, _ = step(spec, blob_with(spec, slow(ROWS, 4_000_000)), packed(spec, 1, 2 * SECOND, 1000))
    types = dict(zip(range(ROWS, 2 * ROWS), events(ROWS, ROWS)["type"], strict=True))
    assert {types[each] for each in shed} == {"A"}
    assert counts["shed"] == len(shed)


MANY = pk.parse("PATTERN SEQ(A a, B b, C c) WITHIN 4 s PARTITION BY k WINDOW 4 s EVERY 40 ms", "many")
LONGER = pk.parse("PATTERN SEQ(A a, B b, C c, D d) WITHIN 4 s PARTITION BY k", "longer")


@pytest.mark.parametrize(
    ("name", "query", "arrival", "told"),
    [
        ("random-event", QUERY, None, "fix: give arrival="),
        ("espice", MANY, "arrived", "an event is in 100 windows, and espice tells 62 apart"),
        ("pspice", LONGER, "arrived", "the model of pspice is of queries with [4] states, and these have [5]"),
    ],
)
def test_what_does_not_fit_is_refused(
    name: str, query: ast.Query, arrival: str | None, told: str, history: Any
) -> None:
    with pytest.raises(DetectError) as error:
        spec_for(shedding(name, history), query, arrival=arrival)
    assert told in str(error.value)


def test_a_model_without_types_is_refused(history: Any) -> None:
    with pytest.raises(DetectError, match="which types it is about"):
        spec_for(shedding("espice", history).model_copy(update={"types": None}))


def host(
    rate: float, capacity: float, *, overhead_s: float = 0.25, row_s: float = 0.0, noise: float = 0.0,
    pauses: float = 0.0, batches: int = 200, quiet: int = 0, settled: int = 20,
) -> tuple[Any, Any, BatchBound]:  # fmt: skip
    """Return the latencies of all events that a host processed, and the shares of batches that it did.

    What it does in a batch takes `overhead_s`, and a time for each event that comes and for each that is processed,
    more or less; sometimes it pauses. In the first, `quiet` batches a tenth of the rate comes. The first ones do not
    count, until it is settled.
    """
    bound, rates, random = BatchBound(2e6, 0.8), BatchRates(), np.random.default_rng(1)
    now, lag, latencies, shares = 0.0, 2e5, [], []
    for number in range(batches):
        lags = np.linspace(lag, 0, max(1, int(rate * lag / 1e6 / (10 if number < quiet else 1))))
        rates.begin(int(now), lag, bound.bound)
        doable, rows = bound.doable(len(lags), rates), len(lags)
        lags_kept = lags[lags <= bound.longest_lag(rows, min(doable, rows), rates)]
        done = min(len(lags_kept), doable)
        rates.end(rows, done, bound.expected(rows, done, rates))
        lasted = (overhead_s + row_s * rows + done / capacity) * 1e6 * np.exp(noise * random.standard_normal())
        lasted += 1e6 * random.random() if random.random() < pauses else 0.0
        if number > settled:
            latencies.append(lags_kept[random.random(len(lags_kept)) < done / max(1, len(lags_kept))] + lasted)
            shares.append(done / len(lags))
        lag, now = lasted, now + lasted
    return np.concatenate(latencies), np.array(shares), bound


@pytest.mark.parametrize("row_s", [0.0, 1e-5])
@pytest.mark.parametrize("overhead_s", [0.25, 0.5])
def test_a_rate_that_rises_tenfold_is_learned_within_a_few_batches(overhead_s: float, row_s: float) -> None:
    """A host's own time is most of its small batches; it must not be taken for that of the events."""
    rate, capacity = 20_000, 15_000
    latencies, shares, bound = host(
        rate, capacity, overhead_s=overhead_s, row_s=row_s, quiet=10, settled=15, batches=25, noise=0.03
    )  # fmt: skip
    possible = (0.8 - overhead_s - row_s * 0.8 * rate) * capacity / (0.8 * rate)
    assert shares.mean() >= 0.85 * possible
    assert np.percentile(latencies, 99) <= bound.bound


@pytest.mark.parametrize(
    ("rate", "capacity"), [(30_000, 20_000), (200_000, 20_000), (10_000, 20_000), (40_000, 20_000)]
)
def test_batches_settle_within_half_the_bound(rate: float, capacity: float) -> None:
    """At several times the capacity, with an overhead of Spark's own: the lag settles, whatever the rate."""
    latencies, shares, bound = host(rate, capacity)
    assert latencies.max() <= 0.92 * bound.bound
    if rate < capacity:
        assert shares.min() == 1.0
    else:
        assert shares[-1] == pytest.approx(min(1.0, capacity / rate * (0.8 - 0.25) / 0.8), rel=0.2)


@pytest.mark.parametrize(("overhead_s", "noise", "pauses"), [(0.25, 0.1, 0.01), (0.5, 0.25, 0.01), (0.8, 0.2, 0.0)])
def test_the_bound_is_kept_on_a_busy_host(overhead_s: float, noise: float, pauses: float) -> None:
    """Batches of the same work last now longer and now shorter; and a host may be slow to begin with."""
    latencies, shares, bound = host(
        40_000, 20_000, overhead_s=overhead_s, noise=noise, pauses=pauses, batches=600
    )  # fmt: skip
    assert np.percentile(latencies, 99) <= bound.bound
    assert shares.mean() > 0.05


def test_where_the_host_alone_is_too_slow_young_events_are_processed() -> None:
    latencies, shares, bound = host(5_000, 20_000, overhead_s=1.4, noise=0.1)
    assert shares.mean() > 0.03
    assert np.percentile(latencies, 90) <= bound.bound


@pytest.mark.parametrize("name", EVERY)
def test_a_strategy_decides_once_when_a_stream_begins(name: str, history: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_for(shedding(name, history))
    assert spec.shed is not None
    kind = type(spec.shed.strategy)
    calls, decide = [], kind.decide

    def noted(self: Any, view: Any) -> Any:
        calls.append(len(view))
        return decide(self, view)

    monkeypatch.setattr(kind, "decide", noted)
    monkeypatch.setattr("penstock.spark.worker.shedding._ready", set())
    before = dict(spec.shed.strategy.state())
    for _ in range(3):
        Shedder(spec)
    assert calls == ([] if spec.shed.strategy.level == "runs" else [1])
    assert dict(spec.shed.strategy.state()).keys() == before.keys()
    assert all(np.array_equal(value, before[each]) for each, value in spec.shed.strategy.state().items())


UNLIKE = pk.parse(
    "PATTERN SEQ(A a, B | F b, NOT X x, C c) WHERE abs(a.v - b.v) > 45 AND abs(b.v - c.v) > 45 WITHIN 2 s "
    "PARTITION BY k",
    "unlike",
)
RATE = 3000  # events a second, in a bucket that can do about half of them


def of_unlike_types(first: int, rows: int) -> dict[str, Any]:
    """Return events of which F asks as many runs as B, and is hardly ever part of a match."""
    random = np.random.default_rng(first)
    types = random.choice(["A", "B", "C", "F"], rows, p=[0.35, 0.2, 0.25, 0.2])
    values = np.where(types == "F", 25, random.integers(0, 50, rows))
    return {
        "type": types,
        "ts": (first + np.arange(rows)) * SECOND // RATE,
        "k": random.integers(0, 5, rows),
        "v": values,
    }


def as_packed(spec: Spec, first: int, rows: int, now: int) -> list[dict[str, Any]]:
    """Return these events as they come to a bucket; they arrive as they happen."""
    raw, moment = of_unlike_types(first, rows), pa.timestamp("us", "UTC")
    ids = np.arange(first, first + rows)
    ts = pa.array(raw["ts"]).cast(moment)
    table = pa.table(
        {
            "type": pa.array(raw["type"]), "ts": ts, "id": pa.array(ids), "k": pa.array(raw["k"]),
            "v": pa.array(raw["v"]), "arrived": ts, TIE: pa.array(ids), BUCKET: pa.array(np.zeros(rows, np.int32)),
            NOW: pa.array(np.full(rows, now)),
        }
    )  # fmt: skip
    return [row for batch in Pack(spec, [0])(table.to_batches()) for row in batch.to_pylist()]


@pytest.mark.parametrize("name", ["ebl", "espice"])
def test_batches_last_as_expected_though_types_are_not_equally_much_work(name: str) -> None:
    """The time of a batch is that of the runs that it asks. What a strategy sheds first is most of the load."""
    learned = unshed([(UNLIKE, 1.0)], of_unlike_types(0, 8000), Costs(), is_split=False, bins=1).history
    spec, now, first = spec_for(shedding(name, learned, bound="2 s"), UNLIKE), SECOND, 0
    bucket, checked, off, shed, overdue, rows = Bucket(spec, [0]), 0, [], 0, 0, 0
    for number in range(40):
        size = now * RATE // SECOND - first
        tables = list(bucket.step(Given.of(as_packed(spec, first, size, now)), 0))
        assert bucket.shedder is not None
        checks = bucket.matching.engine.work["checks"]
        lasted, expected = 400_000 + checks - checked, bucket.shedder.rates.expected
        if number >= 15:
            off.append(abs(lasted - expected))
            counts = next(row for row in pa.concat_tables(tables).column(COUNTS).to_pylist() if row is not None)
            shed, overdue, rows = (
                shed + counts["shed"] + counts["shed_partly"],
                overdue + counts["shed_overdue"],
                rows + size,
            )
        bucket.snapshot()  # sweeps
        checked, first, now = checks, first + size, now + lasted
    assert shed > 0.1 * rows
    assert overdue < 0.01 * rows
    assert np.mean(off) < 33_000  # 45,000 with E-BL, if all types are taken to be equally much work
