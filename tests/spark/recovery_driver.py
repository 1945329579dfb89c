"""A driver that is there to be killed: `python -m tests.spark.recovery_driver FOLDER [SERVERS JAR ...]`.

Events are files in FOLDER/in, and matches go to FOLDER/out; or both are topics of Kafka.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.spark import detect
from penstock.spark.session import session
from penstock.spark.sinks.kafka import KafkaOnce
from penstock.spark.sinks.once import CheckpointId
from tests.spark.test_detect import KEYED

JAVA_OPTIONS = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
EVENTS, MATCHES = "events", "matches"  # topics
PER_BATCH = 25  # events, of Kafka


def of_files(spark: SparkSession, folder: Path) -> DataFrame:
    """Return the events of the files, one of them a batch."""
    schema = spark.read.parquet(str(folder / "schema")).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))


def of_kafka(spark: SparkSession, folder: Path, servers: str) -> DataFrame:
    """Return the events of a topic, some of them a batch."""
    schema = spark.read.parquet(str(folder / "schema")).schema
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", EVENTS)
    reader = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", PER_BATCH)
    return reader.load().select(sf.from_json(sf.col("value").cast("string"), schema).alias("e")).select("e.*")


def main(folder: Path, servers: str | None, jars: list[str]) -> None:
    """Process all that is there, in small batches, and end."""
    spark = session("penstock-recovery", cores=2, jars=jars, **JAVA_OPTIONS)
    events = of_files(spark, folder) if servers is None else of_kafka(spark, folder, servers)
    writer: DataStreamWriter = events.transform(detect(KEYED, by="card", seq="id", watermark="2 s")).writeStream
    if servers is None:
        writer = writer.format("parquet").option("path", str(folder / "out"))
    else:
        writer = writer.foreachBatch(KafkaOnce(servers, MATCHES, CheckpointId(folder / "checkpoint")))
    checkpoint = str(folder / "checkpoint")
    writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None, sys.argv[3:])
