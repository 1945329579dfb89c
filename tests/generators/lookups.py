"""Cases whose queries look things up in WHERE and RETURN, of one event, of several, of none, and in lookups."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.pattern.render import render
from penstock.pattern.variables import variables
from tests.generators.cases import Case, case
from tests.generators.choices import Choices, Drawn, Seeded
from tests.generators.profile import Profile
from tests.generators.scope import Scope

# Where nothing must wait; conditions on a negated variable may still look something up, and some patterns repeat.
POSTPONING = Profile(policies=(Policy.EACH,), per_variable=0, consume=0, limit=False, leaves=4, window=25, partition=10)
_COMPARATORS: tuple[ast.Comparator, ...] = ("<=", ">=", "<>", "<", ">", "=")


def with_lookups(choices: Choices, profile: Profile) -> Case:
    """Return a case with one to three more conjuncts, and perhaps a column, that look something up."""
    found = case(choices, profile)
    known = variables(found.query.pattern)
    asked = [_condition(choices, Scope(choices, known)) for _ in range(1 + choices.below(3))]
    where = ast.And((*ast.conjuncts(found.query.where), *asked))
    returns = found.query.returns
    if returns:
        returns = (*returns, ast.Return(_value(choices, Scope(choices, known)), "looked_up"))
    query = replace(found.query, where=where if len(where.items) > 1 else where.items[0], returns=returns)
    return Case(replace(query, source=render(query)), found.events)


def seeded_lookups(number: int, profile: Profile = POSTPONING) -> Case:
    """Return the case of a seed."""
    return with_lookups(Seeded(number), profile)


@st.composite
def lookup_cases(draw: DrawFn, profile: Profile = POSTPONING) -> Case:
    """Draw a case."""
    return with_lookups(Drawn(draw), profile)


def _value(choices: Choices, scope: Scope) -> ast.Expression:
    limit = ast.Remote("limit", scope.attribute("k"))
    match choices.below(7):
        case 0 | 1:
            return limit
        case 2:
            return ast.Remote("row", scope.attribute("n"), "cap")
        case 3:
            return ast.Remote("row", limit, "cap")
        case 4:
            return ast.Call("half", (limit,))
        case 5:
            return ast.Remote("row", ast.Arithmetic("-", scope.attribute("n"), scope.attribute("n")), "cap")
        case _:
            return ast.Arithmetic("+", limit, scope.attribute("n"))


def _condition(choices: Choices, scope: Scope) -> ast.Expression:
    match choices.below(8):
        case 0 | 1:
            members = ast.Remote("keys", scope.attribute("n"))
            return ast.Membership(scope.attribute("k"), members, choices.chance(40))
        case 2:
            return ast.Or((_comparison(choices, scope), ast.Not(_comparison(choices, scope))))
        case 3:
            value = ast.Remote("limit", ast.Text("q"))
            return ast.Comparison(choices.pick(_COMPARATORS), value, scope.attribute("n"))
        case _:
            return _comparison(choices, scope)


def _comparison(choices: Choices, scope: Scope) -> ast.Expression:
    return ast.Comparison(choices.pick(_COMPARATORS), _value(choices, scope), scope.attribute("n"))
