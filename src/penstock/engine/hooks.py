"""What is shed of a batch, and what is counted in it: decisions as arrays, made before the batch is processed.

Positions in windows are counted before any shedding, so a decision by type, position and state is known beforehand: it
is an array over the events of a batch, and the kernel looks it up instead of calling anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock.errors import PenstockError
from penstock.plan.layout import LEDGER_CHECKS as CHECKS
from penstock.plan.layout import LEDGER_CREATED as CREATED
from penstock.plan.layout import LEDGER_MATCHES as MATCHES
from penstock.plan.layout import LEDGER_OPEN as OPEN
from penstock.plan.layout import LEDGER_SHED as SHED
from penstock.plan.layout import LEDGER_WIDTH
from penstock.plan.tables import Bools, Floats, Ints

__all__ = ["CHECKS", "CREATED", "LEDGER_WIDTH", "MATCHES", "OPEN", "SHED", "HookError", "Hooks"]

MAX_WINDOWS = 62  # windows of one event that bits can tell apart


class HookError(PenstockError):
    """A hook that a query, or the plan that it runs by, does not have."""


@dataclass(frozen=True)
class Hooks:
    """Decisions about the n events of a batch, for one query; None: no decision.

    An event that is shed still counts for positions, for WITHIN n EVENTS and as a neighbour of others (STRICT). Arrays
    to which something is added are the caller's, of int64. The last five are for plain queries only.

    Attributes:
        events: (n,) shed the event: no run takes it, and no negation sees it.
        windows: (n,) shed it from its first window (bit 0), from its second (bit 1), and so on.
        states: (S, n) hide it from the runs in a state: they do not take it, nor does it forbid them; in state 0 it
            opens no run. `Engine.states` names the states.
        cells: (n,) where what happens to the event is counted (see `counted`): a number that the caller makes of its
            type, position and what else it wants to tell apart; -1: nowhere.
        counted: (cells, S, 2) to which the runs that were asked, and those that took the event, are added, per cell and
            state.
        worth: (S, n) of the event to each open run of its partition, by the run's state. An event is shed, as `events`
            sheds it, if its worth to all of them together is at most `least`: the sum over the states s of worth[s]
            times the number of open runs in s when it comes, and times 1 for state 0 (thesis, equation 5.4).
        least: of all events; or (n,) of each.
        open_runs: (cells, S) to which the open runs of the event's partition are added when it comes, whether or not it
            is shed or hidden from them, and 1 for state 0; at its cell.
        moves: (S, S) to which each run that takes an event is added: at the state that it was in (0: it is opened), and
            the one that it gets to.
        ledger: (n, LEDGER_WIDTH) into which is written, for each event, what it took: CHECKS done of runs, runs
            CREATED, MATCHES completed; runs OPEN that could have seen it, and 1 if it was not hidden from state 0, but
            0 if it was shed; whether it was SHED by its worth. Lines of events without a key are left as they are.
            Where the kernel has asked an event again, for want of room, only the last time counts.
    """

    events: Bools | None = None
    windows: Ints | None = None
    states: Bools | None = None
    cells: Ints | None = None
    counted: Ints | None = None
    worth: Floats | None = None
    least: Floats | float | None = None
    open_runs: Ints | None = None
    moves: Ints | None = None
    ledger: Ints | None = None

    @property
    def tallies(self) -> bool:
        """Whether open runs are counted as events come, or what becomes of them: only the plain kernel does."""
        return any(each is not None for each in (self.worth, self.open_runs, self.moves, self.ledger))

    @property
    def needs_runs(self) -> bool:
        """Whether they are about runs, which only the automaton keeps."""
        return self.tallies or any(each is not None for each in (self.windows, self.states, self.cells))

    def of(self, rows: Ints) -> Hooks:
        """Return the decisions about some of the events; what is written to stays the same."""
        return replace(
            self,
            events=None if self.events is None else np.asarray(self.events, np.bool_)[rows],
            windows=None if self.windows is None else np.asarray(self.windows, np.int64)[rows],
            states=None if self.states is None else np.asarray(self.states, np.bool_)[:, rows],
            cells=None if self.cells is None else np.asarray(self.cells, np.int64)[rows],
            worth=None if self.worth is None else np.asarray(self.worth, np.float64)[:, rows],
            least=np.asarray(self.least, np.float64)[rows] if isinstance(self.least, np.ndarray) else self.least,
        )

    def check(self, events: int, states: int) -> None:
        """Refuse arrays of other sizes than the batch and the query have."""
        wanted: dict[str, tuple[int, ...]] = {"events": (events,), "windows": (events,), "cells": (events,)}
        wanted |= {"states": (states, events), "worth": (states, events), "moves": (states, states)}
        wanted["ledger"] = events, LEDGER_WIDTH
        if isinstance(self.least, np.ndarray):
            wanted["least"] = (events,)
        for name, shape in wanted.items():
            array = getattr(self, name)
            if array is not None and np.shape(array) != shape:
                raise HookError(f"hooks.{name} has the shape {np.shape(array)}, and the batch needs {shape}")
        if (self.worth is None) != (self.least is None):
            raise HookError("hooks.worth and hooks.least need each other")
        self._check_cells(states)
        for name in ("counted", "open_runs", "moves", "ledger"):
            array = getattr(self, name)
            if array is not None and (array.dtype != np.int64 or not array.flags.c_contiguous):
                raise HookError(
                    f"hooks.{name} is added to in place: it must be an array of int64, row by row in memory"
                )

    def _check_cells(self, states: int) -> None:
        by_cell = {"counted": (states, 2), "open_runs": (states,)}
        given = {name: shape for name, shape in by_cell.items() if getattr(self, name) is not None}
        if self.cells is not None and not given:
            raise HookError(f"hooks.cells needs hooks.counted of the shape (cells, {states}, 2), or hooks.open_runs")
        largest = -1 if self.cells is None else int(np.max(self.cells, initial=-1))
        for name, shape in given.items():
            array = getattr(self, name)
            if self.cells is None:
                raise HookError(f"hooks.{name} needs hooks.cells, which say where to add")
            if array.shape[1:] != shape:
                raise HookError(f"hooks.{name} has the shape {array.shape}, and the query needs (cells, {shape})")
            if largest >= len(array):
                raise HookError(f"a cell is {largest}, and hooks.{name} has {len(array)} cells")


def size_of(batch: Any) -> int:
    """Return how many events a batch has."""
    if isinstance(batch, dict):
        return len(next(iter(batch.values()), ()))
    return len(batch)
