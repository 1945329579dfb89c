"""A part of a history, studied for a strategy: rows in, sums out. Nothing here knows Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from penstock.engine.batches import TIME, TYPE
from penstock.plan.tables import Ints
from penstock.runtime.learning import studied
from penstock.shedding.context import Features, Observed
from penstock.shedding.history import History
from penstock.shedding.strategies.catalogue import strategy_of
from penstock.shedding.strategies.gspice import Gspice
from penstock.shedding.summing import Summed
from penstock.spark.training.watching import Numbering
from penstock.spark.worker.batch import BatchWorker
from penstock.spark.worker.results import Counts
from penstock.spark.worker.sorting import Sorter, joined
from penstock.spark.worker.spec import Spec

SUMS = pa.schema([("name", pa.string()), ("place", pa.int64()), ("sum", pa.float64())])
KINDS = pa.schema(
    [
        ("key", pa.int64()), ("type", pa.int32()), ("cell", pa.int32()), ("inputs", pa.list_(pa.float64())),
        ("worth", pa.float64()), ("count", pa.float64()),
    ]
)  # fmt: skip


@dataclass(frozen=True)
class StudyWorker(BatchWorker):
    """Studies a partition; what `mapInArrow` calls. Like a `BatchWorker`, and its rows are sums and not matches.

    A slice of time, or all of a partition, is in memory at once.

    Attributes:
        names: of the types in the whole history, and "" as the last.
        bins: how many bins positions are put into.
        strategy: the name of what is learned.
        features: what gSPICE looks at; None for other strategies, whose sums are in tables.
    """

    names: tuple[str, ...] = ("",)
    bins: int = 100
    strategy: str = "hspice-pm"
    features: Features | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the sums of each slice."""
        counts = Counts()
        with TemporaryDirectory(prefix="penstock-") as folder:
            sorters = self._sorters(batches, Path(folder), counts)
            for number in sorted(sorters):
                yield self._summed(sorters.pop(number), number)

    def _summed(self, sorter: Sorter, number: int) -> pa.RecordBatch:
        span = None if self.slice_us is None else (number * self.slice_us, (number + 1) * self.slice_us)
        rows = joined(list(sorter.sorted()))
        tables, _ = Numbering(self.spec).batches(rows, np.zeros(0, np.int64))
        history = studied(
            self.spec.queries, events_of(tables, self.spec), strategy=self.strategy, names=self.names, bins=self.bins,
            span=span, functions=self.spec.functions, max_runs=self.spec.max_runs,
        )  # fmt: skip
        return sums_of(history) if self.features is None else kinds_of(history, self.strategy, self.features)


def events_of(tables: list[pa.Table], spec: Spec) -> pa.Table:
    """Return rows as `studied` takes them: the type and the time have their own names there."""
    read = [name for name in spec.read if name not in (spec.type, spec.time)]
    table = pa.concat_tables(tables).select([spec.type, spec.time, *read])
    return table.rename_columns([TYPE, TIME, *read])


def sums_of(history: History) -> pa.RecordBatch:
    """Return the sums of a history as rows: what is not zero, cell by cell."""
    names: list[str] = []
    places: list[Ints] = [np.zeros(0, np.int64)]
    values = [np.zeros(0)]
    for name, array in Summed.of(history).sums.items():
        flat = array.reshape(-1)
        there = np.flatnonzero(flat)
        names += [name] * len(there)
        places.append(there)
        values.append(flat[there])
    return pa.record_batch([pa.array(names, pa.string()), np.concatenate(places), np.concatenate(values)], schema=SUMS)


def kinds_of(history: History, strategy: str, features: Features) -> pa.RecordBatch:
    """Return what gSPICE has observed as rows, one for each kind of event."""
    made = strategy_of(strategy)
    assert issubclass(made, Gspice), "the others have tables"
    seen = made.observed(history, features)
    width = seen.inputs.shape[1]
    inputs = pa.ListArray.from_arrays(np.arange(len(seen.keys) + 1, dtype=np.int32) * width, seen.inputs.reshape(-1))
    columns = [seen.keys, seen.types.astype(np.int32), seen.cells.astype(np.int32), inputs, seen.worth, seen.counts]
    return pa.record_batch(columns, schema=KINDS)


def kinds_from(rows: pa.Table) -> Observed:
    """Return kinds of events from rows, each key once, in the order of keys: so that trees do not depend on chance."""
    rows = rows.sort_by("key")
    arrays = {name: rows.column(name).to_numpy() for name in ("key", "type", "cell", "worth", "count")}
    inputs = rows.column("inputs").combine_chunks()
    values = np.asarray(inputs.flatten(), np.float64).reshape(len(rows), -1) if len(rows) else np.zeros((0, 0))
    return Observed(
        arrays["key"], arrays["type"].astype(np.int64), arrays["cell"].astype(np.int64), values, arrays["worth"],
        arrays["count"],
    )  # fmt: skip
