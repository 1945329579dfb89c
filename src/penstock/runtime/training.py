"""Unshed operation: what strategies and detectors learn from, and the truth that shed runs are judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.pattern import ast
from penstock.plan.tables import Floats
from penstock.runtime.clocks import VirtualClock
from penstock.runtime.costs import Costs
from penstock.runtime.matching import Operator
from penstock.runtime.measures import Run
from penstock.runtime.running import Loop
from penstock.runtime.timing import timed
from penstock.shedding.history import History
from penstock.shedding.overload.fitting import Fit, fitted

_SLICE = 256  # events at most; a quarter of a window, so that the number of runs does not change much
# Where runs branch and LIMIT closes windows: that one is closed is seen when a slice is over, and what its runs would
# have become meanwhile would be most of the time. Under load slices are as short there (`runtime/pacing.py`).
_SHORT_SLICE = 8


@dataclass(frozen=True)
class Unshed:
    """What came of a stream when all of it was processed.

    Attributes:
        history: what strategies learn from; None if it was not asked for.
        run: the truth, as a run.
        event_seconds: the mean time of an event, virtual or real: 1 / capacity.
        event_time: f(n), the time of an event as a function of the number of runs.
        shed_time: g(n), the time to drop runs.
    """

    history: History | None
    run: Run
    event_seconds: float
    event_time: Fit
    shed_time: Fit

    @property
    def capacity(self) -> float:
        """μ, the events that can be processed in a second."""
        return 1 / self.event_seconds


def unshed(
    queries: Sequence[tuple[ast.Query, float]], events: Any, costs: Costs, *, is_split: bool, bins: int | None = None,
    is_observed: bool = True, is_real: bool = False, **options: Any,
) -> Unshed:  # fmt: skip
    """Process a stream, and shed nothing.

    Args:
        queries: with their weights.
        events: of the whole stream.
        costs: of work in virtual time.
        is_split: whether windows are matched on their own.
        bins: how many cells a window has in a history.
        is_observed: whether there is a history.
        is_real: whether times are those of this machine, taken in a pass of their own; else they are virtual.
        **options: of the engine, such as `functions`.
    """
    operator = Operator(queries, is_split=is_split, bins=bins, **options)
    operator.take(events)
    if is_observed:
        operator.observe()
    size = operator.stream.size
    window = float(operator.stream.sizes.mean()) if is_split and len(operator.stream.sizes) else 4.0 * _SLICE
    events_at_once = int(np.clip(window / 4, 16, _SLICE))
    if operator.branches and any(query.limit is not None for query, _ in queries):
        events_at_once = _SHORT_SLICE
    loop = Loop(operator, VirtualClock(np.zeros(size)), costs, slice_events=events_at_once)
    run = loop()
    history = operator.history(size, costs) if is_observed else None
    if is_real:
        again = Operator(queries, is_split=is_split, **options)
        again.take(events)
        return Unshed(history, run, *timed(again, events_at_once))
    runs, times = _samples(run, size, events_at_once)
    mean = float(run.moments[-1].at / size)
    fits = fitted(runs, times), Fit("linear", (0.0, costs.rank * 1e-9))
    return Unshed(history, run, mean, *fits)


def _samples(run: Run, size: int, at_once: int) -> tuple[Floats, Floats]:
    """Return the number of open runs and the mean seconds of an event, for each slice."""
    runs = np.array([moment.runs for moment in run.moments], np.float64)
    ends = np.array([moment.at for moment in run.moments])
    events = np.minimum(at_once, size - at_once * np.arange(len(runs)))
    times: Floats = np.diff(ends, prepend=0.0) / events
    return np.concatenate([[0.0], runs[:-1]]), times
