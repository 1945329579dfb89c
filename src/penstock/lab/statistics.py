"""What a stream is like, in numbers: for made and recorded ones alike, so that they can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MINUTE_US = 60_000_000
SECOND_US = 1_000_000
NEAR_M = 3.0  # the distance of the soccer queries
LATE_SECONDS = 120  # and the delay of the bus queries
LAGS = 4


@dataclass(frozen=True)
class Gaps:
    """The events of a type: their share of the stream, the mean seconds between them, and the deviation as a share of
    the mean (1 for exponential gaps)."""

    share: float
    mean_seconds: float
    variation: float


@dataclass(frozen=True)
class Quotes:
    """Stock quotes.

    Attributes:
        symbols: how many.
        per_minute: quotes, in minutes with any.
        moves: the share of quotes that differ from the symbol's last by at least so much, by threshold.
        unchanged: the share that do not differ.
        deviation: of the change.
        together: the mean correlation of two symbols' changes in a minute, of leaders and followers.
        lead: the mean correlation of a leader's change and a follower's so many minutes later.
    """

    symbols: int
    per_minute: float
    moves: dict[float, float]
    unchanged: float
    deviation: float
    together: float
    lead: tuple[float, ...]


@dataclass(frozen=True)
class Positions:
    """Positions of players and a ball; speeds are metres per second.

    Attributes:
        players: how many.
        speed: of players: half of the time, nine tenths of the time slower.
        ball_speed: the same of the ball.
        spread: how far players get from their mean places: the deviation lengthwise and across.
        held: the share of the time that somebody has the ball.
        strikers: the share of it that a striker has it.
        opponents: of who has the ball: the share of the time that 0, 1, 2, 3 and more of the others are within 3 m.
    """

    players: int
    speed: tuple[float, float]
    ball_speed: tuple[float, float]
    spread: tuple[float, float]
    held: float
    strikers: float
    opponents: tuple[float, float, float, float]


@dataclass(frozen=True)
class Reports:
    """Reports of buses.

    Attributes:
        buses: how many.
        per_minute: reports.
        interval_seconds: between two of a bus: the median.
        stops: how many.
        late: the share of reports that are late, or standing where there is no delay, by more than two minutes.
        others: how many other buses are late at the stop of a late bus in the same ten minutes, on average.
    """

    buses: int
    per_minute: float
    interval_seconds: float
    stops: int
    late: float
    others: float


def gaps(table: pa.Table) -> dict[str, Gaps]:
    """Return shares and gaps of all types."""
    kind, names, ts = *_codes(table.column("type")), table.column("ts").to_numpy()
    result = {}
    for number, name in sorted(enumerate(names), key=lambda item: item[1]):
        between = np.diff(ts[kind == number]) / SECOND_US
        if len(between):
            result[name] = Gaps(
                (len(between) + 1) / len(ts), float(between.mean()), float(between.std() / between.mean())
            )
    return result


def quotes(table: pa.Table, thresholds: tuple[float, ...] = (0.001, 0.004, 0.01)) -> Quotes:
    """Return what quotes are like; leaders are called MLE1, …, followers C1 … C20.

    The first quote of a day after a night counts like any other.
    """
    kind, names = _codes(table.column("type"))
    ts, close = table.column("ts").to_numpy(), table.column("close").to_numpy()
    minutes, minute = np.unique(ts // MINUTE_US, return_inverse=True)
    prices = np.full((len(minutes), len(names)), np.nan)
    prices[minute, kind] = close
    change = _changes(prices)
    size = np.abs(change[~np.isnan(change)])
    leaders = [number for number, name in enumerate(names) if name.startswith("MLE")]
    followers = [
        number for number, name in enumerate(names) if (found := re.fullmatch(r"C(\d+)", name)) and int(found[1]) <= 20
    ]
    pairs = [(a, b) for a in leaders + followers for b in leaders + followers if a < b]
    return Quotes(
        symbols=len(names),
        per_minute=len(ts) / len(minutes),
        moves={each: float((size >= each).mean()) for each in thresholds},
        unchanged=float((size == 0).mean()),
        deviation=float(np.nanstd(change)),
        together=_mean(_correlation(change[:, a], change[:, b]) for a, b in pairs),
        lead=tuple(
            _mean(
                _correlation(change[: len(change) - lag, leader], change[lag:, follower])
                for leader in leaders
                for follower in followers
            )
            for lag in range(LAGS)
        ),
    )


def positions(table: pa.Table) -> Positions:
    """Return what the positions of a game are like; the ball is called BALL, strikers S or STR."""
    kind, names = _codes(table.column("type"))
    team, _ = _codes(table.column("team").fill_null(""))
    ts, x, y = (table.column(name).to_numpy() for name in ("ts", "x", "y"))
    has_ball = table.column("possession").to_numpy()
    slot = ts // SECOND_US
    is_ball = kind == names.index("BALL")
    who = np.where(is_ball, -1, kind * (team.max() + 1) + team)
    tracks = {number: _track(slot, x, y, who == number) for number in np.unique(who)}
    ball = tracks.pop(-1)
    holders = np.flatnonzero(has_ball)
    striker = [number for number, name in enumerate(names) if name in ("S", "STR")]
    return Positions(
        players=len(tracks),
        speed=_slower(np.concatenate([_speeds(*track) for track in tracks.values()])),
        ball_speed=_slower(_speeds(*ball)),
        spread=(
            float(np.mean([track[1].std() for track in tracks.values()])),
            float(np.mean([track[2].std() for track in tracks.values()])),
        ),
        held=len(np.unique(slot[holders])) / len(np.unique(slot)),
        strikers=float(np.isin(kind[holders], striker).mean()),
        opponents=_opponents(slot, x, y, team, is_ball, holders),
    )


def reports(table: pa.Table) -> Reports:
    """Return what the reports of buses are like; the delay is `delay`, or `standing` where there is none."""
    kind, names = _codes(table.column("type"))
    stop, stops = _codes(table.column("stop").fill_null(""))
    ts = table.column("ts").to_numpy()
    delay = table.column("delay" if "delay" in table.column_names else "standing").cast(pa.int64()).to_numpy()
    by_bus = np.lexsort((ts, kind))
    interval = np.diff(ts[by_bus])[np.diff(kind[by_bus]) == 0]
    late = np.flatnonzero(delay > LATE_SECONDS * SECOND_US)
    place = stop[late] * (int(ts[-1] // (10 * MINUTE_US)) + 1) + ts[late] // (10 * MINUTE_US)
    distinct = np.unique(np.stack([place, kind[late]]), axis=1)[0]
    _, together = np.unique(distinct, return_counts=True)
    return Reports(
        buses=len(names),
        per_minute=len(ts) / (int(ts[-1] - ts[0]) / MINUTE_US),
        interval_seconds=float(np.median(interval)) / SECOND_US,
        stops=len(stops),
        late=len(late) / len(ts),
        others=float((together * (together - 1)).sum() / max(together.sum(), 1)),
    )


# --- pieces -------------------------------------------------------------------------------------------------------


def _codes(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """Return texts as numbers, and the list of them."""
    texts = column.cast(pa.string()).combine_chunks()
    encoded = pc.dictionary_encode(texts)
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def _changes(prices: Floats) -> Floats:
    """Return the change of each price against the last one of its column, as a share; NaN where there is none."""
    rows = np.arange(len(prices))[:, None]
    at = np.maximum.accumulate(np.where(np.isnan(prices), -1, rows), axis=0)
    last = np.vstack([np.full((1, prices.shape[1]), -1), at[:-1]])
    before = np.where(last >= 0, np.take_along_axis(prices, np.maximum(last, 0), 0), np.nan)
    changes: Floats = prices / before - 1
    return changes


def _correlation(a: Floats, b: Floats) -> float:
    both = ~(np.isnan(a) | np.isnan(b))
    return float(np.corrcoef(a[both], b[both])[0, 1])


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return float(np.mean(listed)) if listed else float("nan")


def _track(slot: Ints, x: Floats, y: Floats, mine: NDArray[np.bool_]) -> tuple[Ints, Floats, Floats]:
    return slot[mine], x[mine], y[mine]


def _speeds(slot: Ints, x: Floats, y: Floats) -> Floats:
    """Return metres per second from each second to the next."""
    speeds: Floats = np.hypot(np.diff(x), np.diff(y))[np.diff(slot) == 1]
    return speeds


def _slower(speeds: Floats) -> tuple[float, float]:
    return float(np.quantile(speeds, 0.5)), float(np.quantile(speeds, 0.9))


def _opponents(
    slot: Ints, x: Floats, y: Floats, team: Ints, is_ball: NDArray[np.bool_], holders: Ints
) -> tuple[float, float, float, float]:
    """Return how often 0, 1, 2, 3 and more players of the other team are near to who has the ball."""
    counts = np.zeros(4)
    starts, ends = np.searchsorted(slot, slot[holders]), np.searchsorted(slot, slot[holders], side="right")
    for holder, start, end in zip(holders, starts, ends, strict=True):
        other = (team[start:end] != team[holder]) & ~is_ball[start:end]
        near = np.hypot(x[start:end] - x[holder], y[start:end] - y[holder]) <= NEAR_M
        counts[min(int((other & near).sum()), 3)] += 1
    none, one, two, more = counts / max(len(holders), 1)
    return float(none), float(one), float(two), float(more)
