"""The kernel's plain numbers are the planner's enums."""

from __future__ import annotations

from enum import IntEnum

import pytest

from penstock.plan import layout
from penstock.plan.automaton import Op
from penstock.plan.terms import AGGREGATES, TEXT_BASE, Code, Index


@pytest.mark.parametrize("member", [*Op, *Code, *Index], ids=lambda member: f"{type(member).__name__}.{member.name}")
def test_a_number_means_the_same_on_both_sides(member: IntEnum) -> None:
    assert getattr(layout, member.name) == member


def test_aggregates_and_texts() -> None:
    names = {"COUNT": "COUNT", "SUM": "SUM", "AVG": "AVG", "MIN": "LEAST", "MAX": "MOST"}
    assert {name: getattr(layout, names[name]) for name in names} == {n: k for n, k in AGGREGATES.items() if n}
    assert layout.TEXT_LOW == TEXT_BASE
