"""Laws of the pattern constructs, WHERE and WITHIN, on random queries and streams (docs/language.md, 2 to 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.pattern.variables import can_be_empty, variables
from penstock.reference import Event, Match
from penstock.reference.windows import partitions
from tests.generators import Case, Profile, cases
from tests.reference.laws import (
    Told,
    conjunction,
    found,
    law,
    parts_of,
    places,
    rewritten,
    tell,
    told,
    with_pattern,
)

EACH = Profile(
    policies=(Policy.EACH,),
    per_variable=0,
    consume=0,
    limit=False,
    distinct=False,
    returns=False,
    window=30,
    partition=15,
)
ONE_BY_ONE = (Policy.EACH, Policy.FIRST, Policy.STRICT)  # what these find of one branch does not hang on the other


@st.composite
def _with_number(draw: DrawFn, profile: Profile) -> tuple[Case, int]:
    return draw(cases(profile)), draw(st.integers(0, 5))


def _union(queries: Iterator[ast.Query], case: Case) -> set[Told]:
    return {each for query in queries for each in tell(query, case.events)}


# --- AND, OR, ANY -------------------------------------------------------------------------------------------


@law(cases(replace(EACH, top="sequence")))
def test_seq_finds_only_what_and_finds(case: Case) -> bool:
    """What SEQ(p, q) finds, AND(p, q) finds. EACH; negations in p and q must be between events of theirs.

    Others are refused in AND.
    """
    parts = tuple(part for part in parts_of(case.query.pattern) if not isinstance(part, ast.Negation))
    if any(map(_has_open_negation, parts)):
        return False
    ordered = tell(case.query, case.events)
    assert ordered <= tell(with_pattern(case.query, ast.Conjunction(parts)), case.events)
    return bool(ordered)


@law(_with_number(replace(EACH, top="and", policies=(Policy.EACH, Policy.CUMULATIVE))))
def test_and_is_symmetric(example: tuple[Case, int]) -> bool:
    """The order of the parts of AND does not matter. EACH and CUMULATIVE; elsewhere the order of the text decides."""
    case, number = example
    parts = parts_of(case.query.pattern)
    first = 1 + number % (len(parts) - 1)
    turned = replace(case.query, pattern=ast.Conjunction(parts[first:] + parts[:first]))
    matches = tell(case.query, case.events)
    assert matches == tell(turned, case.events)
    return bool(matches)


@law(cases(replace(EACH, top="or", policies=ONE_BY_ONE, distinct=True)))
def test_or_is_a_union(case: Case) -> bool:
    """OR(p, q) finds what p finds and what q finds. EACH, FIRST and STRICT, without CONSUME and LIMIT."""
    branches = (with_pattern(case.query, part) for part in parts_of(case.query.pattern))
    matches = tell(case.query, case.events)
    assert matches == _union(branches, case)
    return bool(matches)


@law(st.one_of([cases(Profile(top="any", types=types)) for types in (1, 2)]), examples=200)
def test_any_of_all_is_and(case: Case) -> bool:
    """ANY(n, …) of n members is AND. For all queries."""
    parts = parts_of(case.query.pattern)
    matches = found(replace(case.query, pattern=ast.AnyOf(len(parts), parts)), case.events)
    assert matches == found(replace(case.query, pattern=ast.Conjunction(parts)), case.events)
    return bool(matches)


@law(cases(replace(EACH, top="any")))
def test_any_is_the_union_over_its_choices(case: Case) -> bool:
    """ANY(n, …) finds what AND finds of each n of its members. EACH."""
    pattern = case.query.pattern
    assert isinstance(pattern, ast.AnyOf)
    chosen = combinations(pattern.parts, pattern.count)
    matches = tell(case.query, case.events)
    assert matches == _union((with_pattern(case.query, ast.Conjunction(some)) for some in chosen), case)
    return bool(matches) and pattern.count < len(pattern.parts)


@law(st.one_of([_with_number(Profile(top=top, types=2, negation=3)) for top in ("sequence", "and", "or")]))
def test_brackets_do_not_matter(example: tuple[Case, int]) -> bool:
    """SEQ(SEQ(p, q), r) is SEQ(p, q, r); likewise AND in AND and OR in OR. For all queries."""
    case, number = example
    pattern = case.query.pattern
    assert isinstance(pattern, ast.Sequence | ast.Conjunction | ast.Disjunction)
    first, parts = number % len(pattern.parts), pattern.parts
    inner = replace(pattern, parts=parts[first : first + 2])
    bracketed = replace(pattern, parts=(*parts[:first], inner, *parts[first + 2 :]))
    matches = found(case.query, case.events)
    assert matches == found(replace(case.query, pattern=bracketed), case.events)
    return bool(matches) and len(parts) > 2


# --- repetition and options ---------------------------------------------------------------------------------


def _changed(pattern: ast.Pattern, old: ast.Pattern, new: ast.Pattern | None) -> ast.Pattern:
    """Put something in the place of a part, or take it away."""
    found_it: list[bool] = []

    def change(part: ast.Pattern) -> ast.Pattern | None:
        if part == old and not found_it:
            found_it.append(True)
            return new
        return part

    changed = rewritten(pattern, change)
    assert changed is not None
    return changed


def _outside_repetitions(pattern: ast.Pattern) -> Iterator[tuple[ast.Pattern, ast.Pattern]]:
    """Yield the parts that are in no repetition, each with what it is a part of."""
    for child in ast.children(pattern):
        assert isinstance(child, ast.Pattern)
        yield pattern, child
        if not isinstance(child, ast.Repetition | ast.Negation):
            yield from _outside_repetitions(child)


@law(cases(replace(EACH, top="sequence", leaves=4, repetition=2)))
def test_a_repetition_is_the_union_over_its_counts(case: Case) -> bool:
    """p{1,3} finds what p{1}, p{2} and p{3} find, and p+ what all of them find. EACH, outside other repetitions.

    At least once: p{0} is no pattern.
    """
    lists = (part for _, part in _outside_repetitions(case.query.pattern) if isinstance(part, ast.Repetition))
    repetition = next((each for each in lists if each.low > 0), None)
    if repetition is None:
        return False
    high = len(case.events) if repetition.high is None else min(repetition.high, len(case.events))
    highest = max(high, repetition.low)  # also if there are too few events: it may be optional
    counts = (replace(repetition, low=count, high=count) for count in range(repetition.low, highest + 1))
    fixed = (replace(case.query, pattern=_changed(case.query.pattern, repetition, each)) for each in counts)
    matches = tell(case.query, case.events)
    assert matches == _union(fixed, case)
    return bool(matches) and repetition.low != repetition.high


@law(_with_number(replace(EACH, top="sequence")))
def test_an_option_is_with_and_without(example: tuple[Case, int]) -> bool:
    """SEQ(p, (q)?) finds what SEQ(p, q) finds and what SEQ(p) finds. EACH; likewise options in AND."""
    case, number = example
    pattern = case.query.pattern
    parts = parts_of(pattern)
    chosen = parts[number % len(parts)]
    others = tuple(part for part in parts if part is not chosen)
    if isinstance(chosen, ast.Negation) or all(map(can_be_empty, others)):
        return False
    optional = replace(case.query, pattern=_changed(pattern, chosen, ast.Option(chosen)))
    matches = tell(optional, case.events)
    without = with_pattern(case.query, ast.Sequence(others))
    assert matches == tell(case.query, case.events) | tell(without, case.events)
    return bool(matches)


@law(cases(replace(EACH, top="sequence", leaves=4, repetition=3, aggregates=False)), examples=200)
def test_a_fixed_count_unrolls(case: Case) -> bool:
    """A{2} a[] is SEQ(A a1, A a2), with the conjuncts on each element written out. EACH, outside repetitions.

    Without aggregates, for which there is no other way to write them.
    """
    lists = (part for _, part in _outside_repetitions(case.query.pattern) if isinstance(part, ast.Repetition))
    repetition = next((each for each in lists if isinstance(each.part, ast.Event)), None)
    if repetition is None:
        return False
    assert isinstance(repetition.part, ast.Event)
    event, count = repetition.part, max(repetition.low, 1) + 1
    names = [f"{event.variable}{number}" for number in range(1, count + 1)]
    fixed = _changed(case.query.pattern, repetition, ast.Repetition(event, count, count))
    unrolled = ast.Sequence(tuple(replace(event, variable=name) for name in names))
    where = [
        written
        for conjunct in ast.conjuncts(case.query.where)
        for written in _written_out(conjunct, event.variable, names)
    ]
    flat = replace(case.query, pattern=_changed(fixed, ast.Repetition(event, count, count), unrolled))
    matches = found(replace(case.query, pattern=fixed), case.events)
    by_name = {
        (key, window, frozenset(_gathered(bindings, event.variable, names)))
        for key, window, bindings in tell(replace(flat, where=conjunction(where)), case.events)
    }
    assert told(matches) == by_name
    return bool(matches)


def _gathered(
    bindings: frozenset[tuple[str, tuple[int, ...]]], variable: str, names: list[str]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the bindings with those of some variables as a list."""
    numbers = dict(bindings)
    yield from ((name, bound) for name, bound in bindings if name not in names)
    if names[0] in numbers:
        yield variable, tuple(seq for name in names for seq in numbers[name])


