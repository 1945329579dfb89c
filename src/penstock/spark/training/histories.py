"""Histories in files, as frames."""

from __future__ import annotations

from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from penstock.spark.columns import DetectError


def history_of(spark: SparkSession, path: Path) -> DataFrame:
    """Return the events of a file, or of the files of a folder: CSV with a header if it is called so, else Parquet.

    Raises:
        DetectError: they cannot be read.
    """
    try:
        if path.suffix == ".csv":
            return spark.read.csv(str(path), header=True, inferSchema=True)
        return spark.read.parquet(str(path))
    except PySparkException as error:
        reason = str(error).partition("\n")[0]
        raise DetectError(
            f"{path}: cannot be read: {reason}\n  fix: give Parquet, or CSV whose name ends with .csv"
        ) from None
