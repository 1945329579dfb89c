"""Functions, aggregates, SAME, prev and REMOTE in Python."""

from __future__ import annotations

from typing import Literal, TypeAlias

from penstock.pattern import ast
from penstock.pattern.builder.checks import BuilderError, checked_name
from penstock.pattern.builder.parts import EventPart, variable_of
from penstock.pattern.builder.values import Operand, RemoteValue, Value, expression_of

UpTo: TypeAlias = Literal["", "i-1", "i"]


def call(function: str, *arguments: Operand) -> Value:
    """Return the call of a function, built in or registered by the user: `abs(x)`.

    Args:
        function: its name.
        arguments: what it is asked of.

    Examples:
        >>> from penstock.pattern.builder import event
        >>> a, b = event("A", "a"), event("B", "b")
        >>> call("dist", a.x, a.y, b.x, b.y) < 5
        <dist(a.x, a.y, b.x, b.y) < 5>
    """
    if checked_name(function, "function").lower() == "prev":
        raise BuilderError("prev asks for an attribute, not for a value; write prev(a.price)")
    return Value(ast.Call(function, tuple(map(expression_of, arguments))))


def prev(attribute: Value) -> Value:
    """Return the attribute of the previous event of the same type: `prev(a.x)`.

    Args:
        attribute: of an event.

    Examples:
        >>> from penstock.pattern.builder import event
        >>> a = event("A", "a")
        >>> a.price > prev(a.price)
        <a.price > prev(a.price)>
    """
    return Value(ast.Previous(_attribute(attribute, "prev")))


def same(*keys: str | tuple[str, str]) -> Value:
    """Return the condition that attributes are equal over all variables: `SAME[x, f(y)]`.

    Args:
        keys: attributes, or pairs of a function and the attribute it is asked of.

    Examples:
        >>> same("user", ("floor", "price"))
        <SAME[user, floor(price)]>
    """
    if not keys:
        raise BuilderError("same() is empty: name at least one attribute")
    return Value(ast.Same(tuple(map(_same_key, keys))))


def remote(source: str | Value, key: Operand | None = None) -> RemoteValue:
    """Return what a source outside the stream holds for a key: `REMOTE[source, key]`.

    Args:
        source: the name of the source; or an attribute, which is then the key of the source of the same name.
        key: what to look up.

    Examples:
        >>> from penstock.pattern.builder import event
        >>> a = event("A", "a")
        >>> remote("cards", a.card).limit, remote(a.user)
        (<REMOTE[cards, a.card].limit>, <REMOTE[user, a.user]>)
    """
    if isinstance(source, Value):
        if key is not None:
            raise TypeError(f"source names are texts, not {source!r}")
        attribute = _attribute(source, "remote")
        return RemoteValue(ast.Remote(attribute.name, attribute))
    if key is None:
        raise BuilderError(f"remote({source!r}) has no key; write remote({source!r}, a.card)")
    return RemoteValue(ast.Remote(checked_name(source, "source"), expression_of(key)))


# --- aggregates ---------------------------------------------------------------------------------------------


def count(of: EventPart | Value, upto: UpTo = "") -> Value:
    """Return the number of a list's elements: `COUNT(b[])`, `COUNT(b[].x)`.

    Args:
        of: a repeated event, or its attribute, to count the elements that have it.
        upto: "i-1" for the elements before the i-th, "i" for those up to it.

    Examples:
        >>> from penstock.pattern.builder import event
        >>> b = event("B", "b").plus()
        >>> count(b) > 5, count(b.price, upto="i")
        (<COUNT(b[]) > 5>, <COUNT(b[..i].price)>)
    """
    if isinstance(of, EventPart):
        return Value(ast.Aggregate("COUNT", variable_of(of), None, _checked_upto(upto)))
    return _aggregate("COUNT", of, upto)


def total(of: Value, upto: UpTo = "") -> Value:
    """Return the sum of an attribute over a list: `SUM(b[].x)`.

    Args:
        of: an attribute of a repeated event.
        upto: "i-1" for the elements before the i-th, "i" for those up to it.

    Examples:
        >>> from penstock.pattern.builder import event
        >>> total(event("B", "b").plus().price, upto="i-1")
        <SUM(b[..i-1].price)>
    """
    return _aggregate("SUM", of, upto)


def average(of: Value, upto: UpTo = "") -> Value:
    """Return the mean of an attribute over a list: `AVG(b[].x)`.

    Args:
        of: an attribute of a repeated event.
        upto: "i-1" for the elements before the i-th, "i" for those up to it.

    Examples:
        >>> from penstock.pattern.builder import event
        >>> average(event("B", "b").plus().price)
        <AVG(b[].price)>
    """
    return _aggregate("AVG", of, upto)


def minimum(of: Value, upto: UpTo = "") -> Value:
    """Return the least of an attribute over a list: `MIN(b[].x)`.

    Args:
        of: an attribute of a repeated event.
        upto: "i-1" for the elements before the i-th, "i" for those up to it.

    Examples:
        >>> from penstock.pattern.builder import event
        >>> minimum(event("B", "b").plus().price)
        <MIN(b[].price)>
    """
    return _aggregate("MIN", of, upto)


def maximum(of: Value, upto: UpTo = "") -> Value:
    """Return the greatest of an attribute over a list: `MAX(b[].x)`.

    Args:
        of: an attribute of a repeated event.
        upto: "i-1" for the elements before the i-th, "i" for those up to it.

    Examples:
        >>> from penstock.pattern.builder import event
        >>> maximum(event("B", "b").plus().price)
        <MAX(b[].price)>
    """
    return _aggregate("MAX", of, upto)


def _aggregate(function: ast.AggregateFunction, of: Value, upto: UpTo) -> Value:
    attribute = _attribute(of, function)
    if attribute.index is not None:
        raise BuilderError(f"{function} is over the whole list; write b.price, not {of!r}, and upto for a part of it")
    return Value(ast.Aggregate(function, attribute.variable, attribute.name, _checked_upto(upto)))


def _checked_upto(upto: UpTo) -> UpTo:
    if upto not in ("", "i-1", "i"):
        raise BuilderError(f"upto is 'i-1' or 'i', not {upto!r}")
    return upto


def _attribute(value: Value, function: str) -> ast.Attribute:
    node = value._node if isinstance(value, Value) else None
    if not isinstance(node, ast.Attribute):
        raise TypeError(f"{function} takes an attribute, as in a.price, not {value!r}")
    return node


def _same_key(key: str | tuple[str, str]) -> ast.SameKey:
    if isinstance(key, tuple):
        function, attribute = key
        return ast.SameKey(checked_name(attribute, "attribute"), checked_name(function, "function"))
    return ast.SameKey(checked_name(key, "attribute"))
