"""DARLING's equations with numbers by hand, and the cheapest of all trees."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from penstock.pattern.parser import parse
from penstock.plan.costs import (
    Model,
    Times,
    arrival_time,
    buffer_sizes,
    condition_time,
    new_at_leaf,
    new_at_node,
    peer_time,
    stored_at_leaf,
    stored_at_node,
)
from penstock.plan.planning import plan
from penstock.plan.statistics import Statistics
from penstock.plan.tree import Tree, cheapest, choose, cost, join, leaf, model_of, splits, tree_plan, tree_to_take

A, B, C = 0, 1, 2
AB, ABC = 0b011, 0b111


def model(query: str, rates: dict[str, float], times: Times | None = None) -> Model:
    found = model_of(plan(parse(f"PATTERN {query}")), Statistics(rates, {"a.v > 1": 0.5}))
    return found if times is None else Model(found.query, found.statistics, found.window_s, times=times)


def all_trees(variables: int) -> Iterator[Tree]:
    if variables & (variables - 1) == 0:
        yield Tree(variables)
    for left, right in splits(variables):
        for one in all_trees(left):
            yield from (join(one, other) for other in all_trees(right))


# --- one equation at a time --------------------------------------------------------------------------------------


def test_equations_5_to_10() -> None:
    assert condition_time([2.0, 3.0]) == 5
    assert peer_time(5.0, [4.0]) == 20
    assert peer_time(5.0, [4.0, 2.0]) == 40  # a node may have several peers
    # The leaf makes half a partial match and compares it for 20; the root makes two and has no peers.
    assert arrival_time([(20.0, 3.0, 0.5), (0.0, 3.0, 2.0)]) == 23 * 0.5 + 3 * 2
    assert new_at_leaf(0.5, is_own=True) == 0.5
    assert new_at_leaf(0.5, is_own=False) == 0
    assert new_at_node(0.25, 0.5, [40.0]) == 5
    assert stored_at_leaf(2.0, 0.5, 10.0) == 10
    assert stored_at_node(0.1, [10.0, 40.0]) == 40


def test_buffers_share_the_queue_by_time_and_rate() -> None:
    # R = 2, 5, 5 as in figure 4; an event of A takes three times as long: 6 : 5 : 5 of 12 events, of which half.
    sizes = buffer_sizes({"A": 3.0, "B": 1.0, "C": 1.0}, {"A": 2.0, "B": 5.0, "C": 5.0}, 12, 0.5)
    assert sizes == pytest.approx({"A": 6 * 6 / 16, "B": 6 * 5 / 16, "C": 6 * 5 / 16})


# --- the model ---------------------------------------------------------------------------------------------------


def test_a_conjunction() -> None:
    found = model("AND(A a, B b) WHERE a.v > 1 AND a.v < b.v WITHIN 10 s", {"A": 2, "B": 5})
    assert found.stored(1 << A) == pytest.approx(2 * 0.5 * 10)
    assert found.stored(AB) == pytest.approx(10 * 50 / 3)
    assert found.new(AB, A) == pytest.approx(0.5 * 50 / 3)
    assert found.new(AB, B) == pytest.approx(10 / 3)


def test_in_a_sequence_only_the_last_event_makes_pairs() -> None:
    found = model("SEQ(A a, B b) WITHIN 10 s", {"A": 2, "B": 5})
    assert found.stored(AB) == pytest.approx(20 * 50 / 2)
    assert found.new(AB, A) == 0
    assert found.new(AB, B) == pytest.approx(20)
    # The paper's (9) with the order as a condition of selectivity 1/2 gives the same sum, in other shares.
    by_paper = 2 * new_at_node(0.5, 1.0, [50.0]) + 5 * new_at_node(0.5, 1.0, [20.0])
    assert 5 * found.new(AB, B) == pytest.approx(by_paper)


def test_order_of_three() -> None:
    found = model("SEQ(A a, B b, C c) WITHIN 10 s", {"A": 2, "B": 5, "C": 1})
    assert found.query.in_order(ABC) == pytest.approx(1 / 6)
    assert found.query.in_order(ABC, last=C) == pytest.approx(1 / 2)
    assert found.query.in_order(ABC, last=B) == 0
    assert found.order_selectivity(AB, 1 << C) == pytest.approx(1 / 3)  # not 1/4: a before c follows from b before c
    assert found.new(ABC, C) == pytest.approx(20 * 50 / 2)
    mixed = model("SEQ(A a, AND(B b, C c)) WITHIN 10 s", {"A": 1, "B": 1, "C": 1})
    assert mixed.query.in_order(ABC) == pytest.approx(1 / 3)
    assert mixed.new(ABC, B) == pytest.approx(100 / 2)


def test_partitions_and_same_thin_out_joins() -> None:
    parts = model_of(
        plan(parse("PATTERN SEQ(A a, B b) WHERE SAME[x] WITHIN 10 s PARTITION BY k")),
        Statistics({"A": 1, "B": 1}, distinct={"x": 4}, partitions=5),
    )
    assert parts.new(AB, B) == pytest.approx(10 / 4 / 5)


def test_within_events_is_a_time_too() -> None:
    asked = parse("PATTERN SEQ(A a, B b) WITHIN 30 EVENTS")
    assert Statistics({"A": 1, "B": 2, "X": 3}).window_s(asked, [("A",), ("B",)]) == 5
    assert Statistics().window_s(parse("PATTERN A a WITHIN 9 s WINDOW 4 s EVERY 1 s"), [("A",)]) == 4


def test_times_by_hand() -> None:
    times = Times(pair=1, link=0, interval=2, program=0, search=100, arrive=10, create=20, remove=5, match=7)
    found = model("SEQ(A a, B b) WHERE a.v < b.v WITHIN 10 s", {"A": 2, "B": 5}, times)
    # A: arrives and is kept. B: arrives, looks at 20 events of A for 1 + 2 each, makes 20/3 matches.
    tree = 2 * (10 + 5) + 5 * (10 + 100 + 20 * 3) + 5 * 20 / 3 * 7
    assert cost(join(leaf(A), leaf(B)), found) == pytest.approx(tree)
    # The automaton does the same, except that it makes runs of events of A and stores none of B.
    automaton = 2 * (10 + 20 + 5) + 5 * (100 + 20 * 3) + 5 * 20 / 3 * 7
    assert found.automaton() == pytest.approx(automaton)


def test_the_automaton_of_a_conjunction_stores_every_subset() -> None:
    times = Times(pair=0, link=0, interval=0, program=0, search=0, arrive=0, create=1, remove=0, match=1)
    found = model("AND(A a, B b, C c) WITHIN 10 s", {"A": 1, "B": 1, "C": 1}, times)
    assert found.automaton() == pytest.approx(3 + 3 * 2 * 10 + 3 * 100)


# --- choosing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_the_chosen_tree_is_the_cheapest_of_all(seed: int) -> None:
    random = Random(seed)
    pattern = random.choice(
        ["SEQ(A a, B b, C c, D d)", "AND(A a, B b, C c, D d)", "SEQ(A a, AND(B b, C c), D d)", "SEQ(A a, B b, C c)"]
    )
    where = "a.x < b.x AND b.x + a.x < c.x AND abs(a.y - c.y) < 3"
    rates = {name: 10 ** random.uniform(-2, 1) for name in "ABCD"}
    found = model_of(
        plan(parse(f"PATTERN {pattern} WHERE {where} WITHIN 20 s")),
        Statistics(rates, {"a.x < b.x": random.random(), "b.x + a.x < c.x": random.random()}),
    )
    costs = [cost(tree, found) for tree in all_trees(found.query.all)]
    assert len(costs) == (15 if "D" in pattern else 3)
    best = cheapest(found)
    assert best is not None
    assert cost(best, found) == min(costs)
    assert len(set(costs)) > 1
    assert cheapest(found, 1.01 * min(costs)) == best
    assert cheapest(found, 0.99 * min(costs)) is None


def test_the_rarest_is_joined_first() -> None:
    asked = plan(parse("PATTERN SEQ(A a, B b, C c) WHERE a.v < b.v AND b.v < c.v WITHIN 100 s"))
    last = tree_plan(asked, Statistics({"A": 1, "B": 1, "C": 0.01}))
    first = tree_plan(asked, Statistics({"A": 0.01, "B": 1, "C": 1}))
    assert last is not None
    assert first is not None
    assert last.tree.render(last.query.names) == "(a (b c))"
    assert first.tree.render(first.query.names) == "((a b) c)"


def test_a_rare_last_type_makes_the_tree_cheaper_than_the_automaton() -> None:
    asked = plan(parse("PATTERN SEQ(A a, B b, C c) WITHIN 100 s"))
    choice = choose(asked, Statistics({"A": 1, "B": 1, "C": 0.001}))
    assert choice.tree is not None
    assert choice.automaton_cost is not None
    assert choice.is_tree
    assert choice.tree.cost * 2 < choice.automaton_cost


@pytest.mark.parametrize("rate", [10.0**k for k in range(-5, 3)])
def test_the_tree_to_take_is_the_one_that_the_costs_say(rate: float) -> None:
    asked = plan(parse("PATTERN SEQ(A a, B b, C c, D d) WHERE a.v < b.v AND c.v < d.v WITHIN 100 s"))
    known = Statistics({"A": 1, "B": 1, "C": 1, "D": rate})
    choice = choose(asked, known)
    assert choice.tree is not None
    assert choice.is_tree == (rate < 0.1)
    assert tree_to_take(asked, known, choice.tree.query) == (choice.tree.tree if choice.is_tree else None)
    assert tree_to_take(asked, known, choice.tree.query, is_must=True) == choice.tree.tree


def test_there_is_a_tree_though_costs_are_beyond_numbers() -> None:
    steps = ", ".join(f"T{n} v{n}" for n in range(40))
    found = tree_plan(plan(parse(f"PATTERN SEQ({steps}) WITHIN 1000 d")), Statistics(rate=1e6))
    assert found is not None
    assert found.tree.variables == (1 << 40) - 1


@pytest.mark.parametrize("count", [11, 16])
def test_long_patterns_are_planned_too(count: int) -> None:
    steps = ", ".join(f"T{n} v{n}" for n in range(count))
    found = tree_plan(plan(parse(f"PATTERN SEQ({steps}) WITHIN 10 s")), Statistics({f"T{count - 1}": 0.001}))
    assert found is not None
    assert found.tree.variables == (1 << count) - 1
    assert found.tree.right is not None
    assert found.tree.left is not None
    assert len(list(found.tree.nodes())) == count - 1
