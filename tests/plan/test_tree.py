"""Tree plans: what can be joined, what is asked where, what is stored."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.pattern.parser import parse
from penstock.plan import joins
from penstock.plan.joins import Bound, Term, bounds, covers, join_query, why_not
from penstock.plan.planning import Plan, plan
from penstock.plan.statistics import Sample, Statistics, estimate
from penstock.plan.terms import Code
from penstock.plan.tree import choose, join, leaf, render_choice, tree_plan, tree_tables

A, B, C = (leaf(v) for v in range(3))


def of(query: str) -> Plan:
    return plan(parse(f"PATTERN {query}"))


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SEQ(A a, B b) WITHIN 1 s", None),
        ("A a WITHIN 1 s", None),
        ("SEQ(A a, AND(B b, SEQ(C c, D d))) WITHIN 1 s SELECT LAST", None),
        ("ANY(2, A a, B b) WITHIN 1 s", None),
        ("ANY(1, A a, B b) WITHIN 1 s", "ANY takes only some of its members"),
        ("ANY(1, SEQ(A a, B b), C c) WITHIN 1 s", "ANY takes only some of its members"),
        ("SEQ(A a, NOT B b, C c) WITHIN 1 s", "it has a negation"),
        ("SEQ(A a, B+ b[]) WITHIN 1 s", "it has a repetition"),
        ("SEQ(A a, OR(B b, C c)) WITHIN 1 s", "it has alternatives"),
        ("SEQ(A a, B? b) WITHIN 1 s", "it has alternatives"),
        ("SEQ(A a, B b) WITHIN 1 s SELECT FIRST", "SELECT FIRST is about runs"),
        ("SEQ(A a, B b) WITHIN 1 s SELECT STRICT", "SELECT STRICT is about runs"),
    ],
)
def test_what_has_a_tree(query: str, reason: str | None) -> None:
    assert why_not(of(query)) == reason
    choice = choose(of(query), Statistics())
    assert (choice.tree is None) == (reason is not None)
    assert choice.reason == reason


def test_order_is_asked_between_neighbours_only() -> None:
    query = join_query(of("SEQ(A a, AND(B b, C c), D d) WITHIN 1 s"))
    assert covers(query, query.all) == [(0, 1), (0, 2), (1, 3), (2, 3)]
    assert covers(query, 0b1001) == [(0, 3)]


def test_only_variables_that_could_take_the_same_event_are_kept_apart() -> None:
    query = join_query(of("AND(A a, A|B b, SEQ(C c, * d)) WITHIN 1 s"))
    assert query.may_share == (0b1010, 0b1001, 0, 0b0011)


# --- what a condition asks of two sides --------------------------------------------------------------------------


def asked(where: str, mine: int, theirs: int) -> list[Bound]:
    query = join_query(of(f"SEQ(A a, B b, C c) WHERE {where} WITHIN 1 s"))
    return bounds(query.conditions[0], mine, theirs)


def text(term: Term) -> str:
    names = {joins.UP: "up", joins.DOWN: "down"} | {int(code): code.name.lower() for code in Code}
    if term.code == Code.REF:
        return "abc"[term.argument]
    return f"{names[int(term.code)]}({', '.join(map(text, term.parts))})"


def test_bounds_use_codes_of_their_own() -> None:
    assert not {joins.UP, joins.DOWN} & {int(code) for code in Code}


@pytest.mark.parametrize(
    ("where", "mine", "theirs", "expected"),
    [
        ("a.v < b.v", 0b010, 0b001, ["a LT b"]),
        ("a.v < b.v", 0b001, 0b010, ["b GT a"]),
        ("a.v + b.v <= c.v", 0b100, 0b011, ["add(a, b) LE c"]),
        ("SAME[v]", 0b110, 0b001, ["a EQ b"]),
        # Solved for what is stored, rounded outwards.
        ("a.v + b.v < c.v", 0b110, 0b001, ["a ~LE up(sub(up(c), b))"]),
        ("a.v - b.v > c.v", 0b101, 0b010, ["b ~LE up(sub(a, down(c)))"]),
        ("-a.v < b.v - c.v", 0b110, 0b001, ["neg(a) LT sub(b, c)"]),
        ("abs(a.v - b.v) < c.v", 0b110, 0b001, ["a ~LE up(add(up(c), b))", "a ~GE down(add(down(neg(c)), b))"]),
        ("a.v + b.v = c.v", 0b110, 0b001, ["a ~LE up(sub(up(c), b))", "a ~GE down(sub(down(c), b))"]),
        # Nothing to solve.
        ("a.v * b.v < c.v", 0b110, 0b001, []),
        ("a.v <> b.v", 0b010, 0b001, []),
        ("a.v < b.v OR a.v > b.v", 0b010, 0b001, []),
        ("a.v + b.v < c.v + a.w", 0b110, 0b001, []),
        ("abs(a.v - b.v) > c.v", 0b110, 0b001, []),
    ],
)
def test_bounds(where: str, mine: int, theirs: int, expected: list[str]) -> None:
    found = asked(where, mine, theirs)
    words = [f"{text(b.theirs)} {'' if b.exact else '~'}{Code(b.code).name} {text(b.mine)}" for b in found]
    assert words == expected


# --- tables ------------------------------------------------------------------------------------------------------


def test_only_what_can_still_be_completed_is_stored() -> None:
    asked = of("SEQ(A a, B b, C c) WITHIN 1 s")
    right = tree_tables(asked, join_query(asked), join(A, join(B, C)))
    left = tree_tables(asked, join_query(asked), join(join(A, B), C))
    assert right.nodes[:, joins.NODE_KEEPS].tolist() == [1, 1, 0, 0, 0]
    assert right.nodes[:, joins.NODE_JOINS].tolist() == [0, 0, 1, 1, 0]
    assert left.nodes[:, joins.NODE_KEEPS].tolist() == [1, 0, 0, 1, 0]
    both = of("AND(A a, B b) WITHIN 1 s")
    assert tree_tables(both, join_query(both), join(A, B)).nodes[:, joins.NODE_KEEPS].tolist() == [1, 1, 0]


def test_choice_in_words() -> None:
    asked = of("SEQ(A a, B b, C c) WHERE a.v < b.v AND abs(a.v - c.v) < 2 AND b.v * 2 <> c.v WITHIN 100 s")
    words = render_choice(choose(asked, Statistics({"A": 1, "B": 1, "C": 0.01})), 2.01)
    first, *others = words.splitlines()
    assert first.startswith("tree ((a c) b), ")
    assert "; not automaton, " in first
    assert others == [
        "((a c) b): 5/s",  # 0.01 · 100 · 100 / 2 · 1/3 · 1/3 · 0.9
        "  a before b",
        "  b before c",
        "  a.v < b.v, by interval",
        "  b.v * 2 <> c.v",
        "  (a c): 0.333/s",
        "    a before c",
        "    abs(a.v - c.v) < 2, by interval",
        "    a (A): 1/s, 100 stored",
        "    c (C): 0.01/s",
        "  b (B): 1/s, 100 stored",
    ]
    no = render_choice(choose(of("SEQ(A a, B+ b[]) WITHIN 1 s"), Statistics()), 1.0)
    assert no == "automaton: there is no tree plan, because it has a repetition"


# --- statistics --------------------------------------------------------------------------------------------------


def sample(plan: Plan, n: int = 4_000) -> Sample:
    rng = np.random.default_rng(5)
    columns = {"v": rng.random(n), "id": rng.integers(0, 20, n).astype(np.float64)}
    return Sample(
        ("A", "B", "X"),
        rng.choice(3, n, p=[0.2, 0.3, 0.5]),
        np.arange(n) * 500_000,
        np.stack([columns[column.name] for column in plan.terms.columns]),
        np.array(plan.terms.constants, np.float64),
        parts=rng.integers(0, 7, n),
    )


def test_estimates() -> None:
    asked = of("SEQ(A a, B b) WHERE a.v < 0.25 AND a.v + 0.5 < b.v AND SAME[id] WITHIN 100 s PARTITION BY k")
    found = estimate(asked, sample(asked))
    assert found.rates["A"] == pytest.approx(0.4, rel=0.1)
    assert found.rates["X"] == pytest.approx(1.0, rel=0.1)
    assert found.selectivities["a.v < 0.25"] == pytest.approx(0.25, abs=0.05)
    assert found.selectivities["a.v + 0.5 < b.v"] == pytest.approx(0.125, abs=0.04)
    assert found.selectivities["SAME[id]"] == pytest.approx(0.05, abs=0.03)
    assert found.partitions == 7
    assert found == estimate(asked, sample(asked))
    assert found != estimate(asked, sample(asked), seed=1)
    assert tree_plan(asked, found) is not None


def test_what_no_sample_shows_is_guessed() -> None:
    asked = of("SEQ(A a, Z z) WHERE a.v = z.v AND a.v < 2 WITHIN 100 s")
    found = estimate(asked, sample(asked))
    assert list(found.selectivities) == ["a.v < 2"]
    conditions = join_query(asked).conditions
    assert found.selectivity(conditions[0]) == 0.1
    assert Statistics(distinct={"v": 50}).selectivity(conditions[0], ["v"]) == 0.02
