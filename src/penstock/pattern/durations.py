"""Durations as users write them: "10 seconds", "5 min", a timedelta."""

from __future__ import annotations

from datetime import timedelta

from penstock.errors import PenstockError, QueryError
from penstock.pattern import ast
from penstock.pattern.parser import parse


class DurationError(PenstockError):
    """What is no duration."""


def microseconds(given: str | timedelta) -> int:
    """Return a duration in microseconds, as the language spells durations.

    Raises:
        DurationError: it is no duration, or less than nothing.

    Examples:
        >>> microseconds("1.5 s"), microseconds("10 minutes"), microseconds(timedelta(milliseconds=3))
        (1500000, 600000000, 3000)
    """
    us = given // timedelta(microseconds=1) if isinstance(given, timedelta) else _read(given)
    if us < 0:
        raise DurationError(f"{given!r} is less than nothing")
    return us


def _read(text: str) -> int:
    try:
        span = parse(f"PATTERN A a WITHIN {text}").within
    except QueryError:
        span = None
    if not isinstance(span, ast.TimeSpan):
        raise DurationError(f"{text!r} is no duration\n  fix: write it as in '10 seconds', '5 min', '1.5 s'")
    return span.us
