"""Kafka to Kafka: payments in one topic, alerts in another, each alert once even if the program is killed.

    python examples/kafka_pipeline.py --servers localhost:9092 --send 1000

Sends made payments (`--send`), reads all that the topic has, finds cards that are tested with a small payment and then
used for a large one, writes an alert for each, and ends; run again, it goes on behind what it has read. The topics
`payments` and `alerts` must be there. Who reads the alerts must ask for `isolation.level=read_committed`.

Spark fetches its Kafka connector from Maven; on a machine that cannot, `--jars` names the files.
"""

from __future__ import annotations

import argparse
import json
import time
from random import Random

from pyspark.sql import functions as sf

import penstock as pk
from penstock.spark import detect
from penstock.spark.session import KAFKA, session
from penstock.spark.sinks.kafka import KafkaOnce
from penstock.spark.sinks.once import CheckpointId

QUERY = pk.parse(
    """
    PATTERN SEQ(payment small, payment large)
    WHERE small.amount < 2 AND large.amount > 500
    WITHIN 5 min
    PARTITION BY card
    RETURN large.amount AS amount
    """,
    "tested card",
)
SCHEMA = "type string, ts timestamp, card string, amount double"


def send(servers: str, count: int) -> None:
    """Send made payments, a second apart."""
    from confluent_kafka import Producer

    random, producer, now = Random(1), Producer({"bootstrap.servers": servers}), int(time.time()) - count
    for number in range(count):
        card = f"card {random.randrange(50)}"
        amount = random.choice([1.0, 20.0, 30.0, 900.0])
        payment = {"type": "payment", "ts": now + number, "card": card, "amount": amount}
        producer.produce("payments", json.dumps(payment), key=card)
    producer.flush()


def main() -> None:
    """Find what is in the topic."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", default="localhost:9092")
    parser.add_argument("--send", type=int, default=0, metavar="N", help="send N made payments first")
    parser.add_argument("--jars", nargs="*", help="the files of Spark's Kafka connector, if Spark cannot fetch them")
    parser.add_argument("--checkpoint", default="checkpoints/kafka_pipeline")
    given = parser.parse_args()
    if given.send:
        send(given.servers, given.send)
    spark = session("kafka pipeline", jars=given.jars or (), packages=() if given.jars else [KAFKA])
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", given.servers)
    records = reader.option("subscribe", "payments").option("startingOffsets", "earliest").load()
    payments = records.select(sf.from_json(sf.col("value").cast("string"), SCHEMA).alias("payment"), "timestamp")
    payments = payments.select("payment.*", sf.col("timestamp").alias("arrived"))
    found = payments.transform(detect(QUERY, arrival="arrived", watermark="10 s"))
    sink = KafkaOnce(given.servers, "alerts", CheckpointId(given.checkpoint))
    writer = found.writeStream.foreachBatch(sink).option("checkpointLocation", given.checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    batches = [progress.observedMetrics["penstock"] for progress in query.recentProgress if progress.observedMetrics]
    print(f"{sum(counts.matches or 0 for counts in batches)} alerts")
    spark.stop()


if __name__ == "__main__":
    main()
