"""Copies of a function are known for the same, and functions that differ in anything are not."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from penstock.engine.functions import _compiled_once
from penstock.engine.meaning import Known

FACTOR, LIST = 2.0, [1]


def scaled(a: float, b: float = 3.0) -> float:
    return FACTOR * math.sqrt(a) + b


def falling(n: float) -> float:
    return 1.0 if n < 1 else n * falling(n - 1)


def listed(a: float) -> float:
    return a + LIST[0]


def above(least: float) -> Callable[[float], float]:
    return lambda a: max(a, least)


def copied(function: Any, **changed: Any) -> Any:
    """Return a function as it comes from another process, some values that it names changed."""
    names = {**function.__globals__, **changed}
    copy = FunctionType(function.__code__.replace(), names, function.__name__, function.__defaults__)
    names[function.__name__] = copy
    return copy


def test_copies_are_the_same() -> None:
    for function in (scaled, falling):
        assert Known(copied(function)) == Known(function)
        assert hash(Known(copied(function))) == hash(Known(function))
    assert Known(above(2.0)) == Known(above(2.0))


def test_what_differs_in_anything_is_another_one() -> None:
    other = copied(scaled)
    other.__defaults__ = (4.0,)
    different = [scaled, copied(scaled, FACTOR=3.0), copied(scaled, FACTOR=2), other, falling, above(1.0), above(2.0)]
    different += [above(0.0), above(-0.0), listed, copied(listed), copied(scaled, math=np)]
    assert len(set(map(Known, different))) == len(different)


def test_a_copy_is_not_compiled_again() -> None:
    compiled = _compiled_once(Known(copied(scaled)), 2)
    assert _compiled_once(Known(copied(scaled)), 2) is compiled
    assert _compiled_once(Known(copied(scaled, FACTOR=5.0)), 2) is not compiled
