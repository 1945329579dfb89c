from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from penstock.spark.session import KAFKA, session, settings

LISTENING = "0A"
LOOPBACKS = {
    "0100007F",  # 127.0.0.1, as the kernel writes it
    "0000000000000000FFFF00000100007F",  # the same, mapped into IPv6
}


def doubled(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"id": [2 * number for number in batch.column("id").to_pylist()]})


def interpreter(batches: Iterator[Any]) -> Iterator[Any]:
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"python": [sys.executable]})


def unchanged(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


class TestClassic:
    def test_answers(self, spark: SparkSession) -> None:
        assert spark.range(10).where(sf.col("id") % 3 == 0).count() == 4

    def test_arrow_reaches_the_workers(self, spark: SparkSession) -> None:
        found = spark.range(5).mapInArrow(doubled, "id long").collect()
        assert sorted(row.id for row in found) == [0, 2, 4, 6, 8]

    def test_workers_run_this_python(self, spark: SparkSession) -> None:
        found = spark.range(1, numPartitions=1).mapInArrow(interpreter, "python string").collect()
        assert [row.python for row in found] == [sys.executable]

    def test_as_many_partitions_as_cores(self, spark: SparkSession) -> None:
        assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
        assert spark.sparkContext.defaultParallelism == 2

    def test_a_second_one_is_the_first(self, spark: SparkSession) -> None:
        assert session(cores=2) is spark

    @pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="asks Linux for the sockets of a process")
    def test_listens_on_loopback_only(self, spark: SparkSession) -> None:
        spark.range(1).mapInArrow(unchanged, "id long").collect()  # with workers, and the port that they call
        gateway: Any = spark.sparkContext._gateway
        addresses = _listening(gateway.proc.pid)
        assert addresses
        assert addresses <= LOOPBACKS

    def test_an_hour_that_comes_twice_is_two_instants(self, spark: SparkSession) -> None:
        """Why the session's time zone may be any: clocks went back in Berlin at 01:00 UTC, and Arrow keeps instants."""
        first = datetime(2025, 10, 26, 0, 30, tzinfo=UTC)
        instants = [int((first + timedelta(hours=hour)).timestamp()) for hour in (0, 1)]
        zone = spark.conf.get("spark.sql.session.timeZone") or ""
        spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
        try:
            times = spark.createDataFrame([(each,) for each in instants], "s long").select(sf.timestamp_seconds("s"))
            found = (
                times.toDF("t").mapInArrow(unchanged, "t timestamp").select(sf.unix_seconds("t").alias("s")).collect()
            )
        finally:
            spark.conf.set("spark.sql.session.timeZone", zone)
        assert sorted(row.s for row in found) == instants


class TestConnect:
    def test_answers(self, connect: SparkSession) -> None:
        assert connect.range(10).where(sf.col("id") % 3 == 0).count() == 4

    def test_arrow_reaches_the_workers(self, connect: SparkSession) -> None:
        found = connect.range(5).mapInArrow(doubled, "id long").collect()
        assert sorted(row.id for row in found) == [0, 2, 4, 6, 8]


def test_both_in_one_process(spark: SparkSession, connect: SparkSession) -> None:
    assert type(spark) is not type(connect)
    assert spark.range(3).count() == connect.range(3).count()


class TestSettings:
    def test_partitions_and_extensions(self) -> None:
        found = settings(3, [KAFKA, "a:b:1"], [Path("/x.jar"), "/y.jar"], {})
        assert found["spark.sql.shuffle.partitions"] == 3
        assert found["spark.jars.packages"] == f"{KAFKA},a:b:1"
        assert found["spark.jars"] == "/x.jar,/y.jar"

    def test_nothing_to_fetch_if_nothing_is_named(self) -> None:
        assert not {"spark.jars", "spark.jars.packages"} & set(settings(2, [], [], {}))

    def test_the_users_go_first_and_none_leaves_it_to_spark(self) -> None:
        files = "spark.sql.streaming.checkpointFileManagerClass"
        found = settings(2, [], [], {"spark.ui.enabled": True, "spark.sql.shuffle.partitions": 9, files: None})
        assert found["spark.ui.enabled"] is True
        assert found["spark.sql.shuffle.partitions"] == 9
        assert files not in found
        assert files in settings(2, [], [], {})

    def test_java_options_are_added_to_ours(self) -> None:
        found = str(
            settings(2, [], [], {"spark.driver.extraJavaOptions": "-Xss8m -Da=b"})["spark.driver.extraJavaOptions"]
        )
        logging, ours, *theirs = found.split(" ")
        assert theirs == ["-Xss8m", "-Da=b"]  # last: so they win
        assert ours.startswith("-Xss")
        assert Path(logging.partition("file://")[2]).is_file()


def _listening(process: int) -> set[str]:
    """Return the addresses that a process listens on."""
    sockets = set()
    for entry in Path(f"/proc/{process}/fd").iterdir():
        try:
            sockets.add(os.readlink(entry))
        except FileNotFoundError:  # closed in between
            continue
    addresses = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and f"socket:[{fields[9]}]" in sockets:
                addresses.add(fields[1].partition(":")[0])
    return addresses
