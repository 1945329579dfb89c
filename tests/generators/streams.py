"""Random small streams: ties in time, gaps, bursts, missing values, numbers that do not follow the time."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.reference.events import Event
from penstock.testing import SECOND_US
from tests.generators.choices import Choices

MAX_EVENTS = 14

_TYPES = ("A", "B", "C", "D", "A", "B", "A", "B", "C")
_STARTS_US = (0, 0, 3 * SECOND_US, 1_700_000_000 * SECOND_US, -5 * SECOND_US)
_GAPS_US = (
    SECOND_US, SECOND_US, 0, SECOND_US, 2 * SECOND_US, 500_000, SECOND_US, 0, 1, 7 * SECOND_US, SECOND_US, SECOND_US,
)  # fmt: skip
_NUMBERS = (1, 2, 0, 3, 1, 2, 1, None)
_FLOATS = (0.5, 1.0, 2.5, 0.0, -1.5, 1.0, float("nan"), None)
_KEYS = ("p", "p", "q", "p", "q", "r", None)
_MOSTLY_ONE_KEY = ("p", "p", "p", "p", "p", "p", "q", None)
_FLAGS = (True, True, False, None)


def stream(choices: Choices, planted: Sequence[str] = (), kinds: int = 4) -> list[Event]:
    """Return a stream in which events of the planted types come in their order, among others of so many types."""
    types = list(planted[:MAX_EVENTS])
    others = _TYPES if kinds == len(set(_TYPES)) else _TYPES[:kinds]
    for _ in range(choices.below(MAX_EVENTS - len(types) + 1)):
        types.insert(choices.below(len(types) + 1), choices.pick(others))
    ts = choices.pick(_STARTS_US)
    keys = choices.pick((_MOSTLY_ONE_KEY, _KEYS))
    events = []
    for type_, seq in zip(types, _sequence_numbers(choices, len(types)), strict=True):
        events.append(Event(type_, ts, seq, attributes(choices, keys)))
        ts += choices.pick(_GAPS_US)
    return events


def attributes(choices: Choices, keys: Sequence[str | None] = _KEYS) -> dict[str, object]:
    """Return the attributes of one event: an int, a float, a text, a boolean, each sometimes missing."""
    return {
        "n": choices.pick(_NUMBERS),
        "x": choices.pick(_FLOATS),
        "k": choices.pick(keys),
        "flag": choices.pick(_FLAGS),
    }


def _sequence_numbers(choices: Choices, count: int) -> list[int]:
    style = choices.below(6)
    if style < 4:
        return list(range(count))
    return [10 * n + 3 for n in range(count)] if style == 4 else choices.shuffled(range(count))
