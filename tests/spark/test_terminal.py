"""What `penstock detect` shows, and what it makes of Spark's errors."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from penstock.shedding.drift import LibraryDrift
from penstock.spark.drifting import DriftWatch
from penstock.spark.jobs.job import Job
from penstock.spark.jobs.parts import Keeping
from penstock.spark.jobs.running import reason_of
from penstock.spark.jobs.terminal import AT_ONCE, Shown, _interruptible, line, summary
from penstock.spark.progress import Progress, Totals
from penstock.spark.worker.results import LATENCIES
from tests.spark.test_progress import histogram

COUNTS = {"rows": 2000, "processed": 1700, "shed": 260, "matches": 17, "held": 40}


def job(**run: str) -> Job:
    return Job.of(
        {
            "source": {"format": "rate"},
            "detect": {"query": "PATTERN A a WITHIN 1 s"},
            "sink": {"format": "console"},
            "run": {"checkpoint": "/state", **run},
        },
        name="fraud",
    )


def progress(late: int = 0, ms: int = 200) -> tuple[Progress, Totals]:
    counts = {**COUNTS, "late": late, "rows": COUNTS["rows"] + late, "latency": [histogram(**{f"ms{ms}": 10})]}
    found = Progress.of(12, 1000, counts, 0)
    totals = Totals()
    totals.add(found)
    return found, totals


class TestLine:
    def test_all_is_well(self) -> None:
        text = line("fraud", *progress(), None)
        assert text.plain == (
            "fraud, batch 12 │ 2,000 rows/s │ latency p50 175, p99 200 ms │ 40 held │ 13.0 % shed"
            " │ 17 matches, 17 in all"
        )
        assert not text.spans

    def test_late_rows(self) -> None:
        assert line("fraud", *progress(late=3), None).plain.endswith(" │ 3 late, 0 malformed")

    def test_beyond_the_bound(self) -> None:
        text = line("fraud", *progress(ms=1250), 1000)
        assert "latency p50 1,125, p99 1,248 of 1,000 ms" in text.plain
        assert [span.style for span in text.spans] == ["red"]
        assert not line("fraud", *progress(), 1000).spans

    def test_beyond_what_is_counted(self) -> None:
        old = Progress.of(0, 1000, {"latency": [[*[0] * (LATENCIES - 1), 1]]}, 0)
        assert "latency p50 ≥ 60,000, p99 ≥ 60,000 ms" in line("fraud", old, Totals(), None).plain

    def test_rows_that_do_not_add_up(self) -> None:
        wrong = Progress.of(0, 1000, {"rows": 10, "processed": 9}, 0)
        totals = Totals()
        totals.add(wrong)
        assert line("fraud", wrong, totals, None).plain.endswith(" │ rows do not add up")

    def test_no_matches(self) -> None:
        empty = Progress.of(0, 0, {}, 0)
        assert line("fraud", empty, Totals(), None).plain == (
            "fraud, batch 0 │ 0 rows/s │ no latency │ 0 held │ 0.0 % shed │ 0 matches, 0 in all"
        )


def test_summary() -> None:
    totals = progress()[1]
    assert summary(job(bound="500 ms"), totals, was_stopped=True).plain == (
        "fraud: 1 batch, 2,000 rows (1,700 processed, 0 late, 0 malformed, 260 shed, 40 held), 17 matches,"
        f" latency p50 175, p99 200 of 500 ms\nstopped; the next run goes on from {Path('/state')}"
    )


class TestDrift:
    """A model whose rows have a fifth of the matches from the 101st batch on."""

    def after(self, batches: int, capsys: pytest.CaptureFixture[str]) -> tuple[list[dict[str, Any]], str]:
        """Return the objects that a run shows, and its last words."""
        watched = Job.of(
            {
                **job().model_dump(by_alias=True, exclude_none=True, exclude={"run", "spark"}),
                "run": {"checkpoint": "/state"},
                "shedding": {"bound": "1 s", "strategy": "espice", "model": "/model"},
            },
            name="fraud",
        )
        with Shown(watched, as_json=True, quiet=False) as shown:
            for number in range(batches):
                told = {"rows": 2000, "judged_rows": 40, "judged": 5 if number < 100 else 1}
                shown.take(Progress.of(number, 1000, told, 0))
        shown.end(Totals(), was_stopped=False)
        written = capsys.readouterr()
        return [json.loads(text) for text in written.out.splitlines()], written.err

    def test_it_is_told(self, capsys: pytest.CaptureFixture[str]) -> None:
        objects, words = self.after(200, capsys)
        since = objects[-1]["summary"]["drift_since"]
        assert 100 < since < 160
        assert [each["drift_since"] for each in objects[:-1]] == [None] * since + [since] * (200 - since)
        assert f"drift: rows have had more or fewer matches since batch {since}" in words

    def test_there_is_none(self, capsys: pytest.CaptureFixture[str]) -> None:
        objects, words = self.after(100, capsys)
        assert objects[-1]["summary"]["drift_since"] is None
        assert "drift" not in words

    def test_a_line_tells_it(self) -> None:
        watch = DriftWatch()
        assert "drift" not in line("fraud", *progress(), None, watch).plain
        watch.since = 7
        text = line("fraud", *progress(), None, watch)
        assert text.plain.endswith(" │ drift since batch 7: the model may be out of date")
        assert [span.style for span in text.spans] == ["red"]

    def test_only_models_are_watched(self) -> None:
        keeping = {"bound": "1 s", "strategy": "espice", "model": "m"}
        assert Keeping.model_validate({"bound": "1 s"}).drift_watch() is None
        assert Keeping.model_validate({**keeping, "drift": "none"}).drift_watch() is None
        watch = Keeping.model_validate({**keeping, "drift": "KSWIN"}).drift_watch()
        assert watch is not None
        assert isinstance(watch.sign, LibraryDrift)


class TestShown:
    def test_json_on_stdout_and_words_on_stderr(self, capsys: pytest.CaptureFixture[str]) -> None:
        found, totals = progress()
        with Shown(job(), as_json=True, quiet=False) as shown:
            shown.take(found)
            shown.take(found)  # too soon for another line
        shown.end(totals, was_stopped=False)
        written = capsys.readouterr()
        objects = [json.loads(text) for text in written.out.splitlines()]
        assert [each.get("batch") for each in objects] == [12, 12, None]
        assert (objects[2]["summary"]["rows"], objects[2]["summary"]["stopped"]) == (2000, False)
        assert [text.partition(",")[0] for text in written.err.splitlines()] == ["fraud", "fraud: 1 batch"]

    def test_on_a_terminal_a_line_is_written_anew_and_goes_in_the_end(self) -> None:
        """A real one, as far as the process can tell; the last line stays until the sums take its place."""
        code = "from tests.spark.test_terminal import show; show()"
        main, other = pty.openpty()
        with subprocess.Popen([sys.executable, "-c", code], stderr=other, stdout=other, cwd=ROOT) as process:
            os.close(other)
            written = b""
            while chunk := _read(main):
                written += chunk
        assert process.returncode == 0
        os.close(main)
        lines = re.split(rb"\x1b\[2K|\r\n", written)
        told = [re.sub(rb"\x1b\[[\d;?]*\w|\r", b"", text).decode().strip() for text in lines]
        told = [text for text in told if text]
        assert told[0] == "fraud: starting Spark"
        assert [text.split(" │ ")[0] for text in told if text.startswith("fraud, batch")][-1] == "fraud, batch 13"
        assert told[-1].startswith("fraud: 2 batches, 4,000 rows")
        assert written.count(b"\x1b[2K") >= 3, "lines are not written anew"

    def test_quiet(self, capsys: pytest.CaptureFixture[str]) -> None:
        found, totals = progress()
        with Shown(job(), as_json=False, quiet=True) as shown:
            shown.take(found)
        shown.end(totals, was_stopped=False)
        assert capsys.readouterr() == ("", "")


ROOT = Path(__file__).parents[2]


def show() -> None:
    """Show two batches and their sums."""
    found, totals = progress()
    with Shown(job(), as_json=False, quiet=False) as shown:
        time.sleep(0.5)  # rich writes four times a second by itself
        for number in (12, 13):
            shown.take(replace(found, batch_id=number))
    totals.add(found)
    shown.end(totals, was_stopped=False)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # Linux tells so that nobody has it open any more
        return b""


def wait() -> None:
    """Be a job that takes its time to stop."""
    stopping = Event()
    with _interruptible(stopping):
        print("ready", flush=True)
        while not stopping.wait(0.01):
            pass
        print("stopping", flush=True)
        time.sleep(60)


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_the_second_interrupt_ends_the_process_at_once(first: signal.Signals) -> None:
    code = "from tests.spark.test_terminal import wait; wait()"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(first)
        assert process.stdout.readline() == "stopping\n", "the first one asks for an end"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    assert process.returncode == AT_ONCE
    assert told == "\nstopping after this batch; Ctrl-C again stops at once\n"


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with _interruptible(Event()):
        assert signal.getsignal(signal.SIGINT) is not before[0]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


WORKER = """[STREAM_FAILED] Query [id = e7, runId = a7] terminated with exception: Job aborted: Task 0
  File "bucket.py", line 140, in restore
    raise SnapshotError(
penstock.engine.snapshots.SnapshotError: the checkpoint has 2 buckets, and detect now asks for 3
  fix: detect(…, buckets=2)

\tat org.apache.spark.api.python.BasePythonRunner
Driver stacktrace: SQLSTATE: XXKST
"""
OTHER = """[STREAM_FAILED] Query [id = e7] terminated with exception: [FOREACH_BATCH_USER_FUNCTION_ERROR] Reason:
Traceback (most recent call last):
  File "my.py", line 53, in function
    raise ValueError("no")
ValueError: no such thing
 SQLSTATE: 39000
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (WORKER, "the checkpoint has 2 buckets, and detect now asks for 3\n  fix: detect(…, buckets=2)"),
        (OTHER, "ValueError: no such thing"),
        ("[PATH_NOT_FOUND] Path does not exist: /x. SQLSTATE: 42K03", "[PATH_NOT_FOUND] Path does not exist: /x."),
        ("Query [id = 1] terminated with exception: Out of disk SQLSTATE: XXKST\n=== Plan", "Out of disk"),
        ("", "no reason given"),
    ],
)
def test_what_an_error_of_sparks_comes_down_to(text: str, expected: str) -> None:
    assert reason_of(text) == expected


def test_why_rows_were_shed_is_told_at_the_end() -> None:
    totals = Totals()
    counts = {**COUNTS, "shed_early": 200, "shed_overdue": 60, "shed_runs": 1234}
    totals.add(Progress.of(0, 1000, counts, 0))
    assert (
        "\nshed: 200 rows before the shuffle, 60 that were overdue, 1,234 runs;" in summary(job(), totals, False).plain
    )
