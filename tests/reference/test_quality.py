"""Quality against the truth: strict, relaxed, weighted."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.reference import Match, Quality, quality


def match(number: int, window: int | None = 0, query: str | None = "q", key: tuple[Any, ...] = ()) -> Match:
    return Match(query, key, window, (("a", (number,)),))


@pytest.mark.parametrize(
    ("truth", "found", "false_negatives", "false_positives"),
    [
        ([match(1), match(2)], [match(1), match(2)], 0, 0),
        ([match(1), match(2)], [match(1)], 1, 0),
        ([match(1)], [match(1), match(2)], 0, 1),
        ([match(1), match(2)], [match(1), match(3)], 1, 1),
        ([match(1, window=0)], [match(1, window=5)], 1, 1),
        ([match(1, window=None)], [match(1, window=None)], 0, 0),
        ([match(1, query="q")], [match(1, query="r")], 1, 1),
        ([match(1, query=None)], [match(1, query="q")], 1, 1),
        ([match(1, key=("x",))], [match(1, key=("y",))], 1, 1),
        ([Match("q", (), 0, (("a", (1,)),))], [Match("q", (), 0, (("b", (1,)),))], 1, 1),  # another variable
        ([Match("q", (), 0, (("a", (1, 2)),))], [Match("q", (), 0, (("a", (1,)),))], 1, 1),
        ([Match("q", (), 0, (), first_ts=1)], [Match("q", (), 0, (), first_ts=2)], 0, 0),  # times follow from events
        ([Match("q", (), 0, (), values={"x": 1})], [Match("q", (), 0, (), values={"x": 2})], 0, 0),
        ([], [match(1)], 0, 1),
        ([match(1)], [], 1, 0),
        ([], [], 0, 0),
    ],
)
def test_strict(truth: list[Match], found: list[Match], false_negatives: int, false_positives: int) -> None:
    assert quality(truth, found) == Quality(len(truth), len(found), false_negatives, false_positives)


@pytest.mark.parametrize(
    ("truth", "found", "false_negatives", "false_positives"),
    [
        ([match(1)], [match(2)], 0, 0),
        ([match(1), match(2)], [match(3)], 1, 0),  # with multiplicity
        ([match(1)], [match(2), match(3)], 0, 1),
        ([match(1), match(2), match(3)], [match(4), match(5)], 1, 0),
        ([match(1, window=0)], [match(1, window=5)], 1, 1),
        ([match(1, window=0), match(2, window=5)], [match(3, window=0), match(4, window=0)], 1, 1),
        ([match(1, query="q")], [match(1, query="r")], 1, 1),
        ([match(1, key=("x",))], [match(1, key=("y",))], 1, 1),
        ([match(1), match(2)], [], 2, 0),
    ],
)
def test_relaxed(truth: list[Match], found: list[Match], false_negatives: int, false_positives: int) -> None:
    assert quality(truth, found, "relaxed") == Quality(len(truth), len(found), false_negatives, false_positives)


def test_weights() -> None:
    truth = [match(1, query="q"), match(2, query="q"), match(1, query="r"), match(1, query="other")]
    found = [match(1, query="q"), match(9, query="q"), match(9, query="r")]
    judged = quality(truth, found, weights={"q": 3, "r": 0.5})
    assert judged == Quality(truth=7.5, found=6.5, false_negatives=4.5, false_positives=3.5)
    assert judged.score == pytest.approx(0.4)  # (7.5 − 4.5) / 7.5


@pytest.mark.parametrize(
    ("truth", "found", "mode", "score"),
    [
        ([match(1), match(2)], [match(1), match(3)], "strict", 0.5),
        ([match(1), match(2)], [match(1), match(3)], "relaxed", 1.0),
        ([match(1), match(2)], [], "strict", 0.0),
        ([], [], "strict", 1.0),
        ([], [match(1)], "strict", 1.0),  # nothing was lost
        ([match(1)], [match(1), match(2), match(3)], "strict", 1.0),
    ],
)
def test_score(truth: list[Match], found: list[Match], mode: Any, score: float) -> None:
    assert quality(truth, found, mode).score == score


def test_another_mode_is_refused() -> None:
    wrong: Any = "loose"
    with pytest.raises(ValueError, match="loose"):
        quality([], [], wrong)
