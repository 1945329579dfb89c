"""How long an operator really takes, on this machine: f(n) and g(n) of algorithm 1 (thesis 3.2.5) in real time."""

from __future__ import annotations

import time

import numpy as np

from penstock.runtime.matching import Operator
from penstock.shedding.overload.fitting import Fit, fitted
from penstock.shedding.views import NOTHING

_TRIES = 64  # at which the time to drop runs is taken
_FIRST = 0.1  # the part of a stream in which workers warm up


def timed(operator: Operator, at_once: int) -> tuple[float, Fit, Fit]:
    """Process the events that an operator has taken; return the mean seconds of an event, f(n) and g(n).

    Runs are dropped now and then to see how long that takes, so matches are lost: this pass is for its times alone.

    Args:
        operator: that has taken events.
        at_once: how many events are processed together.
    """
    size = operator.stream.size
    starts = np.arange(0, size, at_once)
    every = max(1, len(starts) // _TRIES)
    worthless = [np.zeros((len(states), 1)) for states in operator.engine.states]
    events: list[tuple[int, float]] = []
    drops: list[tuple[int, float]] = []
    for slice_number, at in enumerate(starts.tolist()):
        end = min(size, at + at_once)
        runs, begun = operator.open_runs(), time.perf_counter()
        operator.process(at, operator.stream.view(at, end), NOTHING)
        spent = time.perf_counter() - begun
        if at >= _FIRST * size or end == size:
            events.append((runs, spent / (end - at)))
        if slice_number % every == 0:
            runs, begun = operator.open_runs(), time.perf_counter()
            operator.drop_runs(1, worthless, at, slice_number, None)
            drops.append((runs, time.perf_counter() - begun))
    mean = float(np.mean([seconds for _, seconds in events]))
    return mean, _fit(events), _fit(drops)


def _fit(samples: list[tuple[int, float]]) -> Fit:
    runs, seconds = np.array(samples, np.float64).reshape(-1, 2).T
    return fitted(runs, seconds)
