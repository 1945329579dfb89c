"""Detection in a stream.

    rows -> pack (per partition) -> shuffle by bucket -> step (per bucket, with state) -> unpack -> results

Keys share *buckets*: one engine has all keys of a bucket, and its state is one blob, so a million keys cost no more
than ten. Rows travel as Arrow tables packed into a few binary values, one for each partition and bucket: Spark's
stateful operators cost about 4 µs for a row, and have only a few then. Spark keeps the state and recovers it.

The watermark is our own. Each pack tells every bucket the newest time of its partition, so a bucket knows how far the
stream is, also if it has no rows itself, in the batch that says so and not in the next one; and rows that are late can
be shown, where Spark would drop them. It depends on the rows of the batches alone: a batch that is run again gives the
same results. With `idle`, Spark calls a bucket that has had no rows for so long; then it depends on the times of the
batches, too, which Spark's log of offsets keeps.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from penstock.spark.columns import Resolver, quoted
from penstock.spark.worker.bucket import Bucket, Given
from penstock.spark.worker.packing import BUCKET, NONE, Pack, as_bytes, unpack
from penstock.spark.worker.placing import names
from penstock.spark.worker.settling import settle
from penstock.spark.worker.spec import NOW, Spec

_PACKED = "bucket int, newest long, passed long, now long, overdue long, early long, rows binary, shed binary"
_STATE = "blob binary"
_RESULT = "rows binary"


def shuffle_partitions(frame: DataFrame) -> int:
    """Return how many partitions a shuffle of a frame has."""
    return int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)


def streamed(resolver: Resolver, spec: Spec, result: st.StructType, partitions: int, buckets: int) -> DataFrame:
    """Return the results of a streaming frame whose shuffles have so many partitions."""
    buckets = buckets if spec.by else 1
    number = sf.pmod(sf.xxhash64(*map(quoted, spec.by)), sf.lit(buckets)) if spec.by else sf.lit(0)
    rows = resolver.select(spec.seq).withColumn(BUCKET, number.cast("int"))
    if spec.shed is not None:  # in a stream, this is the time of the micro-batch, which Spark's log of offsets keeps
        rows = rows.withColumn(NOW, sf.unix_micros(sf.current_timestamp()))
    named = names(buckets, partitions)
    packed = rows.mapInArrow(Pack(spec, named), _PACKED)
    timeout = GroupStateTimeout.NoTimeout if spec.idle_us is None else GroupStateTimeout.ProcessingTimeTimeout
    found = packed.groupBy("bucket").applyInPandasWithState(Step(spec, named), _RESULT, _STATE, "append", timeout)
    return found.mapInArrow(unpack, result)


@dataclass(frozen=True)
class Step:
    """Takes the rows of a bucket in a micro-batch, or that none came for long; what `applyInPandasWithState` calls.

    Attributes:
        spec: the detection.
        names: of the buckets.
    """

    spec: Spec
    names: tuple[int, ...]

    def __call__(self, key: Any, frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        """Yield packed results."""
        started = time.perf_counter_ns()
        settle()
        bucket = Bucket.of(self.spec, self.names, state.get[0] if state.exists else None)
        asks_time = self.spec.idle_us is not None
        now = state.getCurrentProcessingTimeMs() * 1000 if asks_time else NONE
        given = Given.of((row for frame in frames for row in frame.to_dict("records")), now)
        for table in bucket.step(given, started):
            yield pd.DataFrame({"rows": [as_bytes(table)]})
        state.update((bucket.snapshot(),))
        if asks_time:
            state.setTimeoutDuration(bucket.patience_ms(now))
