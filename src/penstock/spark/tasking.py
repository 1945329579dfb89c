"""Independent pieces of work as Spark tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from pyspark.sql import SparkSession

from penstock.spark.session import session

T = TypeVar("T")
R = TypeVar("R")


def tasks(
    work: Callable[[T], R], items: Sequence[T], *, at_once: int = 2, spark: SparkSession | None = None
) -> Iterator[R]:
    """Do a piece of work for each item, each as a task of its own; yield results as they come.

    Args:
        work: must pickle, as items and results must.
        items: what to do it for.
        at_once: how many tasks are given to Spark at a time.
        spark: the session; None: one on this machine.
    """
    context = (spark or session("penstock-tasks", at_once)).sparkContext

    def one(item: T) -> R:
        found: list[R] = context.parallelize([item], 1).map(work).collect()
        return found[0]

    with ThreadPoolExecutor(at_once) as pool:
        for done in as_completed([pool.submit(one, item) for item in items]):
            yield done.result()
