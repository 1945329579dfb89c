"""Strategies from sums on Spark are those from one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import penstock as pk
from penstock.errors import PenstockError
from penstock.pattern import ast
from penstock.runtime.learning import learned
from penstock.shedding.storing import _taken_apart
from penstock.shedding.strategies.chance import RandomEvent
from penstock.shedding.strategies.strategy import Strategy
from penstock.spark import Model, collect, learn
from penstock.spark.training.contributions import WHOLE
from penstock.spark.training.fitting import espice_of, pspice_of
from tests.spark.frames import TYPES, events, frame_of


@pytest.mark.parametrize("text", ["SEQ(A a, B b) WHERE a.v < b.v WITHIN 5 s PARTITION BY card"])
def test_the_same_utilities(spark: SparkSession, tmp_path: Path, text: str) -> None:
    query, table = pk.parse(f"PATTERN {text}"), events(1500)
    on_spark = espice_of(collect(frame_of(spark, table, tmp_path), query, seq="id"))
    in_process = learned("espice", [(query, 1.0)], table)
    assert on_spark.types is not None
    assert in_process.types is not None
    order = [in_process.types.index(name) for name in on_spark.types]
    np.testing.assert_array_equal(on_spark.strategy.utilities, in_process.strategy.utilities[order])  # type: ignore
    np.testing.assert_allclose(on_spark.strategy.shares.sum(), 1)  # type: ignore[attr-defined]


def test_espice_learns_the_same_positions_in_windows_of_keys(spark: SparkSession, tmp_path: Path) -> None:
    query = pk.parse("PATTERN SEQ(A a, B b) WITHIN 9 EVENTS PARTITION BY card WINDOW 9 EVENTS EVERY 4 EVENTS")
    table = events(1500)
    cards = table["card"].to_numpy(zero_copy_only=False)
    rows = [np.flatnonzero(cards == card) for card in np.unique(cards)]
    rows = [each[: len(each) // 4 * 4] for each in rows]  # so no window has fewer events than there are positions
    table = in_order_of_types(table.take(pa.array(np.sort(np.concatenate(rows)))))
    on_spark = learn(frame_of(spark, table, tmp_path), query, "espice", seq="id", positions=4).fitted
    in_process = learned("espice", [(query, 1.0)], table, bins=4).strategy
    assert on_spark.types == TYPES
    ours, theirs = arrays_of(on_spark.strategy), arrays_of(in_process)
    for name in ("utilities", "shares"):
        np.testing.assert_allclose(ours[name], theirs[name][: len(TYPES)], err_msg=name)
    assert (np.diff(ours["utilities"][0]) < 0).all(), "an A is worth the more the earlier it comes"


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A a, B b) WITHIN 9 EVENTS PARTITION BY card WINDOW 9 EVENTS EVERY 4 EVENTS",
        "SEQ(A a, B b) WITHIN 40 s PARTITION BY card WINDOW 40 s EVERY 15 s",
        "SEQ(A a, B b) WITHIN 5 s WINDOW 5 s EVERY 2 s",  # in slices of time
    ],
)
def test_espice_learns_the_same_from_windows_with_fewer_events_than_positions(
    spark: SparkSession, tmp_path: Path, text: str
) -> None:
    query, table = pk.parse(f"PATTERN {text}"), in_order_of_types(events(1500))
    model = collect(frame_of(spark, table, tmp_path), query, seq="id", positions=7)
    sums = model.queries[0].sums
    assert sums["events"].sum() > sums["window_events"], "no window is short"
    assert sums["event_parts"].sum() == WHOLE * sums["window_events"]
    ours = arrays_of(espice_of(model).strategy)
    theirs = arrays_of(learned("espice", [(query, 1.0)], table, bins=7).strategy)
    for name in ("utilities", "shares"):
        np.testing.assert_allclose(ours[name], theirs[name][: len(TYPES)], err_msg=name)


def test_models_that_count_short_windows_too_much_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    query = pk.parse("PATTERN SEQ(A a, B b) WITHIN 5 s WINDOW 5 s EVERY 2 s")
    model = collect(frame_of(spark, events(300), tmp_path), query, seq="id", positions=7)
    for each in model.queries:
        del each.sums["event_parts"]  # type: ignore[attr-defined]  # as a model has it that was saved before
    with pytest.raises(PenstockError, match="collect anew"):
        espice_of(model)


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A a, B b, C c) WHERE a.v < b.v WITHIN 5 s PARTITION BY card",
        "SEQ(A a, B b, C c) WHERE a.v < c.v WITHIN 2 s",  # in slices of time
        "SEQ(A a, B b, C c) WHERE a.v < c.v WITHIN 9 s PARTITION BY card WINDOW 9 s EVERY 3 s",
        "SEQ(A a, B b, C c) WHERE a.v < c.v WITHIN 12 EVENTS PARTITION BY card",
    ],
)
def test_the_same_transitions(spark: SparkSession, tmp_path: Path, text: str) -> None:
    query, table = pk.parse(f"PATTERN {text}"), events(1500)
    model = collect(frame_of(spark, table, tmp_path), query, seq="id", model="transition")
    on_spark, in_process = pspice_of(model).strategy, learned("pspice", [(query, 1.0)], table).strategy
    np.testing.assert_allclose(on_spark.matrices[0], in_process.matrices[0])  # type: ignore[attr-defined]
    np.testing.assert_allclose(on_spark.run_utilities(0), in_process.run_utilities(0))
    assert np.diff(on_spark.matrices[0].diagonal()).any(), "nothing moves"  # type: ignore[attr-defined]
    assert model.queries[0].sums["reach"] == reach_by_hand(table, query)
    utilities = on_spark.run_utilities(0)
    assert utilities[2].mean() > utilities[1].mean() > 0, "what is nearer to its end completes more often"


def test_each_query_has_its_own_reach(spark: SparkSession, tmp_path: Path) -> None:
    texts = ["SEQ(A a, B b) WHERE a.v < b.v WITHIN 2 s", "SEQ(A a, C c) WITHIN 40 s"]
    queries = [(pk.parse(f"PATTERN {text} PARTITION BY card", f"q{n}"), 1.0 + n) for n, text in enumerate(texts)]
    table = events(1500)
    model = collect(frame_of(spark, table, tmp_path), queries, seq="id", model="transition")
    on_spark, in_process = pspice_of(model).strategy, learned("pspice", queries, table).strategy
    reaches = [round(int(each.sums["reach"]) / int(each.sums["seen"].sum())) for each in model.queries]
    assert 5 * reaches[0] < reaches[1]
    for query, reach in enumerate(reaches):
        assert on_spark.run_utilities(query).shape[1] == reach
        np.testing.assert_allclose(on_spark.run_utilities(query), in_process.run_utilities(query))


def reach_by_hand(table: Any, query: Any) -> int:
    if isinstance(query.within, ast.CountSpan):
        return len(table) * int(query.within.events)
    rows = [(row["card"] if query.partition else 0, row["ts"].timestamp()) for row in table.to_pylist()]
    within = query.within.us / 1e6 + 1e-9
    return sum(k == key and 0 <= at - ts <= within for n, (key, at) in enumerate(rows) for k, ts in rows[: n + 1])


KEYED = "SEQ(A a, B b, C c) WHERE a.v < c.v WITHIN 5 s PARTITION BY card"
IN_SLICES = "SEQ(A a, B b, C c) WHERE a.v < c.v WITHIN 2 s"
WITH_NEGATION = "SEQ(A a, NOT D d, B b, C c) WITHIN 4 s"
IN_WINDOWS = "SEQ(A a, B b, C c) WHERE a.v < c.v WITHIN 10 s WINDOW 10 s EVERY 3 s"
IN_WINDOWS_OF_KEYS = "SEQ(A a, B b, C c) WHERE a.v < c.v WITHIN 20 s PARTITION BY card WINDOW 20 s EVERY 7 s"
COUNTED_OF_KEYS = "SEQ(A a, B b) WITHIN 9 EVENTS PARTITION BY card WINDOW 9 EVENTS EVERY 4 EVENTS SELECT FIRST"
OPENED_OF_KEYS = "SEQ(A a, NOT C c, B b) WITHIN 20 s PARTITION BY card WINDOW 20 s ON D d WHERE d.v > 20"
CONSUMING = "SEQ(A a, B b) WITHIN 10 s WINDOW 10 s EVERY 3 s SELECT FIRST CONSUME ALL"


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        (KEYED, "hspice-pm"), (IN_SLICES, "gspice-wt"), (WITH_NEGATION, "hspice-w"), (WITH_NEGATION, "gspice-sh"),
        (IN_WINDOWS, "ebl"), (IN_WINDOWS, "hspice-pm"), (IN_WINDOWS, "gspice-sh"), (IN_WINDOWS, "gspice-wt"),
        (CONSUMING, "hspice-w"), (IN_WINDOWS_OF_KEYS, "ebl"), (IN_WINDOWS_OF_KEYS, "hspice-pm"),
        (COUNTED_OF_KEYS, "hspice-w"), (OPENED_OF_KEYS, "hspice-pm"),
    ],
)  # fmt: skip
def test_what_is_learned_in_parts_is_what_one_process_learns(
    spark: SparkSession, tmp_path: Path, text: str, strategy: str
) -> None:
    query, table = pk.parse(f"PATTERN {text}"), in_order_of_types(events(2000))
    found = learn(frame_of(spark, table, tmp_path), query, strategy, seq="id", positions=20)
    alone = learned(strategy, [(query, 1.0)], table, bins=20)
    assert found.rows == len(table)
    assert found.fitted.types == alone.types == (*TYPES, "")
    ours, theirs = arrays_of(found.fitted.strategy), arrays_of(alone.strategy)
    assert list(ours) == list(theirs)
    for name, array in theirs.items():
        np.testing.assert_allclose(ours[name], array, rtol=1e-12, atol=1e-12, err_msg=name)
    assert any(array.any() for array in theirs.values())


@pytest.mark.parametrize("strategy", ["gspice-wh", "gspice-wt"])
def test_gspice_learns_positions_in_windows_of_keys(spark: SparkSession, tmp_path: Path, strategy: str) -> None:
    # One key, since the pane of a part has only the events of its keys.
    query, table = pk.parse(f"PATTERN {IN_WINDOWS_OF_KEYS}"), in_order_of_types(events(1000, keys=1))
    found = learn(frame_of(spark, table, tmp_path), query, strategy, seq="id").fitted.strategy
    alone = learned(strategy, [(query, 1.0)], table).strategy
    assert found.features.bins == 20  # type: ignore[attr-defined]
    for name, array in arrays_of(alone).items():
        np.testing.assert_allclose(arrays_of(found)[name], array, rtol=1e-12, atol=1e-12, err_msg=name)
    assert len(np.unique(found.otherwise[0])) > 3, "positions matter"  # type: ignore[attr-defined]


def test_slices_of_time_know_the_sizes_of_the_windows_before(spark: SparkSession, tmp_path: Path) -> None:
    """Also where nothing comes for long, and sizes change: hSPICE's positions are by the sizes that were expected."""
    query, table = pk.parse(f"PATTERN {IN_WINDOWS}"), in_order_of_types(events(2400))
    ts = table["ts"].cast(pa.int64()).to_numpy()
    dense = ts[0] + (ts - ts[0]) // np.where(np.arange(len(ts)) % 800 < 400, 4, 1)  # bursts
    paused = np.maximum.accumulate(dense) + np.arange(len(ts)) // 300 * 200_000_000
    table = table.set_column(table.schema.get_field_index("ts"), "ts", pa.array(paused).cast(table["ts"].type))
    found = learn(frame_of(spark, table, tmp_path), query, "hspice-pm", seq="id", positions=20)
    alone = arrays_of(learned("hspice-pm", [(query, 1.0)], table, bins=20).strategy)
    assert alone["tables.0"].any()
    for name, array in alone.items():
        np.testing.assert_allclose(arrays_of(found.fitted.strategy)[name], array, rtol=1e-12, atol=1e-12, err_msg=name)


