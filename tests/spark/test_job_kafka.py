"""Jobs from Kafka to Kafka, on a real broker, as a user starts them."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.spark.kafka.broker import Broker, jars
from tests.spark.test_job import SPARK, written

pytestmark = pytest.mark.kafka

QUERY = "PATTERN SEQ(Small a, Large b) WHERE b.amount > 10 * a.amount WITHIN 5 s PARTITION BY card"
START_US = 1_700_000_000_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def send(broker: Broker, topic: str, values: list[bytes | None]) -> None:
    producer = broker.producer()
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def run(job: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-c", "from penstock.cli import app; app()", "detect", str(job), "--json", "--quiet"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(text) for text in done.stdout.splitlines()]


def job_of(broker: Broker, name: str, source: dict[str, Any], sink: dict[str, Any]) -> dict[str, Any]:
    common = {"format": "kafka", "servers": broker.servers}
    return {
        "source": {**common, "topic": f"{name}-in", "options": {"startingOffsets": "earliest"}, **source},
        "detect": {"query": QUERY, "arrival": "kafka_timestamp"},
        "sink": {**common, "topic": f"{name}-out", **sink},
        "malformed": {"format": "parquet", "path": "malformed"},
        "run": {"checkpoint": "state", "trigger": "available-now"},
        "spark": {**SPARK, "jars": list(map(str, sorted(jars().connector.glob("*.jar"))))},
    }


def reasons(folder: Path) -> Counter[str]:
    return Counter(row["reason"] for row in pq.read_table(folder / "malformed").to_pylist())


def test_json_in_and_out_once(broker: Broker, tmp_path: Path) -> None:
    def events(*numbers: int) -> list[bytes | None]:
        pair = {0: ("Small", 1.0), 1: ("Large", 100.0)}
        return [
            json.dumps(
                {"type": kind, "ts": f"2024-01-01T00:00:{10 * n + k:02}Z", "card": "x", "amount": amount}
            ).encode()
            for n in numbers
            for k, (kind, amount) in pair.items()
        ]

    for name in ("json-in", "json-out"):
        broker.create_topic(name)
    source = {"schema": "type string, ts timestamp, card string, amount double"}
    job = written(tmp_path, job_of(broker, "json", source, {}))
    send(broker, "json-in", [*events(0), b"garbage", None, b'{"type": "\xff"}', b'{"type": "Small", "amount": "x"}'])
    (first, _) = run(job)
    assert (first["rows"], first["processed"], first["malformed"], first["matches"]) == (6, 2, 4, 1)
    assert first["latency_ms"]["p50"] is not None  # since the time at which Kafka got the event
    assert reasons(tmp_path) == {
        "the payload is no JSON object": 1,
        "the payload is null": 1,
        "the payload is no UTF-8 text": 1,
        "amount is x, which is no double": 1,
    }
    for path in (tmp_path / "state" / "commits").glob("*0*"):  # the driver died before Spark knew that it is written
        path.unlink()
    send(broker, "json-in", events(1, 2))
    again, second, _ = run(job)
    assert [(each["batch"], each["matches"]) for each in (again, second)] == [(0, 1), (1, 2)]
    found = [(record.key, json.loads(record.value or b"")) for record in broker.read("json-out")]
    assert [key for key, _ in found] == [b"x"] * 3
    assert [value["a"][0]["ts"] for _, value in found] == [f"2024-01-01T00:00:{n}0.000000Z" for n in range(3)]
    b = {"type": "Large", "ts": "2024-01-01T00:00:01.000000Z", "card": "x", "amount": 100.0}
    assert (found[0][1]["b"], found[0][1]["arrived_ts"] is None) == ([b], False)


def test_binary_in_and_sparks_own_sink(broker: Broker, tmp_path: Path) -> None:
    def event(kind: bytes, second: int, amount: float) -> bytes:
        return struct.pack("<8sq4sd", kind, START_US + second * 1_000_000, b"x", amount)

    for name in ("binary-in", "binary-out"):
        broker.create_topic(name)
    source = {
        "payload": "binary", "byte_order": "little", "schema": "type char(8), ts timestamp, card char(4), amount double"
    }  # fmt: skip
    job = written(tmp_path, job_of(broker, "binary", source, {"once": False}))
    send(broker, "binary-in", [event(b"Small", 0, 1), event(b"Large", 1, 100), b"short"])
    batch, _ = run(job)
    assert (batch["processed"], batch["malformed"], batch["matches"], batch["adds_up"]) == (2, 1, 1, True)
    assert reasons(tmp_path) == {"the payload has 5 bytes, and the schema 28": 1}
    (record,) = broker.read("binary-out")
    assert record.key == b"x"
    assert json.loads(record.value or b"")["b"][0]["amount"] == 100
