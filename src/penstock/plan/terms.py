"""Conditions as programs for a small stack machine over numbers.

Every value is a float64: missing is NaN, a truth value is 0 or 1, a text is the code of the text (see `TEXT_BASE`).
A *reference* is something of the match that a condition names: an attribute of an element, or an aggregate of a list.

A call of a user function or of a remote source is an operation too. But where all that it is given comes from one event
(`f(a.x, a.y)`, `SAME[f(x)]`), its value is a *derived* column, worked out when the event comes in: to what asks runs it
is an attribute like others, which can be kept, compared as an interval and found by an index.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import TypeAlias, TypeVar

from penstock.errors import PenstockError
from penstock.pattern import ast
from penstock.pattern.render import render_expression
from penstock.plan.callees import Address, Callee, bare, called, element_of
from penstock.plan.layout import CALL_COMPILED
from penstock.plan.positions import Numbered

_T = TypeVar("_T")
Constant: TypeAlias = float | str | Address
Program: TypeAlias = tuple[tuple[int, int], ...]  # (operation, argument), for the stack machine

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
    CALL = 28  # its argument: where constants have the number of its arguments and its addresses


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
COMPARISONS = {"=": Code.EQ, "<>": Code.NE, "<": Code.LT, "<=": Code.LE, ">": Code.GT, ">=": Code.GE}
_UNARY = {
    "abs": Code.ABS, "sqrt": Code.SQRT, "floor": Code.FLOOR, "ceil": Code.CEIL, "round": Code.ROUND,
    "exp": Code.EXP, "ln": Code.LN, "sign": Code.SIGN,
}  # fmt: skip
_FOLDED = {"min": Code.MIN, "max": Code.MAX}
_INDEX = {None: Index.CURRENT, "i": Index.CURRENT, "i-1": Index.BEFORE, "first": Index.FIRST, "last": Index.LAST}


@dataclass(frozen=True)
class Column:
    """A column of event values that conditions read: an attribute, or its value at the previous event of the type.

    With a node it is derived: what this expression is worth for an event.
    """

    name: str
    is_previous: bool = False
    node: ast.Expression | None = None


@dataclass(frozen=True)
class Derived:
    """How a derived column is worked out: a program whose references are columns; for events of which variables."""

    program: Program
    variables: set[int]


class Calls(Enum):
    """What becomes of calls of user functions and of remote sources."""

    REFUSED = 0
    CALLED = 1  # an operation each
    DERIVED = 2  # a derived column, where one event has all arguments

    @property
    def without_columns(self) -> Calls:
        """The same where no columns are derived: calls are few, or made for events that have just come in."""
        return Calls.CALLED if self is Calls.DERIVED else self


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

    program: Program
    references: tuple[int, ...]
    variables: frozenset[int]
    depth: int = 0
    same: int = -1
    node: ast.Expression | None = None


@dataclass
class Terms:
    """The conditions of a query, and the columns, constants and references that they share."""

    numbered: Numbered
    calls: Calls = Calls.REFUSED
    columns: list[Column] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    derived: dict[int, Derived] = field(default_factory=dict)  # by column

    def add(self, conjunct: ast.Expression) -> None:
        """Compile a conjunct; SAME gives one condition per key."""
        if isinstance(conjunct, ast.Same):
            for key in conjunct.keys:
                self.conditions.append(Condition((), (), frozenset(), same=self.key_column(key)))
            return
        program, used = self.program(conjunct)
        named = frozenset(self.references[r].variable for r in used)
        depth = max((self.depth_of(r) for r in used), default=0)
        self.conditions.append(Condition(program, used, named, depth, node=conjunct))

    def program(self, node: ast.Expression) -> tuple[Program, tuple[int, ...]]:
        """Compile an expression; return its program and the references that it reads."""
        compiler = _Compiler(self)
        compiler.value(node)
        return tuple(compiler.program), tuple(dict.fromkeys(a for code, a in compiler.program if code == Code.REF))

    def reading(self, variable: int, column: int) -> tuple[Program, int]:
        """Return the program that reads a column of the event bound to a variable, and its reference."""
        reference = _number_in(self.references, Reference(variable, Index.CURRENT, 0, column))
        return ((int(Code.REF), reference),), reference

    def column(self, name: str, *, is_previous: bool = False) -> int:
        """Return the number of a column, adding it if it is new."""
        return _number_in(self.columns, Column(name, is_previous))

    def key_column(self, key: ast.SameKey) -> int:
        """Return the column of a key of SAME."""
        if key.function is None:
            return self.column(key.attribute)
        node = ast.Call(key.function, (ast.Attribute("_", key.attribute),))
        return self.derived_column(node, range(len(self.numbered.variables)))

    def derived_column(self, node: ast.Expression, variables: Iterable[int]) -> int:
        """Return the column that has what an expression is worth for an event, for the events of some variables."""
        if self.calls is Calls.REFUSED:
            raise NotYetError(f"{render_expression(node)} cannot be run yet: there are no user functions here")
        node = bare(node)
        number = _number_in(self.columns, Column(render_expression(node), node=node))
        if number not in self.derived:
            compiler = _EventCompiler(self)
            compiler.value(node)
            self.derived[number] = Derived(tuple(compiler.program), set())
        self.derived[number].variables.update(variables)
        return number

    def callee(self, callee: Callee) -> int:
        """Return where the constants of a call start (`penstock.plan.callees`), adding them if they are new."""
        address = Address(callee, is_compiled=True)
        if address not in self.constants:
            self.constants += [float(len(callee.arguments)), address, Address(callee, is_compiled=False)]
        return self.constants.index(address) - CALL_COMPILED

    def constant(self, value: float | str) -> int:
        """Return the number of a constant, adding it if it is new."""
        for number, each in enumerate(self.constants):
            if type(each) is type(value) and each == value:
                return number
        self.constants.append(value)
        return len(self.constants) - 1

    @property
    def is_calling(self) -> bool:
        """Whether conditions call something that is no derived column."""
        return any(code == Code.CALL for condition in self.conditions for code, _ in condition.program)

    def depth_of(self, reference: int) -> int:
        """Return the depth of the rounds that a reference ranges over, 0 if it does not."""
        ref = self.references[reference]
        per_round = ref.index in (Index.CURRENT, Index.BEFORE, Index.UPTO, Index.UPTO_BEFORE)
        return len(self.numbered.variables[ref.variable].loops) if per_round else 0


@dataclass
class _Compiler:
    """Compiles an expression of a match."""

    terms: Terms
    program: list[tuple[int, int]] = field(default_factory=list)

    def emit(self, code: Code, argument: int = 0) -> None:
        self.program.append((int(code), argument))

    def reference(self, reference: Reference) -> None:
        self.emit(Code.REF, _number_in(self.terms.references, reference))

    def value(self, node: ast.Expression) -> None:
        callee = called(node)
        if callee is not None:
            self.called(node, *callee)
            if isinstance(node, ast.Membership):  # false, and not missing, if what it asks for is missing
                self.constant(1.0)
                self.emit(Code.EQ)
            return
        match node:
            case ast.Number(value=constant) | ast.Duration(us=constant) | ast.Boolean(value=constant):
                self.constant(float(constant))
            case ast.Text(value=text):
                self.constant(text)
            case ast.Attribute():
                self.attribute(node, is_previous=False)
            case ast.Previous(attribute=attribute):
                self.attribute(attribute, is_previous=True)
            case ast.Aggregate():
                self.aggregate(node)
            case ast.Minus(operand=operand):
                self.one(operand, Code.NEG)
            case ast.Arithmetic(operator=operator, left=left, right=right):
                self.both(left, right, _ARITHMETIC[operator])
            case ast.Comparison(operator=comparator, left=left, right=right):
                self.both(left, right, COMPARISONS[comparator])
            case ast.Not(item=item):
                self.one(item, Code.NOT)
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

    def constant(self, value: float | str) -> None:
        self.emit(Code.CONST, self.terms.constant(value))

    def one(self, operand: ast.Expression, code: Code) -> None:
        self.value(operand)
        self.emit(code)

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
        self.element(node, self.terms.column(node.name, is_previous=is_previous))

    def element(self, node: ast.Attribute, column: int) -> None:
        """Read a column of the element that an attribute is of."""
        variable = self.terms.numbered.number_of(node.variable)
        if isinstance(node.index, int):
            self.reference(Reference(variable, Index.NUMBER, node.index, column))
        else:
            self.reference(Reference(variable, _INDEX[node.index], 0, column))

    def called(self, node: ast.Expression, callee: Callee, arguments: tuple[ast.Expression, ...]) -> None:
        if self.terms.calls is Calls.REFUSED:
            raise NotYetError(f"{render_expression(node)} cannot be run yet: there are no user functions here")
        element = element_of(node) if self.terms.calls is Calls.DERIVED else None
        if element is not None:
            variable = self.terms.numbered.number_of(element.variable)
            self.element(element, self.terms.derived_column(node, (variable,)))
        else:
            self.call_with(callee, arguments)

    def call_with(self, callee: Callee, arguments: tuple[ast.Expression, ...]) -> None:
        for argument in arguments:
            self.value(argument)
        self.emit(Code.CALL, self.terms.callee(callee))

    def aggregate(self, node: ast.Aggregate) -> None:
        index = {"": Index.ALL, "i-1": Index.UPTO_BEFORE, "i": Index.UPTO}[node.upto]
        column = -1 if node.name is None else self.terms.column(node.name)
        variable = self.terms.numbered.number_of(node.variable)
        self.reference(Reference(variable, index, 0, column, AGGREGATES[node.function]))

    def membership(self, node: ast.Membership) -> None:
        assert not isinstance(node.members, ast.Remote), "that is a call"
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
            self.one(node.arguments[0], _UNARY[name])
        elif name in _FOLDED:
            self.folded(node.arguments, _FOLDED[name])
        elif name == "pow":
            self.both(node.arguments[0], node.arguments[1], Code.POW)
        else:
            self.dist(node.arguments)

    def dist(self, arguments: tuple[ast.Expression, ...]) -> None:
        half = len(arguments) // 2
        for place, (a, b) in enumerate(zip(arguments[:half], arguments[half:], strict=True)):
            self.both(a, b, Code.SUB)
            self.both(a, b, Code.SUB)
            self.emit(Code.MUL)
            if place:
                self.emit(Code.ADD)
        self.emit(Code.SQRT)


class _EventCompiler(_Compiler):
    """Compiles an expression of one event: references are columns."""

    def element(self, node: ast.Attribute, column: int) -> None:
        self.emit(Code.REF, column)

    def called(self, node: ast.Expression, callee: Callee, arguments: tuple[ast.Expression, ...]) -> None:
        self.call_with(callee, arguments)


def _number_in(items: list[_T], item: _T) -> int:
    if item not in items:
        items.append(item)
    return items.index(item)
