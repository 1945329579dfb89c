"""Models that are out of date: what tells of it, and streams that go on from their checkpoint with a new model."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock as pk
from penstock.runtime.learning import learned
from penstock.shedding.drift import LibraryDrift
from penstock.shedding.storing import save
from penstock.spark.drifting import BLOCKS, DriftWatch
from penstock.spark.jobs.job import Job
from penstock.spark.jobs.running import run
from penstock.spark.losing import TOGETHER
from penstock.spark.progress import Progress
from penstock.spark.worker.bucket import Bucket, Given
from penstock.spark.worker.results import COUNTS, EVENT, MATCHES, OUTPUT, SHED
from penstock.spark.worker.spec import Spec
from tests.spark.frames import START_US
from tests.spark.test_shedding_workers import (
    ROWS,
    SECOND,
    blob_with,
    history,
    packed,
    shedding,
    slow,
    spec_for,
)  # fmt: skip

__all__ = ["history"]  # a fixture

METHODS = [None, "ADWIN", "PageHinkley"]  # None: the sign of eSPICE


# --- what tells of it ---------------------------------------------------------------------------------------------


def told(number: int, found: int, rows: int = 100, **more: int) -> Progress:
    """Return a micro-batch with so many rows and matches of keys that are never shed."""
    return Progress.of(number, 500, {"rows": 5000, "judged_rows": rows, "judged": found, **more}, 0)


def watched(watch: DriftWatch, rates: Any, seed: int = 0, first: int = 0) -> int | None:
    """Return since when there is drift, where matches come at these rates by row, one for each micro-batch."""
    random = np.random.default_rng(seed)
    for number, rate in enumerate(rates, first):
        rows = int(random.integers(50, 150))
        watch(told(number, int(random.poisson(rate * rows)), rows))
    return watch.since


def watch_with(method: str | None) -> DriftWatch:
    return DriftWatch(None if method is None else LibraryDrift(method))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(5))
def test_what_does_not_change_is_no_drift(method: str | None, seed: int) -> None:
    """Batches of any size, and matches by chance."""
    assert watched(watch_with(method), [0.05] * 1000, seed) is None


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("factor", [0.4, 2.0])
def test_fewer_or_more_matches_are_drift(method: str | None, factor: float) -> None:
    watch = watch_with(method)
    since = watched(watch, [0.05] * 300 + [0.05 * factor] * 300)
    assert since is not None
    assert 300 <= since < 300 + 2 * BLOCKS + 50


def test_it_is_said_once_and_loudly(caplog: pytest.LogCaptureFixture) -> None:
    watch = DriftWatch()
    with caplog.at_level(logging.WARNING):
        since = watched(watch, [0.05] * 200 + [0.01] * 500)
    assert [record.message.split(":")[0] for record in caplog.records] == [
        f"since batch {since}, rows have more or fewer matches than before"
    ]


def test_more_rows_with_more_matches_are_no_drift() -> None:
    watch = DriftWatch()
    for number in range(600):
        watch(told(number, 5 if number < 200 else 25, 100 if number < 200 else 500))
    assert watch.since is None


def test_rows_that_go_before_the_shuffle_whatever_their_key_are_no_drift() -> None:
    """Matches are fewer in such a batch and in those after it."""
    watch = DriftWatch()
    for number in range(800):
        is_burst = number > 200 and number % 20 <= TOGETHER
        overdue = {"shed": 50, "shed_early": 50, "shed_overdue": 50} if number % 20 == 0 and is_burst else {}
        watch(told(number, 0 if is_burst else 5, **overdue))
    assert watch.since is None
    for number in range(800, 1000):  # they are, if nothing says that rows went
        watch(told(number, 0 if number % 20 <= 2 * TOGETHER else 5))
    assert watch.since is not None


def test_without_marked_keys_batches_that_shed_nothing_tell() -> None:
    watch = DriftWatch()

    def take(number: int, found: int, shed_runs: int = 0) -> None:
        watch(Progress.of(number, 500, {"rows": 99, "processed": 99, "matches": found, "shed_runs": shed_runs}, 0))

    for number in range(1000):  # every other hundred is overload
        is_overload = number // 100 % 2 == 1
        take(number, 1 if is_overload or number % 100 < TOGETHER else 5, 7 if is_overload else 0)
    assert watch.since is None
    for number in range(1000, 1100):
        take(number, 1)
    assert watch.since is not None


def test_the_first_marked_key_makes_a_new_reference() -> None:
    """All rows and those of some keys need not have as many matches."""
    watch = DriftWatch()
    for number in range(100):
        watch(Progress.of(number, 500, {"rows": 99, "processed": 99, "matches": 50}, 0))
    assert watched(watch, [0.05] * 400, first=100) is None


# --- a new model under an old checkpoint --------------------------------------------------------------------------


def renamed(shed: pk.Shedding) -> pk.Shedding:
    """Return it with another model: each type is worth what another one was."""
    assert shed.types is not None
    *names, other = shed.types
    return shed.model_copy(update={"types": (*reversed(names), other)})


def outcome(shed: pk.Shedding, blob: bytes) -> tuple[list[int], list[Any], dict[str, Any]]:
    """Return what comes of a micro-batch after a restart: rows that are shed, matches, counts."""
    spec = spec_for(shed)
    Bucket.forget_live()
    bucket = Bucket.of(spec, [0], blob)
    gone, matches, counts = list[int](), list[Any](), dict[str, Any]()
    for table in bucket.step(Given.of(packed(spec, 1, 60 * SECOND, 200_000)), 0):
        for row in table.to_pylist():
            if row[OUTPUT] == SHED:
                gone.append(row[EVENT]["id"])
            elif row[OUTPUT] == MATCHES:
                matches.append((row["k"], *(row[variable][0]["id"] for variable in "abc")))
            elif row[COUNTS] is not None:
                counts = {name: value for name, value in row[COUNTS].items() if name not in ("work_us", "latency")}
    return sorted(gone), sorted(matches), counts


def left_by(shed: pk.Shedding) -> bytes:
    """Return the state of a bucket that has more to do than it can."""
    is_about_runs = shed.fitted().strategy.level == "runs"
    return blob_with(spec_for(shed), slow(ROWS, 800_000, 200.0 if is_about_runs else 0.0))


@pytest.mark.parametrize("name", ["ebl", "espice", "gspice-sh", "gspice-wh", "hspice-pm", "hspice-w"])
def test_a_stream_goes_on_with_the_model_that_it_is_told(name: str, history: Any) -> None:
    old = shedding(name, history, unshed=0.0)
    new = renamed(old)
    blob = left_by(old)
    with_old, with_new = outcome(old, blob), outcome(new, blob)
    assert with_old[2]["shed"] + with_old[2]["shed_partly"] > 0
    assert with_old != with_new
    if not name.startswith("gspice"):  # whose pane begins anew
        assert with_new == outcome(new, left_by(new)), "something of the old model is left"


@pytest.mark.parametrize("name", ["pspice", "pspice--"])
def test_runs_go_by_the_new_model(name: str, history: Any) -> None:
    """They do not ask for types: what was worth most is worth least."""
    old = shedding(name, history)
    model: Any = old.fitted().strategy
    new = old.model_copy(update={"model": replace(model, tables=tuple(table.max() - table for table in model.tables))})
    blob = left_by(old)
    with_old, with_new = outcome(old, blob), outcome(new, blob)
    assert with_old[2]["shed_runs"] > 0
    assert with_old[1] != with_new[1]
    assert with_new == outcome(new, left_by(new))


def test_a_pane_of_types_with_other_numbers_is_forgotten(history: Any) -> None:
    """Of a model with fewer types, there would be numbers of types that it does not have."""
    old = shedding("gspice-wh", history)
    bucket = Bucket.of(spec_for(renamed(old)), [0], left_by(old))
    same = Bucket.of(spec_for(old), [0], left_by(old))
    assert bucket.shedder is not None
    assert same.shedder is not None
    assert not len(bucket.shedder.strategy.state()["types"])
    assert bucket.shedder.rates.batches == same.shedder.rates.batches > 0


@pytest.mark.parametrize("before", ["random-event", "gspice-sh"])
@pytest.mark.parametrize("after", ["random-event", "gspice-sh"])
def test_rows_that_wait_are_worth_what_the_strategy_has_said(before: str, after: str, history: Any) -> None:
    """Where none has said anything, they are not taken for the least; and nothing is kept that nobody asks for."""

    def spec_of(name: str) -> Spec:
        return replace(spec_for(shedding(name, history, unshed=0.0)), watermark_us=3 * SECOND)

    bucket, worth = Bucket(spec_of(before), [0]), list[Any]()
    for number, name in ((0, before), (1, after), (2, after)):
        spec = spec_of(name)
        bucket = bucket if not number else Bucket(spec, [0], bucket.snapshot())
        list(bucket.step(Given.of(packed(spec, number, 60 * SECOND, 1000)), 0))
        assert len(bucket.waiting)
        worth.append(bucket.waiting.worth)
    assert [each is not None for each in worth] == [before == "gspice-sh", *[after == "gspice-sh"] * 2]
    if after == "gspice-sh":
        assert (~np.isnan(worth[2])).any()


@pytest.mark.parametrize(("before", "after"), [("gspice-wh", "espice"), ("espice", "gspice-wh"), ("pspice", "espice")])
def test_another_strategy_begins_anew(before: str, after: str, history: Any) -> None:
    """What a predecessor pane holds, and what batches took by runs, says nothing to it."""
    new = shedding(after, history, unshed=0.0)
    blob = left_by(shedding(before, history, unshed=0.0))
    counts = outcome(new, blob)[2]
    assert counts["rows"] == sum(counts[each] for each in ("processed", "late", "malformed", "shed", "held")) == ROWS
    bucket = Bucket.of(spec_for(new), [0], blob)
    assert bucket.shedder is not None
    assert not bucket.shedder.rates.batches


# --- on Spark -----------------------------------------------------------------------------------------------------

TEXT = "PATTERN SEQ(Small a, Large b) WHERE b.v > a.v WITHIN 1 s PARTITION BY card"
LAG_S = 88  # of a bound of 100: rows are not overdue, but some of them go before the shuffle


def some_events(rows: int, first: int = 0) -> pa.Table:
    """Return events of which one in ten is Large, and so worth ten times as much."""
    places = np.arange(first, first + rows)
    moments = pa.array(START_US + places * 10_000).cast(pa.timestamp("us", "UTC"))
    kinds = np.where(places % 10 == 9, "Large", "Small")
    return pa.table({"type": kinds, "ts": moments, "card": (places % 3).astype(str), "v": places, "id": places})


def test_a_job_goes_on_from_its_checkpoint_with_a_new_model(spark: SparkSession, tmp_path: Path) -> None:
    fitted = learned("gspice-sh", [(pk.parse(TEXT), 1.0)], some_events(3000), attributes=())
    assert fitted.types is not None
    other = {"Small": "Large", "Large": "Small"}
    models = [list(fitted.types), [other.get(name, name) for name in fitted.types]]
    (tmp_path / "in").mkdir()
    columns = {"arrived": f"current_timestamp() - INTERVAL {LAG_S} SECONDS"}
    job = Job.of(
        {
            "source": {"format": "parquet", "path": "in", "columns": columns},
            "detect": {"query": TEXT, "seq": "id", "arrival": "arrived"},
            "sink": {"format": "parquet", "path": "matches"},
            "shed": {"format": "parquet", "path": "shed"},
            "shedding": {"bound": "100 s", "strategy": "gspice-sh", "model": "model"},
            "run": {"checkpoint": "state", "trigger": "available-now", "name": "anew"},
        },
        tmp_path,
    )
    large = []
    for number, types in enumerate(models):
        save(fitted.strategy, tmp_path / "model", {"types": types})
        pq.write_table(some_events(600, 600 * number), tmp_path / "in" / f"{number}.parquet")
        totals = run(job, spark=spark)
        assert (totals.rows, totals.wrong) == (600, [])
        rows = spark.read.parquet(str(tmp_path / "shed")).where(f"id >= {600 * number}").collect()
        assert len(rows) == totals.shed == totals.shed_early > 0
        large.append(sum(row.type == "Large" for row in rows))
    assert large[0] <= 1, "the first one is worth little: nothing comes before it"
    assert large[1] >= 55
