"""The synthetic sets: shares and gaps of table 6.3."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from penstock.lab.completion import completion
from penstock.lab.generators import Synthetic
from penstock.lab.generators.synthetic import MEAN_GAP_SECONDS, DataSet
from penstock.lab.statistics import gaps
from tests.lab.corpus import query

ROWS = 400_000

# The percentages that the thesis prints, rounded as it does.
PRINTED: dict[DataSet, tuple[float, ...]] = {
    "DS1": (81.3, 13.6, 5.1),
    "DS2": (72.8, 13.6, 13.6),
    "DS3": (50, 33.3, 16.7),
    "DS4": (33.3, 33.3, 33.3),
    "DS5": (40.7, 6.8, 2.5, 40.7, 6.8, 2.5),
    "DS6": (36.4, 6.8, 6.8, 36.4, 6.8, 6.8),
    "DS7": (25, 16.7, 8.3, 25, 16.7, 8.3),
    "DS8": (16.7,) * 6,
}


@pytest.mark.parametrize("name", get_args(DataSet))
def test_shares_and_gaps_are_those_of_the_table(name: DataSet) -> None:
    found = gaps(Synthetic(name).table(ROWS))
    assert [100 * each.share for each in found.values()] == pytest.approx(PRINTED[name], abs=0.3)
    assert [each.mean_seconds for each in found.values()] == pytest.approx(
        list(MEAN_GAP_SECONDS[name].values()), rel=0.03
    )
    assert [each.variation for each in found.values()] == pytest.approx([1] * len(found), abs=0.03)  # exponential


def test_values_are_uniform_in_1_to_10() -> None:
    value = Synthetic("DS3").table(ROWS).column("V1").to_numpy()
    counts = np.histogram(value, bins=9, range=(1, 10))[0]
    assert counts.sum() == ROWS
    assert counts / ROWS == pytest.approx([1 / 9] * 9, abs=0.003)


@pytest.mark.parametrize(("number", "data_set"), [(1, "DS1"), (2, "DS5"), (3, "DS1")])
def test_the_queries_find_matches(number: int, data_set: DataSet) -> None:
    assert completion(query(f"thesis-table6.4-q{number}"), Synthetic(data_set).batches(20_000)).share > 0.03