def _written_out(conjunct: ast.Expression, variable: str, names: list[str]) -> Iterator[ast.Expression]:
    """Yield what a conjunct says about each element of a list that has become variables."""
    refs = [node for node in ast.walk(conjunct) if isinstance(node, ast.Attribute) and node.variable == variable]
    if any(isinstance(ref.index, int) and ref.index > len(names) for ref in refs):
        return  # vacuous
    ranges = any(ref.index in (None, "i", "i-1") for ref in refs)
    has_before = any(ref.index == "i-1" for ref in refs)
    for number in range(1 if has_before else 0, len(names) if ranges else 1):

        def element(ref: ast.Attribute, here: int = number) -> ast.Attribute:
            if ref.variable != variable:
                return ref
            at = {"first": 0, "last": -1, "i-1": here - 1}.get(str(ref.index), here)
            return ast.Attribute(names[ref.index - 1 if isinstance(ref.index, int) else at], ref.name)

        yield _with_attributes(conjunct, element)


def _with_attributes(node: ast.Expression, change: Callable[[ast.Attribute], ast.Attribute]) -> ast.Expression:
    """Return an expression with every attribute changed."""
    if isinstance(node, ast.Attribute):
        return change(node)
    values: dict[str, Any] = {}
    for name, value in vars(node).items():
        if isinstance(value, ast.Expression):
            values[name] = _with_attributes(value, change)
        elif isinstance(value, tuple) and not isinstance(node, ast.Same):
            values[name] = tuple(_with_attributes(each, change) for each in value)
    return replace(node, **values)


