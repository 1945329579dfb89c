"""Job files: what is wrong with them, what they read, and whole runs as a user starts them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import penstock as pk
import penstock.spark.jobs.job as job_module
from penstock.cli import app
from penstock.errors import QueryError
from penstock.pattern.parser import parse
from penstock.runtime.learning import about, learned
from penstock.shedding.storing import save
from penstock.spark import DetectError, detect
from penstock.spark.jobs.job import Job, JobError
from penstock.spark.jobs.parts import FileSource, KafkaSink
from penstock.spark.jobs.running import detected, run
from penstock.spark.jobs.sources import read
from penstock.spark.progress import Progress

QUERY = "PATTERN SEQ(Small a, Large b) WHERE b.amount > 10 * a.amount WITHIN 5 s PARTITION BY card RETURN a.id AS one"
SCHEMA = "type string, ts timestamp, card string, amount double, id long"
SPARK = {"cores": 2, "conf": {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}}
GOOD: dict[str, Any] = {
    "source": {"format": "json", "path": "in", "schema": SCHEMA},
    "detect": {"query": QUERY},
    "sink": {"format": "parquet", "path": "matches"},
    "run": {"checkpoint": "state"},
}


def changed(**tables: Any) -> dict[str, Any]:
    """Return a good job with other tables; None leaves one out."""
    return {name: table for name, table in {**GOOD, **tables}.items() if table is not None}


def test_what_a_job_keeps_to() -> None:
    job = Job.of(changed(shedding={"bound": "2 s", "strategy": "espice", "model": "model"}), "/jobs")
    assert job.shedding is not None
    assert job.bound_ms == 2000
    assert job.shedding.shedding() == pk.Shedding(bound="2 s", strategy="espice", model=Path("/jobs/model"))


# --- what is wrong with a job --------------------------------------------------------------------------------------

PROBLEMS: list[tuple[dict[str, Any], str]] = [
    (changed(run=None), "run: is missing"),
    (
        changed(sinks={}),
        "sinks: unknown key; write source, detect, sink, late, malformed, shed, ended, shedding, run or spark",
    ),
    (changed(sink={"path": "x"}), "sink.format: is missing; write parquet, json, postgres, kafka or console"),
    (
        changed(source={"format": "avro"}),
        "source.format: 'avro' is no format; write parquet, csv, json, rate or kafka",
    ),
    (changed(sink={"format": "parquet"}), "sink.path: is missing"),
    (changed(shedding={"strategy": "espice"}), "shedding.bound: is missing"),
    (
        changed(shedding={"bound": "2 s", "strategy": "rnd"}),
        "shedding.strategy: there is no strategy 'rnd'; write "
        "random-event, random-run, ebl, espice, pspice, pspice--, hspice-pm, hspice-w, gspice-sh, gspice-st, "
        "gspice-sf, gspice-wh, gspice-wt, gspice-wf",
    ),
    (
        changed(late={"format": "postgres", "tabel": "x"}),
        "late.table: is missing\nlate.tabel: unknown key; write format, table or dsn",
    ),
    (
        changed(source={"format": "csv", "path": "in"}),
        'source: csv files do not tell their columns; write schema = "type string, …"',
    ),
    (
        changed(source={**GOOD["source"], "options": {"mode": "DROPMALFORMED"}}),
        "source: rows that cannot be read go to [malformed]; leave mode and columnNameOfCorruptRecord out",
    ),
    (changed(detect={}), "detect: write either query or query_file"),
    (
        changed(detect={"query": QUERY, "watermark": "soon"}),
        "detect.watermark: 'soon' is no duration; write it as in '10 s' or '5 min'",
    ),
    (changed(detect={"query": QUERY, "buckets": 0}), "detect.buckets: 0 is no number of things; write 1 or more"),
    (changed(detect={"query": 5}), "detect.query: 5 is no text; write it in quotes"),
    (
        changed(detect={"query": [QUERY, QUERY], "weights": [2, 1]}),
        "detect: what matches are worth is in the model; leave weights out, and train it with --weight",
    ),
    (
        changed(shedding={"bound": "2 s", "f": 1.0}),
        "shedding.f: 1.0 is too much; write a number below 1",
    ),
    (changed(shedding={"bound": "2 s", "f": 0}), "shedding.f: 0 is too little; write a number above 0"),
    (changed(shedding={"bound": "2 s", "f": "x"}), "shedding.f: 'x' is no number; write one without quotes"),
    (changed(run={}), 'run: a stream goes on from its checkpoint; write checkpoint = "folder"'),
    (changed(run={"mode": "batch", "trigger": "1 s"}), "run: a batch has no checkpoint and no trigger; leave them out"),
    (changed(run={"mode": "once"}), "run.mode: 'once' is not known; write stream or batch"),
    (
        changed(run={"checkpoint": "x", "trigger": "often"}),
        "run.trigger: 'often' is no duration; write it as in '10 s' or '5 min'",
    ),
    (
        changed(sink={"format": "kafka", "servers": "x", "topic": "y", "once": "no"}),
        "sink.once: 'no' is no boolean; write true or false",
    ),
    (
        changed(spark={"conf": {"spark.x": [1]}}),
        "spark.conf.spark.x: [1] is no setting; write a text, a number, true or false",
    ),
    (changed(spark="local"), "spark: 'local' is no table; write [spark]"),
    (changed(sink="matches"), "sink: 'matches' is no table; write [sink]"),
    (
        changed(detect={"query": QUERY, "idle": "5 s"}, run={"checkpoint": "x", "trigger": "available-now"}),
        'the job: with trigger = "available-now" nobody waits for events; leave detect.idle out',
    ),
]


@pytest.mark.parametrize(("data", "expected"), PROBLEMS)
def test_problems(data: dict[str, Any], expected: str) -> None:
    with pytest.raises(JobError) as caught:
        Job.of(data)
    assert str(caught.value) == expected


class TestReading:
    def test_every_line_names_the_file(self, tmp_path: Path) -> None:
        file = tmp_path / "job.toml"
        file.write_text('[source]\nformat = "rate"\n')
        with pytest.raises(JobError) as caught:
            Job.read(file)
        assert str(caught.value).splitlines() == [f"{file}: {name}: is missing" for name in ("detect", "sink", "run")]

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            (None, "cannot be read: No such file or directory"),
            (b"\xff", "is no UTF-8 text: invalid start byte at byte 0"),
            (b"[source\n", "is no TOML: Expected ']' at the end of a table declaration (at line 1, column 8)"),
        ],
    )
    def test_no_job_at_all(self, content: bytes | None, expected: str, tmp_path: Path) -> None:
        file = tmp_path / "job.toml"
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(JobError) as caught:
            Job.read(file)
        assert str(caught.value) == f"{file}: {expected}"

    def test_paths_are_relative_to_the_file(self) -> None:
        job = Job.of(changed(source={**GOOD["source"], "path": "hdfs://host/in"}, spark={"jars": ["a.jar"]}), "/jobs")
        assert isinstance(job.source, FileSource)
        assert job.source.path == "hdfs://host/in"
        assert (job.run.checkpoint, job.spark.jars) == ("/jobs/state", ("/jobs/a.jar",))

    def test_dotted_settings(self) -> None:
        job = Job.of(changed(spark={"conf": {"spark": {"driver": {"memory": "4g"}}, "spark.ui.enabled": True}}))
        assert job.spark.conf == {"spark.driver.memory": "4g", "spark.ui.enabled": True}

    def test_the_example_of_the_module(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("DB_PASSWORD", "x")
        example = (job_module.__doc__ or "").split("\n\n", 1)[1].rpartition("\n\nOf Kafka")[0]
        (tmp_path / "fraud.toml").write_text("\n".join(text.removeprefix("    ") for text in example.splitlines()))
        job = Job.read(tmp_path / "fraud.toml")
        assert (job.run.name, job.run.every, job.run.bound_ms) == ("fraud", "1000000 microseconds", 800)
        assert (job.detect.by, list(job.sinks())) == (("card",), ["matches", "malformed", "ended"])


class TestVariables:
    def sink(self, **values: Any) -> dict[str, Any]:
        return changed(sink={"format": "kafka", "servers": "x", "topic": "y", **values})

    def test_they_are_filled_in(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SECRET", "s3cret")
        job = Job.of(self.sink(topic="$${SECRET}", options={"sasl.password": "a${SECRET}b"}))
        assert isinstance(job.sink, KafkaSink)
        assert (job.sink.options, job.sink.topic) == ({"sasl.password": "as3cretb"}, "${SECRET}")
        assert "s3cret" not in repr(job)

    def test_one_that_is_not_set(self) -> None:
        with pytest.raises(JobError) as caught:
            Job.of(self.sink(options={"sasl.password": "${NO_SUCH_ONE}"}))
        assert str(caught.value) == "sink.options.sasl.password: the environment has no variable 'NO_SUCH_ONE'"

    def test_no_message_shows_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SECRET", "s3cret")
        with pytest.raises(JobError) as caught:
            Job.of(changed(run={"mode": "${SECRET}"}))
        assert str(caught.value) == "run.mode: '${SECRET}' is not known; write stream or batch"


class TestQueries:
    def test_names(self, tmp_path: Path) -> None:
        (tmp_path / "fraud.cep").write_text(QUERY)
        assert [query.name for query in Job.of(changed(), name="it").queries()] == ["it"]
        several = changed(detect={"query": [QUERY, QUERY]}, run={"checkpoint": "x", "name": "both"})
        assert [query.name for query in Job.of(several).queries()] == ["both-1", "both-2"]
        files = changed(detect={"query_file": "fraud.cep"})
        assert [query.name for query in Job.of(files, tmp_path).queries()] == ["fraud"]

    def test_errors_have_the_place(self, tmp_path: Path) -> None:
        (tmp_path / "fraud.cep").write_text("PATTERN SEQ(A a, B b WITHIN 5 min")
        with pytest.raises(QueryError, match=r"^/.*/fraud\.cep:1:22: "):
            Job.of(changed(detect={"query_file": "fraud.cep"}), tmp_path).queries()
        with pytest.raises(QueryError, match=r"^detect\.query:1:1: "):
            Job.of(changed(detect={"query": "SEQ(A a)"})).queries()
        with pytest.raises(JobError, match=r"/no\.cep: cannot be read: No such file"):
            Job.of(changed(detect={"query_file": "no.cep"}), tmp_path).queries()


# --- on the command line -------------------------------------------------------------------------------------------


def written(folder: Path, data: dict[str, Any]) -> Path:
    """Write a job as TOML: JSON of its values is TOML too, in tables of one level."""
    lines = [
        f"[{name}]\n" + "".join(f"{key} = {_toml(each)}\n" for key, each in table.items())
        for name, table in data.items()
    ]
    (folder / "job.toml").write_text("\n".join(lines), encoding="utf-8")
    return folder / "job.toml"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


class TestCommand:
    @pytest.mark.parametrize(
        ("data", "code", "message"),
        [
            (changed(run=None), 2, "job.toml: run: is missing\n"),
            (changed(detect={"query": "PATTERN"}), 1, "detect.query:1:8: the text ends too early; expected "),
            (changed(detect={"query_file": "no.cep"}), 2, "no.cep: cannot be read: No such file or directory\n"),
        ],
    )
    def test_mistakes_are_told_before_spark_starts(
        self, data: dict[str, Any], code: int, message: str, tmp_path: Path
    ) -> None:
        result = CliRunner().invoke(app, ["detect", str(written(tmp_path, data))])
        assert result.exit_code == code
        assert message in result.stderr
        assert result.stdout == ""

    def test_without_pyspark(self, tmp_path: Path) -> None:
        """In a process of its own: modules that are imported anew here would stand beside those of other tests."""
        (tmp_path / "pyspark.py").write_text("raise ModuleNotFoundError(\"No module named 'pyspark'\", name='pyspark')")
        code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from penstock.cli import app; app()"
        job = str(written(tmp_path, GOOD))
        command = [sys.executable, "-c", code, str(tmp_path), "detect", job]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == 2
        assert done.stderr == "penstock detect needs pyspark\n  fix: pip install 'penstock[spark]'\n"


# --- events that are read ------------------------------------------------------------------------------------------

STREAM = {"checkpoint": "state", "trigger": "available-now"}
BAD_JSON = """\
{"type": "Small", "ts": "2024-01-01T00:00:00Z", "card": "x", "amount": 1, "id": 1}
garbage
{"type": "Small", "ts": "2024-01-01T00:00:00Z", "card": "x", "amount": "much", "id": 2}
{"type": "Small", "ts": "soon", "card": "x", "amount": 1, "id": 3}

