"""Pieces of work as Spark tasks, on a classic and on a Connect session."""

from __future__ import annotations

import os

import pytest
from pyspark.sql import SparkSession

from penstock.spark import tasks


def squared(number: int) -> tuple[int, dict[str, list[float]], int]:
    """Return plain data, and where it was made."""
    return number, {"root": [number**0.5]}, os.getpid()


def test_each_item_is_done_once_by_a_worker(either: SparkSession) -> None:
    done = sorted(tasks(squared, range(5), spark=either), key=lambda each: each[0])
    assert [(number, found["root"]) for number, found, _ in done] == [(n, [n**0.5]) for n in range(5)]
    assert os.getpid() not in {process for _, _, process in done}


def test_what_fails_is_told(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="ZeroDivisionError"):
        list(tasks(lambda number: 1 // number, [0], spark=spark))


def test_a_result_that_is_no_plain_data_is_told(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="not JSON serializable"):
        list(tasks(lambda number: {number}, [0], spark=spark))
