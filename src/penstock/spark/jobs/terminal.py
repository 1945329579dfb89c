"""`penstock detect`: a job on the terminal, with a line that tells how it goes, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from types import FrameType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from penstock.spark.drifting import DriftWatch
from penstock.spark.jobs.job import Job
from penstock.spark.jobs.parts import ConsoleSink
from penstock.spark.jobs.running import run, session_of
from penstock.spark.progress import Progress, Totals
from penstock.spark.worker.results import LATENCY_MS

AT_ONCE = 130  # the exit code after the second Ctrl-C, as shells have it
SECONDS_BETWEEN_LINES = 10.0  # where there is no terminal, and a line cannot be written anew

_STOPPING = b"\nstopping after this batch; Ctrl-C again stops at once\n"


def run_job(path: Path, as_json: bool = False, quiet: bool = False) -> int:
    """Run a job file, show how it goes, and return the exit code.

    Args:
        path: of the job file.
        as_json: whether to print an object for each batch and one at the end, on stdout.
        quiet: whether to show nothing but errors on stderr.

    Raises:
        PenstockError: the job cannot be run.
    """
    job = Job.read(path)
    job.queries()  # what is wrong with them is told before Spark starts
    prints = as_json or any(isinstance(sink, ConsoleSink) for sink in job.sinks().values())
    shown = Shown(job, as_json, quiet, is_live=not (prints and sys.stdout.isatty()))
    stopping = Event()
    with _interruptible(stopping), shown:
        spark = session_of(job)
        with _interruptible(stopping):  # Spark has put its own handler in the place of ours
            try:
                totals = run(job, shown.take, spark=spark, stopping=stopping)
            finally:
                spark.stop()
    shown.end(totals, stopping.is_set())
    return 0


@contextmanager
def _interruptible(stopping: Event) -> Iterator[None]:
    """Let the first Ctrl-C, or SIGTERM, ask for an end; let the second end the process.

    What is not committed then is done again by the next run, from the checkpoint.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        if stopping.is_set():
            os._exit(AT_ONCE)  # Spark's process ends when this one does
        stopping.set()
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, _STOPPING)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Shown:
    """Shows progress: a line on stderr that is written anew, or a line now and then; objects on stdout.

    Args:
        job: what is run.
        as_json: whether there are objects.
        quiet: whether there is no line.
        is_live: whether a line may be written anew, if stderr is a terminal.
    """

    def __init__(self, job: Job, as_json: bool, quiet: bool, is_live: bool = True) -> None:
        self.job, self.as_json, self.quiet = job, as_json, quiet
        self._console = Console(stderr=True, highlight=False)
        self._totals = Totals()
        self.watch = None if job.shedding is None else job.shedding.drift_watch()
        self._last_line = -SECONDS_BETWEEN_LINES
        self._live: Live | None = None
        if is_live and not quiet and self._console.is_terminal:
            starting = Text(f"{job.run.name}: starting Spark")
            self._live = Live(
                starting, console=self._console, transient=True, redirect_stdout=False, redirect_stderr=False
            )

    def __enter__(self) -> Shown:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def take(self, progress: Progress) -> None:
        """Show a batch."""
        self._totals.add(progress)
        if self.watch is not None:
            self.watch(progress)
        if self.as_json:
            print(json.dumps({**progress.as_json(), **self._drift()}), flush=True)
        if self.quiet:
            return
        text = line(self.job.run.name, progress, self._totals, self.job.bound_ms, self.watch)
        if self._live is not None:
            self._live.update(text, refresh=True)
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            self._console.print(text, soft_wrap=True)

    def end(self, totals: Totals, was_stopped: bool) -> None:
        """Show the sums."""
        if self.as_json:
            print(json.dumps({"summary": {**totals.as_json(), **self._drift(), "stopped": was_stopped}}), flush=True)
        if not self.quiet:
            self._console.print(summary(self.job, totals, was_stopped, self.watch), soft_wrap=True)

    def _drift(self) -> dict[str, int | None]:
        """Return since when the model is out of date, if there is one that is watched."""
        return {} if self.watch is None else {"drift_since": self.watch.since}


def line(
    name: str, progress: Progress, totals: Totals, bound_ms: float | None, watch: DriftWatch | None = None
) -> Text:
    """Return a batch as a line; the latency is red if it is beyond the bound."""
    parts = [
        Text(f"{name}, batch {progress.batch_id}"),
        Text(f"{progress.rows_per_s:,.0f} rows/s"),
        _latency(progress.p50_ms, progress.p99_ms, bound_ms),
        Text(f"{progress.held:,} held"),
        Text(_shed(totals)),
        Text(f"{progress.matches:,} matches, {totals.matches:,} in all"),
    ]
    if totals.late or totals.malformed:
        parts.append(Text(f"{totals.late:,} late, {totals.malformed:,} malformed"))
    if totals.wrong:
        parts.append(Text("rows do not add up", "red"))
    if watch is not None and watch.since is not None:
        parts.append(Text(f"drift since batch {watch.since}: the model may be out of date", "red"))
    return Text(" │ ").join(parts)


def _shed(totals: Totals) -> str:
    """Return the share of rows that were shed, and how many runs, if any."""
    runs = f", {totals.shed_runs:,} runs" if totals.shed_runs else ""
    return f"{_share(totals.shed, totals.rows)} shed{runs}"


def summary(job: Job, totals: Totals, was_stopped: bool, watch: DriftWatch | None = None) -> Text:
    """Return the sums as text."""
    counts = ", ".join(
        f"{getattr(totals, each):,} {each}" for each in ("processed", "late", "malformed", "shed", "held")
    )
    found = totals.as_json()["latency_ms"]
    latency = _latency(found["p50"], found["p99"], job.bound_ms)
    batches = f"{totals.batches:,} {'batch' if totals.batches == 1 else 'batches'}"
    text = Text(f"{job.run.name}: {batches}, {totals.rows:,} rows ({counts}), {totals.matches:,} matches, ")
    text.append_text(latency)
    if totals.shed_early or totals.shed_overdue or totals.shed_runs or totals.shed_partly:
        text.append(
            f"\nshed: {totals.shed_early:,} rows before the shuffle, {totals.shed_overdue:,} that were overdue, "
            f"{totals.shed_runs:,} runs; {totals.shed_partly:,} rows were hidden from some runs"
        )
    if (loss := totals.loss.estimate()).matches:
        text.append(f"\nof matches, by keys that are never shed: {loss}")
    if watch is not None and watch.since is not None:
        text.append(
            f"\ndrift: rows have had more or fewer matches since batch {watch.since}, so the model may be out of date\n"
            "  fix: penstock train on newer rows; the next run goes on from the checkpoint with the new model"
        )
    if was_stopped and job.run.checkpoint is not None:
        text.append(f"\nstopped; the next run goes on from {job.run.checkpoint}")
    return text


def _latency(p50_ms: float | None, p99_ms: float | None, bound_ms: float | None) -> Text:
    if p50_ms is None or p99_ms is None:
        return Text("no latency")
    of = "" if bound_ms is None else f" of {bound_ms:,.0f}"
    is_over = bound_ms is not None and p99_ms > bound_ms
    return Text(f"latency p50 {_ms(p50_ms)}, p99 {_ms(p99_ms)}{of} ms", "red" if is_over else "")


def _ms(value: float) -> str:
    """Return a latency; what is beyond the last bound is not known better."""
    return f"{'≥ ' if value >= LATENCY_MS[-1] else ''}{value:,.0f}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0.0 %"
