"""The clauses of a query in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TypeAlias

from penstock.pattern import ast
from penstock.pattern.builder.checks import BuilderError, checked_count, checked_name, span_of
from penstock.pattern.builder.parts import EventPart, Part, pattern_of, variable_of
from penstock.pattern.builder.values import Operand, Value, condition_of, expression_of
from penstock.pattern.parser import MAX_DEPTH, deeper_than

Span: TypeAlias = str | int | timedelta
Conditions: TypeAlias = Value | Iterable[Value]
Variables: TypeAlias = Iterable[str | EventPart]
Columns: TypeAlias = Mapping[str, Operand] | Iterable[Operand | tuple[str, Operand]]


def query(
    pattern: Part,
    *,
    where: Conditions | None = None,
    within: Span | None = None,
    partition: str | Iterable[str] = (),
    window: ast.Window | Span | None = None,
    limit: int | None = None,
    select: str | Mapping[str | EventPart, str] = "EACH",
    consume: str | Variables = "NONE",
    returns: Columns = (),
    name: str | None = None,
) -> ast.Query:
    """Return a query, equal to the one that `parse` makes of the same query as text.

    Args:
        pattern: what to look for.
        where: a condition, or several that must all hold.
        within: the longest that a match may be: "5 min", "8 events", a timedelta or a number of events.
        partition: the attribute or attributes that cut the stream.
        window: from `window`, or the length of windows that follow each other.
        limit: the number of matches per window.
        select: a policy, or, with EACH, policies by variable: {"b": "LAST"}.
        consume: "NONE", "ALL" or a list of variables.
        returns: values by name, or a list of values and of pairs of a name and a value.
        name: what matches and error messages call it.

    Raises:
        TypeError: if an argument is of the wrong kind.
        BuilderError: if no text could say the same.
        QueryError: if a span is given as text that is none.

    Examples:
        >>> from penstock.pattern.builder import event, seq
        >>> from penstock.pattern.parser import parse
        >>> a, b = event("A", "a"), event("B", "b")
        >>> built = query(seq(a, b), where=a.price < b.price, within="5 min", returns={"gain": b.price - a.price})
        >>> text = "PATTERN SEQ(A a, B b) WHERE a.price < b.price WITHIN 5 min RETURN b.price - a.price AS gain"
        >>> built == parse(text)
        True
    """
    attributes = [partition] if isinstance(partition, str) else partition
    made = ast.Query(
        pattern=pattern_of(pattern),
        where=_condition(where),
        within=None if within is None else span_of(within),
        partition=tuple(ast.Name(checked_name(each, "attribute")) for each in attributes),
        window=window if window is None or isinstance(window, ast.Window) else ast.Window(span_of(window)),
        limit=None if limit is None else checked_count(limit, "limit"),
        select=_select(select),
        consume=_consume(consume),
        returns=tuple(_columns(returns)),
        name=name,
    )
    if deeper_than(made, MAX_DEPTH) is not None:
        raise BuilderError(f"the query is nested deeper than {MAX_DEPTH} levels; split it")
    return made


def window(
    length: Span,
    *,
    every: Span | None = None,
    on: EventPart | None = None,
    where: Conditions | None = None,
    distinct: bool = False,
) -> ast.Window:
    """Return a window for `query`: `WINDOW length EVERY every`, `WINDOW length ON event WHERE condition`.

    Args:
        length: of each window.
        every: how far apart windows start; one after the other if left out.
        on: the event that opens a window.
        where: what that event must satisfy.
        distinct: whether a match is told only for the earliest of its windows.

    Raises:
        BuilderError: if both `every` and `on` are given, or `where` without `on`.

    Examples:
        >>> from penstock.pattern.builder import event
        >>> from penstock.pattern.render import render_window
        >>> s = event("S", "s")
        >>> render_window(window("250 s", every="10 s")), render_window(window("15 s", on=s, where=s.v > 3))
        ('250 s EVERY 10 s', '15 s ON S s WHERE s.v > 3')
    """
    if every is not None and on is not None:
        raise BuilderError("a window opens at intervals (every) or on events (on), not both")
    opening = None
    if on is not None:
        event = pattern_of(on)
        if not isinstance(event, ast.Event):
            raise BuilderError(f"a window opens on a single event, not on {on!r}")
        opening = ast.Opening(event, _condition(where))
    elif where is not None:
        raise BuilderError("where says which events open a window: give them with on")
    return ast.Window(span_of(length), None if every is None else span_of(every), opening, distinct)


def _condition(where: Conditions | None) -> ast.Expression | None:
    if where is None:
        return None
    conditions = [where] if isinstance(where, Value | bool | str) or not isinstance(where, Iterable) else list(where)
    conjuncts = tuple(map(condition_of, conditions))
    if not conjuncts:
        return None
    return conjuncts[0] if len(conjuncts) == 1 else ast.And(conjuncts)


def _policy(policy: str) -> ast.Policy:
    if not isinstance(policy, str):
        raise TypeError(f"a policy is named by a text, not by {policy!r}")
    try:
        return ast.Policy(policy.upper())
    except ValueError:
        raise BuilderError(f"there is no policy {policy!r}; there are {', '.join(ast.Policy)}") from None


def _select(select: str | Mapping[str | EventPart, str]) -> ast.Select:
    if isinstance(select, Mapping):
        pairs = (ast.SelectVariable(_policy(policy), variable_of(each)) for each, policy in select.items())
        return ast.Select(ast.Policy.EACH, tuple(pairs))
    return ast.Select(_policy(select))


def _consume(consume: str | Variables) -> ast.Consume:
    if isinstance(consume, str):
        if consume.upper() not in ("ALL", "NONE"):
            raise BuilderError(f"consume is 'ALL', 'NONE' or a list; for a variable, write [{consume!r}]")
        return ast.Consume(all=consume.upper() == "ALL")
    if isinstance(consume, Part):
        raise TypeError(f"consume takes a list; write [{consume!r}]")
    return ast.Consume(variables=tuple(ast.Name(variable_of(each)) for each in consume))


def _columns(returns: Columns) -> Iterable[ast.Return]:
    if isinstance(returns, Value | str):
        raise TypeError(f"returns takes a list or a dict of values; write [{returns!r}]")
    for each in returns.items() if isinstance(returns, Mapping) else returns:
        if isinstance(each, tuple):
            name, value = each
            yield ast.Return(expression_of(value), checked_name(name, "column"))
        else:
            yield ast.Return(expression_of(each))
