"""How many open runs wait for an event of a type: what an event takes depends on how many runs are asked about it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.engine.detector import Detector
from penstock.engine.general import GeneralMatcher
from penstock.engine.plain import PlainMatcher
from penstock.plan.planning import Plan
from penstock.plan.tables import Ints


def waiting(detector: Detector, types: Sequence[str]) -> Ints:
    """Return (S, T) how many open runs in each state wait for an event of each type, of all keys.

    They wait to take it, or to be forbidden by it. Of a tree of joins the tuples count in state 0, for all types that
    the query names.
    """
    plan, matcher = detector.plan, detector.matcher
    counts = np.zeros((len(plan.automaton.states), len(types)), np.int64)
    if isinstance(matcher, PlainMatcher | GeneralMatcher):
        open_runs, asked = matcher.open_runs(), _asked(plan)
    else:
        open_runs, asked = np.array([matcher.work["runs"]]), {(0, v) for v in range(len(plan.numbered.variables))}
    for place, name in enumerate(types):
        states = sorted({state for state, variable in asked if _takes(plan, variable, name)})
        counts[states, place] = open_runs[states]
    return counts


def _asked(plan: Plan) -> set[tuple[int, int]]:
    """Return which states ask an event for which variable, also for those that a step must not pass."""
    steps, negations = plan.automaton.transitions, plan.numbered.negations
    passed = {(step.source, negations[each].variable) for step in steps for each in step.negations}
    return passed | {(step.source, step.variable) for step in steps}


def _takes(plan: Plan, variable: int, name: str) -> bool:
    types = plan.numbered.variables[variable].types
    return not types or name in types
