import os
import shutil
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer

from tests.spark.kafka import broker as broker_module
from tests.spark.kafka.broker import Broker, Jars, KafkaSetUpError, Record, jars

pytestmark = pytest.mark.kafka


def send(producer: Producer, topic: str, *values: str, partition: int = 0) -> None:
    for value in values:
        producer.produce(topic, value.encode(), partition=partition)
    assert producer.flush(30) == 0


def values(records: list[Record]) -> list[str]:
    return [(record.value or b"").decode() for record in records]


def test_connector_jars_are_those_spark_does_not_ship() -> None:
    names = {path.name.rpartition("-")[0] for path in jars().connector.iterdir()}
    assert names == {
        "commons-pool2",
        "kafka-clients",
        "spark-sql-kafka-0-10_2.13",
        "spark-token-provider-kafka-0-10_2.13",
    }


def test_reads_back_what_was_produced(broker: Broker, topic: str) -> None:
    producer = broker.producer()
    producer.produce(topic, b"v", key=b"k", partition=1, headers=[("batch", b"7")])
    send(producer, topic, "a", "b")
    assert broker.read(topic) == [
        Record(0, 0, None, b"a"),
        Record(0, 1, None, b"b"),
        Record(1, 0, b"k", b"v", (("batch", b"7"),)),
    ]


def test_reads_an_empty_topic(broker: Broker, topic: str) -> None:
    assert broker.read(topic) == []


def test_reading_a_topic_that_is_not_there_fails(broker: Broker) -> None:
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        broker.read("nowhere")


def test_a_transaction_is_seen_when_it_is_committed(broker: Broker, topic: str) -> None:
    producer = broker.producer("commits")
    producer.begin_transaction()
    send(producer, topic, "a", "b")
    send(producer, topic, "c", partition=1)
    assert values(broker.read(topic)) == []
    assert values(broker.read(topic, committed=False)) == ["a", "b", "c"]
    producer.commit_transaction(30)
    assert values(broker.read(topic)) == ["a", "b", "c"]


def test_an_aborted_transaction_is_never_seen(broker: Broker, topic: str) -> None:
    producer = broker.producer("aborts")
    producer.begin_transaction()
    send(producer, topic, "a")
    producer.abort_transaction(30)
    producer.begin_transaction()
    send(producer, topic, "b")
    producer.commit_transaction(30)
    assert values(broker.read(topic)) == ["b"]
    assert values(broker.read(topic, committed=False)) == ["a", "b"]


def test_an_open_transaction_hides_what_follows_it(broker: Broker, topic: str) -> None:
    slow = broker.producer("slow")
    slow.begin_transaction()
    send(slow, topic, "a")
    send(broker.producer(), topic, "b")
    assert values(broker.read(topic)) == []
    slow.commit_transaction(30)
    assert values(broker.read(topic)) == ["a", "b"]


def test_a_second_producer_with_the_same_id_shuts_the_first_one_out(broker: Broker, topic: str) -> None:
    first = broker.producer("same")
    first.begin_transaction()
    send(first, topic, "a")
    second = broker.producer("same")
    second.begin_transaction()
    send(second, topic, "b")
    second.commit_transaction(30)
    with pytest.raises(KafkaException, match="_FENCED"):
        first.commit_transaction(30)
    assert values(broker.read(topic)) == ["b"]


def test_brokers_run_side_by_side_and_end_with_their_blocks() -> None:
    def use(name: str) -> tuple[str, int, Path]:
        with Broker() as own:
            own.create_topic("t")
            send(own.producer(), "t", name)
            assert values(own.read("t")) == [name]
            return own.servers, own.pid, own.folder

    with ThreadPoolExecutor() as pool:
        one, other = pool.map(use, ["one", "other"])
    assert one[0] != other[0]
    for _, pid, folder in (one, other):
        assert not folder.exists()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_other_ports_are_tried_when_one_was_taken_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[Path] = []
    formatted = broker_module._format

    def with_a_taken_port(folder: Path) -> tuple[int, str]:
        port, cluster_id = formatted(folder)
        folders.append(folder)
        if len(folders) > 1:
            return port, cluster_id
        properties = folder / "server.properties"
        properties.write_text(properties.read_text().replace(f":{port}", f":{taken}"))
        return taken, cluster_id

    monkeypatch.setattr(broker_module, "_format", with_a_taken_port)
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        with Broker() as own:
            assert len(folders) == 2
            assert own.servers != f"127.0.0.1:{taken}"
            own.create_topic("t")


def test_a_broker_that_dies_early_shows_the_end_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with (
        pytest.raises(KafkaSetUpError, match=r"(?s)ended with code 1\. Its log ends:.*ClassNotFoundException"),
        Broker(Jars(tmp_path, tmp_path / "server")),
    ):
        pass


def test_says_that_maven_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(KafkaSetUpError, match=r"Maven \(mvn\) was not found"):
        jars(tmp_path)


def test_shows_what_maven_says_when_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mvn = tmp_path / "mvn"
    mvn.write_text("#!/bin/sh\necho no route to host\nexit 1\n")
    mvn.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert shutil.which("mvn") == str(mvn)
    with pytest.raises(KafkaSetUpError, match="no route to host"):
        jars(tmp_path / "cache")
    assert not [path for path in (tmp_path / "cache").iterdir() if path.is_dir()]


def test_says_that_java_is_missing(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(KafkaSetUpError, match="Java was not found in JAVA_HOME"), Broker():
        pass
