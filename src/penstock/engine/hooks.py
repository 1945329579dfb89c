"""What is shed of a batch, and what is counted in it: decisions as arrays, made before the batch is processed.

Positions in windows are counted before any shedding, so a decision by type, position and state is known beforehand: it
is an array over the events of a batch, and the kernel looks it up instead of calling anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.errors import PenstockError
from penstock.plan.tables import Bools, Ints

MAX_WINDOWS = 62  # windows of one event that bits can tell apart


class HookError(PenstockError):
    """A hook that a query, or the plan that it runs by, does not have."""


@dataclass(frozen=True)
class Hooks:
    """Decisions about the n events of a batch, for one query; None: no decision.

    An event that is shed still counts for positions, for WITHIN n EVENTS and as a neighbour of others (STRICT).

    Attributes:
        events: (n,) shed the event: no run takes it, and no negation sees it.
        windows: (n,) shed it from its first window (bit 0), from its second (bit 1), and so on.
        states: (S, n) hide it from the runs in a state: they do not take it, nor does it forbid them; in state 0 it
            opens no run. `Engine.states` names the states.
        cells: (n,) where what happens to the event is counted (see `counted`): a number that the caller makes of its
            type, position and what else it wants to tell apart; -1: nowhere.
        counted: (cells, S, 2) to which the runs that were asked, and those that took the event, are added, per cell and
            state.
    """

    events: Bools | None = None
    windows: Ints | None = None
    states: Bools | None = None
    cells: Ints | None = None
    counted: Ints | None = None

    @property
    def needs_runs(self) -> bool:
        """Whether they are about runs, which only the automaton keeps."""
        return any(each is not None for each in (self.windows, self.states, self.cells))

    def of(self, rows: Ints) -> Hooks:
        """Return the decisions about some of the events."""
        return Hooks(
            None if self.events is None else np.asarray(self.events, np.bool_)[rows],
            None if self.windows is None else np.asarray(self.windows, np.int64)[rows],
            None if self.states is None else np.asarray(self.states, np.bool_)[:, rows],
            None if self.cells is None else np.asarray(self.cells, np.int64)[rows],
            self.counted,
        )

    def check(self, events: int, states: int) -> None:
        """Refuse arrays of other sizes than the batch and the query have."""
        wanted = {"events": (events,), "windows": (events,), "states": (states, events), "cells": (events,)}
        for name, shape in wanted.items():
            array = getattr(self, name)
            if array is not None and np.shape(array) != shape:
                raise HookError(f"hooks.{name} has the shape {np.shape(array)}, and the batch needs {shape}")
        if self.cells is not None and (self.counted is None or self.counted.shape[1:] != (states, 2)):
            raise HookError(f"hooks.cells needs hooks.counted of the shape (cells, {states}, 2)")
        if self.counted is not None and (self.counted.dtype != np.int64 or not self.counted.flags.c_contiguous):
            raise HookError("hooks.counted is added to in place: it must be an array of int64, row by row in memory")
        largest = -1 if self.cells is None else int(np.max(self.cells, initial=-1))
        if self.counted is not None and largest >= len(self.counted):
            raise HookError(f"a cell is {largest}, and hooks.counted has {len(self.counted)} cells")


def size_of(batch: Any) -> int:
    """Return how many events a batch has."""
    if isinstance(batch, dict):
        return len(next(iter(batch.values()), ()))
    return len(batch)
