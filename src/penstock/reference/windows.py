"""PARTITION BY and WINDOW: which stretches of the stream are matched on their own (docs/language.md, 1 and 7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.pattern import ast
from penstock.reference.conditions import World, opens
from penstock.reference.events import Event, Stream


def partitions(query: ast.Query, events: Iterable[Event]) -> dict[tuple[Any, ...], list[Event]]:
    """Cut a stream by the PARTITION BY attributes; an event that misses one is in no partition."""
    if not query.partition:
        return {(): list(events)}
    found: dict[tuple[Any, ...], list[Event]] = {}
    for event in events:
        key = tuple(event.value(name.text) for name in query.partition)
        if None not in key:
            found.setdefault(key, []).append(event)
    return found


def windows(window: ast.Window | None, world: World) -> Iterator[tuple[int | None, range]]:
    """Yield the windows of a stream, each by its name and its positions, the earliest first.

    The name of a window is its start: a time, a position, or the number of the event that opens it.
    """
    stream = world.stream
    if window is None:
        yield None, range(len(stream))
    elif window.on is not None:
        for at in range(len(stream)):
            if opens(window.on, at, world):
                yield stream.events[at].seq, _from_event(at, window.length, stream)
    elif isinstance(window.length, ast.TimeSpan):
        yield from _by_time(window.length.us, _every(window), stream)
    else:
        for start in range(0, len(stream), _every(window)):
            yield start, range(start, min(start + window.length.events, len(stream)))


def _every(window: ast.Window) -> int:
    every = window.every or window.length
    return every.us if isinstance(every, ast.TimeSpan) else every.events


def _from_event(at: int, length: ast.Span, stream: Stream) -> range:
    if isinstance(length, ast.TimeSpan):
        return range(at, max(at + 1, stream.since(stream.events[at].ts + length.us)))
    return range(at, min(at + length.events, len(stream)))


def _by_time(length_us: int, every_us: int, stream: Stream) -> Iterator[tuple[int, range]]:
    """Yield the windows [k · every, k · every + length) that hold an event."""
    starts = {
        k * every_us
        for event in stream.events
        for k in range((event.ts - length_us) // every_us + 1, event.ts // every_us + 1)
    }
    for start in sorted(starts):
        yield start, range(stream.since(start), stream.since(start + length_us))
