"""The PostgreSQL sink, on a real server."""

from __future__ import annotations

import os
import pickle
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from penstock.spark.sinks.once import SinkError
from penstock.spark.sinks.postgres import PostgresOnce, without_password

PASSWORD = "s3cret-of-the-tests"
START_SECONDS = 60
COLUMNS = [("id", "bigint"), ("text", "text")]


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "text": pa.array([f"row {each}" for each in ids])})


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    """Where a server listens that runs while the tests of this file do; on the loopback interface, with a password."""
    initdb, postgres = shutil.which("initdb"), shutil.which("postgres")
    if initdb is None or postgres is None:
        pytest.skip("PostgreSQL is not installed: initdb and postgres are not on the path")
    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None  # it refuses to run as root
    with tempfile.TemporaryDirectory(prefix="penstock-postgres-") as name:
        folder = Path(name)
        (folder / "password").write_text(PASSWORD)
        if user is not None:
            for path in (folder, folder / "password"):
                os.chown(path, user.pw_uid, user.pw_gid)
        run_as: dict[str, Any] = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        command = [initdb, "-D", str(folder / "data"), "-U", "tests", "-A", "scram-sha-256", "--no-sync"]
        command += ["--pwfile", str(folder / "password"), "-E", "UTF8", "--locale", "C"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder, **run_as)
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        command = [postgres, "-D", str(folder / "data"), "-p", str(port), "-k", str(folder), "-h", "127.0.0.1", "-F"]
        with (folder / "log").open("wb") as log:
            server: subprocess.Popen[bytes] = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, **run_as)
        try:
            where = f"host=127.0.0.1 port={port} user=tests dbname=postgres"
            _wait_for(f"{where} password={PASSWORD}", server, folder / "log")
            yield where
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(START_SECONDS)


def _wait_for(dsn: str, server: subprocess.Popen[bytes], log: Path) -> None:
    last = time.monotonic() + START_SECONDS
    while time.monotonic() < last and server.poll() is None:
        try:
            psycopg.connect(dsn).close()
            return
        except psycopg.OperationalError:
            time.sleep(0.1)
    pytest.fail(f"PostgreSQL did not start:\n{log.read_text(errors='replace')}")


