"""The made buses: reports, delays that spread, and what the queries find."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from penstock.lab.completion import completion
from penstock.lab.generators import Buses
from penstock.lab.statistics import reports
from tests.lab.corpus import query


def test_every_bus_reports_every_twenty_seconds() -> None:
    stream = Buses(buses=50)
    made = reports(stream.table(3 * stream.block_rows))
    assert (made.buses, made.interval_seconds) == (50, 20)
    assert made.per_minute == pytest.approx(150, rel=0.01)


def test_delays_come_from_blocked_stops() -> None:
    quiet, busy = (reports(Buses(incidents=each).table(4 * Buses().block_rows)) for each in (0, 1))
    assert quiet.late < 0.001
    assert busy.late > 0.05
    assert busy.others > 1  # several at one stop


def test_delays_neither_jump_nor_stay() -> None:
    stream = Buses(buses=60, incidents=1)
    table = stream.table(6 * stream.block_rows)
    delay = table.column("delay").cast(pa.int64()).to_numpy().reshape(-1, 60) / 1e6  # a row per round, buses in order
    change = np.diff(delay, axis=0)
    assert change.max() < 20 + 6 * 12.5 * np.sqrt(2)  # held up for the time between two reports, and noise
    assert delay.max() > 200
    assert (delay.min(axis=0) < 60).all()


def test_a_bus_that_is_held_up_stands() -> None:
    stream = Buses(buses=60, incidents=1)
    table = stream.table(2 * stream.block_rows)
    delay = table.column("delay").cast(pa.int64()).to_numpy().reshape(-1, 60) / 1e6
    stop = table.column("stop").combine_chunks().indices.to_numpy().reshape(-1, 60)
    later = delay[6:] - delay[:-6]  # in two minutes
    assert (stop[6:] == stop[:-6])[later > 110].mean() > 0.7  # a bus on its way is at another stop by then
    assert (stop[6:] == stop[:-6])[later < 20].mean() < 0.1


@pytest.mark.parametrize("name", ["thesis-table3.1-q4", "thesis-table3.1-q4-sequence"])
def test_the_queries_find_matches(name: str) -> None:
    found = completion(query(name), Buses().batches(6 * Buses().block_rows))
    assert 0.1 < found.share < 0.5
