"""The engine of an operator: slices of the stream in, what they brought and cost out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock.engine.engine import Engine
from penstock.engine.hooks import Hooks
from penstock.engine.matches import Matches
from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.plan.tables import Bools, Floats, Ints
from penstock.runtime.costs import OPEN, SHED, Costs
from penstock.runtime.splitting import split
from penstock.runtime.stream import Stream
from penstock.runtime.walking import Walk
from penstock.shedding.chance import uniform
from penstock.shedding.history import Elements, History, Progress
from penstock.shedding.positions import cells
from penstock.shedding.quality import Found
from penstock.shedding.views import Decision, View

LEDGER_WIDTH = 5
_HIDDEN_EVERY = 16  # slices: so often it is counted in real time how many runs events are hidden from


@dataclass(frozen=True)
class Step:
    """What a slice brought.

    Attributes:
        matches: as the engine gives them, of pairs.
        found: the same, to be compared.
        ledgers: per query (n, 5) for the pairs of the slice, 0 for those that were shed; (0, 5) if none are kept.
        is_shed: (n,) pairs that were shed.
        hidden: (n,) of the runs that an event would have met in the window, the share that it was hidden from; the one
            that it may open counts as a run. None if nothing was hidden.
        met: (n,) so many it would have met: each was decided about. None if that was not counted.
    """

    matches: Matches
    found: Found
    ledgers: list[Ints]
    is_shed: Bools
    hidden: Floats | None = None
    met: Ints | None = None


class Counting:
    """What is counted of a query while it is observed: the arrays that `Hooks` adds to."""

    def __init__(self, types: int, bins: int, states: int) -> None:
        self.open_runs: Ints = np.zeros((types * bins, states), np.int64)
        self.moves: Ints = np.zeros((states, states), np.int64)
        self.matches: list[Elements] = []
        self.abandoned: list[Elements] = []


class Operator:
    """Matches queries in a stream, slice by slice, and sheds what it is told to.

    Args:
        queries: with their weights; they have the same WINDOW and PARTITION BY, or no WINDOW.
        is_split: whether windows are matched on their own, as strategies that shed from windows need.
        bins: into how many cells positions are put when the operator is observed; None: as many as a window has events.
        names: of types, as a model has them (`History.names`); without, types are numbered as they come.
    """

    def __init__(
        self, queries: Sequence[tuple[ast.Query, float]], *, is_split: bool, bins: int | None = None,
        names: tuple[str, ...] = (), **options: Any,
    ) -> None:  # fmt: skip
        self.queries, self.weights = [query for query, _ in queries], [weight for _, weight in queries]
        self.stream = Stream(self.queries, is_split=is_split, names=names)
        asked = [
            replace(split(query) if is_split else query, name=str(place)) for place, query in enumerate(self.queries)
        ]  # so that it is known whose a match is, whatever queries are called
        self._asked, self._options = asked, options
        # Whether a run that takes an event may stay as it was, too, so that an event may double the runs.
        self.branches = any(query.select.policy not in (Policy.FIRST, Policy.STRICT) for query in self.queries)
        self.engine = Engine(asked, plan="automaton", **options)
        self._bins = bins
        self._limit = self.queries[0].limit if is_split else None
        self._walks = [Walk(detector.plan) for detector in self.engine._detectors]
        self.counting: list[Counting] | None = None
        self.keeps_ledger = True  # whether it is noted what each pair takes: a virtual clock needs it
        self.counts: Bools | None = None  # (W,) the windows that are observed; None: all
        # Whether a pair that is shed need not come to the engine at all: nothing counts or neighbours it there.
        self._may_leave_out = all(_takes_no_note(query, is_split=is_split) for query in self.queries)
        self._is_limited: Bools = np.zeros(0, np.bool_)
        self._closed = 0  # windows that were over when runs were last let go
        self._hidings, self._hidden_share = 0, 0.0  # slices with hidden events; what was hidden when last counted
        self._is_told = False  # whether the engine tells which runs a negated event has ended

    def take(self, events: Any) -> None:
        """Take the events of a stream."""
        self.stream.take(events)
        self._is_limited = np.zeros(len(self.stream.sizes), np.bool_)

    @property
    def bins(self) -> int:
        """B, the cells of positions."""
        return self._bins or (max(1, round(float(self.stream.sizes.mean()))) if len(self.stream.sizes) else 1)

    def observe(self) -> None:
        """Count from now on what strategies learn from."""
        types = len(self.stream.names)
        has_negations = any(isinstance(node, ast.Negation) for query in self.queries for node in ast.walk(query))
        if has_negations and not self._is_told and not self.engine.work["events"]:
            self._is_told = True
            self.engine = Engine(self._asked, plan="automaton", ended=True, **self._options)
        self.counting = [Counting(types, self.bins, len(states)) for states in self.engine.states]

    # --- slices -----------------------------------------------------------------------------------------------

    def process(self, start: int, view: View, decision: Decision) -> Step:
        """Process a slice that begins with event `start`."""
        self.close_windows(start)
        is_shed = np.zeros(len(view), np.bool_)
        if decision.pairs is not None:
            is_shed |= decision.pairs
        if decision.events is not None:
            is_shed |= decision.events[view.rows]
        is_over = self._is_limited[view.windows] if self._limit is not None else np.zeros(len(view), np.bool_)
        fed = np.flatnonzero(~(is_shed | is_over) if self._may_leave_out else ~is_over)
        has_ledgers = self.keeps_ledger or decision.worth is not None
        ledgers = [np.zeros((len(view) * has_ledgers, LEDGER_WIDTH), np.int64) for _ in self.queries]
        taken = [np.zeros((len(fed), LEDGER_WIDTH), np.int64) for _ in self.queries]
        batch = self.stream.batch(start + view.rows[fed], view.windows[fed])
        left_out = None if self._may_leave_out else is_shed[fed]
        is_counted = decision.hidden is not None and self._counts_hidden()
        hooks = [
            self._hooks(query, start, view, fed, decision, left_out, taken[query], is_counted)
            for query in range(len(self.queries))
        ]
        matches = self.engine.process(batch, hooks)
        self._note_abandoned()
        hidden = np.full(len(view), self._hidden_share) if decision.hidden is not None else None
        met: Ints | None = None
        if hidden is not None and is_counted:
            of_queries = [each.open_runs for each in hooks if each.open_runs is not None]
            met, hidden[:] = np.zeros(len(view), np.int64), 0.0
            met[fed] = np.sum([each.sum(axis=1) for each in of_queries], axis=0)
            hidden[fed] = _hidden(met[fed], taken)
            self._hidden_share = float(hidden.mean()) if len(hidden) else 0.0
            self._count_met(start, view, fed, of_queries)
        for ledger, rows in zip(ledgers, taken, strict=True):
            if has_ledgers:
                ledger[fed] = rows
        if decision.worth is not None:
            is_shed |= np.logical_and.reduce([ledger[:, SHED] > 0 for ledger in ledgers])
        return Step(matches, self._found(matches), ledgers, is_shed, hidden, met)

    def _counts_hidden(self) -> bool:
        """Return whether it is counted in this slice how many runs events are hidden from: it takes a while."""
        self._hidings += 1
        return self.keeps_ledger or self._hidings % _HIDDEN_EVERY == 1

    def _count_met(self, start: int, view: View, fed: Ints, met: list[Ints]) -> None:
        """Count the runs that events met where they are counted, too, if the operator is observed."""
        if self.counting is not None:
            cell = self._cells(start, view, fed)
            for counting, each in zip(self.counting, met, strict=True):
                np.add.at(counting.open_runs, cell[cell >= 0], each[cell >= 0])

    def _cells(self, start: int, view: View, fed: Ints) -> Ints:
        """Return where what happens to pairs is counted, by type and position; -1: nowhere."""
        windows = view.windows[fed]
        # Where matches are counted, too. These are in all cells of a position, in parts; the kernel counts whole runs,
        # so they are in one of the cells, by a hash of what is the same in every part of a history that is cut up.
        place, many = cells(view.positions[fed], self.stream.sizes_met(start + view.rows[fed], windows), self.bins)
        if int(many.max(initial=1)) > 1:
            place = place + (uniform(1, view.times[view.rows[fed]], view.positions[fed]) * many).astype(np.int64)
        cell = view.types[view.rows[fed]] * self.bins + place
        return cell if self.counts is None else np.where(self.counts[windows], cell, -1)

    def _hooks(
        self, query: int, start: int, view: View, fed: Ints, decision: Decision, left_out: Bools | None, ledger: Ints,
        is_counted: bool,
    ) -> Hooks:  # fmt: skip
        hooks: dict[str, Any] = {"events": left_out}
        if self.keeps_ledger or decision.worth is not None or is_counted:
            hooks["ledger"] = ledger
        if self.counting is not None:
            counting = self.counting[query]
            hooks |= {"cells": self._cells(start, view, fed), "open_runs": counting.open_runs, "moves": counting.moves}
        if decision.hidden is not None:
            hooks["states"] = decision.hidden[query][:, fed]
        if decision.hidden is not None and is_counted:  # each pair is a cell
            met = np.zeros((len(fed), len(decision.hidden[query])), np.int64)
            hooks |= {"cells": np.arange(len(fed)), "open_runs": met}
        if decision.worth is not None and decision.least is not None:
            hooks["worth"], hooks["least"] = decision.worth[query][:, fed], decision.least[fed]
        return Hooks(**hooks)

    def finish(self) -> Found:
        """End the stream; return the matches that only that completes."""
        return self._found(self.engine.flush())

    def _found(self, matches: Matches) -> Found:
        parts = []
        for layout, chunk in matches.chunks:
            query = int(layout.query or 0)
            laid = chunk.laid_out()
            if not len(laid):
                continue
            rows, windows = self.stream.of_pairs(laid.seq)
            of_matches = windows[laid.offsets[:-1]] * self.stream.is_split  # all are of one, if there are none
            kept = self._first_ones(of_matches)
            if self.counting is not None:
                walk = self._walks[query]
                elements = walk.elements(laid.offsets, laid.variables.astype(np.int64), rows, windows)
                self.counting[query].matches.append(elements)
            found = Found.of(query, of_matches, laid.offsets, laid.variables.astype(np.int64), rows)
            parts.append(Found(found.queries[kept], found.windows[kept], found.events[kept]))
        return Found.joined(parts)

    def _note_abandoned(self) -> None:
        """Note the runs that a negated event has ended, and this event: it is worth as much as one that completes."""
        if self.counting is None or not self._is_told:
            return
        ended, first = self.engine.ended(), 0
        for layout, chunk in ended.runs.chunks:
            laid, query = chunk.laid_out(), int(layout.query or 0)
            by, first = ended.by[first : first + len(laid)], first + len(laid)
            rows, windows = self.stream.of_pairs(laid.seq)
            variables = laid.variables.astype(np.int64)
            ending = self.stream.of_pairs(by)
            elements = self._walks[query].abandoned(laid.offsets, variables, rows, windows, ending, by >= 0)
            self.counting[query].abandoned.append(elements)

    def _first_ones(self, windows: Ints) -> Bools:
        """Return which matches a LIMIT lets pass, and note the windows that it has closed."""
        if self._limit is None:
            return np.ones(len(windows), np.bool_)
        kept = np.zeros(len(windows), np.bool_)
        kept[np.unique(windows, return_index=True)[1]] = True
        kept &= ~self._is_limited[windows]
        self._is_limited[windows] = True
        return kept

    # --- runs -------------------------------------------------------------------------------------------------

    def open_runs(self) -> int:
        """Return how many runs are open."""
        return sum(int(self.engine.open_runs(query).sum()) for query in range(len(self.queries)))

    def close_windows(self, now: int) -> None:
        """Let the runs go of windows that are over when event `now` comes: in a partition, only its events end runs."""
        cut = self.stream.cut
        over = cut.over(now) if self.stream.is_split else 0
        if over <= self._closed:
            return
        self._closed = over
        left = np.where(cut.is_over(self._windows(), now), 0.0, np.nan)
        self._drop(np.iinfo(np.int64).max, [np.zeros((len(walk.ends), 1)) for walk in self._walks], left, None)

    def drop_runs(self, count: int, utilities: Sequence[Floats], now: int, seed: int, kept: Bools | None) -> int:
        """Drop the runs of least utility, over all queries; return how many.

        Args:
            count: how many.
            utilities: per query (S, B) by state and by what is left of the window, the least first.
            now: the event that comes next.
            seed: of the choice among runs of the same utility.
            kept: (W,) the windows whose runs stay.
        """
        if not self.stream.is_split:
            return self._drop(count, utilities, None, seed)
        left = self._left(now)
        if kept is not None:
            left[kept[self._windows()]] = np.nan
        return self._drop(count, utilities, left, seed)

    def _drop(self, count: int, utilities: Sequence[Floats], left: Floats | None, seed: int | None) -> int:
        return self.engine.drop_runs_of_all(count, utilities, left=left, seed=seed)

    def _windows(self) -> Ints:
        """Return the windows of the engine's partitions."""
        return self.engine.partitions()[:, 0].astype(np.int64)

    def _left(self, now: int) -> Floats:
        """Return the share of its events that each window has left, by the engine's partition."""
        return self.stream.left(self._windows(), now)

    # --- history ----------------------------------------------------------------------------------------------

    def history(self, stop: int, costs: Costs) -> History:
        """Return what was observed of events 0 .. stop-1."""
        assert self.counting is not None, "observe() was not called"
        stream, bins, cut = self.stream, self.bins, self.stream.cut
        names = stream.names
        queries = tuple(
            Progress(
                weight, walk.ends, Elements.joined(counting.matches), Elements.joined(counting.abandoned),
                counting.moves, counting.open_runs.reshape(len(names), bins, len(walk.ends)),
                walk.rewards(costs, place), _named(query, names), stream.reach(query, stop),
            )
            for place, (query, weight, walk, counting) in enumerate(
                zip(self.queries, self.weights, self._walks, self.counting, strict=True)
            )
        )  # fmt: skip
        part = slice(0, stop)
        has_opened = cut.opens < stop
        return History(
            names, stream.types[part], stream.times[part],
            {name: column[part] for name, column in stream.columns.items()},
            cut.low[part], cut.high[part], cut.places[part], cut.starts, cut.sizes, bins, queries,
            counts=None if has_opened.all() else has_opened, foreseen=cut.foreseen[part],
        )  # fmt: skip


