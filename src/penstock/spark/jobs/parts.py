"""The tables of a job file: where events come from, the queries, where results go, how it is run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveInt,
    model_validator,
)

from penstock.errors import QueryError
from penstock.pattern import ast
from penstock.pattern.parser import parse_span
from penstock.shedding.configuration import Shedding
from penstock.shedding.drift import LibraryDrift
from penstock.shedding.strategies.catalogue import STRATEGIES
from penstock.spark.drifting import DriftWatch

AVAILABLE_NOW = "available-now"


def _duration_us(text: str) -> int:
    try:
        span = parse_span(text)
    except QueryError:
        span = None
    if not isinstance(span, ast.TimeSpan):
        raise ValueError(f"{text!r} is no duration; write it as in '10 s' or '5 min'")
    return span.us


def _is_duration(text: str) -> str:
    _duration_us(text)
    return text


def _listed(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _flat(value: Any) -> Any:
    """Return nested tables as one: without quotes, TOML reads `spark.driver.memory = "4g"` as three of them."""
    if not isinstance(value, Mapping):
        return value
    found: dict[str, Any] = {}
    for name, inner in value.items():
        below = _flat(inner)
        found |= {f"{name}.{key}": each for key, each in below.items()} if isinstance(below, dict) else {name: inner}
    return found


Duration: TypeAlias = Annotated[str, AfterValidator(_is_duration)]
Texts: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_listed)]
Options: TypeAlias = Annotated[dict[str, str | int | float | bool], BeforeValidator(_flat)]


class Part(BaseModel):
    """A table."""

    model_config = ConfigDict(extra="forbid", frozen=True)


# --- where events come from -----------------------------------------------------------------------------------


class FileSource(Part):
    """Files in a folder; in a stream, those that are added to it too.

    Attributes:
        format: theirs.
        path: of the folder.
        ddl: the columns, in Spark's DDL; Parquet files tell it themselves.
        columns: more columns, as SQL expressions over the others.
        options: of Spark's reader.
    """

    format: Literal["parquet", "csv", "json"]
    path: str
    ddl: str | None = Field(default=None, alias="schema")
    columns: dict[str, str] = Field(default_factory=dict)
    options: Options = Field(default_factory=dict, repr=False)

    @model_validator(mode="after")
    def _can_be_read(self) -> Self:
        if self.format != "parquet" and self.ddl is None:
            raise ValueError(f'{self.format} files do not tell their columns; write schema = "type string, …"')
        refused = {"mode", "columnnameofcorruptrecord"} & {name.lower() for name in self.options}
        if refused:
            raise ValueError("rows that cannot be read go to [malformed]; leave mode and columnNameOfCorruptRecord out")
        return self


class RateSource(Part):
    """Spark's source of numbers, `value`, with their times, `timestamp`; `columns` makes events of them."""

    format: Literal["rate"]
    columns: dict[str, str] = Field(default_factory=dict)
    options: Options = Field(default_factory=dict, repr=False)


class KafkaSource(Part):
    """Topics of Kafka.

    Attributes:
        servers: of the cluster: "host:9092, …".
        topic: one or several, with commas.
        payload: what the values are: JSON objects; or "binary", the fields one after the other, as
            `penstock.spark.jobs.binary` reads them.
        ddl: the fields of the values, in Spark's DDL.
        byte_order: of numbers in binary payloads.
        columns: more columns, as SQL expressions over the others and over `kafka_key`, `kafka_topic`,
            `kafka_partition`, `kafka_offset` and `kafka_timestamp`, which [detect] can name too.
        options: of Spark's Kafka source.
    """

    format: Literal["kafka"]
    servers: str
    topic: str
    payload: Literal["json", "binary"] = "json"
    ddl: str = Field(alias="schema")
    byte_order: Literal["big", "little"] = "big"
    columns: dict[str, str] = Field(default_factory=dict)
    options: Options = Field(default_factory=dict, repr=False)


Source: TypeAlias = Annotated[FileSource | RateSource | KafkaSource, Field(discriminator="format")]


# --- where results go -----------------------------------------------------------------------------------------


class FileSink(Part):
    """A folder for each batch; see `penstock.spark.sinks.once.FilesByBatch`."""

    format: Literal["parquet", "json"]
    path: str
    options: Options = Field(default_factory=dict, repr=False)


class PostgresSink(Part):
    """A table; see `penstock.spark.PostgresOnce`. What the dsn does not say comes from PGHOST and the like."""

    format: Literal["postgres"]
    table: str
    dsn: str = Field(default="", repr=False)


