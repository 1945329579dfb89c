"""What becomes of runs, on streams that can be counted by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

import penstock as pk
from penstock.lab.completion import Completion, completion


def batches(types: str, size: int) -> list[pa.RecordBatch]:
    table = pa.table({"type": list(types), "ts": [second * 1_000_000 for second in range(len(types))]})
    return list(table.to_batches(max_chunksize=size))


@pytest.mark.parametrize("size", [1, 3, 100])
def test_without_windows(size: int) -> None:
    query = pk.parse("PATTERN SEQ(A a, B b) WITHIN 2 s SELECT FIRST CONSUME a")
    assert completion(query, batches("AXXXAABX", size)) == Completion(
        events=8, opened=3, completed=2, runs=3, matches=2
    )


@pytest.mark.parametrize("size", [1, 3, 100])
def test_runs_and_matches_are_counted_in_each_window(size: int) -> None:
    query = pk.parse("PATTERN SEQ(A a, B b) WITHIN 4 events WINDOW 4 events EVERY 2 events SELECT FIRST CONSUME a")
    # Windows 0-3, 2-5, 4-7: the first A is in one of them, the second in two, of which one has its B.
    found = completion(query, batches("XABAXBXX", size))
    assert (found.opened, found.runs) == (2, 3)
    assert (found.completed, found.matches) == (2, 2)
    assert found.share == 1
    assert found.probability == pytest.approx(2 / 3)


def test_nothing_is_a_share_of_nothing() -> None:
    found = completion(pk.parse("PATTERN SEQ(A a, B b) WITHIN 2 s"), batches("XYZ", 100))
    assert (found.share, found.probability) == (0, 0)
