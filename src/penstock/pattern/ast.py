"""The query as a tree: frozen dataclasses, equal if they mean the same text.

Every node may carry the `position` of the text it came from; positions take no part in comparison, so a
query from the Python builder equals the same query from text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Literal, TypeAlias

from penstock.errors import Position


@dataclass(frozen=True)
class Node:
    """Anything that stands in a query."""

    position: Position | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Name(Node):
    """The name of a variable or an attribute where no other node holds it (PARTITION BY, CONSUME)."""

    text: str


# --- patterns -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Event(Node):
    """`A a`, `A|B x`; with no types, `* x`."""

    types: tuple[str, ...]
    variable: str


@dataclass(frozen=True)
class Negation(Node):
    """`NOT B b`."""

    event: Event


@dataclass(frozen=True)
class Sequence(Node):
    """`SEQ(p, q, …)`."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class Conjunction(Node):
    """`AND(p, q, …)`."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class Disjunction(Node):
    """`OR(p, q, …)`."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class AnyOf(Node):
    """`ANY(count, p, q, …)`."""

    count: int
    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class Repetition(Node):
    """`A+ a[]` is (1, None), `A{2,5} a[]` is (2, 5); of groups likewise."""

    part: Pattern
    low: int
    high: int | None


@dataclass(frozen=True)
class Option(Node):
    """`A? a`, `(p)?`."""

    part: Pattern


Pattern: TypeAlias = Event | Negation | Sequence | Conjunction | Disjunction | AnyOf | Repetition | Option

# --- expressions --------------------------------------------------------------------------------------------

Index: TypeAlias = Literal["i", "i-1", "first", "last"] | int | None
ArithmeticOperator: TypeAlias = Literal["+", "-", "*", "/", "%"]
Comparator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">="]
AggregateFunction: TypeAlias = Literal["COUNT", "SUM", "AVG", "MIN", "MAX"]


@dataclass(frozen=True)
class Number(Node):
    """`5`, `2.5`, `10k`."""

    value: int | float


@dataclass(frozen=True)
class Duration(Node):
    """`5 min`, in microseconds."""

    us: int


@dataclass(frozen=True)
class Text(Node):
    """`'text'`."""

    value: str


@dataclass(frozen=True)
class Boolean(Node):
    """`TRUE`, `FALSE`."""

    value: bool


@dataclass(frozen=True)
class Attribute(Node):
    """`a.x`; of a list, `a[i].x`, `a[i-1].x`, `a[first].x`, `a[last].x`, `a[3].x` (from 1)."""

    variable: str
    name: str
    index: Index = None


@dataclass(frozen=True)
class Aggregate(Node):
    """`SUM(a[].x)`, `COUNT(a[])`; `upto` is "" for the whole list, "i-1" or "i" for `SUM(a[..i-1].x)`."""

    function: AggregateFunction
    variable: str
    name: str | None = None
    upto: Literal["", "i-1", "i"] = ""


@dataclass(frozen=True)
class Previous(Node):
    """`prev(a.x)`."""

    attribute: Attribute


