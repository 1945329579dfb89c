"""A game of soccer: 22 players and a ball that passes between them, as positions."""

from __future__ import annotations

from dataclasses import dataclass as plain
from typing import Annotated

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass

from penstock.lab.generators.generator import SECOND_US, TYPE, Generator, types

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

HALF_SECONDS = 2700
PITCH = (52.5, 34.0)  # half its length and half its width, in metres; the centre spot is (0, 0)
SIDE = 11

# Where the players of a team stand that attacks to the right: goalkeeper, D1 … D9 from the back to the front, striker.
FORMATION = np.array([
    (-44, 0),
    (-22, -18), (-25, -6), (-25, 6), (-22, 18),
    (-6, -16), (-10, -3), (-6, 14),
    (6, -12), (6, 12),
    (12, 1),
], np.float64)  # fmt: skip
STRIKER = SIDE - 1

# Who gets the ball: from back to front, the longer a team has had it. A row per pass since it was won, the last for all
# later ones; a column per player of the formation.
RECEIVES = np.array([
    [6, 10, 12, 12, 10, 10, 12, 10, 6, 6, 2],
    [4, 10, 12, 12, 10, 12, 14, 12, 6, 6, 3],
    [2, 7, 8, 8, 7, 14, 14, 14, 10, 10, 6],
    [1, 4, 5, 5, 4, 13, 12, 13, 14, 14, 15],
])  # fmt: skip
ADVANCE_M = np.array([-8, -3, 4, 12])  # how far the ball is ahead of the formation then

SPELL_SECONDS = (1.0, 2.4)  # a player has the ball for so long at least, and so much longer on average, pass included
PASS_SPEED = 14.0  # metres per second; but a pass takes two thirds of a spell at most
TERRITORY_M = 14.0  # where the play is goes up and down the pitch, in waves of some minutes
LOST = 0.22  # the share of passes that the other team gets
RUN_SECONDS = 4.0  # so long before and after a player is drawn to the ball
SHIFT = np.array([0.75, 0.55])  # how far both teams go along with the ball: lengthwise, across
SMOOTH_SECONDS = 8
WANDER_M = 3.0
PRESSERS = 6  # so many of the other team's players, at most, go for the one with the ball


@plain(frozen=True)
class _Play:
    """Who has the ball when and where: arrays of a number per spell, and of two for a place."""

    start: Floats
    free: Floats  # the ball is passed on
    end: Floats
    team: Ints
    carrier: Ints  # 0 … 21
    place: Floats
    leaves: Floats  # where the ball is when it is passed on


