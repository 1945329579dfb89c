"""Random values and conditions over the attributes of `streams`: n, x, k, flag, and ts, seq, type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.pattern import ast
from penstock.testing import SECOND_US
from tests.generators.choices import Choices
from tests.generators.profile import Profile
from tests.generators.scope import Scope

# What users would register, and what would lie outside the stream. Functions are never called with a missing value.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "half": lambda n: n // 2,
    "near": lambda one, other: abs(one - other) <= 1,
}
REMOTES: dict[str, dict[Any, Any]] = {
    "limit": {"p": 1, "q": 2},
    "row": {0: {"cap": 0}, 1: {"cap": 2}, 2: {"cap": 3}},
    "keys": {0: {"p"}, 1: {"p", "q"}, 2: {"q", "r"}, 3: set()},
}
SCHEMA = {
    "types": {"*": {"n": "int", "x": "float", "k": "string", "flag": "bool"}},
    "functions": {
        "half": {"arguments": ["int"], "returns": "int"},
        "near": {"arguments": ["float", "float"], "returns": "bool"},
    },
    "remotes": {
        "limit": {"key": "string", "value": "int"},
        "row": {"key": "int", "row": {"cap": "int"}},
        "keys": {"key": "int", "value": "string", "set": True},
    },
}

_COMPARATORS: tuple[ast.Comparator, ...] = ("<=", ">=", "<>", "<", ">", "=")
_ORDER: tuple[ast.Comparator, ...] = ("<=", ">=", "<", ">")
_OPERATORS: tuple[ast.ArithmeticOperator, ...] = ("+", "-", "*", "/", "%")
_AGGREGATES: tuple[ast.AggregateFunction, ...] = ("COUNT", "SUM", "AVG", "MIN", "MAX")
_ONE_ARGUMENT = ("abs", "floor", "ceil", "round", "sign", "sqrt", "exp", "ln")
_CONSTANTS = (1, 2, 0, 0.5, 3, 1.5)
_SECONDS = (2, 1, 3, 5, 0.5)
_VALUES = ("attribute",) * 9 + ("number",) * 3 + ("aggregate",) * 4 + ("arithmetic",) * 3 + ("call",) * 7 + (
    "previous", "previous", "minus", "remote",
)  # fmt: skip
_CONDITIONS = ("numbers",) * 8 + ("times",) * 3 + ("texts",) * 3 + ("membership",) * 2 + ("logic",) * 3 + (
    "flag", "function", "remote set", "type", "seq",
)  # fmt: skip


class Expressions:
    """Draws expressions that name what one scope allows."""

    def __init__(self, choices: Choices, profile: Profile, scope: Scope) -> None:
        self._choices = choices
        self._profile = profile
        self._scope = scope
        self._may_aggregate = profile.aggregates and scope.has_lists

    # --- values ---------------------------------------------------------------------------------------------

    def amount(self) -> ast.Expression:
        """Return the attribute of an event, or an aggregate of a list."""
        if self._may_aggregate and self._choices.chance(35):
            return self._aggregate()
        return self._scope.attribute(self._choices.pick(("n", "x")))

    def value(self, depth: int = 0) -> ast.Expression:
        """Return a number."""
        kind = self._choices.pick(_VALUES if depth < 2 else _VALUES[:16])
        match kind:
            case "number":
                return ast.Number(self._choices.pick(_CONSTANTS))
            case "aggregate" if self._may_aggregate:
                return self._aggregate()
            case "arithmetic":
                return self._arithmetic(depth)
            case "call":
                return self._call(depth)
            case "previous" if self._profile.previous:
                return ast.Previous(self._scope.attribute(self._choices.pick(("n", "x"))))
            case "minus":
                return ast.Minus(self.value(depth + 1))
            case "remote":
                return self._remote()
        return self._scope.attribute(self._choices.pick(("n", "x")))

    def _aggregate(self) -> ast.Expression:
        function = self._choices.pick(_AGGREGATES)
        name = None if function == "COUNT" and self._choices.chance(60) else self._choices.pick(("n", "x"))
        return self._scope.aggregate(function, name)

    def _arithmetic(self, depth: int) -> ast.Expression:
        operator = self._choices.pick(_OPERATORS)
        left = self.value(depth + 1)
        # Division by a constant zero is never true, and refused; by an attribute that is zero, missing.
        right = self._scope.attribute("n") if operator in ("/", "%") else self.value(depth + 1)
        return ast.Arithmetic(operator, left, right)

    def _call(self, depth: int) -> ast.Expression:
        kind = self._choices.below(8)
        if kind == 0:
            argument = self.value(depth + 1)
            # A condition on sqrt(-1) is never true, and refused.
            is_constant = not ast.variables_of(argument)
            return ast.Call(
                self._choices.pick(_ONE_ARGUMENT), (self._scope.attribute("n") if is_constant else argument,)
            )
        if kind == 1:
            return ast.Call(self._choices.pick(("min", "max")), (self.value(depth + 1), self.value(depth + 1)))
        if kind == 2:
            return ast.Call("pow", (self._scope.attribute("x"), ast.Number(self._choices.pick((2, 3)))))
        if kind == 3:
            names = self._choices.pick((("n", "x", "n", "x"), ("n", "x", "n", "n", "x", "x")))
            return ast.Call("dist", tuple(map(self._scope.attribute, names)))
        if kind == 4:
            return ast.Call("half", (self._scope.attribute("n"),))
        return ast.Call(self._choices.pick(_ONE_ARGUMENT), (self._scope.attribute("x"),))

    def _remote(self) -> ast.Expression:
        if self._choices.chance(50):
            return ast.Remote("row", self._scope.attribute("n"), "cap")
        return ast.Remote("limit", self._scope.attribute("k"))

    def _duration(self) -> ast.Expression:
        return ast.Duration(int(self._choices.pick(_SECONDS) * SECOND_US))

    # --- conditions -----------------------------------------------------------------------------------------

    def condition(self, depth: int = 0) -> ast.Expression:
        """Return a condition that many events satisfy."""
        kind = self._choices.pick(_CONDITIONS if depth < 2 else _CONDITIONS[:8])
        match kind:
            case "times":
                return self._times()
            case "texts":
                return self._texts()
            case "membership":
                members = tuple(ast.Number(n) for n in self._choices.pick(((0, 1), (1, 2), (1, 2, 3), (0.5, 1, 2.5))))
                return ast.Membership(self.amount(), members, self._choices.chance(30))
            case "logic":
                return self._logic(depth)
            case "flag":
                flag = self._scope.attribute("flag")
                is_compared = self._choices.chance(40)
                return ast.Comparison("=", flag, ast.Boolean(self._choices.chance(50))) if is_compared else flag
            case "function":
                return ast.Call("near", (self._scope.attribute("x"), self._scope.attribute("x")))
            case "remote set":
                remote = ast.Remote("keys", self._scope.attribute("n"))
                return ast.Membership(self._scope.attribute("k"), remote, self._choices.chance(30))
            case "type":
                types = ast.Text("A"), ast.Text("B"), ast.Text("C")
                return ast.Membership(self._scope.attribute("type"), types, self._choices.chance(30))
            case "seq":
                left, right = self._scope.attribute("seq"), self._scope.attribute("seq")
                return ast.Comparison(self._choices.pick(_COMPARATORS), left, right)
        return ast.Comparison(self._choices.pick(_COMPARATORS), self.amount(), self.value())

    def _logic(self, depth: int) -> ast.Expression:
        kind = self._choices.below(3)
        if kind == 2:
            return ast.Not(self.condition(depth + 1))
        items = self.condition(depth + 1), self.condition(depth + 1)
        # A top-level AND would be two conjuncts.
        return ast.Or(items) if kind == 0 or depth == 0 else ast.And(items)

    def _times(self) -> ast.Expression:
        kind = self._choices.below(5)
        order = self._choices.pick(_ORDER)
        ts = self._scope.attribute("ts")
        if kind == 1 and self._profile.clock:
            return ast.Comparison(order, ast.Arithmetic("%", ts, ast.Duration(4 * SECOND_US)), self._duration())
        if kind == 2:
            return ast.Comparison(order, ast.Arithmetic("+", ts, self._duration()), self._scope.attribute("ts"))
        if kind == 3 and self._may_aggregate:
            last = self._scope.aggregate(self._choices.pick(("MAX", "MIN")), "ts")
            return ast.Comparison(order, ast.Arithmetic("-", last, ts), self._duration())
        if kind == 4 and self._profile.previous:
            before = ast.Previous(self._scope.attribute("ts"))
            return ast.Comparison(order, ast.Arithmetic("-", ts, before), self._duration())
        return ast.Comparison(order, ast.Arithmetic("-", self._scope.attribute("ts"), ts), self._duration())

    def _texts(self) -> ast.Expression:
        kind = self._choices.below(5)
        if kind == 1:
            members = ast.Text("p"), ast.Text("q")
            return ast.Membership(self._scope.attribute("k"), members, self._choices.chance(30))
        if kind == 2 and self._may_aggregate:
            last = self._scope.aggregate(self._choices.pick(("MAX", "MIN")), "k")
            return ast.Comparison(self._choices.pick(_COMPARATORS), last, self._scope.attribute("k"))
        if kind == 3:
            return ast.Comparison(self._choices.pick(("=", "<>")), self._scope.attribute("k"), ast.Text("p"))
        return ast.Comparison(self._choices.pick(_COMPARATORS), self._scope.attribute("k"), self._scope.attribute("k"))


def same(choices: Choices) -> ast.Same:
    """Return SAME over a key that events often share, or several."""
    keys: list[ast.SameKey] = [
        choices.pick((ast.SameKey("k"), ast.SameKey("k"), ast.SameKey("n", "half"), ast.SameKey("n", "sign")))
    ]
    if choices.chance(15):
        keys.append(ast.SameKey("x", "abs"))
    return ast.Same(tuple(keys))
