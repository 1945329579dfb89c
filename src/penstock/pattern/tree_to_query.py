"""The parser's tree to the AST: one method per rule of grammar.lark.

What the grammar cannot express (bounds the wrong way round, `a[]` without repetition) is refused here,
with the place it stands at.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, NamedTuple

from lark import Token, v_args
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive

from penstock.errors import Position, Problem
from penstock.pattern import ast

MAX_DIGITS = 300
MAX_FLOAT = 1e308
MAX_INTEGER = 2**62
AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX")
COMPARATORS = {"==": "=", "!=": "<>", "≠": "<>", "≤": "<=", "≥": ">="}
OPERATORS = {"×": "*", "−": "-"}
MAGNITUDES = {"k": 1_000, "K": 1_000, "M": 1_000_000}
UNITS_US = {
    "us": 1, "µs": 1, "μs": 1, "microsecond": 1, "ms": 1_000, "millisecond": 1_000,
    "s": 1_000_000, "sec": 1_000_000, "second": 1_000_000, "min": 60_000_000, "minute": 60_000_000,
    "h": 3_600_000_000, "hr": 3_600_000_000, "hour": 3_600_000_000, "d": 86_400_000_000, "day": 86_400_000_000,
    "w": 604_800_000_000, "week": 604_800_000_000,
}  # fmt: skip


class RefusedError(Exception):
    """A mistake found while the AST is made."""

    def __init__(self, meta: Meta, code: str, message: str, fix: str = "") -> None:
        self.problem = Problem(code, message, _position(meta), fix)
        super().__init__(message)


class _Quantifier(NamedTuple):
    low: int
    high: int | None
    is_option: bool = False


class _ListRange(NamedTuple):
    """`a[].x` or `a[..i-1].x`, which only an aggregate may hold."""

    variable: str
    name: str | None
    upto: Any


def _position(meta: Meta) -> Position:
    if meta.empty:
        return Position(0, 0, 1, 1)
    return Position(meta.start_pos, meta.end_pos, meta.line, meta.column)


def _number(meta: Meta, text: str) -> int | float:
    if len(text) > MAX_DIGITS:
        raise RefusedError(meta, "number", f"a number has at most {MAX_DIGITS} digits")
    scale = MAGNITUDES.get(text[-1], 1)
    if "e" in text.lower():  # never as a Fraction: 1e999999999 would have that many digits
        value = float(text)
    else:
        exact = Fraction(text[:-1] if scale > 1 else text) * scale
        if exact.denominator == 1 and (scale > 1 or "." not in text):
            return _whole(meta, exact.numerator)
        value = float(exact)
    if value > MAX_FLOAT:
        raise RefusedError(meta, "number", "the number is too large", "write a number below 1e308")
    return value


def _whole(meta: Meta, value: int) -> int:
    if value >= 10**MAX_DIGITS:
        raise RefusedError(meta, "number", f"a number has at most {MAX_DIGITS} digits")
    return value


def _microseconds(meta: Meta, text: str) -> int:
    digits, unit = re.split(r"(?<=\d)\s*(?=[^\d.\s])", text, maxsplit=1)
    if len(digits) > MAX_DIGITS:
        raise RefusedError(meta, "number", f"a number has at most {MAX_DIGITS} digits")
    shown, unit = f"{digits} {unit}", unit.lower()
    us = Fraction(digits) * (UNITS_US.get(unit) or UNITS_US[unit.removesuffix("s")])
    if us.denominator != 1:
        raise RefusedError(meta, "duration", f"{shown!r} is no whole number of microseconds", "use whole microseconds")
    if us > MAX_INTEGER:
        raise RefusedError(meta, "duration", f"{shown!r} is too long", "write less than 146,000 years")
    return us.numerator


def _count(meta: Meta, number: ast.Number, what: str, least: int = 1) -> int:
    if not isinstance(number.value, int) or number.value < least:
        raise RefusedError(meta, "count", f"{what} must be a whole number of at least {least}, not {number.value}")
    if number.value > MAX_INTEGER:
        raise RefusedError(meta, "count", f"{what} is too large", "write a number below 2**62")
    return number.value


def _repeat(meta: Meta, part: ast.Pattern, quantifier: _Quantifier) -> ast.Pattern:
    if quantifier.is_option:
        return ast.Option(part, position=_position(meta))
    return ast.Repetition(part, quantifier.low, quantifier.high, position=_position(meta))


@v_args(meta=True)
class TreeToQuery(Transformer_NonRecursive[Token, Any]):
    """Makes AST nodes of tree nodes. The grammar fixes each rule's children, so they are taken as they come."""

    def start(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        """Return the fields of the query, by name."""
        parts: dict[str, Any] = {"pattern": children[0]}
        for clause in children[1:]:
            parts.update(clause)
        return parts

    # --- names and literals ---------------------------------------------------------------------------------

    def name(self, meta: Meta, children: list[Token]) -> ast.Name:
        text = str(children[0])
        if text.startswith("`"):
            text = text[1:-1].replace("``", "`")
        return ast.Name(text, position=_position(meta))

    def number(self, meta: Meta, children: list[Token]) -> ast.Number:
        return ast.Number(_number(meta, str(children[0])), position=_position(meta))

    def duration(self, meta: Meta, children: list[Token]) -> ast.Duration:
        return ast.Duration(_microseconds(meta, str(children[0])), position=_position(meta))

    def text(self, meta: Meta, children: list[Token]) -> ast.Text:
        quote = children[0][0]
        return ast.Text(str(children[0])[1:-1].replace(quote * 2, quote), position=_position(meta))

    def true(self, meta: Meta, children: list[Token]) -> ast.Boolean:
        return ast.Boolean(True, position=_position(meta))

    def false(self, meta: Meta, children: list[Token]) -> ast.Boolean:
        return ast.Boolean(False, position=_position(meta))

    # --- patterns -------------------------------------------------------------------------------------------

    def parts(self, meta: Meta, children: list[ast.Pattern]) -> tuple[ast.Pattern, ...]:
        return tuple(children)

    def parenthesis(self, meta: Meta, children: list[Any]) -> ast.Pattern:
        parts: tuple[ast.Pattern, ...] = children[0]
        return parts[0] if len(parts) == 1 else ast.Sequence(parts, position=_position(meta))

    def sequence(self, meta: Meta, children: list[Any]) -> ast.Sequence:
        return ast.Sequence(children[0], position=_position(meta))

    def conjunction_of(self, meta: Meta, children: list[Any]) -> ast.Conjunction:
        return ast.Conjunction(children[0], position=_position(meta))

    def disjunction_of(self, meta: Meta, children: list[Any]) -> ast.Disjunction:
        return ast.Disjunction(children[0], position=_position(meta))

    def conjunction(self, meta: Meta, children: list[ast.Pattern]) -> ast.Conjunction:
        return ast.Conjunction(tuple(children), position=_position(meta))

    def disjunction(self, meta: Meta, children: list[ast.Pattern]) -> ast.Disjunction:
        return ast.Disjunction(tuple(children), position=_position(meta))

    def any_of(self, meta: Meta, children: list[Any]) -> ast.AnyOf:
        return ast.AnyOf(_count(meta, children[0], "the number of ANY"), children[1], position=_position(meta))

    def kleene(self, meta: Meta, children: list[ast.Pattern]) -> ast.Repetition:
        return ast.Repetition(children[0], 1, None, position=_position(meta))

    def negation(self, meta: Meta, children: list[ast.Pattern]) -> ast.Negation:
        if not isinstance(children[0], ast.Event):
            fix = "negate one event, as in SEQ(A a, NOT B b, C c)"
            raise RefusedError(meta, "negation", "NOT takes a single event", fix)
        return ast.Negation(children[0], position=_position(meta))

    def types(self, meta: Meta, children: list[ast.Name]) -> tuple[str, ...]:
        return tuple(child.text for child in children)

    def any_type(self, meta: Meta, children: list[Token]) -> tuple[str, ...]:
        return ()

    def variable(self, meta: Meta, children: list[Any]) -> tuple[str, bool]:
        name, is_list = children
        return name.text, is_list is not None

    def sign(self, meta: Meta, children: list[Token]) -> _Quantifier:
        if children[0] == "?":
            return _Quantifier(0, 1, is_option=True)
        return _Quantifier(1 if children[0] == "+" else 0, None)

    def exactly(self, meta: Meta, children: list[ast.Number]) -> _Quantifier:
        count = _count(meta, children[0], "the count")
        return _Quantifier(count, count)

    def between(self, meta: Meta, children: list[Any]) -> _Quantifier:
        low = _count(meta, children[0], "the lower count", least=0)
        high = None if children[1] is None else _count(meta, children[1], "the upper count")
        if high is not None and high < low:
            fix = f"write {{{high},{low}}}"
            raise RefusedError(meta, "count", f"{{{low},{high}}} has its bounds the wrong way round", fix)
        return _Quantifier(low, high)

    def repeated(self, meta: Meta, children: list[Any]) -> ast.Pattern:
        return _repeat(meta, *children)

    def event(self, meta: Meta, children: list[Any]) -> ast.Pattern:
        types, quantifier, variable = children
        if variable is None and len(types) != 1:
            fix = "write a name after the type, as in A|B x"
            raise RefusedError(meta, "no-variable", "this event needs a variable", fix)
        name, is_list = variable or (types[0], False)
        event = ast.Event(types, name, position=_position(meta))
        if is_list and (quantifier is None or quantifier.is_option):
            fix = f"write {'|'.join(types) or '*'}+ {name}[], or drop the []"
            raise RefusedError(meta, "list", f"{name}[] is a list, but its event is not repeated", fix)
        return event if quantifier is None else _repeat(meta, event, quantifier)

    # --- clauses --------------------------------------------------------------------------------------------

    def where(self, meta: Meta, children: list[ast.Expression]) -> dict[str, Any]:
        condition = children[0] if len(children) == 1 else ast.And(tuple(children), position=_position(meta))
        return {"where": condition}

    def within(self, meta: Meta, children: list[ast.Span]) -> dict[str, Any]:
        return {"within": children[0]}

    def time_span(self, meta: Meta, children: list[Token]) -> ast.TimeSpan:
        return ast.TimeSpan(_microseconds(meta, str(children[0])), position=_position(meta))

    def count_span(self, meta: Meta, children: list[ast.Number]) -> ast.CountSpan:
        return ast.CountSpan(_count(meta, children[0], "a number of events"), position=_position(meta))

    def partition(self, meta: Meta, children: list[ast.Name]) -> dict[str, Any]:
        return {"partition": tuple(children)}

    def window(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        length, cut, distinct = children
        every = None if isinstance(cut, ast.Opening) else cut
        on = cut if isinstance(cut, ast.Opening) else None
        return {"window": ast.Window(length, every, on, distinct is not None, position=_position(meta))}

    def every(self, meta: Meta, children: list[ast.Span]) -> ast.Span:
        return children[0]

    def on(self, meta: Meta, children: list[Any]) -> ast.Opening:
        types, variable, where = children
        if variable is None and len(types) != 1:
            fix = "write a name after the type, as in ON A|B x"
            raise RefusedError(meta, "no-variable", "this event needs a variable", fix)
        event = ast.Event(types, variable.text if variable else types[0], position=_position(meta))
        return ast.Opening(event, where, position=_position(meta))

    def opening(self, meta: Meta, children: list[ast.Expression]) -> ast.Expression:
        return children[0]

    def limit(self, meta: Meta, children: list[ast.Number]) -> dict[str, Any]:
        return {"limit": _count(meta, children[0], "LIMIT")}

    def policy(self, meta: Meta, children: list[Token]) -> ast.Policy:
        return ast.Policy(str(children[0]).upper())

    def select(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        pairs = zip(children[1::2], children[2::2], strict=True)
        variables = tuple(ast.SelectVariable(p, n.text, position=n.position) for p, n in pairs)
        return {"select": ast.Select(children[0], variables, position=_position(meta))}

    def consume(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        variables = tuple(child for child in children if isinstance(child, ast.Name))
        everything = any(isinstance(c, Token) and c.type == "ALL" for c in children)
        return {"consume": ast.Consume(everything, variables, position=_position(meta))}

    def returns(self, meta: Meta, children: list[ast.Return]) -> dict[str, Any]:
        return {"returns": tuple(children)}

    def returned(self, meta: Meta, children: list[Any]) -> ast.Return:
        expression, name = children
        return ast.Return(expression, name.text if name else None, position=_position(meta))

    # --- expressions ----------------------------------------------------------------------------------------

    def or_expr(self, meta: Meta, children: list[ast.Expression]) -> ast.Or:
        return ast.Or(tuple(children), position=_position(meta))

    def and_expr(self, meta: Meta, children: list[ast.Expression]) -> ast.And:
        return ast.And(tuple(children), position=_position(meta))

    def not_expr(self, meta: Meta, children: list[ast.Expression]) -> ast.Not:
        return ast.Not(children[0], position=_position(meta))

    def comparison_chain(self, meta: Meta, children: list[Any]) -> ast.Expression:
        links = []
        for left, sign, right in zip(children[0::2], children[1::2], children[2::2], strict=False):
            operator: Any = COMPARATORS.get(str(sign), str(sign))
            links.append(ast.Comparison(operator, left, right, position=_position(meta)))
        return links[0] if len(links) == 1 else ast.And(tuple(links), position=_position(meta))

    def is_in(self, meta: Meta, children: list[Any]) -> ast.Membership:
        return ast.Membership(children[0], children[1], position=_position(meta))

    def is_not_in(self, meta: Meta, children: list[Any]) -> ast.Membership:
        return ast.Membership(children[0], children[1], negated=True, position=_position(meta))

    def members(self, meta: Meta, children: list[ast.Expression]) -> tuple[ast.Expression, ...]:
        return tuple(children)

    def remote_members(self, meta: Meta, children: list[ast.Remote]) -> ast.Remote:
        return children[0]

    def arithmetic(self, meta: Meta, children: list[Any]) -> ast.Arithmetic:
        left, sign, right = children
        operator: Any = OPERATORS.get(str(sign), str(sign))
        return ast.Arithmetic(operator, left, right, position=_position(meta))

    def minus(self, meta: Meta, children: list[Any]) -> ast.Minus:
        return ast.Minus(children[1], position=_position(meta))

    def grouped(self, meta: Meta, children: list[ast.Expression]) -> ast.Expression:
        return children[0]

    def attribute(self, meta: Meta, children: list[ast.Name]) -> ast.Attribute:
        return ast.Attribute(children[0].text, children[1].text, position=_position(meta))

    def indexed(self, meta: Meta, children: list[Any]) -> ast.Attribute:
        variable, index, name = children
        return ast.Attribute(variable.text, name.text, index, position=_position(meta))

    def index(self, meta: Meta, children: list[Token]) -> ast.Index:
        token = children[0]
        if token.type == "NUMBER":
            return _count(meta, ast.Number(_number(meta, str(token))), "an index (the first element is 1)")
        if token.type == "I_BEFORE":
            return "i-1"
        return {"I": "i", "FIRST": "first", "LAST": "last"}[token.type]  # type: ignore[return-value]  # an Index each

    def whole_list(self, meta: Meta, children: list[Any]) -> _ListRange:
        variable, _, name = children
        return _ListRange(variable.text, name and name.text, "")

    def list_upto(self, meta: Meta, children: list[Any]) -> _ListRange:
        variable, upto, name = children
        return _ListRange(variable.text, name and name.text, "i" if upto.type == "I" else "i-1")

    def call(self, meta: Meta, children: list[Any]) -> ast.Expression:
        function, *arguments = [child for child in children if child is not None]
        ranges = [a for a in arguments if isinstance(a, _ListRange)]
        if ranges:
            return self._aggregate(meta, function.text, arguments, ranges[0])
        if function.text.lower() == "prev":
            if len(arguments) != 1 or not isinstance(arguments[0], ast.Attribute):
                raise RefusedError(meta, "prev", "prev takes one attribute", "write prev(a.price)")
            return ast.Previous(arguments[0], position=_position(meta))
        return ast.Call(function.text, tuple(arguments), position=_position(meta))

    def _aggregate(self, meta: Meta, function: str, arguments: list[Any], over: _ListRange) -> ast.Aggregate:
        name: Any = function.upper()
        if name not in AGGREGATES or len(arguments) != 1:
            fix = f"use one of {', '.join(AGGREGATES)} with {over.variable}[] as its only argument"
            raise RefusedError(meta, "aggregate", f"{function} cannot take the list {over.variable}[]", fix)
        if over.name is None and name != "COUNT":
            raise RefusedError(
                meta, "aggregate", f"{name} needs an attribute", f"write {name}({over.variable}[].attribute)"
            )
        return ast.Aggregate(name, over.variable, over.name, over.upto, position=_position(meta))

    def remote(self, meta: Meta, children: list[Any]) -> ast.Remote:
        *source, key, column = children
        if not source and not isinstance(key, ast.Attribute):
            fix = "write REMOTE[source, key]"
            raise RefusedError(meta, "remote", "REMOTE needs a source unless its key is an attribute", fix)
        name = source[0].text if source else key.name
        return ast.Remote(name, key, column and column.text, position=_position(meta))

    def same(self, meta: Meta, children: list[ast.SameKey]) -> ast.Same:
        return ast.Same(tuple(children), position=_position(meta))

    def same_key(self, meta: Meta, children: list[ast.Name]) -> ast.SameKey:
        return ast.SameKey(children[0].text, position=_position(meta))

    def same_function(self, meta: Meta, children: list[ast.Name]) -> ast.SameKey:
        return ast.SameKey(children[1].text, children[0].text, position=_position(meta))
