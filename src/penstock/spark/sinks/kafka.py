"""Sinks that write matches to a topic of Kafka: each batch once, in a transaction; or at least once, by Spark."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from penstock.spark.columns import quoted
from penstock.spark.sinks.once import JSON_OPTIONS, Name, Once, SinkError, as_json, keys_of, name_of

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer, TopicPartition

MARKERS = "penstock-batches"
WITHIN_S = 60.0  # how long the servers may take to answer
OPEN_S = 120.0  # how long a transaction may stay open: the servers end it after 60 s, unless they are told otherwise
_GIVE_UP_S = 5.0
_LOOK_BACK = 64  # records at the end of the topic of markers that are looked at first


def records(frame: DataFrame, key: Sequence[str] | None = None) -> DataFrame:
    """Return rows as records: `key`, the text of the key (if there are several, an array in JSON), and `value`, JSON.

    Args:
        frame: the rows.
        key: the columns that are the key; those of the matches' keys, if not given.
    """
    names = keys_of(frame) if key is None else list(key)
    return frame.select(_key(names).alias("key"), as_json(*frame.columns).alias("value"))


def _key(names: Sequence[str]) -> Column:
    texts = [sf.make_valid_utf8(quoted(name).cast("string")) for name in names]
    if not texts:
        return sf.lit(None).cast("string")
    return texts[0] if len(texts) == 1 else sf.to_json(sf.array(*texts), JSON_OPTIONS)


class KafkaOnce(Once):
    """Writes each batch to a topic once: the records and the number of the batch are committed together.

    The number is a record in another topic, which Kafka compacts. A stream that starts shuts out an earlier process
    that still writes for it, waits for what that has begun, and then reads the number of its last batch. Who reads the
    topic must ask for `isolation.level=read_committed`: others also see records of attempts that failed.

    One transaction has one writer: the records of a batch come to the driver and go from there.

    Args:
        servers: of the cluster: "host:9092, …".
        topic: where the records go; it must be there.
        name: the stream's: a batch is the same if stream, topic and number are.
        key: the columns that are the key of a record; those of the matches' keys, if not given.
        markers: the topic of the numbers; it is made if it is not there.
        options: more settings of the client, as librdkafka calls them ("sasl.password" …). They are not shown.

    Raises:
        SinkError: when a batch is written: the servers cannot be reached or do not take it, or another process writes
            for the same stream.

    Examples:
        sink = KafkaOnce("localhost:9092", "alerts", CheckpointId("state"))
        found.writeStream.foreachBatch(sink).option("checkpointLocation", "state").start()
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        name: Name,
        key: Sequence[str] | None = None,
        markers: str = MARKERS,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.topic, self.name, self.key, self.markers = topic, name, key, markers
        self._settings: dict[str, Any] = {"bootstrap.servers": servers, **(options or {})}
        self._producer: Producer | None = None
        self._last = -1  # the last batch that is committed

    def __repr__(self) -> str:
        return f"KafkaOnce({self.topic!r})"

    def write(self, frame: DataFrame, batch_id: int) -> bool:
        """Write a batch, unless that was done before."""
        self.name = name_of(self.name, frame)
        rows = records(frame, self.key).toArrow()  # before the transaction, which may not take long
        pairs = zip(rows.column("key").to_pylist(), rows.column("value").to_pylist(), strict=True)
        return self.send(pairs, batch_id)

    def send(self, pairs: Iterable[tuple[str | None, str]], batch_id: int) -> bool:
        """Send the keys and values of a batch, unless that was done before."""
        try:
            from confluent_kafka import KafkaException
        except ModuleNotFoundError:
            raise SinkError("Kafka needs confluent-kafka\n  fix: pip install 'penstock[kafka]'") from None
        try:
            producer = self._producer or self._open()
            if batch_id <= self._last:
                return False
            producer.begin_transaction()
            for key, value in pairs:
                _produce(producer, self.topic, key, value)
            _produce(producer, self.markers, self._mark, str(batch_id))
            producer.commit_transaction(WITHIN_S)
        except KafkaException as error:
            self._give_up()
            raise SinkError(f"Kafka, topic {self.topic}: {error.args[0].str()}") from None
        self._last = batch_id
        return True

    def _give_up(self) -> None:
        """Abort what was begun, so that readers need not wait for it; the next batch opens anew."""
        from confluent_kafka import KafkaException

        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(KafkaException):  # there may be none, or this process is shut out
                producer.abort_transaction(_GIVE_UP_S)

    @property
    def _mark(self) -> str:
        """The key of the records with this sink's batch numbers."""
        return f"{self.name}/{self.topic}"

    def _open(self) -> Producer:
        """Shut out an earlier process, and find out which batch was its last."""
        from confluent_kafka import Producer

        producer = Producer(
            {"enable.idempotence": True, **self._settings, "transactional.id": f"penstock/{self._mark}"}
        )
        producer.init_transactions(WITHIN_S)
        _make_compacted(self._settings, self.markers)
        found = last_value(self._settings, self.markers, self._mark)
        self._producer, self._last = producer, -1 if found is None else int(found)
        return producer


