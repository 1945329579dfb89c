"""The types of RETURN columns, as far as the text of a query and the types of attributes tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from penstock.engine.found import EventStore
from penstock.pattern import ast
from penstock.pattern.functions import built_in
from penstock.pattern.variables import BUILT_IN
from penstock.plan.tables import Bools, Floats, Ints
from penstock.plan.terms import TEXT_BASE

Kinds: TypeAlias = Callable[[str], str | None]  # attribute -> bool, int, float, string, time, duration, or None

_WHOLE = frozenset({"int", "time", "duration", "bool"})
_OF_ARGUMENTS = frozenset({"abs", "min", "max", "floor", "ceil", "round", "sign"})


def kind_of(expression: ast.Expression, kinds: Kinds) -> str | None:
    """Return bool, int, float or string; None if only the values can tell.

    Times and durations are microseconds, so they are int.
    """
    match expression:
        case ast.Boolean() | ast.Comparison() | ast.Membership() | ast.And() | ast.Or() | ast.Not():
            return "bool"
        case ast.Text():
            return "string"
        case ast.Duration() | ast.Aggregate(function="COUNT"):
            return "int"
        case ast.Number(value=value):
            return "int" if isinstance(value, int) else "float"
        case ast.Attribute(name=name) | ast.Previous(attribute=ast.Attribute(name=name)):
            return _spelled(BUILT_IN.get(name) or kinds(name))
        case ast.Aggregate(function="MIN" | "MAX", name=str(name)):
            return _spelled(BUILT_IN.get(name) or kinds(name))
        case ast.Aggregate(function="SUM", name=str(name)):
            return _whole_or_float([BUILT_IN.get(name) or kinds(name)])
        case ast.Minus(operand=operand):
            return _whole_or_float([kind_of(operand, kinds)])
        case ast.Arithmetic(operator=sign, left=left, right=right) if sign != "/":
            return _whole_or_float([kind_of(left, kinds), kind_of(right, kinds)])
        case ast.Call(function=function, arguments=arguments) if function.lower() in _OF_ARGUMENTS:
            return _whole_or_float([kind_of(each, kinds) for each in arguments])
        case ast.Call(function=function) if built_in(function) is None:
            return None
        case ast.Remote():
            return None
        case _:
            return "float"


def _spelled(kind: str | None) -> str | None:
    return "int" if kind in ("time", "duration") else kind


def _whole_or_float(kinds: list[str | None]) -> str:
    return "int" if all(kind in _WHOLE for kind in kinds) else "float"


def as_arrow(values: Floats, kind: str | None, store: EventStore) -> pa.Array:
    """Return values (missing: NaN; a text: its code) as a column of Arrow; if the kind is not known, as they are."""
    missing = np.isnan(values)
    if kind is None:
        if missing.all():
            return pa.nulls(len(values))  # a later batch tells
        kind = "string" if (values >= TEXT_BASE).any() else "float"
    if kind == "string":
        return _texts(values, missing, store)
    if kind == "bool":
        return pa.array(values == 1.0, pa.bool_(), mask=missing)
    if kind == "int":
        is_lost = missing | (np.abs(values) >= 2.0**63)  # a product may be too large
        return pa.array(np.where(is_lost, 0.0, values).astype(np.int64), pa.int64(), mask=is_lost)
    return pa.array(values, pa.float64(), mask=missing)


def _texts(values: Floats, missing: Bools, store: EventStore) -> pa.Array:
    """Return texts, each looked up once; a number among them becomes a text."""
    distinct, at = np.unique(values[~missing], return_inverse=True)
    is_text = distinct >= TEXT_BASE
    ids: Ints = (distinct[is_text] - TEXT_BASE).astype(np.int64)
    spelled = [*(f"{value:.17g}" for value in distinct[~is_text].tolist()), *store.text(ids)]  # numbers come first
    index = np.zeros(len(values), np.int64)
    index[~missing] = at.reshape(-1)
    return pa.array(spelled, pa.string()).take(pa.array(index, pa.int64(), mask=missing))
