"""Keys that are never shed: their matches are all found, and tell how many of the others are lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.shedding.strategies.catalogue import STRATEGIES
from penstock.spark.losing import estimated_loss
from penstock.spark.progress import Progress
from penstock.spark.worker.bucket import Bucket, Given
from penstock.spark.worker.judging import marked
from penstock.spark.worker.results import COUNTS, MATCHES, OUTPUT, SHED
from penstock.spark.worker.spec import Spec
from tests.spark.test_shedding_workers import ROWS, SECOND, blob_with, events, history, packed, shedding, slow, spec_for

__all__ = ["history"]  # a fixture

DROPS_ROWS = ["random-event", "ebl", "espice", "gspice-sh", "gspice-wh"]
SHARE = 0.5
TOLD = "rows", "processed", "shed", "shed_early", "shed_overdue", "judged_rows", "judged", "judged_lost"


def found(
    spec: Spec, blob: bytes, *, batches: int = 1, restored: bool = False, lag: int = 200_000
) -> tuple[dict[str, Any], set[int], set[tuple[int, ...]]]:
    """Return counts, ids of the rows that were shed and ids of matches, over some batches, perhaps with restarts."""
    totals: dict[str, Any] = {}
    shed, matches = set[int](), set[tuple[int, ...]]()
    for number in range(1, batches + 1):
        bucket = Bucket.of(spec, [0], blob)
        for table in bucket.step(Given.of(packed(spec, number, 60 * number * SECOND, lag)), 0):
            for row in table.to_pylist():
                if row[OUTPUT] == SHED:
                    shed.add(row["event"]["id"])
                elif row[OUTPUT] == MATCHES:
                    matches.add((row["k"], *(row[v][0]["id"] for v in "abc")))
                elif row[COUNTS] is not None:
                    totals = {name: row[COUNTS][name] + totals.get(name, 0) for name in TOLD}
        blob = bucket.snapshot()
        if restored:
            Bucket.forget_live()
    return totals, shed, matches


@pytest.mark.parametrize("name", DROPS_ROWS)
def test_what_would_be_lost_of_marked_keys_is_counted(name: str, history: Any) -> None:
    spec = spec_for(shedding(name, history, unshed=SHARE))
    assert spec.shed is not None
    assert spec.shed.unshed == SHARE
    keys = np.arange(5)
    mine = set(keys[marked(pa.table({"k": keys}), ["k"], SHARE, spec.shed.seed)].tolist())
    assert 0 < len(mine) < 5, "the test needs keys of both kinds"
    blob = blob_with(spec, slow(ROWS, 1_000_000))
    assert found(spec, blob, batches=2) == found(spec, blob, batches=2, restored=True)
    counts, shed, matches = found(spec, blob)
    key_of = {row: int(k) for b in range(3) for row, k in enumerate(events(ROWS, b * ROWS)["k"], b * ROWS)}
    assert not {key_of[row] for row in shed} & mine
    assert shed
    everything = spec_for(shedding("random-event", history, unshed=0.0))
    truth = found(everything, blob_with(everything, slow(ROWS, 1000)))[2]
    of_mine = {match for match in truth if match[0] in mine}
    assert {match for match in matches if match[0] in mine} == of_mine
    assert counts["judged"] == len(of_mine)
    kinds = dict(enumerate(np.concatenate([events(ROWS, b * ROWS)["type"] for b in range(3)])))
    assert counts["judged_rows"] == sum(
        key_of[row] in mine and kinds[row] != "D" for row in range(ROWS, 2 * ROWS)
    )  # D is in no query
    without = replace(spec, shed=replace(spec.shed, unshed=0.0))
    gone = found(without, blob_with(without, slow(ROWS, 1_000_000)))[1]
    assert counts["judged_lost"] == sum(any(row in gone for row in match[1:]) for match in of_mine) > 0


@pytest.mark.parametrize("lag", [1_000_000, 2_000_000, 20_000_000])
@pytest.mark.parametrize("name", DROPS_ROWS)
def test_matches_with_rows_that_went_for_their_lags_are_in_the_estimate(name: str, lag: int, history: Any) -> None:
    """They go in the bucket, if they have waited for less than the bound, or before the shuffle.

    Strategies that look at the stream give rows up there, too, as lags are beyond f · bound.
    """
    spec = spec_for(shedding(name, history, unshed=SHARE))
    assert spec.shed is not None
    keys = np.arange(5)
    mine = set(keys[marked(pa.table({"k": keys}), ["k"], SHARE, spec.shed.seed)].tolist())
    quick = slow(ROWS, 1_000)  # so nothing else goes
    counts, shed, matches = found(spec, blob_with(spec, quick), lag=lag)
    without = replace(spec, shed=replace(spec.shed, unshed=0.0))
    others, gone, _ = found(without, blob_with(without, quick), lag=lag)
    assert others["shed"] == len(gone) >= others["shed_overdue"] > 0
    assert (others["shed"] > others["shed_overdue"]) == (spec.shed.strategy.level == "stream")
    assert (others["shed_early"] > 0) == (lag > SECOND or spec.shed.strategy.level == "stream")
    key_of = {row: int(k) for b in range(2) for row, k in enumerate(events(ROWS, b * ROWS)["k"], b * ROWS)}
    assert shed == {row for row in gone if key_of[row] not in mine}
    assert counts["rows"] == counts["processed"] + counts["shed"]
    everything = spec_for(shedding("random-event", history, unshed=0.0))
    truth = found(everything, blob_with(everything, slow(ROWS, 1000)), lag=1000)[2]
    of_mine = {match for match in truth if match[0] in mine}
    assert {match for match in matches if match[0] in mine} == of_mine
    assert counts["judged"] == len(of_mine)
    assert counts["judged_lost"] == sum(any(row in gone for row in match[1:]) for match in of_mine) > 0


@pytest.mark.parametrize("name", sorted(set(STRATEGIES) - {"random-event", "ebl", "espice"}))
def test_strategies_that_drop_other_things_mark_no_keys(name: str, history: Any) -> None:
    spec = spec_for(shedding(name, history, unshed=SHARE))
    assert spec.shed is not None
    assert (spec.shed.unshed > 0) == name.startswith("gspice")


def test_keys_are_marked_alike_whatever_comes_with_them() -> None:
    with_null = pa.table({"k": pa.array([1, 2, None, 4]), "s": pa.array(["a", "b", "c", None])})
    alone = with_null.slice(0, 2)
    for names in (["k"], ["s"], ["k", "s"]):
        for seed in range(8):
            one, other = (marked(table, names, 0.5, seed)[:2].tolist() for table in (with_null, alone))
            assert one == other


def test_the_estimate_is_of_batches_that_shed() -> None:
    def told(number: int, shed: int, judged: int, lost: int) -> Progress:
        return Progress.of(number, 500, {"rows": 9, "shed": shed, "judged": judged, "judged_lost": lost}, 0)

    random = np.random.default_rng(1)
    batches = [told(n, 3, 40, int(random.binomial(40, 0.3))) for n in range(100)]
    idle = [told(n, 0, 40, 0) for n in range(100, 200)]
    estimate = estimated_loss([*batches, *idle])
    assert estimate.low < 0.3 < estimate.high
    assert estimate.high - estimate.low < 0.06
