"""What runs keep, so that most conditions are asked without going back to their events.

A *register* is a number that a run carries: an attribute of an event it has bound, a running aggregate of a list, or an
expression of these. Where a condition compares something that runs keep with something of the event at hand
(`a.v + b.v < c.v`), it becomes an interval on one register, and a block of runs is asked by comparing a column with
two bounds. Other conditions that need registers only are run by the stack machine; the rest, the *deep* ones (rounds of
groups, members of ANY, a[3]), go through the elements of the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from penstock.pattern import ast
from penstock.plan.automaton import Automaton, State, Transition
from penstock.plan.joins import DOWN, UP, JoinCondition, Term, bounds, term
from penstock.plan.positions import Numbered
from penstock.plan.terms import COMPARISONS, Code, Condition, Index, Program, Reference, Terms

_COUNT, _SUM, _AVG, _MIN, _MAX = range(5)  # penstock.plan.terms.AGGREGATES
_FOLDED: dict[int, Callable[[float], float]] = {
    UP: lambda x: math.nextafter(x, math.inf),
    DOWN: lambda x: math.nextafter(x, -math.inf),
    int(Code.NEG): lambda x: 0.0 - x,
}
_MIRRORED = {Code.EQ: Code.EQ, Code.LT: Code.GT, Code.LE: Code.GE, Code.GT: Code.LT, Code.GE: Code.LE}


class Keep(IntEnum):
    """What a register holds of the events bound to its variable."""

    OPENING = 0  # a column of the run's first event, whatever its variable
    LATEST = 1  # a column of the latest
    FIRST = 2  # of the first
    COUNT = 3  # how many, or how many have the column
    SUM = 4
    LEAST = 5
    MOST = 6
    AVG = 7  # from SUM and COUNT


@dataclass(frozen=True)
class Register:
    """A number that a run keeps; `variable` and `column` are -1 where they say nothing."""

    keep: Keep
    variable: int
    column: int

    @property
    def parts(self) -> tuple[Register, ...]:
        """The registers that it is worked out from."""
        kinds = (Keep.SUM, Keep.COUNT) if self.keep is Keep.AVG else ()
        return tuple(Register(keep, self.variable, self.column) for keep in kinds)


@dataclass(frozen=True)
class Expression:
    """A register that is worked out from others; loads say where its references are."""

    program: Program
    loads: tuple[Load, ...]


class Place(IntEnum):
    """Where the value of a reference is found."""

    EVENT = 0  # in a column of the event at hand
    RUN = 1  # in a register
    CONSTANT = 2


@dataclass(frozen=True)
class Load:
    """Where a reference is found: a column, a register, or a constant."""

    reference: int
    place: Place
    number: int = -1
    register: Register | None = None


@dataclass(frozen=True)
class Asked:
    """A condition as a step asks it. With a register it is an interval: register `op` program, which reads the event.

    `condition` is -1 for what is an interval only: SAME, and what another condition implies.
    """

    condition: int
    loads: tuple[Load, ...]
    register: Register | Expression | None = None
    op: Code = Code.EQ
    program: Program = ()


Kept: TypeAlias = Register | Expression
_VACUOUS = "vacuous"
_DEEP = "deep"


class Registers:
    """Which conditions of each step are asked by registers, which are left, and the registers of each state."""

    def __init__(
        self, numbered: Numbered, machine: Automaton, terms: Terms, due: dict[Transition, list[tuple[int, int]]]
    ) -> None:
        self.numbered, self.machine, self.terms = numbered, machine, terms
        self.members = {m for bag in numbered.bags for m in bag.members if not numbered.variables[m].loops}
        self.asked: dict[Transition, list[Asked]] = {}
        self.deep: dict[Transition, list[tuple[int, int]]] = {}
        for step, conditions in due.items():  # kills too: penstock.plan.kills
            self.split(step, conditions)
        self.slots = self.allocate()

    # --- conditions -------------------------------------------------------------------------------------------

    def split(self, step: Transition, due: list[tuple[int, int]]) -> None:
        """Part the conditions that are due at a step into those that registers answer and the deep ones."""
        self.asked[step], self.deep[step] = [], []
        for number, newest_only in due:
            condition = self.terms.conditions[number]
            if condition.same >= 0:
                if step.source:
                    self.asked[step].append(self.same(step, condition.same))
                continue
            loads = self.loads(condition, step, newest_only)
            if loads == _DEEP:
                self.deep[step].append((number, newest_only))
            elif loads != _VACUOUS:
                assert not isinstance(loads, str)
                interval = self.as_interval(number, condition, loads)
                self.asked[step] += (
                    [interval] if interval else [*self.loosely(step, condition, loads), Asked(number, loads)]
                )

    def same(self, step: Transition, column: int) -> Asked:
        """Return SAME as what it says of a run: the event has what the first one has."""
        program, reference = self.terms.reading(step.variable, column)
        load = Load(reference, Place.EVENT, column)
        return Asked(-1, (load,), Register(Keep.OPENING, -1, column), Code.EQ, program)

    def loads(self, condition: Condition, step: Transition, newest_only: int) -> tuple[Load, ...] | str:
        """Say where the references of a condition are found, or that it says nothing here, or that it is deep."""
        if condition.depth and not newest_only:
            ranged = {self.terms.references[r].variable for r in condition.references if self.terms.depth_of(r)}
            return _DEEP if ranged & self.machine.states[step.target].bound else _VACUOUS  # there is no round yet
        found = [self.load(r, step) for r in condition.references]
        if _DEEP in found:
            return _DEEP
        if _VACUOUS in found:
            return _VACUOUS
        return tuple(load for load in found if isinstance(load, Load))

    def load(self, number: int, step: Transition) -> Load | str:
        """Say where a reference is found when a step asks for it."""
        ref = self.terms.references[number]
        source, target = self.machine.states[step.source], self.machine.states[step.target]
        if ref.aggregate >= 0:
            return self.load_aggregate(number, ref, step, source, target)
        is_mine = ref.variable == step.variable
        if is_mine and ref.index is Index.CURRENT:
            return Load(number, Place.EVENT, ref.column)
        is_list = bool(self.numbered.variables[ref.variable].loops)
        if ref.variable in self.members or ref.index is Index.NUMBER or (is_mine and ref.index is Index.FIRST):
            return _DEEP
        if is_list and ref.index in (Index.CURRENT, Index.BEFORE) and not is_mine:
            return _DEEP  # ranges over the rounds of another list
        if ref.index is Index.LAST and is_mine:
            return _DEEP
        if ref.variable not in source.bound:
            return _VACUOUS
        keep = Keep.FIRST if ref.index is Index.FIRST else Keep.LATEST
        return Load(number, Place.RUN, register=Register(keep, ref.variable, ref.column))

    def load_aggregate(self, number: int, ref: Reference, step: Transition, source: State, target: State) -> Load | str:
        """Say where an aggregate is found."""
        is_mine = ref.variable == step.variable
        if ref.index is Index.UPTO or is_mine != (ref.index is Index.UPTO_BEFORE) or ref.variable in self.members:
            return _DEEP
        if ref.index is Index.ALL and ref.variable not in target.lists:
            return _VACUOUS
        if ref.variable not in source.bound:
            is_zero = ref.aggregate in (_COUNT, _SUM)
            return Load(number, Place.CONSTANT, self.terms.constant(0.0)) if is_zero else _VACUOUS
        kinds = {_COUNT: Keep.COUNT, _SUM: Keep.SUM, _AVG: Keep.AVG, _MIN: Keep.LEAST, _MAX: Keep.MOST}
        return Load(number, Place.RUN, register=Register(kinds[ref.aggregate], ref.variable, ref.column))

    def as_interval(self, number: int, condition: Condition, loads: tuple[Load, ...]) -> Asked | None:
        """Return a comparison of what the run keeps with what the event has as an interval on a register."""
        node = condition.node
        if not isinstance(node, ast.Comparison):
            return None
        op = COMPARISONS[node.operator]
        if op not in _MIRRORED:
            return None
        place = {load.reference: load for load in loads}
        for kept, read, code in ((node.left, node.right, op), (node.right, node.left, _MIRRORED[op])):
            program, references = self.terms.program(kept)
            other, others = self.terms.program(read)
            is_of_run = references and all(place[r].place is not Place.EVENT for r in references)
            if is_of_run and all(place[r].place is Place.EVENT for r in others):
                mine = tuple(place[r] for r in references)
                only = mine[0].register if len(program) == 1 else None
                if any(load.place is Place.RUN for load in mine):
                    return Asked(number, loads, only or Expression(program, mine), code, other)
        return None

    def loosely(self, step: Transition, condition: Condition, loads: tuple[Load, ...]) -> Iterator[Asked]:
        """Yield intervals that hold whenever a condition does, though not only then: `abs(a.x - b.x) < 5` has two."""
        references = [self.terms.references[load.reference] for load in loads]
        if any(code > Code.MAX for code, _ in condition.program) or any(
            ref.index is not Index.CURRENT or ref.aggregate >= 0 for ref in references
        ):
            return
        place = {(ref.variable, ref.column): load for ref, load in zip(references, loads, strict=True)}
        found = term(condition.program, self.terms)
        mine = 1 << step.variable
        for bound in bounds(JoinCondition("", found.variables, found), mine, found.variables & ~mine):
            kept, read = (self._folded(_program(side, place)) for side in (bound.theirs, bound.mine))
            used = tuple(place[ref.variable, ref.column] for ref in references)
            of_run = tuple(load for load in used if (int(Code.REF), load.reference) in kept)
            of_event = tuple(load for load in used if (int(Code.REF), load.reference) in read)
            if of_run and all(load.place is Place.RUN for load in of_run):
                register = of_run[0].register if len(kept) == 1 else Expression(kept, of_run)
                yield Asked(-1, (*of_event, *of_run), register, Code(bound.code), read)

    def _folded(self, program: Program) -> Program:
        """Return a program in which what is rounded or negated of a number is a number itself."""
        folded: list[tuple[int, int]] = []
        for code, argument in program:
            number = self.terms.constants[folded[-1][1]] if folded and folded[-1][0] == Code.CONST else None
            if code in _FOLDED and isinstance(number, float):
                folded[-1] = int(Code.CONST), self.terms.constant(_FOLDED[code](number))
            else:
                folded.append((code, argument))
        return tuple(folded)

    # --- registers per state ----------------------------------------------------------------------------------

    def allocate(self) -> list[dict[Kept, int]]:
        """Give each state the registers that its steps read, and those that later states need; number them."""
        needs: list[set[Kept]] = [set() for _ in self.machine.states]
        for step, asked in self.asked.items():
            for each in asked:
                plain = {load.register for load in each.loads if load.register is not None}
                needs[step.source] |= plain | ({each.register} if each.register is not None else set())
                needs[step.source] |= {part for register in plain for part in register.parts}
        is_news = True
        while is_news:
            is_news = False
            for step in self.machine.transitions:
                bound = self.machine.states[step.source].bound
                later = {
                    r for r in needs[step.target]
                    if isinstance(r, Register) and step.source and (r.keep is Keep.OPENING or r.variable in bound)
                }  # fmt: skip
                is_news = is_news or bool(later - needs[step.source])
                needs[step.source] |= later
        return [self.numbering(kept) for kept in needs]

    def numbering(self, kept: set[Kept]) -> dict[Kept, int]:
        """Number plain registers first, then what is worked out from them; in an order that does not vary."""
        plain = sorted((r for r in kept if isinstance(r, Register)), key=lambda r: (r.keep, r.variable, r.column))
        worked_out = sorted((r for r in kept if isinstance(r, Expression)), key=lambda r: r.program)
        in_order: list[Kept] = [*plain, *worked_out]
        return {register: slot for slot, register in enumerate(in_order)}


def _program(value: Term, place: dict[tuple[int, int], Load]) -> Program:
    """Return an expression of penstock.plan.joins as a program over references."""
    return tuple(
        (int(code), place[argument, column].reference if code == Code.REF else argument)
        for code, argument, column in value.program
    )
