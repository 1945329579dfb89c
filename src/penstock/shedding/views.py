"""What a strategy sees of the events to decide about, and what it decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from penstock.plan.tables import Bools, Floats, Ints

Level = Literal["stream", "window", "run", "runs"]


@dataclass(frozen=True)
class View:
    """A slice of the stream: e events, and n pairs of an event and a window that it is in.

    Without windows there is one pair per event, at position 0 of a window of size 1. Pairs are in the order of events,
    and those of an event in the order of its windows.

    Attributes:
        types: (e,) places in the operator's list of types.
        times: (e,) in microseconds.
        numbers: (e,) `seq`: what chance depends on.
        columns: (e,) each: numeric attributes by name.
        rows: (n,) the event of a pair.
        windows: (n,) the number of its window.
        positions: (n,) how many events are before it in its window, counted before any shedding.
        sizes: (n,) how many events the window is expected to have; (1,) if that is the same for all.
        counts: (e,) how many pairs each event has; None: as `rows` says.
    """

    types: Ints
    times: Ints
    numbers: Ints
    columns: Mapping[str, Floats]
    rows: Ints
    windows: Ints
    positions: Ints
    sizes: Ints
    counts: Ints | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def pairs_of_events(self) -> Ints:
        """(e,) how many pairs each event has."""
        return np.bincount(self.rows, minlength=len(self.types)) if self.counts is None else self.counts


@dataclass(frozen=True)
class Decision:
    """What is shed of a slice; None: nothing of that kind.

    Attributes:
        events: (e,) shed the event, from all windows.
        pairs: (n,) shed the event from the window.
        hidden: per query (S, n): hide the pair's event from the window's runs in a state.
        worth: per query (S, n): what the pair's event is worth to a run in a state; shed from the window if the sum
            over its runs is at most `least`.
        least: (n,) see there.
    """

    events: Bools | None = None
    pairs: Bools | None = None
    hidden: tuple[Bools, ...] | None = None
    worth: tuple[Floats, ...] | None = None
    least: Floats | None = None


NOTHING = Decision()


@dataclass(frozen=True)
class Effort:
    """What a decision costs, as a virtual clock counts it.

    Attributes:
        what: a look-up in a table, in a hash table, or the nodes of trees.
        per: how often: for each event, each pair, each run of the window that is asked, each state of the automata.
        many: how many of them each time.
    """

    what: Literal["lookup", "hash", "node"] = "lookup"
    per: Literal["event", "pair", "run", "state"] = "pair"
    many: float = 1.0
