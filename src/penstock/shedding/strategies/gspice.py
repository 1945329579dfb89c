"""gSPICE: events from the stream, or from windows, by their context and content (thesis, chapter 6).

Utilities are kept by a Zobrist key of an event's features (-SH, -WH), or learned by a decision tree (-ST, -WT) or a
random forest (-SF, -WF).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from penstock.plan.tables import Floats, Ints
from penstock.shedding.context import Features, Observed, with_position
from penstock.shedding.deciding import by_utility
from penstock.shedding.history import History
from penstock.shedding.positions import cells
from penstock.shedding.strategies.strategy import Strategy
from penstock.shedding.thresholds import NOTHING, Occurrences, Threshold
from penstock.shedding.trees import Forest
from penstock.shedding.views import NOTHING as KEEP_ALL
from penstock.shedding.views import Decision, Effort, Level, View
from penstock.shedding.zobrist import HashTable, edges_of

_MOST_PAIRS = 2_000_000  # of a history, on the granularity of windows: then some windows only


@dataclass
class Gspice(Strategy):
    """What the granularities and the models have in common.

    Attributes:
        features: what utilities are predicted from.
        table: utilities by key; empty if there are trees.
        forest: trees; none if there is a table.
        otherwise: (T, max(1, bins)) the utility of what was never observed: the mean of its type (and position).
        values: (U,) utilities that occur, ascending.
        cumulative: (U,) the share of events that have at most as much.
        seed: of the choice among events of the same utility.
    """

    trees: ClassVar[int] = 0
    follows: ClassVar[bool] = True
    PANE: ClassVar[int] = 10  # events

    features: Features
    table: HashTable
    forest: Forest
    otherwise: Floats
    values: Floats
    cumulative: Floats
    seed: int = 1

    def __post_init__(self) -> None:
        self._pane, self._threshold = self.features.pane(), NOTHING
        self._occurrences = Occurrences(self.values, self.cumulative)

    @classmethod
    def fitted(
        cls,
        history: History,
        *,
        pane: int = PANE,
        pane_is_timed: bool = False,
        frequency_bin: int = 1,
        attribute_ranges: int = 10,
        attributes: tuple[str, ...] | None = None,
        positions: int = 20,
        depth: int = 12,
        seed: int = 1,
        **options: Any,
    ) -> Self:
        """Gather statistics and predict utilities (sections 6.2.2 and 6.2.3).

        Args:
            history: what to learn from.
            pane: L_ω, its length in events, or in microseconds if `pane_is_timed`.
            pane_is_timed: see there.
            frequency_bin: how many successive frequencies are one.
            attribute_ranges: how many ranges the values of an attribute are cut into.
            attributes: those that count; None: all that are numbers.
            positions: how many cells positions are put into.
            depth: the deepest that trees may be.
            seed: of the hashing and of the forest.
        """
        names = tuple(history.columns) if attributes is None else attributes
        edges = [edges_of(history.columns[name], attribute_ranges) for name in names]
        features = cls.features_of(
            len(history.names), names, edges, pane=pane, pane_is_timed=pane_is_timed, frequency_bin=frequency_bin,
            positions=positions, seed=seed,
        )  # fmt: skip
        return cls.of(features, cls.observed(history, features), depth=depth, seed=seed, **options)

    @classmethod
    def features_of(
        cls, types: int, attributes: tuple[str, ...], edges: Sequence[Floats], *, pane: int = PANE,
        pane_is_timed: bool = False, frequency_bin: int = 1, positions: int = 20, seed: int = 1,
    ) -> Features:  # fmt: skip
        """Return what utilities are predicted from; `edges` are those of the ranges of each attribute."""
        width = max((len(each) for each in edges), default=0)
        padded = np.full((len(edges), width), np.inf)
        for row, each in zip(padded, edges, strict=True):
            row[: len(each)] = each
        bins = positions if cls.level == "window" else 0
        return Features(types, pane, pane_is_timed, frequency_bin, attributes, padded, bins, seed)

    @classmethod
    def observed(cls, history: History, features: Features) -> Observed:
        """Gather statistics (section 6.2.2)."""
        types, at, begins = features.pane().follow(history.types, history.times)
        ranges = features.ranges(history.columns).reshape(len(features.attributes), len(types))
        keys, rows, worth, cell = cls._observations(history, features, features.keys(types, at, begins, ranges))
        seen, places = Observed.of(keys, history.types[rows], cell, worth)
        if not cls.trees:
            return seen
        chosen = rows[places]
        inputs = features.rows(types, at[chosen], begins[chosen], ranges[:, chosen])
        if cls.level == "window":
            inputs = np.concatenate([inputs, seen.cells[:, None]], axis=1)
        return seen.with_inputs(inputs)

    @classmethod
    def of(cls, features: Features, seen: Observed, *, depth: int = 12, seed: int = 1, **options: Any) -> Self:
        """Predict utilities from statistics (section 6.2.3)."""
        table, forest, utilities = HashTable.of(seen.keys, seen.utilities), no_trees(), seen.utilities
        if cls.trees:
            forest = Forest.trained(seen.inputs, utilities, seen.counts, trees=cls.trees, depth=depth, seed=seed)
            table, utilities = HashTable.of(np.zeros(0, np.int64), np.zeros(0)), forest.predict(seen.inputs)
        otherwise = seen.means(features.types, max(1, features.bins))
        occurrences = Occurrences.of(utilities, seen.counts / max(1.0, float(seen.counts.sum())))
        return cls(features, table, forest, otherwise, occurrences.values, occurrences.cumulative, seed, **options)

    @classmethod
    def _observations(cls, history: History, features: Features, keys: Ints) -> tuple[Ints, Ints, Floats, Ints]:
        """Return, of what is observed: its key, its event, the matches it contributed to, the cell of its position."""
        raise NotImplementedError

    def aim(self, share: float, partitions: int = 1) -> None:
        """Find the threshold: the least u with O_u^c ≥ ρ (section 6.2.3)."""
        self._threshold = self._occurrences.threshold(share)

    def _of_events(self, view: View) -> tuple[Ints, Ints, Ints, Ints]:
        types, at, begins = self._pane.follow(view.types, view.times)
        ranges = self.features.ranges(view.columns).reshape(len(self.features.attributes), len(view.types))
        return types, at, begins, ranges

    @property
    def _is_idle(self) -> bool:
        return self._threshold == NOTHING

    def state(self) -> Mapping[str, Any]:
        """Return the pane."""
        return self._pane.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with a pane."""
        self._pane.restore(dict(state))

    @property
    def threshold(self) -> Threshold:
        """What is dropped now."""
        return self._threshold


