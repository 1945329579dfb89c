"""A Spark session on this machine, which starts without set-up and suits a machine with few cores."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from pyspark import __version__
from pyspark.sql import SparkSession

from penstock.spark.java import use_java

Value: TypeAlias = bool | float | int | str | None

LOOPBACK = "127.0.0.1"
KAFKA = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{__version__}"
"""Spark's Kafka source and sink, for `session(packages=[KAFKA])`."""

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOGGING = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"

# To hide passwords, Spark searches the plan of a stream that stops with a pattern that calls itself once per character:
# with Java's 1 MB, a long plan ends in a StackOverflowError. A thread takes up what it uses.
_STACK = "-Xss16m"

_ATTEMPTS = 4  # of a task whose worker dies, as on a cluster; a local master would give up at once

_SETTINGS = {
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # The one streaming setting that pays. Spark's own choice asks about files by starting `readlink`, and so starts
    # some 20 processes for a micro-batch; this one starts 4 or 5, and renames just as safely on a local disk. For
    # checkpoints on HDFS give None. A small stateful query in Python (100 events a micro-batch, 2 partitions, 2 busy
    # cores), 60 micro-batches each way, in turns: 654 ms and 411 ms of processor time with Spark's choice, 384 ms and
    # 289 ms with this one. Seven more such comparisons, each beside other settings: 27 to 34 % less processor time.
    # No difference beyond the noise, and so left to Spark: file checksums, validation of commits and formats, purging
    # of logs, minBatchesToRetain, minDeltasForSnapshot, RocksDB, pollingDelay, noDataMicroBatches, adaptive execution,
    # whole-stage code generation, compression and checksums of shuffles, locality wait. Unix sockets to workers cost
    # more. Workers are reused anyway, and metrics are off.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


def session(
    app: str = "penstock",
    cores: int | None = None,
    *,
    packages: Iterable[str] = (),
    jars: Iterable[str | Path] = (),
    **conf: Value,
) -> SparkSession:
    """Start a Spark session in this process, or return the one that is running.

    It listens on the loopback interface only, shows no user interface and no progress bar, logs errors only, and
    makes as many partitions in a shuffle as there are cores. Its Python workers run this Python.

    The session's time zone stays the machine's: a timestamp is an instant in Spark, and reaches penstock as one; the
    time zone only decides how it is shown and how text without a zone is read.

    Args:
        app: The application's name.
        cores: How many cores to use; all that this process may use, if not given.
        packages: Maven coordinates of extensions, fetched when the session starts.
        jars: Files of extensions.
        conf: More of Spark's settings; they win over those above. None leaves a setting to Spark.

    Raises:
        JavaError: There is no Java that can run Spark.

    Examples:
        >>> spark = session("fraud", packages=[KAFKA], **{"spark.driver.memory": "4g"})  # doctest: +SKIP
    """
    use_java()
    os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)  # the user interface binds to it, and to nothing else
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else the first `python3` on PATH, of any environment
    threads = cores or _cores()
    builder = SparkSession.builder.master(f"local[{threads},{_ATTEMPTS}]").appName(app)
    return builder.config(map=settings(threads, packages, jars, conf)).getOrCreate()


@contextmanager
def borrowed(app: str) -> Iterator[SparkSession]:
    """Give the session that is running in this process, which stays; or a new one, which is stopped after use.

    Raises:
        JavaError: There is no Java that can run Spark.
    """
    use_java()
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    running = session(app)
    try:
        yield running
    finally:
        running.stop()


def settings(
    cores: int, packages: Iterable[str], jars: Iterable[str | Path], conf: Mapping[str, Value]
) -> dict[str, Value]:
    """Return the settings of a session: ours, unless the user's say otherwise."""
    chosen: dict[str, Value] = {
        **_SETTINGS,
        "spark.sql.shuffle.partitions": cores,
        "spark.jars.packages": ",".join(packages) or None,
        "spark.jars": ",".join(map(str, jars)) or None,
        **conf,
        _JAVA_OPTIONS: f"{_LOGGING} {_STACK} {conf.get(_JAVA_OPTIONS) or ''}".rstrip(),
    }
    return {name: value for name, value in chosen.items() if value is not None}


def _cores() -> int:
    """Return how many cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
