"""The Kafka sinks, on a real broker."""

from __future__ import annotations

import json
import pickle
import threading

import pytest
from confluent_kafka import KafkaException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from penstock.spark.sinks.kafka import MARKERS, KafkaOnce, last_value, records
from penstock.spark.sinks.once import SinkError
from tests.spark.kafka.broker import Broker


def pairs(*values: int) -> list[tuple[str | None, str]]:
    return [(str(value % 2), str(value)) for value in values]


def values(broker: Broker, topic: str, committed: bool = True) -> list[int]:
    return sorted(int(record.value or b"") for record in broker.read(topic, committed=committed))


@pytest.mark.kafka
class TestOnce:
    def test_a_batch_that_is_sent_again_is_skipped(self, broker: Broker, topic: str) -> None:
        sink = KafkaOnce(broker.servers, topic, "stream")
        assert sink.send(pairs(1, 2), 0)
        assert sink.send(pairs(3), 1)
        assert not sink.send(pairs(3), 1)
        assert values(broker, topic) == [1, 2, 3]

    def test_the_next_process_knows_the_last_batch(self, broker: Broker, topic: str) -> None:
        assert KafkaOnce(broker.servers, topic, "stream").send(pairs(1), 4)
        after = KafkaOnce(broker.servers, topic, "stream")
        assert not after.send(pairs(1), 4)
        assert after.send(pairs(2), 5)
        assert values(broker, topic) == [1, 2]

    def test_other_streams_and_topics_have_batches_of_their_own(self, broker: Broker, topic: str) -> None:
        broker.create_topic(f"{topic}-late")
        assert KafkaOnce(broker.servers, topic, "one").send(pairs(1), 0)
        assert KafkaOnce(broker.servers, topic, "two").send(pairs(2), 0)
        assert KafkaOnce(broker.servers, f"{topic}-late", "one").send(pairs(3), 0)
        assert values(broker, topic) == [1, 2]

    def test_an_earlier_process_is_shut_out(self, broker: Broker, topic: str) -> None:
        early, late = KafkaOnce(broker.servers, topic, "stream"), KafkaOnce(broker.servers, topic, "stream")
        assert early.send(pairs(1), 0)
        assert late.send(pairs(2), 1)
        with pytest.raises(SinkError, match=f"^Kafka, topic {topic}: "):
            early.send(pairs(2), 1)
        assert values(broker, topic) == [1, 2]

    def test_a_process_that_ends_in_the_middle_of_a_batch(self, broker: Broker, topic: str) -> None:
        dying = broker.producer(f"penstock/stream/{topic}")
        dying.begin_transaction()
        dying.produce(topic, b"1")
        dying.flush(30)
        after = KafkaOnce(broker.servers, topic, "stream")
        assert after.send(pairs(1), 0)
        assert values(broker, topic) == [1]
        assert values(broker, topic, committed=False) == [1, 1]

    def test_a_batch_that_fails_leaves_nothing_that_is_committed(self, broker: Broker, topic: str) -> None:
        sink = KafkaOnce(broker.servers, topic, "stream", options={"message.max.bytes": 10_000})
        with pytest.raises(SinkError, match="Message size too large"):
            sink.send([*pairs(1), (None, "9" * 20_000)], 0)
        assert values(broker, topic) == []  # and readers need not wait for the transaction to time out
        assert sink.send(pairs(1), 0)
        assert values(broker, topic) == [1]

    def test_another_streams_open_transaction_hides_no_batch(self, broker: Broker, topic: str) -> None:
        first = KafkaOnce(broker.servers, topic, "stream")
        assert first.send(pairs(0), 0)
        other = broker.producer("another")
        other.begin_transaction()
        other.produce(MARKERS, b"9", key=b"another")
        other.flush(30)
        assert first.send(pairs(1), 1)
        sink = KafkaOnce(broker.servers, topic, "stream")
        ending = threading.Timer(1.0, other.commit_transaction)
        ending.start()
        assert not sink.send(pairs(1), 1)
        ending.join()
        assert values(broker, topic) == [0, 1]

    def test_no_broker(self) -> None:
        sink = KafkaOnce("127.0.0.1:1", "nowhere", "stream", options={"log_level": 0})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("penstock.spark.sinks.kafka.WITHIN_S", 1.0)
            with pytest.raises(SinkError, match=r"^Kafka, topic nowhere: "):
                sink.send(pairs(1), 0)


@pytest.mark.kafka
def test_the_last_value_is_found_far_back(broker: Broker, topic: str) -> None:
    broker.create_topic(f"{topic}-one")
    producer = broker.producer()
    for key, value in [("a", "1"), ("a", "2"), *(("b", str(k)) for k in range(1000))]:
        producer.produce(f"{topic}-one", value.encode(), key.encode())
    producer.flush(30)
    settings = {"bootstrap.servers": broker.servers}
    assert last_value(settings, f"{topic}-one", "a") == "2"
    assert last_value(settings, f"{topic}-one", "b") == "999"
    assert last_value(settings, f"{topic}-one", "c") is None
    with pytest.raises(KafkaException):
        last_value(settings, "no-such-topic", "a")


def test_it_travels_and_shows_no_secret() -> None:
    sink = KafkaOnce("host:9092", "alerts", "stream", options={"sasl.password": "s3cret"})
    assert repr(pickle.loads(pickle.dumps(sink))) == "KafkaOnce('alerts')"


def test_records(spark: SparkSession) -> None:
    frame = spark.range(1).select(
        sf.lit("q").alias("query"), sf.lit("x").alias("card"), sf.lit(7).alias("shop"), sf.lit(None).alias("window"),
        sf.expr("timestamp_micros(1)").alias("first_ts"),
    )  # fmt: skip
    (found,) = records(frame).collect()
    assert found.key == '["x","7"]'
    assert json.loads(found.value) == {
        "query": "q", "card": "x", "shop": 7, "window": None, "first_ts": "1970-01-01T00:00:00.000001Z"
    }  # fmt: skip
    assert [row.key for row in records(frame, ["shop"]).collect()] == ["7"]
    assert [row.key for row in records(frame.drop("window")).collect()] == [None]