@dataclass(frozen=True)
class Soccer(Generator):
    """Positions of 22 players and a ball, at a fixed rate.

    The types are S (the striker of either team), D1 … D9 (the other players of either team, from the back to the
    front), G (the goalkeepers) and BALL; `team` tells the sides apart. A block is a half of 45 minutes.

    The ball goes from player to player of a team, forward in the main, until the other team gets it. Both teams shift
    with the ball; who gets it runs there, and some players of the other team, those who stand nearest, go for him.

    Attributes:
        seed: of the random numbers.
        marking: how strongly players go for one of the other team who has the ball: the mean number of those who do, as
            a share of six; twice as many go for a striker.
        hertz: events per second of each object.
        striker: what strikers are called.
        player: what D1 … D9 are called, without the number.

    Examples:
        >>> Soccer(seed=1).block(0).select(["type", "x", "y", "possession"]).slice(0, 1).to_pylist()
        [{'type': 'D1', 'x': 1.22, 'y': -26.15, 'possession': False}]
    """

    seed: Annotated[int, Field(ge=0)] = 1
    marking: Annotated[float, Field(ge=0, le=1)] = 0.14
    hertz: Annotated[int, Field(gt=0, le=1000)] = 1
    striker: str = "S"
    player: str = "D"

    @property
    def names(self) -> list[str]:
        """The types: goalkeeper, players, striker, ball."""
        return ["G", *(f"{self.player}{k}" for k in range(1, SIDE - 1)), self.striker, "BALL"]

    @property
    def block_rows(self) -> int:
        """A block is a half."""
        return (2 * SIDE + 1) * HALF_SECONDS * self.hertz

    @property
    def schema(self) -> pa.Schema:
        """The columns of a block: `x` and `y` in metres from the centre spot; the ball has no team."""
        return pa.schema(
            [
                ("type", TYPE), ("ts", pa.int64()), ("x", pa.float64()), ("y", pa.float64()),
                ("team", pa.dictionary(pa.int8(), pa.string())), ("possession", pa.bool_()),
            ]
        )  # fmt: skip

    def block(self, number: int) -> pa.RecordBatch:
        """Return the events of a half."""
        random, ticks = self.numbers(number), HALF_SECONDS * self.hertz
        tick = np.arange(ticks) / self.hertz
        play = _play(random)
        ball = _ball(play, tick)
        players = _players(random, play, tick, ball, self.marking)
        places = np.concatenate([players, ball[None]])  # (objects, ticks, 2)
        spell = np.searchsorted(play.start, tick, side="right") - 1
        has_ball = np.zeros((2 * SIDE + 1, ticks), np.bool_)
        has_ball[play.carrier[spell], np.arange(ticks)] = tick < play.free[spell]

        objects = 2 * SIDE + 1
        order = self.numbers().permutation(objects)  # in which objects report, in each tick
        slot = np.arange(objects) * SECOND_US // (objects * self.hertz)
        first = (np.arange(ticks) + number * ticks) * SECOND_US // self.hertz
        kind = np.append(np.tile(np.arange(SIDE), 2), SIDE)[order]
        side = np.repeat([0, 1, 0], [SIDE, SIDE, 1]).astype(np.int8)[order]
        teams = pa.array(np.tile(side, ticks), mask=np.tile(order == 2 * SIDE, ticks))
        return pa.record_batch(
            [
                types(np.tile(kind, ticks), self.names),
                pa.array((first[:, None] + slot).ravel()),
                pa.array(np.round(places[order, :, 0].T.ravel(), 2)),
                pa.array(np.round(places[order, :, 1].T.ravel(), 2)),
                pa.DictionaryArray.from_arrays(teams, pa.array(["A", "B"])),
                pa.array(has_ball[order].T.ravel()),
            ],
            schema=self.schema,
        )


def _play(random: np.random.Generator) -> _Play:
    """Return the spells of a half: each player who gets the ball, until he passes it on."""
    count = int(HALF_SECONDS / sum(SPELL_SECONDS) * 1.2) + 50
    end = np.cumsum(SPELL_SECONDS[0] + random.exponential(SPELL_SECONDS[1], count))
    start = np.append(0.0, end[:-1])
    is_won = random.random(count) < LOST
    is_won[0] = True
    team = (random.integers(2) + np.cumsum(is_won)) % 2
    passes = np.arange(count) - np.maximum.accumulate(np.where(is_won, np.arange(count), 0))
    row = np.minimum(passes, len(RECEIVES) - 1)
    chances = np.cumsum(RECEIVES / RECEIVES.sum(1, keepdims=True), axis=1)[:, :-1]
    role = (random.random((count, 1)) > chances[row]).sum(1)
    attacks = np.where(team == 0, 1, -1)
    ahead = np.stack([ADVANCE_M[row], np.zeros(count)], axis=1)
    place = (FORMATION[role] + ahead + random.normal(0, 5, (count, 2))) * attacks[:, None]
    place[:, 0] += _waves(random, start, 1, TERRITORY_M, (150, 600))[0, :, 0]
    dribble = random.normal(0, 1, (count, 2)) * np.sqrt(end - start)[:, None]
    limit = np.array(PITCH) - 1
    place, leaves = np.clip(place, -limit, limit), np.clip(place + dribble, -limit, limit)
    flight = np.linalg.norm(np.roll(place, -1, axis=0) - leaves, axis=1) / PASS_SPEED
    free = end - np.minimum(flight, (end - start) * 2 / 3)
    return _Play(start, free, end, team, role + SIDE * team, place, leaves)


def _ball(play: _Play, tick: Floats) -> Floats:
    """Return where the ball is: (ticks, 2)."""
    at = np.stack([play.start, play.free], axis=1).ravel()
    places = np.stack([play.place, play.leaves], axis=1).reshape(-1, 2)
    return np.stack([np.interp(tick, at, places[:, 0]), np.interp(tick, at, places[:, 1])], axis=1)


