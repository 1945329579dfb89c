"""What a pattern says about each of its variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from penstock.pattern import ast

# One word each for what a reader of a query must not take for a name (grammar.lark, NAME).
RESERVED = frozenset({
    "PATTERN", "SEQ", "ANY", "KLEENE", "AND", "OR", "NOT", "NEG", "IN", "WHERE", "WITHIN", "PARTITION", "WINDOW",
    "EVERY", "ON", "DISTINCT", "LIMIT", "SELECT", "CONSUME", "RETURN", "AS", "SAME", "REMOTE", "TRUE", "FALSE",
})  # fmt: skip
ANY_TYPE = "*"  # the type that stands for all
ValueType: TypeAlias = Literal["int", "float", "string", "bool", "time", "duration"]
VALUE_TYPES: tuple[str, ...] = get_args(ValueType)
# What every event has besides its attributes.
BUILT_IN = {"ts": "time", "seq": "int", "type": "string"}


@dataclass(frozen=True)
class Variable:
    """A named place in a pattern.

    `groups` are the repetitions around it, outermost first, each by its number in the text; a variable with
    groups is a list, and two variables share a round of a repetition if they share its number.
    """

    event: ast.Event
    groups: tuple[int, ...]
    negated: bool

    @property
    def is_list(self) -> bool:
        """Whether the variable is bound to a list of events."""
        return bool(self.groups)


def variables(pattern: ast.Pattern) -> dict[str, Variable]:
    """Return the variables of a pattern by name, in the order of the text; of a name used twice, the first."""
    found: dict[str, Variable] = {}
    repetitions = 0

    def visit(node: ast.Node, groups: tuple[int, ...], negated: bool) -> None:
        nonlocal repetitions
        if isinstance(node, ast.Event):
            found.setdefault(node.variable, Variable(node, groups, negated))
        if isinstance(node, ast.Repetition):
            repetitions += 1
            groups = (*groups, repetitions)
        for child in ast.children(node):
            visit(child, groups, negated or isinstance(node, ast.Negation))

    visit(pattern, (), False)
    return found


def can_be_empty(pattern: ast.Pattern) -> bool:
    """Return whether a pattern can be matched by no event at all."""
    match pattern:
        case ast.Event():
            return False
        case ast.Negation() | ast.Option():
            return True
        case ast.Sequence(parts=parts) | ast.Conjunction(parts=parts):
            return all(map(can_be_empty, parts))
        case ast.Disjunction(parts=parts):
            return any(map(can_be_empty, parts))
        case ast.AnyOf(count=count, parts=parts):
            return sum(map(can_be_empty, parts)) >= count
        case ast.Repetition(part=part, low=low):
            return low == 0 or can_be_empty(part)