def _hidden(met: Ints, ledgers: list[Ints]) -> Floats:
    """Return the share of the runs that events met, of all queries, that they were hidden from."""
    seen = np.sum([ledger[:, OPEN] for ledger in ledgers], axis=0)
    return np.where(met > 0, 1.0 - seen / np.maximum(met, 1), 0.0)


def _named(query: ast.Query, names: tuple[str, ...]) -> Floats:
    """Return how often a pattern names each type."""
    named = np.zeros(len(names))
    for event in ast.events(query.pattern):
        for place, name in enumerate(names):
            named[place] += not event.types or name in event.types
    return named


def _takes_no_note(query: ast.Query, *, is_split: bool) -> bool:
    """Return whether an event that is shed may stay away from the engine: it is no neighbour, and nobody counts it."""
    if query.select.policy is Policy.STRICT:
        return False
    if not is_split:
        has_previous = any(isinstance(node, ast.Previous) for node in ast.walk(query))
        return isinstance(query.within, ast.TimeSpan) and not has_previous and query.window is None
    window = query.window
    assert window is not None
    if isinstance(query.within, ast.TimeSpan):
        return True
    return (
        isinstance(window.length, ast.CountSpan)
        and isinstance(query.within, ast.CountSpan)
        and query.within.events >= window.length.events
    )
