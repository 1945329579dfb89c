"""How the events of a query can be parted so that no match is torn: by key, and by time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.engine.rules import rules
from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.plan.planning import plan
from penstock.plan.terms import Calls
from penstock.spark.columns import DetectError


def keyed(queries: Sequence[ast.Query], by: Sequence[str]) -> tuple[list[ast.Query], tuple[str, ...]]:
    """Return the queries, each PARTITION BY the keys, and what the events can be parted by.

    Without keys, that is what all queries are partitioned by, or what SAME makes equal over all events of a match where
    that is all that matters; nothing, if there is no such attribute.

    Raises:
        DetectError: a query is partitioned by something else than the keys.
    """
    if not by:
        common = [_own_keys(query) for query in queries]
        return list(queries), tuple(name for name in common[0] if all(name in each for each in common))
    found = []
    for query in queries:
        own = [name.text for name in query.partition]
        if own and not set(by) <= set(own):
            raise DetectError(
                f"by={list(by)!r}, but {query.name or 'the query'} says PARTITION BY {', '.join(own)}\n"
                "  fix: leave by= out, or PARTITION BY"
            )
        found.append(query if own else replace(query, partition=tuple(map(ast.Name, by)), source=None))
    return found, tuple(by)


def by_same(queries: Sequence[ast.Query], keys: Sequence[str]) -> list[ast.Query] | None:
    """Return queries that find the same without PARTITION BY: with SAME on its attributes; None if they would not.

    An engine remembers every partition that it has met, but of what SAME compares only what runs hold. Events without
    a key, which are in no partition, must be kept from these queries.
    """
    if not keys or any(not _is_local(query) or [n.text for n in query.partition] != list(keys) for query in queries):
        return None
    same = ast.Same(tuple(map(ast.SameKey, keys)))
    found = []
    for query in queries:
        where = ast.And((*ast.conjuncts(query.where), same)) if query.where is not None else same
        found.append(replace(query, partition=(), where=where, source=None))
    return found


def _own_keys(query: ast.Query) -> list[str]:
    if query.partition:
        return [name.text for name in query.partition]
    if not _is_local(query):
        return []
    conjuncts = ast.conjuncts(query.where) if query.where is not None else ()
    same = [key for each in conjuncts if isinstance(each, ast.Same) for key in each.keys]
    return list(dict.fromkeys(key.attribute for key in same if key.function is None))


def _is_local(query: ast.Query) -> bool:
    """Whether events of other keys change nothing for a query whose events all have the same key."""
    return (
        not _counts(query)
        and query.limit is None
        and query.select.policy is not Policy.STRICT
        and (query.window is None or query.window.on is None)
        and not any(isinstance(node, ast.Previous) for node in ast.walk(query))
    )


def _counts(query: ast.Query) -> bool:
    """Whether a span is a number of events."""
    window = query.window
    spans = (query.within, *((window.length, window.every) if window else ()))
    return any(isinstance(span, ast.CountSpan) for span in spans)


def reach(queries: Sequence[ast.Query], *, ended: bool = False) -> tuple[int, int] | None:
    """Return how far before and after its last event a match depends on the stream, in microseconds.

    With `ended`, so do runs that end without a match: what happens until WITHIN is over may still make them go on.

    None if that has no bound: events that are consumed, counted or compared with previous ones link it to all before.
    """
    spans = [_reach(query, ended) for query in queries]
    known = [span for span in spans if span is not None]
    return (max(b for b, _ in known), max(a for _, a in known)) if len(known) == len(spans) else None


def _reach(query: ast.Query, ended: bool) -> tuple[int, int] | None:
    consumes = query.consume.all or query.consume.variables
    opens = query.window is not None and query.window.on is not None
    looks_back = any(isinstance(node, ast.Previous) for node in ast.walk(query))
    if _counts(query) or query.limit is not None or consumes or opens or looks_back:
        return None
    assert isinstance(query.within, ast.TimeSpan), "a query without WITHIN is refused"
    within = query.within.us
    return within, within if ended or rules(plan(query, Calls.DERIVED)).waits else 0


def types_that_count(queries: Sequence[ast.Query]) -> tuple[str, ...] | None:
    """Return the types of events that queries ask about; None if events of any type change something."""
    found: dict[str, None] = {}
    for query in queries:
        if _counts(query) or query.select.policy is Policy.STRICT:
            return None
        opening = [query.window.on.event] if query.window is not None and query.window.on is not None else []
        for event in [*ast.events(query.pattern), *opening]:
            if not event.types:
                return None
            found |= dict.fromkeys(event.types)
    return tuple(found)
