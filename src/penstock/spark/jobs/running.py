"""Runs a job: builds its frames and sinks, starts the stream or the batch, follows it to its end."""

from __future__ import annotations

import re
import time
from threading import Event
from typing import Any
from uuid import UUID

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no type stubs
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import PenstockError, QueryError
from penstock.spark.detecting import detect
from penstock.spark.jobs.job import Job, JobError
from penstock.spark.jobs.parts import AVAILABLE_NOW, ConsoleSink, FileSink, KafkaSink, KafkaSource, PostgresSink, Sink
from penstock.spark.jobs.sources import PROBLEM, RECORD, read, told
from penstock.spark.progress import METRIC, Listener, Receiver, Totals
from penstock.spark.session import KAFKA, session
from penstock.spark.sinks.kafka import KafkaOnce, KafkaRepeating
from penstock.spark.sinks.once import CheckpointId, Fanout, FilesByBatch, Lines, Name, Once
from penstock.spark.sinks.postgres import PostgresOnce

POLL_S = 0.2
LAST_EVENTS_S = 10.0  # how long the last events of a stream may take to arrive when it has ended

_OURS = re.compile(r"^(?:\w+\.)*penstock\.[\w.]+Error: ", re.MULTILINE)
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception)\b.*$", re.MULTILINE)
_CAUSE = re.compile(r"terminated with exception: (.*)")
_STATE = re.compile(r"\s*SQLSTATE: \w+\s*")
_OTHER_STATE = "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"  # what we keep is bytes; beside them, Spark keeps a timeout
_END = re.compile(r"\n\s*\n|\n\s+at |\nDriver stacktrace|\n?\s*SQLSTATE: ")


class RunError(PenstockError):
    """Spark could not run a job, for a reason that is neither the job's nor the query's."""


def run(job: Job, *receivers: Receiver, spark: SparkSession | None = None, stopping: Event | None = None) -> Totals:
    """Run a job to its end: a batch, or a stream until it is stopped, fails or, "available-now", has had everything.

    Args:
        job: what to do.
        receivers: what gets the `Progress` of each batch.
        spark: the session to run it in; one is started as the job says, if it is not given.
        stopping: when it is set, a stream ends after the batch that is being processed.

    Returns:
        The sums over all batches.

    Raises:
        QueryError: a query does not fit the events.
        PenstockError: something else is wrong with the job, or went wrong.

    Examples:
        totals = run(Job.read("fraud.toml"), print)
    """
    listener = Listener(*receivers)
    try:
        spark = spark or session_of(job)
        if job.run.mode == "batch":
            _batch(job, spark, listener)
        else:
            _stream(job, spark, listener, stopping or Event())
    except QueryError as error:
        raise job.at_place(error) from None
    except (PySparkException, Py4JError) as error:
        raise RunError(f"Spark: {reason_of(str(error))}") from None
    return listener.totals


def session_of(job: Job) -> SparkSession:
    """Return a session as a job asks for it. It logs nothing by itself: what goes wrong is told by `run`."""
    uses_kafka = isinstance(job.source, KafkaSource) or any(
        isinstance(sink, KafkaSink) and not sink.once for sink in job.sinks().values()
    )
    packages = job.spark.packages or ((KAFKA,) if uses_kafka and not job.spark.jars else ())
    conf = {"spark.log.level": "OFF", **job.spark.conf}
    return session(job.run.name, job.spark.cores, packages=packages, jars=job.spark.jars, **conf)


def detected(job: Job, spark: SparkSession, observe: str | Observation = METRIC) -> DataFrame:
    """Return what a job finds: matches, and what else it has sinks for."""
    queries, events, asked = job.queries(), read(job, spark), job.detect
    attributes = list(events.attributes if asked.attributes is None else asked.attributes)
    if events.is_told:
        attributes += [RECORD, PROBLEM]
    find = detect(
        queries, type=asked.type, time=asked.time, by=asked.by or None, seq=asked.seq, attributes=attributes,
        watermark=asked.watermark, idle=asked.idle, arrival=asked.arrival, buckets=asked.buckets,
        outputs=list(job.sinks()), observe=observe, shed=None if job.shedding is None else job.shedding.shedding(),
    )  # fmt: skip
    found = events.frame.transform(find)
    return told(found) if events.is_told else found


