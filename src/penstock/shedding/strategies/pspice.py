"""pSPICE: whole runs, by the probability that they complete and the time they still take (thesis, chapter 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from penstock.plan.tables import Bools, Floats, Ints
from penstock.shedding.history import History
from penstock.shedding.markov import completion, interpolated, remaining_time, scaled, transition_matrix, utility
from penstock.shedding.strategies.strategy import Strategy
from penstock.shedding.views import Effort, Level

MOST_BINS = 400


class Chain(Protocol):
    """What is known of the runs of a query; see `penstock.shedding.history.Progress`."""

    @property
    def weight(self) -> float:
        """Of the query."""

    @property
    def ends(self) -> Bools:
        """(S,) the states in which a run is complete."""

    @property
    def moves(self) -> Ints:
        """(S, S) how often a run got from one state to another."""

    @property
    def stays(self) -> Ints:
        """(S,) how often an event left a run in its state."""

    @property
    def rewards(self) -> Floats:
        """(S, S) the mean time to process an event that takes a run from a state to another."""


@dataclass
class Pspice(Strategy):
    """Drops the runs of least utility U = w · P / τ, by their state and the events that their window has left.

    Attributes:
        tables: per query (S, B + 1) utilities, if k · ws / B events are left; ws and B are the query's own.
        matrices: per query (S, S) the transition matrix, to tell when the model is out of date.
    """

    name: ClassVar[str] = "pspice"
    level: ClassVar[Level] = "runs"
    effort: ClassVar[Effort] = Effort(per="run", many=0.0)

    tables: tuple[Floats, ...]
    matrices: tuple[Floats, ...]

    def __post_init__(self) -> None:
        # Between the bins: linearly, in the middle of each part. Asked for whenever runs are dropped.
        self._between = [interpolated(table, np.arange(table.shape[1] - 1) + 0.5, 1.0) for table in self.tables]

    @classmethod
    def fitted(cls, history: History, *, bins: int | None = None, with_time: bool = True, **options: Any) -> Self:
        """Learn the transition matrices, and solve the chains.

        Args:
            history: what to learn from.
            bins: how many numbers of events left are worked out, MOST_BINS at most unless said otherwise.
            with_time: whether the processing time counts; without it, this is pSPICE-- (section 3.3.2.2).
        """
        return cls.of(history.queries, history.reaches, bins=bins, with_time=with_time, **options)

    @classmethod
    def of(
        cls, queries: Sequence[Chain], reaches: Sequence[float], *, bins: int | None = None, with_time: bool = True,
        **options: Any,
    ) -> Self:  # fmt: skip
        """Solve the chains of queries, of which each has a number of events that its runs may see; else like `fitted`.

        Runs are ranked by the share of it that they have left, so each query needs its own: one may have a WITHIN of
        seconds and another of hours.
        """
        matrices = tuple(transition_matrix(query.moves, query.stays) for query in queries)
        chances, times = [], []
        for query, matrix, reach in zip(queries, matrices, reaches, strict=True):
            ends: Bools = query.ends
            events = max(1, round(reach))
            size = max(1, -(-events // (bins or MOST_BINS)))
            count = -(-events // size)
            chances.append(completion(matrix, ends, count, size))
            times.append(remaining_time(matrix, query.rewards, ends, count, size))
        most = max(float(each.max(initial=0.0)) for each in times) or 1.0  # one scale for all queries
        tables = tuple(
            utility(query.weight, scaled(chance), time / most if with_time else np.ones_like(time))
            for query, chance, time in zip(queries, chances, times, strict=True)
        )
        return cls(tables, matrices, **options)

    def aim(self, share: float, partitions: int = 1) -> None:
        """Do nothing: how many runs go is said when they go."""

    def run_utilities(self, query: int) -> Floats:
        """Return UT_q between the bins."""
        return self._between[query]


@dataclass
class PspiceWithoutTime(Pspice):
    """pSPICE--: pSPICE that looks at the completion probability alone (thesis 3.3.2.2)."""

    name: ClassVar[str] = "pspice--"

    @classmethod
    def fitted(cls, history: History, **options: Any) -> Self:
        """Learn without processing times."""
        return super().fitted(history, **options | {"with_time": False})
