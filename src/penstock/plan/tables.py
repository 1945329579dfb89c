"""A query as arrays: everything that the kernel reads, and nothing that depends on the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.plan.automaton import Do, Op, State, Transition, Way
from penstock.plan.deciding import Deciding
from penstock.plan.layout import (
    BY_COUNT,
    BY_RUNS,
    COND_WIDTH,
    CONSUME,
    COUNTER_WIDTH,
    NEG_WIDTH,
    OPEN,
    OPEN_BY_BAG,
    OPTIONS,
    PER_WINDOW,
    REF_WIDTH,
    STATE_WIDTH,
    STEP_WIDTH,
    STRICT,
    VAR_WIDTH,
    WAY_WIDTH,
    WINDOWS,
    WITHIN,
)
from penstock.plan.terms import Condition

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


class Tables(NamedTuple):
    """What the kernel reads of a query; penstock.plan.layout names the columns.

    V variables, S states, T steps, W ways to end, K counters (loops, then bags), C conditions, R references,
    N negations.
    """

    variables: Ints  # (V, ·)
    loops: Ints  # (V, D) the loops around a variable, outermost first; -1 beyond
    steps: Ints  # (T, ·) sorted by source; those of a state as FIRST prefers them
    states: Ints  # (S, ·)
    ways: Ints  # (W, ·) ways in which a run may end
    counters: Ints  # (K, ·)
    conditions: Ints  # (C, ·)
    references: Ints  # (R, ·)
    negations: Ints  # (N, ·)
    rows: Ints  # (·, 3) what the ranges in the other tables point to
    open: Ints  # ((D + 1) · S, V) in row k · S + s: may still be bound while the outer k loops stay in their round?
    lists: Bools  # (S + W, V) lists that are there: in a state, at the end in a way
    options: Ints  # (OPTIONS,)


def tables(query: ast.Query, deciding: Deciding) -> Tables:
    """Return what the general kernel reads of a query."""
    return _Packing(query, deciding).tables()


class _Packing:
    def __init__(self, query: ast.Query, deciding: Deciding) -> None:
        self.query, self.deciding = query, deciding
        self.numbered, self.machine, self.terms = deciding.numbered, deciding.machine, deciding.terms
        self.rows: list[tuple[int, ...]] = []

    def tables(self) -> Tables:
        steps = sorted(self.machine.transitions, key=lambda t: t.source)  # stable: keeps the order of preference
        states = self.machine.states
        ways = [(s, way) for s in states for way in s.endings]
        lists = [s.lists for s in states] + [s.lists | way.lists for s, way in ways]
        return Tables(
            table(map(self.variable_row, range(len(self.numbered.variables))), VAR_WIDTH),
            _padded([v.loops for v in self.numbered.variables]),
            table(map(self.step_row, steps), STEP_WIDTH),
            table(self.state_rows(steps), STATE_WIDTH),
            table((self.way_row(s, way) for s, way in ways), WAY_WIDTH),
            table(self.counter_rows(), COUNTER_WIDTH),
            table(map(self.condition_row, self.terms.conditions), COND_WIDTH),
            table(map(self.reference_row, range(len(self.terms.references))), REF_WIDTH),
            table(map(self.negation_row, range(len(self.numbered.negations))), NEG_WIDTH),
            np.array(self.rows, np.int64).reshape(-1, 3),
            self.open_variables(),
            self.matrix(lists),
            self.options(),
        )

    def span(self, rows: Iterable[tuple[int, ...]]) -> tuple[int, int]:
        """Put rows behind the others; return where they start and end."""
        start = len(self.rows)
        self.rows += [(*row, 0, 0)[:3] for row in rows]
        return start, len(self.rows)

    def variable_row(self, variable: int) -> tuple[int, ...]:
        info = self.numbered.variables[variable]
        consumed = {name.text for name in self.query.consume.variables}
        return (
            len(info.loops),
            int(self.query.consume.all or info.name in consumed),
            *self.span((c,) for c in self.deciding.own(variable)),
            *self.place_in_bag(variable),
        )

    def place_in_bag(self, variable: int) -> tuple[int, int]:
        """Return the counter of the bag that a variable is in, and its bit there; -1 if it is in none."""
        for bag, info in enumerate(self.numbered.bags, start=len(self.numbered.loops)):
            if variable in info.members:
                return bag, info.members.index(variable)
        return -1, -1

    def ops(self, ops: tuple[Do, ...]) -> tuple[int, int]:
        loops = len(self.numbered.loops)
        return self.span((do.op, do.number + loops * (do.op is Op.TAKE_MEMBER), do.member) for do in ops)

    def step_row(self, step: Transition) -> tuple[int, ...]:
        passes = sum(1 << negation for negation in step.negations)
        due = ((c, newest, int(self.deciding.hinges_on_bag(c, step))) for c, newest in self.deciding.due(step))
        ranges = (*self.ops(step.ops), *self.span(due), *self.span(self.deciding.ask(step)))
        return step.target, step.variable, passes, *ranges

    def state_rows(self, steps: list[Transition]) -> Iterator[tuple[int, ...]]:
        step = way = 0
        for source, state in enumerate(self.machine.states):
            leaving = sum(t.source == source for t in steps)
            yield step, step + leaving, way, way + len(state.endings)
            step, way = step + leaving, way + len(state.endings)

    def way_row(self, state: State, way: Way) -> tuple[int, ...]:
        due, ask = (
            self.span((c,) for c in self.deciding.due_at_end(state)),
            self.span((n,) for n in self.deciding.ask_at_end(state)),
        )
        return *due, *ask, *self.span((n,) for n in way.negations)

    def counter_rows(self) -> Iterator[tuple[int, ...]]:
        loops = len(self.numbered.loops)
        for info in self.numbered.loops:
            inner = [*info.inner_loops, *(loops + bag for bag in info.inner_bags)]
            yield self.span((k,) for k in inner)
        for _ in self.numbered.bags:
            yield 0, 0

    def condition_row(self, condition: Condition) -> tuple[int, ...]:
        refs = self.span((r,) for r in condition.references)
        return *self.span(condition.program), *refs, condition.depth, condition.same

    def reference_row(self, number: int) -> tuple[int, ...]:
        ref = self.terms.references[number]
        return ref.variable, ref.index, ref.number, ref.column, ref.aggregate, self.terms.depth_of(number)

    def negation_row(self, number: int) -> tuple[int, ...]:
        info = self.numbered.negations[number]
        due, before = self.span((c,) for c in self.deciding.naming[number]), self.span(info.before)
        return info.variable, len(info.loops), *due, *before

    def open_variables(self) -> Ints:
        states = self.machine.states
        depths = range(len(states[0].open_in))
        is_open = self.matrix([s.open_in[k] for k in depths for s in states])
        return np.where(self.matrix([s.by_bag[k] for k in depths for s in states]), OPEN_BY_BAG, is_open * OPEN)

    def matrix(self, sets: list[frozenset[int]]) -> Bools:
        columns = range(len(self.numbered.variables))
        return np.array([[c in s for c in columns] for s in sets], np.bool_).reshape(len(sets), len(columns))

    def options(self) -> Ints:
        by_runs = self.query.select.policy in (Policy.FIRST, Policy.STRICT)
        consumes = by_runs and (self.query.consume.all or bool(self.query.consume.variables))
        windows = self.query.window is not None
        may_wait = any(s.endings and self.machine.leaving(n) for n, s in enumerate(self.machine.states))
        options = np.zeros(OPTIONS, np.int64)
        options[BY_COUNT] = isinstance(self.query.within, ast.CountSpan)
        options[BY_RUNS], options[STRICT] = by_runs, self.query.select.policy is Policy.STRICT
        options[CONSUME], options[WINDOWS] = consumes, windows
        options[PER_WINDOW] = by_runs and windows and (consumes or bool(self.numbered.negations) or may_wait)
        options[WITHIN] = within_of(self.query)
        return options


def within_of(query: ast.Query) -> int:
    """Return WITHIN in microseconds, or how many positions the last event may be after the first."""
    span = query.within
    assert span is not None, "validate the query first"
    return span.us if isinstance(span, ast.TimeSpan) else span.events - 1


def _padded(rows: list[tuple[int, ...]]) -> Ints:
    width = max(1, *map(len, rows))
    return np.array([[*row, *[-1] * (width - len(row))] for row in rows], np.int64)


def table(rows: Iterable[tuple[int, ...]], width: int) -> Ints:
    """Return rows as an array, also if there are none."""
    return np.array(list(rows), np.int64).reshape(-1, width)
