"""Models from a history that fits into memory: any strategy, learned by running the queries over it unshed."""

from __future__ import annotations

import warnings
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
_BY_POSITION = ("espice", "hspice-pm", "hspice-w", "gspice-wh", "gspice-wt", "gspice-wf")


class NoMatchError(PenstockError):
    """A history that nothing can be learned from."""

    def __init__(self) -> None:
        super().__init__("no query has a match in the history\n  fix: give a longer one, or another query")


class NoPositionsWarning(UserWarning):
    """A strategy that looks at positions in windows learns from windows of keys, where events have none."""


def warn_without_positions(strategy: str, queries: Sequence[tuple[ast.Query, float]]) -> None:
    """Warn if a strategy is to learn by position from queries that have both WINDOW and PARTITION BY."""
    if strategy in _BY_POSITION and any(query.window is not None and query.partition for query, _ in queries):
        warnings.warn(
            f"{strategy} learns by type alone: windows of a query with PARTITION BY share their runs, so that its "
            "events have no position\n  fix: leave out WINDOW or PARTITION BY (--by); or take espice with --spark, "
            "pspice or gspice-sh",
            NoPositionsWarning,
            stacklevel=3,
        )


def learned(
    strategy: str, queries: Sequence[tuple[ast.Query, float]], events: Any, *, bins: int | None = None, **options: Any
) -> Fitted:
    """Return a strategy with a model of a history.

    Args:
        strategy: its name.
        queries: with their weights. Those with WINDOW and without PARTITION BY are matched window by window, as
            strategies that look at windows need it; others have no positions: one with both warns of it.
        events: the history, in order; as `penstock.Engine` takes it, with the columns type and ts.
        bins: into how many cells positions are put; None: as many as a window has events.
        options: of the strategy.

    Raises:
        NoMatchError: there is no event, or no match.
    """
    warn_without_positions(strategy, queries)
    is_split = has_windows_apart(queries)
    found = unshed(queries, events, Costs(), is_split=is_split, bins=bins if is_split else 1)
    history = found.history
    assert history is not None, "it was asked for"
    if not any(query.completed.count for query in history.queries):
        raise NoMatchError
    return Fitted(strategy_of(strategy).fitted(history, **options), history.names)


def has_windows_apart(queries: Sequence[tuple[ast.Query, float]]) -> bool:
    """Return whether the windows of queries are matched on their own, so that an event has a position in each."""
    return all(query.window is not None and not query.partition for query, _ in queries)


def studied(
    queries: Sequence[tuple[ast.Query, float]], events: Any, *, names: tuple[str, ...], bins: int,
    span: tuple[int, int] | None = None, of_events: bool = False, **options: Any,
) -> History:  # fmt: skip
    """Return what strategies learn from a part of a history.

    Args:
        queries: with their weights.
        events: in order, as `learned` takes them.
        names: of the types in the whole history, and "" as the last.
        bins: into how many cells positions are put, if windows are matched on their own.
        span: the stretch of time, without its end, in which what counts begins; the rest is context. None: all counts.
        of_events: whether events count, with all that they contribute to; else windows, with all their events.
        options: of the engine, such as `functions`.
    """
    is_split = has_windows_apart(queries)
    operator = Operator(queries, is_split=is_split, bins=bins if is_split else 1, names=names, **options)
    operator.take(events)
    operator.observe()
    operator.keeps_ledger = False
    stream = operator.stream
    if span is not None and not of_events:
        begins = stream.times[stream.starts] if is_split else stream.times
        operator.counts = (begins >= span[0]) & (begins < span[1])
    for start in range(0, stream.size, _SLICE):
        operator.process(start, stream.view(start, min(start + _SLICE, stream.size)), NOTHING)
    operator.finish()
    history = operator.history(stream.size, Costs())
    if operator.counts is not None:
        return history.narrowed(0, 0, operator.counts)
    return history if span is None else replace(history, own=(history.times >= span[0]) & (history.times < span[1]))


def about(fitted: Fitted, queries: Sequence[tuple[ast.Query, float]], rows: int) -> dict[str, Any]:
    """Return what is kept with a model: see `penstock.shedding.storing.save`."""
    return {
        "types": list(fitted.types or ()),
        "queries": [render(query) for query, _ in queries],
        "weights": [weight for _, weight in queries],
        "rows": rows,
    }
