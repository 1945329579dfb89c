"""Models from a history that fits into memory: any strategy, learned by running the queries over it unshed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.errors import PenstockError
from penstock.pattern import ast
from penstock.pattern.render import render
from penstock.runtime.costs import Costs
from penstock.runtime.training import unshed
from penstock.shedding.configuration import Fitted
from penstock.shedding.strategies.catalogue import strategy_of


class LearningError(PenstockError):
    """A history that nothing can be learned from."""


def learned(
    strategy: str, queries: Sequence[tuple[ast.Query, float]], events: Any, *, bins: int | None = None, **options: Any
) -> Fitted:
    """Return a strategy with a model of a history.

    Args:
        strategy: its name.
        queries: with their weights. Those with WINDOW and without PARTITION BY are matched window by window, as
            strategies that look at windows need it; without WINDOW an event has no position.
        events: the history, in order; as `penstock.Engine` takes it, with the columns type and ts.
        bins: into how many cells positions are put; None: as many as a window has events.
        options: of the strategy.

    Raises:
        LearningError: there is no event, or no match.
    """
    is_split = all(query.window is not None and not query.partition for query, _ in queries)
    found = unshed(queries, events, Costs(), is_split=is_split, bins=bins if is_split else 1)
    history = found.history
    assert history is not None, "it was asked for"
    if not any(query.completed.count for query in history.queries):
        raise LearningError("no query has a match in the history\n  fix: give a longer one, or another query")
    return Fitted(strategy_of(strategy).fitted(history, **options), history.names)


def about(fitted: Fitted, queries: Sequence[tuple[ast.Query, float]], rows: int) -> dict[str, Any]:
    """Return what is kept with a model: see `penstock.shedding.storing.save`."""
    return {
        "types": list(fitted.types or ()),
        "queries": [render(query) for query, _ in queries],
        "weights": [weight for _, weight in queries],
        "rows": rows,
    }