class GspiceS(Gspice):
    """gSPICE on the granularity of the stream (equation 6.1)."""

    level: ClassVar[Level] = "stream"

    @classmethod
    def _observations(cls, history: History, features: Features, keys: Ints) -> tuple[Ints, Ints, Floats, Ints]:
        worth = np.zeros(len(history.types))
        for query in history.queries:
            worth += query.weight * np.bincount(query.completed.rows, minlength=len(worth))
        rows = history.events()
        return keys[rows], rows, worth[rows], np.zeros(len(rows), np.int64)

    def utilities(self, view: View) -> Floats:
        """Return what each event is worth: (e,)."""
        types, at, begins, ranges = self._of_events(view)
        if self.trees:
            return self.forest.predict(self.features.rows(types, at, begins, ranges))
        return self.table.get(self.features.keys(types, at, begins, ranges), self.otherwise[view.types, 0])

    def decide(self, view: View) -> Decision:
        """Return which events are shed (algorithm 7)."""
        if self._is_idle:
            self._pane.pass_by(view.types, view.times)
            return KEEP_ALL
        utilities = self.utilities(view)
        return Decision(events=by_utility(utilities, *_pair(self._threshold), view.numbers, self.seed))


class GspiceW(Gspice):
    """gSPICE on the granularity of windows: with the position of an event (equation 6.4)."""

    level: ClassVar[Level] = "window"

    @classmethod
    def _observations(cls, history: History, features: Features, keys: Ints) -> tuple[Ints, Ints, Floats, Ints]:
        rows, windows = history.pairs()
        every = -(-len(rows) // _MOST_PAIRS)
        chosen = windows % every == 0
        rows, windows = rows[chosen], windows[chosen]
        at = cells(history.positions(rows, windows), history.sizes[windows], features.bins)[0]
        worth, order = np.zeros(len(rows)), windows * len(history.types) + rows
        ranked = np.argsort(order)
        for query in history.queries:
            done = query.completed
            kept = done.windows % every == 0
            wanted = (done.windows * len(history.types) + done.rows)[kept]
            np.add.at(worth, ranked[np.searchsorted(order, wanted, sorter=ranked)], query.weight)
        return with_position(keys[rows], at), rows, worth, at

    def decide(self, view: View) -> Decision:
        """Return which pairs are shed."""
        if self._is_idle:
            self._pane.pass_by(view.types, view.times)
            return KEEP_ALL
        types, at, begins, ranges = self._of_events(view)
        cell = cells(view.positions, view.sizes, self.features.bins)[0]
        if self.trees:
            inputs = self.features.rows(types, at, begins, ranges)[view.rows]
            utilities = self.forest.predict(np.concatenate([inputs, cell[:, None]], axis=1))
        else:
            keys = with_position(self.features.keys(types, at, begins, ranges)[view.rows], cell)
            utilities = self.table.get(keys, self.otherwise[view.types[view.rows], cell])
        numbers = view.numbers[view.rows] * 65_537 + view.windows
        return Decision(pairs=by_utility(utilities, *_pair(self._threshold), numbers, self.seed))


def _pair(threshold: Threshold) -> tuple[float, float]:
    return threshold.below, threshold.share


def no_trees() -> Forest:
    """Return a forest without trees."""
    whole, parts = np.zeros(0, np.int64), np.zeros(0)
    return Forest(whole, whole, parts, whole, whole, parts)


class GspiceSH(GspiceS):
    """Utilities of events of the stream, in a hash table."""

    name: ClassVar[str] = "gspice-sh"
    effort: ClassVar[Effort] = Effort("hash", "event")


class GspiceST(GspiceS):
    """Utilities of events of the stream, by a decision tree."""

    name: ClassVar[str] = "gspice-st"
    trees: ClassVar[int] = 1
    effort: ClassVar[Effort] = Effort("node", "event", 12)


class GspiceSF(GspiceS):
    """Utilities of events of the stream, by a random forest of ten trees."""

    name: ClassVar[str] = "gspice-sf"
    trees: ClassVar[int] = 10
    effort: ClassVar[Effort] = Effort("node", "event", 120)


class GspiceWH(GspiceW):
    """Utilities of events in windows, in a hash table."""

    name: ClassVar[str] = "gspice-wh"
    effort: ClassVar[Effort] = Effort("hash", "pair")


class GspiceWT(GspiceW):
    """Utilities of events in windows, by a decision tree."""

    name: ClassVar[str] = "gspice-wt"
    trees: ClassVar[int] = 1
    effort: ClassVar[Effort] = Effort("node", "pair", 12)


class GspiceWF(GspiceW):
    """Utilities of events in windows, by a random forest of ten trees."""

    name: ClassVar[str] = "gspice-wf"
    trees: ClassVar[int] = 10
    effort: ClassVar[Effort] = Effort("node", "pair", 120)
