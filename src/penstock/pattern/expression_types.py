"""Whether a query fits its schema: names that are known, values of types that go together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.errors import Problem
from penstock.pattern import ast
from penstock.pattern.conditions import VALUES, as_aggregate, wrong_count
from penstock.pattern.functions import AMOUNTS, FUNCTIONS, NUMBERS, ORDERED, Function, built_in
from penstock.pattern.render import quote_attribute, quote_name
from penstock.pattern.subject import Check, Subject, did_you_mean, listed
from penstock.pattern.value_types import SetOf, Type, arithmetic, common, fits, is_comparable, spelled
from penstock.pattern.variables import ANY_TYPE, Variable

if TYPE_CHECKING:
    from penstock.pattern.schema import Schema  # it loads pydantic, which takes a tenth of a second

_AGGREGATED = {"SUM": AMOUNTS, "AVG": AMOUNTS, "MIN": ORDERED | {"string"}, "MAX": ORDERED | {"string"}}


def unknown_types(subject: Subject) -> Iterator[Problem]:
    """Find types of events that the schema does not have."""
    if subject.schema is None:
        return
    for event in subject.events:
        for name in event.types:
            if not subject.schema.knows_type(name):
                fix = did_you_mean(name, subject.schema.known_types())
                yield subject.problem("unknown-type", f"there is no type {name}", subject.word(event, name), fix)


def unknown_partitions(subject: Subject) -> Iterator[Problem]:
    """Find PARTITION BY attributes that some event of the query does not have."""
    if subject.schema is None:
        return
    used = [name for event in subject.events for name in event.types or (ANY_TYPE,)]
    for name in subject.query.partition:
        yield from _lacking(subject, subject.schema, name, name.text, used)


def mistyped(subject: Subject) -> Iterator[Problem]:
    """Find attributes, functions and remotes that are unknown, and values that do not go together."""
    if subject.schema is None:
        return
    for formula in subject.formulas:
        typing = _Typing(subject, subject.schema, formula.scope)
        if formula.clause == "RETURN":
            typing.of(formula.expression)
        else:
            typing.condition(formula.expression)
        yield from typing.problems


CHECKS: tuple[Check, ...] = (unknown_types, unknown_partitions, mistyped)


def _lacking(
    subject: Subject, schema: Schema, at: ast.Node, name: str, types: Sequence[str], prefix: str = ""
) -> Iterator[Problem]:
    """Yield the problem of an attribute that some of these types do not have. Types that are unknown do not count."""
    known = [each for each in dict.fromkeys(types) if each == ANY_TYPE or schema.knows_type(each)]
    lacking = [each for each in known if schema.attribute(each, name) is None]
    if not lacking:
        return
    shared = [each for each in schema.attributes(known[0]) if all(schema.attribute(t, each) for t in known)]
    otherwise = ""
    if lacking == [ANY_TYPE]:
        message = f"not every type has an attribute {name}"
        otherwise = f'name the types instead of *, or declare {name} under [types."*"]'
    else:
        others = [each for each in lacking if each != ANY_TYPE]
        message = f"{' and '.join(others)} {'has' if len(others) == 1 else 'have'} no attribute {name}"
        if lacking != known:
            otherwise = f"use one that all of them have: {listed(shared, quote_attribute)}"
    fix = did_you_mean(name, shared, otherwise, lambda each: prefix + quote_attribute(each))
    yield subject.problem("unknown-attribute", message, at, fix)


@dataclass
class _Typing:
    """Finds the type of every part of an expression, from the leaves up.

    A part with a problem has the type None, which goes with everything, so that a mistake is told once.
    """

    subject: Subject
    schema: Schema
    scope: Mapping[str, Variable]
    problems: list[Problem] = field(default_factory=list)

    def wrong(self, code: str, message: str, at: ast.Node, fix: str) -> None:
        self.problems.append(self.subject.problem(code, message, at, fix))

    def condition(self, node: ast.Expression) -> None:
        """Type what must be true or false."""
        found = self.of(node)
        if found not in (None, "bool") and not isinstance(node, VALUES):  # those are found without a schema
            message = f"{self.subject.text(node)} is {spelled(found)}, but a condition must stand here"
            self.wrong("not-boolean", message, node, "compare it with something")

    def of(self, node: ast.Expression) -> Type:
        """Return the type of an expression's value."""
        match node:
            case ast.Number(value=value):
                return "int" if isinstance(value, int) else "float"
            case ast.Duration():
                return "duration"
            case ast.Text():
                return "string"
            case ast.Attribute(variable=variable, name=name) | ast.Previous(attribute=ast.Attribute(variable, name)):
                return self.attribute(node, variable, name)
            case ast.Aggregate():
                return self.aggregate(node)
            case ast.Call(function=function, arguments=arguments):
                return self.applied(function, node, arguments, [self.of(each) for each in arguments])
            case ast.Remote():
                return self.remote_value(node)
            case ast.Minus() | ast.Arithmetic():
                return self.arithmetic(node)
        self.logic(node)
        return "bool"

    def logic(self, node: ast.Expression) -> None:
        match node:
            case ast.And(items=items) | ast.Or(items=items):
                for item in items:
                    self.condition(item)
            case ast.Not(item=item):
                self.condition(item)
            case ast.Comparison():
                self.comparison(node)
            case ast.Membership():
                self.membership(node)
            case ast.Same(keys=keys):
                for key in keys:
                    self.same(key)

    def attribute(self, at: ast.Node, variable: str, name: str) -> Type:
        if variable not in self.scope:
            return None
        return self.attribute_of(at, name, self.scope[variable].event.types or (ANY_TYPE,), f"{quote_name(variable)}.")

    def attribute_of(self, at: ast.Node, name: str, types: Sequence[str], prefix: str = "") -> Type:
        """Return the type of an attribute that all these types must have."""
        lacking = list(_lacking(self.subject, self.schema, at, name, types, prefix))
        self.problems += lacking
        found = {each: self.schema.attribute(each, name) for each in dict.fromkeys(types)}
        kinds = {spelled(each): of for of, each in found.items() if each is not None}
        if len(kinds) > 1 and not lacking:
            told = " and ".join(f"{kind} in {of}" for kind, of in kinds.items())
            fix = "compare attributes of one type; give each type of event a variable of its own"
            self.wrong("type", f"{name} is {told}", at, fix)
        return common(found.values())

    def aggregate(self, node: ast.Aggregate) -> Type:
        over = None if node.name is None else self.attribute(node, node.variable, node.name)
        if node.function == "COUNT":
            return "int"
        if over is not None and over not in _AGGREGATED[node.function]:
            message = f"{node.function} takes no {spelled(over).split()[-1]}s, and {node.name} is {spelled(over)}"
            self.wrong("type", message, node, f"count them: COUNT({quote_name(node.variable)}[])")
            return None
        return "float" if node.function == "AVG" and over in NUMBERS else over

    def arithmetic(self, node: ast.Minus | ast.Arithmetic) -> Type:
        if isinstance(node, ast.Minus):
            operand = self.of(node.operand)
            if operand is None or operand in AMOUNTS:
                return operand
            message = f"{self.subject.text(node.operand)} is {spelled(operand)}: - cannot take it"
            self.wrong("type", message, node, "drop the -")
            return None
        left, right = self.of(node.left), self.of(node.right)
        is_possible, result = arithmetic(left, node.operator, right)
        if not is_possible:
            told = " and ".join(
                f"{self.subject.text(part)} is {spelled(of)}"
                for part, of in ((node.left, left), (node.right, right))
                if of is not None
            )
            fix = _unit_fix(node, left, right) or "calculate with numbers, or with times and durations"
            self.wrong("type", f"{told}: {node.operator} cannot take them", node, fix)
        return result

    def comparison(self, node: ast.Comparison) -> None:
        left, right = self.of(node.left), self.of(node.right)
        if left is None or right is None:
            return
        if not is_comparable(left, right):
            one, other = self.subject.text(node.left), self.subject.text(node.right)
            message = f"{one} is {spelled(left)} and {other} is {spelled(right)}: they cannot be compared"
            fix = _unit_fix(node, left, right) or "compare values of one type"
            self.wrong("type", message, node, fix)
        elif left == "bool" and node.operator not in ("=", "<>"):
            self.wrong("type", f"booleans have no order: {node.operator} cannot take them", node, "write = or <>")

    def membership(self, node: ast.Membership) -> None:
        item = self.of(node.item)
        if isinstance(node.members, ast.Remote):
            members = self.remote(node.members)
            if isinstance(members, SetOf):
                self.is_member(node, item, node.members, members.item)
            elif members is not None:
                fix = f"write {'<>' if node.negated else '='}, or set = true for it in the schema"
                self.wrong("type", f"{self.subject.text(node.members)} is no set", node.members, fix)
        else:
            for member in node.members:
                self.is_member(node, item, member, self.of(member))

    def is_member(self, node: ast.Membership, item: Type, member: ast.Node, found: Type) -> None:
        if item is not None and found is not None and not is_comparable(item, found):
            kind = spelled(found)
            what = f"a set of {kind.split()[-1]}s" if member is node.members else kind
            message = f"{self.subject.text(node.item)} is {spelled(item)}, but {self.subject.text(member)} is {what}"
            fix = f"look for {kind}" if member is node.members else f"list {spelled(item).split()[-1]}s only"
            self.wrong("type", message, member, fix)

    # --- functions and remotes ------------------------------------------------------------------------------

    def same(self, key: ast.SameKey) -> None:
        used = [name for variable in self.scope.values() for name in variable.event.types or (ANY_TYPE,)]
        found = self.attribute_of(key, key.attribute, used)
        if key.function is not None:
            attribute = ast.Name(key.attribute, position=self.subject.word(key, key.attribute))
            self.applied(key.function, key, [attribute], [found])

    def applied(self, name: str, at: ast.Node, arguments: Sequence[ast.Node], given: Sequence[Type]) -> Type:
        """Return the type of a function's value."""
        function, user = built_in(name), self.schema.functions.get(name)
        if function is not None:
            return self.applied_built_in(name, function, arguments, given)
        if user is None:
            fix = as_aggregate(name, arguments) or did_you_mean(name, [*FUNCTIONS, *self.schema.functions])
            self.wrong("unknown-function", f"there is no function {name}", at, fix)
            return None
        if len(arguments) != len(user.arguments):
            self.problems.append(wrong_count(self.subject, at, name, arguments, (len(user.arguments),)))
            return user.returns
        for argument, has, wanted in zip(arguments, given, user.arguments, strict=True):
            if not fits(has, wanted):
                self.wrong_argument(name, argument, has, spelled(wanted))
        return user.returns

    def applied_built_in(
        self, name: str, function: Function, arguments: Sequence[ast.Node], given: Sequence[Type]
    ) -> Type:
        usable = [has if has in function.takes else None for has in given]
        for argument, has in zip(arguments, given, strict=True):
            if has is not None and has not in function.takes:
                self.wrong_argument(name, argument, has, "numbers")
            elif function.returns is None and not fits(has, usable[0]):
                self.wrong_argument(name, argument, has, "values of one type")
        return function.returns or common(usable)

    def wrong_argument(self, name: str, argument: ast.Node, has: Type, wanted: str) -> None:
        message = f"{name} takes {wanted} here, and {self.subject.text(argument)} is {spelled(has)}"
        self.wrong("type", message, argument, f"give it {wanted}")

    def remote_value(self, node: ast.Remote) -> Type:
        found = self.remote(node)
        if isinstance(found, SetOf):
            fix = "ask whether something is in it: x IN REMOTE[…]"
            self.wrong("type", f"{self.subject.text(node)} is a set, not a value", node, fix)
            return None
        return found

    def remote(self, node: ast.Remote) -> Type | SetOf:
        key, remote = self.of(node.key), self.schema.remotes.get(node.source)
        if remote is None:
            otherwise = f"describe it in the schema: [remotes.{node.source}]"
            fix = did_you_mean(node.source, self.schema.remotes, otherwise)
            self.wrong("unknown-remote", f"there is no remote {node.source}", node, fix)
            return None
        if not fits(key, remote.key):
            has = f"{self.subject.text(node.key)} is {spelled(key)}"
            message = f"the key of {node.source} is {spelled(remote.key)}, and {has}"
            self.wrong("type", message, node.key, f"look up by {spelled(remote.key)}")
        if remote.row is not None:
            return self.column(node, remote.row)
        if node.column is not None:
            message = f"{node.source} is {'a set' if remote.is_set else 'a single value'}, not a row"
            self.wrong("remote-column", message, node, f"drop .{quote_attribute(node.column)}")
        return SetOf(str(remote.value)) if remote.is_set else remote.value

    def column(self, node: ast.Remote, row: Mapping[str, str]) -> Type:
        if node.column is None:
            fix = f"name a column, as in REMOTE[…].{quote_attribute(next(iter(row)))}"
            self.wrong("remote-column", f"{node.source} is a row of several values", node, fix)
            return None
        if node.column not in row:
            message = f"{node.source} has no column {node.column}"
            self.wrong("remote-column", message, node, did_you_mean(node.column, row, spell=quote_attribute))
        return row.get(node.column)


def _unit_fix(node: ast.Comparison | ast.Arithmetic, left: Type, right: Type) -> str:
    """Return how to mend two values of which one is a literal in the wrong unit or quotes; "" if neither is."""
    for part, other in ((node.left, right), (node.right, left)):
        match part:
            case ast.Number(value=value) if other in ("duration", "time"):
                return f"give the number a unit, as in {value} s"
            case ast.Number(value=value) if other == "string" and isinstance(node, ast.Comparison):
                return f"write it as a text: '{value}'"
            case ast.Text(value=text) if other in NUMBERS and re.fullmatch(r"\d+(\.\d+)?", text):
                return f"write {text} without quotes"
    if isinstance(node, ast.Comparison) and {left, right} == {"time", "duration"}:
        return "take the time of day, as in a.ts % 24 h, or the difference of two times"
    return ""
