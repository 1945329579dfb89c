"""What may be wrong with a pattern whatever the events look like (docs/language.md, section 2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from penstock.errors import Problem
from penstock.pattern import ast
from penstock.pattern.render import quote_name
from penstock.pattern.subject import Check, Subject
from penstock.pattern.variables import can_be_empty

MAX_VARIABLES = 256

Path: TypeAlias = tuple[tuple[ast.Node, int], ...]  # the nodes around one, outermost first, and which child leads on
_GROUPS = {ast.Conjunction: "AND", ast.AnyOf: "ANY", ast.Repetition: "the repeated group"}


def too_many_variables(subject: Subject) -> Iterator[Problem]:
    """Find a pattern with more variables than are worked on."""
    events = list(ast.events(subject.query.pattern))
    if len(events) > MAX_VARIABLES:
        message = f"a pattern has at most {MAX_VARIABLES} variables, this one {len(events)}"
        fix = "split the query, or repeat a group: (SEQ(A a, B b)){2,5}"
        yield subject.problem("too-many-variables", message, events[MAX_VARIABLES], fix)


def duplicate_variables(subject: Subject) -> Iterator[Problem]:
    """Find variables that stand twice in the pattern."""
    first: dict[str, ast.Event] = {}
    taken = set(subject.variables)
    for event in ast.events(subject.query.pattern):
        if first.setdefault(event.variable, event) is event:
            continue
        number = next(n for n in range(2, len(taken) + 3) if f"{event.variable}{n}" not in taken)
        taken.add(f"{event.variable}{number}")
        line = subject.position(first[event.variable])
        message = f"the variable {event.variable} is used twice; first at {line.line}:{line.column}"
        fix = f"call one of them {quote_name(f'{event.variable}{number}')}"
        yield subject.problem("duplicate-variable", message, event, fix)


def misplaced_negations(subject: Subject) -> Iterator[Problem]:
    """Find negations that do not stand in a SEQ."""
    for negation, path in _negations(subject.query.pattern):
        if not path or not isinstance(path[-1][0], ast.Sequence):
            text = subject.text(negation)
            fix = f"say between which events it must not be, as in SEQ(A a, {text}, C c)"
            yield subject.problem("negation-place", "NOT is only meaningful in a SEQ", negation, fix)


def open_negations(subject: Subject) -> Iterator[Problem]:
    """Find negations in AND, ANY or a repeated group whose span does not end in it."""
    for negation, path in _negations(subject.query.pattern):
        if not path or not isinstance(path[-1][0], ast.Sequence):
            continue
        for side, verb in (("before", "precedes"), ("after", "follows")):
            group = _open_in(path, side)
            if group is not None:
                name = _GROUPS[type(group)]
                message = f"nothing that must be there {verb} {subject.text(negation)} inside {name}"
                fix = f"put an event {side} it in its SEQ, or move it out of {name}"
                yield subject.problem("open-negation", message, negation, fix)


def empty_pattern(subject: Subject) -> Iterator[Problem]:
    """Find a pattern that no event at all can match."""
    pattern = subject.query.pattern
    if not can_be_empty(pattern):
        return
    if all(variable.negated for variable in subject.variables.values()):
        fix = "add an event that must be there, as in SEQ(A a, NOT B b)"
        yield subject.problem("only-negation", "the pattern has only negated events", pattern, fix)
    else:
        fix = "make one part mandatory: A a instead of A? a, A+ a[] instead of A* a[]"
        yield subject.problem("empty-pattern", "the pattern can be matched by no event at all", pattern, fix)


def empty_parts(subject: Subject) -> Iterator[Problem]:
    """Find repetitions and members of ANY that no event at all can match."""
    for node in ast.walk(subject.query.pattern):
        if isinstance(node, ast.Repetition) and can_be_empty(node.part):
            message, fix = "what is repeated can be matched by no event at all", "make a part of it mandatory"
            yield subject.problem("empty-part", message, node.part, fix)
        if isinstance(node, ast.AnyOf):
            for part in filter(can_be_empty, node.parts):
                message, fix = "this member of ANY can be matched by no event at all", "make it mandatory, or drop it"
                yield subject.problem("empty-part", message, part, fix)


def any_counts(subject: Subject) -> Iterator[Problem]:
    """Find ANY that asks for more members than it has."""
    for node in ast.walk(subject.query.pattern):
        if isinstance(node, ast.AnyOf) and node.count > len(node.parts):
            members = "1 member" if len(node.parts) == 1 else f"{len(node.parts)} members"
            message = f"ANY asks for {node.count} of {members}"
            fix = f"ask for at most {len(node.parts)}, or add members"
            yield subject.problem("any-count", message, node, fix)


CHECKS: tuple[Check, ...] = (
    too_many_variables,
    duplicate_variables,
    misplaced_negations,
    open_negations,
    empty_pattern,
    empty_parts,
    any_counts,
)


def _negations(node: ast.Node, path: Path = ()) -> Iterator[tuple[ast.Negation, Path]]:
    if isinstance(node, ast.Negation):
        yield node, path
    for index, child in enumerate(ast.children(node)):
        yield from _negations(child, (*path, (node, index)))


def _open_in(path: Path, side: str) -> ast.Node | None:
    """Return the AND, ANY or repetition in which a negation's span does not end on a side; None if there is none."""
    for parent, index in reversed(path):
        if isinstance(parent, ast.Sequence):
            parts = parent.parts[:index] if side == "before" else parent.parts[index + 1 :]
            if not all(map(can_be_empty, parts)):
                return None
        elif isinstance(parent, ast.Conjunction | ast.AnyOf | ast.Repetition):
            return parent
    return None
