"""Laws of SELECT and CONSUME, on random queries and streams (SEMANTICS.md, sections 3 and 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.pattern.parser import parse
from penstock.pattern.variables import can_be_empty, variables
from penstock.reference import Match
from penstock.reference.assignments import assignments, question
from penstock.reference.conditions import World
from penstock.reference.events import Binding, Stream
from penstock.reference.runs import Runner, all_runs
from penstock.reference.windows import partitions, windows
from penstock.testing import stream
from tests.generators import FUNCTIONS, REMOTES, Case, Profile, cases
from tests.reference.laws import Told, found, in_order, last_event, law, places, plain, selecting, tell

BY_RUNS = (Policy.FIRST, Policy.STRICT)
ANY_CONSUME = Profile(types=2, limit=False, distinct=False, returns=False, partition=15)
NO_CONSUME = replace(ANY_CONSUME, consume=0)


# --- two ways to EACH ---------------------------------------------------------------------------------------


def _worlds(case: Case) -> Iterator[tuple[World, range]]:
    """Yield what each window of each partition is matched in."""
    for members in partitions(case.query, case.events).values():
        world = World(Stream(members), variables(case.query.pattern), FUNCTIONS, REMOTES)
        for _, positions in windows(case.query.window, world):
            yield world, positions


def _spelled(bindings: Iterable[Binding | None]) -> set[tuple[tuple[str, int], ...]]:
    return {tuple(sorted((b.variable, b.at) for b in each.bound)) for each in bindings if each is not None}


def _both_ways_agree(case: Case) -> bool:
    has_found = False
    for world, window in _worlds(case):
        asked = question(case.query)
        runner = Runner(asked, world, window)
        by_shapes = _spelled(assignments(asked, world, window))
        assert by_shapes == _spelled(runner.match_of(run) for run in all_runs(runner))
        has_found |= bool(by_shapes)
    return has_found


@law(cases(), examples=200)
def test_shapes_and_branching_runs_find_the_same(case: Case) -> bool:
    """Filling the places of every shape finds what runs find that branch at every event. For all queries."""
    return _both_ways_agree(case)


def test_a_run_is_opened_in_every_way_to_read_its_first_event() -> None:
    """Whether a list of none is there hangs on the branch that was taken, of which no event tells."""
    query = parse("PATTERN SEQ(OR(A* a[], B* b[]), C c, D d) WHERE COUNT(a[]) + d.n > 2 WITHIN 8 EVENTS")
    assert _both_ways_agree(Case(query, stream("C1 D2(n=1)")))


# --- the policies choose from EACH --------------------------------------------------------------------------


@law(cases(replace(ANY_CONSUME, policies=(*BY_RUNS, Policy.LAST))))
def test_first_last_and_strict_find_each_matches(case: Case) -> bool:
    """Every match of FIRST, LAST and STRICT is one of EACH, whatever is consumed. Without LIMIT and DISTINCT."""
    chosen = tell(case.query, case.events)
    assert chosen <= tell(plain(case.query), case.events)
    return bool(chosen)


@law(cases(replace(NO_CONSUME, policies=(Policy.LAST,))))
def test_last_is_the_latest_each_match_per_last_event(case: Case) -> bool:
    """LAST keeps one EACH match per last event, and none is later. Without CONSUME, LIMIT and DISTINCT."""
    at = places(case.events)
    order = [name for name, variable in variables(case.query.pattern).items() if not variable.negated]

    def lateness(match: Match) -> tuple[Any, ...]:
        backwards = [
            sorted((at[seq] for seq in numbers), reverse=True)
            for numbers in [match.events, *map(match.__getitem__, reversed(order))]
        ]
        return tuple(backwards)

    every = found(plain(case.query), case.events)
    latest = {key: max(group, key=lateness) for key, group in _by_last_event(every, at)}
    assert found(case.query, case.events) == frozenset(latest.values())
    return len(every) > len(latest)


@law(cases(replace(ANY_CONSUME, policies=(Policy.STRICT,))))
def test_strict_matches_have_no_gaps(case: Case) -> bool:
    """Between two events of a STRICT match there is no other of its partition. For all queries."""
    chosen = found(case.query, case.events)
    for key, members in partitions(case.query, case.events).items():
        at = places(members)
        for match in (each for each in chosen if each.key == key):
            taken = sorted(at[seq] for seq in match.events)
            assert taken == list(range(taken[0], taken[-1] + 1))
    return any(len(match.events) > 1 for match in chosen)


@law(cases(replace(NO_CONSUME, policies=(Policy.STRICT,))))
def test_strict_finds_only_what_first_finds(case: Case) -> bool:
    """A STRICT match is a FIRST match if no whole match can go on. Without CONSUME, LIMIT and DISTINCT."""
    if _can_go_on(case.query.pattern):
        return False
    strict = tell(case.query, case.events)
    assert strict <= tell(selecting(case.query, Policy.FIRST), case.events)
    return bool(strict)


def _can_go_on(pattern: ast.Pattern) -> bool:
    """Return whether something that matches a pattern could take more events: an open list or an option ends it."""
    match pattern:
        case ast.Event() | ast.Negation():
            return False
        case ast.Option():
            return True
        case ast.Repetition(part=part, low=low, high=high):
            return low != high or _can_go_on(part)
        case ast.Sequence(parts=parts):
            positive = [part for part in parts if not isinstance(part, ast.Negation)]
            return _can_go_on(positive[-1]) or can_be_empty(positive[-1])
        case _:
            return any(_can_go_on(part) or can_be_empty(part) for part in pattern.parts)


@law(cases(replace(NO_CONSUME, policies=(Policy.CUMULATIVE,))))
def test_cumulative_is_the_union_per_last_event(case: Case) -> bool:
    """CUMULATIVE binds, per last event, what the EACH matches bind. Without CONSUME, LIMIT and DISTINCT."""
    at = places(case.events)
    every = found(plain(case.query), case.events)
    unions = {(key, window, _union(group, at)) for (key, window, _), group in _by_last_event(every, at)}
    assert tell(case.query, case.events) == unions
    return len(every) > len(unions)


@law(cases(replace(NO_CONSUME, policies=(Policy.EACH,), per_variable=100)))
def test_per_variable_keeps_the_best_match_of_each_group(case: Case) -> bool:
    """`SELECT EACH, FIRST a, LAST b` keeps one EACH match of those that agree on the last event and on all others.

    Of the single events by which another match of the group differs, its last one in the text is later (LAST) or
    earlier (FIRST). CUMULATIVE variables get what they have in the group. Without CONSUME, LIMIT and DISTINCT.
    """
    at = places(case.events)
    listed = {each.variable: each.policy for each in case.query.select.variables}
    text = [name for name in variables(case.query.pattern) if listed.get(name) in (Policy.FIRST, Policy.LAST)]

    def group_of(match: Match) -> Told:
        others = frozenset((name, numbers) for name, numbers in match.bindings if name not in listed)
        return (*match.key, last_event(match, at)), match.window, others

    every, kept = found(plain(case.query), case.events), found(case.query, case.events)
    assert Counter(map(group_of, kept)) == Counter(set(map(group_of, every)))
    assert Policy.CUMULATIVE in listed.values() or kept <= every
    for match in kept:
        group = [each for each in every if group_of(each) == group_of(match)]
        assert all(set(match[name]) <= {seq for each in group for seq in each[name]} for name in listed)
        for other in group:
            name = next((name for name in reversed(text) if match[name] != other[name]), None)
            if name is not None and len(match[name]) == len(other[name]) == 1:
                is_later = at[match[name][0]] > at[other[name][0]]
                assert is_later is (listed[name] is Policy.LAST)
    return len(kept) < len(every)


def _by_last_event(
    matches: Iterable[Match], at: dict[int, int]
) -> list[tuple[tuple[tuple[Any, ...], int | None, int], list[Match]]]:
    """Group matches of the same partition and window by their last event."""

    def key(match: Match) -> tuple[Any, ...]:
        return match.key, match.window, last_event(match, at)

    groups = groupby(sorted(matches, key=lambda match: repr(key(match))), key)
    return [((name[0], name[1], name[2]), list(group)) for name, group in groups]


def _union(matches: list[Match], at: dict[int, int]) -> frozenset[tuple[str, tuple[int, ...]]]:
    names = {name for match in matches for name, _ in match.bindings}
    events = {name: {seq for match in matches for seq in match[name]} for name in names}
    return frozenset((name, tuple(sorted(numbers, key=at.__getitem__))) for name, numbers in events.items())


# --- CONSUME ------------------------------------------------------------------------------------------------


@law(cases(replace(ANY_CONSUME, policies=(Policy.EACH, Policy.LAST), consume=100)))
def test_consumption_only_takes_matches_away(case: Case) -> bool:
    """What EACH (also per variable) and LAST find with CONSUME, they find without. Without LIMIT and DISTINCT."""
    every = tell(replace(case.query, consume=ast.Consume()), case.events)
    left = tell(case.query, case.events)
    assert left <= every
    assert bool(left) == bool(every)
    return left < every


@law(cases(replace(ANY_CONSUME, policies=(Policy.CUMULATIVE,), consume=100)))
def test_consumption_only_takes_events_from_cumulative_matches(case: Case) -> bool:
    """A CUMULATIVE match with CONSUME is part of one without, with the same last event. Without LIMIT and DISTINCT."""
    at = places(case.events)
    every = found(replace(case.query, consume=ast.Consume()), case.events)
    whole = dict(_by_last_event(every, at))
    for key, (match, *others) in _by_last_event(found(case.query, case.events), at):
        assert not others
        assert all(set(numbers) <= set(whole[key][0][name]) for name, numbers in match.bindings)
    return bool(every)


@law(cases(Profile(types=2, consume=100)), examples=200)
def test_a_consumed_event_is_in_one_match(case: Case) -> bool:
    """In a window, an event that a match consumes is in no other match. For all queries."""
    consume, has_consumed = case.query.consume, False
    chosen = found(case.query, case.events)
    holders = Counter((match.key, match.window, seq) for match in chosen for seq in set(match.events))
    for match in chosen:
        consuming = {name.text for name in consume.variables} or set(dict(match.bindings) if consume.all else ())
        consumed = {seq for name in consuming for seq in match[name]}
        assert all(holders[match.key, match.window, seq] == 1 for seq in consumed)
        has_consumed |= bool(consumed)
    return has_consumed


# --- the stream is what it is -------------------------------------------------------------------------------


@law(cases())
def test_the_order_of_the_input_does_not_matter(case: Case) -> bool:
    """The same events in another order, or asked for again, give the same matches and columns. For all queries."""
    answers = [found(case.query, events) for events in (case.events, case.events[::-1], in_order(case.events))]
    answers.append(found(case.query, iter(case.events[1::2] + case.events[::2])))
    told_values = [{match: repr(match) for match in answer} for answer in answers]
    assert all(each == told_values[0] for each in told_values)
    return bool(answers[0])
