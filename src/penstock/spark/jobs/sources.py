"""Events of a job: frames read as the job says, in which a row that cannot be read tells why.

Such a row is not dropped. It goes through `detect` as one without a type and a time, which makes it malformed, and
`told` then gives the reason and the text of the row to the output of malformed rows. So one pass over the source does,
and every row is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from penstock.spark.columns import quoted
from penstock.spark.jobs.binary import Binary, problems_of
from penstock.spark.jobs.job import Job, JobError
from penstock.spark.jobs.parts import FileSource, KafkaSource, RateSource
from penstock.spark.worker.results import EVENT, REASON

RECORD, PROBLEM = "_record", "_problem"
_PERMISSIVE = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": RECORD}
_SHOWN = 40  # characters of a wrong value
_KAFKA = ("key", "topic", "partition", "offset", "timestamp")
_META = tuple(f"kafka_{name}" for name in _KAFKA)


@dataclass(frozen=True)
class Events:
    """A frame of events.

    Attributes:
        frame: with all columns that the job names.
        attributes: what a match holds of each event, unless the job says.
        is_told: whether rows tell why they are malformed.
    """

    frame: DataFrame
    attributes: tuple[str, ...]
    is_told: bool


def read(job: Job, spark: SparkSession) -> Events:
    """Return the events of a job.

    Raises:
        JobError: the schema or an expression cannot be read.
    """
    source, is_stream = job.source, job.run.mode == "stream"
    reader: Any = spark.readStream if is_stream else spark.read
    match source:
        case FileSource():
            frame = _files(source, reader, spark)
        case RateSource():
            if not is_stream:
                raise JobError('source.format: rate is a stream, and run.mode is "batch"')
            frame = reader.format("rate").options(**source.options).load()
        case KafkaSource():
            frame = _kafka(source, reader)
    frame = _with_columns(frame, source.columns)
    hidden = {RECORD, PROBLEM, *_META} - _named(job)
    attributes = tuple(name for name in frame.columns if name not in hidden)
    if PROBLEM not in frame.columns:
        return Events(frame, attributes, False)
    special = [name for name in (job.detect.type, job.detect.time) if name in frame.columns]
    is_fine = quoted(PROBLEM).isNull()
    return Events(frame.withColumns({name: sf.when(is_fine, quoted(name)) for name in special}), attributes, True)


def told(found: DataFrame) -> DataFrame:
    """Return results of events that tell why they are malformed, with these reasons in the output of malformed rows."""
    columns = []
    for field in found.schema.fields:
        column, kind = quoted(field.name), field.dataType
        if field.name == EVENT:
            column = column.dropFields(PROBLEM)
        elif field.name == REASON:
            column = sf.coalesce(sf.col(EVENT)[PROBLEM], column)
        elif isinstance(kind, st.ArrayType) and _is_told(kind.elementType):
            column = sf.transform(column, lambda event: event.dropFields(RECORD, PROBLEM))
        columns.append(column.alias(field.name))
    return found.select(*columns)


def _is_told(data_type: st.DataType) -> bool:
    return isinstance(data_type, st.StructType) and PROBLEM in data_type.names


def _named(job: Job) -> set[str]:
    """Return the columns that a job names, the time of arrival apart: a match has that anyway."""
    detect = job.detect
    return {detect.type, detect.time, *detect.by, *(detect.attributes or ()), detect.seq or ""}


def _fields(ddl: str) -> st.StructType:
    try:
        found = st.DataType.fromDDL(ddl)
    except ParseException as error:
        raise JobError(f"source.schema: {ddl!r} is no DDL\n{_first_line(error)}") from None
    if not isinstance(found, st.StructType):
        raise JobError(f"source.schema: {ddl!r} names no columns; write it as in 'type string, ts timestamp'")
    used = {RECORD, PROBLEM, *_META} & set(found.names)
    if used:
        raise JobError(f"source.schema: a column is called {min(used)}, which penstock uses itself; rename it")
    return found


def _first_line(error: Any) -> str:
    return "  " + str(error).strip().splitlines()[0]


def _with_columns(frame: DataFrame, columns: dict[str, str]) -> DataFrame:
    """Return a frame with more columns, which may take the place of others."""
    for name, text in columns.items():
        try:
            frame = frame.withColumn(name, sf.expr(text))
            frame.schema  # noqa: B018 - Connect checks the expression here
        except Exception as error:
            if not hasattr(error, "getCondition"):  # no error of Spark's
                raise
            raise JobError(f"source.columns.{name}: {text!r} cannot be used\n{_first_line(error)}") from None
    return frame


# --- files ------------------------------------------------------------------------------------------------------


def _files(source: FileSource, reader: Any, spark: SparkSession) -> DataFrame:
    reader = reader.format(source.format).options(**source.options)
    if source.format == "parquet":
        schema = spark.read.parquet(source.path).schema if source.ddl is None else _fields(source.ddl)
        frame: DataFrame = reader.schema(schema).load(source.path)
        return frame
    fields = _fields(source.ddl or "")
    with_record = st.StructType([*fields.fields, st.StructField(RECORD, st.StringType())])
    frame = reader.options(**_PERMISSIVE).schema(with_record).load(source.path)
    if source.format == "json":
        return frame.withColumn(PROBLEM, _problem(fields, _as_texts(fields), "the line is no JSON object"))
    texts = sf.from_csv(quoted(RECORD), ", ".join(f"`{name}` string" for name in fields.names), _text(source.options))
    return frame.withColumn(
        PROBLEM, _problem(fields, texts, f"the line does not have the {len(fields)} fields of the schema")
    )


def _text(options: dict[str, Any]) -> dict[str, str]:
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}


def _as_texts(fields: st.StructType) -> Column:
    """Return the fields of a record in JSON as texts."""
    texts = st.StructType([st.StructField(name, st.StringType()) for name in fields.names])
    return sf.from_json(quoted(RECORD), texts)


def _problem(fields: st.StructType, texts: Column, otherwise: str) -> Column:
    """Return why a record could not be read: the first field that does not fit its type, or something else.

    All fields are named here, so Spark reads all of them, and a row is malformed whichever of them the query needs.
    """
    misfits = [
        sf.when(
            texts[field.name].isNotNull() & quoted(field.name).isNull(),
            sf.concat(
                sf.lit(f"{field.name} is "),
                sf.left(texts[field.name], sf.lit(_SHOWN)),
                sf.lit(f", which is no {field.dataType.simpleString()}"),
            ),
        )
        for field in fields.fields
    ]
    return sf.when(quoted(RECORD).isNotNull(), sf.coalesce(*misfits, sf.lit(otherwise)))


# --- Kafka ------------------------------------------------------------------------------------------------------


def _kafka(source: KafkaSource, reader: Any) -> DataFrame:
    fields = _fields(source.ddl)
    fixed = {"kafka.bootstrap.servers": source.servers, "subscribe": source.topic}
    options = {"kafka.isolation.level": "read_committed", **source.options, **fixed}
    rows: DataFrame = reader.format("kafka").options(**options).load()
    meta = [quoted(name).alias(called) for name, called in zip(_KAFKA, _META, strict=True)]
    if source.payload == "json":
        return _json_payloads(rows.select("value", *meta), fields)
    problems = problems_of(fields.fields)
    if problems:
        raise JobError("\n".join(f"source.schema: {problem}" for problem in problems))
    rows = rows.select("value", *meta)
    made = [st.StructField(field.name, _without_width(field.dataType)) for field in fields.fields]
    texts = [st.StructField(name, st.StringType()) for name in (RECORD, PROBLEM)]
    result = st.StructType([*made, *texts, *rows.schema.fields[1:]])
    return rows.mapInArrow(Binary(tuple(fields.fields), source.byte_order, "value", RECORD, PROBLEM), result)


def _without_width(data_type: st.DataType) -> st.DataType:
    return st.StringType() if isinstance(data_type, st.CharType) else data_type


def _json_payloads(rows: DataFrame, fields: st.StructType) -> DataFrame:
    text = sf.col("value").cast("string")
    with_record = st.StructType([*fields.fields, st.StructField(RECORD, st.StringType())])
    parsed = rows.withColumn("_parsed", sf.from_json(text, with_record, _PERMISSIVE))
    is_text = sf.is_valid_utf8(text)
    record = sf.when(~is_text, sf.make_valid_utf8(text)).otherwise(sf.col("_parsed")[RECORD])
    columns = [sf.col("_parsed")[name].alias(name) for name in fields.names]
    whole = sf.when(text.isNull(), "the payload is null").when(~is_text, "the payload is no UTF-8 text")
    frame = parsed.select(*columns, record.alias(RECORD), *_META, whole.alias("_whole"))
    problem = sf.coalesce("_whole", _problem(fields, _as_texts(fields), "the payload is no JSON object"))
    return frame.withColumn(PROBLEM, problem).drop("_whole")
