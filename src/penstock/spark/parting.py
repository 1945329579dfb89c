"""A batch in parts, each for one worker: by key, by slices of time, or all in one."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from penstock.spark.columns import Resolver, quoted
from penstock.spark.worker.batch import SLICE, BatchWorker
from penstock.spark.worker.spec import Spec

SLICES_PER_REACH = 8  # how many times as long as its context a slice of time is: an eighth of the rows is read twice


def in_parts(resolver: Resolver, worker: BatchWorker, result: st.StructType | str) -> DataFrame:
    """Return what workers find: by key; by time, if there is no key; in one part, if matches depend on all before.

    Args:
        resolver: the columns of the frame.
        worker: what each part is given to.
        result: the columns that come out.
    """
    spec = worker.spec
    if spec.by:
        rows = _counting(resolver.select(spec.seq), spec).repartition(*map(quoted, spec.by))
    elif spec.reach is None:
        rows = _counting(resolver.select(spec.seq), spec).repartition(1)
    else:
        before, after = spec.reach
        length = SLICES_PER_REACH * max(before + after, 1)
        ts = resolver.microseconds(spec.time)
        slices = sf.sequence(_whole(ts - sf.lit(after), length), _whole(ts + sf.lit(before), length))
        rows = _counting(resolver.select(spec.seq, sf.explode_outer(slices).alias(SLICE)), spec).repartition(SLICE)
        worker = replace(worker, slice_us=length)
    return rows.mapInArrow(worker, result)


def _counting(rows: DataFrame, spec: Spec) -> DataFrame:
    """Leave out rows of types that no query asks about, before they are shuffled; rows that are no events stay."""
    if spec.counting is None:
        return rows
    asked = quoted(spec.type).isin(*spec.counting)
    return rows.where(asked | quoted(spec.type).isNull() | quoted(spec.time).isNull())


def _whole(number: Column, length: int) -> Column:
    """Return how many whole lengths a number is, rounded down; exact for the times of 285 years."""
    return ((number - sf.pmod(number, sf.lit(length))) / sf.lit(length)).cast("long")
