"""What the queries of an engine share in a batch: the events of the types that they take, and conditions on one event.

Most queries take few of a stream's types. Where the others make no difference, a query is given the events of its types
only; queries with the same types share the search for these, and what conditions that name one variable say of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from penstock.engine.batches import Batch
from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.plan.planning import Plan
from penstock.plan.tables import Bools, Floats, Ints
from penstock.plan.terms import Code

MOST_TAKEN = 0.75  # if a query takes a larger share of the events, to leave the others out gains nothing


def needs_own_types_only(plan: Plan) -> bool:
    """Return whether events of types that a query does not take make no difference to it.

    They do where events are counted, or are between others; and where they tell the time to matches that wait for it.
    """
    query = plan.query
    is_counted = isinstance(query.within, ast.CountSpan) or query.select.policy is Policy.STRICT
    waits = bool(query.returns) or plan.postpones or bool(plan.numbered.negations)
    apart = bool(query.partition) or query.window is not None
    takes_all = any(not info.types for info in plan.numbered.variables)
    return plan.plain is not None and not (is_counted or waits or apart or takes_all)


def rows_of_types(batch: Batch, key: Hashable, is_taken: Callable[[], Bools]) -> Ints | None:
    """Return the rows of a batch whose types are taken; None if that is most of them.

    Args:
        batch: whose queries share the rows.
        key: of the types.
        is_taken: returns, by the number of a type, whether it is taken.
    """
    if key not in batch.shared:
        taken = is_taken()
        rows = None if taken.all() else np.flatnonzero(np.take(taken, batch.types))
        batch.shared[key] = rows if rows is not None and len(rows) <= MOST_TAKEN * batch.size else None
    rows_or_none: Ints | None = batch.shared[key]
    return rows_or_none


def condition_key(plan: Plan, program: list[tuple[int, int]], columns: list[int]) -> Hashable:
    """Return what a condition on one event says, whatever query it is of."""
    spelled: list[Any] = []
    for code, argument in program:
        if code == Code.CONST:
            spelled.append((code, repr(plan.terms.constants[argument])))
        elif code == Code.REF:
            column = plan.terms.columns[columns[argument]]
            spelled.append((code, column.name, column.is_previous))
        else:
            spelled.append((code, argument))
    return tuple(spelled)


def shared_truth(shared: dict[Any, Any] | None, key: Hashable, evaluate: Callable[[], Floats]) -> Bools:
    """Return for which events a condition is true; worked out once, if it is shared."""
    truth: Bools | None = None if shared is None else shared.get(key)
    if truth is None:
        truth = np.equal(evaluate(), 1.0)
        if shared is not None:
            shared[key] = truth
    return truth
