"""What the workers are told: plain data that travels with the job. The code is imported there, not sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.engine.snapshots import SnapshotError
from penstock.pattern import ast
from penstock.pattern.render import render

if TYPE_CHECKING:
    from penstock.engine.detector import Mode
    from penstock.engine.engine import Engine
    from penstock.spark.worker.shedding import Shed

SEQ = "_penstock_seq"  # the number of an event inside: the users', or counted
TIE = "_tie"  # a column that breaks ties in time: the users' number, or a hash of the row
WORTH = "_penstock_worth"  # what a row is worth to the queries, as a strategy that looks at the stream has said
SPARED = float("-inf")  # its worth, if the row would be gone already were it not of a key that is never shed
OVERDUE = "it could not be on time any more"  # why a row is shed; otherwise, by which strategy
NOW = "_penstock_now"  # the time of the micro-batch, in microseconds


@dataclass(frozen=True)
class Spec:
    """One detection.

    Attributes:
        queries: with their weights.
        type: the name of the column with the type of an event; likewise `time`, `seq`, `arrival`.
        by: what events are parted by.
        keys: the columns of the keys in results, if the queries have SAME instead of PARTITION BY; else empty.
        events: the columns that come in, `TIE` apart.
        event: what a match holds of each event.
        read: the attributes that the queries read.
        counting: the types of events that matter; None if all do.
        results: the columns that come out.
        watermark_us: how late events may come; None if they come in order.
        idle_us: when no event has come for so long, time passes as the clock does; None if only events tell the time.
        reach: see `penstock.spark.keys.reach`.
        shed: how a stream keeps its latency bound; None if it does not.
        ended: whether runs that end without a match come out.
    """

    queries: tuple[tuple[ast.Query, float], ...]
    type: str
    time: str
    seq: str | None
    arrival: str | None
    by: tuple[str, ...]
    keys: tuple[str, ...]
    events: pa.Schema
    event: tuple[str, ...]
    read: tuple[str, ...]
    counting: tuple[str, ...] | None
    results: pa.Schema
    watermark_us: int | None = None
    idle_us: int | None = None
    reach: tuple[int, int] | None = None
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    remotes: Mapping[str, Any] = field(default_factory=dict)
    max_runs: int = 0
    plan: Mode = "auto"
    shed: Shed | None = None
    ended: bool = False

    def engine(self) -> Engine:
        """Return an engine for the queries."""
        from penstock.engine.engine import Engine  # with the kernels, which not all workers need

        return Engine(
            self.queries, type=self.type, time=self.time, seq=SEQ, max_runs=self.max_runs, plan=self.plan,
            functions=self.functions, remotes=self.remotes, ended=self.ended,
        )  # fmt: skip

    def restored(self, blob: bytes) -> Engine:
        """Return an engine that goes on from a snapshot."""
        from penstock.engine.engine import Engine

        return Engine.restore(blob, functions=self.functions, remotes=self.remotes)

    @property
    def text(self) -> str:
        """What must not change between a checkpoint and the query that goes on from it."""
        columns = [self.type, self.time, self.seq or "", *self.by, *self.event]
        ended = ["ended=True"] if self.ended else []
        return "\n".join([*(render(query) for query, _ in self.queries), *columns, *ended])

    def check_same(self, text: str) -> None:
        """Refuse a state of another detection.

        Raises:
            SnapshotError: what was detected then is not what is detected now.
        """
        if text != self.text:
            raise SnapshotError(
                "the checkpoint belongs to another detection: its queries, keys, columns or `ended` were\n"
                + "\n".join(f"    {line}" for line in text.splitlines())
                + "\n  fix: use a new checkpointLocation for the changed query"
            )
