"""What `score` counts on Spark is what the definition says, with matches that are there several times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import penstock as pk
from penstock.reference import Match, Quality, find, quality
from penstock.spark.detecting import detect
from penstock.spark.training.scoring import Counts, ScoreError, score
from penstock.testing import stream
from tests.spark.frames import events, frame_of

VARIABLES = ("a", "b", "c")
EVENTS = "array<struct<id: bigint, v: double>>"
SCHEMA = (
    f"query string, k string, window bigint, first_ts bigint, {', '.join(f'{name} {EVENTS}' for name in VARIABLES)}"
)


def frame(spark: SparkSession, matches: Iterable[Match], values: float = 0.5) -> DataFrame:
    """Return matches as `detect` gives them; `values` is what their events hold besides their number."""
    rows = []
    for match in matches:
        bound = {name: [(seq, values) for seq in seqs] for name, seqs in match.bindings}
        key = match.key[0] if match.key else None
        rows.append((match.query, key, match.window, match.first_ts, *map(bound.get, VARIABLES)))
    return spark.createDataFrame(rows, SCHEMA)


def by_definition(truth: Sequence[Match], found: Sequence[Match]) -> dict[str | None, Counts]:
    """Return the counts, slowly."""
    counts: dict[str | None, Counts] = {}
    for query in {match.query for match in [*truth, *found]}:
        sides = [[match for match in side if match.query == query] for side in (truth, found)]
        strict = [Counter((m.key, m.window, m.bindings) for m in side) for side in sides]
        relaxed = [Counter((m.key, m.window) for m in side) for side in sides]
        both = (strict[0] & strict[1]).total(), (relaxed[0] & relaxed[1]).total()
        counts[query] = Counts(len(sides[0]), len(sides[1]), *both)
    return counts


def some_match(random: Random) -> Match:
    """Return one of a few matches: several of them are the same, or differ in one thing only."""
    bound = random.choice([
        (("a", (1,)), ("b", (2, 3))), (("a", (1, 2)), ("b", (3,))), (("a", (1,)),), (("b", (1,)),), (("c", (1,)),),
        (("a", (2,)), ("c", (3,))), (("a", (3,)), ("c", (2,))),
    ])  # fmt: skip
    key = random.choice([("x",), ("y",), (None,)])
    query = random.choice(["p", "q", "r", None])
    return Match(query, key, random.choice([None, 0, 10]), bound, first_ts=random.randint(0, 1))


def test_random_matches_are_counted_as_the_definition_says(spark: SparkSession) -> None:
    random = Random(4)
    weights: dict[str | None, float] = {"p": 2.0, "r": 0.5}
    truth, found = ([some_match(random) for _ in range(count)] for count in (300, 200))
    found += [Match("only found", ("x",), None, (("a", (1,)),))]
    result = score(frame(spark, truth), frame(spark, found), weights=weights)
    assert result.queries == by_definition(truth, found)
    assert result.strict == quality(truth, found, "strict", weights)
    assert result.relaxed == quality(truth, found, "relaxed", weights)
    assert result.strict.false_negatives > result.relaxed.false_negatives > 0


# Thesis example 1 and eSPICE's example (SEMANTICS.md, section 9): events that are shed are left out of the second text.
THESIS = "SEQ(A a, B b, C c) WITHIN 8 EVENTS WINDOW 8 EVENTS SELECT FIRST CONSUME ALL"
ESPICE = "SEQ(A a, B b) WITHIN 8 EVENTS SELECT FIRST CONSUME ALL"
EXAMPLES = {
    "B2 is shed": (THESIS, "A0 A1 B2 B3 A4 C5", "A0 A1 B3 A4 C5", Counts(1, 1, 0, 1)),
    "A2 is shed": (ESPICE, "A1 A2 B3 B4", "A1 B3 B4", Counts(2, 1, 1, 1)),
    "A1 is shed": (ESPICE, "A1 A2 B3 B4", "A2 B3 B4", Counts(2, 1, 0, 1)),
}


def test_the_examples_of_the_papers(spark: SparkSession) -> None:
    sides: tuple[list[Match], list[Match]] = [], []
    for name, (query, whole, left, _) in EXAMPLES.items():
        for side, text in zip(sides, (whole, left), strict=True):
            side.extend(find(pk.parse(f"PATTERN {query}", name), stream(text)))
    result = score(frame(spark, sides[0]), frame(spark, sides[1], values=0.7), seq="id")  # events differ in the rest
    assert result.queries == {name: counts for name, (*_, counts) in EXAMPLES.items()}
    assert result.strict == Quality(truth=5, found=3, false_negatives=4, false_positives=2)
    assert result.relaxed == Quality(truth=5, found=3, false_negatives=2, false_positives=0)
    assert (result.strict.score, result.relaxed.score) == (0.2, 0.6)


def test_matches_of_detect_are_judged_after_they_were_written(spark: SparkSession, tmp_path: Path) -> None:
    queries = [
        pk.parse("PATTERN SEQ(A a, B b) WITHIN 8 s PARTITION BY card SELECT FIRST", "pairs"),
        pk.parse("PATTERN SEQ(A a, B b, C c) WITHIN 6 s PARTITION BY card WINDOW 6 s EVERY 3 s", "windows"),
    ]
    table = events(300, keys=3)
    kept = table.filter(pa.array([row % 3 != 1 for row in range(len(table))]))
    frames: list[DataFrame] = []
    wanted: list[list[Match]] = []
    for name, side in (("truth", table), ("found", kept)):
        matches = frame_of(spark, side, tmp_path / f"{name} events").transform(detect(queries, seq="id"))
        matches.write.parquet(str(tmp_path / name))
        frames.append(spark.read.parquet(str(tmp_path / name)))
        engine = pk.Engine(queries, seq="id")
        found = [*engine.process(side), *engine.flush()]
        wanted.append([Match(m.query, m.key, m.window, tuple(m.events.items())) for m in found])
    result = score(*frames, weights={"windows": 0.25})
    assert result.queries == by_definition(*wanted)
    assert all(0 < each.strict < each.truth for each in result.queries.values())
    assert result.queries["pairs"].false_positives() > result.queries["pairs"].false_positives("relaxed")
    assert result.strict == quality(wanted[0], wanted[1], weights={"windows": 0.25})
    assert score(*frames, seq="id").queries == result.queries


def test_nothing_at_all(spark: SparkSession) -> None:
    nothing = frame(spark, [])
    assert score(nothing, nothing).strict == Quality(0, 0, 0, 0)


@pytest.mark.parametrize(
    ("change", "options", "told"),
    [
        (
            lambda it: it.drop("window"),
            {},
            "it has no column window\n  fix: give what detect returned",
        ),
        (lambda it: it.drop("k"), {}, "only one of the frames has the key k"),
        (
            lambda it: it.withColumn("a", sf.expr("transform(a, e -> struct(e.id))")),
            {},
            r"fix: score\(…, seq=…\)",
        ),
        (
            lambda it: it,
            {"seq": "number"},
            "no 'number'\n  fix: seq= one that they have: 'id', 'v'",
        ),
    ],
)
def test_frames_that_cannot_be_compared_are_refused(spark: SparkSession, change: Any, options: Any, told: str) -> None:
    truth = frame(spark, [])
    with pytest.raises(ScoreError, match=told):
        score(truth, change(truth), **options)
