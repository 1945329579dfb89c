"""What the checks of `validate` look at: a query with its text, its variables and, if given, its schema."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from penstock.errors import Position, Problem, position_at
from penstock.pattern import ast
from penstock.pattern.render import quote_name
from penstock.pattern.variables import Variable, variables

if TYPE_CHECKING:
    from penstock.pattern.schema import Schema  # it loads pydantic, which takes a tenth of a second

MAX_SHOWN = 8
MAX_QUOTED = 40


@dataclass(frozen=True)
class Formula:
    """An expression of a query and the variables that it may name. Conditions come conjunct by conjunct."""

    expression: ast.Expression
    scope: Mapping[str, Variable]
    clause: Literal["WHERE", "ON", "RETURN"]


@dataclass(frozen=True)
class Subject:
    """A query under check. `source` is the text that the positions of its nodes point into."""

    query: ast.Query
    source: str
    schema: Schema | None = None

    @cached_property
    def variables(self) -> dict[str, Variable]:
        """The variables of the pattern by name."""
        return variables(self.query.pattern)

    @cached_property
    def opening_scope(self) -> dict[str, Variable]:
        """The one variable that the WHERE of WINDOW … ON may name."""
        on = self.query.window.on if self.query.window else None
        return {on.event.variable: Variable(on.event, (), negated=False)} if on else {}

    @cached_property
    def formulas(self) -> tuple[Formula, ...]:
        """Every expression of the query."""
        on = self.query.window.on if self.query.window else None
        opening = ast.conjuncts(on.where) if on else ()
        return (
            *(Formula(each, self.variables, "WHERE") for each in ast.conjuncts(self.query.where)),
            *(Formula(each, self.opening_scope, "ON") for each in opening),
            *(Formula(each.expression, self.variables, "RETURN") for each in self.query.returns),
        )

    @property
    def events(self) -> Iterator[ast.Event]:
        """Every event that the query describes: those of the pattern, negated ones too, and what opens a window."""
        yield from ast.events(self.query.pattern)
        yield from (variable.event for variable in self.opening_scope.values())

    def problem(self, code: str, message: str, at: ast.Node | Position | None, fix: str = "") -> Problem:
        """Return a problem at a node or position."""
        return Problem(code, message, self.position(at), fix)

    def position(self, at: ast.Node | Position | None) -> Position:
        """Return the position of a node; of one without, the start of the text."""
        position = at.position if isinstance(at, ast.Node) else at
        return position or position_at(self.source, 0)

    def text(self, node: ast.Node) -> str:
        """Return the text of a node on one line, cut if it is long."""
        position = self.position(node)
        text = " ".join(self.source[position.start : position.end].split())
        return text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 1] + "…"

    def word(self, node: ast.Node, word: str) -> Position:
        """Return the position of a word inside a node, or that of the node if the word is not found."""
        position = self.position(node)
        found = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)").search(self.source, position.start, position.end)
        return position_at(self.source, found.start(), found.end()) if found else position


Check: TypeAlias = Callable[[Subject], Iterator[Problem]]


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant, if one is near.

    Examples:
        >>> nearest("prise", ["price", "volume"]), nearest("PRICE", ["price"]), nearest("x", ["price"])
        ('price', 'price', None)
    """
    names = list(known)
    for other in names:
        if other.casefold() == name.casefold():
            return other
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return close[0] if close else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "", spell: Callable[[str], str] = quote_name) -> str:
    """Return the fix for an unknown name: the nearest one, else another way out, else all there are.

    Args:
        name: what was written.
        known: what might have been meant.
        otherwise: what to do if nothing is near.
        spell: how a query writes a known name.

    Examples:
        >>> did_you_mean("prise", ["price"])
        'did you mean price?'
        >>> did_you_mean("x", ["price", "volume"])
        'there are price, volume'
    """
    names = list(known)
    near = nearest(name, names)
    if near is not None:
        return f"did you mean {spell(near)}?"
    return otherwise or f"there {'is' if len(names) == 1 else 'are'} {listed(names, spell)}"


def listed(names: Iterable[str], spell: Callable[[str], str] = quote_name) -> str:
    """Return names with commas between; of many, the first.

    Examples:
        >>> listed(["price", "BRK.B"]), listed("abcdefghij")
        ('price, `BRK.B`', 'a, b, c, d, e, f, g, h, …')
    """
    spelled = [spell(each) for each in names]
    return ", ".join([*spelled[:MAX_SHOWN], *["…"] * (len(spelled) > MAX_SHOWN)]) or "none"
