"""One stream of the demo: quotes that another process sends at a rate, and what is seen of their matches."""

from __future__ import annotations

import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import penstock as pk
from penstock.lab.demo.market import VARIABLES, query, role
from penstock.lab.replaying import Replay, sent_by
from penstock.spark import Listener, Progress, detect

PARTS = 20  # of a stream, by which shed events are counted
LAST_BATCH_S = 60.0  # how long the last batch of a stream may take

Match = tuple[int, ...]


class _OverError(Exception):
    """The stream shall end."""


@dataclass(frozen=True)
class Moment:
    """A batch, as it is shown: when it ended, what it had.

    Attributes:
        at: seconds since the first event was sent.
        latency: the greatest of its matches, in seconds; of its oldest row if it has none.
        queue: events that had been sent, and were in no batch yet.
        rows: of the batch.
        shed: of them.
        matches: found in it.
    """

    at: float
    latency: float
    queue: int
    rows: int
    shed: int
    matches: int


@dataclass
class Played:
    """What came out of a stream.

    Attributes:
        points: the rates that it was sent at.
        part: how many events are a part of the stream, by which shed events are counted.
    """

    points: list[tuple[float, float]]
    part: int
    start: float = 0.0
    moments: list[Moment] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    found: set[Match] = field(default_factory=set)
    shed_by_cell: Counter[tuple[str, int]] = field(default_factory=Counter)  # what a symbol is, part of the stream
    rows: int = 0
    shed: int = 0
    batches: list[Progress] = field(default_factory=list)
    _pending: tuple[float, float, int] = (0.0, 0.0, 0)  # when a batch ended, its latency, its matches

    def note(self, rows: pa.Table) -> None:
        """Take the matches and shed rows of a batch."""
        now = time.time()
        shed = rows.filter(pc.equal(rows["output"], "shed")).group_by(["type", "part"]).aggregate([([], "count_all")])
        for each in shed.to_pylist():
            self.shed_by_cell[role(each["type"]), each["part"]] += each["count_all"]
        matches = rows.filter(pc.equal(rows["output"], "matches")).to_pylist()
        waited = [now - match["us"] / 1e6 for match in matches]
        self.found |= {tuple(int(match[name]) for name in VARIABLES) for match in matches}
        self.latencies += waited
        self._pending = (now - self.start, max(waited, default=0.0), len(matches))

    def progressed(self, progress: Progress) -> None:
        """Take what Spark tells about a batch."""
        self.batches.append(progress)
        if not progress.rows:
            return
        self.rows += progress.rows
        self.shed += progress.shed
        at, latency, matches = self._pending
        queue = max(0, sent_by(at, self.points) - self.rows)
        rate = sent_by(at, self.points) / max(at, 1e-9)
        oldest = progress.seconds + queue / max(rate, 1e-9)  # what has come meanwhile has waited that long
        self.moments.append(Moment(at, latency or oldest, queue, progress.rows, progress.shed, matches))

    def percentile(self, share: float) -> float:
        """Return a percentile of the latencies of matches, in seconds."""
        return float(np.percentile(self.latencies, share)) if self.latencies else float("nan")


def play(
    spark: Any, path: Path, points: list[tuple[float, float]], shed: pk.Shedding | None,
    shown: Callable[[Played], None],
) -> Played:  # fmt: skip
    """Send quotes at a rate, and detect; return what was seen by the time at which the last was sent."""
    played = Played(points, max(1, sent_by(points[-1][1], points) // PARTS))
    over = threading.Event()

    def sink(frame: Any, number: int) -> None:
        if over.is_set():
            raise _OverError  # in the middle of a batch Spark would print what it was doing
        numbers = [f"{name}[0].number AS {name}" for name in VARIABLES]
        part = f"event.number div {played.part} AS part"
        rows = frame.selectExpr("output", "event.type AS type", part, "unix_micros(arrived_ts) AS us", *numbers)
        played.note(rows.toArrow())

    def receive(progress: Progress) -> None:
        played.progressed(progress)
        shown(played)

    listener = Listener(receive)
    spark.streams.addListener(listener)
    with Replay(path, points) as replay, tempfile.TemporaryDirectory() as folder:
        lines = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", replay.port).load()
        asked = detect(
            query(), seq="number", attributes=["number"], arrival="arrived", shed=shed,
            outputs=["matches", "shed"] if shed is not None else ["matches", "late"],
        )  # fmt: skip
        writer = parsed(lines).transform(asked).writeStream.foreachBatch(sink).option("checkpointLocation", folder)
        stream = writer.start()
        played.start = time.time()
        while not replay.wait(0.1) and stream.isActive:
            pass
        over.set()
        _stop(stream)
    spark.streams.removeListener(listener)
    return played


def _stop(stream: Any) -> None:
    """Wait until a stream has ended by itself; stop it if that takes too long, or if no batch comes."""
    last = time.time() + LAST_BATCH_S
    while stream.isActive and time.time() < last and stream.status["isDataAvailable"]:
        time.sleep(0.05)
    stream.stop()


def parsed(lines: Any) -> Any:
    """Return lines as events."""
    columns = ("type string", "ts long", "market string", "change double", "number long")
    parts = lines.selectExpr("split(value, ',') AS part")
    each = [f"CAST(part[{k}] AS {kind}) AS {name}" for k, (name, kind) in enumerate(map(str.split, columns))]
    return parts.selectExpr(*each, "timestamp_micros(CAST(part[5] AS long)) AS arrived")
