"""RETURN: values of matches, a column at a time (docs/language.md, section 8)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pyarrow as pa

from penstock.engine.found import EventStore, Found
from penstock.engine.functions import Functions
from penstock.engine.looking import Expressions, Looking
from penstock.engine.rules import rules
from penstock.engine.texts import Texts
from penstock.engine.value_kinds import Kinds, as_arrow, kind_of
from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.pattern.render import render_expression
from penstock.plan.callees import Asks, Callee, called
from penstock.plan.planning import Plan, plan
from penstock.plan.terms import Calls, Condition, Terms


@dataclass(frozen=True)
class Column:
    """A RETURN column: its name, its program, what it says."""

    name: str
    condition: Condition
    expression: ast.Expression


class Returns:
    """The RETURN columns of a query.

    Args:
        plan: of the query.
        store: where values of events are looked up.
        kinds: the type of an attribute, by name: bool, int, float, string, time, duration; None if not known.
        functions: what columns may call.

    Raises:
        NotYetError: a column calls something, and there are no functions.
    """

    def __init__(
        self, plan: Plan, store: EventStore, kinds: Kinds = lambda name: None, functions: Functions | None = None
    ) -> None:
        self.functions, self._kinds = functions, kinds
        gathered = rules(plan).gathered
        is_by_runs = plan.query.select.policy in (Policy.FIRST, Policy.STRICT)
        variables = [
            replace(info, loops=(-1 - v,)) if v in gathered else info for v, info in enumerate(plan.numbered.variables)
        ]  # what CUMULATIVE gathers is a list, whose rounds are its own
        calls = Calls.REFUSED if functions is None else Calls.CALLED
        self.terms = Terms(replace(plan.numbered, variables=variables), calls)
        self.expressions = Expressions(self.terms, plan.numbered, gathered, is_by_runs, store, functions)
        self.columns: list[Column] = []
        for each in plan.query.returns:
            self.terms.add(each.expression)
            name = each.name or render_expression(each.expression)
            self.columns.append(Column(name, self.terms.conditions[-1], each.expression))

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    def kind(self, expression: ast.Expression) -> str | None:
        """Return the type of a column as far as its text and the batches so far tell."""
        callee = called(expression)
        if self.functions is not None and callee is not None and callee[0].asks in (Asks.FUNCTION, Asks.VALUE):
            return self.functions.kind(callee[0])
        return kind_of(expression, self._kinds)

    def of(self, found: Found) -> list[pa.Array]:
        """Return the columns of matches; what is not there is null."""
        if not self.columns:
            return []
        looking = self.expressions.over(found)
        return [self._column(looking, column) for column in self.columns]

    def _column(self, looking: Looking, column: Column) -> pa.Array:
        seats, is_there, values = looking.values(column.condition)
        values[~is_there] = np.nan
        flat = as_arrow(values, self.kind(column.expression), self.expressions.store)
        if not column.condition.depth:
            return flat
        counts = np.bincount(seats.match, minlength=len(looking.found))
        return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32()), flat)


def return_types(query: ast.Query, kinds: Kinds, of_call: Callable[[Callee], str | None]) -> dict[str, pa.DataType]:
    """Return the types of the RETURN columns by name, as far as types alone tell: null where only values would.

    Args:
        query: the query.
        kinds: the types of its attributes.
        of_call: those of what user functions and remote sources return.
    """
    returns = Returns(plan(query, Calls.DERIVED), _NO_EVENTS, kinds, Functions({}, {}, Texts()))
    found = {}
    for column in returns.columns:
        callee = called(column.expression)
        asked = callee is not None and callee[0].asks in (Asks.FUNCTION, Asks.VALUE)
        kind = of_call(callee[0]) if asked and callee is not None else kind_of(column.expression, kinds)
        flat = _ARROW[_spelled(kind)]
        found[column.name] = pa.list_(flat) if column.condition.depth else flat
    return found


_NO_EVENTS: EventStore = cast(EventStore, None)  # types are known without them
_ARROW = {"int": pa.int64(), "float": pa.float64(), "string": pa.string(), "bool": pa.bool_(), None: pa.null()}


def _spelled(kind: str | None) -> str | None:
    """Times and durations are microseconds."""
    return "int" if kind in ("time", "duration") else kind
