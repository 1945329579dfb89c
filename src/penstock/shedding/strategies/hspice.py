"""hSPICE: events from runs, or from windows, by type, position and the states of the runs (thesis, chapter 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from penstock.plan.tables import Floats
from penstock.shedding.chance import uniform
from penstock.shedding.deciding import by_state
from penstock.shedding.strategies.strategy import Strategy
from penstock.shedding.summing import Tables
from penstock.shedding.thresholds import NOTHING, Occurrences, Threshold
from penstock.shedding.views import Decision, Effort, Level, View


def utilities_by_state(completed: Floats, asked: Floats, weight: float) -> Floats:
    """Return U = w · |{e: e ∈ γ_s and γ completed}| / |{e: e ⊗ γ_s}| (equations 5.1 and 5.2); 0 where none was asked.

    Args:
        completed: (T, B, S) contributions to runs in a state that completed.
        asked: (T, B, S) runs in the state that met such an event.
        weight: of the query.

    Examples:
        >>> float(utilities_by_state(np.array([[[1.0]]]), np.array([[[4.0]]]), 1.0)[0, 0, 0])
        0.25
    """
    shares: Floats = np.where(asked > 0, np.minimum(completed / np.maximum(asked, 1e-300), 1.0), 0.0)
    return weight * shares


@dataclass
class HspicePM(Strategy):
    """hSPICE on the granularity of runs: hides an event from the runs that have little use for it.

    Attributes:
        tables: per query (T, B, S) UT.
        virtual: per query (T, B, S) the virtual window: how often in a window an event meets a run in a state.
        exact: whether of what is worth as much as the threshold only as much goes as must; if not, all of it goes, as
            in the thesis, and nothing of worth has to for a while.
        seed: of the choice among those, by event: it is the same in all windows and runs.
    """

    name: ClassVar[str] = "hspice-pm"
    level: ClassVar[Level] = "run"
    effort: ClassVar[Effort] = Effort(per="run")
    version: ClassVar[int] = 3  # positions are by the sizes that windows are expected to have

    tables: tuple[Floats, ...]
    virtual: tuple[Floats, ...]
    exact: bool = False
    seed: int = 1

    def __post_init__(self) -> None:
        flat = [np.concatenate([each.reshape(-1) for each in group]) for group in (self.tables, self.virtual)]
        self._occurrences = Occurrences.of(*flat)
        self._threshold = NOTHING

    @classmethod
    def fitted(cls, history: Tables, **options: Any) -> Self:
        """Count contributions to runs that completed, and how often events met runs."""
        virtual = [query.open_runs.astype(np.float64) for query in history.queries]
        tables = tuple(
            utilities_by_state(history.completed_by_state(place), virtual[place], query.weight)
            for place, query in enumerate(history.queries)
        )
        return cls(tables, tuple(each / max(1, history.windows) for each in virtual), **options)

    def aim(self, share: float, partitions: int = 1) -> None:
        """Find u_th = UT_th(ρ_v), where ρ_v = ρ · ws_v / ws of the virtual window are to go (section 5.2.1.3)."""
        self._threshold = self._occurrences.threshold(share * self._occurrences.total, exact=self.exact)

    def decide(self, view: View) -> Decision:
        """Return from which runs an event is hidden (algorithm 5)."""
        most = most_that_goes(self._threshold, view, self.seed)
        return Decision(hidden=tuple(by_state(table, view) <= most for table in self.tables))


@dataclass
class HspiceW(Strategy):
    """hSPICE on the granularity of windows: drops an event that the runs of a window have little use for, together.

    The utility of an event in a window is the sum over its runs (equation 5.3), which is that over their states, times
    the runs in each (equation 5.4): the kernel keeps these numbers.
    Which utilities occur how often is worked out from the mean number of runs in each state, for each type and
    position. With several queries the thesis sums up over the runs of all of them; ours are matched one after the
    other, so an event is dropped from the runs that a query has in the window, by their sum. The threshold is one for
    all queries: what is worth little to a light query goes before what is worth more to a heavy one.

    Attributes:
        tables: per query (T, B, S) UT.
        utilities: per query (T, B) of an event in a window to the query, with the mean number of runs.
        shares: per query (T, B) how many events of a type a cell has in a window, times the part that the query has in
            the runs that they meet. Over all queries these are the events of a window.
        exact: whether of what is worth as much as the threshold only as much goes as must; if not, all of it goes, as
            in the thesis, and nothing of worth has to for a while.
        seed: of the choice among those, by event: it is the same in all windows.
    """

    name: ClassVar[str] = "hspice-w"
    level: ClassVar[Level] = "window"
    effort: ClassVar[Effort] = Effort(per="state")
    version: ClassVar[int] = 3  # likewise

    tables: tuple[Floats, ...]
    utilities: tuple[Floats, ...]
    shares: tuple[Floats, ...]
    exact: bool = False
    seed: int = 1

    def __post_init__(self) -> None:
        flat = [np.concatenate([each.reshape(-1) for each in group]) for group in (self.utilities, self.shares)]
        self._occurrences = Occurrences.of(*flat)
        self._threshold = NOTHING

    @classmethod
    def fitted(cls, history: Tables, **options: Any) -> Self:
        """Learn as hSPICE-PM does, and the utility of events with all runs of a window."""
        of_runs = HspicePM.fitted(history)
        events = history.events_met() / max(1, history.windows)
        utilities = tuple(
            (table * virtual).sum(axis=2) / np.maximum(events, 1e-12)
            for table, virtual in zip(of_runs.tables, of_runs.virtual, strict=True)
        )
        return cls(of_runs.tables, utilities, parts_of_queries(events, of_runs.virtual), **options)

    def aim(self, share: float, partitions: int = 1) -> None:
        """Find the threshold (section 5.2.2.2)."""
        self._threshold = self._occurrences.threshold(share * self._occurrences.total, exact=self.exact)

    def decide(self, view: View) -> Decision:
        """Return what an event is worth to the runs of a state; the kernel sums up (algorithm 6)."""
        worth = tuple(by_state(table, view) for table in self.tables)
        return Decision(worth=worth, least=most_that_goes(self._threshold, view, self.seed))


def most_that_goes(threshold: Threshold, view: View, seed: int) -> Floats:
    """Return (n,) the utility up to which pairs go: the threshold for a share of the events, just less for the others.

    Args:
        threshold: what goes, and the share of what is worth just as much.
        view: the pairs.
        seed: of the choice, by event.
    """
    if threshold.share >= 1:
        return np.full(len(view), threshold.below)
    is_chosen = uniform(seed, view.numbers) < threshold.share
    most: Floats = np.where(is_chosen, threshold.below, np.nextafter(threshold.below, -np.inf))[view.rows]
    return most


def parts_of_queries(events: Floats, virtual: Sequence[Floats]) -> tuple[Floats, ...]:
    """Return per query (T, B) how many events of a window are its own, by its part in the runs that they meet.

    Args:
        events: (T, B) how many events of a type a cell has in a window.
        virtual: per query (T, B, S) how many runs in a state they meet.

    Examples:
        >>> parts_of_queries(np.array([[4.0]]), [np.array([[[4.0, 8.0]]]), np.array([[[4.0, 0.0]]])])
        (array([[3.]]), array([[1.]]))
    """
    runs = [each.sum(axis=2) for each in virtual]
    total = np.sum(runs, axis=0)
    parts = [np.where(total > 0, each / np.maximum(total, 1e-300), 1 / len(runs)) for each in runs]
    return tuple(events * part for part in parts)
