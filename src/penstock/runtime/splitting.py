"""Queries whose windows are matched on their own: WINDOW becomes PARTITION BY, each pair of event and window an event.

With PARTITION BY each window is one of a key, so it takes the place of the key, too.

This is the operator of the thesis (section 2.1): a splitter cuts the stream into windows, and an event is processed in
each of its windows apart. It is what shedding from windows and from the runs of windows needs; without shedding, an
engine that shares runs between windows does the same for less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from penstock.errors import PenstockError
from penstock.pattern import ast

WINDOW = "window_of_event"
_PREVIOUS = "previous_"


class SplitError(PenstockError):
    """A query whose windows cannot be matched on their own."""


def previous_name(attribute: str) -> str:
    """Return the name of the attribute that has the value of another at the previous event of the type."""
    return _PREVIOUS + attribute


def split(query: ast.Query) -> ast.Query:
    """Return a query that matches each window on its own, if its events come once per window.

    `prev` is an attribute there: a window does not begin with the stream. LIMIT is for the caller to see to.

    Raises:
        SplitError: the query has no windows, or they are DISTINCT.

    Examples:
        >>> import penstock as pk
        >>> text = "PATTERN SEQ(A a, B b) WHERE prev(b.v) < b.v WITHIN 5 EVENTS WINDOW 5 EVENTS EVERY 2 EVENTS"
        >>> print(pk.render(split(pk.parse(text))))
        PATTERN SEQ(A a, B b)
        WHERE b.previous_v < b.v
        WITHIN 5 EVENTS
        PARTITION BY window_of_event
    """
    if query.window is None:
        raise SplitError("the query has no WINDOW")
    if query.window.distinct:
        raise SplitError("DISTINCT looks at all windows together, so they cannot be matched on their own")
    plain = replace(query, window=None, limit=None, partition=(ast.Name(WINDOW),), source=None)
    result: ast.Query = rewritten(plain, _without_previous)
    return result


def _without_previous(node: ast.Node) -> ast.Node:
    if isinstance(node, ast.Previous):
        return replace(node.attribute, name=previous_name(node.attribute.name))
    return node


def rewritten(node: Any, change: Callable[[ast.Node], ast.Node]) -> Any:
    """Return a tree in which each node is what `change` makes of it, the ones below first."""
    if isinstance(node, tuple):
        return tuple(rewritten(each, change) for each in node)
    if not isinstance(node, ast.Node):
        return node
    below = {each.name: rewritten(getattr(node, each.name), change) for each in fields(node) if each.init}
    return change(replace(node, **below))
