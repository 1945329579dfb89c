"""What is shed of a micro-batch in a bucket: the rows, or the runs, that fit least into the time that is left.

Decisions depend on the rows, their arrival times, the time of the micro-batch, which Spark replays, and on the state.
So a batch that is run again sheds the same; and no clock is read, so that it leaves the same state, too. It must: where
two attempts at a batch leave different states, Spark may go on with the one in memory, and after a restart with the
other, which is on disk (a file of state that is there already is not written again).
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.arrow_values import numbers
from penstock.engine.engine import Engine
from penstock.engine.hooks import LEDGER_WIDTH, Hooks
from penstock.engine.hooks import SHED as SHED_BY_WORTH
from penstock.pattern import ast
from penstock.plan.tables import Bools, Floats, Ints
from penstock.shedding.chance import uniform
from penstock.shedding.overload.batches import BatchBound, BatchRates
from penstock.shedding.strategies.gspice import GspiceS
from penstock.shedding.strategies.strategy import Strategy
from penstock.shedding.views import NOTHING, Decision, View
from penstock.spark.worker.events import Rows
from penstock.spark.worker.judging import marked
from penstock.spark.worker.spec import SPARED, Spec
from penstock.spark.worker.times import times
from penstock.spark.worker.windows import Pairs, Positions
from penstock.spark.worker.work import UNITS, Work

_PARTS = 8  # of a batch, before each of which runs are dropped
_LEAST_PART = 256  # events
_TRIES, _NEAR = 6, 0.05  # shares that are tried; so near to what can be done is near enough


@dataclass(frozen=True)
class Shed:
    """What workers are told about shedding.

    Attributes:
        strategy: with its model.
        types: the names of the types that the model counts from 0 on; None if it knows none.
        bound: what to keep to.
        seed: of what is left to chance.
        arrival: the column with the arrival times.
        attributes: the numeric columns that the strategy reads.
        in_windows: the query whose windows it sheds from; None if it does not, or if there are none.
        unshed: the share of keys that are never shed.
        leaves_out: whether a row that is shed need not come to the engine: it is nobody's neighbour, and not counted.
        is_shown: whether rows that are shed come out.
        token: which `detect` this is of, so that workers keep no bucket of another one.
    """

    strategy: Strategy
    types: tuple[str, ...] | None
    bound: BatchBound
    seed: int
    arrival: str
    attributes: tuple[str, ...]
    in_windows: ast.Query | None
    unshed: float
    leaves_out: bool
    is_shown: bool
    token: str

    def lags(self, table: pa.Table, now: int) -> Ints:
        """Return how long rows have waited when the batch began, in microseconds; 0 if it is not known."""
        arrived, is_missing = times(table.column(self.arrival), self.arrival)
        return np.where(is_missing, 0, now - arrived)

    def view(
        self, table: pa.Table, type_name: str, ts: Ints, tie: Ints, pairs: Pairs | None = None
    ) -> tuple[View, Ints, Ints]:  # fmt: skip
        """Return rows as a strategy sees them: those of types that the model knows; which rows, and which pairs."""
        if self.types is None:
            codes = np.zeros(len(table), np.int64)
        else:
            column = table.column(type_name)
            codes = numbers(pc.index_in(column, pa.array(self.types, column.type)).cast(pa.int64()), -1)
        known = np.flatnonzero(codes >= 0)
        columns = {
            name: numbers(table.column(name).cast(pa.float64(), safe=False), np.nan)[known] for name in self.attributes
        }
        rows = np.arange(len(known))
        if pairs is None:
            whole = np.zeros(len(known), np.int64)
            return View(codes[known], ts[known], tie[known], columns, rows, rows, whole, whole + 1), known, known
        places = np.full(len(table), -1)
        places[known] = rows
        of = np.flatnonzero(places[pairs.rows] >= 0)
        windows, positions, sizes = (each[of] for each in (pairs.windows, pairs.positions, pairs.sizes))
        view = View(
            codes[known], ts[known], tie[known], columns, places[pairs.rows[of]], windows, positions, sizes
        )  # fmt: skip
        return view, known, of


@dataclass(frozen=True)
class Choice:
    """What is shed of n rows.

    Attributes:
        is_overdue: (n,) they cannot be on time.
        is_shed: (n,) the strategy gives them up.
        hidden: per query (S, n): hidden from the runs in a state; None: from none.
        worth: per query (S, n), with `least` (n,), as `penstock.Hooks` has it.
        windows: (n,) the windows that they are shed from, as `penstock.Hooks` has them; None: from none but all.
        marked: (n,) of keys that are never shed.
        spared: (n,) those of them that would have been shed.
        runs: how many runs there may be.
        chunk: how many rows are processed at once; None: as many as ever.
    """

    is_overdue: Bools
    is_shed: Bools
    hidden: tuple[Bools, ...] | None = None
    worth: tuple[Floats, ...] | None = None
    least: Floats | None = None
    windows: Ints | None = None
    marked: Bools | None = None
    spared: Bools | None = None
    runs: float = np.inf
    chunk: int | None = None

    def of(self, rows: Ints) -> Choice:
        """Return what is shed of some of the rows."""
        return Choice(
            self.is_overdue[rows],
            self.is_shed[rows],
            None if self.hidden is None else tuple(each[:, rows] for each in self.hidden),
            None if self.worth is None else tuple(each[:, rows] for each in self.worth),
            None if self.least is None else self.least[rows],
            None if self.windows is None else self.windows[rows],
            None if self.marked is None else self.marked[rows],
            None if self.spared is None else self.spared[rows],
            self.runs,
            self.chunk,
        )

    def sparing(self, is_marked: Bools, was_spared: Bools) -> Choice:
        """Return it without these rows, of which some were spared before."""
        spared = (self.is_shed | self.is_overdue | was_spared) & is_marked
        kept = ~is_marked
        return replace(
            self, is_shed=self.is_shed & kept, is_overdue=self.is_overdue & kept, marked=is_marked, spared=spared
        )  # fmt: skip

    def hooks(self, queries: int) -> list[Hooks]:
        """Return it as the engine takes it, for each query; `ledger` tells what was shed by its worth."""
        events = self.is_shed | self.is_overdue
        each = []
        for query in range(queries):
            tallied = self.worth is not None
            each.append(
                Hooks(
                    events=events if events.any() else None,
                    windows=self.windows,
                    states=None if self.hidden is None else self.hidden[query],
                    worth=None if self.worth is None else self.worth[query],
                    least=self.least,
                    ledger=np.zeros((len(events), LEDGER_WIDTH), np.int64) if tallied else None,
                )
            )
        return each


_ready: set[type[Strategy]] = set()  # in this process


def make_ready(shed: Shed) -> None:
    """Have a strategy decide about one event, once in a process.

    Where its code was never compiled that takes seconds, and then it is done when a stream begins; not in the first
    overload, when there is no time.
    """
    strategy = deepcopy(shed.strategy)
    if type(strategy) in _ready or strategy.level == "runs":
        return
    _ready.add(type(strategy))
    nought = np.zeros(1, np.int64)
    strategy.aim(0.5)
    strategy.decide(
        View(nought, nought, nought, dict.fromkeys(shed.attributes, np.zeros(1)), nought, nought, nought, nought + 1)
    )


class Shedder:
    """Decides what a bucket sheds.

    Args:
        spec: the detection, with what to do.
        state: from `state`, to go on from there.

    Attributes:
        units: what the work of the batch depends on, as far as it has been processed; see `BatchRates`.
    """

    def __init__(self, spec: Spec, state: Mapping[str, Any] | None = None) -> None:
        assert spec.shed is not None, "there is nothing to shed"
        self.shed, self.type_name, self._by = spec.shed, spec.type, spec.by
        self.strategy = deepcopy(spec.shed.strategy)
        windowed, before = spec.shed.in_windows, None if state is None else state.get("positions")
        self.positions = None if windowed is None else Positions(windowed, spec, before)
        is_known = state is not None and state.get("units") == UNITS  # else an older release fitted to other units
        self.rates = BatchRates.restored(state["rates"]) if state is not None and is_known else BatchRates()
        if state is not None and state["strategy"]:
            self.strategy.restore({name: np.array(array) for name, array in state["strategy"].items()})
        self.units, self._now, self._most_lag, self._rows = 0.0, 0, 0, 0
        make_ready(spec.shed)

    def begin(self, now: int, lags: Ints) -> None:
        """Begin a batch.

        Args:
            now: its time.
            lags: of the rows that it brings: rows that had to wait for others are not blamed for it.
        """
        self.units, self._now, self._most_lag, self._rows = 0.0, now, int(lags.max(initial=0)), len(lags)
        bound = self.shed.bound.bound
        in_time = lags[lags <= bound]  # others are of keys that are never shed, or count though they are shed
        self.rates.begin(now, float((in_time if len(in_time) else lags).max(initial=0)), bound)

    def end(self) -> None:
        """End a batch."""
        expected = self.shed.bound.expected(self._rows, self.units, self.rates)
        self.rates.end(self._rows, self.units, expected)

    def choose(self, rows: Rows, engine: Engine) -> Choice:
        """Return what is shed of the rows of the batch, before an engine gets them."""
        choice = self._chosen(rows, engine)
        if not self.shed.unshed:
            return choice
        was_spared = np.zeros(len(rows), np.bool_) if rows.worth is None else rows.worth == SPARED
        return choice.sparing(marked(rows.table, self._by, self.shed.unshed, self.shed.seed), was_spared)

    def _chosen(self, rows: Rows, engine: Engine) -> Choice:
        """Choose rows, so that the work on those that are left can be done; or say how many runs there may be."""
        pairs = None if self.positions is None else self.positions.take(rows)
        bound, is_about_runs = self.shed.bound, self.strategy.level == "runs"
        lags = np.minimum(self.shed.lags(rows.table, self._now), self._most_lag)
        doable = bound.doable(self._rows, self.rates)
        if is_about_runs:
            is_overdue: Bools = lags > bound.longest_lag(self._rows, min(doable, self.rates.done), self.rates)
            size = int((~is_overdue).sum())
            chunk = max(_LEAST_PART, -(-size // _PARTS))
            return Choice(is_overdue, np.zeros(len(rows), np.bool_), runs=doable / max(1, size), chunk=chunk)
        work = Work.of(rows.table, self.type_name, self._by, engine, by_query=self.strategy.level == "run")
        likely = min(doable, float(work.of_rows.sum()))
        is_overdue = lags > bound.longest_lag(self._rows, likely, self.rates)
        if self.strategy.level == "stream":
            choice = Choice(is_overdue, self._of_stream(rows, is_overdue, work.of_rows, doable))
            self.units = _left(choice, work, None)
            return choice
        return self._of_rows_to(doable, rows, is_overdue, pairs, work)

    def _of_stream(self, rows: Rows, is_overdue: Bools, work: Floats, doable: float) -> Bools:
        """Return which rows go: those of least worth, as the strategy has said before the shuffle; or by chance."""
        is_shed, too_much = np.zeros(len(rows), np.bool_), work[~is_overdue].sum() - doable
        if too_much <= 0:
            return is_shed
        chance = uniform(self.shed.seed, rows.tie)
        has_worth = rows.worth is not None and isinstance(self.strategy, GspiceS)  # to others all are worth the same
        worth = rows.worth if rows.worth is not None and has_worth else np.zeros(len(rows))
        here = np.flatnonzero(~is_overdue & ~np.isnan(worth))  # what has no worth is not known, and stays
        order = here[np.lexsort((chance[here], worth[here]))]
        is_shed[order[np.cumsum(work[order]) - work[order] / 2 < too_much]] = True
        return is_shed

    def _of_rows_to(
        self, doable: float, rows: Rows, is_overdue: Bools, pairs: Pairs | None, work: Work
    ) -> Choice:  # fmt: skip
        """Return what is shed of rows so that no more work is left than can be done; take note of how much that is.

        A strategy is told a share of the events. What that saves depends on which of them it gives up: those that no
        run waits for save next to nothing. So shares are tried, halving what is between too few and too many.
        """
        before = {name: np.array(array) for name, array in self.strategy.state().items()}
        total = float(work.of_rows[~is_overdue].sum())
        low, high, share = 0.0, 1.0, max(0.0, 1.0 - doable / total) if total else 0.0
        for _ in range(_TRIES):
            self.strategy.restore({name: array.copy() for name, array in before.items()})
            choice = self._of_rows(rows, is_overdue, share, pairs)
            # what the engine sheds by its worth is not known beforehand
            self.units = _left(choice, work, pairs) if choice.worth is None else (1.0 - share) * total
            if not share or choice.worth is not None or abs(self.units - doable) <= _NEAR * doable:
                break
            low, high = (share, high) if self.units > doable else (low, share)
            share = (low + high) / 2
        return choice

    def _of_rows(self, rows: Rows, is_overdue: Bools, share: float, pairs: Pairs | None) -> Choice:
        is_shed = np.zeros(len(rows), np.bool_)
        if not share and not self.strategy.state():
            return Choice(is_overdue, is_shed)
        self.strategy.aim(share)
        view, known, of = self.shed.view(rows.table, self.type_name, rows.ts, rows.tie, pairs)
        decision = self.strategy.decide(view)
        if not share or decision is NOTHING:
            return Choice(is_overdue, is_shed)
        if pairs is not None:
            return self._of_pairs(decision, view, pairs, of, is_overdue)
        for part in (decision.events, decision.pairs):
            if part is not None:
                is_shed[known[part]] = True
        hidden = (
            None if decision.hidden is None else tuple(_spread(e, known, len(rows), False) for e in decision.hidden)
        )
        worth, least = decision.worth, None
        if worth is not None and decision.least is not None:
            least = np.full(len(rows), -np.inf)
            least[known] = decision.least
            worth = tuple(_spread(each, known, len(rows), 0.0) for each in worth)
        return Choice(is_overdue, is_shed & ~is_overdue, hidden, worth, least)

    def _of_pairs(self, decision: Decision, view: View, pairs: Pairs, of: Ints, is_overdue: Bools) -> Choice:
        """Return what is shed from windows that share their runs.

        An event may be shed from some of its windows. From the runs in a state it is hidden if it would be in all of
        its windows; and what it is worth to all runs of its windows together must not be above what one window asks.
        """
        size, count = len(is_overdue), len(pairs.rows)
        chosen = np.zeros(count, np.bool_)
        for part in (decision.pairs, None if decision.events is None else decision.events[view.rows]):
            if part is not None:
                chosen[of[part]] = True
        is_shed = pairs.in_all(chosen) & ~is_overdue
        hidden, worth, least = None, None, None
        if decision.hidden is not None:
            hidden = tuple(pairs.in_all(_spread(each, of, count, False)) for each in decision.hidden)
        if decision.worth is not None and decision.least is not None:
            worth = tuple(pairs.mean(_spread(each, of, count, 0.0)) for each in decision.worth)
            least = np.full(size, -np.inf)
            least[pairs.rows[of]] = decision.least
        windows = pairs.bits(chosen) if chosen.any() else None
        return Choice(is_overdue, is_shed, hidden, worth, least, windows)

    def drop_runs(self, engine: Engine, choice: Choice, place: int, rows: int) -> int:
        """Drop runs before rows are processed, if there are too many; return how many."""
        if self.strategy.level != "runs":
            return 0
        queries = range(len(engine.queries))
        count = sum(int(engine.open_runs(query).sum()) for query in queries)
        dropped = 0
        if count > choice.runs:
            utilities = [self.strategy.run_utilities(query) for query in queries]
            seed = self.shed.seed + self._now // 1000 + place
            dropped = engine.drop_runs_of_all(count - int(choice.runs), utilities, seed=seed)
        self.units += rows * float(count - dropped)
        return dropped

    def state(self) -> dict[str, Any]:
        """Return all that must survive."""
        positions = {} if self.positions is None else {"positions": self.positions.state()}
        return {"rates": self.rates.state(), "units": UNITS, "strategy": dict(self.strategy.state()), **positions}


def was_shed(choice: Choice, hooks: list[Hooks]) -> tuple[Bools, Bools]:
    """Return which rows no query has seen, of those that came to the engine, and which were hidden from some runs."""
    is_shed = choice.is_shed | choice.is_overdue
    ledgers = [hook.ledger for hook in hooks if hook.ledger is not None]
    if ledgers:
        is_shed = is_shed | np.logical_and.reduce([ledger[:, SHED_BY_WORTH] > 0 for ledger in ledgers])
    partly = np.zeros(len(is_shed), np.bool_) if choice.windows is None else (choice.windows != 0) & ~is_shed
    if choice.hidden is not None:
        is_shed = is_shed | np.logical_and.reduce([each.all(axis=0) for each in choice.hidden])
        partly = (partly | np.logical_or.reduce([each.any(axis=0) for each in choice.hidden])) & ~is_shed
    return is_shed, partly


def _left(choice: Choice, work: Work, pairs: Pairs | None) -> float:
    """Return the work that is left when rows are shed, be it from some of their windows, or hidden from some runs."""
    each = work.of_rows.copy() if choice.hidden is None else work.of_rows - work.hidden_from(choice.hidden)
    if choice.windows is not None and pairs is not None:
        windows = np.bincount(pairs.rows, minlength=len(each))
        each *= 1.0 - np.bitwise_count(choice.windows) / np.maximum(windows, 1)
    return float(each[~(choice.is_shed | choice.is_overdue)].sum())


def _spread(values: Any, known: Ints, size: int, otherwise: Any) -> Any:
    """Return (S, size) of what is known of some columns."""
    result = np.full((len(values), size), otherwise, values.dtype)
    result[:, known] = values
    return result
