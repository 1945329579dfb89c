"""Models from a history that fits into memory: any strategy, learned by running the queries over it unshed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from penstock.errors import PenstockError
from penstock.pattern import ast
from penstock.pattern.render import render
from penstock.runtime.costs import Costs
from penstock.runtime.matching import Operator
from penstock.runtime.training import unshed
from penstock.shedding.configuration import Fitted
from penstock.shedding.history import History
from penstock.shedding.strategies.catalogue import strategy_of
from penstock.shedding.views import NOTHING

_SLICE = 1024  # events that are processed at once
_BY_POSITION = ("window", "run")  # levels at which events are dropped from windows


class NoMatchError(PenstockError):
    """A history that nothing can be learned from."""

    def __init__(self) -> None:
        super().__init__("no query has a match in the history\n  fix: give a longer one, or another query")


def learned(
    strategy: str, queries: Sequence[tuple[ast.Query, float]], events: Any, *, bins: int | None = None, **options: Any
) -> Fitted:
    """Return a strategy with a model of a history.

    Args:
        strategy: its name.
        queries: with their weights. Those with WINDOW are matched window by window, as strategies that look at windows
            need it; with PARTITION BY, too, these are the windows of each key. Without WINDOW events have no positions.
        events: the history, in order; as `penstock.Engine` takes it, with the columns type and ts.
        bins: into how many cells positions are put; None: as many as a window has events.
        options: of the strategy.

    Raises:
        NoMatchError: there is no event, or no match.
        SplitError: windows are DISTINCT, or the queries have different ones.
    """
    is_split = has_windows_apart(queries, strategy)
    found = unshed(queries, events, Costs(), is_split=is_split, bins=bins if is_split else 1)
    history = found.history
    assert history is not None, "it was asked for"
    if not any(query.completed.count for query in history.queries):
        raise NoMatchError
    return Fitted(strategy_of(strategy).fitted(history, **options), history.names)


def has_windows_apart(queries: Sequence[tuple[ast.Query, float]], strategy: str) -> bool:
    """Return whether the windows of queries are matched on their own, so that an event has a position in each.

    Those of keys are for strategies that drop from windows: a run of a key may see what comes of it within WITHIN.
    """
    if any(query.window is None for query, _ in queries):
        return False
    return strategy_of(strategy).level in _BY_POSITION or not any(query.partition for query, _ in queries)


def studied(
    queries: Sequence[tuple[ast.Query, float]], events: Any, *, strategy: str, names: tuple[str, ...], bins: int,
    span: tuple[int, int] | None = None, **options: Any,
) -> History:  # fmt: skip
    """Return what a strategy learns from a part of a history.

    What counts are windows, with all their events; to a strategy that looks at the stream, events, with all that they
    contribute to.

    Args:
        queries: with their weights.
        events: in order, as `learned` takes them.
        strategy: what is to be learned.
        names: of the types in the whole history, and "" as the last.
        bins: into how many cells positions are put, if windows are matched on their own.
        span: the stretch of time, without its end, in which what counts begins; the rest is context. None: all counts.
        options: of the engine, such as `functions`.
    """
    is_split, of_events = has_windows_apart(queries, strategy), strategy_of(strategy).level == "stream"
    operator = Operator(queries, is_split=is_split, bins=bins if is_split else 1, names=names, **options)
    operator.take(events)
    operator.observe()
    operator.keeps_ledger = False
    stream = operator.stream
    if span is not None and not of_events:
        begins = stream.times[stream.cut.opens] if is_split else stream.times
        operator.counts = (begins >= span[0]) & (begins < span[1])
    for start in range(0, stream.size, _SLICE):
        operator.process(start, stream.view(start, min(start + _SLICE, stream.size)), NOTHING)
    operator.finish()
    history = operator.history(stream.size, Costs())
    if operator.counts is not None:
        return history.narrowed(0, operator.counts)
    return history if span is None else replace(history, own=(history.times >= span[0]) & (history.times < span[1]))


def about(fitted: Fitted, queries: Sequence[tuple[ast.Query, float]], rows: int) -> dict[str, Any]:
    """Return what is kept with a model: see `penstock.shedding.storing.save`."""
    return {
        "types": list(fitted.types or ()),
        "queries": [render(query) for query, _ in queries],
        "weights": [weight for _, weight in queries],
        "rows": rows,
    }