@pytest.fixture
def database(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[psycopg.Connection]:
    """A connection to an empty database; the password is in the environment."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        yield connection


def all_of(database: psycopg.Connection, query: str) -> list[Any]:
    return database.execute(query).fetchall()


class TestStoring:
    def test_once(self, database: psycopg.Connection, dsn: str) -> None:
        sink = PostgresOnce("alerts", "stream", dsn)
        assert sink.store(rows(1, 2), COLUMNS, 0)
        assert sink.store(rows(3), COLUMNS, 1)
        assert not sink.store(rows(3), COLUMNS, 1)  # the driver died before Spark knew that the batch is done
        assert not PostgresOnce("alerts", "stream", dsn).store(rows(3), COLUMNS, 1)
        assert all_of(database, "SELECT id, text FROM alerts ORDER BY id") == [(k, f"row {k}") for k in (1, 2, 3)]
        assert all_of(database, "SELECT name, target, batch_id, rows FROM penstock_batches ORDER BY batch_id") == [
            ("stream", "alerts", 0, 2),
            ("stream", "alerts", 1, 1),
        ]

    def test_other_streams_and_tables_have_batches_of_their_own(self, database: psycopg.Connection, dsn: str) -> None:
        assert PostgresOnce("alerts", "one", dsn).store(rows(1), COLUMNS, 0)
        assert PostgresOnce("alerts", "two", dsn).store(rows(2), COLUMNS, 0)
        assert PostgresOnce("late", "one", dsn).store(rows(3), COLUMNS, 0)
        assert all_of(database, "SELECT count(*) FROM alerts") == [(2,)]

    def test_a_batch_that_fails_leaves_nothing(self, database: psycopg.Connection, dsn: str) -> None:
        database.execute("CREATE TABLE alerts (id bigint CHECK (id < 3), text text)")
        sink = PostgresOnce("alerts", "stream", dsn)
        with pytest.raises(SinkError, match=r"^PostgreSQL, table alerts: .*violates check constraint"):
            sink.store(rows(1, 2, 3), COLUMNS, 0)
        assert all_of(database, "SELECT count(*) FROM alerts") == [(0,)]
        assert sink.store(rows(1, 2), COLUMNS, 0)

    def test_two_attempts_at_once(self, database: psycopg.Connection, dsn: str) -> None:
        PostgresOnce("alerts", "stream", dsn).store(rows(), COLUMNS, 0)
        batch = rows(*range(2000))
        with ThreadPoolExecutor(4) as pool:
            written = list(pool.map(lambda _: PostgresOnce("alerts", "stream", dsn).store(batch, COLUMNS, 1), range(4)))
        assert sorted(written) == [False, False, False, True]
        assert all_of(database, "SELECT count(*) FROM alerts") == [(2000,)]

    def test_names_that_need_quotes(self, database: psycopg.Connection, dsn: str) -> None:
        database.execute("CREATE SCHEMA fraud")
        table = pa.table({'a "b" %s; c': pa.array([1], pa.int64())})
        assert PostgresOnce("fraud.Odd name", "stream", dsn).store(table, [('a "b" %s; c', "bigint")], 0)
        assert all_of(database, 'SELECT * FROM fraud."Odd name"') == [(1,)]

    def test_a_user_who_may_not_make_tables(self, database: psycopg.Connection, dsn: str) -> None:
        PostgresOnce("alerts", "stream", dsn).store(rows(), COLUMNS, 0)
        database.execute("DROP ROLE IF EXISTS writer")
        database.execute("CREATE ROLE writer LOGIN PASSWORD 'other'")
        database.execute("GRANT USAGE ON SCHEMA public TO writer")
        database.execute("GRANT INSERT, SELECT ON alerts, penstock_batches TO writer")
        theirs = dsn.replace("user=tests", "user=writer password=other")
        assert PostgresOnce("alerts", "stream", theirs).store(rows(1), COLUMNS, 1)

    def test_values_that_postgres_does_not_take(self, database: psycopg.Connection, dsn: str) -> None:
        table = pa.table(
            {
                "text": pa.array(["a\0b", None, ""]),
                "doc": pa.array([r'{"a": "x\u0000y \\u0000"}', None, "[]"]),
                "at": pa.array([9 * 10**18, -(9 * 10**18), 0]).cast(pa.timestamp("us", "UTC")),
                "day": pa.array([2**30, 0, None], pa.int32()).cast(pa.date32()),
                "span": pa.array([1_500_000, None, -1]).cast(pa.duration("us")),
            }
        )
        kinds = {"text": "text", "doc": "jsonb", "at": "timestamptz", "day": "date", "span": "interval"}
        assert PostgresOnce("odd", "stream", dsn).store(table, list(kinds.items()), 0)
        assert all_of(database, "SELECT text, doc, at::text, day::text, span FROM odd") == [
            ("a\ufffdb", {"a": "x\ufffdy \\u0000"}, "infinity", "infinity", timedelta(seconds=1.5)),
            (None, None, "-infinity", "1970-01-01", None),
            ("", [], all_of(database, "SELECT to_timestamp(0)::text")[0][0], None, timedelta(microseconds=-1)),
        ]

    def test_a_column_name_that_would_be_cut_off(self, database: psycopg.Connection, dsn: str) -> None:
        with pytest.raises(SinkError, match="fix: give it a shorter name"):
            PostgresOnce("alerts", "stream", dsn).store(pa.table({"x" * 64: [1]}), [("x" * 64, "bigint")], 0)


class TestSecrets:
    def test_a_wrong_password(self, dsn: str) -> None:
        sink = PostgresOnce("alerts", "stream", f"{dsn} password=wr0ng-one")
        with pytest.raises(SinkError, match="authentication failed") as caught:
            sink.store(rows(1), COLUMNS, 0)
        assert "wr0ng-one" not in f"{caught.value} {caught.value.__cause__} {sink!r}"
        assert caught.value.__suppress_context__

    def test_a_dsn_that_cannot_be_read(self) -> None:
        for dsn in ("host=x password=s3cret junk", "postgres://u:s3cret@h:x:y/?bad"):
            with pytest.raises(SinkError, match="its dsn cannot be read") as caught:
                PostgresOnce("alerts", "stream", dsn).store(rows(1), COLUMNS, 0)
            assert "s3cret" not in str(caught.value)

    def test_no_server(self) -> None:
        with pytest.raises(SinkError, match=r"^PostgreSQL, table alerts: connection failed"):
            PostgresOnce("alerts", "stream", "host=127.0.0.1 port=1 password=x").store(rows(1), COLUMNS, 0)

    def test_a_message_that_has_it(self) -> None:
        assert without_password("it was s3cret", "host=x password=s3cret") == "it was ***"


def test_it_travels(dsn: str) -> None:
    """Spark Connect sends what `foreachBatch` calls to its server."""
    assert repr(pickle.loads(pickle.dumps(PostgresOnce("alerts", "stream", dsn)))) == "PostgresOnce('alerts')"


def test_a_frame(spark: SparkSession, database: psycopg.Connection, dsn: str) -> None:
    events = "array(named_struct('v', 1.5D, 'ts', timestamp_micros(1), 'none', cast(null as int)))"
    frame = spark.range(1).select(
        sf.expr("timestamp_micros(1700000000123456)").alias("at"),
        sf.expr("timestamp_ntz'2024-01-02 03:04:05.000006'").alias("plain"),
        sf.expr("date'2024-01-02'").alias("day"),
        sf.expr("cast(12.34 as decimal(10, 2))").alias("price"),
        sf.expr("1.5D").alias("x"),
        sf.expr("true").alias("flag"),
        sf.expr("X'00ff'").alias("raw"),
        sf.expr("cast(X'61ff62' as string)").alias("broken"),
        sf.expr(events).alias("a"),
        sf.expr("cast(null as array<struct<v: int>>)").alias("b"),
        sf.expr("array(1, 2)").alias("numbers"),
        sf.expr("map('k', 'v')").alias("pairs"),
    )
    sink = PostgresOnce("matches", lambda session: f"cores {session.conf.get('spark.sql.shuffle.partitions')}", dsn)
    assert sink.write(frame, 0)
    assert not sink.write(frame, 0)
    assert all_of(database, "SELECT DISTINCT name FROM penstock_batches") == [("cores 2",)]
    (found,) = all_of(database, "SELECT * FROM matches")
    at, plain, day, price, x, flag, raw, broken, a, b, numbers, pairs = found
    assert at == datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC)
    assert (plain, day) == (datetime(2024, 1, 2, 3, 4, 5, 6), date(2024, 1, 2))
    assert (str(price), x, flag, raw, broken) == ("12.34", 1.5, True, b"\x00\xff", "a\ufffdb")
    assert a == [{"v": 1.5, "ts": "1970-01-01T00:00:00.000001Z", "none": None}]
    assert (b, numbers, pairs) == (None, [1, 2], {"k": "v"})
