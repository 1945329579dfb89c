"""Independent pieces of work as Spark tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.spark.session import session

T = TypeVar("T")
R = TypeVar("R")


def tasks(
    work: Callable[[T], R], items: Sequence[T], *, at_once: int = 2, spark: SparkSession | None = None
) -> Iterator[R]:
    """Do a piece of work for each item, each as a task of its own; yield results as they come.

    Args:
        work: must pickle, as items must; its results come back as JSON: numbers, texts, lists and dicts of them.
        items: what to do it for.
        at_once: how many tasks are given to Spark at a time.
        spark: the session, of Spark Connect, too; None: one on this machine.
    """
    running = spark or session("penstock-tasks", at_once)

    def one(item: T) -> R:
        (row,) = running.range(0, 1, 1, 1).mapInArrow(_Task(work, item), "result string").collect()
        found: R = json.loads(row.result)
        return found

    with ThreadPoolExecutor(at_once) as pool:
        for done in as_completed([pool.submit(one, item) for item in items]):
            yield done.result()


@dataclass(frozen=True)
class _Task:
    """A piece of work for an item; what `mapInArrow` calls, with one row."""

    work: Callable[[Any], Any]
    item: Any

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for _ in range(len(batch)):
                yield pa.record_batch({"result": pa.array([json.dumps(self.work(self.item))])})
