"""The events of a match, followed through the automaton of its query."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.kernel.compiling import compiled
from penstock.plan.tables import Bools, Floats, Ints
from penstock.runtime.costs import Costs
from penstock.shedding.history import Elements


class Walk:
    """Follows the events of a match through the automaton of its query."""

    def __init__(self, plan: Any) -> None:
        states = plan.automaton.states
        self.ends: Bools = np.array([bool(state.endings) for state in states])
        self.positive = np.array([n for n, v in enumerate(plan.numbered.variables) if not v.is_negated], np.int64)
        self.next = np.zeros((len(states), len(plan.numbered.variables)), np.int64)
        for step in plan.automaton.transitions:
            self.next[step.source, step.variable] = step.target

    def elements(self, offsets: Ints, variables: Ints, rows: Ints, windows: Ints) -> Elements:
        """Return the elements of matches in the order of the stream, with the states in which they were taken."""
        owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        order = np.lexsort((rows, owners))
        rows, windows, taken = rows[order], windows[order], self.positive[variables[order]]
        states, _ = self._states(offsets, taken)
        return Elements(owners, rows, windows, states, len(offsets) - 1)

    def abandoned(
        self, offsets: Ints, variables: Ints, rows: Ints, windows: Ints, by: tuple[Ints, Ints], chosen: Bools
    ) -> Elements:  # fmt: skip
        """Return the elements of some runs, and the events (and windows) that ended them, the last of each."""
        whole = self.elements(offsets, variables, rows, windows)
        order = np.lexsort((rows, whole.owners))
        last = self._states(offsets, self.positive[variables[order]])[1]
        runs = np.flatnonzero(chosen)
        kept = chosen[whole.owners]
        numbers = np.cumsum(chosen) - 1
        return Elements(
            np.concatenate([numbers[whole.owners[kept]], np.arange(len(runs))]),
            np.concatenate([whole.rows[kept], by[0][runs]]),
            np.concatenate([whole.windows[kept], by[1][runs]]),
            np.concatenate([whole.states[kept], last[runs]]),
            len(runs),
        )

    def _states(self, offsets: Ints, variables: Ints) -> tuple[Ints, Ints]:
        """Return the state before each element, and the one behind the last of each match."""
        states, last = np.zeros(len(variables), np.int64), np.zeros(len(offsets) - 1, np.int64)
        _walk(self.next, offsets, variables, states, last)
        return states, last

    def rewards(self, costs: Costs, query: int) -> Floats:
        """Return R(s, s') in nanoseconds: a check, and a run or a match if it moves on."""
        factor = costs.factors[query] if query < len(costs.factors) else 1.0
        size = len(self.ends)
        moved = np.where(self.ends[None, :], costs.match, costs.run) * np.ones((size, size))
        np.fill_diagonal(moved, 0.0)
        rewards: Floats = costs.check * factor + moved
        return rewards


@compiled
def _walk(following: Ints, offsets: Ints, variables: Ints, states: Ints, last: Ints) -> None:
    for match in range(len(offsets) - 1):
        state = 0
        for k in range(offsets[match], offsets[match + 1]):
            states[k] = state
            state = following[state, variables[k]]
        last[match] = state
