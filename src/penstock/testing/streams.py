"""Small helpers for tests: yours and ours."""

from __future__ import annotations

import re
from typing import Any

from penstock.reference.events import Event

SECOND_US = 1_000_000
_WORD = re.compile(r"([^\W\d]+)(\d+)(?:@(\d+(?:\.\d+)?))?(?:\(([^)]*)\))?")


def stream(text: str) -> list[Event]:
    """Write a stream in short: `A0 B2 C5@7(v=3, id=x)`.

    A word is a type, a number (`seq`; the time in seconds too, unless `@` gives another) and attributes. Attribute
    values are numbers if they look like numbers, `null` is missing, the rest is text.

    Examples:
        >>> [(e.type, e.seq, e.ts) for e in stream("A0 B2@7")]
        [('A', 0, 0), ('B', 2, 7000000)]
        >>> dict(stream("A1(v=2.5, id=x, w=null)")[0].attributes)
        {'v': 2.5, 'id': 'x', 'w': None}
    """
    left = _WORD.sub("", text).strip()
    if left:
        raise ValueError(f"cannot read {left.split()[0]!r}: a word is a type and a number, as in A0 or A0@5(v=3)")
    return [_event(*found.groups()) for found in _WORD.finditer(text)]


def _event(type_: str, number: str, seconds: str | None, attributes: str | None) -> Event:
    pairs = (pair.split("=", 1) for pair in (attributes or "").split(",") if pair.strip())
    values = {name.strip(): _value(value.strip()) for name, value in pairs}
    return Event(type_, round(float(seconds or number) * SECOND_US), int(number), values)


def _value(text: str) -> Any:
    if text == "null":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