# --- NOT, WHERE, WITHIN -------------------------------------------------------------------------------------


@law(cases(replace(EACH, top="sequence", leaves=3, negation=4, window=20)))
def test_negation_only_takes_matches_away(case: Case) -> bool:
    """What is found with NOT is found without, and without the conjuncts on it. EACH."""
    pattern = rewritten(case.query.pattern, lambda part: None if isinstance(part, ast.Negation) else part)
    assert pattern is not None
    every = tell(with_pattern(case.query, pattern), case.events)
    left = tell(case.query, case.events)
    assert left <= every
    return left < every


@law(_with_number(EACH))
def test_a_further_conjunct_takes_away_or_permits(example: tuple[Case, int]) -> bool:
    """A further conjunct only takes matches away; one on a negated variable forbids less, so it only adds. EACH.

    SAME says something about both, so this is of SAME only where there is no negation.
    """
    case, number = example
    conjuncts = list(ast.conjuncts(case.query.where))
    if not conjuncts:
        return False
    dropped = conjuncts.pop(number % len(conjuncts))
    negated = {name for name, variable in variables(case.query.pattern).items() if variable.negated}
    if isinstance(dropped, ast.Same) and negated:
        return False
    with_it, without = (
        tell(each, case.events) for each in (case.query, replace(case.query, where=conjunction(conjuncts)))
    )
    assert with_it >= without if negated.intersection(ast.variables_of(dropped)) else with_it <= without
    return with_it != without


