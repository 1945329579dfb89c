"""What a stream has done, batch by batch: the counts of `detect` as a `Progress`, and a listener that hands it on."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from pyspark import SparkContext
from pyspark.sql.streaming.listener import JStreamingQueryListener, QueryProgressEvent, StreamingQueryListener

from penstock.spark.losing import Loss
from penstock.spark.worker.results import LATENCIES, LATENCY_MS

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import QueryStartedEvent, QueryTerminatedEvent

METRIC = "penstock"  # the name under which `detect` observes its counts, unless it is told another
_SHED = ("shed_early", "shed_overdue", "shed_runs", "shed_partly")
_JUDGED = ("judged_rows", "judged", "judged_lost")
_SUMMED = ("rows", "processed", "late", "malformed", "shed", *_SHED, *_JUDGED, "matches", "ended")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Progress:
    """One micro-batch: what came in, and what became of it.

    Attributes:
        batch_id: its number.
        seconds: how long it took.
        rows: how many came in. Each is held back, or leaves as one of the next four.
        processed: rows that the engines have had.
        late: rows that came too late.
        malformed: rows that cannot be events.
        shed: rows that were dropped on purpose.
        shed_early: those of them that went before the shuffle.
        shed_overdue: those of them that could not be on time any more.
        shed_runs: runs that were dropped on purpose.
        shed_partly: rows that were hidden from some runs; they count as processed.
        judged_rows: processed rows of keys that are never shed.
        judged: their matches, from which the loss is estimated.
        judged_lost: those of them that would have been lost otherwise; see `estimated_loss`.
        matches: how many were found.
        ended: runs that ended without a match, if they are asked for.
        runs: how many there are at its end.
        held: how many rows are held back at its end, to be put in order.
        held_before: how many were at its beginning; None if that is not known, as in the first batch of a stream that
            goes on from a checkpoint.
        latency: how many matches were found how long after their last event arrived, by the bounds `LATENCY_MS`.

    Examples:
        >>> found = Progress.of(7, 500, {"rows": 100, "processed": 90, "late": 2, "held": 10}, held_before=2)
        >>> found.rows_per_s, found.adds_up
        (200.0, True)
    """

    batch_id: int
    seconds: float
    rows: int
    processed: int
    late: int
    malformed: int
    shed: int
    matches: int
    runs: int
    held: int
    held_before: int | None
    latency: tuple[int, ...] = field(repr=False)
    shed_early: int = 0
    shed_overdue: int = 0
    shed_runs: int = 0
    shed_partly: int = 0
    ended: int = 0
    judged_rows: int = 0
    judged: int = 0
    judged_lost: int = 0

    @classmethod
    def of(cls, batch_id: int, duration_ms: float, counts: Mapping[str, Any], held_before: int | None) -> Progress:
        """Return the progress that observed counts tell.

        Args:
            batch_id: the number of the batch.
            duration_ms: how long it took.
            counts: what was observed; a count that is not there or null is 0. A batch without any row leaves all of
                them null, and what was held back before is still held then. Under "latency" is a list of bins for
                each piece of work.
            held_before: how many rows were held back before it, if that is known.
        """
        known = {name: value for name, value in counts.items() if value is not None}
        pieces: Iterable[Sequence[int]] = known.get("latency", ())
        held = known.get("held", held_before or 0)
        latency = tuple(map(sum, zip([0] * LATENCIES, *pieces, strict=True)))
        summed = {name: known.get(name, 0) for name in _SUMMED}
        runs = known.get("runs", 0)
        return cls(
            batch_id, duration_ms / 1000, **summed, runs=runs, held=held, held_before=held_before, latency=latency
        )

    @property
    def rows_per_s(self) -> float:
        """How many rows came in, for each second that the batch took."""
        return self.rows / self.seconds if self.seconds else 0.0

    @property
    def p50_ms(self) -> float | None:
        """The median latency of its matches, as `quantile_ms` finds it."""
        return quantile_ms(self.latency, 0.5)

    @property
    def p99_ms(self) -> float | None:
        """The latency that 99 of 100 matches keep to."""
        return quantile_ms(self.latency, 0.99)

    @property
    def unaccounted(self) -> int | None:
        """How many rows are lost (or, below 0, too many); None if it is not known how many were held back before."""
        if self.held_before is None:
            return None
        return self.held_before + self.rows - self._accounted

    @property
    def adds_up(self) -> bool:
        """Whether every row is accounted for; without `held_before`, whether it can be so."""
        return self._accounted >= self.rows if self.unaccounted is None else self.unaccounted == 0

    @property
    def _accounted(self) -> int:
        return self.processed + self.late + self.malformed + self.shed + self.held

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        counts = {name: getattr(self, name) for name in (*_SUMMED, "runs", "held")}
        latency = {"p50": _rounded(self.p50_ms), "p99": _rounded(self.p99_ms)}
        return {
            "batch": self.batch_id,
            "seconds": round(self.seconds, 3),
            "rows_per_s": round(self.rows_per_s, 1),
            **counts,
            "latency_ms": latency,
            "adds_up": self.adds_up,
        }


@dataclass
class Totals:
    """The sums over batches.

    Attributes:
        batches: how many there were.
        held: how many rows are held back after the last one.
        wrong: the numbers of those whose rows do not add up.
        loss: what is estimated to be lost, if some keys are never shed.
    """

    batches: int = 0
    seconds: float = 0.0
    rows: int = 0
    processed: int = 0
    late: int = 0
    malformed: int = 0
    shed: int = 0
    shed_early: int = 0
    shed_overdue: int = 0
    shed_runs: int = 0
    shed_partly: int = 0
    judged_rows: int = 0
    judged: int = 0
    judged_lost: int = 0
    matches: int = 0
    ended: int = 0
    held: int = 0
    latency: list[int] = field(default_factory=lambda: [0] * LATENCIES, repr=False)
    wrong: list[int] = field(default_factory=list)
    loss: Loss = field(default_factory=Loss, repr=False)

    def add(self, progress: Progress) -> None:
        """Take a batch."""
        self.batches += 1
        self.seconds += progress.seconds
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(progress, name))
        self.held = progress.held
        self.latency = [a + b for a, b in zip(self.latency, progress.latency, strict=True)]
        self.loss.add(progress)
        if not progress.adds_up:
            self.wrong.append(progress.batch_id)

    def as_json(self) -> dict[str, Any]:
        """Return them as plain values."""
        quantiles = {"p50": quantile_ms(self.latency, 0.5), "p99": quantile_ms(self.latency, 0.99)}
        return {
            "batches": self.batches,
            "seconds": round(self.seconds, 3),
            **{name: getattr(self, name) for name in (*_SUMMED, "held")},
            "latency_ms": {name: _rounded(value) for name, value in quantiles.items()},
            "estimated_loss": self._estimated(),
            "adds_up": not self.wrong,
        }

    def _estimated(self) -> dict[str, float] | None:
        found = self.loss.estimate()
        shares = {"lost": found.lost, "low": found.low, "high": found.high}
        return {name: round(share, 4) for name, share in shares.items()} if found.matches else None


def quantile_ms(histogram: Sequence[int], share: float) -> float | None:
    """Return the latency that a share of matches keeps to, as if they were spread evenly within each bin.

    In the last bin, which has no upper bound, it is its lower bound. None if there are no matches.

    Examples:
        >>> quantile_ms([0, 0, 10, *[0] * 34], 0.5)  # ten matches between 2 and 5 ms
        3.5
    """
    wanted = share * sum(histogram)
    if not wanted:
        return None
    before = 0
    bounds = (0, *LATENCY_MS)
    for number, count in enumerate(histogram[:-1]):
        if count and before + count >= wanted:
            low, high = bounds[number], bounds[number + 1]
            return low + (high - low) * (wanted - before) / count
        before += count
    return float(bounds[-1])


def _rounded(ms: float | None) -> float | None:
    return None if ms is None else round(ms, 1)


Receiver: TypeAlias = Callable[[Progress], None]


class Listener(StreamingQueryListener):
    """Hands the progress of streams to functions, and says loudly when rows do not add up.

    Args:
        receivers: what gets each `Progress`; they are called one after the other, in a thread of Spark's.
        metric: the name under which `detect` observes its counts.

    Attributes:
        totals: the sums over all batches so far.
        ended: set when a stream has ended; all its progress has been handed on by then.

    Examples:
        listener = Listener(print)
        spark.streams.addListener(listener)  # a classic session or Spark Connect
    """

    def __init__(self, *receivers: Receiver, metric: str = METRIC) -> None:
        self.receivers, self.metric = receivers, metric
        self.totals, self.ended = Totals(), threading.Event()
        self._held: dict[UUID, tuple[int, int]] = {}  # the last batch of each query, and how many rows it held back

    @property
    def _jlistener(self) -> Any:
        """What Java calls on a classic session; the name is PySpark's, which does without if it ever changes."""
        if not hasattr(self, "_of_java"):
            assert SparkContext._jvm is not None, "Spark Connect asks for no such thing"
            self._of_java = SparkContext._jvm.PythonStreamingQueryListenerWrapper(_Brief(self))
        return self._of_java

    def take(self, query: UUID, batch_id: int, duration_ms: float, counts: Mapping[str, Any]) -> Progress:
        """Take what was observed of a batch: work out its progress, check it, hand it on."""
        last, held = self._held.get(query, (-1, 0))
        progress = Progress.of(batch_id, duration_ms, counts, held if batch_id == last + 1 else None)
        self._held[query] = batch_id, progress.held
        self.totals.add(progress)
        if not progress.adds_up:
            logger.error(
                "batch %d does not add up: %s; please report this as a bug of penstock", batch_id, _sum(progress)
            )
        for receiver in self.receivers:
            try:
                receiver(progress)
            except Exception:  # what one receiver does is no reason to leave the others out
                logger.exception("a receiver of progress failed")
        return progress

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing is to be done."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Take a batch, if penstock took part in it."""
        progress = event.progress
        observed = progress.observedMetrics.get(self.metric)
        if observed is not None:
            self.take(progress.id, progress.batchId, progress.batchDuration, observed.asDict())

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Tell that a stream has ended."""
        self.ended.set()


class _Brief(JStreamingQueryListener):
    """Gets progress as one text.

    PySpark's own way asks Java for each part. The end of each of its maps is an exception, and of each exception
    PySpark asks fourteen times what kind it is, for which Java searches all archives: 0.4 s of processor time a batch.
    """

    def onQueryProgress(self, jevent: Any) -> None:  # noqa: N802 - Spark's name
        event = {"progress": json.loads(jevent.progress().json())}
        self.pylistener.onQueryProgress(QueryProgressEvent.fromJson(event))


def _sum(progress: Progress) -> str:
    parts = ("processed", "late", "malformed", "shed", "held")
    right = " + ".join(f"{getattr(progress, name)} {name}" for name in parts)
    before = "" if progress.held_before is None else f"{progress.held_before} held before + "
    return f"{before}{progress.rows} rows came in, but {right}"
