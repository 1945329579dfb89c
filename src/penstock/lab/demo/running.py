"""The demo from end to end: make a stream, train, find out what this machine can do, overload it twice, compare."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

import penstock as pk
from penstock.lab.demo.market import TEXT, VARIABLES, WORDS, query, role, written
from penstock.lab.demo.playing import Match, Played, play
from penstock.lab.demo.report import latencies, page
from penstock.lab.replaying import sent_by
from penstock.spark import Listener, Progress, collect, detect
from penstock.spark.session import session
from penstock.spark.training.fitting import espice_of

BOUND_S = 3.0
_SETTINGS: dict[str, Any] = {"spark.driver.memory": "2g", "spark.log.level": "OFF"}
HISTORY = 200_000
ROWS = 900_000
PROBE_ROWS, PROBE_BATCHES = 20_000, 8  # of which the first ones start workers
WARM_UP_S = 3.0


class Told:
    """Says what is going on: a line that is written anew, on stderr."""

    def __init__(self, console: Console) -> None:
        self._live = Live(Text(""), console=console, transient=False, refresh_per_second=4)
        self.phase = ""

    def __enter__(self) -> Told:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def begin(self, phase: str) -> None:
        """Begin something."""
        if self.phase:
            self._live.console.print(Text(f"✓ {self.phase}"))
        self.phase = phase
        self._live.update(Text(f"… {phase}"))

    def batch(self, played: Played) -> None:
        """Show a batch of a stream."""
        if not played.moments:
            return
        now = played.moments[-1]
        parts = [
            Text(f"… {self.phase}, {now.at:.0f} s"),
            Text(f"latency {now.latency:.1f} of {BOUND_S:g} s", "red" if now.latency > BOUND_S else "green"),
            Text(f"queue {now.queue:,}"),
            Text(f"{100 * now.shed / max(1, now.rows):.0f} % shed"),
            Text(f"{len(played.found):,} matches"),
        ]
        self._live.update(Text(" │ ").join(parts))


def run(
    folder: Path, console: Console, seconds: float = 20.0, rows: int = ROWS, history: int = HISTORY,
    overload: float = 2.0,
) -> dict[str, Any]:  # fmt: skip
    """Run the demo, and write report.html and latency.svg into a folder; return the facts.

    Args:
        folder: where to.
        console: for progress.
        seconds: how long each of the two streams is fed.
        rows: how many quotes are made.
        history: how many of them, the first, are learned from.
        overload: how many times as much is sent as this machine can process.
    """
    with tempfile.TemporaryDirectory() as name, Told(console) as told:
        told.begin("starting Spark")
        spark = session("penstock-demo", **_SETTINGS)
        try:
            facts, runs = _played(spark, Path(name), told, seconds, rows, history, overload)
        finally:
            spark.stop()
        told.begin("")
    folder.mkdir(parents=True, exist_ok=True)
    moments = {each: played.moments for each, played in runs.items()}
    (folder / "report.html").write_text(page(facts, moments), encoding="utf-8")
    (folder / "latency.svg").write_text(latencies(moments, BOUND_S) + "\n", encoding="utf-8")
    return facts


def _played(
    spark: Any, folder: Path, told: Told, seconds: float, rows: int, history: int, overload: float
) -> tuple[dict[str, Any], dict[str, Played]]:  # fmt: skip
    told.begin(f"making {rows:,} quotes")
    past, future = written(spark, rows, history, folder)
    told.begin(f"training eSPICE on the first {history:,}, as a Spark job")
    fitted = espice_of(collect(spark.read.parquet(str(past)), query()))
    told.begin("finding out what this machine can do")
    capacity = _capacity(spark, future, folder)
    rate = overload * capacity
    points = [(rate / 10, 4.0), (rate, 5.0), (rate, seconds)]
    shed = pk.Shedding(bound=f"{BOUND_S} s", strategy="espice", model=fitted.strategy, types=fitted.types)
    told.begin("warming up: workers compile what they shed with, once on a machine")
    play(spark, future, [(rate / 10, WARM_UP_S)], shed, told.batch)
    runs: dict[str, Played] = {}
    for name, how in (("without shedding", None), ("with shedding", shed)):
        told.begin(f"{100 * overload:.0f} % ({rate:,.0f} events/s) {name}")
        runs[name] = play(spark, future, points, how, told.batch)
    told.begin("finding all matches, as a batch")
    sent = min(sent_by(seconds, points), rows - history)
    truth = _truth(spark, future, sent)
    types = pq.read_table(future, columns=["type"]).column("type").slice(0, sent).to_pylist()
    part = runs["with shedding"].part
    sent_by_cell = Counter((role(each), number // part) for number, each in enumerate(types))
    facts = {
        "words": WORDS, "query": TEXT, "capacity": capacity, "rate": rate, "seconds": seconds, "bound": BOUND_S,
        "truth": len(truth), "sent_by_cell": _listed(sent_by_cell),
        "shed_by_cell": _listed(runs["with shedding"].shed_by_cell),
        "runs": {name: _judged(played, truth) for name, played in runs.items()},
        "utilities": _utilities(fitted),
    }  # fmt: skip
    facts["table"] = _rows(facts)
    facts["is_kept"], facts["verdict"] = _verdict(facts)
    return facts, runs


def _listed(cells: Counter[tuple[str, int]]) -> list[dict[str, Any]]:
    """Return counts by what symbols are and by the part of the stream, as JSON can have them."""
    return [{"role": name, "part": part, "events": count} for (name, part), count in sorted(cells.items())]


def _verdict(facts: dict[str, Any]) -> tuple[bool, str]:
    """Say whether the bound was kept, by 99 % of the matches, and how it was without shedding."""
    kept, without = (facts["runs"][name] for name in ("with shedding", "without shedding"))
    is_kept = bool(kept["p99"] <= facts["bound"])  # not, if there is no match
    said = (
        f"The bound of {facts['bound']:g} s was {'kept' if is_kept else 'broken'}: with shedding 99 % of the matches"
        f" came within {kept['p99']:.2f} s, without it within {without['p99']:.2f} s."
    )
    return is_kept, said


def _capacity(spark: Any, path: Path, folder: Path) -> float:
    """Return how many events/s a stream processes that always has enough of them."""
    table, files = pq.read_table(path), folder / "probe"
    table = table.append_column("number", [np.arange(len(table))])
    files.mkdir()
    for number in range(PROBE_BATCHES):
        pq.write_table(table.slice(number * PROBE_ROWS, PROBE_ROWS), files / f"{number}.parquet")
        os.utime(files / f"{number}.parquet", (1_700_000_000 + number,) * 2)  # Spark reads them in this order
    schema = spark.read.parquet(str(files)).schema
    frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(files))
    batches: list[Progress] = []
    listener = Listener(batches.append)
    spark.streams.addListener(listener)
    found = frame.transform(detect(query(), seq="number", attributes=["number"]))
    writer = found.writeStream.foreachBatch(lambda matches, _: matches.toArrow())
    stream = writer.option("checkpointLocation", str(folder / "probed")).trigger(availableNow=True).start()
    stream.awaitTermination()
    listener.ended.wait(10)
    spark.streams.removeListener(listener)
    settled = [each for each in batches if each.rows][PROBE_BATCHES // 2 :]
    return sum(each.rows for each in settled) / max(1e-9, sum(each.seconds for each in settled))


def _truth(spark: Any, path: Path, sent: int) -> set[Match]:
    """Return the matches of all events that were sent."""
    table = pq.read_table(path).slice(0, sent)
    table = table.append_column("number", [np.arange(len(table))])
    numbered = path.with_name("numbered.parquet")
    pq.write_table(table, numbered)
    found = spark.read.parquet(str(numbered)).transform(detect(query(), seq="number", attributes=["number"]))
    rows = found.selectExpr(*(f"{name}[0].number AS {name}" for name in VARIABLES)).toArrow().to_pydict()
    return set(zip(*(rows[name] for name in VARIABLES), strict=True))


def _judged(played: Played, truth: set[Match]) -> dict[str, Any]:
    return {
        "p50": played.percentile(50), "p99": played.percentile(99), "rows": played.rows, "shed": played.shed,
        "matches": len(played.found), "false_negatives": len(truth - played.found),
        "false_positives": len(played.found - truth),
        "in_time": sum(each <= BOUND_S for each in played.latencies),
        "queue": played.moments[-1].queue if played.moments else 0,
    }  # fmt: skip


def _utilities(fitted: Any) -> dict[str, float]:
    of_types = dict(zip(fitted.types, fitted.strategy.utilities[:, 0].tolist(), strict=True))
    return dict(sorted(of_types.items(), key=lambda pair: -pair[1])[:12])


def _rows(facts: dict[str, Any]) -> list[list[str]]:
    head = [
        "",
        "latency p50",
        "p99",
        f"matches within {BOUND_S:g} s",
        "false negatives",
        "false positives",
        "events shed",
        "in the queue at the end",
    ]
    rows = [head]
    for name, each in facts["runs"].items():
        lost = 100 * each["false_negatives"] / max(1, facts["truth"])
        rows.append(
            [
                name, f"{each['p50']:.2f} s", f"{each['p99']:.2f} s", f"{each['in_time']:,} of {facts['truth']:,}",
                f"{each['false_negatives']:,} ({lost:.1f} %)", f"{each['false_positives']:,}",
                f"{100 * each['shed'] / max(1, each['rows']):.1f} %", f"{each['queue']:,}",
            ]
        )  # fmt: skip
    return rows


def show(facts: dict[str, Any], console: Console) -> None:
    """Print the table."""
    head, *rows = facts["table"]
    table = Table(*head, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    console.print(
        f"\nThis machine can process {facts['capacity']:,.0f} events/s of the query; it was sent {facts['rate']:,.0f}."
    )
    console.print(table)
    console.print(f"\n{facts['verdict']}")
