"""How fast queries are read, checked and written, and how fast the reference matcher is on a small stream.

Microseconds are of this machine and this moment; the ratios are what to compare between versions.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from penstock.cli import schema_beside
from penstock.pattern.explain import explain
from penstock.pattern.normal import normalize
from penstock.pattern.parser import parse
from penstock.pattern.render import render
from penstock.pattern.schema import Schema
from penstock.pattern.validate import validate
from penstock.reference import Event, find

QUERIES = sorted((Path(__file__).parent.parent / "tests" / "queries").glob("*.cep"))
ROUNDS = 7
STREAM_LENGTH = 200
STREAM_QUERIES = (
    "PATTERN SEQ(A a, B b, C c) WHERE a.v < b.v AND a.v + b.v < c.v WITHIN 20 EVENTS",
    "PATTERN SEQ(A a, B b, C c) WHERE a.v < b.v AND a.v + b.v < c.v WITHIN 20 EVENTS SELECT FIRST CONSUME a",
    "PATTERN SEQ(A a, NOT B b, C c) WHERE SAME[id] WITHIN 20 EVENTS",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE a.v < b[i].v WITHIN 12 EVENTS",
)


def seconds(work: Callable[[], object]) -> float:
    """Return the median time of several rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def language() -> None:
    """Print the time of each step, of a query in the middle, of the slowest one, and against parsing."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in QUERIES}
    queries = {stem: parse(text, stem) for stem, text in texts.items()}
    paths = {path.stem: schema_beside(path) for path in QUERIES}
    schemas = {stem: None if path is None else Schema.read(path) for stem, path in paths.items()}
    steps: dict[str, Callable[[str], object]] = {
        "parse": lambda stem: parse(texts[stem], stem),
        "validate": lambda stem: validate(queries[stem]),
        "validate, schema": lambda stem: validate(queries[stem], schemas[stem]),
        "normalize": lambda stem: normalize(queries[stem]),
        "render": lambda stem: render(queries[stem]),
        "explain": lambda stem: explain(queries[stem]),
    }
    print(f"{len(texts)} queries, {sum(map(len, texts.values())) // len(texts)} characters on average")
    print(f"{'step':<18}{'median µs':>12}{'slowest µs':>12}{'of parse':>10}")
    parsing = 0.0
    for name, step in steps.items():
        times = [seconds(lambda step=step, stem=stem: step(stem)) * 1e6 for stem in texts]  # type: ignore[misc]
        median = statistics.median(times)
        parsing = parsing or median
        print(f"{name:<18}{median:>12,.0f}{max(times):>12,.0f}{median / parsing:>10.2f}")


def matcher() -> None:
    """Print the reference matcher's events per second. It is not meant to be fast; it must stay usable in tests."""
    numbers = random.Random(1)
    events = [
        Event(numbers.choice("ABC"), at * 1_000_000, at, {"v": numbers.random(), "id": numbers.randrange(3)})
        for at in range(STREAM_LENGTH)
    ]
    print(f"\nreference matcher, {len(events)} events")
    print(f"{'events/s':>10}{'matches':>10}  query")
    for text in STREAM_QUERIES:
        query = parse(text)
        took, matches = seconds(lambda query=query: find(query, events)), len(find(query, events))  # type: ignore[misc]
        print(f"{len(events) / took:>10,.0f}{matches:>10,}  {text}")


if __name__ == "__main__":
    language()
    matcher()
