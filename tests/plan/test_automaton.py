"""Automata of small patterns, by hand."""

from __future__ import annotations

import pytest

from penstock.errors import PenstockError
from penstock.pattern.parser import parse
from penstock.plan.automaton import Automaton, automaton
from penstock.plan.positions import number


def of(pattern: str) -> Automaton:
    return automaton(number(parse(f"PATTERN {pattern} WITHIN 1 h").pattern))


def edges(machine: Automaton) -> list[str]:
    names = [variable.name for variable in machine.numbered.variables]
    return [f"{t.source}-{names[t.variable]}->{t.target}" for t in machine.transitions]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("SEQ(A a, B b, C c)", ["0-a->1", "1-b->2", "2-c->3"]),
        # Where b is bound is a state of its own; a list that goes on comes after a step that is new.
        ("SEQ(A a, B+ b[], C c)", ["0-a->1", "1-b->2", "2-c->3", "2-b->2"]),
        ("SEQ(A a, B? b, C c)", ["0-a->1", "1-b->2", "1-c->3", "2-c->4"]),
        ("OR(SEQ(A a, B b), C c)", ["0-a->1", "0-c->2", "1-b->3"]),
        # How many members AND and ANY have is a state, which of them are bits of a run.
        ("SEQ(S s, ANY(2, A a, B b, C c))", ["0-s->1", "1-a->2", "1-b->2", "1-c->2", "2-a->3", "2-b->3", "2-c->3"]),
        ("AND(A a, B b)", ["0-a->1", "0-b->1", "1-a->2", "1-b->2"]),
        # Parts that are no single events are interleaved state by state.
        ("AND(SEQ(A a, B b), C c)", ["0-a->1", "0-c->2", "1-b->3", "1-c->4", "2-a->4", "3-c->5", "4-b->5"]),
        # An upper bound is counted in states, so that it is known when a list is closed.
        ("SEQ(A{1,2} a[], B b)", ["0-a->1", "1-b->2", "1-a->3", "3-b->2"]),
        # A lower bound likewise, so that a list is not left too early.
        ("SEQ(A{2,} a[], B b)", ["0-a->1", "1-a->2", "2-b->3", "2-a->2"]),
    ],
)
def test_states_and_steps(pattern: str, expected: list[str]) -> None:
    assert edges(of(pattern)) == expected


def test_a_negation_is_passed_by_the_step_after_it() -> None:
    machine = of("SEQ(A a, NOT N n, B b, NOT M m)")
    assert [t.negations for t in machine.transitions] == [(), (0,)]
    assert [way.negations for way in machine.states[-1].endings] == [(1,)]


def test_what_is_open_in_a_round() -> None:
    machine = of("SEQ((SEQ(X x, Y y))+, Z z)")
    x, y, z = (machine.numbered.number_of(name) for name in "xyz")
    after_x = machine.states[machine.leaving(0)[0].target]
    assert after_x.open_in == (frozenset({x, y, z}), frozenset({y, z}))


def test_any_of_many_is_small_and_groups_inside_any_are_bounded() -> None:
    assert len(of(f"ANY(4, {', '.join(f'T{k}' for k in range(20))})").states) == 5
    with pytest.raises(PenstockError, match="more than 5,000 states"):
        of(f"AND({', '.join(f'SEQ(A{k}, B{k})' for k in range(12))})")
