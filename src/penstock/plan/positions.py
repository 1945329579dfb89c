"""A pattern with its parts numbered: variables, repetitions, bags and negations.

A *bag* is an AND or ANY all of whose members are single events. Which of them a run has bound is a bit mask in the run,
so that ANY(4 of 20) is five states and not thousands.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from penstock.pattern import ast


@dataclass(frozen=True)
class Leaf:
    """An event, by the number of its variable."""

    variable: int


@dataclass(frozen=True)
class Never:
    """A negation, by its number."""

    negation: int


@dataclass(frozen=True)
class InOrder:
    """SEQ."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class SideBySide:
    """AND of parts that are not all single events."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class OneOf:
    """OR; an option is a choice between its part and nothing."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Members:
    """`count` more of these: ANY of parts that are not all single events."""

    count: int
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Bag:
    """AND or ANY of single events, by its number, and how many members it still needs; which, only the run knows."""

    bag: int
    left: int


@dataclass(frozen=True)
class Loop:
    """A repetition, by its number, and how many rounds it has had; without an upper bound, up to the least."""

    loop: int
    number: int = 0


Part: TypeAlias = Leaf | Never | InOrder | SideBySide | OneOf | Members | Bag | Loop
NOTHING = InOrder(())


@dataclass(frozen=True)
class VariableInfo:
    """A variable: its event, the loops around it (outermost first), and whether it is negated."""

    name: str
    types: tuple[str, ...]
    loops: tuple[int, ...]
    is_negated: bool


@dataclass(frozen=True)
class LoopInfo:
    """A repetition: what is repeated, how often, and what starts anew with each round."""

    part: Part
    depth: int  # how many loops are around it
    low: int
    high: int  # -1: without end
    inner_loops: tuple[int, ...]
    inner_bags: tuple[int, ...]
    variables: frozenset[int]


@dataclass(frozen=True)
class BagInfo:
    """The members of a bag, by the numbers of their variables."""

    members: tuple[int, ...]


@dataclass(frozen=True)
class NegationInfo:
    """A negation: its variable, and what the sequences around it put before it.

    `before` are pairs (variable, how many loops the two share).
    """

    variable: int
    loops: tuple[int, ...]
    before: tuple[tuple[int, int], ...]


@dataclass
class Numbered:
    """A pattern whose parts are numbered in the order of the text."""

    root: Part = NOTHING
    variables: list[VariableInfo] = field(default_factory=list)
    loops: list[LoopInfo] = field(default_factory=list)
    bags: list[BagInfo] = field(default_factory=list)
    negations: list[NegationInfo] = field(default_factory=list)

    def number_of(self, name: str) -> int:
        """Return the number of a variable."""
        return next(n for n, variable in enumerate(self.variables) if variable.name == name)


def number(pattern: ast.Pattern) -> Numbered:
    """Number the parts of a pattern."""
    numbered = Numbered()
    builder = _Numbering(numbered)
    numbered.root = builder.part(pattern, ())
    builder.add_earlier(numbered.root, (), 0)
    return numbered


@dataclass
class _Numbering:
    numbered: Numbered

    def variable(self, event: ast.Event, loops: tuple[int, ...], is_negated: bool) -> int:
        self.numbered.variables.append(VariableInfo(event.variable, event.types, loops, is_negated))
        return len(self.numbered.variables) - 1

    def part(self, pattern: ast.Pattern, loops: tuple[int, ...]) -> Part:
        match pattern:
            case ast.Event():
                return Leaf(self.variable(pattern, loops, is_negated=False))
            case ast.Negation(event=event):
                variable = self.variable(event, loops, is_negated=True)
                self.numbered.negations.append(NegationInfo(variable, loops, ()))
                return Never(len(self.numbered.negations) - 1)
            case ast.Sequence(parts=parts):
                return InOrder(tuple(self.part(each, loops) for each in parts))
            case ast.Disjunction(parts=parts):
                return OneOf(tuple(self.part(each, loops) for each in parts))
            case ast.Option(part=part):
                return OneOf((self.part(part, loops), NOTHING))
            case ast.Conjunction(parts=parts):
                return self.bag_or(SideBySide, len(parts), parts, loops)
            case ast.AnyOf(count=count, parts=parts):
                return self.bag_or(Members, count, parts, loops)
            case ast.Repetition():
                return self.loop(pattern, loops)

    def bag_or(
        self, kind: type[SideBySide | Members], count: int, parts: tuple[ast.Pattern, ...], loops: tuple[int, ...]
    ) -> Part:
        numbered = tuple(self.part(each, loops) for each in parts)
        members = tuple(each.variable for each in numbered if isinstance(each, Leaf))
        if len(members) == len(parts) <= 62:
            self.numbered.bags.append(BagInfo(members))
            return Bag(len(self.numbered.bags) - 1, count)
        return SideBySide(numbered) if kind is SideBySide else Members(count, numbered)

    def loop(self, pattern: ast.Repetition, loops: tuple[int, ...]) -> Loop:
        mine = len(self.numbered.loops)
        variables, bags = len(self.numbered.variables), len(self.numbered.bags)
        self.numbered.loops.append(LoopInfo(NOTHING, 0, 0, 0, (), (), frozenset()))  # holds the number
        part = self.part(pattern.part, (*loops, mine))
        self.numbered.loops[mine] = LoopInfo(
            part,
            len(loops),
            pattern.low,
            -1 if pattern.high is None else pattern.high,
            tuple(range(mine + 1, len(self.numbered.loops))),
            tuple(range(bags, len(self.numbered.bags))),
            frozenset(range(variables, len(self.numbered.variables))),
        )
        return Loop(mine)

    def add_earlier(self, part: Part, before: tuple[tuple[int, int], ...], depth: int) -> None:
        """Tell each negation below a part what comes before it in the sequences around it."""
        match part:
            case Never(negation=n):
                info = self.numbered.negations[n]
                self.numbered.negations[n] = NegationInfo(info.variable, info.loops, before)
            case InOrder(parts=parts):
                for place, each in enumerate(parts):
                    earlier = tuple((v, depth) for other in parts[:place] for v in self.bindable(other))
                    self.add_earlier(each, before + earlier, depth)
            case SideBySide(parts=parts) | OneOf(parts=parts) | Members(parts=parts):
                for each in parts:
                    self.add_earlier(each, before, depth)
            case Loop(loop=loop):
                self.add_earlier(self.numbered.loops[loop].part, before, depth + 1)

    def bindable(self, part: Part) -> list[int]:
        match part:
            case Leaf(variable=variable):
                return [variable]
            case Bag(bag=bag):
                return list(self.numbered.bags[bag].members)
            case Loop(loop=loop):
                return self.bindable(self.numbered.loops[loop].part)
            case InOrder(parts=parts) | SideBySide(parts=parts) | OneOf(parts=parts) | Members(parts=parts):
                return [variable for each in parts for variable in self.bindable(each)]
            case Never():
                return []
