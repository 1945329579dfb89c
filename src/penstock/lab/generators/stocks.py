"""Stock quotes with lead-lag influence: what leading symbols do, followers do after a lag of their own."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass

from penstock.lab.generators.fading import faded
from penstock.lab.generators.generator import SECOND_US, TYPE, Generator, types

DAY_MINUTES = 390  # a trading day, which is a block; nights are left out
MINUTE_US = 60 * SECOND_US

EARLY_MINUTES = 3  # so long leading symbols move in an episode, and C1, the first follower
EPISODE_MINUTES = 7  # and so long the other followers do
RETURN_MINUTES = 240  # then prices go back, too slowly to count as moves
STEP = (1.3, 1.7)  # what a quote moves by in an episode, in units of `move`

LEADER_GAP_SECONDS = 0.4  # leaders quote at the beginning of each minute, one after the other
JITTER = 0.35  # of a follower's quote, in units of the time between two followers: their order is fixed

CONTRARIAN = 5  # C5 rarely takes part in an episode: the symbol that a query negates
CONTRARIAN_LOYALTY = 0.28
NEAR = 10  # C1 to C10 follow always, but for C5, later ones less surely
FAR_LOYALTY = 0.86

MARKET = 0.00045  # the deviation of what all symbols move by in a minute

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Stocks(Generator):
    """Quotes of many symbols, one a minute each, in which leading symbols pull followers along.

    The symbols are the leaders MLE1, MLE2, … and C1, C2, … In each minute the leaders quote in its first seconds, then
    the followers (the first of the C), spread over the minute in this order; all others quote at some moment of it.

    Prices are noise (of the market and of each symbol) and, for leaders and followers, *episodes*: a leader moves by at
    least `move` a quote for some minutes, up or down, and followers move the same way behind it. How long after the
    leader's quote a follower's comes is typical of it, and so is its position in a window that a leader's quote opens.

    Attributes:
        seed: of the random numbers.
        symbols: how many there are, leaders included.
        leaders: how many of them lead.
        followers: how many of them follow.
        influence: the probability that an episode spreads. Followers of one that does not have an episode of their own
            at another time, up or down by chance: what a symbol does by itself is the same for any influence.
        move: what each move of an episode exceeds, as a share of the price.
        episodes: per trading day; each has its share of the day to itself.
        market: how much of what all symbols have in common there is: 1, as in recorded quotes; 0, none, and each symbol
            moves by itself as much as it would have.

    Examples:
        >>> Stocks(seed=1).block(0).select(["type", "ts", "close"]).slice(0, 1).to_pylist()
        [{'type': 'MLE1', 'ts': 204728, 'close': 95.15}]
    """

    seed: Annotated[int, Field(ge=0)] = 1
    symbols: Annotated[int, Field(gt=1)] = 250
    leaders: Annotated[int, Field(gt=0)] = 4
    followers: Annotated[int, Field(ge=0)] = 20
    influence: Annotated[float, Field(ge=0, le=1)] = 0.95
    move: Annotated[float, Field(gt=0, lt=0.2)] = 0.01
    episodes: Annotated[int, Field(ge=0, le=DAY_MINUTES // (2 * EPISODE_MINUTES))] = 6
    market: Annotated[float, Field(ge=0, le=1)] = 1.0

    def __post_init__(self) -> None:
        if self.leaders + self.followers > self.symbols:
            raise ValueError(
                f"{self.leaders} leaders and {self.followers} followers are more than {self.symbols} symbols"
            )

    @property
    def names(self) -> list[str]:
        """The symbols: leaders, followers, others."""
        return [
            *(f"MLE{k}" for k in range(1, self.leaders + 1)),
            *(f"C{k}" for k in range(1, self.symbols - self.leaders + 1)),
        ]

    @property
    def block_rows(self) -> int:
        """A block is a trading day."""
        return DAY_MINUTES * self.symbols

    @property
    def schema(self) -> pa.Schema:
        """The columns of a block: `close` in dollars, `volume` in shares."""
        return pa.schema([("type", TYPE), ("ts", pa.int64()), ("close", pa.float64()), ("volume", pa.int64())])

    def block(self, number: int) -> pa.RecordBatch:
        """Return the quotes of a trading day."""
        random = self.numbers(number, 0)
        ts = self._times(random, number)
        steps = self._steps(number)
        close = np.round(self._base() * np.exp(self._noise(random) + self._pulled(number, steps)), 2)
        volume = self._volume(random, steps)
        order = np.argsort(ts, axis=1)  # (minutes, symbols): the symbols of a minute as they quote

        def in_order(column: NDArray[np.float64] | NDArray[np.int64]) -> pa.Array:
            return pa.array(np.take_along_axis(column, order, 1).ravel())

        return pa.record_batch(
            [types(order.ravel(), self.names), in_order(ts), in_order(close), in_order(volume)], schema=self.schema
        )

    def lag_seconds(self) -> Floats:
        """Return how long after the beginning of a minute each follower quotes, on average."""
        return 60 * np.arange(1, self.followers + 1) / (self.followers + 1)

    # --- when ---------------------------------------------------------------------------------------------------

    def _times(self, random: np.random.Generator, number: int) -> NDArray[np.int64]:
        """Return when each symbol quotes in each minute of a day: (minutes, symbols)."""
        second = random.random((DAY_MINUTES, self.symbols))
        head, end = self.leaders, self.leaders + self.followers
        second[:, :head] = (np.arange(head) + second[:, :head]) * LEADER_GAP_SECONDS
        second[:, head:end] = self.lag_seconds() + (2 * second[:, head:end] - 1) * JITTER * 60 / (self.followers + 1)
        second[:, end:] *= 60
        minute = np.arange(DAY_MINUTES) + number * DAY_MINUTES
        ts: NDArray[np.int64] = (minute * MINUTE_US)[:, None] + (second * SECOND_US).astype(np.int64)
        return ts

    # --- how much -----------------------------------------------------------------------------------------------

    def _base(self) -> Floats:
        """Return the price that each symbol is always near to."""
        return np.exp(self.numbers().normal(np.log(80), 0.5, self.symbols))

    def _noise(self, random: np.random.Generator) -> Floats:
        """Return what nobody leads, as logarithms: random walks from 0 to 0, with a part that all have in common.

        Leaders and followers are calm; others differ in how calm they are, as recorded symbols do.
        """
        active = self.leaders + self.followers
        scale = np.exp(self.numbers(0).normal(np.log(0.0007), 0.6, self.symbols))
        scale[:active] = 0.0005
        scale = np.hypot(scale, MARKET * np.sqrt(1 - self.market**2))
        common = random.normal(0, MARKET, (DAY_MINUTES, 1)) * self.market
        walk = np.cumsum(common + scale * random.standard_normal((DAY_MINUTES, self.symbols)), axis=0)
        left = np.arange(1, DAY_MINUTES + 1)[:, None] / DAY_MINUTES
        noise: Floats = walk - left * walk[-1]
        return noise

    def _pulled(self, number: int, steps: Floats) -> Floats:
        """Return what episodes have done to each price, as logarithms: (minutes, symbols).

        A step has its full effect at once, and none after RETURN_MINUTES, with a straight line between: so a day needs
        the steps of the day before, and no earlier ones.
        """
        before = self._steps(number - 1)[-RETURN_MINUTES:] if number else np.zeros((RETURN_MINUTES, steps.shape[1]))
        pulled = np.zeros((DAY_MINUTES, self.symbols))
        pulled[:, : steps.shape[1]] = faded(np.vstack([before, steps]), RETURN_MINUTES)
        return pulled

    def _steps(self, number: int) -> Floats:
        """Return the steps of a day's episodes, of leaders and followers: (minutes, leaders + followers)."""
        random, active = self.numbers(number, 1), self.leaders + self.followers
        steps = np.zeros((DAY_MINUTES, active))
        share = DAY_MINUTES // max(self.episodes, 1)
        minutes = np.full(active, EPISODE_MINUTES)
        minutes[: self.leaders + 1] = EARLY_MINUTES
        for first in range(0, share * self.episodes, share):
            start = random.integers(0, share - EPISODE_MINUTES, active)
            up = random.choice([-1, 1], active)
            leader = random.integers(self.leaders)
            along = np.zeros(active, np.bool_)
            along[self.leaders :] = (random.random() < self.influence) & (
                random.random(self.followers) < self._loyalty()
            )
            start[along], up[along] = start[leader], up[leader]
            takes_part = np.arange(active) >= self.leaders
            takes_part[leader] = True
            rows = np.arange(share)[:, None]
            moves = (rows >= start) & (rows < start + minutes) & takes_part
            steps[first : first + share] += moves * up * random.uniform(*STEP, (share, active)) * self.move
        return steps

    def _loyalty(self) -> Floats:
        """Return the probability that a follower takes part in an episode that spreads."""
        which = np.arange(1, self.followers + 1)
        return np.where(which == CONTRARIAN, CONTRARIAN_LOYALTY, np.where(which <= NEAR, 1.0, FAR_LOYALTY))

    def _volume(self, random: np.random.Generator, steps: Floats) -> NDArray[np.int64]:
        """Return shares traded: more of a symbol that moves."""
        volume = np.exp(random.standard_normal((DAY_MINUTES, self.symbols), np.float32) * np.float32(1.35) + 8.8)
        volume[:, : steps.shape[1]] *= 1 + 3 * (steps != 0)
        shares: NDArray[np.int64] = volume.astype(np.int64) + 100
        return shares
