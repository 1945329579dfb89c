"""Expressions in Python: what conditions and returned values are written with.

A `Value` wraps a node of the AST, and Python's operators make larger ones. Python cannot overload `and`, `or`,
`not`, `in` and chains like `x < y < z`; each of them raises a `TypeError` that says what to write.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import timedelta
from numbers import Integral, Real
from typing import NoReturn, TypeAlias

from penstock.pattern import ast
from penstock.pattern.builder.checks import BuilderError, checked_name, microseconds, refuse_private, span_of
from penstock.pattern.render import render_expression
from penstock.pattern.tree_to_query import MAX_DIGITS, MAX_FLOAT


class Value:
    """A number, text or condition that is known per match. Made by attribute access, operators and functions.

    Examples:
        >>> from penstock.pattern.builder import event
        >>> a, b = event("A", "a"), event("B", "b")
        >>> (a.price + 5 < b.price) | ~b.side.is_in(["buy", "sell"])
        <a.price + 5 < b.price OR NOT (b.side IN ('buy', 'sell'))>
    """

    __slots__ = ("_node",)
    __hash__ = None  # type: ignore[assignment]  # == makes a comparison, so no two values can be told apart

    def __init__(self, node: ast.Expression) -> None:
        self._node = node

    def __repr__(self) -> str:
        return f"<{render_expression(self._node)}>"

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{self!r} has no truth in Python: it is asked of each match. Write & | ~ for and, or, not, "
            "with parentheses around comparisons; (x < y) & (y < z) for x < y < z; x.is_in([…]) for x in […]"
        )

    # --- arithmetic -----------------------------------------------------------------------------------------

    def __add__(self, other: Operand) -> Value:
        return _arithmetic("+", self, other)

    def __radd__(self, other: Operand) -> Value:
        return _arithmetic("+", other, self)

    def __sub__(self, other: Operand) -> Value:
        return _arithmetic("-", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return _arithmetic("-", other, self)

    def __mul__(self, other: Operand) -> Value:
        return _arithmetic("*", self, other)

    def __rmul__(self, other: Operand) -> Value:
        return _arithmetic("*", other, self)

    def __truediv__(self, other: Operand) -> Value:
        return _arithmetic("/", self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return _arithmetic("/", other, self)

    def __mod__(self, other: Operand) -> Value:
        return _arithmetic("%", self, other)

    def __rmod__(self, other: Operand) -> Value:
        return _arithmetic("%", other, self)

    def __neg__(self) -> Value:
        return Value(ast.Minus(self._node))

    # --- comparison and logic -------------------------------------------------------------------------------

    def __eq__(self, other: Operand) -> Value:  # type: ignore[override]  # it makes a condition
        return _comparison("=", self, other)

    def __ne__(self, other: Operand) -> Value:  # type: ignore[override]  # it makes a condition
        return _comparison("<>", self, other)

    def __lt__(self, other: Operand) -> Value:
        return _comparison("<", self, other)

    def __le__(self, other: Operand) -> Value:
        return _comparison("<=", self, other)

    def __gt__(self, other: Operand) -> Value:
        return _comparison(">", self, other)

    def __ge__(self, other: Operand) -> Value:
        return _comparison(">=", self, other)

    def __and__(self, other: Value) -> Value:
        own = self._node.items if isinstance(self._node, ast.And) else (self._node,)
        return Value(ast.And((*own, condition_of(other))))

    def __rand__(self, other: object) -> NoReturn:
        raise _no_condition(other)

    def __or__(self, other: Value) -> Value:
        own = self._node.items if isinstance(self._node, ast.Or) else (self._node,)
        return Value(ast.Or((*own, condition_of(other))))

    def __ror__(self, other: object) -> NoReturn:
        raise _no_condition(other)

    def __invert__(self) -> Value:
        return Value(ast.Not(self._node))

    def is_in(self, members: Iterable[Operand] | Value) -> Value:
        """Return the condition that the value is one of the members.

        Args:
            members: a list of values, or from `remote` a set outside the stream.

        Examples:
            >>> from penstock.pattern.builder import event
            >>> event("A", "a").side.is_in(["buy", "sell"])
            <a.side IN ('buy', 'sell')>
        """
        return Value(ast.Membership(self._node, _members(members)))

    def not_in(self, members: Iterable[Operand] | Value) -> Value:
        """Return the condition that the value is there and none of the members.

        Args:
            members: a list of values, or from `remote` a set outside the stream.

        Examples:
            >>> from penstock.pattern.builder import event, remote
            >>> a = event("A", "a")
            >>> a.card.not_in(remote("blocked", a.shop))
            <a.card NOT IN REMOTE[blocked, a.shop]>
        """
        return Value(ast.Membership(self._node, _members(members), negated=True))


class RemoteValue(Value):
    """What `remote` returns: a value, a set, or a row whose columns are attributes.

    Examples:
        >>> from penstock.pattern.builder import event, remote
        >>> a = event("A", "a")
        >>> a.amount > remote("cards", a.card).limit
        <a.amount > REMOTE[cards, a.card].limit>
    """

    __slots__ = ()
    _node: ast.Remote

    def __getattr__(self, name: str) -> Value:
        refuse_private(name)
        return self.attr(name)

    def attr(self, name: str) -> Value:
        """Return a column of the row, whatever it is called.

        Args:
            name: the column.

        Examples:
            >>> from penstock.pattern.builder import event, remote
            >>> remote("cards", event("A", "a").card).attr("is_in")
            <REMOTE[cards, a.card].is_in>
        """
        return Value(ast.Remote(self._node.source, self._node.key, checked_name(name, "column")))


Operand: TypeAlias = Value | int | float | str | bool | timedelta


# --- Python to AST ------------------------------------------------------------------------------------------


def expression_of(value: Operand) -> ast.Expression:
    """Return the AST of a value, a number, a text, a boolean or a timedelta.

    Args:
        value: what stands in an expression; a negative number becomes the minus of a number, as in text.

    Raises:
        TypeError: if it is none of these.
        BuilderError: if the language has no such number.

    Examples:
        >>> expression_of(-5), expression_of("x")
        (Minus(operand=Number(value=5)), Text(value='x'))
    """
    if isinstance(value, Value):
        return value._node
    if isinstance(value, bool):
        return ast.Boolean(value)
    if isinstance(value, str):
        return ast.Text(value)
    if isinstance(value, timedelta):
        us = microseconds(value)
        return ast.Minus(ast.Duration(-us)) if us < 0 else ast.Duration(us)
    if isinstance(value, Real):
        return _number(value)
    if value is None:
        raise TypeError("None cannot stand in an expression: a comparison with a missing value is always false")
    raise TypeError(f"{value!r} cannot stand in an expression; of an event, name an attribute, as in a.price")


def condition_of(condition: Value) -> ast.Expression:
    """Return the AST of a condition.

    Args:
        condition: a value; a Python bool is refused, since it comes from comparing something else by mistake.

    Raises:
        TypeError: if it is no value.

    Examples:
        >>> condition_of(literal(True))
        Boolean(value=True)
    """
    if isinstance(condition, Value):
        return condition._node
    raise _no_condition(condition)


def literal(value: Operand) -> Value:
    """Return a number, text, boolean or timedelta as a value, for the left side of an operator.

    Args:
        value: what to take as it is.

    Examples:
        >>> from penstock.pattern.builder import event
        >>> literal(5) < event("A", "a").price
        <5 < a.price>
    """
    return Value(expression_of(value))


def duration(length: str | timedelta) -> Value:
    """Return a duration as a value.

    Args:
        length: text, as in "5 min", or a timedelta.

    Raises:
        BuilderError: if it is a number of events.

    Examples:
        >>> from penstock.pattern.builder import event
        >>> event("B", "b").ts - event("A", "a").ts > duration("5 min")
        <b.ts - a.ts > 5 min>
    """
    if isinstance(length, timedelta):
        return literal(length)
    span = span_of(length)
    if isinstance(span, ast.CountSpan):
        raise BuilderError(f"{length!r} is no duration; write one, as in '5 min'")
    return Value(ast.Duration(span.us))


def _no_condition(found: object) -> TypeError:
    if isinstance(found, bool):
        fix = f"compare attributes, as in a.x == b.x, or write literal({found})"
    else:
        fix = "around & and |, comparisons need parentheses: (a.x > 5) & (b.x > 5)"
    return TypeError(f"{found!r} is no condition; {fix}")


def _number(value: Real) -> ast.Expression:
    if isinstance(value, Integral):
        number: int | float = int(value)
        is_negative, is_known = number < 0, abs(number) < 10**MAX_DIGITS
    else:
        number = float(value)
        is_negative, is_known = math.copysign(1, number) < 0, abs(number) <= MAX_FLOAT
    if not is_known:
        raise BuilderError(f"{value!r} is no number of the language")
    return ast.Minus(ast.Number(-number)) if is_negative else ast.Number(number)


def _arithmetic(operator: ast.ArithmeticOperator, left: Operand, right: Operand) -> Value:
    return Value(ast.Arithmetic(operator, expression_of(left), expression_of(right)))


def _comparison(operator: ast.Comparator, left: Operand, right: Operand) -> Value:
    return Value(ast.Comparison(operator, expression_of(left), expression_of(right)))


def _members(members: Iterable[Operand] | Value) -> tuple[ast.Expression, ...] | ast.Remote:
    if isinstance(members, Value):
        if not isinstance(members._node, ast.Remote):
            raise TypeError(f"{members!r} is no set of values; write a list, as in a.x.is_in([1, 2]), or remote(…)")
        return members._node
    if isinstance(members, str):
        raise TypeError(f"{members!r} is one text; write a list, as in a.x.is_in([{members!r}])")
    found = tuple(map(expression_of, members))
    if not found:
        raise BuilderError("there is nothing to be in: give at least one member")
    return found
