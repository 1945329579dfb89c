"""Patterns in Python: events and the groups that are made of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NoReturn, Self

from penstock.pattern import ast
from penstock.pattern.builder.checks import BuilderError, checked_count, checked_name, refuse_private
from penstock.pattern.builder.values import Value
from penstock.pattern.render import render_pattern


class Part:
    """A part of a pattern. `~` negates an event.

    Examples:
        >>> seq(event("A", "a"), event("B", "b").optional()).times(2, 5)
        <(SEQ(A a, B? b)){2,5}>
    """

    __slots__ = ("_node",)

    def __init__(self, node: ast.Pattern) -> None:
        self._node = node

    def __repr__(self) -> str:
        return f"<{render_pattern(self._node)}>"

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self!r} has no truth in Python; write all_of(p, q) for p and q, one_of(p, q) for p or q")

    def __invert__(self) -> Self:
        if not isinstance(self._node, ast.Event):
            raise BuilderError(f"~ takes a single event, not {self!r}; write seq(a, ~b, c)")
        return type(self)(ast.Negation(self._node))

    def plus(self) -> Self:
        """Return the part once or more: `A+ a[]`.

        Examples:
            >>> event("A", "a").plus()
            <A+ a[]>
        """
        return self.times(1, None)

    def star(self) -> Self:
        """Return the part any number of times: `A* a[]`.

        Examples:
            >>> event("A", "a").star()
            <A* a[]>
        """
        return self.times(0, None)

    def times(self, low: int, high: int | Literal["low"] | None = "low") -> Self:
        """Return the part several times: `A{2,5} a[]`.

        Args:
            low: at least this often.
            high: at most this often; None for no bound, left out for exactly `low` times.

        Examples:
            >>> a = event("A", "a")
            >>> a.times(2, 5), a.times(3), a.times(2, None)
            (<A{2,5} a[]>, <A{3} a[]>, <A{2,} a[]>)
        """
        least = checked_count(low, "the count" if high == "low" else "the lower count", 1 if high == "low" else 0)
        most = least if high == "low" else None if high is None else checked_count(high, "the upper count")
        if most is not None and most < least:
            raise BuilderError(f"times({low}, {high}) has its bounds the wrong way round; write times({high}, {low})")
        return type(self)(ast.Repetition(self._node, least, most))

    def optional(self) -> Self:
        """Return the part once or not at all: `A? a`.

        Examples:
            >>> event("A", "a").optional()
            <A? a>
        """
        return type(self)(ast.Option(self._node))


class Element:
    """One event of a list, made by `b["i"]`: its attributes are values.

    Examples:
        >>> b = event("B", "b").plus()
        >>> b["i"].price > b["i-1"].price
        <b[i].price > b[i-1].price>
    """

    __slots__ = ("_index", "_variable")

    def __init__(self, variable: str, index: ast.Index) -> None:
        self._variable = variable
        self._index = index

    def __getattr__(self, name: str) -> Value:
        refuse_private(name)
        return self.attr(name)

    def attr(self, name: str) -> Value:
        """Return an attribute, whatever it is called.

        Args:
            name: the attribute.

        Examples:
            >>> event("B", "b").plus()["last"].attr("attr")
            <b[last].attr>
        """
        return Value(ast.Attribute(self._variable, checked_name(name, "attribute"), self._index))


class EventPart(Part):
    """What `event` returns: a part of a pattern, and the values of the event that it will be.

    Examples:
        >>> a = event("A", "a")
        >>> a, a.price, a.attr("plus"), a.plus()[3].price
        (<A a>, <a.price>, <a.plus>, <a[3].price>)
    """

    __slots__ = ()
    __iter__ = None  # indexing alone would make Python try a[0], a[1], …

    def __getattr__(self, name: str) -> Value:
        refuse_private(name)
        return self.attr(name)

    def __getitem__(self, index: Literal["i", "i-1", "first", "last"] | int) -> Element:
        if isinstance(index, str):
            spelled: dict[str, ast.Index] = {"i": "i", "i-1": "i-1", "first": "first", "last": "last"}
            if index.replace(" ", "") not in spelled:
                raise BuilderError(f"there is no element {index!r}; write 'i', 'i-1', 'first', 'last' or 1, 2, …")
            return Element(variable_of(self), spelled[index.replace(" ", "")])
        return Element(variable_of(self), checked_count(index, "an index (the first element is 1)"))

    def attr(self, name: str) -> Value:
        """Return an attribute, whatever it is called.

        Args:
            name: the attribute, for instance one that is called like a method.

        Examples:
            >>> event("A", "a").attr("times")
            <a.times>
        """
        return Value(ast.Attribute(variable_of(self), checked_name(name, "attribute")))


# --- patterns -----------------------------------------------------------------------------------------------


def event(types: str | Iterable[str], variable: str | None = None) -> EventPart:
    """Return one event of a pattern: `A a`.

    Args:
        types: its type, several of them (`A|B x`), or "*" for any (`* x`).
        variable: what conditions call it; the type if left out.

    Examples:
        >>> event("A"), event(["A", "B"], "x"), event("*", "y")
        (<A>, <A|B x>, <* y>)
    """
    several = (() if types == "*" else (types,)) if isinstance(types, str) else tuple(types)
    if not several and types != "*":
        raise BuilderError('an event needs a type; for any type, write event("*", "x")')
    if variable is None and len(several) != 1:
        raise BuilderError(f"this event needs a variable, as in event({types!r}, 'x')")
    checked = tuple(checked_name(each, "type") for each in several)
    return EventPart(ast.Event(checked, checked[0] if variable is None else checked_name(variable, "variable")))


def seq(*parts: Part) -> Part:
    """Return the parts one after another: `SEQ(p, q)`.

    Args:
        parts: at least one; a negated event stands for "no such event here".

    Examples:
        >>> seq(event("A", "a"), ~event("B", "b"), event("C", "c"))
        <SEQ(A a, NOT B b, C c)>
    """
    return Part(ast.Sequence(_patterns("seq", parts)))


def all_of(*parts: Part) -> Part:
    """Return all parts in any order: `AND(p, q)`.

    Args:
        parts: at least one.

    Examples:
        >>> all_of(event("A", "a"), event("B", "b"))
        <AND(A a, B b)>
    """
    return Part(ast.Conjunction(_patterns("all_of", parts)))


def one_of(*parts: Part) -> Part:
    """Return one of the parts: `OR(p, q)`.

    Args:
        parts: at least one.

    Examples:
        >>> one_of(event("A", "a"), event("B", "b"))
        <OR(A a, B b)>
    """
    return Part(ast.Disjunction(_patterns("one_of", parts)))


def any_of(number: int, *parts: Part) -> Part:
    """Return some of the parts in any order: `ANY(2, p, q, r)`.

    Args:
        number: how many of them.
        parts: at least one.

    Examples:
        >>> any_of(2, event("A", "a"), event("B", "b"), event("C", "c"))
        <ANY(2, A a, B b, C c)>
    """
    return Part(ast.AnyOf(checked_count(number, "the number of any_of"), _patterns("any_of", parts)))


def variable_of(part: EventPart | str) -> str:
    """Return the variable of an event, or check one that is given by name.

    Args:
        part: an event, repeated or negated or not, or a name.

    Examples:
        >>> variable_of(event("A", "a").plus()), variable_of("b")
        ('a', 'b')
    """
    if isinstance(part, EventPart):
        return next(ast.events(part._node)).variable
    return checked_name(part, "variable")


def _patterns(function: str, parts: tuple[Part, ...]) -> tuple[ast.Pattern, ...]:
    if not parts:
        raise BuilderError(f"{function}() is empty: give it at least one part, as in {function}(event('A', 'a'))")
    return tuple(map(pattern_of, parts))


def pattern_of(part: Part) -> ast.Pattern:
    """Return the AST of a part.

    Args:
        part: of a pattern, or all of it.

    Raises:
        TypeError: if it is something else.

    Examples:
        >>> pattern_of(event("A", "a"))
        Event(types=('A',), variable='a')
    """
    if not isinstance(part, Part):
        raise TypeError(f"{part!r} is no part of a pattern; event, seq, all_of, one_of and any_of make them")
    return part._node
