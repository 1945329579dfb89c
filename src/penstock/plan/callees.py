"""Calls that leave the kernel: of user functions, and of remote sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, TypeVar

from penstock.pattern import ast
from penstock.pattern.functions import built_in

_N = TypeVar("_N", bound=ast.Node)

# A function that no query can name: whether what a lookup, its first argument, gives is not there yet. The second says
# what it is asked with. See penstock.plan.postponing.
IS_PENDING = "is pending"


class Asks(Enum):
    """What a call asks."""

    FUNCTION = "function"
    VALUE = "value"  # of a remote source, for a key; or a column of the row there
    IS_IN = "in"  # whether an item is in the set that a remote source has for a key
    NOT_IN = "not in"
    IS_PENDING = "is pending"  # whether the remote source does not have it yet


@dataclass(frozen=True)
class Callee:
    """What is called: a function or a remote source by its name, and the arguments, whose types tell what Python sees.

    The arguments name no variable: the same call of any variable is the same callee.
    """

    asks: Asks
    name: str
    arguments: tuple[ast.Expression, ...]
    column: str | None = None


@dataclass(frozen=True)
class Address:
    """A constant that is known when functions are: where the code of a callee is; 0 if it has none that is compiled."""

    callee: Callee
    is_compiled: bool


def called(node: ast.Expression) -> tuple[Callee, tuple[ast.Expression, ...]] | None:
    """Return the callee of an expression and its arguments; None if it calls nothing."""
    match node:
        case ast.Call(function=name, arguments=(ast.Remote(source=source, key=key), _)) if name == IS_PENDING:
            return Callee(Asks.IS_PENDING, source, _bare_all((key,))), (key,)
        case ast.Call(function=name, arguments=arguments) if built_in(name) is None:
            return Callee(Asks.FUNCTION, name, _bare_all(arguments)), arguments
        case ast.Remote(source=source, key=key, column=column):
            return Callee(Asks.VALUE, source, _bare_all((key,)), column), (key,)
        case ast.Membership(item=item, members=ast.Remote() as remote, negated=negated):
            arguments = (item, remote.key)
            asks = Asks.NOT_IN if negated else Asks.IS_IN
            return Callee(asks, remote.source, _bare_all(arguments), remote.column), arguments
    return None


def _bare_all(nodes: tuple[ast.Expression, ...]) -> tuple[ast.Expression, ...]:
    return tuple(map(bare, nodes))


def bare(node: _N) -> _N:
    """Return an expression without the variables of its attributes: what it says of any event."""
    values: dict[str, Any] = {each.name: _bare_value(getattr(node, each.name)) for each in fields(node)}
    if isinstance(node, ast.Attribute | ast.Aggregate):
        values["variable"] = "_"
    if isinstance(node, ast.Attribute):
        values["index"] = None
    return replace(node, **values)


def _bare_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_bare_value, value))
    return bare(value) if isinstance(value, ast.Node) else value


def element_of(node: ast.Expression) -> ast.Attribute | None:
    """Return an attribute of the one element that an expression reads; None if it reads several, a list, or none."""
    if any(isinstance(each, ast.Aggregate) for each in ast.walk(node)):
        return None
    read = [each for each in ast.walk(node) if isinstance(each, ast.Attribute)]
    return read[0] if len({(each.variable, each.index) for each in read}) == 1 else None


def names_called(query: ast.Query) -> tuple[set[str], set[str]]:
    """Return the user functions and the remote sources that a query names."""
    nodes = list(_expressions(query))
    calls = {node.function for node in nodes if isinstance(node, ast.Call | ast.SameKey) and node.function}
    sources = {node.source for node in nodes if isinstance(node, ast.Remote)}
    return {name for name in calls if built_in(name) is None}, sources


def _expressions(query: ast.Query) -> Iterator[ast.Node]:
    opening = None if query.window is None or query.window.on is None else query.window.on.where
    for expression in (query.where, opening, *(each.expression for each in query.returns)):
        if expression is not None:
            yield from ast.walk(expression)
