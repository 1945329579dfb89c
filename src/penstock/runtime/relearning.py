"""Learning while running: from the windows that are not shed, and a new model when the old one is out of date."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.plan.tables import Bools, Ints
from penstock.runtime.costs import Costs
from penstock.runtime.matching import Operator
from penstock.shedding.drift import MatchesDrift, MatchesSign, MatrixDrift
from penstock.shedding.markov import transition_matrix
from penstock.shedding.quality import Found
from penstock.shedding.strategies.strategy import Strategy


@dataclass
class Learner:
    """Watches for signs that a model is out of date, and builds a new one from what has been seen since.

    Event strategies learn from marked windows alone. A strategy that drops runs learns from all windows: what becomes
    of the runs that stay is not changed by those that have gone.

    Attributes:
        sign: of drift.
        windows: that must have been seen before a model is built, or a transition matrix compared.
        options: of the strategy.
        retrained: at which events a new model was put in place.
    """

    sign: MatchesSign | MatrixDrift
    windows: int = 100
    options: dict[str, Any] = field(default_factory=dict)
    retrained: list[int] = field(default_factory=list, init=False)
    _is_gathering: bool = field(default=False, init=False)  # a sign was seen: the next model is made of what follows
    _since: int = field(default=0, init=False)  # the event from which on it is counted
    _ended: int = field(default=0, init=False)  # windows that are over
    _seen: int = field(default=0, init=False)  # those of them that count, and opened since
    _matches: Ints = field(default_factory=lambda: np.zeros(0, np.int64), init=False)  # by window

    def note(
        self, operator: Operator, strategy: Strategy, costs: Costs, found: Found, at: int, is_marked: Bools
    ) -> Strategy | None:  # fmt: skip
        """Take what a slice brought; return a new model if it is time for one.

        Args:
            operator: that is observed.
            strategy: with the model of now.
            costs: of work.
            found: the matches of the slice.
            at: the event that comes next.
            is_marked: (W,) the windows that are never shed.
        """
        if not len(self._matches):
            self._matches = np.zeros(len(is_marked), np.int64)
        np.add.at(self._matches, found.windows, 1)
        counts = is_marked if strategy.level != "runs" else np.ones_like(is_marked)
        cut = operator.stream.cut
        ended = cut.over(min(at, operator.stream.size - 1))
        new = cut.order[self._ended : ended]
        self._ended += len(new)
        self._seen += int((counts[new] & (cut.opens[new] >= self._since)).sum())
        if not self._is_gathering and not isinstance(self.sign, MatrixDrift):
            signs = [self.sign.observe(float(count)) for count in self._matches[new[counts[new]]]]
            if any(signs):
                self._begin(operator, at, is_gathering=True)
            return None
        if self._seen < self.windows:
            return None
        return self._model(operator, strategy, costs, at, counts)

    def _model(self, operator: Operator, strategy: Strategy, costs: Costs, at: int, counts: Bools) -> Strategy | None:
        cut, kept = operator.stream.cut, np.zeros_like(counts)
        kept[cut.order[: self._ended]] = True
        kept &= counts & (cut.opens >= self._since)
        history = operator.history(at, costs).narrowed(self._since, kept)
        if isinstance(self.sign, MatrixDrift):
            matrices = [transition_matrix(query.moves, query.stays) for query in history.queries]
            is_out_of_date = self.sign.observe(matrices)
            if is_out_of_date:
                self.sign.matrices = matrices
        else:
            is_out_of_date = True
            if isinstance(self.sign, MatchesDrift):
                self.sign.mean = float(self._matches[kept].mean())
        self._begin(operator, at, is_gathering=False)
        if not is_out_of_date:
            return None
        self.retrained.append(at)
        return type(strategy).fitted(history, **self.options)

    def _begin(self, operator: Operator, at: int, *, is_gathering: bool) -> None:
        """Count from here on."""
        operator.observe()
        self._since, self._seen, self._is_gathering = at, 0, is_gathering
