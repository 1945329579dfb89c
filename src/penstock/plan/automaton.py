"""A numbered pattern as an automaton.

A state is what is left of the pattern (as in Brzozowski's derivatives), together with what is bound on every way to it:
so whether a variable is bound, and whether a conjunct is decided, is known per state and not asked per run. Rounds of
loops without end and which members a bag has are no states but counters and masks of a run; `ops` of a transition
change and check them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import combinations, product

from penstock.errors import PenstockError
from penstock.plan.positions import (
    Bag,
    InOrder,
    Leaf,
    Loop,
    Members,
    Never,
    Numbered,
    OneOf,
    Part,
    SideBySide,
)

MAX_STATES = 5_000


class Op(IntEnum):
    """What a transition does with a run's counters, in order."""

    ENTER_LOOP = 0  # start a round; forget what is inside it
    TAKE_MEMBER = 1  # refuse if the bag has the member


@dataclass(frozen=True)
class Do:
    """An operation on a loop or bag, with the member for TAKE_MEMBER."""

    op: Op
    number: int
    member: int = 0


@dataclass(frozen=True)
class Way:
    """How a run may end, or what it passes before a step: operations, negations, lists that are there."""

    ops: tuple[Do, ...] = ()
    negations: tuple[int, ...] = ()
    lists: frozenset[int] = frozenset()

    def __add__(self, other: Way) -> Way:
        return Way(self.ops + other.ops, self.negations + other.negations, self.lists | other.lists)


@dataclass(frozen=True)
class _Step:
    variable: int
    rest: Part
    way: Way = Way()


@dataclass(frozen=True)
class Transition:
    """A step from a state: bind the event to a variable, go to `target`."""

    source: int
    target: int
    variable: int
    ops: tuple[Do, ...]
    negations: tuple[int, ...]


@dataclass(frozen=True)
class State:
    """A state: what is bound in every run here, the lists that are there, what may still be bound, how it may end.

    `bound` leaves out the members of bags outside of loops, which differ from run to run. `passed` are the negations
    that a run here has passed, in whatever round; `open_in[k]` the variables that may still be bound while the outer k
    loops stay in their round, and `by_bag[k]` those of them that only a bag at hand still offers: they are closed to a
    run that has bound them, which its mask tells and the state does not.
    """

    rest: Part
    bound: frozenset[int]
    lists: frozenset[int]
    passed: frozenset[int]
    open_in: tuple[frozenset[int], ...] = ()
    by_bag: tuple[frozenset[int], ...] = ()
    endings: tuple[Way, ...] = ()

    @property
    def open(self) -> frozenset[int]:
        """The variables to which events may still be bound."""
        return self.open_in[0]


@dataclass
class Automaton:
    """States (the first is where runs open) and transitions, those of a state in the order that FIRST prefers."""

    numbered: Numbered
    states: list[State] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)

    def leaving(self, state: int) -> list[Transition]:
        """Return the transitions from a state."""
        return [t for t in self.transitions if t.source == state]


def automaton(numbered: Numbered) -> Automaton:
    """Build the automaton of a pattern."""
    return _Construction(numbered).build()