def in_order_of_types(table: pa.Table) -> pa.Table:
    """Return events of which the first are of each type: so one process gives the types the same numbers."""
    kinds = [*TYPES, *table["type"].to_pylist()[len(TYPES) :]]
    return table.set_column(table.schema.get_field_index("type"), "type", pa.array(kinds))


def arrays_of(strategy: Strategy) -> dict[str, Any]:
    """Return all arrays of a model."""
    arrays: dict[str, Any] = {}
    _taken_apart(strategy, "", arrays)
    return arrays


def test_a_model_of_another_kind_is_told_with_a_fix() -> None:
    with pytest.raises(PenstockError, match=r'contributions\n  fix: collect\(…, model="contribution"\), or pspice_of'):
        espice_of(Model("transition", 10, ("A",), ()))
    with pytest.raises(PenstockError, match=r'transitions\n  fix: collect\(…, model="transition"\), or espice_of'):
        pspice_of(Model("contribution", 10, ("A",), ()))
    chance = pk.Shedding(bound="1 s", strategy="espice", model=RandomEvent(1))
    with pytest.raises(PenstockError, match=r"fix: strategy='random-event', or a model of espice"):
        chance.fitted()


def test_what_cannot_be_learned_is_told(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark, events(50), tmp_path)
    query = pk.parse("PATTERN SEQ(A a, B b) WHERE a.v < b.v WITHIN 5 s")
    with pytest.raises(PenstockError, match="random-event has nothing to learn"):
        learn(frame, query, "random-event")
    with pytest.raises(PenstockError, match="'x' is no number that the queries read\\n  fix: give some of v"):
        learn(frame, query, "gspice-sh", attributes=("x",))
    with pytest.raises(PenstockError, match="no query has a match"):
        learn(frame, pk.parse("PATTERN SEQ(A a, E e) WITHIN 1 s"), "hspice-pm")
