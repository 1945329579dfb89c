"""The streams of the benchmarks: made with numpy from fixed seeds, so every run and every engine gets the same events.

A stream is a dict of arrays of one length: `type` (text), `ts` (int64, microseconds, ascending) and attributes.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Stream: TypeAlias = dict[str, NDArray[Any]]

SECOND = 1_000_000
MEMBERS = 20  # of ANY(4 of 20)
STEPS = 10  # of thesis Q1
LEADERS = 4  # symbols whose quotes open windows: MLE1 to MLE4

# Mean seconds between events of a type (thesis, table 6.3).
DATA_SETS = {
    "DS1": {"A": 2.5, "B": 15.0, "C": 40.0},
    "DS3": {"A": 4.0, "B": 6.0, "C": 12.0},
    "DS4": {"A": 6.0, "B": 6.0, "C": 6.0},
    "rare end": {"A": 5.0, "B": 5.0, "D": 500.0},  # not of the thesis
}


def exponential(events: int, data_set: str = "DS1", seed: int = 1) -> Stream:
    """Return a data set of thesis 6.3.1: exponential gaps per type, V1 uniform between 1 and 10.

    Independent exponential gaps per type are one exponential gap for all and a type drawn by its rate.
    """
    numbers = np.random.default_rng(seed)
    rates = {name: 1 / mean for name, mean in DATA_SETS[data_set].items()}
    total = sum(rates.values())
    share = [rate / total for rate in rates.values()]
    return {
        "type": numbers.choice(np.array(list(rates)), events, p=share),
        "ts": _poisson_times(numbers, events, total),
        "V1": numbers.uniform(1, 10, events),
    }


def stocks(events: int, symbols: int = 300, seed: int = 2) -> Stream:
    """Return quotes with lead-lag: symbol k shows what the market did k seconds ago, and some noise of its own.

    The symbols are MLE1 to MLE4, then C1, C2, …; each quotes every 60 s on average. All start at 100, so that prices
    can be compared between symbols.
    """
    numbers = np.random.default_rng(seed)
    names = np.array([*(f"MLE{k}" for k in range(1, LEADERS + 1)), *(f"C{k}" for k in range(1, symbols - LEADERS + 1))])
    symbol = numbers.integers(0, symbols, events)
    ts = _poisson_times(numbers, events, symbols / 60)
    lag = np.maximum(np.arange(symbols) - LEADERS + 1, 0)
    second = np.maximum(ts // SECOND - lag[symbol], 0)
    steps = numbers.normal(0, 0.0012, int(ts[-1] // SECOND) + 1)
    market = _pulled_back(np.cumsum(np.repeat(steps[::30], 30)[: len(steps)]))
    noise = numbers.normal(0, 0.004, events)
    return {"type": names[symbol], "ts": ts, "close": np.round(100 * np.exp(market[second] + noise), 4)}


def keyed(events: int, ids: int, seed: int = 3) -> Stream:
    """Return events of types A to D, one each millisecond, each with one of so many ids."""
    numbers = np.random.default_rng(seed)
    return {
        "type": numbers.choice(np.array(list("ABCD")), events),
        "ts": np.arange(events, dtype=np.int64) * 1000,
        "id": numbers.integers(0, ids, events),
    }


def buses(events: int, stops: int, seed: int = 4) -> Stream:
    """Return delays of 20 buses (types B1 to B20), one each second, each at one of so many stops."""
    numbers = np.random.default_rng(seed)
    return {
        "type": _members("B")[numbers.integers(0, MEMBERS, events)],
        "ts": np.arange(events, dtype=np.int64) * SECOND,
        "stop": numbers.integers(0, stops, events),
    }


def players(events: int, striker_share: float, seed: int = 5) -> Stream:
    """Return positions x on a line of 1,000 m, ten a second, of strikers (type S) and 20 defenders (D1 to D20)."""
    numbers = np.random.default_rng(seed)
    defender = _members("D")[numbers.integers(0, MEMBERS, events)]
    return {
        "type": np.where(numbers.random(events) < striker_share, np.array("S"), defender),
        "ts": np.arange(events, dtype=np.int64) * (SECOND // 10),
        "x": numbers.uniform(0, 1000, events),
    }


def first(stream: Stream, events: int) -> Stream:
    """Return the first events of a stream."""
    return {name: column[:events] for name, column in stream.items()}


def _members(letter: str) -> NDArray[Any]:
    return np.array([f"{letter}{k}" for k in range(1, MEMBERS + 1)])


def _poisson_times(numbers: np.random.Generator, events: int, per_second: float) -> NDArray[np.int64]:
    times: NDArray[np.int64] = np.cumsum(numbers.exponential(SECOND / per_second, events)).astype(np.int64)
    return times


def _pulled_back(walk: NDArray[np.float64], width: float = 0.25) -> NDArray[np.float64]:
    """Return a random walk reflected at ±width: the price neither dies nor explodes in a long stream."""
    folded: NDArray[np.float64] = np.abs((walk - width) % (4 * width) - 2 * width) - width
    return folded
