"""WHERE, by the book: does a conjunct hold for a binding? (docs/language.md, section 3)

A conjunct is asked per round of the repetitions that it ranges over. In a round it is vacuous unless everything
that it names is there; otherwise it must be true. Values are Python's; missing is None.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeAlias

from penstock.pattern import ast
from penstock.pattern.variables import Variable
from penstock.reference.events import Binding, Bound, Stream
from penstock.reference.functions import AGGREGATES, ARITHMETIC, FUNCTIONS, compare, known

Reference: TypeAlias = ast.Attribute | ast.Aggregate
Rounds: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class World:
    """What conditions may look at besides the binding: the stream, the pattern's variables, what users registered."""

    stream: Stream
    variables: Mapping[str, Variable]
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    remotes: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict)


@lru_cache(maxsize=1024)
def references(expression: ast.Expression) -> tuple[Reference, ...]:
    """Return everything of the match that an expression names."""
    return tuple(node for node in ast.walk(expression) if isinstance(node, Reference))


def holds(conjunct: ast.Expression, binding: Binding, world: World, *, open_variables: Collection[str] = ()) -> bool:
    """Return whether a conjunct holds, as far as it is decided.

    Args:
        conjunct: one of the top-level ANDs of WHERE.
        binding: whole or partial.
        world: what else it may look at.
        open_variables: those to which a run may still bind events. What names the last or all elements of such a
            list is not decided yet, and what is not decided does not fail.
    """
    if isinstance(conjunct, ast.Same):
        return all(_same(key, binding, world) for key in conjunct.keys)
    if any(_may_change(ref, open_variables) for ref in references(conjunct)):
        return True
    for rounds in _rounds(conjunct, binding, world):
        sight = _Sight(binding, world, rounds)
        if all(sight.is_there(ref) for ref in references(conjunct)) and sight.value(conjunct) is not True:
            return False
    return True


def forbids(conjunct: ast.Expression, binding: Binding, world: World, candidate: Bound) -> bool:
    """Return whether an event in the place of a negated variable satisfies a conjunct that names the variable."""
    if isinstance(conjunct, ast.Same):
        return all(_same_as_all(key, candidate, binding, world) for key in conjunct.keys)
    with_it = Binding((*binding.bound, candidate), binding.lists, binding.forbidden)
    return holds(conjunct, with_it, world)  # in other rounds than its own it is not there: vacuous


def is_decided(
    conjunct: ast.Expression, binding: Binding, world: World, rounds: Rounds, is_open: Callable[[str, Rounds], bool]
) -> bool:
    """Return whether what a conjunct says about a negated event cannot change any more.

    Args:
        conjunct: one that names the negated variable.
        binding: whole or partial.
        world: what else it may look at.
        rounds: the round of the negation.
        is_open: whether a run may still bind an event to a variable in a round; in the empty round: in any.
    """
    if isinstance(conjunct, ast.Same):
        return True  # the bound events must agree anyway: what agrees with one agrees with all

    def is_fixed(ref: Reference) -> bool:
        if _is_per_round(ref, world):
            return not is_open(ref.variable, rounds[: len(world.variables[ref.variable].groups)])
        if isinstance(ref, ast.Attribute) and ref.index not in (None, "last"):
            is_there = _Sight(binding, world, rounds).is_there(ref)  # a[first], a[3]: what comes later is after it
            return is_there or not is_open(ref.variable, ())
        return not is_open(ref.variable, ())

    return all(is_fixed(ref) for ref in references(conjunct))


def returned(expression: ast.Expression, binding: Binding, world: World) -> Any:
    """Return the value of a RETURN column: None if something is not there, a list if it ranges over rounds."""

    def value(rounds: Rounds) -> Any:
        sight = _Sight(binding, world, rounds)
        return sight.value(expression) if all(sight.is_there(ref) for ref in references(expression)) else None

    if not _ranging(expression, world):
        return value(())
    return [value(rounds) for rounds in _rounds(expression, binding, world)]


def opens(opening: ast.Opening, at: int, world: World) -> bool:
    """Return whether an event opens a window."""
    types = opening.event.types
    if types and world.stream.events[at].type not in types:
        return False
    binding = Binding((Bound(opening.event.variable, (), at),))
    alone = replace(world, variables={opening.event.variable: Variable(opening.event, (), negated=False)})
    return all(holds(conjunct, binding, alone) for conjunct in ast.conjuncts(opening.where))


# --- SAME ---------------------------------------------------------------------------------------------------


def _key(key: ast.SameKey, at: int, world: World) -> Any:
    value = world.stream.events[at].value(key.attribute)
    return value if key.function is None or value is None else _call(key.function, [value], world)


def _same(key: ast.SameKey, binding: Binding, world: World) -> bool:
    values = [_key(key, b.at, world) for b in binding.bound]
    return all(compare("=", values[0], value) for value in values[1:])


def _same_as_all(key: ast.SameKey, candidate: Bound, binding: Binding, world: World) -> bool:
    value = _key(key, candidate.at, world)
    return all(compare("=", value, _key(key, b.at, world)) for b in binding.bound)


# --- rounds -------------------------------------------------------------------------------------------------


def _is_per_round(ref: Reference, world: World) -> bool:
    if isinstance(ref, ast.Aggregate):
        return ref.upto != ""
    return world.variables[ref.variable].is_list and ref.index in (None, "i", "i-1")