def sinks_of(job: Job) -> Fanout:
    """Return where a job's results go."""
    name: Name = job.run.name if job.run.checkpoint is None else CheckpointId(job.run.checkpoint)
    return Fanout({output: _sink(sink, output, name) for output, sink in job.sinks().items()})


def _sink(sink: Sink, output: str, name: Name) -> Once:
    match sink:
        case FileSink():
            return FilesByBatch(sink.path, sink.format, name, **sink.options)
        case PostgresSink():
            return PostgresOnce(sink.table, name, sink.dsn)
        case KafkaSink(once=True):
            return KafkaOnce(sink.servers, sink.topic, name, sink.key, options=sink.options)
        case KafkaSink():
            return KafkaRepeating(sink.servers, sink.topic, sink.key, sink.options)
        case ConsoleSink():
            return Lines(output)


# --- a batch ------------------------------------------------------------------------------------------------------


def _batch(job: Job, spark: SparkSession, listener: Listener) -> None:
    started, observation = time.monotonic(), Observation(METRIC)
    if not sinks_of(job).write(detected(job, spark, observation), 0):
        raise JobError(
            f"the results of {job.run.name!r} are there already, and a batch is written once\n"
            "  fix: give this run another name, [run] name = …, and files another path"
        )
    listener.take(UUID(int=0), 0, (time.monotonic() - started) * 1000, observation.get)


# --- a stream -----------------------------------------------------------------------------------------------------


class _StoppingError(Exception):
    """The stream shall end, and the batch is not begun."""


class _Guarded(Once):
    """Keeps the error of a sink, which Spark's message has somewhere inside; begins no batch when the stream shall end.

    To stop a stream in the middle of a batch is safe, but Spark may print a stack trace of thousands of lines then.
    """

    def __init__(self, sink: Once, stopping: Event) -> None:
        self.sink, self.stopping = sink, stopping
        self.error: Exception | None = None

    def write(self, frame: DataFrame, batch_id: int) -> bool:
        try:
            if self.stopping.is_set():
                raise _StoppingError
            return self.sink.write(frame, batch_id)
        except (PenstockError, _StoppingError) as error:
            self.error = error
            raise


def _stream(job: Job, spark: SparkSession, listener: Listener, stopping: Event) -> None:
    sinks = _Guarded(sinks_of(job), stopping)
    writer: Any = detected(job, spark).writeStream.foreachBatch(sinks).queryName(job.run.name)
    writer = writer.option("checkpointLocation", job.run.checkpoint)
    if job.run.trigger is not None:
        now = job.run.trigger == AVAILABLE_NOW
        writer = writer.trigger(availableNow=True) if now else writer.trigger(processingTime=job.run.every)
    spark.streams.addListener(listener)
    try:
        query: StreamingQuery = writer.start()
        _follow(query, listener, stopping)
        failure = query.exception()
    finally:
        spark.streams.removeListener(listener)
    if isinstance(sinks.error, PenstockError):
        raise sinks.error
    if failure is not None and not isinstance(sinks.error, _StoppingError):
        raise failure


def _follow(query: StreamingQuery, listener: Listener, stopping: Event) -> None:
    """Wait for the end of a stream. When it shall stop, the next batch ends it; or this, if there is none."""
    while query.isActive:
        if not stopping.wait(POLL_S):
            continue
        if not query.status["isTriggerActive"]:
            query.stop()
        time.sleep(POLL_S)
    listener.ended.wait(LAST_EVENTS_S)


def reason_of(text: str) -> str:
    """Return what an error of Spark's comes down to: our own message if there is one inside, else its first line."""
    ours = list(_OURS.finditer(text))
    if ours:
        return _END.split(text[ours[-1].end() :])[0].strip()
    if _OTHER_STATE in text:
        return (
            "the checkpoint was made with `idle` and this job has none, or the other way round\n"
            "  fix: leave `idle` as it was (its length may change), or start from a new checkpoint"
        )
    if "Traceback (most recent call last)" in text:
        raised = _RAISED.findall(text)
        if raised:
            return str(raised[-1]).strip()
    cause = _CAUSE.search(text)
    first = cause[1] if cause else next((line for line in text.splitlines() if line.strip()), "no reason given")
    return _STATE.sub("", first).strip()
