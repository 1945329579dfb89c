"""A query as joins: its variables, what comes before what, and what each condition asks of two sides.

Only patterns of SEQ and AND of single events can be joined as they are; `why_not` says what is in the way of others.
Sets of variables are bit masks: bit v is variable v.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import factorial
from typing import Protocol

from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.pattern.render import render_expression
from penstock.plan.positions import Bag, InOrder, Leaf, Loop, Members, Never, Numbered, OneOf, Part, SideBySide
from penstock.plan.terms import Code, Terms

# --- where things stand in the arrays of penstock.kernel.tree; `_END` closes a half-open range of rows -------------

# Two more codes, for bounds only: the next float above and below. Far from those of penstock.plan.terms, which grow.
UP, DOWN = 62, 63
# columns of TreeTables.nodes
NODE_LEFT, NODE_RIGHT, NODE_PARENT, NODE_SIBLING, NODE_KEEPS, NODE_JOINS, NODE_VARIABLE, NODE_VARIABLE_END = range(8)
NODE_REGISTER, NODE_REGISTER_END, NODE_REST, NODE_REST_END, NODE_KEY, NODE_KEY_END = range(8, 14)
NODE_TEST, NODE_TEST_END, NODE_ORDER, NODE_ORDER_END, NODE_APART, NODE_APART_END, NODE_WIDTH = range(14, 21)
# flags of a test: it is not exact; the value that is stored may be a text
LOOSE, MAY_BE_TEXT = 1, 2
# places in TreeTables.options
TREE_BY_COUNT, TREE_WITHIN, TREE_WINDOWS, TREE_PARTITIONED, TREE_REGISTERS, TREE_STACK, TREE_OPTIONS = range(7)
# rows of a tuple, after one row per variable: its first event and that one's position, its partition and windows
ROW_FIRST, ROW_START, ROW_PART, ROW_LOW, ROW_HIGH, ROW_REGISTER = range(6)
# rows of TreeMemory.segments
SEG_START, SEG_SIZE, SEG_ROOM, SEG_OLD, SEG_LIVE, SEG_LIMIT, SEG_WIDTH = range(7)
# rows of TreeMemory.found, after one per variable
FOUND_LOW, FOUND_HIGH, FOUND_ROWS = range(3)
# places in TreeMemory.work
WORK_FOUND, WORK_CHECKS, WORK_CREATED, WORK_MATCHES, WORK_FULL, WORK = range(6)
# what `process` may say
DONE, MORE_TUPLES, MORE_FOUND, MORE_PARTITIONS = range(4)

_FLIPPED = {Code.LT: Code.GT, Code.LE: Code.GE, Code.GT: Code.LT, Code.GE: Code.LE, Code.EQ: Code.EQ}
_UNARY = (Code.NEG, Code.NOT, Code.ABS, Code.SQRT, Code.FLOOR, Code.CEIL, Code.ROUND, Code.EXP, Code.LN, Code.SIGN)


# --- expressions -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Term:
    """An expression: a code of the stack machine over its parts. REF has a variable and a column, CONST a number."""

    code: int
    parts: tuple[Term, ...] = ()
    argument: int = 0
    column: int = -1

    @cached_property
    def variables(self) -> int:
        """The variables that it names."""
        mask = 1 << self.argument if self.code == Code.REF else 0
        for part in self.parts:
            mask |= part.variables
        return mask

    @property
    def may_be_text(self) -> bool:
        """Whether its value may be a text: only what is read, not what is computed."""
        return self.code in (Code.REF, Code.CONST)

    @cached_property
    def depth(self) -> int:
        """How much of a stack its program needs."""
        return max([place + part.depth for place, part in enumerate(self.parts)], default=1)

    @cached_property
    def program(self) -> tuple[tuple[int, int, int], ...]:
        """The steps of the stack machine: code, argument, column."""
        return *(step for part in self.parts for step in part.program), (int(self.code), self.argument, self.column)


def term(program: Iterable[tuple[int, int]], terms: Terms) -> Term:
    """Return the expression that a program of `penstock.plan.terms` computes."""
    stack: list[Term] = []
    for code, argument in program:
        if code == Code.REF:
            reference = terms.references[argument]
            stack.append(Term(code, argument=reference.variable, column=reference.column))
        elif code == Code.CONST:
            stack.append(Term(code, argument=argument))
        else:
            count = 1 if code in _UNARY else 2
            parts = tuple(stack[-count:])
            del stack[-count:]
            stack.append(Term(code, parts))
    return stack[0]


class Planned(Protocol):
    """What is needed of `penstock.plan.planning.Plan`."""

    @property
    def query(self) -> ast.Query:
        """The query."""

    @property
    def numbered(self) -> Numbered:
        """Its pattern."""

    @property
    def terms(self) -> Terms:
        """Its conditions."""


# --- the query ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JoinCondition:
    """A conjunct; for one key of SAME, `same` is its column and `term` is None."""

    text: str
    variables: int
    term: Term | None
    same: int = -1

    @property
    def is_equality(self) -> bool:
        """Whether it says that two values are equal."""
        return self.term is None or self.term.code == Code.EQ


@dataclass(frozen=True)
class JoinQuery:
    """What there is to join.

    `after[v]` are the variables that the pattern puts after v; `may_share[v]` those that may be asked to take the same
    event as v, which they must not.
    """

    names: tuple[str, ...]
    types: tuple[tuple[str, ...], ...]
    after: tuple[int, ...]
    may_share: tuple[int, ...]
    conditions: tuple[JoinCondition, ...]
    is_partitioned: bool

    @property
    def all(self) -> int:
        """All variables."""
        return (1 << len(self.names)) - 1

    def at_leaf(self, variable: int) -> list[JoinCondition]:
        """Return the conditions that name a variable alone; what names none is asked of the first."""
        mine = (1 << variable, 0) if variable == 0 else (1 << variable,)
        return [each for each in self.conditions if each.same < 0 and each.variables in mine]

    # What follows is asked over and over while plans are compared, and again when they are chosen anew.

    @cached_property
    def at_join(self) -> Callable[[int, int], list[JoinCondition]]:
        """Return, for two sides, the conditions that they can answer together and neither alone."""
        return cache(self._at_join)

    @cached_property
    def asked(self) -> Callable[[int, int], list[tuple[JoinCondition, list[Bound]]]]:
        """Return, for a new and a stored side, the conditions at their join, with the intervals that these give."""
        return cache(lambda mine, theirs: [(each, bounds(each, mine, theirs)) for each in self.at_join(mine, theirs)])

    @cached_property
    def in_order(self) -> Callable[..., float]:
        """Return, for a set of variables, the share of assignments that are in order.

        Of all assignments; or of those whose last event is that of a variable, if it is given and one of the set.
        """
        return cache(self._in_order)

    @cached_property
    def _orders(self) -> Callable[[int], int]:
        return cache(self._count_orders)

    def _in_order(self, variables: int, last: int | None = None) -> float:
        if last is None or not variables >> last & 1:
            return self._orders(variables) / factorial(variables.bit_count())
        if not self.can_be_last(last, variables):
            return 0.0
        rest = variables & ~(1 << last)
        return self._orders(rest) / factorial(rest.bit_count())

    def _count_orders(self, variables: int) -> int:
        """Return in how many orders a set of variables may be bound."""
        if variables == 0:
            return 1
        last = (v for v in members(variables) if self.can_be_last(v, variables))
        return sum(self._orders(variables & ~(1 << v)) for v in last)

    def _at_join(self, left: int, right: int) -> list[JoinCondition]:
        both = left | right
        return [
            each
            for each in self.conditions
            if each.same >= 0 or (not each.variables & ~both and each.variables & left and each.variables & right)
        ]

    def can_be_last(self, variable: int, others: int) -> bool:
        """Whether a variable may be bound after all of some others."""
        return not self.after[variable] & others

    def wakes(self, side: int, other: int) -> int:
        """Return the variables of a side whose event can complete a pair with what the other side has stored."""
        return sum(1 << v for v in members(side) if self.can_be_last(v, side | other))


def join_query(plan: Planned) -> JoinQuery:
    """Return the query of a plan as something to join; `why_not` says whether that is possible."""
    variables = plan.numbered.variables
    after = _after(plan.numbered)
    types = [info.types for info in variables]
    before = [sum(1 << u for u, mask in enumerate(after) if mask >> v & 1) for v in range(len(variables))]
    shared = [
        sum(1 << u for u in range(len(types)) if u != v and (not types[u] or not types[v] or {*types[u]} & {*types[v]}))
        for v in range(len(types))
    ]
    return JoinQuery(
        tuple(info.name for info in variables),
        tuple(types),
        tuple(after),
        tuple(mask & ~after[v] & ~before[v] for v, mask in enumerate(shared)),
        tuple(_conditions(plan)),
        bool(plan.query.partition),
    )


def why_not(plan: Planned) -> str | None:
    """Say why the matches of a query cannot be found by joins; None if they can."""
    policy = plan.query.select.policy
    if policy in (Policy.FIRST, Policy.STRICT):
        return f"SELECT {policy} is about runs"
    if any(code > Code.MAX for condition in plan.terms.conditions for code, _ in condition.program):
        return "a condition calls a function of several events"
    return next(_obstacles(plan.numbered.root, plan.numbered), None)


def members(mask: int) -> list[int]:
    """Return the variables of a set, ascending."""
    return [v for v in range(mask.bit_length()) if mask >> v & 1]


def covers(query: JoinQuery, variables: int) -> list[tuple[int, int]]:
    """Return the pairs of a set that come one right after the other in its order: all other order follows."""
    pairs = [(u, v) for u in members(variables) for v in members(query.after[u] & variables)]
    between = {(u, v) for u, w in pairs for x, v in pairs if w == x}
    return [pair for pair in pairs if pair not in between]


def _obstacles(part: Part, numbered: Numbered) -> Iterator[str]:
    match part:
        case Never():
            yield "it has a negation"
        case Loop():
            yield "it has a repetition"
        case OneOf():
            yield "it has alternatives"
        case Bag(bag=bag, left=count) if count < len(numbered.bags[bag].members):
            yield "ANY takes only some of its members"
        case Members(count=count, parts=parts) if count < len(parts):
            yield "ANY takes only some of its members"
        case InOrder(parts=parts) | SideBySide(parts=parts) | Members(parts=parts):
            for each in parts:
                yield from _obstacles(each, numbered)


def _after(numbered: Numbered) -> list[int]:
    after = [0] * len(numbered.variables)

    def visit(part: Part) -> int:
        """Note the order within a part; return its variables."""
        match part:
            case Leaf(variable=variable):
                return 1 << variable
            case Bag(bag=bag):
                return sum(1 << v for v in numbered.bags[bag].members)
            case InOrder(parts=parts):
                masks = [visit(each) for each in parts]
                for place, mask in enumerate(masks):
                    for v in members(mask):
                        after[v] |= sum(masks[place + 1 :])
                return sum(masks)
            case SideBySide(parts=parts) | Members(parts=parts):
                return sum(visit(each) for each in parts)
        raise AssertionError("ask why_not first")

    visit(numbered.root)
    return after


def _conditions(plan: Planned) -> Iterator[JoinCondition]:
    compiled = iter(plan.terms.conditions)
    for conjunct in ast.conjuncts(plan.query.where):
        for key in conjunct.keys if isinstance(conjunct, ast.Same) else (None,):
            condition = next(compiled)
            if key is not None:
                yield JoinCondition(render_expression(ast.Same((key,))), 0, None, condition.same)
            else:
                found = term(condition.program, plan.terms)
                yield JoinCondition(render_expression(conjunct), found.variables, found)


# --- what a condition asks of two sides --------------------------------------------------------------------------


@dataclass(frozen=True)
class Bound:
    """`theirs code mine`: an interval on a value of the stored side, known as soon as the new side is.

    If it is not `exact`, every pair that satisfies the condition is in the interval, but not the other way round.
    """

    code: int
    mine: Term
    theirs: Term
    exact: bool = True

    @property
    def is_key(self) -> bool:
        """Whether it can be looked up in an index."""
        return self.exact and self.code == Code.EQ


def bounds(condition: JoinCondition, mine: int, theirs: int) -> list[Bound]:
    """Return the intervals that a condition gives on the stored side.

    Args:
        condition: one that is asked where the two sides are joined.
        mine: the variables of the new side.
        theirs: those of the stored side.
    """
    if condition.term is None:
        one, other = members(mine)[0], members(theirs)[0]  # within a side they are equal already
        key = Term(Code.REF, argument=one, column=condition.same)
        return [Bound(Code.EQ, key, replace(key, argument=other))]
    code, parts = Code(condition.term.code), condition.term.parts
    if code not in _FLIPPED:
        return []
    left, right = parts
    if not left.variables & theirs:
        code, left, right = _FLIPPED[code], right, left
    if right.variables & theirs:
        return []
    if not left.variables & mine:
        return [Bound(code, right, left)]
    return list(_loosened(left, code, right, theirs))


def _loosened(left: Term, code: Code, right: Term, theirs: int) -> Iterator[Bound]:
    """Solve `left code right` for what is stored, rounding outwards so that no pair is lost.

    If fl(p + q) <= r then p + q <= up(r), so p <= up(fl(up(r) - q)); the other cases are alike. What is computed in
    the bound is of the new side only.
    """
    if code == Code.EQ:
        yield from _loosened(left, Code.LE, right, theirs)
        yield from _loosened(left, Code.GE, right, theirs)
        return
    is_below = code in (Code.LT, Code.LE)
    if not left.variables & ~theirs:
        yield Bound(Code.LE if is_below else Code.GE, right, left, exact=False)
        return
    outwards, inwards = (UP, DOWN) if is_below else (DOWN, UP)
    limit, flipped = Term(outwards, (right,)), _FLIPPED[code]
    holding = [part for part in left.parts if part.variables & theirs]
    if len(holding) != 1:
        return
    (inner,) = holding
    other = next((part for part in left.parts if part is not inner), left)
    if left.code == Code.ADD:
        yield from _loosened(inner, code, Term(outwards, (Term(Code.SUB, (limit, other)),)), theirs)
    elif left.code == Code.SUB and inner is left.parts[0]:
        yield from _loosened(inner, code, Term(outwards, (Term(Code.ADD, (limit, other)),)), theirs)
    elif left.code == Code.SUB:
        yield from _loosened(inner, flipped, Term(inwards, (Term(Code.SUB, (other, limit)),)), theirs)
    elif left.code == Code.NEG:
        yield from _loosened(inner, flipped, Term(Code.NEG, (right,)), theirs)
    elif left.code == Code.ABS and is_below:
        yield from _loosened(inner, Code.LE, right, theirs)
        yield from _loosened(inner, Code.GE, Term(Code.NEG, (right,)), theirs)
