"""Pieces of work as Spark tasks, on a classic and on a Connect session."""

from __future__ import annotations

import os

import numpy as np
import pytest
from pyspark.sql import SparkSession

from penstock.spark import tasks


def squared(number: int) -> tuple[int, dict[str, np.ndarray], int]:
    """Return something that only pickle carries, and where it was made."""
    return number, {"square": np.array([number**2])}, os.getpid()


def test_each_item_is_done_once_by_a_worker(either: SparkSession) -> None:
    done = sorted(tasks(squared, range(5), spark=either), key=lambda each: each[0])
    assert [(number, found["square"].tolist()) for number, found, _ in done] == [(n, [n * n]) for n in range(5)]
    assert os.getpid() not in {process for _, _, process in done}


def test_what_fails_is_told(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="ZeroDivisionError"):
        list(tasks(lambda number: 1 // number, [0], spark=spark))