class KafkaRepeating(Once):
    """Writes each batch to a topic with Spark's own Kafka sink: at least once.

    A batch that is run again is there twice. The workers write, in parallel, and nothing comes to the driver. It needs
    Spark's Kafka connector, as a source does.

    Args:
        servers: of the cluster: "host:9092, …".
        topic: where the records go.
        key: the columns that are the key of a record; those of the matches' keys, if not given.
        options: more of Spark's Kafka options ("kafka.sasl.jaas.config" …).
    """

    def __init__(
        self, servers: str, topic: str, key: Sequence[str] | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        self.topic, self.key = topic, key
        self._options = {"kafka.bootstrap.servers": servers, "topic": topic, **(options or {})}

    def __repr__(self) -> str:
        return f"KafkaRepeating({self.topic!r})"

    def write(self, frame: DataFrame, batch_id: int) -> bool:
        """Write a batch."""
        records(frame, self.key).write.format("kafka").options(**self._options).save()
        return True


def _produce(producer: Producer, topic: str, key: str | None, value: str) -> None:
    while True:
        try:
            producer.produce(topic, value.encode(), None if key is None else key.encode())
        except BufferError:  # the queue is full: wait until some of it is sent
            producer.poll(0.1)
        else:
            return


def _make_compacted(settings: Mapping[str, Any], topic: str) -> None:
    """Make a topic of one partition that keeps the last record of each key, if it is not there."""
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient(dict(settings))
    if topic in admin.list_topics(timeout=WITHIN_S).topics:
        return
    new = NewTopic(topic, num_partitions=1, config={"cleanup.policy": "compact"})
    try:
        admin.create_topics([new], operation_timeout=WITHIN_S)[topic].result(timeout=WITHIN_S)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def last_value(settings: Mapping[str, Any], topic: str, key: str) -> str | None:
    """Return the last committed value of a key in a topic of one partition; None if there is none.

    Records behind the first of an open transaction are not readable. So first those that are open are waited for: one
    may be another stream's, and hide what this one has committed.
    """
    from confluent_kafka import Consumer, TopicPartition

    common = {"group.id": f"penstock/{key}", "enable.auto.commit": False, "auto.offset.reset": "error"}
    everything = Consumer({**settings, **common, "isolation.level": "read_uncommitted"})
    committed = Consumer({**settings, **common, "isolation.level": "read_committed", "enable.partition.eof": True})
    place = TopicPartition(topic, 0)
    try:
        low, end = everything.get_watermark_offsets(place, timeout=WITHIN_S)
        _wait_for(committed, place, end)
        start, back = end, _LOOK_BACK
        while start > low:
            start, back = max(low, end - back), back * 8
            found = _last_since(committed, TopicPartition(topic, 0, start), key)
            if found is not None:
                return found
    finally:
        everything.close()
        committed.close()
    return None


def _wait_for(consumer: Consumer, place: TopicPartition, end: int) -> None:
    """Wait until all transactions before a place have ended."""
    deadline = time.monotonic() + OPEN_S
    while consumer.get_watermark_offsets(place, timeout=WITHIN_S)[1] < end:
        if time.monotonic() > deadline:
            raise SinkError(f"Kafka, topic {place.topic}: a transaction is open for more than {OPEN_S:g} s")
        time.sleep(0.05)


def _last_since(consumer: Consumer, start: TopicPartition, key: str) -> str | None:
    """Read from a place to the end; return the last value of a key."""
    from confluent_kafka import KafkaError, KafkaException

    consumer.assign([start])
    found: str | None = None
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is None:
            continue
        error, value = message.error(), message.value()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            return found
        if error is not None:
            raise KafkaException(error)
        if message.key() == key.encode() and isinstance(value, bytes):
            found = value.decode()
    raise SinkError(f"Kafka, topic {start.topic}: could not be read within {WITHIN_S:g} s")
