"""`penstock demo --small`: a query and its matches in six events, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

import typer

from penstock.pattern import ast
from penstock.pattern.explain import explain as explain_query
from penstock.pattern.parser import parse
from penstock.pattern.validate import validate
from penstock.reference import Event, Match, Quality, find, quality
from penstock.testing import stream

DEMO_STREAM = "A0 A1 B2 B3 A4 C5"
DEMO_QUERY = "PATTERN SEQ(A a, B b, C c) WITHIN 8 EVENTS WINDOW 8 EVENTS EVERY 2 EVENTS SELECT FIRST CONSUME ALL"
DEMO_POLICIES = ("SELECT EACH", "SELECT FIRST", "SELECT FIRST CONSUME ALL", "SELECT FIRST CONSUME a, b", "SELECT LAST")
DEMO_SHED = "B2"


def facts() -> tuple[ast.Query, dict[str, Any]]:
    """Return a query, and its matches in a small stream: all of them, and what is left when an event is shed."""
    query = parse(DEMO_QUERY, "demo")
    validate(query)
    events, left = stream(DEMO_STREAM), stream(DEMO_STREAM.replace(DEMO_SHED, ""))
    truth, found = find(query, events), find(query, left)
    stem = DEMO_QUERY.partition(" SELECT")[0]
    found_out = {
        "query": DEMO_QUERY,
        "stream": DEMO_STREAM,
        "policies": {each: _described(find(parse(f"{stem} {each}"), events), events) for each in DEMO_POLICIES},
        "shed": DEMO_SHED,
        "matches": {"all events": _described(truth, events), f"without {DEMO_SHED}": _described(found, events)},
        "quality": {
            "strict": _quality(quality(truth, found, "strict")),
            "relaxed": _quality(quality(truth, found, "relaxed")),
        },
    }
    return query, found_out


def _described(matches: Iterable[Match], events: Iterable[Event]) -> list[str]:
    types = {event.seq: event.type for event in events}
    ordered = sorted((match.window, match.events) for match in matches)
    return [f"{' '.join(f'{types[seq]}{seq}' for seq in numbers)} (window {window})" for window, numbers in ordered]


def _quality(result: Quality) -> dict[str, float]:
    return {**asdict(result), "score": result.score}


def show(query: ast.Query, facts: dict[str, Any], table: Callable[[tuple[str, ...], Any], None]) -> None:
    """Print them; the last argument prints a table: its head and its rows."""
    typer.echo(f"1. A query, checked (it is fine) and explained\n\n{explain_query(query)}\n")
    typer.echo(f"2. Its matches in the stream {facts['stream']} (a letter is a type, the number a time), by policy\n")
    table(("policy", "matches"), [(policy, "\n".join(found)) for policy, found in facts["policies"].items()])
    typer.echo(f"\n3. The same stream without {facts['shed']}: what was lost, and what was invented\n")
    table(("", "matches of the query"), [(name, "\n".join(found)) for name, found in facts["matches"].items()])
    rows = [
        (mode, *(f"{each[name]:g}" for name in ("false_negatives", "false_positives", "score")))
        for mode, each in facts["quality"].items()
    ]
    table(("quality", "false negatives", "false positives", "score"), rows)
    typer.echo(
        "\nStrict compares the events of matches, relaxed only how many there are per window."
        "\nThe matches come from the reference matcher, which says what a query means; penstock.Engine finds the same,"
        "\nfast. penstock demo, without --small, overloads a stream on Spark, and sheds by utility."
    )
