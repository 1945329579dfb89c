"""What the laws are written with: how they are run, and how queries and matches are taken apart for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.pattern.variables import variables
from penstock.reference import Event, Match, find
from tests.generators import FUNCTIONS, REMOTES

EXAMPLES = 120
DEEPER = 10
SPOKEN = 0.02  # the least share of examples about which a law must have said something

Told: TypeAlias = tuple[tuple[Any, ...], int | None, frozenset[tuple[str, tuple[int, ...]]]]


def law(strategy: SearchStrategy[Any], examples: int = EXAMPLES) -> Callable[[Callable[..., bool]], Any]:
    """Make a test of a law, and a slow one with ten times as many examples.

    The law is a function of one example; it asserts, and returns whether it said anything about the example (an
    empty result agrees with nearly every law). One that hardly ever does fails, for it could not fail otherwise.
    """

    def decorate(check: Callable[..., bool]) -> Any:
        def test(times: int) -> None:
            spoken: list[bool] = []

            @settings(max_examples=examples * times, deadline=None, print_blob=True)
            @given(strategy)
            @wraps(check)  # so that hypothesis keeps the examples of each law apart
            def run(*example: Any, **named: Any) -> None:
                spoken.append(check(*example, **named))

            run()
            assert sum(spoken) >= SPOKEN * len(spoken), f"it spoke only about {sum(spoken)} of {len(spoken)} examples"

        test.__doc__ = check.__doc__
        return pytest.mark.parametrize("times", [1, pytest.param(DEEPER, marks=pytest.mark.slow)])(test)

    return decorate


# --- matches ------------------------------------------------------------------------------------------------


def found(query: ast.Query, events: Iterable[Event]) -> frozenset[Match]:
    """Find the matches of a query."""
    return find(query, events, functions=FUNCTIONS, remotes=REMOTES)


def told(matches: Iterable[Match]) -> set[Told]:
    """Return matches whatever the order of their variables in the text."""
    return {(match.key, match.window, frozenset(match.bindings)) for match in matches}


def tell(query: ast.Query, events: Iterable[Event]) -> set[Told]:
    """Find matches, whatever the order of their variables in the text."""
    return told(found(query, events))


def in_order(events: Iterable[Event]) -> list[Event]:
    """Return a stream in the order of (ts, seq)."""
    return sorted(events, key=lambda event: (event.ts, event.seq))


def places(events: Iterable[Event]) -> dict[int, int]:
    """Return the position of each event in the stream, by its number."""
    return {event.seq: at for at, event in enumerate(in_order(events))}


def last_event(match: Match, at: dict[int, int]) -> int:
    """Return the position of the last event of a match."""
    return max(at[seq] for seq in match.events)


# --- queries ------------------------------------------------------------------------------------------------


def plain(query: ast.Query) -> ast.Query:
    """Return a query with SELECT EACH, CONSUME NONE, all matches of all windows and no columns."""
    window = None if query.window is None else replace(query.window, distinct=False)
    return replace(query, select=ast.Select(), consume=ast.Consume(), window=window, limit=None, returns=())


def selecting(query: ast.Query, policy: Policy) -> ast.Query:
    """Return a query with another SELECT."""
    return replace(query, select=ast.Select(policy))


def with_pattern(query: ast.Query, pattern: ast.Pattern) -> ast.Query:
    """Return a query with a pattern of fewer variables, and without the conjuncts that name one of the others."""
    left = set(variables(pattern))
    kept = [each for each in ast.conjuncts(query.where) if left.issuperset(ast.variables_of(each))]
    return replace(query, pattern=pattern, where=conjunction(kept))


def conjunction(conjuncts: Collection[ast.Expression]) -> ast.Expression | None:
    """Return conjuncts as one condition."""
    return ast.And(tuple(conjuncts)) if conjuncts else None


def parts_of(pattern: ast.Pattern) -> tuple[ast.Pattern, ...]:
    """Return the parts of a SEQ, AND, OR or ANY."""
    assert isinstance(pattern, ast.Sequence | ast.Conjunction | ast.Disjunction | ast.AnyOf)
    return pattern.parts


def rewritten(pattern: ast.Pattern, change: Callable[[ast.Pattern], ast.Pattern | None]) -> ast.Pattern | None:
    """Change every part of a pattern, those below first; what becomes None goes from the group that it is in."""
    match pattern:
        case ast.Event() | ast.Negation():
            return change(pattern)
        case ast.Repetition(part=part) | ast.Option(part=part):
            below = rewritten(part, change)
            return None if below is None else change(replace(pattern, part=below))
        case _:
            parts = [rewritten(part, change) for part in pattern.parts]
            left = tuple(part for part in parts if part is not None)
            return change(replace(pattern, parts=left)) if left else None
