"""Shedding on real Spark sessions: a batch that is run again after a SIGKILL sheds the same rows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import penstock as pk
from penstock.runtime.costs import Costs
from penstock.runtime.training import unshed
from penstock.shedding.storing import save
from penstock.shedding.strategies.catalogue import STRATEGIES
from penstock.spark import DetectError, detect, output
from tests.spark.frames import events, frame_of
from tests.spark.shedding_driver import FROM_WINDOWS, HANGS_FROM, QUERY, WINDOWED
from tests.spark.test_detect import files, run_stream

ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 300
BATCHES = 4  # the first attempt at the last one does not end


def killed_in_its_first_attempts(folder: Path, strategy: str) -> None:
    """Run the driver to its end; kill it whenever a batch has been written once and is not committed."""
    log = folder / "driver.log"
    for _ in range(BATCHES):
        with log.open("ab") as out:
            driver = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.shedding_driver", str(folder), strategy],
                cwd=ROOT, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
        before, last = len(list(folder.glob("attempts/*.0"))), time.monotonic() + LIMIT_SECONDS
        while driver.poll() is None and time.monotonic() < last:
            if len(list(folder.glob("attempts/*.0"))) > max(before, HANGS_FROM):
                break
            time.sleep(0.05)
        if driver.poll() is not None:
            assert driver.returncode == 0, log.read_text()[-3000:]
            return
        time.sleep(0.2)
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    pytest.fail("the driver did not come to an end")


@pytest.mark.parametrize(
    "strategy",
    [
        "random-event",
        pytest.param("espice", marks=pytest.mark.slow),
        pytest.param("espice" + FROM_WINDOWS, marks=pytest.mark.slow),
    ],
)
def test_a_batch_that_is_run_again_after_a_kill_sheds_the_same(tmp_path: Path, strategy: str) -> None:
    table = events(2000 * BATCHES)
    files(table, tmp_path / "in", BATCHES)
    import pyarrow.parquet as pq

    pq.write_table(table.slice(0, 1), tmp_path / "schema")
    if strategy != "random-event":
        is_split = strategy.endswith(FROM_WINDOWS)
        query = replace(WINDOWED, partition=()) if is_split else QUERY
        history = unshed(
            [(query, 1.0)], table.slice(0, 4000), Costs(), is_split=is_split, bins=4 if is_split else 1
        ).history
        assert history is not None
        save(
            STRATEGIES[strategy.removesuffix(FROM_WINDOWS)].fitted(history),
            tmp_path / "model",
            {"types": list(history.names)},
        )
    killed_in_its_first_attempts(tmp_path, strategy)
    attempts: dict[int, list[Any]] = {}
    for path in sorted(tmp_path.glob("attempts/*")):
        attempts.setdefault(int(path.name.split(".")[0]), []).append(json.loads(path.read_text()))
    assert sorted(attempts) == list(range(BATCHES))
    twice = [each for each in attempts.values() if len(each) > 1]
    assert twice, "no batch was run twice"
    assert all(first == second for first, second, *_ in twice)
    assert all(first[0] for first, *_ in twice), "these batches shed nothing"


def test_counts_and_shed_rows_add_up(spark: SparkSession, tmp_path: Path) -> None:
    table = events(900)
    files(table, tmp_path / "in", 3)
    schema = frame_of(spark, table, tmp_path / "all").schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    now = sf.unix_micros(sf.current_timestamp())
    stream = stream.withColumn("arrived", sf.timestamp_micros(now - sf.col("x").cast("long") * 20_000))
    asked = detect(
        QUERY, seq="id", arrival="arrived", shed=pk.Shedding(bound="1 s"), outputs=["matches", "shed", "malformed"]
    )  # fmt: skip
    query = run_stream(spark, stream.transform(asked), tmp_path / "out", tmp_path / "checkpoint")
    counts = [p.observedMetrics["penstock"].asDict() for p in query.recentProgress if p.numInputRows]
    assert [c["rows"] for c in counts] == [300, 300, 300]
    assert all(c["rows"] == c["processed"] + c["late"] + c["malformed"] + c["shed"] + c["held"] for c in counts)
    shed = output(spark.read.parquet(str(tmp_path / "out")), "shed").collect()
    assert len(shed) == sum(c["shed"] for c in counts)
    assert {row.id for row in shed if "on time" in row.reason} >= {
        row["id"] for row in table.to_pylist() if row["x"] >= 51 and row["type"] != "D"
    }


def test_a_batch_frame_has_no_bound(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark, events(10), tmp_path)
    with pytest.raises(DetectError, match="a batch has no latency bound to keep"):
        frame.transform(detect(QUERY, seq="id", arrival="ts", shed=pk.Shedding(bound="1 s")))
