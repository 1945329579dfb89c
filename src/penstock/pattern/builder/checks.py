"""What the builder refuses, and Python's spellings of names, counts and spans."""

from __future__ import annotations

from datetime import timedelta
from numbers import Integral

from penstock.errors import PenstockError
from penstock.pattern import ast
from penstock.pattern.parser import parse_span
from penstock.pattern.tree_to_query import MAX_INTEGER


class BuilderError(PenstockError, ValueError):
    """A query that the builder cannot make: a bad name, an empty group, a count out of range."""


def checked_name(name: str, what: str) -> str:
    """Return a name if a query can say it.

    Args:
        name: of a type, variable, attribute, function, source or column.
        what: which of these, for the error.

    Raises:
        TypeError: if it is no text.
        BuilderError: if it is empty or has a line break.

    Examples:
        >>> checked_name("BRK.B", "type")
        'BRK.B'
    """
    if not isinstance(name, str):
        raise TypeError(f"{what} names are texts, not {name!r}")
    if not name or "\n" in name or "\r" in name:
        raise BuilderError(f"{name!r} is no {what} name: it is empty or has a line break")
    return name


def checked_count(count: int, what: str, least: int = 1) -> int:
    """Return a count if it is in range.

    Args:
        count: a whole number.
        what: what it counts, for the error.
        least: the smallest that is allowed.

    Raises:
        TypeError: if it is no whole number.
        BuilderError: if it is out of range.

    Examples:
        >>> checked_count(5, "a number of events")
        5
    """
    if not isinstance(count, Integral) or isinstance(count, bool):
        raise TypeError(f"{what} must be a whole number, not {count!r}")
    if not least <= count <= MAX_INTEGER:
        raise BuilderError(f"{what} must be at least {least} and at most 2**62, not {count}")
    return int(count)


def microseconds(length: timedelta) -> int:
    """Return the microseconds of a timedelta.

    Args:
        length: of either sign.

    Raises:
        BuilderError: if the language has no such duration.

    Examples:
        >>> microseconds(timedelta(milliseconds=5))
        5000
    """
    us = length // timedelta(microseconds=1)
    if abs(us) > MAX_INTEGER:
        raise BuilderError(f"{length!r} is too long; write less than 146,000 years")
    return us


def span_of(span: str | int | timedelta) -> ast.Span:
    """Return the AST of a span.

    Args:
        span: text ("5 min", "8 events"), a timedelta, or a number of events.

    Raises:
        QueryError: if the text is no span.
        BuilderError: if it is out of range.

    Examples:
        >>> span_of("5 min") == span_of(timedelta(minutes=5)), span_of(8)
        (True, CountSpan(events=8))
    """
    if isinstance(span, str):
        return parse_span(span)
    if isinstance(span, timedelta):
        if span < timedelta(0):
            raise BuilderError(f"a span cannot be negative: {span!r}")
        return ast.TimeSpan(microseconds(span))
    if isinstance(span, Integral) and not isinstance(span, bool):
        return ast.CountSpan(checked_count(span, "a number of events"))
    raise TypeError(f'{span!r} is no span; write text ("5 min", "8 events"), a timedelta or a number of events')


def refuse_private(name: str) -> None:
    """Keep Python's own lookups (`__deepcopy__`, …) from making attributes.

    Args:
        name: what was looked up.

    Raises:
        AttributeError: if the name starts with an underscore.

    Examples:
        >>> refuse_private("price")
    """
    if name.startswith("_"):
        raise AttributeError(f"for an attribute that starts with an underscore, write .attr({name!r})")
