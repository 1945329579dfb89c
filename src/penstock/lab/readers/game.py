"""From tracks of players and a ball to the events of the soccer queries: types, teams, who has the ball."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROLES_SECONDS = 1200  # roles are told by where players are in this time: later, teams may have changed sides
BALL = "BALL"
TEAMS = ("A", "B")


@dataclass(frozen=True)
class Tracks:
    """Positions of players or of the ball, ordered by time.

    Attributes:
        ts: microseconds.
        player: a number for each player.
        team: 0 or 1; of no meaning for the ball.
        x: metres lengthwise.
        y: metres across.
    """

    ts: Ints
    player: Ints
    team: Ints
    x: Floats
    y: Floats

    def thinned(self, hertz: int) -> Tracks:
        """Return the first position of each player in each 1/hertz second, and no other."""
        key = self.ts * hertz // 1_000_000 * (int(self.player.max(initial=0)) + 1) + self.player
        kept = np.sort(np.unique(key, return_index=True)[1])
        return Tracks(self.ts[kept], self.player[kept], self.team[kept], self.x[kept], self.y[kept])


def game(players: Tracks, ball: Tracks, *, hertz: int, reach_m: float, striker: str, player: str) -> pa.Table:
    """Return the events of a game, as those of `penstock.lab.generators.Soccer`.

    Args:
        players: their positions.
        ball: its positions.
        hertz: how many events per second each of them gets: the first position in each slot of time.
        reach_m: who is nearest to the ball has it, if he is no farther away than this.
        striker: what strikers are called.
        player: what the others are called, without their number.

    Of each team the player who is farthest back on average is the goalkeeper (G), the one who is farthest forward the
    striker, the others are numbered from the back to the front. Forward is away from where the team is on average.
    """
    players, ball = players.thinned(hertz), ball.thinned(hertz)
    names, code = _roles(players, striker, player)
    has_ball = _possession(players, ball, hertz, reach_m)
    order = np.argsort(np.concatenate([players.ts, ball.ts]), kind="stable")

    def column(of_players: NDArray[np.generic], of_ball: NDArray[np.generic]) -> NDArray[np.generic]:
        return np.concatenate([of_players, of_ball])[order]

    of_ball = np.zeros(len(ball.ts), np.int64)
    is_ball = column(np.zeros(len(players.ts), np.bool_), of_ball == 0)
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(
                pa.array(column(code, of_ball + len(names)).astype(np.int16)), [*names, BALL]
            ),
            "ts": column(players.ts, ball.ts),
            "x": column(players.x, ball.x),
            "y": column(players.y, ball.y),
            "team": pa.DictionaryArray.from_arrays(
                pa.array(column(players.team, of_ball).astype(np.int8), mask=is_ball), list(TEAMS)
            ),
            "possession": column(has_ball, of_ball > 0),
        }
    )


def _roles(players: Tracks, striker: str, player: str) -> tuple[list[str], Ints]:
    """Return the types that players can have, and for each position the number of its player's type."""
    early = players.ts < players.ts[0] + ROLES_SECONDS * 1_000_000
    known, number = np.unique(players.player, return_inverse=True)
    count = np.bincount(number[early], minlength=len(known))
    mean = np.bincount(number[early], players.x[early], len(known)) / np.maximum(count, 1)
    team = np.zeros(len(known), np.int64)
    team[number] = players.team
    most = int(np.bincount(team).max())
    names = ["G", *(f"{player}{k}" for k in range(1, most - 1)), striker]
    role = np.zeros(len(known), np.int64)
    for side in np.unique(team):
        mine = np.flatnonzero(team == side)
        forward = -np.sign(mean[mine].mean()) or 1.0
        back_to_front = mine[np.argsort(mean[mine] * forward, kind="stable")]
        role[back_to_front] = list(chain(range(len(mine) - 1), [len(names) - 1 if len(mine) > 1 else 0]))
    return names, role[number]


def _possession(players: Tracks, ball: Tracks, hertz: int, reach_m: float) -> NDArray[np.bool_]:
    """Return at which positions a player has the ball."""
    latest = np.searchsorted(ball.ts, players.ts, side="right") - 1
    far = np.hypot(players.x - ball.x[latest], players.y - ball.y[latest])
    far[latest < 0] = np.inf
    slot = players.ts * hertz // 1_000_000
    nearest_first = np.lexsort((far, slot))
    is_first = np.append(True, np.diff(slot[nearest_first]) != 0)
    has_ball = np.zeros(len(far), np.bool_)
    has_ball[nearest_first[is_first]] = True
    result: NDArray[np.bool_] = has_ball & (far <= reach_m)
    return result
