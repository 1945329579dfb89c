"""Drivers and workers die at any time; what the sink holds in the end is what an undisturbed run gives."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.spark import detect
from tests.spark.frames import events, frame_of, in_one_process, matches_in, on_spark
from tests.spark.kafka.broker import Broker, jars
from tests.spark.recovery_driver import EVENTS, MATCHES
from tests.spark.test_detect import KEYED, ended, files

ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 900
KILLS = 3
OFFSETS = "checkpoint/offsets/*"  # a file for each batch that was begun


def committed(folder: Path) -> int:
    """Return how many batches Spark has recorded as done."""
    return len([path for path in folder.glob("checkpoint/commits/*") if path.name.isdigit()])


def start(folder: Path, log: Path, *kafka: str) -> subprocess.Popen[bytes]:
    """Start a driver in a group of processes of its own."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.spark.recovery_driver", str(folder), *kafka],
            cwd=ROOT, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip


def is_in_a_batch(folder: Path) -> bool:
    """Return whether Spark has begun a batch, by its log of offsets, that it has not recorded as done."""
    return any(path.name.isdigit() and int(path.name) >= committed(folder) for path in folder.glob(OFFSETS))


def kill_after(driver: subprocess.Popen[bytes], folder: Path, batches: int, seconds: float) -> bool:
    """Kill a driver, with its JVM, some time after it has done some more batches; return whether it was in a batch."""
    wanted = committed(folder) + batches
    while committed(folder) < wanted:
        assert driver.poll() is None, "it has ended before it was killed"
        time.sleep(0.02)
    time.sleep(seconds)
    assert driver.poll() is None, "it has ended before it was killed"
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    return is_in_a_batch(folder)


def survive(folder: Path, kills: int, *kafka: str) -> None:
    """Run a stream to its end with drivers that are killed so many times, most of them in a batch."""
    random, log, in_a_batch = Random(kills), folder / "driver.log", 0
    try:
        for _ in range(kills):
            driver = start(folder, log, *kafka)
            in_a_batch += kill_after(driver, folder, random.randint(1, 2), random.random())
        assert start(folder, log, *kafka).wait(LIMIT_SECONDS) == 0
    except AssertionError:
        print(log.read_text()[-3000:])
        raise
    print(f"{in_a_batch} of {kills} drivers were killed in a batch")
    assert in_a_batch > kills // 2, "most were killed between two batches, which is no trouble"


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_a_driver_that_is_killed_again_and_again_loses_and_doubles_nothing(
    spark: SparkSession, tmp_path: Path, kills: int
) -> None:
    table, count = events(25 * 3 * kills), 3 * kills
    files(ended(table), tmp_path / "in", count)
    frame_of(spark, table.slice(0, 1), tmp_path / "schema")
    survive(tmp_path, kills)
    # The source notes its next file before Spark notes the batch: a kill between the two makes one batch of two files.
    assert committed(tmp_path) >= count - kills
    assert on_spark(spark.read.parquet(str(tmp_path / "out")), KEYED) == in_one_process(KEYED, table)


@pytest.mark.kafka
@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_from_kafka_to_kafka_readers_of_committed_records_see_each_match_once(tmp_path: Path, kills: int) -> None:
    table = events(25 * 3 * kills)
    pq.write_table(table.slice(0, 1), tmp_path / "schema")
    with Broker() as broker:
        broker.create_topic(EVENTS)
        broker.create_topic(MATCHES)
        producer = broker.producer()
        for row in ended(table).to_pylist():
            producer.produce(EVENTS, json.dumps(row | {"ts": row["ts"].isoformat()}))
        producer.flush()
        survive(tmp_path, kills, broker.servers, *jars().spark_jars.split(","))
        found = [json.loads(record.value or b"") for record in broker.read(MATCHES)]
    assert matches_in(found, KEYED) == in_one_process(KEYED, table)


def status(process: int) -> tuple[str, int]:
    """Return whether a process is running (R) or waiting (S), and its parent."""
    state, parent = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:2]
    return state, int(parent)


def busy_workers() -> list[int]:
    """Return the ids of the Python workers of this process' Spark that are at work."""
    found = []
    for path in Path("/proc").iterdir():
        try:
            if not path.name.isdigit() or b"pyspark.daemon" not in (path / "cmdline").read_bytes():
                continue
            state, daemon = status(int(path.name))
            _, java = status(daemon)
            is_worker = b"pyspark.daemon" in Path(f"/proc/{daemon}/cmdline").read_bytes()
            if state == "R" and is_worker and status(java)[1] == os.getpid():
                found.append(int(path.name))
        except OSError:
            continue  # it ended meanwhile
    return found


def failed_tasks(spark: SparkSession, query: StreamingQuery) -> int:
    """Return how many tasks of a stream have failed, and so were run again, or the stream would have ended."""
    tracker = spark.sparkContext.statusTracker()
    jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(str(query.runId)))
    stages = {stage: tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds}
    return sum(stage.numFailedTasks for stage in stages.values() if stage)


def test_a_worker_that_is_killed_in_a_batch_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = events(1200)
    source = tmp_path / "in"
    files(ended(table), source, 12)
    schema = frame_of(spark, table, tmp_path / "all").schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
    found = stream.transform(detect(KEYED, by="card", seq="id"))
    writer = found.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    query = writer.start()
    killed = 0
    while query.isActive:
        if committed(tmp_path) > 2 * killed and failed_tasks(spark, query) < KILLS:
            for pid in busy_workers()[:1]:
                os.kill(pid, signal.SIGKILL)
                killed += 1
        time.sleep(0.005)
    query.awaitTermination()
    assert failed_tasks(spark, query) >= KILLS, f"{killed} workers were killed, perhaps between two tasks"
    assert on_spark(spark.read.parquet(str(tmp_path / "out")), KEYED) == in_one_process(KEYED, table)
