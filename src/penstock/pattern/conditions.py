"""What may be wrong with WHERE and RETURN whatever the events look like (docs/language.md, section 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.errors import Problem
from penstock.pattern import ast
from penstock.pattern.folding import is_never_true
from penstock.pattern.functions import AGGREGATES, built_in, counts_text
from penstock.pattern.hints import comma_number
from penstock.pattern.references import Reference, groups_of, references
from penstock.pattern.render import quote_attribute, quote_name
from penstock.pattern.subject import Check, Formula, Subject, did_you_mean


def unknown_variables(subject: Subject) -> Iterator[Problem]:
    """Find variables that the pattern does not have; the WHERE of WINDOW … ON has one of its own."""
    for formula in subject.formulas:
        for ref in references(formula.expression):
            if ref.variable in formula.scope:
                continue
            owner = "WINDOW … ON" if formula.clause == "ON" else "the pattern"
            fix = did_you_mean(ref.variable, formula.scope)
            message = f"{owner} has no variable {ref.variable}"
            yield subject.problem("unknown-variable", message, ref, fix)


def elements_of_no_list(subject: Subject) -> Iterator[Problem]:
    """Find indices and aggregates of variables that are no list, or that are negated."""
    for formula in subject.formulas:
        for ref in references(formula.expression):
            variable = formula.scope.get(ref.variable)
            index = ref.index if isinstance(ref, ast.Attribute) else "[]"
            if variable is None or index is None or (variable.is_list and not variable.negated):
                continue
            name = quote_name(ref.variable)
            plain = "" if ref.name is None else f"write {name}.{quote_attribute(ref.name)}"
            if not variable.negated:
                repeated = f"repeat it: {'|'.join(map(quote_name, variable.event.types)) or '*'}+ {name}[]"
                ways = [plain or "drop it"] if formula.clause == "ON" else filter(None, [plain, repeated])
                fix = ", or ".join(ways)
                message = f"{ref.variable} is not repeated: it is one event, not a list"
                yield subject.problem("not-a-list", message, ref, fix)
            elif index != "i" or not variable.is_list:
                message = f"{ref.variable} is negated: there is no list of its events"
                yield subject.problem("negated-element", message, ref, plain or "count events that are there")


def side_by_side(subject: Subject) -> Iterator[Problem]:
    """Find conjuncts and columns that range over repetitions of which neither is inside the other."""
    for formula in subject.formulas:
        ranges = [
            (ref, groups_of(ref, formula.scope[ref.variable]))
            for ref in references(formula.expression)
            if ref.variable in formula.scope
        ]
        if not ranges:
            continue
        deepest, longest = max(ranges, key=lambda pair: len(pair[1]))
        for ref, groups in ranges:
            if groups != longest[: len(groups)]:
                message = f"this ranges over {deepest.variable} and {ref.variable}, which repeat independently"
                one = deepest if formula.scope[ref.variable].negated else ref
                fix = f"take one element or an aggregate of one of them: {_single(one)}"
                yield subject.problem("side-by-side", message, formula.expression, fix)
                break


def several_negated(subject: Subject) -> Iterator[Problem]:
    """Find conjuncts that name two negated variables."""
    for formula in subject.formulas:
        names = ast.variables_of(formula.expression)
        negated = [name for name in names if _is_negated(formula, name)]
        if formula.clause == "WHERE" and len(negated) > 1:
            message = f"this compares the negated events {' and '.join(negated)}, of which neither is there"
            fix = "compare each with an event that is there, in a conjunct of its own"
            yield subject.problem("two-negated", message, formula.expression, fix)


def misplaced_same(subject: Subject) -> Iterator[Problem]:
    """Find SAME anywhere but as a conjunct of WHERE."""
    for formula in subject.formulas:
        for node in ast.walk(formula.expression):
            if not isinstance(node, ast.Same) or (formula.clause == "WHERE" and node is formula.expression):
                continue
            key = quote_attribute(node.keys[0].attribute)
            there = [f"{quote_name(name)}.{key}" for name in formula.scope if not _is_negated(formula, name)]
            fix = {
                "ON": "drop it: there is only one event",
                "RETURN": f"return the attribute of a variable: {', '.join(there[:1])}",
                "WHERE": f"say which events are compared, as in {' = '.join(there[:2])}",
            }[formula.clause]
            yield subject.problem("same-place", "SAME can only be a conjunct of WHERE of its own", node, fix)


def negated_columns(subject: Subject) -> Iterator[Problem]:
    """Find negated variables in RETURN."""
    for formula in subject.formulas:
        for ref in references(formula.expression):
            if formula.clause == "RETURN" and _is_negated(formula, ref.variable):
                message = f"{ref.variable} is negated: a match has no such event"
                yield subject.problem("negated-variable", message, ref, "return something of an event that is there")


def values_as_conditions(subject: Subject) -> Iterator[Problem]:
    """Find numbers and texts where a condition must stand."""
    told: set[int] = set()
    for formula in subject.formulas:
        for node in conditions_in(formula):
            if isinstance(node, VALUES):
                comma = comma_number(subject.source, subject.position(node).start)
                if comma is None or comma.start not in told:  # 1,000,000 is three values, and one mistake
                    fix = comma.fix if comma else "compare it with something"
                    message = f"{subject.text(node)} is a value, but a condition must stand here"
                    yield subject.problem("not-boolean", message, node, fix)
                told |= {comma.start} if comma else set()


def argument_counts(subject: Subject) -> Iterator[Problem]:
    """Find built-in functions with a wrong number of arguments."""
    for formula in subject.formulas:
        for node in ast.walk(formula.expression):
            if not isinstance(node, ast.Call | ast.SameKey) or node.function is None:
                continue
            function = built_in(node.function)
            arguments = node.arguments if isinstance(node, ast.Call) else (ast.Name(node.attribute),)
            if function is not None and len(arguments) not in function.counts:
                yield wrong_count(subject, node, node.function, arguments, function.counts)


def never_true(subject: Subject) -> Iterator[Problem]:
    """Find conjuncts that no events can satisfy."""
    for formula in subject.formulas:
        if formula.clause != "RETURN" and is_never_true(formula.expression):
            fix = "drop it, or compare with something that an event has"
            yield subject.problem("never-true", "this condition is never true", formula.expression, fix)


CHECKS: tuple[Check, ...] = (
    unknown_variables,
    elements_of_no_list,
    side_by_side,
    several_negated,
    misplaced_same,
    negated_columns,
    values_as_conditions,
    argument_counts,
    never_true,
)

# What is never true or false, whatever the types of attributes are.
VALUES = ast.Number | ast.Duration | ast.Text | ast.Minus | ast.Arithmetic | ast.Aggregate


def conditions_in(formula: Formula) -> Iterator[ast.Expression]:
    """Yield every expression that must be true or false: conjuncts, and what stands beside AND, OR and NOT."""
    if formula.clause != "RETURN":
        yield formula.expression
    for node in ast.walk(formula.expression):
        if isinstance(node, ast.And | ast.Or):
            yield from node.items
        elif isinstance(node, ast.Not):
            yield node.item


def wrong_count(
    subject: Subject, at: ast.Node, name: str, arguments: Sequence[ast.Node], counts: range | tuple[int, ...]
) -> Problem:
    """Return the problem of a function with a wrong number of arguments."""
    message = f"{name} takes {counts_text(counts)}, not {len(arguments)}"
    fix = as_aggregate(name, arguments) or f"give it {counts_text(counts)}"
    return subject.problem("argument-count", message, at, fix)


def as_aggregate(name: str, arguments: Sequence[ast.Node]) -> str:
    """Return the fix for an aggregate written like a function, `SUM(a.x)`; "" for any other function."""
    if name.upper() in AGGREGATES and len(arguments) == 1 and isinstance(arguments[0], ast.Attribute):
        variable, attribute = quote_name(arguments[0].variable), quote_attribute(arguments[0].name)
        return f"of a list, write {name.upper()}({variable}[].{attribute})"
    return ""


def _is_negated(formula: Formula, name: str) -> bool:
    return name in formula.scope and formula.scope[name].negated


def _single(ref: Reference) -> str:
    """Return how to name one value of a list instead of each."""
    name, attribute = quote_name(ref.variable), "" if ref.name is None else f".{quote_attribute(ref.name)}"
    if isinstance(ref, ast.Aggregate):
        return f"{ref.function}({name}[]{attribute})"
    return f"{name}[last]{attribute} or MAX({name}[]{attribute})"