class KafkaSink(Part):
    """A topic; see `penstock.spark.sinks.kafka`. With `once = false`, Spark's own sink writes, at least once."""

    format: Literal["kafka"]
    servers: str
    topic: str
    once: bool = Field(default=True, strict=True)
    key: Texts | None = None
    options: Options = Field(default_factory=dict, repr=False)


class ConsoleSink(Part):
    """Lines of JSON on stdout; a batch that is run again is there again."""

    format: Literal["console"]


Sink: TypeAlias = Annotated[FileSink | PostgresSink | KafkaSink | ConsoleSink, Field(discriminator="format")]


# --- the rest -------------------------------------------------------------------------------------------------


class Detection(Part):
    """The queries, and what `penstock.spark.detect` is told besides."""

    query: Texts = ()
    query_file: Texts = ()
    type: str = "type"
    time: str = "ts"
    by: Texts = ()
    seq: str | None = None
    attributes: Texts | None = None
    watermark: Duration | None = None
    idle: Duration | None = None
    arrival: str | None = None
    buckets: PositiveInt | None = None

    @model_validator(mode="before")
    @classmethod
    def _has_no_weights(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and "weights" in given:
            raise ValueError("what matches are worth is in the model; leave weights out, and train it with --weight")
        return given

    @model_validator(mode="after")
    def _has_a_query(self) -> Self:
        if bool(self.query) == bool(self.query_file):
            raise ValueError("write either query or query_file")
        return self


def _is_strategy(name: str) -> str:
    if name not in STRATEGIES:
        raise ValueError(f"there is no strategy {name!r}; write {', '.join(STRATEGIES)}")
    return name


class Keeping(Part):
    """The latency bound to keep, and what to drop for it; see `penstock.Shedding`, which checks it.

    Attributes:
        model: the folder of a model, as `penstock train` writes it.
        drift: what tells that it is out of date: "matches", or a detector of river; "none": nothing does. See
            `penstock.spark.drifting.DriftWatch`.
    """

    bound: Duration
    strategy: Annotated[str, AfterValidator(_is_strategy)] = "random-event"
    model: str | None = None
    f: Annotated[float, Field(gt=0, lt=1)] = 0.8
    seed: int = 1
    drift: Literal["matches", "ADWIN", "KSWIN", "PageHinkley", "none"] = "matches"

    def drift_watch(self) -> DriftWatch | None:
        """Return what watches the model; None if there is none, or nothing is to watch it.

        Raises:
            PenstockError: the detector is one of river, and river is not installed.
        """
        if self.model is None or self.drift == "none":
            return None
        return DriftWatch(None if self.drift == "matches" else LibraryDrift(self.drift))

    def shedding(self) -> Shedding:
        """Return it as `detect` takes it."""
        model = None if self.model is None else Path(self.model)
        return Shedding(bound=self.bound, strategy=self.strategy, model=model, f=self.f, seed=self.seed)

    @property
    def bound_ms(self) -> float:
        """The bound, in milliseconds."""
        return _duration_us(self.bound) / 1000


def _is_trigger(text: str) -> str:
    return text if text == AVAILABLE_NOW else _is_duration(text)


class Running(Part):
    """How it is run.

    Attributes:
        mode: as a stream, or once, as a batch.
        checkpoint: the folder from which a stream goes on.
        trigger: "available-now" for a stream that ends when it has had all that is there; a duration for the time
            between the beginnings of batches; without it, one batch follows the other.
        name: what the stream or batch is called; as the job file, if not given.
        bound: the latency that is wished for, for the line on the terminal.
    """

    mode: Literal["stream", "batch"] = "stream"
    checkpoint: str | None = None
    trigger: Annotated[str, AfterValidator(_is_trigger)] | None = None
    name: str = ""
    bound: Duration | None = None

    @model_validator(mode="after")
    def _fits_the_mode(self) -> Self:
        if self.mode == "stream" and self.checkpoint is None:
            raise ValueError('a stream goes on from its checkpoint; write checkpoint = "folder"')
        if self.mode == "batch" and (self.checkpoint or self.trigger):
            raise ValueError("a batch has no checkpoint and no trigger; leave them out")
        return self

    @property
    def every(self) -> str | None:
        """The time between the beginnings of batches, as Spark writes it; None if there is none."""
        if self.trigger is None or self.trigger == AVAILABLE_NOW:
            return None
        return f"{_duration_us(self.trigger)} microseconds"

    @property
    def bound_ms(self) -> float | None:
        """The latency that is wished for, in milliseconds."""
        return None if self.bound is None else _duration_us(self.bound) / 1000


class SparkSettings(Part):
    """What `penstock.spark.session` is told."""

    cores: PositiveInt | None = None
    packages: Texts = ()
    jars: Texts = ()
    conf: Options = Field(default_factory=dict, repr=False)
