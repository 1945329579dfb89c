"""A query as arrays: everything that the kernel reads, and nothing that depends on the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.plan.automaton import Automaton, Do, Op, State, Transition, Way, automaton
from penstock.plan.layout import (
    BY_COUNT,
    BY_RUNS,
    COND_WIDTH,
    CONSUME,
    COUNTER_WIDTH,
    NEG_WIDTH,
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
from penstock.plan.positions import Numbered, number
from penstock.plan.terms import Condition, Index, Terms

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

_CLOSING = (Index.LAST, Index.ALL)


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
    open: Bools  # ((D + 1) · S, V) in row k · S + s: may still be bound while the outer k loops stay in their round
    lists: Bools  # (S + W, V) lists that are there: in a state, at the end in a way
    options: Ints  # (OPTIONS,)


class Plan(NamedTuple):
    """A query ready to run: its tables, and what is needed to make columns of batches and matches of runs."""

    query: ast.Query
    numbered: Numbered
    automaton: Automaton
    terms: Terms
    tables: Tables


def plan(query: ast.Query) -> Plan:
    """Turn a valid query into tables."""
    numbered = number(query.pattern)
    machine = automaton(numbered)
    terms = Terms(numbered)
    for conjunct in ast.conjuncts(query.where):
        terms.add(conjunct)
    return Plan(query, numbered, machine, terms, _Packing(query, numbered, machine, terms).tables())


class _Packing:
    def __init__(self, query: ast.Query, numbered: Numbered, machine: Automaton, terms: Terms) -> None:
        self.query, self.numbered, self.machine, self.terms = query, numbered, machine, terms
        self.rows: list[tuple[int, ...]] = []
        self.negated = {info.variable: n for n, info in enumerate(numbered.negations)}
        self.members_bound = _members_bound(machine)
        self.positive = [
            (c, condition)
            for c, condition in enumerate(terms.conditions)
            if not condition.variables & self.negated.keys()
        ]
        self.naming = [
            [c for c, cond in enumerate(terms.conditions) if cond.same >= 0 or info.variable in cond.variables]
            for info in numbered.negations
        ]

    # --- when conditions are due (docs/language.md, section 5: decided) ---------------------------------------

    def is_own(self, condition: Condition) -> bool:
        """Whether a condition names one variable only, and of it the element that is being bound."""
        refs = [self.terms.references[r] for r in condition.references]
        return condition.same < 0 and len(condition.variables) == 1 and all(r.index == Index.CURRENT for r in refs)

    def closing(self, condition: Condition) -> set[int]:
        refs = (self.terms.references[r] for r in condition.references)
        return {r.variable for r in refs if r.index in _CLOSING}

    def is_missing(self, condition: Condition, state: State) -> bool:
        """Whether it names a variable that is no list and that no run in this state has bound."""
        scalars = {v for v in condition.variables if not self.numbered.variables[v].loops}
        return bool(scalars - state.bound - self.members_bound[state])

    def due(self, step: Transition) -> list[tuple[int, int]]:
        source, target = self.machine.states[step.source], self.machine.states[step.target]
        found = []
        for c, condition in self.positive:
            closing = self.closing(condition)
            has_closed = bool((closing & source.open) - target.open)
            is_touched = condition.same >= 0 or has_closed or step.variable in condition.variables
            is_ready = not closing & target.open and not self.is_missing(condition, target)
            if is_touched and is_ready and not self.is_own(condition):
                found.append((c, int(not has_closed and self.is_of_one_round(condition, step.variable))))
        return found

    def is_of_one_round(self, condition: Condition, variable: int) -> bool:
        """Whether binding a variable can only touch what a condition says about the round it is bound in."""
        mine = [r for r in condition.references if self.terms.references[r].variable == variable]
        return condition.depth > 0 and all(self.terms.depth_of(r) == condition.depth for r in mine)

    def due_at_end(self, state: State) -> list[int]:
        return [
            c
            for c, condition in self.positive
            if condition.same < 0 and self.closing(condition) & state.open and not self.is_missing(condition, state)
        ]

    # --- when negations are asked -----------------------------------------------------------------------------

    def is_settled(self, negation: int, state: State) -> bool:
        """Whether everything that its conditions name is bound for good in this state, and something before it is."""
        info = self.numbered.negations[negation]
        if not {v for v, _ in info.before} & state.bound:
            return False
        for c in self.naming[negation]:
            for r in self.terms.conditions[c].references:
                ref = self.terms.references[r]
                is_scalar = not self.numbered.variables[ref.variable].loops and ref.variable in state.bound
                if ref.variable != info.variable and not is_scalar and ref.variable in state.open:
                    return False
                if ref.variable != info.variable and self.terms.depth_of(r) and info.loops:
                    return False
        return True

    def ask(self, step: Transition) -> list[tuple[int, int]]:
        """The negations to ask at a step; 1: only where the step passes it, 0: wherever the run has passed it."""
        source, target = self.machine.states[step.source], self.machine.states[step.target]
        asked = []
        for n in sorted(target.passed):
            if not self.is_settled(n, target) or (n in source.passed and not self.is_settled(n, source)):
                asked.append((n, 0))
            elif n in step.negations:
                asked.append((n, 1))
        return asked

    def ask_at_end(self, state: State) -> list[int]:
        return [n for n in sorted(state.passed) if not self.is_settled(n, state)]

    # --- packing ----------------------------------------------------------------------------------------------

    def tables(self) -> Tables:
        steps = sorted(self.machine.transitions, key=lambda t: t.source)  # stable: keeps the order of preference
        states = self.machine.states
        ways = [(s, way) for s in states for way in s.endings]
        lists = [s.lists for s in states] + [s.lists | way.lists for s, way in ways]
        return Tables(
            _table(map(self.variable_row, range(len(self.numbered.variables))), VAR_WIDTH),
            _padded([v.loops for v in self.numbered.variables]),
            _table(map(self.step_row, steps), STEP_WIDTH),
            _table(self.state_rows(steps), STATE_WIDTH),
            _table((self.way_row(s, way) for s, way in ways), WAY_WIDTH),
            _table(self.counter_rows(), COUNTER_WIDTH),
            _table(map(self.condition_row, self.terms.conditions), COND_WIDTH),
            _table(map(self.reference_row, range(len(self.terms.references))), REF_WIDTH),
            _table(map(self.negation_row, range(len(self.numbered.negations))), NEG_WIDTH),
            np.array(self.rows, np.int64).reshape(-1, 3),
            self.matrix([s.open_in[k] for k in range(len(states[0].open_in)) for s in states]),
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
        own = [(c,) for c, condition in self.positive if self.is_own(condition) and variable in condition.variables]
        consumed = {name.text for name in self.query.consume.variables}
        return len(info.loops), int(self.query.consume.all or info.name in consumed), *self.span(own)

    def ops(self, ops: tuple[Do, ...]) -> tuple[int, int]:
        loops = len(self.numbered.loops)
        return self.span((do.op, do.number + loops * (do.op is Op.TAKE_MEMBER), do.member) for do in ops)

    def step_row(self, step: Transition) -> tuple[int, ...]:
        passes = sum(1 << negation for negation in step.negations)
        ranges = (*self.ops(step.ops), *self.span(self.due(step)), *self.span(self.ask(step)))
        return step.target, step.variable, passes, *ranges

    def state_rows(self, steps: list[Transition]) -> Iterator[tuple[int, ...]]:
        step = way = 0
        for source, state in enumerate(self.machine.states):
            leaving = sum(t.source == source for t in steps)
            yield step, step + leaving, way, way + len(state.endings)
            step, way = step + leaving, way + len(state.endings)

    def way_row(self, state: State, way: Way) -> tuple[int, ...]:
        due, ask = self.span((c,) for c in self.due_at_end(state)), self.span((n,) for n in self.ask_at_end(state))
        return *self.ops(way.ops), *due, *ask, *self.span((n,) for n in way.negations)

    def counter_rows(self) -> Iterator[tuple[int, ...]]:
        loops = len(self.numbered.loops)
        for info in self.numbered.loops:
            inner = [*info.inner_loops, *(loops + bag for bag in info.inner_bags)]
            yield info.low, info.high, *self.span((k,) for k in inner)
        for bag in self.numbered.bags:
            yield 0, len(bag.members), 0, 0

    def condition_row(self, condition: Condition) -> tuple[int, ...]:
        refs = self.span((r,) for r in condition.references)
        return *self.span(condition.program), *refs, condition.depth, condition.same

    def reference_row(self, number: int) -> tuple[int, ...]:
        ref = self.terms.references[number]
        return ref.variable, ref.index, ref.number, ref.column, ref.aggregate, self.terms.depth_of(number)

    def negation_row(self, number: int) -> tuple[int, ...]:
        info = self.numbered.negations[number]
        due, before = self.span((c,) for c in self.naming[number]), self.span(info.before)
        return info.variable, len(info.loops), *due, *before

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
        options[WITHIN] = _span(self.query.within)
        return options


def _members_bound(machine: Automaton) -> dict[State, set[int]]:
    """Return, per state, the members of bags that some run there has bound."""
    members = {member for bag in machine.numbered.bags for member in bag.members}
    bound: dict[State, set[int]] = {state: set() for state in machine.states}
    is_news = True
    while is_news:
        is_news = False
        for step in machine.transitions:
            source, target = machine.states[step.source], machine.states[step.target]
            news = (bound[source] | ({step.variable} & members)) - bound[target]
            bound[target] |= news
            is_news = is_news or bool(news)
    return bound


def _span(span: ast.Span | None) -> int:
    assert span is not None, "validate the query first"
    return span.us if isinstance(span, ast.TimeSpan) else span.events - 1


def _padded(rows: list[tuple[int, ...]]) -> Ints:
    width = max(1, *map(len, rows))
    return np.array([[*row, *[-1] * (width - len(row))] for row in rows], np.int64)


def _table(rows: Iterable[tuple[int, ...]], width: int) -> Ints:
    return np.array(list(rows), np.int64).reshape(-1, width)