@law(cases())
def test_every_match_is_within_its_span_and_of_its_types(case: Case) -> bool:
    """A match spans at most WITHIN, its events are of their types, and it uses none twice. For all queries.

    CUMULATIVE may bind an event to several variables.
    """
    events, chosen = {event.seq: event for event in case.events}, found(case.query, case.events)
    positions = {key: places(members) for key, members in partitions(case.query, case.events).items()}
    is_gathered = Policy.CUMULATIVE in {case.query.select.policy, *(s.policy for s in case.query.select.variables)}
    for match in chosen:
        assert _span(match, positions[match.key], events, case.query.within) <= _length(case.query.within)
        assert is_gathered or len(set(match.events)) == len(match.events)
        for name, numbers in match.bindings:
            types = variables(case.query.pattern)[name].event.types
            assert not types or {events[seq].type for seq in numbers} <= set(types)
    return any(len(match.events) > 1 for match in chosen)


@law(_with_number(EACH))
def test_a_shorter_within_keeps_the_matches_that_are_short_enough(example: tuple[Case, int]) -> bool:
    """The matches of a shorter WITHIN are those of a longer one that fit into it; so WITHIN is monotone.

    EACH, without negations that nothing precedes or follows: their span hangs on WITHIN.
    """
    case, number = example
    if _has_open_negation(case.query.pattern):
        return False
    length = _length(case.query.within)
    shorter = ast.TimeSpan(length) if isinstance(case.query.within, ast.TimeSpan) else ast.CountSpan(length + 1)
    if isinstance(shorter, ast.TimeSpan):
        shorter = replace(shorter, us=max(1, length * number // 6))
    else:
        shorter = replace(shorter, events=max(1, (length + 1) * number // 6))
    events = {event.seq: event for event in case.events}
    positions = {key: places(members) for key, members in partitions(case.query, case.events).items()}
    every = found(case.query, case.events)
    short = {m for m in every if _span(m, positions[m.key], events, shorter) <= _length(shorter)}
    assert found(replace(case.query, within=shorter), case.events) == short
    return bool(short) and len(short) < len(every)


def _length(within: ast.Span | None) -> int:
    """Return the longest distance that WITHIN allows: in microseconds, or in positions."""
    assert within is not None
    return within.us if isinstance(within, ast.TimeSpan) else within.events - 1


def _span(match: Match, at: dict[int, int], events: dict[int, Event], within: ast.Span | None) -> int:
    """Return the distance from the first to the last event of a match, in the unit of WITHIN."""
    is_time = isinstance(within, ast.TimeSpan)
    distances = [events[seq].ts if is_time else at[seq] for seq in match.events]
    return max(distances) - min(distances)


def _has_open_negation(pattern: ast.Pattern, before: bool = False, after: bool = False) -> bool:
    """Return whether there may be a negation before or after which no event is bound."""
    match pattern:
        case ast.Negation():
            return not (before and after)
        case ast.Sequence(parts=parts):
            binds = [not can_be_empty(part) for part in parts]
            return any(
                _has_open_negation(part, before or any(binds[:at]), after or any(binds[at + 1 :]))
                for at, part in enumerate(parts)
            )
        case ast.Event():
            return False
        case _:
            below = [child for child in ast.children(pattern) if isinstance(child, ast.Pattern)]
            return any(_has_open_negation(part, before, after) for part in below)
