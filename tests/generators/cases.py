"""A query with a stream to run it on, drawn by hypothesis or from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from hypothesis.vendor.pretty import RepresentationPrinter

from penstock.pattern import ast
from penstock.pattern.render import render
from penstock.reference.events import Event
from tests.generators.choices import Choices, Drawn, Seeded
from tests.generators.patterns import walk
from tests.generators.profile import EVERYTHING, Profile
from tests.generators.queries import query
from tests.generators.sizes import cut
from tests.generators.streams import stream


@dataclass(frozen=True)
class Case:
    """A query and a stream, in order."""

    query: ast.Query
    events: list[Event]

    def __repr__(self) -> str:
        lines = "".join(f"\n    {event}," for event in self.events)
        return f"Case:\n{render(self.query)}\non [{lines}\n]"

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        printer.text(repr(self))  # hypothesis would show the tree of the query


def case(choices: Choices, profile: Profile = EVERYTHING) -> Case:
    """Return a query and a stream, in which mostly the types of a match come in order."""
    asked = query(choices, profile)
    planted = walk(asked.pattern, choices) if choices.chance(85) else []
    return Case(replace(asked, source=render(asked)), cut(asked, stream(choices, planted, profile.types)))


def seeded(count: int, seed: int = 0, profile: Profile = EVERYTHING) -> Iterator[Case]:
    """Yield cases that follow from a seed; the n-th of one seed is the first of the seed + n."""
    return (case(Seeded(number), profile) for number in range(seed, seed + count))


@st.composite
def cases(draw: DrawFn, profile: Profile = EVERYTHING) -> Case:
    """Draw a query and a stream."""
    return case(Drawn(draw), profile)


@st.composite
def queries(draw: DrawFn, profile: Profile = EVERYTHING) -> ast.Query:
    """Draw a query."""
    return query(Drawn(draw), profile)


@st.composite
def _streams(draw: DrawFn) -> list[Event]:
    return stream(Drawn(draw))


def streams() -> SearchStrategy[list[Event]]:
    """Draw a stream of 0 to 14 events."""
    return _streams()
