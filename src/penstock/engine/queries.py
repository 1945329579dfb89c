"""Queries as an engine takes them: one or several, each perhaps with a weight."""

from __future__ import annotations

from typing import Any

from penstock.errors import PenstockError
from penstock.pattern import ast


class EngineError(PenstockError):
    """An engine that is used in a way it cannot be."""


def weighted(queries: Any) -> list[tuple[ast.Query, float]]:
    """Return queries with their weights; a query without one has 1.

    Raises:
        EngineError: there is none, or a text instead of a query.
    """
    if isinstance(queries, str):
        raise EngineError("an engine takes queries, not their text\n  fix: Engine(pk.parse(text))")
    every = [queries] if isinstance(queries, ast.Query) else list(queries)
    if not every:
        raise EngineError("an engine needs at least one query")
    return [(each, 1.0) if isinstance(each, ast.Query) else (each[0], float(each[1])) for each in every]
