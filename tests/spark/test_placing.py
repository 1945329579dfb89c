"""Buckets are spread over the partitions of a shuffle."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import penstock as pk
from penstock.engine.snapshots import SnapshotError
from penstock.spark.worker.bucket import Bucket
from penstock.spark.worker.placing import hashed, names
from tests.spark.simulating import spec_for


def test_the_hash_is_that_of_spark(spark: SparkSession) -> None:
    numbers = [0, 1, 2, -1, 7, 1000, 2**31 - 1, -(2**31)]
    frame = spark.createDataFrame([(number,) for number in numbers], "number int")
    expected = [row[0] for row in frame.select(sf.hash("number")).collect()]
    assert hashed(np.array(numbers, np.int32)).tolist() == expected


@pytest.mark.parametrize(("buckets", "partitions"), [(2, 2), (3, 3), (8, 8), (6, 3)])
def test_spark_gives_every_partition_as_many_buckets(spark: SparkSession, buckets: int, partitions: int) -> None:
    frame = spark.createDataFrame([(name,) for name in names(buckets, partitions)], "bucket int")
    placed = frame.repartition(partitions, "bucket").groupBy(sf.spark_partition_id()).count().collect()
    assert [row[1] for row in placed] == [buckets // partitions] * partitions


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 200, 2000])
@pytest.mark.parametrize("buckets", [1, 2, 5, 200, 2001])
def test_names_differ_and_partitions_are_balanced(buckets: int, partitions: int) -> None:
    found = names(buckets, partitions)
    assert found[0] == 0, "or a checkpoint with another number of partitions would not be found"
    assert len(set(found)) == buckets
    loads = np.bincount(hashed(np.array(found, np.int32)) % partitions, minlength=partitions)
    assert loads.max() - loads.min() <= 1


@pytest.mark.parametrize(
    ("buckets", "partitions", "told"),
    [
        (3, 2, r"the checkpoint has 4 buckets, and detect now asks for 3\n  fix: detect\(…, buckets=4\)"),
        (4, 4, r"made with another spark.sql.shuffle.partitions\n  fix: set it to what it was"),
    ],
)
def test_a_checkpoint_with_other_names_is_refused(buckets: int, partitions: int, told: str) -> None:
    spec = spec_for(pk.parse("PATTERN SEQ(A a, B b) WITHIN 4 s PARTITION BY k"))
    blob = Bucket(spec, names(4, 2)).snapshot()
    Bucket.forget_live()
    assert Bucket.of(spec, names(4, 2), blob).names == list(names(4, 2))
    with pytest.raises(SnapshotError, match=told):
        Bucket.of(spec, names(buckets, partitions), blob)