{"type": "Small", "ts": "2024-01-01T00:00:00Z", "card": "x", "amount": 1, "id": 1.5}
[1, 2]
{"type": "Large", "ts": "2024-01-01T00:00:01Z", "card": "x", "amount": 100, "id": 6}
{"type": null, "ts": "2024-01-01T00:00:01Z"}
"""
BAD_CSV = """\
Small,2024-01-01T00:00:00Z,x,1,1
garbage
Small,2024-01-01T00:00:00Z,x,much,2
Large,2024-01-01T00:00:01Z,x,100,6,7
Large,2024-01-01T00:00:01Z,x,100,6
"""
REASONS = {
    "json": {
        "the line is no JSON object": 2,
        "amount is much, which is no double": 1,
        "ts is soon, which is no timestamp": 1,
        "id is 1.5, which is no bigint": 1,
        "no type: an event needs a type": 1,
    },
    "csv": {"the line does not have the 5 fields of the schema": 2, "amount is much, which is no double": 1},
}


@pytest.mark.parametrize("is_stream", [False, True], ids=["batch", "stream"])
@pytest.mark.parametrize(("kind", "text"), [("json", BAD_JSON), ("csv", BAD_CSV)])
def test_rows_that_cannot_be_read(kind: str, text: str, is_stream: bool, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / f"events.{kind}").write_text(text)
    job = Job.of(
        changed(
            source={**GOOD["source"], "format": kind, "columns": {"cents": "try_cast(amount * 100 AS int)"}},
            detect={"query": QUERY, "attributes": ["id", "cents"]},
            malformed={"format": "parquet", "path": "malformed"},
            run={"name": f"of {kind}", **(STREAM if is_stream else {"mode": "batch"})},
        ),
        tmp_path,
    )
    totals = run(job, spark=spark)
    assert (totals.rows, totals.processed, totals.matches) == (sum(REASONS[kind].values()) + 2, 2, 1)
    assert totals.wrong == []
    bad = spark.read.parquet(str(tmp_path / "malformed"))
    assert Counter(row.reason for row in bad.collect()) == REASONS[kind]
    assert {row._record for row in bad.where("reason LIKE 'amount%'").collect()} == {text.splitlines()[2]}
    (match,) = spark.read.parquet(str(tmp_path / "matches")).collect()
    assert (match.one, match.b[0].asDict()) == (1, {"type": "Large", "ts": match.last_ts, "id": 6, "cents": 10_000})
    if is_stream:  # the query keeps running: what comes next is matched
        more = tmp_path / "in" / f"more.{kind}"
        more.write_text(text.splitlines()[0].replace("00:00:00", "00:01:00") + "\n")
        totals = run(job, spark=spark)
        assert (totals.rows, totals.processed, totals.malformed, totals.wrong) == (1, 1, 0, [])
        return
    with pytest.raises(JobError, match=f"the results of 'of {kind}' are there already"):
        run(job, spark=spark)


@pytest.mark.parametrize(
    ("way", "cards"),  # in a stream, the last run is open
    [({"mode": "batch"}, {"y", "z"}), (STREAM, {"y"})],
)
def test_runs_that_ended_have_a_sink(way: dict[str, Any], cards: set[str], spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    rows = [("Small", 0, "x", 1.0), ("Large", 1, "x", 100.0), ("Small", 2, "y", 2.0), ("Small", 30, "z", 3.0)]
    lines = [
        json.dumps({"type": kind, "ts": f"2024-01-01T00:00:{second:02}Z", "card": card, "amount": amount, "id": id_})
        for id_, (kind, second, card, amount) in enumerate(rows)
    ]
    (tmp_path / "in" / "events.json").write_text("\n".join(lines))
    job = Job.of(changed(ended={"format": "parquet", "path": "ended"}, run={**way, "name": "ended"}), tmp_path)
    totals = run(job, spark=spark)
    assert (totals.rows, totals.matches, totals.ended, totals.wrong) == (4, 1, len(cards), [])
    ended = spark.read.parquet(str(tmp_path / "ended")).collect()
    assert {(row.card, row.why, row.a[0].id, row.b) for row in ended} == {
        (card, "timed out", 2 if card == "y" else 3, None) for card in cards
    }


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"schema": "type strin"}, "source.schema: 'type strin' is no DDL"),
        ({"schema": "int"}, "source.schema: 'int' names no columns"),
        ({"schema": "_record string"}, "source.schema: a column is called _record, which penstock uses itself"),
        ({"columns": {"x": "nothing + 1"}}, "source.columns.x: 'nothing + 1' cannot be used"),
        ({"path": "/no/such/folder"}, "Spark: [PATH_NOT_FOUND] Path does not exist: file:/no/such/folder."),
    ],
)
def test_sources_that_cannot_be_read(source: dict[str, Any], message: str, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    job = Job.of(changed(source={**GOOD["source"], **source}, run={"mode": "batch"}), tmp_path)
    with pytest.raises(pk.PenstockError) as caught:
        run(job, spark=spark)
    assert str(caught.value).startswith(message)


def test_weights_are_those_of_the_model(spark: SparkSession, tmp_path: Path) -> None:
    """The model has them; others would change nothing, and nobody would notice."""
    (tmp_path / "in").mkdir()
    history = {
        "type": ["Small", "Large"] * 50, "ts": list(range(0, 10**8, 10**6)), "card": ["x"] * 100,
        "amount": [1.0, 100.0] * 50, "id": list(range(100)),
    }  # fmt: skip
    queries = [(parse(QUERY, "one"), 2.0), (parse(QUERY, "other"), 1.0)]
    fitted = learned("espice", queries, history)
    save(fitted.strategy, tmp_path / "model", about(fitted, queries, 100))

    asked = {"query": [QUERY, QUERY], "arrival": "ts"}
    keeping = {"bound": "2 s", "strategy": "espice", "model": "model"}
    job = Job.of(changed(detect=asked, shedding=keeping, run=STREAM), tmp_path)
    assert detected(job, spark).isStreaming
    frame, shed = read(job, spark).frame, pk.Shedding(bound="2 s", strategy="espice", model=tmp_path / "model")
    assert frame.transform(detect(queries, arrival="ts", shed=shed)).isStreaming
    with pytest.raises(DetectError) as caught:
        frame.transform(detect([(query, 3.0 - weight) for query, weight in queries], arrival="ts", shed=shed))
    assert str(caught.value) == (
        "the model of espice was trained with the weights 2, 1, and the queries have 1, 2\n"
        "  fix: penstock train … --weight 1 --weight 2"
    )


def test_a_query_that_does_not_fit(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    wrong = QUERY.replace("b.amount", "b.amuont")
    with pytest.raises(QueryError, match=r"(?s)^detect\.query:1:37: .*fix: did you mean b\.amount"):
        run(Job.of(changed(detect={"query": wrong}, run={"mode": "batch"}), tmp_path), spark=spark)


# --- from the beginning to the end ------------------------------------------------------------------------------------


def write_events(folder: Path, numbers: range) -> list[dict[str, Any]]:
    """Write a file of ten events for each number; return the events."""
    events = []
    folder.mkdir(exist_ok=True)
    for number in numbers:
        some = [
            {
                "type": "Large" if k % 2 else "Small", "ts": f"2024-01-01T00:{number:02}:{k:02}Z", "card": str(k % 3),
                "amount": 100.0 if k % 2 else 1.0, "id": 10 * number + k,
            }
            for k in range(10)
        ]  # fmt: skip
        file = folder / f"{number:04}.json"
        file.write_text("".join(json.dumps(each) + "\n" for each in some))
        os.utime(file, (1_700_000_000 + number,) * 2)
        events += some
    return events


def detect_command(job: Path, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from penstock.cli import app; app()", "detect", str(job), "--json", "--quiet"]
    variables = {**os.environ, **environment}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", env=variables, start_new_session=True
    )


def in_one_process(events: list[dict[str, Any]]) -> Counter[Any]:
    engine = pk.Engine(pk.parse(QUERY, "job"), seq="id")
    table = pa.Table.from_pylist([each | {"ts": datetime.fromisoformat(each["ts"])} for each in events])
    return Counter(tuple(match.events[v][0] for v in ("a", "b")) for match in engine.process(table) + engine.flush())


def test_interrupted_and_resumed(tmp_path: Path) -> None:
    """Ctrl-C after some batches, then another run to the end: complete, and nothing twice."""
    events = write_events(tmp_path / "in", range(6))
    job = written(
        tmp_path,
        changed(
            source={**GOOD["source"], "options": {"maxFilesPerTrigger": 1}},
            run={"checkpoint": "state", "trigger": "${TRIGGER}"},
            spark=SPARK,
        ),
    )
    first = detect_command(job, TRIGGER="2 s")
    assert first.stdout is not None
    seen = [json.loads(first.stdout.readline()) for _ in range(2)]
    first.send_signal(signal.SIGINT)
    out, err = first.communicate(timeout=300)
    objects = [*seen, *map(json.loads, out.splitlines())]
    assert first.returncode == 0, err
    assert "stopping after this batch" in err
    assert [each["batch"] for each in objects[:-1]] == list(range(len(objects) - 1))
    assert objects[-1]["summary"]["stopped"]
    assert len(objects) - 1 < 6

    second = detect_command(job, TRIGGER="available-now")
    out, err = second.communicate(timeout=300)
    assert second.returncode == 0, err
    rest = [json.loads(text) for text in out.splitlines()]
    assert [each["batch"] for each in rest[:-1]] == list(range(len(objects) - 1, 6))
    assert all(each["adds_up"] for each in [*objects[:-1], *rest[:-1]])
    assert not rest[-1]["summary"]["stopped"]
    matches = pq.read_table(tmp_path / "matches").to_pylist()
    assert Counter((match["a"][0]["id"], match["b"][0]["id"]) for match in matches) == in_one_process(events)


def test_numbers_of_spark_as_events(spark: SparkSession, tmp_path: Path) -> None:
    """The rate source, stopped after some batches and gone on with: one number every 10 ms."""
    columns = {
        "type": "IF(value % 2 = 0, 'Small', 'Large')", "ts": "timestamp", "card": "CAST(value % 3 AS string)",
        "amount": "IF(value % 2 = 0, 1.0, 100.0)", "id": "value",
    }  # fmt: skip
    job = Job.of(
        changed(
            source={"format": "rate", "options": {"rowsPerSecond": 100}, "columns": columns},
            detect={"query": QUERY.replace("5 s", "35 ms")},
        ),
        tmp_path,
    )
    rows = 0
    for more in (100, 100):
        seen, enough = list[Progress](), Event()

        def take(progress: Progress, seen: list[Progress] = seen, more: int = more, enough: Event = enough) -> None:
            seen.append(progress)
            if sum(each.rows for each in seen) >= more:
                enough.set()

        totals = run(job, take, spark=spark, stopping=enough)
        assert totals.wrong == []
        rows += totals.processed
    found = [(match.one, match.b[0].id) for match in spark.read.parquet(str(tmp_path / "matches")).collect()]
    assert sorted(found) == [(number, number + 3) for number in range(0, rows - 3, 2)]


def test_a_sink_that_cannot_be_reached(tmp_path: Path) -> None:
    """The stream fails in Spark's own threads, and the user reads one line."""
    write_events(tmp_path / "in", range(1))
    nowhere = {"format": "postgres", "table": "alerts", "dsn": "host=127.0.0.1 port=1 password=${SECRET}"}
    failing = detect_command(written(tmp_path, changed(sink=nowhere, spark=SPARK)), SECRET="s3cret")
    out, err = failing.communicate(timeout=300)
    assert (failing.returncode, out) == (2, "")
    lines = [text for text in err.splitlines() if "incubator" not in text]  # which the JVM itself tells
    assert lines[0].startswith("PostgreSQL, table alerts: connection failed: ")
    assert not any(word in err for word in ("Traceback", "\tat ", "s3cret", "Exception"))
