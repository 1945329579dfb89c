"""The reference matcher: what a query means, as a program that is slow and easy to check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.pattern.render import render_expression
from penstock.pattern.validate import validate
from penstock.pattern.variables import Variable, variables
from penstock.reference.assignments import Known, Question, assignments, question
from penstock.reference.conditions import World, returned
from penstock.reference.events import Binding, Event, Match, Stream
from penstock.reference.policies import consume, distinct, in_order
from penstock.reference.runs import FirstRuns, Run, Runner, all_runs, can_go_on, is_abandoned
from penstock.reference.windows import partitions, windows

Functions = Mapping[str, Callable[..., Any]]
Remotes = Mapping[str, Mapping[Any, Any]]


def find(
    query: ast.Query,
    events: Iterable[Event],
    *,
    functions: Functions | None = None,
    remotes: Remotes | None = None,
) -> frozenset[Match]:
    """Find every match of a query in a finite stream, by the definitions of docs/language.md.

    Args:
        query: must be valid.
        events: in any order; they are sorted by time and number.
        functions: user functions by name.
        remotes: per source of REMOTE, what it holds by key.

    Examples:
        >>> import penstock as pk
        >>> from penstock.testing import stream
        >>> query = pk.parse("PATTERN SEQ(A a, B b) WITHIN 8 EVENTS SELECT FIRST CONSUME ALL")
        >>> sorted(match.bindings for match in find(query, stream("A1 A2 B3 B4")))
        [(('a', (1,)), ('b', (3,))), (('a', (2,)), ('b', (4,)))]
    """
    validate(query, strict=False)  # what never applies can still be run
    found: list[Match] = []
    for key, members in partitions(query, _numbered(events)).items():
        world = _world(query, members, functions, remotes)
        matches: list[Match] = []
        for window, positions in windows(query.window, world):
            known = in_order(_in_window(query, question(query), world, positions))
            kept = known[: query.limit] if query.limit is not None else known
            matches += [_match(query, key, window, match.binding, world) for match in kept]
        found += _of_earliest_window(matches) if query.window and query.window.distinct else matches
    return frozenset(found)


def runs(
    query: ast.Query,
    events: Iterable[Event],
    *,
    functions: Functions | None = None,
    remotes: Remotes | None = None,
) -> frozenset[Match]:
    """Return the partial matches that are open after these events.

    A run is open if it may take further events, the last event was still in its span and its window, and it is not
    abandoned. Runs are given as matches, by window; under EACH, LAST and CUMULATIVE those of EACH.

    Args:
        query: must be valid.
        events: in any order; they are sorted by time and number.
        functions: user functions by name.
        remotes: per source of REMOTE, what it holds by key.
    """
    validate(query, strict=False)  # what never applies can still be run
    found: list[Match] = []
    for key, members in partitions(query, _numbered(events)).items():
        world = _world(query, members, functions, remotes)
        now = len(world.stream) - 1
        for window, positions in windows(query.window, world):
            if now not in positions:
                continue
            runner = Runner(question(query), world, positions)
            found += [
                _match(query, key, window, run.binding, world)
                for run in _runs_in_window(query, runner)
                if can_go_on(run) and now < runner.end_of(run) and not is_abandoned(run, runner, now)
            ]
    return frozenset(found)


def _numbered(events: Iterable[Event]) -> list[Event]:
    """Return the events; refuse two with the same number, for matches are told apart by their numbers."""
    every = list(events)
    for seq, count in Counter(event.seq for event in every).items():
        if count > 1:
            raise ValueError(f"{count} events have the number {seq}: seq must be unique")
    return every


def _world(query: ast.Query, events: Iterable[Event], functions: Functions | None, remotes: Remotes | None) -> World:
    return World(Stream(events), variables(query.pattern), functions or {}, remotes or {})


def _is_by_runs(query: ast.Query) -> bool:
    return query.select.policy in (Policy.FIRST, Policy.STRICT)


def _in_window(query: ast.Query, asked: Question, world: World, window: range) -> list[Known]:
    if _is_by_runs(query):
        is_strict = query.select.policy is Policy.STRICT
        return distinct(FirstRuns(Runner(asked, world, window), query.consume, is_strict).go().finish())
    each = [asked.known(b, world, b.positions[-1]) for b in assignments(asked, world, window)]
    order = [name for name, variable in world.variables.items() if not variable.negated]
    return consume(distinct(each), query.consume, query.select, order)


def _runs_in_window(query: ast.Query, runner: Runner) -> Iterable[Run]:
    if _is_by_runs(query):
        return FirstRuns(runner, query.consume, query.select.policy is Policy.STRICT).go().runs
    return all_runs(runner)


def _match(query: ast.Query, key: tuple[Any, ...], window: int | None, binding: Binding, world: World) -> Match:
    events = world.stream.events
    numbers = [(name, tuple(events[b.at].seq for b in binding.of(name))) for name in world.variables]
    first, last = (events[at].ts for at in (binding.positions[0], binding.positions[-1]))
    seen = replace(world, variables=_with_lists(query, world))
    values = {column_name(each): returned(each.expression, binding, seen) for each in query.returns}
    return Match(query.name, key, window, tuple(n for n in numbers if n[1]), first, last, values)


def _with_lists(query: ast.Query, world: World) -> dict[str, Variable]:
    """The variables as RETURN sees them: those that CUMULATIVE gathers are lists."""
    gathered = {each.variable for each in query.select.variables if each.policy is Policy.CUMULATIVE}
    if query.select.policy is Policy.CUMULATIVE:
        gathered = set(world.variables)
    return {
        name: replace(variable, groups=(-1 - number,)) if name in gathered else variable
        for number, (name, variable) in enumerate(world.variables.items())
    }


def _of_earliest_window(matches: list[Match]) -> list[Match]:
    """Keep, of the same match in several windows, the first; `matches` come by window, the earliest first."""
    return list({match.bindings: match for match in reversed(matches)}.values())


def column_name(column: ast.Return) -> str:
    """Return the name of a RETURN column: the one given, or the text of its expression."""
    return column.name or render_expression(column.expression)
