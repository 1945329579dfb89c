"""How queries are run, in facts and in words: which kernel, what is asked where and how, which plan is cheaper."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest

from penstock.pattern.parser import parse
from penstock.plan.explain import Check, StateFacts, explain_plan
from penstock.plan.words import MOST_STEPS, plan_words

FOLDER = Path(__file__).parents[1] / "queries"
QUERIES = sorted(FOLDER.glob("*.cep"))
GOLDEN = Path(__file__).parent / "golden"
RATES = {"BigTrans": 0.01}  # for the one golden query that can be joined: clearly by a tree


def states(query: str) -> tuple[StateFacts, ...]:
    return explain_plan(parse(f"PATTERN {query}")).states


def checks(query: str, state: int) -> list[Check]:
    return [check for step in states(query)[state].steps for check in step.checks]


# --- golden ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("golden", sorted(GOLDEN.glob("explain_*.txt")), ids=lambda path: path.stem)
def test_words(golden: Path) -> None:
    """Costs are left out: they change with every measurement."""
    name = golden.stem.removeprefix("explain_")
    facts = explain_plan(parse((FOLDER / f"{name}.cep").read_text(encoding="utf-8")), RATES)
    found = re.sub(r"[\d.e+]+ (ns|µs|ms|s)\b(?=( an event)?[,\n])", "… ns", plan_words(facts))
    assert found + "\n" == golden.read_text(encoding="utf-8")


def test_there_is_something_golden() -> None:
    assert len(list(GOLDEN.glob("explain_*.txt"))) == 5


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_every_query_of_the_papers_is_explained(path: Path) -> None:
    """Also those that call user functions and REMOTE."""
    query = parse(path.read_text(encoding="utf-8"), path.stem)
    facts = explain_plan(query)
    assert facts.problem is None
    assert json.loads(json.dumps(asdict(facts)))["kernel"] == facts.kernel
    assert (facts.why_general is None) == (facts.kernel == "plain")
    assert facts.states[0].bound == ()
    reached = {step.target for state in facts.states for step in state.steps}
    assert reached | {0} == {state.number for state in facts.states}
    assert plan_words(facts)


# --- how conditions are asked ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "state", "check"),
    [
        ("SEQ(A a, B b) WHERE b.v > 3 WITHIN 1 s", 1, Check("b.v > 3", "event")),
        ("SEQ(A a, B b) WHERE a.v < b.v WITHIN 1 s", 1, Check("a.v < b.v", "interval", "a.v")),
        ("SEQ(A a, B b) WHERE b.v < 2 * a.v WITHIN 1 s", 1, Check("b.v < 2 * a.v", "interval", "2 * a.v")),
        ("SEQ(A a, B b) WHERE a.v = b.v WITHIN 1 s", 1, Check("a.v = b.v", "index", "a.v")),
        ("SEQ(A a, B b) WHERE SAME[id] WITHIN 1 s", 1, Check("SAME[id]", "index", "id of the first event")),
        ("SEQ(A a, B b) WHERE SAME[f(id)] WITHIN 1 s", 1, Check("SAME[f(id)]", "index", "f(id) of the first event")),
        ("SEQ(A a, B b) WHERE a.v <> b.v WITHIN 1 s", 1, Check("a.v <> b.v", "program")),
        ("SEQ(A a, B b) WHERE abs(a.v - b.v) < 5 WITHIN 1 s", 1, Check("abs(a.v - b.v) < 5", "program", "a.v")),
        ("SEQ(A a, B b) WHERE f(a.v) < b.v WITHIN 1 s", 1, Check("f(a.v) < b.v", "interval", "f(a.v)")),
        ("SEQ(A a, B b) WHERE f(a.v, b.v) > 1 WITHIN 1 s", 1, Check("f(a.v, b.v) > 1", "program", None, True)),
        ("SEQ(A a, B b) WHERE prev(a.v) < b.v WITHIN 1 s", 1, Check("prev(a.v) < b.v", "interval", "prev(a.v)")),
        ("SEQ(A+ a[], B b) WHERE SUM(a[].v) < b.v WITHIN 1 s", 1,
         Check("SUM(a[].v) < b.v", "interval", "SUM(a[].v)")),
        ("SEQ(A+ a[], B b) WHERE a[last].v < b.v WITHIN 1 s", 1, Check("a[last].v < b.v", "interval", "a[last].v")),
        ("SEQ(A+ a[], B b) WHERE a[2].v < b.v WITHIN 1 s", 1, Check("a[2].v < b.v", "elements")),
        ("SEQ(A a, NOT C c, B b) WHERE a.v < b.v WITHIN 1 s", 1, Check("a.v < b.v", "interval", "a.v")),
        ("SEQ(A a, B b, NOT C c) WHERE a.v < b.v WITHIN 1 s", 1, Check("a.v < b.v", "elements")),
    ],
)  # fmt: skip
def test_how_a_condition_is_asked(query: str, state: int, check: Check) -> None:
    assert check in checks(query, state)


def test_intervals_that_a_condition_implies_are_told_with_it() -> None:
    facts = explain_plan(parse("PATTERN SEQ(A a, B b, C c) WHERE a.v - c.v < b.v AND a.v + b.v + c.v < 3 WITHIN 5 s"))
    assert [check.text for check in facts.states[2].steps[0].checks] == ["a.v - c.v < b.v", "a.v + b.v + c.v < 3"]
    assert "a.v + b.v + c.v < 3, by interval on a.v + b.v, then by the stack machine" in plan_words(facts)


def test_of_two_equalities_one_is_the_index() -> None:
    found = checks("SEQ(A a, B b) WHERE a.x = b.x AND a.y = b.y WITHIN 1 s", 1)
    assert sorted(check.how for check in found) == ["index", "interval"]


def test_runs_of_a_partition_are_found_by_it() -> None:
    first, second, third = states("SEQ(A a, B b) WHERE SAME[x] WITHIN 1 s PARTITION BY k")
    assert (first.index, second.index, third.index) == (None, "partition", "partition")
    assert second.steps[0].checks == (Check("SAME[x]", "interval", "x of the first event"),)


def test_runs_keep_what_later_steps_ask_for() -> None:
    found = states("SEQ(A a, B b, C c) WHERE a.v + b.v < c.v WITHIN 1 s")
    assert [state.keeps for state in found] == [(), ("a.v",), ("a.v", "b.v", "a.v + b.v"), ()]


@pytest.mark.parametrize(
    ("query", "bound"),
    [
        ("SEQ(A a, B b)", [(), ("a",), ("a", "b")]),
        ("AND(A a, B b)", [(), ("1 of a, b",), ("a", "b")]),
        ("ANY(2, A a, B b, C c)", [(), ("1 of a, b, c",), ("2 of a, b, c",)]),
        ("SEQ(X x, ANY(1, A a, B b, C c, D d, E e, F f, G g))", [(), ("x",), ("x", "1 of a … g")]),
        (
            "OR(AND(A a, B b), ANY(1, C c, D d))",
            [(), ("1 of a, b",), ("perhaps some of a, b", "perhaps some of c, d")],
        ),
    ],
)
def test_what_is_bound(query: str, bound: list[tuple[str, ...]]) -> None:
    assert sorted(state.bound for state in states(f"{query} WITHIN 1 s")) == sorted(bound)


def test_what_only_the_end_tells() -> None:
    first, last = states("SEQ(A a, NOT B b) WHERE a.v < b.v WITHIN 1 s")
    assert (first.may_end, last.may_end, last.at_end) == (False, True, ("no B b with a.v < b.v",))
    (_, last) = states("A+ a[] WHERE COUNT(a[]) > 3 WITHIN 1 s")
    assert last.at_end == ("COUNT(a[]) > 3",)


# --- the tree ----------------------------------------------------------------------------------------------------


def test_rates_decide() -> None:
    query = parse("PATTERN SEQ(A a, B b, C c) WHERE a.v < b.v AND b.v < c.v WITHIN 250 s")
    rare = explain_plan(query, {"A": 10, "B": 10, "C": 0.001}).tree
    frequent = explain_plan(query, {"A": 0.001, "B": 10, "C": 10}).tree
    assert rare is not None
    assert frequent is not None
    assert (rare.chosen, rare.order) == ("tree", "(a (b c))")
    assert rare.tree_ns is not None
    assert rare.automaton_ns is not None
    assert rare.tree_ns < rare.automaton_ns
    assert frequent.order == "((a b) c)"
    assert rare.rates == {"A": 10, "B": 10, "C": 0.001}


def test_a_type_without_a_rate_comes_once_a_second() -> None:
    tree = explain_plan(parse("PATTERN SEQ(A a, B|C b) WITHIN 9 EVENTS"), {"B": 2, "X": 5}).tree
    assert tree is not None
    assert tree.rates == {"A": 1, "B": 2, "C": 1, "X": 5}


# --- limits ------------------------------------------------------------------------------------------------------


def test_many_steps_are_cut_short_in_words_only() -> None:
    members = ", ".join(f"T{n} t{n}" for n in range(30))
    conditions = " AND ".join(f"x.v < t{n}.v" for n in range(30))
    facts = explain_plan(parse(f"PATTERN SEQ(X x, ANY(2, {members})) WHERE {conditions} WITHIN 1 s"))
    assert len(facts.states[1].steps) == 30
    assert f"… and {30 - MOST_STEPS} more\n" in plan_words(facts)


def test_a_query_with_too_many_states_is_explained_as_such() -> None:
    members = ", ".join(f"SEQ(A{n} a{n}, B{n} b{n})" for n in range(12))
    facts = explain_plan(parse(f"PATTERN AND({members}) WITHIN 1 s"))
    assert facts.kernel is None
    assert plan_words(facts).startswith("Plan\n  none: the pattern has more than 5,000 states")