def _players(random: np.random.Generator, play: _Play, tick: Floats, ball: Floats, marking: float) -> Floats:
    """Return where the players are: (players, ticks, 2)."""
    stands = np.concatenate([FORMATION, -FORMATION])
    free = stands[:, None] + _shift(ball, tick) + _waves(random, tick, 2 * SIDE, WANDER_M, (15, 90))
    presses = _pressers(random, play, stands, marking)
    distance = np.abs(random.normal(0, 2.5, len(play.start)))
    places = free
    for player in range(2 * SIDE):
        carries = play.carrier == player
        mine = np.flatnonzero(carries | presses[:, player])
        if not len(mine):
            continue
        angle = random.uniform(0, 2 * np.pi, len(mine))
        beside = np.stack([np.cos(angle), np.sin(angle)], axis=1) * np.where(carries, 0, distance)[mine, None]
        near, pull = _nearest(play.start[mine], play.end[mine], tick)
        goal = np.where(
            carries[mine][near, None], _along(play, mine[near], tick, ball), play.place[mine[near]] + beside[near]
        )
        places[player] += pull[:, None] * (goal - places[player])
    inside: Floats = np.clip(places, *(np.array([[-1], [1]]) * (np.array(PITCH) + 2)))
    return inside


def _along(play: _Play, spell: Ints, tick: Floats, ball: Floats) -> Floats:
    """Return where the player of a spell goes: to where he gets the ball, with it, and from where he passes it."""
    before, after = (tick < play.start[spell])[:, None], (tick >= play.free[spell])[:, None]
    return np.where(before, play.place[spell], np.where(after, play.leaves[spell], ball))


def _nearest(start: Floats, end: Floats, tick: Floats) -> tuple[Ints, Floats]:
    """Return which spell is the nearest in time at each tick, and how strongly it pulls: 1 during it, 0 long before."""
    last = np.searchsorted(start, tick, side="right") - 1
    since = np.where(last >= 0, tick - end[np.maximum(last, 0)], np.inf)
    following = np.minimum(last + 1, len(start) - 1)
    until = np.where(last + 1 < len(start), start[following] - tick, np.inf)
    pull = np.clip(1 - np.maximum(np.minimum(since, until), 0) / RUN_SECONDS, 0, 1)
    return np.where(since <= until, last, following), pull * pull * (3 - 2 * pull)


def _pressers(random: np.random.Generator, play: _Play, stands: Floats, marking: float) -> Bools:
    """Return who goes for the player of each spell: (spells, players). Those who stand nearest, of the other team."""
    others = np.stack([np.arange(1, SIDE - 1) + SIDE, np.arange(1, SIDE - 1)])[
        play.team
    ]  # neither goalkeeper nor striker
    far = np.linalg.norm(stands[others] - play.place[:, None], axis=2)
    is_striker = play.carrier % SIDE == STRIKER
    count = random.binomial(PRESSERS, np.minimum(marking * (1 + is_striker), 1))
    rank = np.argsort(np.argsort(far, axis=1), axis=1)
    presses = np.zeros((len(play.start), 2 * SIDE), np.bool_)
    np.put_along_axis(presses, others, rank < count[:, None], 1)
    return presses


def _shift(ball: Floats, tick: Floats) -> Floats:
    """Return how far all players have gone along with the ball: (ticks, 2)."""
    width = max(int(SMOOTH_SECONDS / max(tick[1] - tick[0], 1e-9)), 1)
    padded = np.concatenate([np.repeat(ball[:1], width, axis=0), ball])
    total = np.cumsum(padded, axis=0)
    shift: Floats = SHIFT * (total[width:] - total[:-width]) / width
    return shift


def _waves(
    random: np.random.Generator, at: Floats, objects: int, height: float, seconds: tuple[float, float]
) -> Floats:
    """Return two slow waves in each direction, added up: (objects, times, 2)."""
    period = random.uniform(*seconds, (2, objects, 1, 2))
    phase = random.uniform(0, 2 * np.pi, period.shape)
    waves: Floats = height * np.sin(2 * np.pi * at[:, None] / period + phase).sum(0)
    return waves
