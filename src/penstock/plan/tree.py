"""Tree plans, as in ZStream: which variables are joined first, chosen by the cost model.

A leaf is a variable; an inner node joins what two subtrees have found. A node is stored only if an event of the other
side can still complete it; so a plan that joins the last, rare variable first does nothing but keep events until
that one comes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from penstock.pattern import ast
from penstock.plan import joins
from penstock.plan.costs import AUTOMATON_TIMES, TREE_TIMES, Model
from penstock.plan.joins import (
    Bound,
    JoinCondition,
    JoinQuery,
    Planned,
    Term,
    bounds,
    covers,
    join_query,
    members,
    why_not,
)
from penstock.plan.statistics import Statistics
from penstock.plan.tables import Ints
from penstock.plan.terms import Code

MOST_BUSHY, MOST_LEFT_DEEP = 6, 8  # variables: beyond, all splits, then all orders, would hold up the stream

# Of both plans with the same work, either may be faster, by up to half; and selectivities are guesses.
CLEARLY = 0.4


@dataclass(frozen=True)
class Tree:
    """A variable, or the join of two trees. `variables` is a bit mask."""

    variables: int
    left: Tree | None = None
    right: Tree | None = None

    def nodes(self) -> Iterator[Tree]:
        """Yield the inner nodes, sons first."""
        if self.left is not None and self.right is not None:
            yield from self.left.nodes()
            yield from self.right.nodes()
            yield self

    def render(self, names: tuple[str, ...]) -> str:
        """Return the tree as text: `((a b) c)`."""
        if self.left is None or self.right is None:
            return names[self.variables.bit_length() - 1]
        return f"({self.left.render(names)} {self.right.render(names)})"


@dataclass(frozen=True)
class TreePlan:
    """A query as joins, the tree to join by, and its cost in nanoseconds per second of the stream."""

    query: JoinQuery
    tree: Tree
    cost: float
    model: Model


@dataclass(frozen=True)
class Choice:
    """The costs of both plans, in nanoseconds per second of the stream, and which is the cheaper.

    `tree` is None if the query has no tree plan, and `reason` says why.
    """

    tree: TreePlan | None
    automaton_cost: float | None
    reason: str | None = None

    @property
    def is_tree(self) -> bool:
        """Whether the tree plan is to be taken: only if it is clearly cheaper, for estimates are rough."""
        return self.tree is not None and (self.automaton_cost is None or self.tree.cost < CLEARLY * self.automaton_cost)


def leaf(variable: int) -> Tree:
    """Return the tree of one variable."""
    return Tree(1 << variable)


def join(left: Tree, right: Tree) -> Tree:
    """Return the join of two trees."""
    return Tree(left.variables | right.variables, left, right)


def why_no_tree(plan: Planned) -> str | None:
    """Return why an engine runs a query by its automaton only; None if it may join."""
    if plan.query.partition and isinstance(plan.query.within, ast.CountSpan):
        return "with PARTITION BY, WITHIN n EVENTS says nothing about partitions that get no more events"
    return why_not(plan)


def model_of(plan: Planned, statistics: Statistics, query: JoinQuery | None = None) -> Model:
    """Return the cost model of a query for which `why_not` has nothing to say; `query` if it is at hand."""
    query = query or join_query(plan)
    columns = [column.name for column in plan.terms.columns]
    return Model(query, statistics, statistics.window_s(plan.query, query.types), columns, TREE_TIMES)


def tree_plan(plan: Planned, statistics: Statistics, query: JoinQuery | None = None) -> TreePlan | None:
    """Return the cheapest tree plan of a query; None if it has none: `why_not` says why.

    Examples:
        >>> from penstock.pattern.parser import parse
        >>> from penstock.plan.planning import plan
        >>> asked = plan(parse("PATTERN SEQ(A a, B b, C c) WHERE a.v < b.v WITHIN 100 s"))
        >>> rare = tree_plan(asked, Statistics({"A": 1, "B": 1, "C": 0.01}))
        >>> rare.tree.render(rare.query.names)
        '(a (b c))'
    """
    if why_not(plan) is not None:
        return None
    model = model_of(plan, statistics, query)
    tree = cheapest(model)
    assert tree is not None
    return TreePlan(model.query, tree, cost(tree, model), model)


def tree_to_take(plan: Planned, statistics: Statistics, query: JoinQuery, *, is_must: bool = False) -> Tree | None:
    """Return the tree that an engine should take, or must; None: the automaton. Like `choose`, which takes longer."""
    model = model_of(plan, statistics, query)
    return cheapest(model) if is_must else cheapest(model, CLEARLY * automaton_cost(model))


def automaton_cost(model: Model) -> float:
    """Return what the automaton of a query costs, whose trees a model is of."""
    return Model(model.query, model.statistics, model.window_s, model.columns, AUTOMATON_TIMES).automaton()


def choose(plan: Planned, statistics: Statistics, query: JoinQuery | None = None) -> Choice:
    """Return the tree plan and the automaton with their costs; `query` is that of the plan, if it is at hand."""
    tree = tree_plan(plan, statistics, query)
    if tree is None:
        return Choice(None, None, why_not(plan))
    return Choice(tree, automaton_cost(tree.model))


# --- enumeration -------------------------------------------------------------------------------------------------


def cost(tree: Tree, model: Model) -> float:
    """Return what a tree costs per second of the stream: the sum of R(T) Z(T) over all types."""
    total = model.share(tree.variables, 0)
    for node in tree.nodes():
        assert node.left is not None
        assert node.right is not None
        left, right = node.left.variables, node.right.variables
        total += model.share(left, right) + model.share(right, left)
    return total


def cheapest(model: Model, limit: float = math.inf) -> Tree | None:
    """Return the cheapest tree, by dynamic programming over sets of variables; None if all cost as much as `limit`.

    Of up to MOST_BUSHY variables all trees are considered; of up to MOST_LEFT_DEEP those that add one variable at a
    time, in any order; of more, those that join neighbours in the text.
    """
    count = len(model.query.names)
    cuts = splits if count <= MOST_BUSHY else _one_by_one if count <= MOST_LEFT_DEEP else _neighbours
    limit -= model.share(model.query.all, 0)  # what all of them cost

    @cache
    def best(variables: int) -> tuple[float, Tree | None]:
        if variables & (variables - 1) == 0:
            return 0.0, Tree(variables)
        least, tree = limit, None
        for left, right in cuts(variables):
            here = model.share(left, right) + model.share(right, left)
            if here >= least:  # what is below only adds to it
                continue
            (below_left, one), (below_right, other) = best(left), best(right)
            if one is not None and other is not None and here + below_left + below_right < least:
                least, tree = here + below_left + below_right, join(one, other)
        return least, tree

    return best(model.query.all)[1]


def splits(variables: int) -> Iterator[tuple[int, int]]:
    """Yield the ways to cut a set in two; the side that holds the lowest variable is the left one."""
    lowest = variables & -variables
    others = variables & ~lowest
    some = others
    while some:
        yield variables & ~some, some
        some = (some - 1) & others


def _one_by_one(variables: int) -> Iterator[tuple[int, int]]:
    for v in members(variables):
        yield variables & ~(1 << v), 1 << v


def _neighbours(variables: int) -> Iterator[tuple[int, int]]:
    inside = members(variables)
    for v in inside[1:]:
        yield variables & ((1 << v) - 1), variables & -(1 << v)


# --- tables ------------------------------------------------------------------------------------------------------


class TreeTables(NamedTuple):
    """What `penstock.kernel.tree` reads of a tree plan; penstock.plan.joins names the columns.

    V variables; the leaves are nodes 0 .. V-1, sons come before their parent, the root is the last of N.
    """

    nodes: Ints  # (N, NODE_WIDTH)
    rows: Ints  # (·, 4) what the ranges in `nodes` point to
    options: Ints  # (TREE_OPTIONS,)


def tree_tables(plan: Planned, query: JoinQuery, tree: Tree) -> TreeTables:
    """Turn a tree over all variables of a query into tables."""
    return _Packing(plan, query, tree).tables()


class _Packing:
    def __init__(self, plan: Planned, query: JoinQuery, tree: Tree) -> None:
        self.plan, self.query = plan, query
        self.nodes = [*(leaf(v) for v in range(len(query.names))), *tree.nodes()]
        self.numbers = {node.variables: n for n, node in enumerate(self.nodes)}
        self.parents = {
            son.variables: (node.variables, other.variables)
            for node in tree.nodes()
            if node.left is not None and node.right is not None
            for son, other in ((node.left, node.right), (node.right, node.left))
        }
        self.registers: dict[int, list[Term]] = {node.variables: [] for node in self.nodes}
        self.rows: list[tuple[int, ...]] = []
        self.deepest = 1  # what the stack machine needs

    def tables(self) -> TreeTables:
        nodes = np.zeros((len(self.nodes), joins.NODE_WIDTH), np.int64)
        for n, node in enumerate(self.nodes):
            self.fill(nodes[n], node)
        for n, node in enumerate(self.nodes):  # only now all registers are known
            nodes[n, joins.NODE_REGISTER : joins.NODE_REGISTER + 2] = self.span(self.register_rows(node))
        rows = np.array([(*row, 0, 0, 0)[:4] for row in self.rows], np.int64).reshape(-1, 4)
        return TreeTables(nodes, rows, self.options())

    def options(self) -> Ints:
        options = np.zeros(joins.TREE_OPTIONS, np.int64)
        within = self.plan.query.within
        assert within is not None, "validate the query first"
        options[joins.TREE_BY_COUNT] = isinstance(within, ast.CountSpan)
        options[joins.TREE_WITHIN] = within.events - 1 if isinstance(within, ast.CountSpan) else within.us
        options[joins.TREE_WINDOWS] = self.plan.query.window is not None
        options[joins.TREE_PARTITIONED] = self.query.is_partitioned
        options[joins.TREE_REGISTERS] = max(len(each) for each in self.registers.values())
        options[joins.TREE_STACK] = self.deepest
        return options

    def span(self, rows: Iterable[tuple[int, ...]]) -> tuple[int, int]:
        """Put rows behind the others; return where they start and end."""
        listed = list(rows)  # making one may put others behind
        self.rows += listed
        return len(self.rows) - len(listed), len(self.rows)

    def fill(self, row: Ints, node: Tree) -> None:
        mine = node.variables
        row[joins.NODE_PARENT] = row[joins.NODE_SIBLING] = -1
        row[joins.NODE_VARIABLE : joins.NODE_VARIABLE + 2] = self.span((v,) for v in members(mine))
        if node.left is None or node.right is None:
            own = self.query.at_leaf(mine.bit_length() - 1)
            row[joins.NODE_REST : joins.NODE_REST + 2] = self.span(self.program(each.term) for each in own)
            row[joins.NODE_LEFT] = row[joins.NODE_RIGHT] = -1
        else:
            left, right = node.left.variables, node.right.variables
            rest = [each.term for each in self.query.at_join(left, right) if not _is_exact(each, left, right)]
            row[joins.NODE_LEFT], row[joins.NODE_RIGHT] = self.numbers[left], self.numbers[right]
            row[joins.NODE_REST : joins.NODE_REST + 2] = self.span(map(self.program, rest))
        if mine in self.parents:
            self.fill_join(row, mine, *self.parents[mine])

    def fill_join(self, row: Ints, mine: int, parent: int, other: int) -> None:
        """Say how a new tuple of a node is joined with those of its sibling."""
        row[joins.NODE_PARENT], row[joins.NODE_SIBLING] = self.numbers[parent], self.numbers[other]
        row[joins.NODE_KEEPS], row[joins.NODE_JOINS] = (
            bool(self.query.wakes(other, mine)),
            bool(self.query.wakes(mine, other)),
        )
        found = [b for each in self.query.at_join(mine, other) for b in bounds(each, mine, other)]
        keys = [(self.register(mine, b.mine), self.register(other, b.theirs)) for b in found if b.is_key]
        if self.query.is_partitioned:
            keys.append((len(self.query.names) + joins.ROW_PART,) * 2)
        tests = [(b.code, self.register(mine, b.mine), self.register(other, b.theirs), _flags(b)) for b in found]
        pairs = [(v, 1, u) if mine >> u & 1 else (u, 0, v) for u, v in covers(self.query, parent)]
        order = [(theirs, after, own) for theirs, after, own in pairs if other >> theirs & 1 and mine >> own & 1]
        apart = [(u, v) for u in members(mine) for v in members(self.query.may_share[u] & other)]
        row[joins.NODE_KEY : joins.NODE_KEY + 2] = self.span(keys)
        row[joins.NODE_TEST : joins.NODE_TEST + 2] = self.span(tests)
        row[joins.NODE_ORDER : joins.NODE_ORDER + 2] = self.span(sorted(order))
        row[joins.NODE_APART : joins.NODE_APART + 2] = self.span(apart)

    def register(self, node: int, value: Term) -> int:
        """Return the row of a tuple that holds a value, adding it if it is new."""
        registers = self.registers[node]
        if value not in registers:
            registers.append(value)
        return len(self.query.names) + joins.ROW_REGISTER + registers.index(value)

    def register_rows(self, node: Tree) -> Iterator[tuple[int, ...]]:
        for value in self.registers[node.variables]:
            if value.code == Code.REF:
                yield -1, value.argument, value.column
            else:
                yield 0, *self.program(value)

    def program(self, value: Term | None) -> tuple[int, int]:
        assert value is not None
        self.deepest = max(self.deepest, value.depth)
        return self.span(value.program)


def _is_exact(condition: JoinCondition, left: int, right: int) -> bool:
    """Whether its intervals say all that a condition says."""
    found = bounds(condition, left, right)
    return bool(found) and found[0].exact


def _flags(bound: Bound) -> int:
    may_be_text = bound.code != Code.EQ and bound.theirs.may_be_text
    return joins.LOOSE if not bound.exact else joins.MAY_BE_TEXT if may_be_text else 0


# --- words -------------------------------------------------------------------------------------------------------


def render_plan(plan: TreePlan) -> str:
    """Return a tree plan as text: what is joined where, what is checked there, and how much is expected.

    Examples:
        >>> from penstock.pattern.parser import parse
        >>> from penstock.plan.planning import plan
        >>> asked = plan(parse("PATTERN SEQ(A a, B b, C c) WHERE a.v > 3 AND a.v < b.v AND SAME[id] WITHIN 100 s"))
        >>> print(render_plan(tree_plan(asked, Statistics({"A": 1, "B": 1, "C": 0.01}))))
        ((a c) b): 0.0556/s
          a before b
          b before c
          a.v < b.v, by interval
          SAME[id], by index
          (a c): 0.0333/s
            a before c
            SAME[id], by index
            a (A): 0.333/s, 33.3 stored
              a.v > 3
            c (C): 0.01/s
          b (B): 1/s, 100 stored
    """
    return "\n".join(_lines(plan, plan.tree, 0, ""))


def render_choice(choice: Choice, rate: float) -> str:
    """Return what was chosen and why, for a stream of `rate` events per second."""
    if choice.tree is None or choice.automaton_cost is None:
        return f"automaton: there is no tree plan, because {choice.reason}"
    names = choice.tree.query.names
    costs = {
        f"tree {choice.tree.tree.render(names)}": choice.tree.cost,
        "automaton": choice.automaton_cost,
    }
    order = sorted(costs, key=lambda name: costs[name])
    words = [f"{name}, {costs[name] / rate:.3g} ns an event" for name in order]
    return f"{words[0]}; not {words[1]}" + (f"\n{render_plan(choice.tree)}" if choice.is_tree else "")


def _lines(plan: TreePlan, tree: Tree, sibling: int, indent: str) -> Iterator[str]:
    query, model, mine = plan.query, plan.model, tree.variables
    rate = sum(model.rates[v] * model.new(mine, v) for v in members(mine))
    stored = f", {model.stored(mine):.3g} stored" if sibling and model.is_kept(mine, sibling) else ""
    if tree.left is None or tree.right is None:
        v = mine.bit_length() - 1
        yield f"{indent}{query.names[v]} ({'|'.join(query.types[v]) or '*'}): {rate:.3g}/s{stored}"
        yield from (f"{indent}  {each.text}" for each in query.at_leaf(v))
        return
    yield f"{indent}{tree.render(query.names)}: {rate:.3g}/s{stored}"
    left, right = tree.left.variables, tree.right.variables
    for one, other in covers(query, mine):
        if (left >> one & 1) != (left >> other & 1):
            yield f"{indent}  {query.names[one]} before {query.names[other]}"
    for each in query.at_join(left, right):
        found = bounds(each, left, right)
        how = "index" if any(b.is_key for b in found) else "interval" if found else ""
        yield f"{indent}  {each.text}" + (f", by {how}" if how else "")
    yield from _lines(plan, tree.left, right, indent + "  ")
    yield from _lines(plan, tree.right, left, indent + "  ")