@dataclass
class _Construction:
    numbered: Numbered
    numbers: dict[tuple[Part, frozenset[int], frozenset[int], frozenset[int]], int] = field(default_factory=dict)

    @property
    def deepest(self) -> int:
        """How deep loops are nested."""
        return max(1, *(len(variable.loops) for variable in self.numbered.variables))

    def build(self) -> Automaton:
        result = Automaton(self.numbered)
        nothing: frozenset[int] = frozenset()
        self.state(result, self.numbered.root, nothing, nothing, nothing)
        done = 0
        while done < len(result.states):
            source = result.states[done]
            members = {m for bag in self.numbered.bags for m in bag.members if not self.numbered.variables[m].loops}
            steps = sorted(self.steps(source.rest), key=lambda step: (step.variable in source.bound, step.variable))
            for step in steps:
                bound = source.bound | ({step.variable} - members)
                passed = source.passed | frozenset(step.way.negations)
                target = self.state(result, step.rest, bound, source.lists | step.way.lists, passed)
                result.transitions.append(Transition(done, target, step.variable, step.way.ops, step.way.negations))
            done += 1
            if len(result.states) > MAX_STATES:
                raise PenstockError(
                    f"the pattern has more than {MAX_STATES:,} states: groups inside AND or ANY and counted "
                    "repetitions multiply; make them single events, say A+ with COUNT(a[]) <= n for a large {m,n}, or "
                    "split the query"
                )
        return result

    def state(
        self, result: Automaton, rest: Part, bound: frozenset[int], lists: frozenset[int], passed: frozenset[int]
    ) -> int:
        rest = _simplified(rest)
        key = (rest, bound, lists, passed)
        if key not in self.numbers:
            self.numbers[key] = len(result.states)
            depths = range(self.deepest + 1)
            still = tuple(frozenset(self.still_open(rest, rounds)) for rounds in depths)
            by_bag = tuple(still[rounds] - self.still_open(rest, rounds, at_hand=False) for rounds in depths)
            result.states.append(State(rest, bound, lists, passed, still, by_bag, tuple(self.endings(rest))))
        return self.numbers[key]

    def steps(self, part: Part) -> Iterator[_Step]:
        """Yield the steps that may come next, in the order of the text."""
        match part:
            case Leaf(variable=variable):
                yield _Step(variable, InOrder(()))
            case OneOf(parts=branches):
                for branch in branches:
                    yield from self.steps(branch)
            case InOrder(parts=(first, *others)):
                for step in self.steps(first):
                    yield _Step(step.variable, InOrder((step.rest, *others)), step.way)
                for ending in self.endings(first):
                    for step in self.steps(InOrder(tuple(others))):
                        yield _Step(step.variable, step.rest, ending + step.way)
            case SideBySide(parts=sides):
                for place, side in enumerate(sides):
                    for step in self.steps(side):
                        yield _Step(
                            step.variable, SideBySide((*sides[:place], step.rest, *sides[place + 1 :])), step.way
                        )
            case Members(count=count, parts=members) if count > 0:
                for place, member in enumerate(members):
                    others_left = Members(count - 1, (*members[:place], *members[place + 1 :]))
                    for step in self.steps(member):
                        yield _Step(step.variable, SideBySide((step.rest, others_left)), step.way)
            case Bag(bag=bag, left=left) if left > 0:
                for place, variable in enumerate(self.numbered.bags[bag].members):
                    yield _Step(variable, Bag(bag, left - 1), Way((Do(Op.TAKE_MEMBER, bag, place),)))
            case Loop(loop=loop, number=number):
                info = self.numbered.loops[loop]
                if number == info.high:
                    return
                entering = Way((Do(Op.ENTER_LOOP, loop),), lists=info.variables)
                later = Loop(loop, min(number + 1, info.low) if info.high < 0 else number + 1)
                for step in self.steps(info.part):
                    yield _Step(step.variable, InOrder((step.rest, later)), entering + step.way)

    def endings(self, part: Part) -> list[Way]:
        """Return the ways in which a part may be matched by no further event."""
        match part:
            case Leaf():
                return []
            case Never(negation=negation):
                return [Way(negations=(negation,))]
            case OneOf(parts=branches):
                return _unique([way for branch in branches for way in self.endings(branch)])
            case InOrder(parts=parts) | SideBySide(parts=parts):
                return _unique([sum(ways, Way()) for ways in product(*map(self.endings, parts))])
            case Members(count=count, parts=members):
                chosen = combinations(members, count)
                return _unique([way for some in chosen for way in self.endings(SideBySide(some))])
            case Bag(left=left):
                return [] if left else [Way()]
            case Loop(loop=loop, number=number):
                info = self.numbered.loops[loop]
                return [Way(lists=info.variables)] if number >= info.low else []

    def still_open(self, part: Part, rounds: int = 0, at_hand: bool = True) -> set[int]:
        """Return the variables that may still be bound while the outer `rounds` loops stay in their round.

        Without `at_hand`, bags count only where another round of a loop brings them anew.
        """
        match part:
            case Leaf(variable=variable):
                return {variable}
            case Bag(bag=bag, left=left):
                return set(self.numbered.bags[bag].members) if left and at_hand else set()
            case Loop(loop=loop, number=number):
                info = self.numbered.loops[loop]
                is_over = number == info.high or info.depth < rounds
                return set() if is_over else self.still_open(info.part, rounds)
            case Members(count=0) | Never():
                return set()
            case InOrder(parts=parts) | SideBySide(parts=parts) | OneOf(parts=parts) | Members(parts=parts):
                return set().union(*(self.still_open(each, rounds, at_hand) for each in parts))


def _unique(ways: list[Way]) -> list[Way]:
    return list(dict.fromkeys(ways))


def _simplified(part: Part) -> Part:
    """Drop what is done, so that equal rests are equal."""
    match part:
        case InOrder(parts=parts):
            flat: list[Part] = []
            for each in map(_simplified, parts):
                flat += each.parts if isinstance(each, InOrder) else (each,)
            return flat[0] if len(flat) == 1 else InOrder(tuple(flat))
        case SideBySide(parts=parts):
            left = tuple(each for each in map(_simplified, parts) if each not in (InOrder(()), Members(0, ())))
            left = tuple(each for each in left if not (isinstance(each, Members) and each.count == 0))
            return left[0] if len(left) == 1 else (SideBySide(left) if left else InOrder(()))
        case Bag(left=0):
            return InOrder(())
    return part


def may_repeat(machine: Automaton, by_runs: bool) -> bool:
    """Whether there may be two ways to the same assignment.

    Not if a state has one way to end and one step per variable: an assignment is a sequence of variables, which then
    leads along one way only. A run of FIRST never branches, so it can only end in several ways.
    """
    if any(len(state.endings) > 1 for state in machine.states):
        return True
    steps = [(step.source, step.variable) for step in machine.transitions]
    return not by_runs and len(set(steps)) < len(steps)
