"""The queries of the papers: a batch, a stream and one process find the same, on events made for each query."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import penstock as pk
from penstock.pattern import ast
from penstock.spark import detect
from penstock.spark.outputs import layout_of
from penstock.spark.worker.results import MATCHES, OUTPUT
from penstock.spark.worker.spec import TIE
from tests.spark.corpus import SECOND, STEMS, Study, spec_for_study, study, together
from tests.spark.simulating import batched, streamed, table_of
from tests.spark.test_detect import files, run_stream
from tests.spark.test_workers import END, found_by, found_in

pytestmark = pytest.mark.filterwarnings("ignore::penstock.SlowFunctionWarning")

DELAY_US = 2 * SECOND
LEAST = 4  # matches of each query; no set that is compared is empty


def in_one_process(given: Study, table: pa.Table) -> Counter[Any]:
    engine = pk.Engine(given.query, seq="seq", **given.callees)
    return found_by(engine.process(table.drop_columns([TIE])) + engine.flush())


def parts_of(size: int, count: int, random: Random) -> list[tuple[int, int]]:
    """Return from where to where each of some parts goes, one after the other; some may be empty."""
    places = sorted(random.randint(0, size) for _ in range(count - 1))
    return list(zip([0, *places], [*places, size], strict=True))


@pytest.mark.parametrize("stem", STEMS)
def test_workers_find_what_one_process_finds(stem: str) -> None:
    given, random = study(stem), Random(stem)
    spec = spec_for_study(given)
    table = table_of(given.events, spec)
    expected = in_one_process(given, table)
    assert expected.total() >= LEAST, "the events are not made well: there is next to nothing to find"
    assert found_in(batched(spec, table, random, in_memory_bytes=random.choice([0, 1 << 20])), given.query) == expected
    end = [table_of([END], spec)]
    parts = [table.slice(start, stop - start) for start, stop in parts_of(len(table), random.randint(3, 7), random)]
    assert found_in(streamed(spec, parts + end, random), given.query) == expected
    late = sorted(given.events, key=lambda event: event.ts + random.randrange(DELAY_US))
    waiting = spec_for_study(given, watermark_us=DELAY_US)
    parts = [table_of(late[start:stop], waiting) for start, stop in parts_of(len(table), random.randint(3, 7), random)]
    assert found_in(streamed(waiting, parts + end, random), given.query) == expected


# --- on Spark -----------------------------------------------------------------------------------------------------

SAMPLE = (
    "darling-table1-q3a", "eires-listing1-fraud", "espice-sec4.1-q1",
    "statebased-example1-bikes", "thesis-sec6.1-shoplifting", "thesis-table4.2-q4", "thesis-table6.4-q4",
)  # fmt: skip
RUNS = 3


def found_on(frame: DataFrame, queries: list[ast.Query]) -> Counter[Any]:
    """Return the matches of a frame in the form of `found_by`."""
    rows, found = [row.asDict(recursive=True) for row in frame.collect()], Counter[Any]()
    for query in queries:
        layout = layout_of(query)
        names = [*layout.names(), *(["window"] if "window" not in layout.names() else [])]
        mine = [{OUTPUT: MATCHES} | {name: row[name] for name in names} for row in rows if row["query"] == query.name]
        found += found_in(pa.Table.from_pylist(mine), query) if mine else Counter()
    return found


def test_several_queries_at_once_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """A batch, and a stream with random cuts in several runs that go on from a checkpoint."""
    studies, stream = together(SAMPLE)
    queries, random = [each.query for each in studies], Random("spark")
    table = table_of(stream.events, spec_for_study(stream)).drop_columns([TIE])
    engine = pk.Engine(queries, seq="seq", **stream.callees)
    expected = found_by(engine.process(table) + engine.flush())
    assert {key[0] for key in expected} == set(SAMPLE)
    asked = detect(queries, seq="seq", schema=stream.schema, watermark="2 s", **stream.callees)
    for name in ("all", "in"):
        (tmp_path / name).mkdir()
    pq.write_table(table, tmp_path / "all" / "events.parquet")
    events = spark.read.parquet(str(tmp_path / "all"))
    assert found_on(events.orderBy(sf.rand(1)).transform(asked), queries) == expected
    late = sorted(stream.events, key=lambda event: event.ts + random.randrange(DELAY_US))
    reader = spark.readStream.schema(events.schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    rows = 0
    for run, (start, stop) in enumerate(parts_of(len(late), RUNS, random)):
        mine = late[start:stop] + ([END] if run == RUNS - 1 else [])
        for number, (first, last) in enumerate(parts_of(len(mine), random.randint(1, 3), random)):
            some = table_of(mine[first:last], spec_for_study(stream)).drop_columns([TIE])
            files(some, tmp_path / "in", 1, 10 * run + number)
        query = run_stream(spark, reader.transform(asked), tmp_path / "out", tmp_path / "checkpoint")
        rows += sum(each.observedMetrics["penstock"].rows or 0 for each in query.recentProgress)
    assert found_on(spark.read.parquet(str(tmp_path / "out")), queries) == expected
    assert rows == len(stream.events) + 1
