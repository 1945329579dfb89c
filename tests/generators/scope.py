"""What one conjunct or column may name, so that it is not refused (docs/language.md, section 3, Lists)."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.pattern import ast
from penstock.pattern.variables import Variable
from tests.generators.choices import Choices

_RANGING: tuple[ast.Index, ...] = ("i", None, "i-1")
_FIXED: tuple[ast.Index, ...] = ("first", "last", 1, 2, 3)


class Scope:
    """Draws references, and remembers what rules out others.

    What ranges over rounds must range over those of one repetition and the ones around it, so a scope remembers the
    deepest so far; and it names at most one negated variable.
    """

    def __init__(self, choices: Choices, variables: Mapping[str, Variable], negated: str | None = None) -> None:
        self._choices = choices
        self._variables = variables
        self._negated = negated
        self._rounds: tuple[int, ...] = () if negated is None else variables[negated].groups
        self._is_negation_due = negated is not None
        self._positive = [name for name, variable in variables.items() if not variable.negated]
        self._lists = [name for name in self._positive if variables[name].is_list]

    @property
    def has_lists(self) -> bool:
        """Whether there is a list to aggregate."""
        return bool(self._lists)

    def attribute(self, name: str) -> ast.Attribute:
        """Return an attribute of some variable; if the scope has a negated one, it is the first."""
        if self._negated is not None and (self._is_negation_due or self._choices.chance(20)):
            self._is_negation_due = False
            is_list = self._variables[self._negated].is_list
            return ast.Attribute(self._negated, name, self._choices.pick((None, "i")) if is_list else None)
        variable = self._choices.pick(self._positive)
        if not self._variables[variable].is_list:
            return ast.Attribute(variable, name)
        if self._may_range(variable) and self._choices.chance(60):
            return ast.Attribute(variable, name, self._choices.pick(_RANGING))
        return ast.Attribute(variable, name, self._choices.pick(_FIXED))

    def aggregate(self, function: ast.AggregateFunction, name: str | None) -> ast.Aggregate:
        """Return an aggregate of some list, or of the part of it up to an element."""
        variable = self._choices.pick(self._lists)
        if self._choices.chance(40) and self._may_range(variable):
            return ast.Aggregate(function, variable, name, "i-1" if self._choices.chance(60) else "i")
        return ast.Aggregate(function, variable, name)

    def _may_range(self, variable: str) -> bool:
        """Return whether the rounds of a list go with those ranged over so far, and range over them if so."""
        groups = self._variables[variable].groups
        shorter, longer = sorted((groups, self._rounds), key=len)
        if longer[: len(shorter)] != shorter:
            return False
        self._rounds = longer
        return True
