"""What may be wrong with the clauses after WHERE, whatever the events look like (docs/language.md, sections 4 to 8)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from penstock.errors import Position, Problem, position_at
from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.pattern.render import quote_name, render_expression
from penstock.pattern.subject import Check, Subject, did_you_mean


def no_within(subject: Subject) -> Iterator[Problem]:
    """Find a query without WITHIN."""
    if subject.query.within is None:
        message = "WITHIN is missing: without it, what is remembered has no bound"
        fix = "say how far apart the events may be: WITHIN 5 min, or WITHIN 100 EVENTS"
        yield subject.problem("no-within", message, _after_where(subject), fix)


def zero_spans(subject: Subject) -> Iterator[Problem]:
    """Find WITHIN, WINDOW and EVERY of length zero."""
    window = subject.query.window
    spans = {"WITHIN": subject.query.within}
    if window is not None:
        spans |= {"WINDOW": window.length, "EVERY": window.every}
    for clause, span in spans.items():
        if span is not None and (span.us if isinstance(span, ast.TimeSpan) else span.events) == 0:
            least = "1 us" if isinstance(span, ast.TimeSpan) else "1 EVENTS"
            yield subject.problem("zero-span", f"{clause} must be longer than nothing", span, f"write at least {least}")


def every_units(subject: Subject) -> Iterator[Problem]:
    """Find EVERY in another unit than its WINDOW. That it is longer is no mistake: then there are gaps."""
    window = subject.query.window
    if window is not None and window.every is not None and type(window.every) is not type(window.length):
        unit = "a duration" if isinstance(window.length, ast.TimeSpan) else "a number of EVENTS"
        message = f"the window's length is {unit}, but EVERY is not"
        yield subject.problem("every-unit", message, window.every, f"write {unit} after EVERY")


def limit_without_window(subject: Subject) -> Iterator[Problem]:
    """Find LIMIT … PER WINDOW where there are no windows."""
    if subject.query.limit is not None and subject.query.window is None:
        fix = "add WINDOW before it, as in WINDOW 250 s EVERY 10 s, or drop it"
        yield subject.problem("limit-without-window", "LIMIT … PER WINDOW needs a WINDOW", _limit(subject), fix)


def select_policies(subject: Subject) -> Iterator[Problem]:
    """Find policies per variable that do not go together with the one before them."""
    select = subject.query.select
    if select.variables and select.policy is not Policy.EACH:
        message = f"a policy per variable goes with EACH, not with {select.policy}"
        fix = f"write SELECT EACH, …, or SELECT {select.policy} alone"
        yield subject.problem("select-base", message, select, fix)
    for each in select.variables:
        if each.policy in (Policy.EACH, Policy.STRICT):
            message = f"{each.policy} is no policy of one variable"
            fix = f"write FIRST, LAST or CUMULATIVE {quote_name(each.variable)}, or drop it"
            yield subject.problem("select-policy", message, each, fix)


def listed_variables(subject: Subject) -> Iterator[Problem]:
    """Find variables in SELECT and CONSUME that are unknown, negated or listed twice."""
    consumed = [(each.text, each) for each in subject.query.consume.variables]
    yield from _listed(subject, "SELECT", [(each.variable, each) for each in subject.query.select.variables])
    yield from _listed(subject, "CONSUME", consumed)


def duplicate_columns(subject: Subject) -> Iterator[Problem]:
    """Find RETURN columns of the same name."""
    seen: set[str] = set()
    for column in subject.query.returns:
        name = column.name or render_expression(column.expression)
        if name in seen:
            fix = f"give one of them another name: {subject.text(column.expression)} AS other"
            yield subject.problem("duplicate-column", f"two columns are called {name}", column, fix)
        seen.add(name)


CHECKS: tuple[Check, ...] = (
    no_within,
    zero_spans,
    every_units,
    limit_without_window,
    select_policies,
    listed_variables,
    duplicate_columns,
)


def _listed(subject: Subject, clause: str, listed: Iterable[tuple[str, ast.Node]]) -> Iterator[Problem]:
    there = [name for name, variable in subject.variables.items() if not variable.negated]
    seen: set[str] = set()
    for name, node in listed:
        if name not in subject.variables:
            message = f"the pattern has no variable {name}"
            yield subject.problem("unknown-variable", message, node, did_you_mean(name, there))
        elif subject.variables[name].negated:
            message = f"{name} is negated: a match has no such event"
            yield subject.problem("negated-variable", message, node, f"drop {quote_name(name)} from {clause}")
        if name in seen:
            yield subject.problem("listed-twice", f"{clause} lists {name} twice", node, "list it once")
        seen.add(name)


def _after_where(subject: Subject) -> Position:
    """Return the place at which WITHIN would stand."""
    end = subject.position(subject.query.where or subject.query.pattern).end
    closing = re.compile(r"(\s*\))*").match(subject.source, end)
    return position_at(subject.source, closing.end() if closing else end)


def _limit(subject: Subject) -> Position | None:
    found = list(re.finditer(r"\bLIMIT\s+\S+\s+PER\s+WINDOW\b", subject.source, re.IGNORECASE))
    return position_at(subject.source, found[-1].start(), found[-1].end()) if found else None
