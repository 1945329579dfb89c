"""Queries with known results that nobody here wrote: `shared/cases` beside the repository (its README says more)."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from penstock.pattern import ast
from penstock.pattern.parser import parse
from penstock.pattern.variables import variables
from penstock.reference import Event, Match, find
from penstock.testing import SECOND_US

CASES = Path(__file__).parents[2].parent / "shared" / "cases"
NAMES = sorted(path.stem for path in CASES.glob("*.json"))
SLOW = {"sortedStorageTest"}

STOCKS = ("open", "high", "low", "close", "volume")
SENSORS = {
    "PressTemp": ("Amplitude", "Pressure", "Temperature"),
    "Accelerometer": ("Amplitude", "AccX", "AccY", "AccZ"),
    "Magnetometer": ("Amplitude", "MagX", "MagY", "MagZ"),
}


@cache
def events_of(file: str) -> list[Event]:
    lines = (CASES / file).read_text(encoding="utf-8").splitlines()
    form = "%m/%d/%Y %H:%M:%S" if "Sensors" in file else "%Y%m%d%H%M"
    return [_event(number, line.strip().split(","), form) for number, line in enumerate(lines)]


def _event(number: int, words: list[str], form: str) -> Event:
    type_, time, *values = words
    seconds = int(datetime.strptime(time, form).replace(tzinfo=UTC).timestamp())
    attributes = zip(SENSORS.get(type_, STOCKS), map(float, values), strict=True)
    return Event(type_, seconds * SECOND_US, number, dict(attributes))


def has_choices(pattern: ast.Pattern) -> bool:
    return any(isinstance(node, ast.Conjunction | ast.Disjunction) for node in ast.walk(pattern))


def found(query: ast.Query, match: Match) -> tuple[Any, ...]:
    """A match as its cases write it: per positive variable, from left to right, its event or its list of events."""
    if has_choices(query.pattern):
        return match.events
    positive = {name: variable for name, variable in variables(query.pattern).items() if not variable.negated}
    return tuple(match[name] if variable.is_list else match[name][0] for name, variable in positive.items())


def expected(query: ast.Query, match: list[Any]) -> tuple[Any, ...]:
    if has_choices(query.pattern):
        return tuple(sorted(match))
    return tuple(tuple(entry) if isinstance(entry, list) else entry for entry in match)


@pytest.mark.skipif(not NAMES, reason=f"there are no cases in {CASES}")
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in NAMES or [""]])
def test_case(name: str) -> None:
    case = json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))
    query = parse(case["query"], name)
    matches = Counter(found(query, match) for match in find(query, events_of(case["events"])))
    assert matches == Counter(expected(query, match) for match in case["matches"])
