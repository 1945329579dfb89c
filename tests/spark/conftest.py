"""A Spark Connect server and a Kafka broker for the tests, each started once."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pyspark
import pytest
from pyspark.sql import SparkSession

from penstock.spark.java import use_java
from penstock.spark.session import LOOPBACK
from tests.conftest import JAVA_OPTIONS, PYTHON
from tests.spark.kafka.broker import Broker

START_SECONDS = 180


@pytest.fixture(scope="session")
def connect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark Connect server: a process of its own, on the loopback interface."""
    log = tmp_path_factory.mktemp("connect") / "server.log"
    port, token = _free_port(), secrets.token_urlsafe()
    with log.open("wb") as output:
        server = subprocess.Popen(
            _server_command(port),
            env=_server_environment(token),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        _wait_until_it_listens(server, port, log)
        yield f"sc://localhost:{port}/;token={token}"
    finally:
        server.terminate()
        server.wait(START_SECONDS)


@pytest.fixture(scope="session")
def connect_session(connect_url: str) -> Iterator[SparkSession]:
    """A client of that server."""
    from pyspark.sql.connect.session import SparkSession as RemoteSession  # needs grpc

    running = RemoteSession.builder.remote(connect_url).getOrCreate()
    yield cast(SparkSession, running)
    running.stop()


@pytest.fixture
def connect(connect_session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """A Connect session; while a test has it, `pyspark.sql.functions` makes columns for it, not for `spark`."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    return connect_session


@pytest.fixture(params=["classic", "connect"])
def either(request: pytest.FixtureRequest) -> SparkSession:
    """Both, one after the other."""
    found: SparkSession = request.getfixturevalue("spark" if request.param == "classic" else "connect")
    return found


def _server_command(port: int) -> list[str]:
    settings = {
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": port,
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": 2,
        **JAVA_OPTIONS,
    }
    submit = Path(pyspark.__file__).with_name("bin") / "spark-submit"
    server = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]")
    return [str(submit), *server, *(word for name, value in settings.items() for word in ("--conf", f"{name}={value}"))]


def _server_environment(token: str) -> dict[str, str]:
    use_java()
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return {**ours, **PYTHON, "SPARK_LOCAL_IP": LOOPBACK, "SPARK_CONNECT_AUTHENTICATE_TOKEN": token}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _wait_until_it_listens(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    last = time.monotonic() + START_SECONDS
    while time.monotonic() < last and server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex((LOOPBACK, port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail(f"the Spark Connect server did not start:\n{log.read_text(errors='replace')[-3000:]}")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A Kafka broker; the tests that ask for it are marked `kafka`."""
    with Broker() as running:
        yield running


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    """A topic with two partitions, named after the test."""
    name = str(request.node.name)
    broker.create_topic(name, partitions=2)
    return name
