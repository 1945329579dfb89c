"""Conditions as programs for a small stack machine over numbers.

Every value is a float64: missing is NaN, a truth value is 0 or 1, a text is the code of the text (see `TEXT_BASE`).
A *reference* is something of the match that a condition names: an attribute of an element, or an aggregate of a list.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeVar

from penstock.errors import PenstockError
from penstock.pattern import ast
from penstock.plan.positions import Numbered

_T = TypeVar("_T")

# Texts are numbered from here on, so that no text equals a number: 2**52, where floats are still exact.
TEXT_BASE = 4_503_599_627_370_496.0


class NotYetError(PenstockError):
    """Something that the language can say and the kernel cannot run yet."""


class Code(IntEnum):
    """The operations of the stack machine."""

    CONST = 0
    REF = 1
    NEG = 2
    ADD = 3
    SUB = 4
    MUL = 5
    DIV = 6
    MOD = 7
    EQ = 8
    NE = 9
    LT = 10
    LE = 11
    GT = 12
    GE = 13
    AND = 14
    OR = 15
    NOT = 16
    ABS = 17
    SQRT = 18
    FLOOR = 19
    CEIL = 20
    ROUND = 21
    EXP = 22
    LN = 23
    POW = 24
    SIGN = 25
    MIN = 26
    MAX = 27


class Index(IntEnum):
    """Which element of a variable a reference means."""

    CURRENT = 0  # a, a[i]
    BEFORE = 1  # a[i-1]
    FIRST = 2
    LAST = 3
    NUMBER = 4  # a[3]
    ALL = 5  # an aggregate over a[]
    UPTO_BEFORE = 6  # over a[..i-1]
    UPTO = 7  # over a[..i]


AGGREGATES = {"": -1, "COUNT": 0, "SUM": 1, "AVG": 2, "MIN": 3, "MAX": 4}
_ARITHMETIC = {"+": Code.ADD, "-": Code.SUB, "*": Code.MUL, "/": Code.DIV, "%": Code.MOD}
_COMPARISON = {"=": Code.EQ, "<>": Code.NE, "<": Code.LT, "<=": Code.LE, ">": Code.GT, ">=": Code.GE}
_UNARY = {
    "abs": Code.ABS, "sqrt": Code.SQRT, "floor": Code.FLOOR, "ceil": Code.CEIL, "round": Code.ROUND,
    "exp": Code.EXP, "ln": Code.LN, "sign": Code.SIGN,
}  # fmt: skip
_FOLDED = {"min": Code.MIN, "max": Code.MAX}
_INDEX = {None: Index.CURRENT, "i": Index.CURRENT, "i-1": Index.BEFORE, "first": Index.FIRST, "last": Index.LAST}


@dataclass(frozen=True)
class Column:
    """A column of event values that conditions read: an attribute, or its value at the previous event of the type."""

    name: str
    is_previous: bool = False


@dataclass(frozen=True)
class Reference:
    """Something of the match that a condition names; `column` is -1 for COUNT(a[])."""

    variable: int
    index: Index
    number: int = 0
    column: int = -1
    aggregate: int = -1


@dataclass(frozen=True)
class Condition:
    """A conjunct: its program, what it names, the depth of its rounds; for SAME, `same` is its column."""

    program: tuple[tuple[int, int], ...]
    references: tuple[int, ...]
    variables: frozenset[int]
    depth: int = 0
    same: int = -1


@dataclass
class Terms:
    """The conditions of a query, and the columns, constants and references that they share."""

    numbered: Numbered
    columns: list[Column] = field(default_factory=list)
    constants: list[float | str] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)

    def add(self, conjunct: ast.Expression) -> None:
        """Compile a conjunct; SAME gives one condition per key."""
        if isinstance(conjunct, ast.Same):
            for key in conjunct.keys:
                if key.function is not None:
                    raise NotYetError(f"SAME[{key.function}(…)] cannot be run yet: user functions are not supported")
                self.conditions.append(Condition((), (), frozenset(), same=self.column(key.attribute)))
            return
        compiler = _Compiler(self)
        compiler.value(conjunct)
        used = tuple(dict.fromkeys(a for code, a in compiler.program if code == Code.REF))
        named = frozenset(self.references[r].variable for r in used)
        depth = max((self.depth_of(r) for r in used), default=0)
        self.conditions.append(Condition(tuple(compiler.program), used, named, depth))

    def column(self, name: str, *, is_previous: bool = False) -> int:
        """Return the number of a column, adding it if it is new."""
        return _number_in(self.columns, Column(name, is_previous))

    def constant(self, value: float | str) -> int:
        """Return the number of a constant, adding it if it is new."""
        for number, each in enumerate(self.constants):
            if type(each) is type(value) and each == value:
                return number
        self.constants.append(value)
        return len(self.constants) - 1

    def depth_of(self, reference: int) -> int:
        """Return the depth of the rounds that a reference ranges over, 0 if it does not."""
        ref = self.references[reference]
        per_round = ref.index in (Index.CURRENT, Index.BEFORE, Index.UPTO, Index.UPTO_BEFORE)
        return len(self.numbered.variables[ref.variable].loops) if per_round else 0


@dataclass
class _Compiler:
    terms: Terms
    program: list[tuple[int, int]] = field(default_factory=list)

    def emit(self, code: Code, argument: int = 0) -> None:
        self.program.append((int(code), argument))

    def reference(self, reference: Reference) -> None:
        self.emit(Code.REF, _number_in(self.terms.references, reference))

    def value(self, node: ast.Expression) -> None:
        match node:
            case ast.Number(value=value):
                self.emit(Code.CONST, self.terms.constant(float(value)))
            case ast.Duration(us=us):
                self.emit(Code.CONST, self.terms.constant(float(us)))
            case ast.Boolean(value=truth):
                self.emit(Code.CONST, self.terms.constant(float(truth)))
            case ast.Text(value=text):
                self.emit(Code.CONST, self.terms.constant(text))
            case ast.Attribute():
                self.attribute(node, is_previous=False)
            case ast.Previous(attribute=attribute):
                self.attribute(attribute, is_previous=True)
            case ast.Aggregate():
                self.aggregate(node)
            case ast.Minus(operand=operand):
                self.value(operand)
                self.emit(Code.NEG)
            case ast.Arithmetic(operator=operator, left=left, right=right):
                self.both(left, right, _ARITHMETIC[operator])
            case ast.Comparison(operator=comparator, left=left, right=right):
                self.both(left, right, _COMPARISON[comparator])
            case ast.Not(item=item):
                self.value(item)
                self.emit(Code.NOT)
            case ast.And(items=items):
                self.folded(items, Code.AND)
            case ast.Or(items=items):
                self.folded(items, Code.OR)
            case ast.Membership():
                self.membership(node)
            case ast.Call():
                self.call(node)
            case _:
                raise NotYetError(f"{type(node).__name__} cannot be run yet")

    def both(self, left: ast.Expression, right: ast.Expression, code: Code) -> None:
        self.value(left)
        self.value(right)
        self.emit(code)

    def folded(self, items: tuple[ast.Expression, ...], code: Code) -> None:
        self.value(items[0])
        for item in items[1:]:
            self.value(item)
            self.emit(code)

    def attribute(self, node: ast.Attribute, is_previous: bool) -> None:
        variable = self.terms.numbered.number_of(node.variable)
        column = self.terms.column(node.name, is_previous=is_previous)
        if isinstance(node.index, int):
            self.reference(Reference(variable, Index.NUMBER, node.index, column))
        else:
            self.reference(Reference(variable, _INDEX[node.index], 0, column))

    def aggregate(self, node: ast.Aggregate) -> None:
        index = {"": Index.ALL, "i-1": Index.UPTO_BEFORE, "i": Index.UPTO}[node.upto]
        column = -1 if node.name is None else self.terms.column(node.name)
        variable = self.terms.numbered.number_of(node.variable)
        self.reference(Reference(variable, index, 0, column, AGGREGATES[node.function]))

    def membership(self, node: ast.Membership) -> None:
        if isinstance(node.members, ast.Remote):
            raise NotYetError("REMOTE cannot be run yet")
        for place, member in enumerate(node.members):
            self.both(node.item, member, Code.EQ)
            if place:
                self.emit(Code.OR)
        if node.negated:
            self.emit(Code.NOT)
            self.both(node.item, node.item, Code.EQ)  # false if the item is missing
            self.emit(Code.AND)

    def call(self, node: ast.Call) -> None:
        name = node.function.lower()
        if name in _UNARY:
            self.value(node.arguments[0])
            self.emit(_UNARY[name])
        elif name in _FOLDED:
            self.folded(node.arguments, _FOLDED[name])
        elif name == "pow":
            self.both(node.arguments[0], node.arguments[1], Code.POW)
        elif name == "dist":
            self.dist(node.arguments)
        else:
            raise NotYetError(f"{node.function} cannot be run yet: user functions are not supported")

    def dist(self, arguments: tuple[ast.Expression, ...]) -> None:
        half = len(arguments) // 2
        for place, (a, b) in enumerate(zip(arguments[:half], arguments[half:], strict=True)):
            self.both(a, b, Code.SUB)
            self.both(a, b, Code.SUB)
            self.emit(Code.MUL)
            if place:
                self.emit(Code.ADD)
        self.emit(Code.SQRT)


def _number_in(items: list[_T], item: _T) -> int:
    if item not in items:
        items.append(item)
    return items.index(item)
