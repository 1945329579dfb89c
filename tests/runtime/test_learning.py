"""Models from a history in memory, for queries whose windows are matched on their own and for others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.runtime.learning import learned


def stream(size: int = 3000, seed: int = 1) -> dict[str, Any]:
    """Return ten events a second, of five cards."""
    numbers = np.random.default_rng(seed)
    return {
        "type": numbers.choice(list("ABCD"), size), "ts": np.arange(size) * 100_000, "v": numbers.random(size),
        "card": numbers.integers(0, 5, size),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rest", "reach"),
    [
        ("WITHIN 5 s", 51),  # those of five seconds, with those at both ends
        ("WITHIN 5 s PARTITION BY card", 11),  # a fifth of 50, and the event itself
        ("WITHIN 5 s PARTITION BY card WINDOW 5 s EVERY 1 s", 11),
        ("WITHIN 30 EVENTS PARTITION BY card", 30),
        ("WITHIN 5 s WINDOW 5 s EVERY 1 s", 49),  # windows matched on their own; the last ones are cut short
    ],
)
def test_runs_are_worth_what_they_may_still_see(rest: str, reach: int) -> None:
    query = pk.parse(f"PATTERN SEQ(A a, B b, C c) {rest}")
    utilities = learned("pspice", [(query, 1.0)], stream()).strategy.run_utilities(0)
    assert utilities.shape == (4, reach)
    assert utilities[1, 0] == 0, "one event does not complete it"
    assert (utilities[1, 1:] > 0).all()
    assert utilities[1, -1] > 2 * utilities[1, 1]
    assert (utilities[2] > utilities[1]).all(), "it is nearer to its end"


@pytest.mark.parametrize("strategy", ["pspice", "gspice-sh"])
def test_what_needs_no_positions_does_not_ask_for_them(strategy: str) -> None:
    query = pk.parse("PATTERN SEQ(A a, B b) WITHIN 5 s PARTITION BY card WINDOW 5 s EVERY 1 s")
    learned(strategy, [(query, 1.0)], stream())  # warnings are errors here