def _ranging(expression: ast.Expression, world: World) -> list[str]:
    """The variables whose rounds an expression ranges over; the most deeply nested first."""
    named = {ref.variable for ref in references(expression) if _is_per_round(ref, world)}
    return sorted(named, key=lambda name: -len(world.variables[name].groups))


def _rounds(expression: ast.Expression, binding: Binding, world: World) -> list[Rounds]:
    """The rounds to ask about, in order; the empty round alone if the expression ranges over none."""
    ranging = _ranging(expression, world)
    if not ranging:
        return [()]
    depth = len(world.variables[ranging[0]].groups)
    return sorted({b.rounds for b in binding.bound if b.variable in ranging and len(b.rounds) == depth})


def _may_change(ref: Reference, open_variables: Collection[str]) -> bool:
    if ref.variable not in open_variables:
        return False
    return ref.index == "last" if isinstance(ref, ast.Attribute) else ref.upto == ""


# --- values -------------------------------------------------------------------------------------------------


def _call(function: str, arguments: list[Any], world: World) -> Any:
    if function in world.functions:
        return known(world.functions[function](*arguments))
    return FUNCTIONS[function.lower()](*arguments)


@dataclass(frozen=True)
class _Sight:
    """The match as seen from one round."""

    binding: Binding
    world: World
    rounds: Rounds

    def element(self, variable: str, index: ast.Index) -> int | None:
        """The event that `a`, `a[i]`, `a[i-1]`, `a[first]`, `a[last]` or `a[3]` stands for; None if there is none."""
        elements = self.binding.of(variable)
        if isinstance(index, int):
            return elements[index - 1].at if index <= len(elements) else None
        if index in ("first", "last"):
            return elements[0 if index == "first" else -1].at if elements else None
        depth = len(self.world.variables[variable].groups)
        here = [n for n, b in enumerate(elements) if b.rounds == self.rounds[:depth]]
        if not here or (index == "i-1" and here[0] == 0):
            return None
        return elements[here[0] - (index == "i-1")].at

    def elements(self, aggregate: ast.Aggregate) -> list[int] | None:
        """The events that an aggregate is over; None if it is not there."""
        everything = [b.at for b in self.binding.of(aggregate.variable)]
        if aggregate.upto == "":
            return everything if aggregate.variable in self.binding.lists else None
        current = self.element(aggregate.variable, "i")
        if current is None:
            return None
        return [at for at in everything if at < current or (at == current and aggregate.upto == "i")]

    def is_there(self, ref: Reference) -> bool:
        if isinstance(ref, ast.Attribute):
            return self.element(ref.variable, ref.index) is not None
        elements = self.elements(ref)
        return elements is not None and (bool(elements) or ref.function in ("COUNT", "SUM"))

    def value(self, node: ast.Expression) -> Any:
        """The value of an expression; everything that it names must be there."""
        match node:
            case ast.Number(value=value) | ast.Text(value=value) | ast.Boolean(value=value):
                return value
            case ast.Duration(us=us):
                return us
            case ast.Attribute(variable=variable, name=name, index=index):
                at = self.element(variable, index)
                return None if at is None else self.world.stream.events[at].value(name)
            case ast.Previous(attribute=attribute):
                return self._previous(attribute)
            case ast.Aggregate():
                return self._aggregate(node)
            case ast.Minus(operand=operand):
                return ARITHMETIC["-"](0, self.value(operand))
            case ast.Arithmetic(operator=operator, left=left, right=right):
                return ARITHMETIC[operator](self.value(left), self.value(right))
            case ast.Call(function=function, arguments=arguments):
                values = [self.value(argument) for argument in arguments]
                return None if None in values else _call(function, values, self.world)
            case ast.Remote():
                return self._remote(node)
            case _:
                return self._truth(node)

    def _truth(self, node: ast.Expression) -> bool:
        match node:
            case ast.Comparison(operator=operator, left=left, right=right):
                return compare(operator, self.value(left), self.value(right))
            case ast.Membership(item=item, members=members, negated=negated):
                return self._is_in(self.value(item), members, negated)
            case ast.And(items=items):
                return all(self.value(item) is True for item in items)
            case ast.Or(items=items):
                return any(self.value(item) is True for item in items)
            case ast.Not(item=item):
                return self.value(item) is not True
        raise AssertionError(f"no value for {node}")

    def _previous(self, attribute: ast.Attribute) -> Any:
        at = self.element(attribute.variable, attribute.index)
        before = None if at is None else self.world.stream.previous(at)
        return None if before is None else self.world.stream.events[before].value(attribute.name)

    def _aggregate(self, node: ast.Aggregate) -> Any:
        elements = self.elements(node) or []
        if node.name is None:
            return len(elements)
        values = [self.world.stream.events[at].value(node.name) for at in elements]
        return AGGREGATES[node.function]([value for value in values if value is not None])

    def _remote(self, node: ast.Remote) -> Any:
        key = self.value(node.key)
        found = None if key is None else self.world.remotes.get(node.source, {}).get(key)
        return known(found if node.column is None or found is None else found.get(node.column))

    def _is_in(self, item: Any, members: tuple[ast.Expression, ...] | ast.Remote, negated: bool) -> bool:
        collection = self.value(members) if isinstance(members, ast.Remote) else [self.value(m) for m in members]
        if item is None or collection is None:
            return False
        return any(compare("=", item, member) for member in collection) is not negated
