"""The soccer game of the DEBS 2013 Grand Challenge: sensors in shoes, gloves and balls."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.lab.readers.files import read_columns
from penstock.lab.readers.game import Tracks, game

# The challenge's order; a file has no header. Times are picoseconds, places millimetres.
COLUMNS = {"sid": pa.int64(), "ts": pa.int64(), "x": pa.int64(), "y": pa.int64(), "z": pa.int64()} | {
    name: pa.int64() for name in ("v", "a", "vx", "vy", "vz", "ax", "ay", "az")
}

# Sensors of each player: legs, of goalkeepers also arms (the challenge's list). The balls; the referee is left out.
PLAYERS = (
    ((13, 14, 97, 98), (47, 16), (49, 88), (19, 52), (53, 54), (23, 24), (57, 58), (59, 28)),
    ((61, 62, 99, 100), (63, 64), (65, 66), (67, 68), (69, 38), (71, 40), (73, 74), (75, 44)),
)
BALLS = (4, 8, 10, 12)
PITCH_MM = (52_489, 33_965)  # half its length and width: balls outside are not in play
REACH_M = 1.0  # so near the ball must be, says the challenge


def read_debs2013(
    path: Path | str, *, hertz: int = 1, reach_m: float = REACH_M, striker: str = "S", player: str = "D"
) -> pa.Table:
    """Return the events of a file of the challenge; `game` says what types and possession are.

    As in the papers, one position per second and player is kept: the first that any of his sensors reports. Of the
    balls, the last that has reported from inside the pitch counts.

    Args:
        path: of the file: CSV of the challenge's 13 columns, or Parquet with their names.
        hertz: events per second of each object.
        reach_m: how near the player must be who has the ball.
        striker: what strikers are called.
        player: what the others are called, without their number.
    """
    table = read_columns(path, COLUMNS).select(["sid", "ts", "x", "y"])
    balls = table.filter(
        pc.and_(
            pc.is_in(table.column("sid"), pa.array(BALLS)),
            pc.and_(
                pc.less_equal(pc.abs(table.column("x")), PITCH_MM[0]),
                pc.less_equal(pc.abs(table.column("y")), PITCH_MM[1]),
            ),
        )
    )
    sensors = {
        sensor: (team * 100 + number, team)
        for team, players in enumerate(PLAYERS)
        for number, legs in enumerate(players)
        for sensor in legs
    }
    players = table.filter(pc.is_in(table.column("sid"), pa.array(list(sensors))))
    return game(_tracks(players, sensors), _tracks(balls, dict.fromkeys(BALLS, (0, 0))),
                hertz=hertz, reach_m=reach_m, striker=striker, player=player)  # fmt: skip


def _tracks(table: pa.Table, sensors: dict[int, tuple[int, int]]) -> Tracks:
    """Return the positions of sensors as those of the players who wear them."""
    sid, ts, x, y = (table.column(name).to_numpy() for name in ("sid", "ts", "x", "y"))
    worn = np.zeros((max(sensors) + 1, 2), np.int64)
    for sensor, who in sensors.items():
        worn[sensor] = who
    return Tracks(ts // 1_000_000, worn[sid, 0], worn[sid, 1], x / 1000, y / 1000)
