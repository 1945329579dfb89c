"""Plain queries: those whose conditions are all asked by registers, and which have no negation. Most queries are.

`plain_tables` gives what penstock.kernel.plain reads; `why_not_plain` says why a query is not, for `explain`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.plan import layout
from penstock.plan.automaton import Automaton, Op, Transition
from penstock.plan.deciding import Deciding
from penstock.plan.kills import kills, why_no_kills
from penstock.plan.positions import Leaf, Numbered
from penstock.plan.registers import Asked, Expression, Keep, Kept, Load, Register, Registers
from penstock.plan.tables import Ints, table, within_of
from penstock.plan.terms import Code, Program, Terms

MAX_MEMBERS = 52  # members of a bag that a float64 can hold as bits

_SETTERS = {
    Keep.COUNT: layout.SET_COUNT,
    Keep.SUM: layout.SET_SUM,
    Keep.LEAST: layout.SET_LEAST,
    Keep.MOST: layout.SET_MOST,
}


class PlainTables(NamedTuple):
    """What the plain kernel reads of a query; penstock.plan.layout names the columns."""

    steps: Ints  # (T, ·) sorted by source; those of a state as FIRST prefers them; then the kills
    states: Ints  # (S, ·)
    conjuncts: Ints  # (J, ·) what a step asks
    setters: Ints  # (·, ·) what a step writes to the registers of the run it makes; worked-out ones last
    rows: Ints  # (·, 3) programs and loads, which the ranges in the other tables point to
    options: Ints  # (PLAIN_OPTIONS,)
    hooks: Ints | None = None  # the same array; None where no hook is used, see `penstock.kernel.lean`


def why_not_plain(
    query: ast.Query, deciding: Deciding, registers: Registers, *, needs_rounds: bool = False
) -> str | None:
    """Return why a query is not plain; None if it is. `needs_rounds`: values are worked out for whole matches."""
    numbered, machine = deciding.numbered, deciding.machine
    due_at_end = any(deciding.due_at_end(state) for state in machine.states if state.endings)
    moves = query.select.policy in (Policy.FIRST, Policy.STRICT)
    waits = moves and any(s.endings and machine.leaving(n) for n, s in enumerate(machine.states))
    if (reason := why_no_kills(deciding)) is not None:
        return reason
    if any(registers.deep.values()) or due_at_end:
        return "a condition looks back at the elements of a run"
    if waits:
        return "under FIRST its repetition at the end is closed by time only"
    if any(len([op for op in step.ops if op.op is Op.TAKE_MEMBER]) > 1 for step in machine.transitions):
        return "a step takes members of several groups"
    if any(info.inner_bags for info in numbered.loops) or any(len(b.members) > MAX_MEMBERS for b in numbered.bags):
        return "it repeats a group with AND or ANY"
    if needs_rounds and any(info.depth or not isinstance(info.part, Leaf) for info in numbered.loops):
        who = "RETURN" if query.returns else "a condition that is postponed"
        return f"{who} may ask for the rounds of a repeated group"
    return None


def plain_tables(
    query: ast.Query, numbered: Numbered, machine: Automaton, terms: Terms, registers: Registers
) -> PlainTables:
    """Return the tables of a plain query."""
    return _Packing(query, numbered, machine, terms, registers).tables()


def slot_of(tables: PlainTables, numbered: Numbered, registers: Registers, state: int, kept: Kept) -> int:
    """Return the row of the registers in which runs of a state keep something."""
    return _first_named(tables.options) + len(numbered.bags) + registers.slots[state][kept]


class _Packing:
    def __init__(
        self, query: ast.Query, numbered: Numbered, machine: Automaton, terms: Terms, registers: Registers
    ) -> None:
        self.query, self.numbered, self.machine, self.terms, self.registers = query, numbered, machine, terms, registers
        self.rows: list[tuple[int, ...]] = []
        self.conjuncts: list[tuple[int, ...]] = []
        self.setters: list[tuple[int, ...]] = []
        self.asks: dict[tuple[object, ...], int] = {}  # what steps ask as intervals, in order: their numbers
        self.sides: dict[Program, int] = {}  # of the events' sides of intervals, by columns: their numbers
        self.kills = kills(machine)
        self.options = self.implicit()
        self.base = _first_named(self.options)
        self.index = [self.index_of(state) for state in range(len(machine.states))]

    def implicit(self) -> Ints:
        """Return the options, with a register for each thing that a query needs beyond its conditions."""
        query = self.query
        moves = query.select.policy in (Policy.FIRST, Policy.STRICT)
        consumes = moves and bool(query.consume.all or query.consume.variables)
        options = np.full(layout.PLAIN_OPTIONS, -1, np.int64)
        options[layout.PLAIN_BY_COUNT] = isinstance(query.within, ast.CountSpan)
        options[layout.PLAIN_MOVES], options[layout.PLAIN_CONSUMES] = moves, consumes
        options[layout.PLAIN_WITHIN] = within_of(query)
        options[layout.PLAIN_MAX_RUNS] = 2**62
        options[layout.PLAIN_SKIPS : layout.PLAIN_REPORTS + 1], options[layout.PLAIN_SEEN] = 0, moves
        wanted = {
            layout.PLAIN_LOW: query.window is not None,
            layout.PLAIN_HIGH: query.window is not None,
            layout.PLAIN_PART: bool(query.partition),
            layout.PLAIN_LAST: query.select.policy is Policy.STRICT,
            layout.PLAIN_BIRTH: consumes,
        }
        for slot, place in enumerate((place for place, is_wanted in wanted.items() if is_wanted), start=1):
            options[place] = slot
        return options

    # --- slots ------------------------------------------------------------------------------------------------

    def mask(self, bag: int) -> int:
        return self.base + bag

    def slot(self, state: int, kept: Kept) -> int:
        return self.base + len(self.numbered.bags) + self.registers.slots[state][kept]

    def index_of(self, state: int) -> int:
        """Return the register by which runs of a state are found: the partition, or what most steps ask to be equal."""
        if self.options[layout.PLAIN_PART] >= 0:
            return int(self.options[layout.PLAIN_PART])
        asked = [
            self.slot(state, each.register)
            for step in (*self.machine.leaving(state), *(kill for kill in self.kills if kill.source == state))
            for each in self.registers.asked[step]
            if each.register is not None and each.op is Code.EQ
        ]
        return max(sorted(set(asked)), key=asked.count) if asked and state else -1

    # --- packing ----------------------------------------------------------------------------------------------

    def tables(self) -> PlainTables:
        steps = sorted(self.machine.transitions, key=lambda t: t.source)
        packed = [self.step_row(step) for step in (*steps, *self.kills)]
        return PlainTables(
            table(packed, layout.PLAIN_STEP_WIDTH),
            table(self.state_rows(steps), layout.PLAIN_STATE_WIDTH),
            table(self.conjuncts, layout.CONJ_WIDTH),
            table(self.setters, layout.SET_WIDTH),
            np.array(self.rows, np.int64).reshape(-1, 3),
            self.options,
        )

    def step_row(self, step: Transition) -> tuple[int, ...]:
        member = next((do for do in step.ops if do.op is Op.TAKE_MEMBER), None)
        consumed = {name.text for name in self.query.consume.variables}
        consuming = self.query.consume.all or self.numbered.variables[step.variable].name in consumed
        first = len(self.conjuncts)
        self.conjuncts += [self.conjunct_row(step, each) for each in self.registers.asked[step]]
        key = next((k for k in range(first, len(self.conjuncts)) if self.is_key(step.source, k)), -1)
        setters = len(self.setters)
        self.setters += [] if step in self.kills else self.setter_rows(step)
        return (
            step.source, step.target, step.variable, int(consuming),
            -1 if member is None else self.mask(member.number), 0 if member is None else 1 << member.member,
            first, len(self.conjuncts), setters, len(self.setters), key, self.ask(step, first, key),
        )  # fmt: skip

    def ask(self, step: Transition, first: int, key: int) -> int:
        """Number the intervals that a step asks of runs, but for the key of an index."""
        asked = zip(range(first, len(self.conjuncts)), self.registers.asked[step], strict=True)
        intervals = [
            (each.register, *self.conjuncts[k][:3], self.conjuncts[k][layout.CONJ_SIDE])
            for k, each in asked
            if each.register is not None and k != key
        ]
        is_by_part = self.index[step.source] == self.options[layout.PLAIN_PART] >= 0
        return self.asks.setdefault((is_by_part, *intervals), len(self.asks))

    def is_key(self, state: int, conjunct: int) -> bool:
        row = self.conjuncts[conjunct]
        return row[layout.CONJ_SLOT] == self.index[state] >= 0 and row[layout.CONJ_OP] == Code.EQ

    def state_rows(self, steps: list[Transition]) -> list[tuple[int, ...]]:
        rows: list[tuple[int, ...]] = []
        at, kill = 0, len(steps)
        for number, state in enumerate(self.machine.states):
            leaving = sum(step.source == number for step in steps)
            killing = sum(each.source == number for each in self.kills)
            rows.append((at, at + leaving, int(bool(state.endings)), self.index[number], kill, kill + killing))
            at, kill = at + leaving, kill + killing
        return rows

    def span(self, rows: list[tuple[int, ...]]) -> tuple[int, int]:
        start = len(self.rows)
        self.rows += [(*row, 0, 0)[:3] for row in rows]
        return start, len(self.rows)

    def loads(self, state: int, loads: tuple[Load, ...]) -> tuple[int, int]:
        return self.span(
            [
                (load.reference, load.place, load.number if load.register is None else self.slot(state, load.register))
                for load in loads
            ]
        )

    def conjunct_row(self, step: Transition, asked: Asked) -> tuple[int, ...]:
        slot = -1 if asked.register is None else self.slot(step.source, asked.register)
        whole: Program = () if asked.condition < 0 else self.terms.conditions[asked.condition].program
        is_read = len(asked.program) == 1 and asked.program[0][0] == Code.REF
        column = next(load.number for load in asked.loads if load.reference == asked.program[0][1]) if is_read else -1
        spans = (*self.span(list(asked.program)), *self.span(list(whole)), *self.loads(step.source, asked.loads))
        return slot, int(asked.op), column, *spans, self.side(asked)

    def side(self, asked: Asked) -> int:
        """Number what an interval asks of the event; the same of other variables, or at other steps, is the same."""
        columns = {load.reference: load.number for load in asked.loads}
        program = tuple((code, columns[x] if code == Code.REF else x) for code, x in asked.program)
        return self.sides.setdefault(program, len(self.sides))

    def setter_rows(self, step: Transition) -> list[tuple[int, ...]]:
        taken = {op.number for op in step.ops if op.op is Op.TAKE_MEMBER}
        masks = [
            (
                self.mask(bag),
                layout.SET_MEMBER if bag in taken else layout.SET_COPY,
                self.mask(bag) if step.source else -1,
            )
            for bag in range(len(self.numbered.bags))
        ]
        plain = [self.setter(step, r) for r in self.registers.slots[step.target] if isinstance(r, Register)]
        worked_out = [self.worked_out(step, r) for r in self.registers.slots[step.target] if isinstance(r, Expression)]
        last = [row for row in plain if row[1] == layout.SET_AVG]
        rows = [*masks, *(row for row in plain if row not in last), *last, *worked_out]
        return [(*row, *[-1] * (layout.SET_WIDTH - len(row))) for row in rows]

    def setter(self, step: Transition, register: Register) -> tuple[int, ...]:
        slot = self.slot(step.target, register)
        before = self.registers.slots[step.source].get(register) if step.source else None
        source = -1 if before is None else self.slot(step.source, register)
        is_bound = step.variable == register.variable
        if register.keep is Keep.AVG:
            total, count = (self.slot(step.target, part) for part in register.parts)
            return slot, layout.SET_AVG, total, count
        if register.keep in _SETTERS and is_bound:
            return slot, _SETTERS[register.keep], source, register.column
        is_read = is_bound if register.keep is Keep.LATEST else source < 0
        return (slot, layout.SET_READ, -1, register.column) if is_read else (slot, layout.SET_COPY, source)

    def worked_out(self, step: Transition, expression: Expression) -> tuple[int, ...]:
        program, loads = self.span(list(expression.program)), self.loads(step.target, expression.loads)
        return self.slot(step.target, expression), layout.SET_RUN, -1, -1, *program, *loads


def _first_named(options: Ints) -> int:
    """Return the first register after those that every query of this kind needs."""
    return int(options.max(initial=0, where=_is_slot())) + 1


def _is_slot() -> np.ndarray:
    places = (layout.PLAIN_LOW, layout.PLAIN_HIGH, layout.PLAIN_PART, layout.PLAIN_LAST, layout.PLAIN_BIRTH)
    return np.isin(np.arange(layout.PLAIN_OPTIONS), places)
