"""Streams for the queries of the papers (tests/queries): events that fit their schemas, so that there are matches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from pyspark.sql import types as st

import penstock as pk
from penstock.pattern import ast
from penstock.reference import Event
from penstock.spark.columns import Columns
from penstock.spark.detecting import spec_of
from penstock.spark.keys import keyed
from penstock.spark.worker.spec import Spec
from tests.pattern.test_corpus import STEMS, schema_path, text_of

NOON = 1_700_006_400_000_000 - 1_700_006_400_000_000 % 86_400_000_000 + 43_200_000_000
SECOND = 1_000_000
KINDS: dict[str, st.DataType] = {
    "int": st.LongType(), "float": st.DoubleType(), "string": st.StringType(), "bool": st.BooleanType(),
    "duration": st.DayTimeIntervalType(),
}  # fmt: skip
# Of some, all events are within the span; others ask for much at once.
COUNTS = {"eires-listing2-q2": 50, "thesis-table3.1-q1-one-conjunct": 90, "eires-listing4-cluster": 400}
COUNTED_STEP_US = SECOND  # between events where spans are numbers of events


def overlap(boundary: str) -> str:
    return boundary[:1]


def both_high(one: str, other: str) -> str:
    return "high" if one == other == "high" else "low"


def warning(x: float, y: float, near_x: float, near_y: float) -> str:
    return f"{near_x - x:.0f} {near_y - y:.0f}"


FUNCTIONS: dict[str, Callable[..., Any]] = {"overlap": overlap, "UDF1": both_high, "warning": warning}
REMOTES: dict[str, Any] = {
    "locations": {"u": {"here"}, "w": {"there"}}, "limits": {"o": 20.0, "p": 60.0}, "clients": {"o": {"n"}, "p": {"m"}},
    "v1": {0: 0, 1: 1}, "v2": {0: 1, 1: 0},
    "temperature": {"ab": 50.0, "ac": 47.0, "bd": 60.0}, "humidity": {"ab": 20.0, "ac": 23.0, "bd": 10.0},
    "regions": {0: {"x"}, 1: {"y"}, 2: {"z"}},
}  # fmt: skip


@dataclass(frozen=True)
class Study:
    """A query with a stream.

    Attributes:
        query: of a paper.
        schema: what is in its folder beside it.
        fields: the columns of the events, besides type, time and number.
        events: in order.
    """

    query: ast.Query
    schema: pk.Schema
    fields: dict[str, st.DataType]
    events: list[Event]

    @property
    def callees(self) -> dict[str, Any]:
        """The functions and remote sources that the query may call."""
        return {
            "functions": {name: FUNCTIONS[name] for name in self.schema.functions},
            "remotes": {name: REMOTES[name] for name in self.schema.remotes},
        }


def study(stem: str) -> Study:
    """Return a query with events: the types in the order of its pattern, with others between."""
    query, random = pk.parse(text_of(stem), stem), Random(stem)
    schema = pk.Schema.read(schema_path(stem))
    most = 7 if stem.startswith("statebased") else 2  # which wants six and more; the others have many matches then
    order = [each.types for each in _order(query.pattern, random, most)]
    known = [name for name in schema.types if name != "*"]
    opening = [query.window.on.event.types] if query.window is not None and query.window.on is not None else []
    step = _step(query, len(order))
    count = COUNTS.get(stem, max(160, 14 * len(order)))
    values, ts, place, found = _Values(random), NOON, 0, []
    for seq in range(count):
        ts += random.randint(0, 2 * step)
        if opening and random.random() < 0.06:
            kind = random.choice(opening[0])
        elif random.random() < 0.12:
            kind = random.choice(known)
        else:
            if place == len(order) or random.random() < 0.05:
                order, place = [each.types for each in _order(query.pattern, random, most)], 0
            kind, place = random.choice(order[place] or known), place + 1
        attributes = schema.types.get("*", {}) | schema.types[kind]
        found.append(Event(kind, ts, seq, {name: values.of(stem, kind, name) for name in attributes}))
    fields = {name: KINDS[value] for types in schema.types.values() for name, value in types.items()}
    return Study(query, schema, fields, found)


def _order(pattern: ast.Pattern, random: Random, most: int) -> list[ast.Event]:
    """Return the events of a pattern in its order: lists a few times, what is negated seldom."""
    found = []
    for each in getattr(pattern, "parts", (pattern,)):
        if isinstance(each, ast.Negation) and random.random() < 0.8:
            continue
        found += list(ast.events(each)) * (random.randint(1, most) if isinstance(each, ast.Repetition) else 1)
    return found


def _step(query: ast.Query, steps: int) -> int:
    """Return a mean time between events by which a match has room, and there are not too many of them."""
    span = query.within
    if not isinstance(span, ast.TimeSpan):
        return COUNTED_STEP_US
    return max(1, span.us // (3 * steps if query.select.policy is ast.Policy.FIRST else 2 * steps))


class _Values:
    """Draws the values of attributes by their names, so that the conditions on them hold now and then."""

    def __init__(self, random: Random) -> None:
        self._random, self._drawn = random, 0
        self._last: dict[str, float] = {}

    def of(self, stem: str, kind: str, name: str) -> Any:
        self._drawn += 1
        random, place = self._random, int("".join(filter(str.isdigit, kind)) or 0)
        between, one_of = random.uniform, random.choice
        match name:
            case "close" | "quote":  # long rises and long falls, with exceptions
                rises = (self._drawn // 120 % 2 == 0) ^ (random.random() < 0.02)
                last = self._last.get(kind, 100.0)
                self._last[kind] = round(last * (1.02 if rises else 0.98), 6)
                return self._last[kind]
            case "open" | "high" | "low" | "dist":
                return round(12 * 1.25**place * between(0.9, 1.1), 3)
            case "volume":
                return round(1000 * 1.25**place * between(0.9, 1.1))
            case "v":
                return round(100_000 * between(0.3, 1.0) * 1.3**place)
            case "x" | "y" | "z":
                return round(between(0, 500 if kind == "unlock" else 2), 2)
            case "amount":
                sizes = {"SmallTrans": 150, "MediumTrans": 3000, "BigTrans": 400_000, "BigTransReq": 20_000}
                return round(sizes.get(kind, 900) * between(0.8, 1.2), 2)
            case "V1":
                return round(between(1, 2) * 3.0 ** ("ABCDEF".index(kind) % 3), 2)
            case "delay":
                return random.randint(100, 400) * SECOND
            case "vol":
                return round(between(9_000, 90_000))
            case "limit":
                return round(between(10, 90))
            case "channel":
                return one_of((7, 14, 16))
            case "boundary":
                return one_of(("ab", "ac", "bd"))
            case "level":
                return one_of(("high", "high", "high", "low"))
            case "machine":
                return one_of((0, 0, 0, 1, 2))
            case "possession":
                return random.random() < 0.8
            case "price" | "change":
                return float(random.randint(-3, 9))
        texts = {
            "loc": ("here", "there"), "user": ("u", "w"), "org": ("o", "p"), "ben": ("m", "n"), "stop": ("s", "t"),
            "team": ("home", "away"), "region": ("x", "y", "z"),
        }  # fmt: skip
        return one_of(texts[name]) if name in texts else int(random.random() < 0.1)  # numbers of things


def spec_for_study(given: Study, **options: Any) -> Spec:
    """Return what workers are told."""
    fields = {"type": st.StringType(), "ts": st.LongType(), "seq": st.LongType(), **given.fields}
    (query,), keys = keyed([given.query], ())
    structs = tuple(st.StructField(name, kind) for name, kind in fields.items())
    spec = spec_of([(query, 1.0)], Columns("type", "ts", "seq", None, keys, tuple(fields), structs), given.schema)
    return replace(spec, **given.callees, **options)


def together(stems: Sequence[str]) -> tuple[list[Study], Study]:
    """Return studies, and all their events as one stream, under a schema that has all attributes in all types."""
    studies = [study(stem) for stem in stems]
    events = sorted((event for each in studies for event in each.events), key=lambda event: event.ts)
    fields = {name: kind for each in studies for name, kind in each.fields.items()}
    words = {kind: word for word, kind in KINDS.items()}
    outside = [each.schema.model_dump(by_alias=True, exclude_none=True) for each in studies]
    schema = pk.Schema.model_validate(
        {
            "types": {"*": {name: words[kind] for name, kind in fields.items()}},
            "functions": {name: value for each in outside for name, value in each["functions"].items()},
            "remotes": {name: value for each in outside for name, value in each["remotes"].items()},
        }
    )
    numbered = [replace(event, seq=seq) for seq, event in enumerate(events)]
    return studies, Study(studies[0].query, schema, fields, numbered)


__all__ = ["STEMS", "Study", "spec_for_study", "study", "together"]
