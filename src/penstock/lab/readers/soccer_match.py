"""A match tracked by cameras: one position per player and for the ball, 25 times a second."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.lab.readers.files import read_columns
from penstock.lab.readers.game import Tracks, game

COLUMNS = {"Timestamp": pa.int64(), "ID": pa.int64(), "X": pa.float64(), "Y": pa.float64()}
AWAY, BALL = 100, 200  # numbers above are those of the away team; that of the ball
REACH_M = 2.0


def read_soccer_match(
    path: Path | str, *, hertz: int = 1, reach_m: float = REACH_M, striker: str = "S", player: str = "D"
) -> pa.Table:
    """Return the events of `soccer_match_positions_2019`; `game` says what types and possession are.

    Args:
        path: of the file: `Timestamp` (milliseconds), `ID` (1 …: home, 101 …: away, 200: ball), `X`, `Y` (metres).
        hertz: events per second of each object.
        reach_m: how near the player must be who has the ball. The file does not say who has it: a guess.
        striker: what strikers are called.
        player: what the others are called, without their number.
    """
    table = read_columns(path, COLUMNS)
    ts, number, x, y = (table.column(name).to_numpy() for name in COLUMNS)
    is_ball = number == BALL
    team = (number > AWAY).astype(np.int64)

    def tracks(rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Tracks:
        return Tracks(ts[rows] * 1000, number[rows], team[rows], x[rows], y[rows])

    return game(tracks(~is_ball), tracks(is_ball), hertz=hertz, reach_m=reach_m, striker=striker, player=player)
