"""Verdicts on rows that are made up."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from penstock.lab.judging import Judged, Judgement, Row, Verdict

READ: TypeAdapter[Any] = TypeAdapter(Judgement)


def rows(**values: list[float]) -> list[Row]:
    """Return rows at 120 %, 160 % and 200 %: `a=[…]` of strategy a."""
    return [
        Row("q", 0, "", rate, strategy, 1, {"strict_fn": value}, {})
        for strategy, each in values.items()
        for rate, value in zip((1.2, 1.6, 2.0), each, strict=True)
    ]


def swept(**values: list[float]) -> list[Row]:
    return [
        Row("q", x, str(10 * x), 1.2, strategy, 1, {"strict_fn": value}, {})
        for strategy, each in values.items()
        for x, value in enumerate(each)
    ]


def judge(given: list[Row], **judgement: Any) -> Verdict:
    return Verdict(READ.validate_python({"experiment": "q", "measure": "strict_fn", **judgement}).judged(given).verdict)


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ([0.1, 0.2, 0.3], [0.2, 0.3, 0.4], "holds"),
        ([0.1, 0.2, 0.3], [0.2, 0.195, 0.4], "holds"),  # within the slack
        ([0.1, 0.2, 0.5], [0.2, 0.3, 0.4], "holds in part"),
        ([0.1, 0.4, 0.5], [0.2, 0.3, 0.4], "does not hold here"),
    ],
)
def test_order(a: list[float], b: list[float], verdict: str) -> None:
    assert judge(rows(a=a, b=b), kind="order", less=["a"], more=["b"]) == verdict


def test_order_tells_what_speaks_against_it() -> None:
    judgement = READ.validate_python(
        {"kind": "order", "experiment": "q", "measure": "strict_fn", "less": ["a"], "more": ["b"]}
    )
    judged = judgement.judged(rows(a=[0.1, 0.2, 0.5], b=[0.2, 0.3, 0.4]))
    assert judged.reason == "200 %: a 50.0 %, b 40.0 %"
    assert judgement.seen(rows(a=[0.1, 0.2, 0.5], b=[0.2, 0.3, 0.4])) == "a 10.0 % … 50.0 %, b 20.0 % … 40.0 %"


def test_order_at_some_rates_and_values() -> None:
    given = rows(a=[0.1, 0.2, 0.5], b=[0.2, 0.3, 0.4])
    assert judge(given, kind="order", less=["a"], more=["b"], rates=[1.2, 1.4, 1.6]) == "holds"
    assert judge(swept(a=[0.5, 0.1], b=[0.4, 0.2]), kind="order", less=["a"], more=["b"], values=[10]) == "holds"
    assert judge(given, kind="order", less=["a"], more=["b"], rates=[1.9]) == "not judged"
    assert judge(given, kind="order", less=["a"], more=["c"]) == "not judged"


@pytest.mark.parametrize(
    ("kind", "values", "verdict"),
    [
        ("rises", [0.1, 0.2, 0.3], "holds"),
        ("rises", [0.1, 0.095, 0.3], "holds"),
        ("rises", [0.1, 0.05, 0.3], "does not hold here"),
        ("rises", [0.1, 0.1, 0.1], "does not hold here"),
        ("falls", [0.3, 0.2, 0.1], "holds"),
        ("falls", [0.1, 0.2, 0.3], "does not hold here"),
        ("stays", [0.1, 0.105, 0.1], "holds"),
        ("stays", [0.1, 0.2, 0.1], "does not hold here"),
    ],
)
def test_trend(kind: str, values: list[float], verdict: str) -> None:
    assert judge(rows(a=values), kind=kind, of_strategies=["a"]) == verdict
    assert judge(swept(a=values), kind=kind, of_strategies=["a"], along="sweep") == verdict


def test_trend_along_the_match_probability() -> None:
    given = [
        Row("q", x, str(x), 1.2, "a", 1, {"strict_fn": fn, "match_probability": p}, {})
        for x, (fn, p) in enumerate([(0.1, 0.9), (0.3, 0.1), (0.2, 0.5)])
    ]
    assert judge(given, kind="falls", of_strategies=["a"], along="match_probability") == "holds"


def test_limit_gain_alike_numbers() -> None:
    given = rows(a=[0.0, 0.02, 0.1], b=[0.1, 0.2, 0.3])
    assert judge(given, kind="at most", of_strategies=["a"], limit=0.1) == "holds"
    assert judge(given, kind="at most", of_strategies=["a"], limit=0.05) == "holds in part"
    assert judge(given, kind="at least", of_strategies=["b"], limit=0.1) == "holds"
    assert judge(given, kind="gain", better="a", than="b", times=10) == "holds"
    assert judge(given, kind="gain", better="a", than="b", times=500) == "holds in part"
    assert judge(given, kind="gain", better="b", than="a", times=2) == "does not hold here"
    assert judge(given, kind="alike", one="a", other="b", slack=0.2) == "holds"
    assert judge(given, kind="alike", one="a", other="b", slack=0.1) == "does not hold here"
    stated = [{"strategy": "a", "rate": 2.0, "is_about": 0.2}, {"strategy": "b", "rate": 2.0, "is_about": 0.9}]
    assert judge(given, kind="numbers", stated=stated, slack=0.15) == "holds in part"


def test_parts_of_a_claim_count_the_same() -> None:
    good, half, bad, none = Judged(3, 3, ()), Judged(1, 2, ("x",)), Judged(0, 4, ("y",)), Judged(0, 0, ())
    assert Judged.joined([good, good]).verdict == "holds"
    assert Judged.joined([good, half]).verdict == "holds in part"
    assert Judged.joined([good, bad]).verdict == "holds in part"
    assert Judged.joined([half, bad]).verdict == "does not hold here"
    assert Judged.joined([good, none]).verdict == "not judged"


def test_an_unknown_measure_is_refused() -> None:
    with pytest.raises(ValueError, match="'beauty' is not measured"):
        judge([], kind="at most", of_strategies=["a"], limit=0.1, measure="beauty")


def test_shares_of_a_handful_of_matches_are_not_judged() -> None:
    few = [Row("q", 0, "", 1.2, "a", 1, {"strict_fn": 0.0, "truth": 3.0}, {})]
    assert judge(few, kind="at most", of_strategies=["a"], limit=0.1) == "not judged"
