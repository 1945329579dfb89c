"""What means something, but surely not what was meant: conditions that never apply, spans that hold no match.

Such a query can be run, so these checks stand apart from those of what cannot (`validate.validate`, `strict`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto

from penstock.errors import Problem
from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.pattern.references import Reference, groups_of, references
from penstock.pattern.render import quote_name
from penstock.pattern.subject import Check, Formula, Subject


class _When(Enum):
    """When a reference is there: its variable is bound (in the round), its list has elements, its list was reached."""

    HERE = auto()
    SOMEWHERE = auto()
    REACHED = auto()


@dataclass(frozen=True)
class _Use:
    variable: str
    when: _When


@dataclass(frozen=True)
class _Clash:
    """An OR or ANY that cannot bind all that is used of its parts, and what that is, part by part."""

    node: ast.Disjunction | ast.AnyOf
    used: tuple[tuple[str, ...], ...]
    is_of_a_round: bool = False

    def message(self) -> str:
        """Return why they are not there together."""
        names, where = [quote_name(part[0]) for part in self.used], " in a round" if self.is_of_a_round else ""
        if isinstance(self.node, ast.AnyOf):
            return f"ANY binds only {self.node.count} of {', '.join(names)}{where}: they are never there together"
        return f"{names[0]} and {names[1]} are never there together{where}: they are of different branches of an OR"


def never_applies(subject: Subject) -> Iterator[Problem]:
    """Find conjuncts that name variables which are never bound together, so that they filter nothing."""
    for formula, clash in _clashes(subject, "WHERE"):
        yield subject.problem("never-applies", clash.message(), formula.expression, _split(subject, formula, clash))


def never_there(subject: Subject) -> Iterator[Problem]:
    """Find columns that are null in every match. CUMULATIVE puts together what several matches bind."""
    select = subject.query.select
    if Policy.CUMULATIVE in (select.policy, *(each.policy for each in select.variables)):
        return
    for formula, clash in _clashes(subject, "RETURN"):
        fix = "return what is of different branches in columns of their own"
        yield subject.problem("never-there", clash.message(), formula.expression, fix)


def too_short(subject: Subject) -> Iterator[Problem]:
    """Find WITHIN and WINDOW of fewer events than any match has."""
    window, least = subject.query.window, least_events(subject.query.pattern)
    for clause, span in (("WITHIN", subject.query.within), ("WINDOW", window.length if window else None)):
        if isinstance(span, ast.CountSpan) and 0 < span.events < least:
            message = f"{clause} is too short: a match has at least {least} events"
            yield subject.problem("too-short", message, span, f"write at least {least} EVENTS")


CHECKS: tuple[Check, ...] = (never_applies, never_there, too_short)


def least_events(pattern: ast.Pattern) -> int:
    """Return the least number of events that can match a pattern.

    Examples:
        >>> from penstock.pattern.parser import parse
        >>> least_events(parse("PATTERN SEQ(A{2,5} a[], OR(SEQ(B b, C c), D d), NOT E e, F? f) WITHIN 1 s").pattern)
        3
    """
    match pattern:
        case ast.Event():
            return 1
        case ast.Negation() | ast.Option():
            return 0
        case ast.Repetition(part=part, low=low):
            return low * least_events(part)
        case ast.Sequence(parts=parts) | ast.Conjunction(parts=parts):
            return sum(map(least_events, parts))
        case ast.Disjunction(parts=parts):
            return min(map(least_events, parts))
        case ast.AnyOf(count=count, parts=parts):
            return sum(sorted(map(least_events, parts))[:count])


def _clashes(subject: Subject, clause: str) -> Iterator[tuple[Formula, _Clash]]:
    pattern = subject.query.pattern
    if len(subject.variables) < sum(1 for _ in ast.events(pattern)):
        return  # a name that stands twice says not which is meant
    for formula in subject.formulas:
        if formula.clause == clause:
            clash = _clash(pattern, _uses(formula))
            if clash is not None:
                yield formula, clash


def _uses(formula: Formula) -> set[_Use]:
    known = [ref for ref in references(formula.expression) if ref.variable in formula.scope]
    return {_Use(ref.variable, _when(ref, formula)) for ref in known}


def _when(ref: Reference, formula: Formula) -> _When:
    variable = formula.scope[ref.variable]
    if not variable.is_list or groups_of(ref, variable):
        return _When.HERE
    is_there_if_empty = isinstance(ref, ast.Aggregate) and ref.function in ("COUNT", "SUM")
    return _When.REACHED if is_there_if_empty else _When.SOMEWHERE


def _clash(pattern: ast.Pattern, uses: set[_Use]) -> _Clash | None:
    """Return why no match has all that is used of a pattern; None if one may have it."""
    if len(uses) < 2:
        return None
    match pattern:
        case ast.Event() | ast.Negation():
            return None
        case ast.Option(part=part):
            return _clash(part, uses)
        case ast.Repetition(part=part, high=high):
            # Several rounds may bind what one cannot; whether there are enough of them is not asked.
            in_one = {_When.HERE, _When.SOMEWHERE} if high == 1 else {_When.HERE}
            clash = _clash(part, {use for use in uses if use.when in in_one})
            return clash and replace(clash, is_of_a_round=high != 1 or clash.is_of_a_round)
        case _:
            return _clash_of_parts(pattern, uses)


def _clash_of_parts(
    pattern: ast.Sequence | ast.Conjunction | ast.Disjunction | ast.AnyOf, uses: set[_Use]
) -> _Clash | None:
    divided = [(part, _used_in(part, uses)) for part in pattern.parts]
    taken = [(part, used) for part, used in divided if used]
    if isinstance(pattern, ast.Disjunction | ast.AnyOf):
        most = pattern.count if isinstance(pattern, ast.AnyOf) else 1
        if len(taken) > most:
            return _Clash(pattern, tuple(_names(part, used) for part, used in taken))
    return next(filter(None, (_clash(part, used) for part, used in taken)), None)


def _used_in(part: ast.Pattern, uses: set[_Use]) -> set[_Use]:
    inside = {event.variable for event in ast.events(part)}
    return {use for use in uses if use.variable in inside}


def _names(part: ast.Pattern, uses: set[_Use]) -> tuple[str, ...]:
    used = {use.variable for use in uses}
    return tuple(event.variable for event in ast.events(part) if event.variable in used)


def _split(subject: Subject, formula: Formula, clash: _Clash) -> str:
    """Return how to say it conjunct by conjunct; word for word if each side of an OR speaks of one branch."""
    if isinstance(clash.node, ast.AnyOf):
        return f"write conjuncts that name at most {clash.node.count} of them each, with AND between"
    items = formula.expression.items if isinstance(formula.expression, ast.Or) else ()
    branches = [_branches(clash, item) for item in items]
    if sorted(branches) == [[number] for number in range(len(clash.used))] and not any(map(_is_or, items)):
        return f"write one conjunct per branch: {' AND '.join(map(subject.text, items))}"
    return "write one conjunct per branch, with AND between: each applies where its branch is taken"


def _branches(clash: _Clash, item: ast.Expression) -> list[int]:
    named = set(ast.variables_of(item))
    return [number for number, used in enumerate(clash.used) if named.intersection(used)]


def _is_or(item: ast.Expression) -> bool:
    return isinstance(item, ast.Or)