@dataclass(frozen=True)
class Call(Node):
    """`abs(…)` or a registered user function."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Remote(Node):
    """`REMOTE[source, key]`, and `REMOTE[source, key].column` of a row."""

    source: str
    key: Expression
    column: str | None = None


@dataclass(frozen=True)
class SameKey(Node):
    """One entry of SAME: `x` or `f(x)`."""

    attribute: str
    function: str | None = None


@dataclass(frozen=True)
class Same(Node):
    """`SAME[x, f(y)]`."""

    keys: tuple[SameKey, ...]


@dataclass(frozen=True)
class Minus(Node):
    """`-x`; a negative number is `Minus(Number(5))`."""

    operand: Expression


@dataclass(frozen=True)
class Arithmetic(Node):
    """`x + y` and so on."""

    operator: ArithmeticOperator
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Comparison(Node):
    """`x < y` and so on; a chain `a = b = c` is the And of its links."""

    operator: Comparator
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Membership(Node):
    """`x IN (…)`, `x NOT IN REMOTE[…]`."""

    item: Expression
    members: tuple[Expression, ...] | Remote
    negated: bool = False


@dataclass(frozen=True)
class And(Node):
    """`p AND q AND …`."""

    items: tuple[Expression, ...]


@dataclass(frozen=True)
class Or(Node):
    """`p OR q OR …`."""

    items: tuple[Expression, ...]


@dataclass(frozen=True)
class Not(Node):
    """`NOT p`."""

    item: Expression


Expression: TypeAlias = (
    Number | Duration | Text | Boolean | Attribute | Aggregate | Previous | Call | Remote | Same | Minus
    | Arithmetic | Comparison | Membership | And | Or | Not
)  # fmt: skip

# --- clauses ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TimeSpan(Node):
    """`5 min`, in microseconds."""

    us: int


@dataclass(frozen=True)
class CountSpan(Node):
    """`8 EVENTS`."""

    events: int


Span: TypeAlias = TimeSpan | CountSpan


@dataclass(frozen=True)
class Opening(Node):
    """`ON S s WHERE …`: what opens a window."""

    event: Event
    where: Expression | None = None


@dataclass(frozen=True)
class Window(Node):
    """`WINDOW length EVERY every` or `WINDOW length ON …`; with neither, windows follow each other."""

    length: Span
    every: Span | None = None
    on: Opening | None = None
    distinct: bool = False


class Policy(StrEnum):
    """The selection policies of SELECT."""

    EACH = "EACH"
    FIRST = "FIRST"
    LAST = "LAST"
    CUMULATIVE = "CUMULATIVE"
    STRICT = "STRICT"


@dataclass(frozen=True)
class SelectVariable(Node):
    """`LAST b` in `SELECT EACH, LAST b`."""

    policy: Policy
    variable: str


@dataclass(frozen=True)
class Select(Node):
    """`SELECT EACH, LAST b`."""

    policy: Policy = Policy.EACH
    variables: tuple[SelectVariable, ...] = ()


@dataclass(frozen=True)
class Consume(Node):
    """`CONSUME ALL`, `CONSUME a, b`; with neither, `CONSUME NONE`."""

    all: bool = False
    variables: tuple[Name, ...] = ()


@dataclass(frozen=True)
class Return(Node):
    """`expression AS name`."""

    expression: Expression
    name: str | None = None


@dataclass(frozen=True)
class Query(Node):
    """A whole query. `source` is the text it was parsed from, if any; it takes no part in comparison."""

    pattern: Pattern
    where: Expression | None = None
    within: Span | None = None
    partition: tuple[Name, ...] = ()
    window: Window | None = None
    limit: int | None = None
    select: Select = Select()
    consume: Consume = Consume()
    returns: tuple[Return, ...] = ()
    name: str | None = None
    source: str | None = field(default=None, compare=False, repr=False)


# --- walking ------------------------------------------------------------------------------------------------


def children(node: Node) -> Iterator[Node]:
    """Yield the nodes directly below a node, in the order of the text."""
    for each in fields(node):
        value = getattr(node, each.name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Node))


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it, parents first, in the order of the text."""
    yield node
    for child in children(node):
        yield from walk(child)


def events(pattern: Pattern) -> Iterator[Event]:
    """Yield the events of a pattern, negated ones too, in the order of the text."""
    return (node for node in walk(pattern) if isinstance(node, Event))


def conjuncts(where: Expression | None) -> tuple[Expression, ...]:
    """Split a condition at its top-level ANDs."""
    if where is None:
        return ()
    if isinstance(where, And):
        return tuple(part for item in where.items for part in conjuncts(item))
    return (where,)


def variables_of(expression: Expression) -> tuple[str, ...]:
    """Return the variables that an expression names, each once, in the order of the text."""
    named = (n.variable for n in walk(expression) if isinstance(n, Attribute | Aggregate))
    return tuple(dict.fromkeys(named))
