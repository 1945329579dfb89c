"""Constant folding: what a condition says without looking at events.

`fold` gives an expression that has the same value wherever the given one has one, and that applies to the same
matches: what an expression names decides where it is vacuous (docs/language.md, section 3), so a part that names
something is only dropped if the rest names it too. Durations become numbers of microseconds.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from penstock.pattern import ast
from penstock.pattern.references import names

MAX_INT = 2**63 - 1


class Missing:
    """The value of `1 / 0`."""


MISSING: Final = Missing()
Constant: TypeAlias = int | float | str | bool | Missing

_ARITHMETIC: dict[str, Callable[[int | float, int | float], int | float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": operator.mod,
}  # fmt: skip
_COMPARISONS: dict[str, Callable[..., bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
# Those of the functions whose value does not hang on how a machine rounds.
_FUNCTIONS: dict[str, Callable[..., int | float]] = {
    "abs": abs, "sqrt": math.sqrt, "floor": math.floor, "ceil": math.ceil, "sign": lambda x: (x > 0) - (x < 0),
}  # fmt: skip
_LOGICAL = ast.Comparison | ast.Membership | ast.And | ast.Or | ast.Not | ast.Boolean


def fold(expression: ast.Expression) -> ast.Expression:
    """Return a condition with its constants folded; its value and where it applies stay the same.

    A part that names something goes if the rest names it too, or if the whole is true anyway.

    Args:
        expression: a conjunct, or any condition.

    Examples:
        >>> from penstock.pattern.parser import parse
        >>> def folded(condition):
        ...     return fold(parse(f"PATTERN SEQ(A a, B? b) WHERE {condition} WITHIN 1 s").where)
        >>> folded("a.x > 1 + 2 OR 3 < 2")
        Comparison(operator='>', left=Attribute(variable='a', name='x', index=None), right=Number(value=3))
        >>> folded("1 / 0 > 2")
        Boolean(value=False)
        >>> folded("NOT (b.x > 1 OR TRUE)") == folded("FALSE")  # it is vacuous if b is not there
        False
    """
    bold = _folded(expression, keep_names=False, is_condition=True)
    if bold == ast.Boolean(True) or names(bold) == names(expression):
        return bold
    return _folded(expression, keep_names=True, is_condition=True)


def is_never_true(condition: ast.Expression) -> bool:
    """Return whether a condition is false wherever it applies.

    Examples:
        >>> from penstock.pattern.parser import parse
        >>> is_never_true(parse("PATTERN A a WHERE a.x / 0 > 1 WITHIN 1 s").where)
        True
    """
    return _folded(condition, keep_names=False, is_condition=True) == ast.Boolean(False)


def _folded(node: ast.Expression, *, keep_names: bool, is_condition: bool) -> ast.Expression:
    """Fold from the leaves up. `is_condition`: a missing value in this place means FALSE."""
    if isinstance(node, ast.And | ast.Or):
        return _junction(node, keep_names=keep_names, is_condition=is_condition)
    if isinstance(node, ast.Not):
        item = _folded(node.item, keep_names=keep_names, is_condition=True)
        return _negation(node, item, is_condition=is_condition)
    folded = _with_folded_operands(node, keep_names=keep_names)
    value = _constant(folded)
    if value is not None and not isinstance(value, Missing):
        return _literal(value, node)
    if not keep_names and isinstance(folded, ast.Comparison | ast.Membership) and _is_vain(folded):
        return ast.Boolean(False, position=node.position)
    return folded


def _with_folded_operands(node: ast.Expression, *, keep_names: bool) -> ast.Expression:
    def below(operand: ast.Expression) -> ast.Expression:
        return _folded(operand, keep_names=keep_names, is_condition=False)

    match node:
        case ast.Minus(operand=operand):
            return replace(node, operand=below(operand))
        case ast.Arithmetic(left=left, right=right) | ast.Comparison(left=left, right=right):
            return replace(node, left=below(left), right=below(right))
        case ast.Membership(item=item, members=ast.Remote() as remote):
            return replace(node, item=below(item), members=replace(remote, key=below(remote.key)))
        case ast.Membership(item=item, members=tuple() as members):
            return replace(node, item=below(item), members=tuple(map(below, members)))
        case ast.Call(arguments=arguments):
            return replace(node, arguments=tuple(map(below, arguments)))
        case ast.Remote(key=key):
            return replace(node, key=below(key))
    return node


def _is_vain(node: ast.Comparison | ast.Membership) -> bool:
    """Return whether what is compared never has a value."""
    if isinstance(node, ast.Membership):
        return _is_always_missing(node.item)
    return _is_always_missing(node.left) or _is_always_missing(node.right)


def _is_always_missing(node: ast.Expression) -> bool:
    match node:
        case ast.Arithmetic(operator="/" | "%", right=right) if _constant(right) in (0, MISSING):
            return True
        case ast.Arithmetic(left=left, right=right):
            return _is_always_missing(left) or _is_always_missing(right)
        case ast.Minus(operand=operand):
            return _is_always_missing(operand)
    return isinstance(_constant(node), Missing)


def _junction(node: ast.And | ast.Or, *, keep_names: bool, is_condition: bool) -> ast.Expression:
    """Fold AND or OR: `neutral` items say nothing, an `absorbing` one says it all."""
    neutral = ast.Boolean(isinstance(node, ast.And))
    absorbing = ast.Boolean(not neutral.value)
    items = [_folded(item, keep_names=keep_names, is_condition=True) for item in node.items]
    if absorbing in items and (not keep_names or not any(map(names, items))):
        return replace(absorbing, position=node.position)
    flat: list[ast.Expression] = []
    for item in items:
        flat += item.items if type(item) is type(node) else [item]
    said = list(dict.fromkeys(item for item in flat if item != neutral))
    if not said:
        return replace(neutral, position=node.position)
    if len(said) == 1 and (is_condition or isinstance(said[0], _LOGICAL)):
        return said[0]
    return replace(node, items=tuple(said if len(said) > 1 else [neutral, *said]))


def _negation(node: ast.Not, item: ast.Expression, *, is_condition: bool) -> ast.Expression:
    if isinstance(item, ast.Boolean):
        return ast.Boolean(not item.value, position=node.position)
    if isinstance(item, ast.Not) and (is_condition or isinstance(item.item, _LOGICAL)):
        return item.item
    return replace(node, item=item)


# --- constants ----------------------------------------------------------------------------------------------


def _constant(node: ast.Expression) -> Constant | None:
    """Return the value of an expression that names nothing; None if it names something or cannot be folded."""
    match node:
        case ast.Number(value=value) | ast.Text(value=value) | ast.Boolean(value=value):
            return value
        case ast.Duration(us=us):
            return us
        case ast.Minus(operand=operand):
            return _calculated(operator.sub, 0, _constant(operand))
        case ast.Arithmetic(operator=sign, left=left, right=right):
            return _calculated(_ARITHMETIC[sign], _constant(left), _constant(right))
        case ast.Call(function=function, arguments=(argument,)) if function.lower() in _FUNCTIONS:
            return _calculated(_FUNCTIONS[function.lower()], _constant(argument))
        case ast.Comparison(operator=sign, left=left, right=right):
            return _compared(sign, _constant(left), _constant(right))
        case ast.Membership(item=item, members=tuple() as members, negated=negated):
            return _contained(_constant(item), [_constant(member) for member in members], negated)
    return None


def _calculated(function: Callable[..., int | float], *arguments: Constant | None) -> Constant | None:
    if any(isinstance(each, Missing) for each in arguments):
        return None if any(each is None for each in arguments) else MISSING
    if not all(isinstance(each, int | float) and not isinstance(each, bool) for each in arguments):
        return None
    try:
        result = function(*arguments)
    except (ZeroDivisionError, ValueError):
        return MISSING
    except OverflowError:
        return None
    # Larger than what an engine's integers hold, or infinite: there is no such literal, so it stays as it is.
    return result if abs(result) <= (MAX_INT if isinstance(result, int) else 1e300) else None


def _kind(value: Constant) -> str:
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def _compared(sign: str, left: Constant | None, right: Constant | None) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(left, Missing) or isinstance(right, Missing):
        return False
    if _kind(left) != _kind(right) or (isinstance(left, bool) and sign not in ("=", "<>")):
        return None  # a mistake that is not ours to hide
    return bool(_COMPARISONS[sign](left, right))


def _contained(item: Constant | None, members: list[Constant | None], negated: bool) -> bool | None:
    if item is None or None in members:
        return None
    if isinstance(item, Missing):
        return False
    found = [_compared("=", item, member) for member in members]
    if None in found or any(isinstance(member, Missing) for member in members):
        return None
    return any(found) is not negated


def _literal(value: int | float | str | bool, like: ast.Node) -> ast.Expression:
    if isinstance(value, bool):
        return ast.Boolean(value, position=like.position)
    if isinstance(value, str):
        return ast.Text(value, position=like.position)
    number = ast.Number(abs(value), position=like.position)
    return ast.Minus(number, position=like.position) if value < 0 else number
