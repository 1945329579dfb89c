"""Conditions that need not wait for what they look up (EIRES, section 5.2: lazy evaluation).

Where a remote source may answer that a value is not there yet, a conjunct P that looks something up becomes
`pending OR P`: a run for which the value is not there goes on as if P held, and P is its *obligation*. Under EACH,
runs do not ask about each other, so the runs of the weaker conjuncts are those of the query and some more, and a match
is one of the query if its obligations turn out true. Where an unproved run or match would change what becomes of
another, the query must block instead: `why_must_block`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.plan.automaton import Automaton, may_repeat
from penstock.plan.callees import IS_PENDING, called, element_of
from penstock.plan.positions import Numbered


class Lookup(NamedTuple):
    """A lookup, and the call that makes it: `b.x IN REMOTE[s, a.k]` is one call of two events."""

    remote: ast.Remote
    call: ast.Expression

    @property
    def is_pending(self) -> ast.Expression:
        """Whether its value is not there yet; asked when the call is: as the event comes in, or per run."""
        whole = self.remote if element_of(self.call) is not None else self.call
        return ast.Call(IS_PENDING, (self.remote, whole))


def lookups(expression: ast.Expression) -> Iterator[Lookup]:
    """Yield the lookups of an expression; in `REMOTE[s, REMOTE[t, a.k]]` there are two."""
    call = called(expression)
    if call is not None and element_of(expression) is not None:
        yield from (Lookup(node, expression) for node in ast.walk(expression) if isinstance(node, ast.Remote))
        return
    match expression:
        case ast.Remote():
            yield Lookup(expression, expression)
        case ast.Membership(members=ast.Remote() as remote):
            yield Lookup(remote, expression)
    for below in ast.children(expression) if call is None else call[1]:
        yield from lookups(cast(ast.Expression, below))  # keys of SAME are none, but call nothing either


def looks_up(expression: ast.Expression | None) -> bool:
    """Whether an expression looks something up."""
    return expression is not None and any(isinstance(node, ast.Remote) for node in ast.walk(expression))


def is_pending(node: ast.Expression | None) -> bool:
    """Whether an expression says that the value of a lookup is not there yet."""
    return isinstance(node, ast.Call) and node.function == IS_PENDING


def postponed(conjunct: ast.Expression) -> ast.Expression:
    """Return a conjunct that also holds while something that it looks up is not there yet."""
    pending = dict.fromkeys(each.is_pending for each in lookups(conjunct))
    return ast.Or((*pending, conjunct)) if pending else conjunct


def why_must_block(query: ast.Query, numbered: Numbered, machine: Automaton) -> str | None:
    """Return why conditions of a query cannot be postponed; None if they can, or if there are none to postpone."""
    if query.window is not None and query.window.on is not None and looks_up(query.window.on.where):
        return "a lookup decides where windows start"
    asking = [conjunct for conjunct in ast.conjuncts(query.where) if looks_up(conjunct)]
    if not asking:
        return None
    select, consume = query.select, query.consume
    if select.policy is not Policy.EACH:
        return f"SELECT {select.policy} chooses among runs or matches, and must know which there are"
    if select.variables:
        return "SELECT per variable chooses among matches, and must know which there are"
    if consume.all or consume.variables:
        return "CONSUME keeps events from other matches, and must know which there are"
    if query.limit is not None:
        return "LIMIT counts matches, and must know which there are"
    negated = {numbered.variables[info.variable].name for info in numbered.negations}
    if any(negated & {*ast.variables_of(conjunct)} for conjunct in asking):
        return "a lookup decides what a negation forbids"
    if may_repeat(machine, by_runs=False):
        return "a match may be found in several ways, of which one counts"
    return None
