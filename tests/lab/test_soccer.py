"""The made game: who is where, who has the ball, and what the queries find."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.lab.completion import completion
from penstock.lab.generators import Soccer
from penstock.lab.generators.soccer import HALF_SECONDS
from penstock.lab.statistics import positions
from tests.lab.corpus import query


@pytest.fixture(scope="module")
def half() -> pa.Table:
    return Soccer().table(Soccer().block_rows)


def test_every_object_reports_every_second(half: pa.Table) -> None:
    counts = half.group_by(["type", "team"]).aggregate([("ts", "count")])
    assert len(counts) == 23
    assert set(counts.column("ts_count").to_pylist()) == {HALF_SECONDS}
    assert np.unique(half.column("ts").to_numpy() // 1_000_000, return_counts=True)[1].tolist() == [23] * HALF_SECONDS


def test_rates_can_be_higher() -> None:
    ts = Soccer(hertz=5).table(23 * 50).column("ts").to_numpy()
    assert ts[-1] < 10_000_000 <= ts[-1] + 1_000_000


def test_nobody_leaves_and_one_has_the_ball(half: pa.Table) -> None:
    assert pc.max(pc.abs(half.column("x"))).as_py() <= 55
    assert pc.max(pc.abs(half.column("y"))).as_py() <= 37
    holders = half.filter(half.column("possession"))
    seconds = pc.divide(holders.column("ts"), 1_000_000)
    assert pc.count_distinct(seconds).as_py() == len(holders)
    assert "BALL" not in holders.column("type").to_pylist()


def test_who_has_the_ball_is_where_it_is(half: pa.Table) -> None:
    slot = half.column("ts").to_numpy() // 1_000_000
    x, y = half.column("x").to_numpy(), half.column("y").to_numpy()
    is_ball = pc.equal(half.column("type").cast(pa.string()), "BALL").to_numpy()
    ball = {second: (a, b) for second, a, b in zip(slot[is_ball], x[is_ball], y[is_ball], strict=True)}
    for row in np.flatnonzero(half.column("possession").to_numpy()):
        assert np.hypot(x[row] - ball[slot[row]][0], y[row] - ball[slot[row]][1]) < 0.1


def test_the_game_is_like_a_recorded_one(half: pa.Table) -> None:
    made = positions(half)
    assert made.players == 22
    assert 1 < made.speed[0] < 2.5 and made.speed[1] < 6  # noqa: PT018 - one thing
    assert 0.5 < made.held < 0.7
    assert 0.4 < made.opponents[0] < 0.75


def test_runs_complete_about_as_often_as_in_the_thesis() -> None:
    """It states 6 percent for Q6 (section 4.3.2.1)."""
    found = completion(query("thesis-table4.2-q6"), Soccer().batches(10 * Soccer().block_rows))
    assert found.opened > 1000
    assert 0.03 < found.share < 0.1


def test_marking_brings_more_players_near() -> None:
    shares = [
        completion(query("thesis-table4.2-q6"), Soccer(marking=marking).batches(4 * Soccer().block_rows)).share
        for marking in (0.05, 0.15, 0.3)
    ]
    assert shares == sorted(shares)
    assert shares[-1] > 5 * shares[0]


def test_types_can_have_other_names() -> None:
    stream = Soccer(striker="STR", player="DF", marking=0.3)
    assert completion(query("espice-sec4.1-q1"), stream.batches(stream.block_rows)).matches > 0
