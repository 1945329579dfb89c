"""The loop: take a slice from the queue, ask the detector what must go and the strategy which, process the rest."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import numpy as np

from penstock.plan.tables import Bools, Floats, Ints
from penstock.runtime.clocks import Clock, VirtualClock
from penstock.runtime.costs import OPEN, Costs
from penstock.runtime.judging import Judge
from penstock.runtime.matching import Operator, Step
from penstock.runtime.measures import Moment, Run
from penstock.runtime.pacing import Pace
from penstock.runtime.relearning import Learner
from penstock.runtime.splitting import SplitError
from penstock.shedding.chance import uniform
from penstock.shedding.overload.load import KEEP_ALL, Command, Detector, Load
from penstock.shedding.overload.queueing import longest_queue, partitions
from penstock.shedding.quality import Found
from penstock.shedding.strategies.strategy import Strategy
from penstock.shedding.views import NOTHING, Decision, View

_SLICES = 16  # in the time between f · bound and the bound
_LEAST, _MOST = 8, 4096  # events of a slice
_ROOM = 4  # the part of this time that a slice may take of which nothing is shed, and of what is left of the bound
_LONG = 4.0  # times the bound: over so long the mean time of an unshed event is taken
_SMOOTH = 0.3  # how much the newest slice counts in means


@dataclass
class Shedder:
    """A strategy and the detector that tells it how much.

    Attributes:
        strategy: what to shed.
        detector: when, and how much.
        bound: LB, in seconds.
        f: the share of the bound from which on is shed.
        unshed: the share of windows that are never shed, so that there is something to learn from and to compare with.
        seed: of the choice of these.
    """

    strategy: Strategy
    detector: Detector
    bound: float
    f: float = 0.8
    unshed: float = 0.0
    seed: int = 1

    def marked(self, windows: np.ndarray) -> Bools:
        """Return which windows are never shed."""
        return uniform(self.seed + 7919, windows) < self.unshed if self.unshed else np.zeros(len(windows), np.bool_)


@dataclass
class Loop:
    """Runs an operator over the events it has taken.

    Attributes:
        operator: that has taken the events.
        clock: that says when they arrive, and how time passes.
        costs: of work, in virtual time.
        shedder: None: nothing is shed.
        full_time: the mean seconds of an event when nothing is shed, as far as it is known beforehand.
        slice_events: how many events are taken at once, at most; None: as the bound says.
        learner: that builds new models; None: the model stays. It needs a shedder with unshed windows, unless runs are
            dropped.
    """

    operator: Operator
    clock: Clock
    costs: Costs
    shedder: Shedder | None = None
    full_time: float = 0.0
    slice_events: int | None = None
    learner: Learner | None = None
    run: Run = field(init=False)
    _unit_time: float = field(default=0.0, init=False)  # of an event or a pair, lately
    _full_unit: float = field(default=0.0, init=False)  # the same, if nothing is shed
    _pace: Pace = field(default_factory=Pace, init=False)
    _open: int = field(default=0, init=False)  # runs
    _aimed: tuple[float, int] = field(default=(0.0, 1), init=False)
    _marked: Bools = field(default_factory=lambda: np.zeros(0, np.bool_), init=False)  # windows that are never shed
    _judge: Judge | None = field(default=None, init=False)

    def __call__(self, start: int = 0, stop: int | None = None) -> Run:
        """Run over events start .. stop-1."""
        stream, clock = self.operator.stream, self.clock
        stop = stream.size if stop is None else stop
        self.run = Run(np.zeros(stop - start), shed_by_cell=np.zeros((len(stream.names), 20)))
        found, at = [], start
        self._unit_time = self.full_time * (stop - start) / max(1, self._work(stop) - self._work(start))
        self._full_unit = self._unit_time
        self.operator.keeps_ledger = isinstance(clock, VirtualClock)
        self._open = self.operator.open_runs()
        made = self.operator.engine.work["runs_created"] - self._open
        self._begin()
        while at < stop:
            if clock.arrived() <= at - start:
                clock.wait(at - start)
            at = self._let_go(at, start, stop)
            if at >= stop:
                break
            step, at = self._slice(at, start, stop)
            found.append(step.found)
        self.run.found = Found.joined([*found, self.operator.finish()])
        self.run.runs_made = self.operator.engine.work["runs_created"] - made
        self.run.estimate = self._judge.estimate() if self._judge is not None else None
        return self.run

    def _begin(self) -> None:
        """Mark the windows that are never shed; observe them, if there is something to learn."""
        shedder, windows = self.shedder, np.arange(len(self.operator.stream.sizes))
        if shedder is None:
            return
        if shedder.unshed and not self.operator.stream.is_split:
            raise SplitError(
                "there are no windows that could be left unshed\n"
                "  fix: unshed=0, or a query with WINDOW and is_split=True"
            )
        self._marked = shedder.marked(windows)
        self._judge = Judge(self.operator, self._marked) if shedder.unshed else None
        if self.learner is not None:
            self.operator.counts = None if shedder.strategy.level == "runs" else self._marked
            self.operator.observe()

    def _let_go(self, at: int, start: int, stop: int) -> int:
        """Let events go unseen that cannot be on time any more; return the first that can."""
        if self.shedder is None:
            return at
        now = self.clock.now()
        if now - self.clock.arrivals[at - start] <= 0.5 * self.shedder.bound:
            return at
        # In real time another process may hold this one up for a while, which no estimate knows.
        part = 4 if isinstance(self.clock, VirtualClock) else 2
        expected = (self._work(self._slice_end(at, stop)) - self._work(at)) * self._unit_time
        margin = max((1 - self.shedder.f) * self.shedder.bound / part, 2 * expected)
        latest = now - max(self.shedder.bound - margin, 0.5 * self.shedder.bound)
        overdue = min(int(np.searchsorted(self.clock.arrivals, latest)), self.clock.arrived(), stop - start)
        if overdue + start <= at:
            return at
        late = slice(at - start, overdue)
        self.run.latencies[late] = now - self.clock.arrivals[late]
        self.run.overdue += overdue + start - at
        if self._judge is not None:
            self._judge.let_go(at, overdue + start)
        return overdue + start

    def _slice_end(self, at: int, stop: int) -> int:
        """Return where a slice ends that is short against the time between f · bound and the bound."""
        if self.slice_events is not None or self.shedder is None or not self._unit_time:
            return min(stop, at + (self.slice_events or 1024))
        seconds = (1 - self.shedder.f) * self.shedder.bound / _SLICES
        end = self._after(at, seconds / max(self._unit_time, self._deciding_time()))
        return min(stop, max(at + _LEAST, min(end, at + _MOST)))

    def _unshed_end(self, at: int, end: int) -> int:
        """Return where a slice ends of which nothing is shed: sooner, if it is long because much was shed lately."""
        if self.slice_events is not None or self.shedder is None or not self._full_unit:
            return end
        latest = self._after(at, (1 - self.shedder.f) * self.shedder.bound / _ROOM / self._full_unit)
        return min(end, max(at + _LEAST, latest))

    def _paced_end(self, at: int, end: int, start: int, command: Command, runs: int) -> int:
        """Return where a slice ends that is on time though each event doubles the runs: sooner, if they branch.

        In real time each slice takes some 150 µs besides, so that slices as short as that would not pay.
        """
        if self.slice_events is not None or self.shedder is None or not self.operator.branches:
            return end
        if not isinstance(self.clock, VirtualClock):
            return end
        waited = max(0.0, self.clock.now() - float(self.clock.arrivals[at - start]))
        of_events = self.shedder.strategy.level != "runs"
        unit = self.costs.pair * 1e-9 + self._pace.by_run * max(1, self._open - runs)
        unit = max(self._deciding_time(), unit * (1 - command.share * of_events))
        room = max(0.0, self.shedder.bound - waited) / _ROOM
        near = min(at + _LEAST, self.operator.stream.size)
        return min(end, at + self._pace.events(room, unit * (self._work(near) - self._work(at)) / (near - at)))

    def _after(self, at: int, units: float) -> int:
        """Return the first event that comes so many events and pairs after another, or later."""
        work = self.operator.stream.work
        # A whole number: numpy would make floats of all of them first, which takes longer than a slice.
        return int(work.searchsorted(math.ceil(min(int(work[at]) + units, int(work[-1]) + 1))))

    def _work(self, at: int) -> int:
        """Return how many events, and pairs of an event and a window, come before an event."""
        return int(self.operator.stream.work[at])

    def _deciding_time(self) -> float:
        """Return what decisions about a pair may take, in virtual time: shedding that begins may cost more first."""
        assert self.shedder is not None
        return self.costs.of_decision(self.shedder.strategy.effort) * 1e-9

    def _slice(self, at: int, start: int, stop: int) -> tuple[Step, int]:
        """Process the next slice; return what it brought and where it ended."""
        clock, begun, spent_before = self.clock, time.perf_counter(), time.thread_time()
        end = self._slice_end(at, stop)
        if not isinstance(clock, VirtualClock):  # only what is there
            end = min(end, max(at + 1, clock.arrived() + start))
        arrived = clock.arrived()
        asked = time.thread_time()
        command, runs = self._command(at, start, arrived, end - at)
        if not command.share and not runs:
            end = self._unshed_end(at, end)
        end = self._paced_end(at, end, start, command, runs)
        told = time.thread_time()
        view = self.operator.stream.view(at, end)
        seen = time.thread_time()
        dropped = self._drop_runs(runs, at) if runs > 0 else 0
        decision = self._decide(view, command)
        spared = self._spared(decision, view) if decision is not NOTHING else NOTHING
        self.run.deciding += time.thread_time() - seen + told - asked
        step = self.operator.process(at, view, spared)
        seconds = self._seconds(view, step, decision)
        done = clock.work(at - start, seconds)
        arrivals = clock.arrivals[at - start : end - start]
        latencies = done - arrivals
        self.run.latencies[at - start : end - start] = latencies
        spent = float(seconds.sum()) if isinstance(clock, VirtualClock) else time.perf_counter() - begun
        self._note(view, step, command, latencies, max(arrived - (at - start), 0), dropped)
        self._look_back(at, end, view, decision, step, command)
        self.run.working += time.thread_time() - spent_before
        self._learn_times(spent, at, end, command)
        return step, end

    def _look_back(
        self, at: int, end: int, view: View, decision: Decision, step: Step, command: Command
    ) -> None:  # fmt: skip
        """Judge what was shed, and learn from what was not."""
        is_shedding = command.share > 0 or bool(command.runs)
        if self._judge is not None:
            self._judge.note(at, view, decision, step, is_shedding=is_shedding)
        if self.learner is None or self.shedder is None:
            return
        strategy = self.learner.note(
            self.operator, self.shedder.strategy, self.costs, step.found, end, self._marked
        )  # fmt: skip
        if strategy is not None:
            strategy.restore(self.shedder.strategy.state())
            self.shedder.strategy, self._aimed = strategy, (0.0, 1)

    # --- decisions --------------------------------------------------------------------------------------------

    def _command(self, at: int, start: int, arrived: int, events: int) -> tuple[Command, int]:
        """Return what must go of the next so many events, and how many runs of it, if runs are what is dropped."""
        shedder = self.shedder
        if shedder is None or not self.full_time:
            return KEEP_ALL, 0
        load = self._load(at, start, arrived)
        command = shedder.detector.command(load, events)
        return command, command.runs_of(load) if shedder.strategy.level == "runs" else 0

    def _decide(self, view: View, command: Command) -> Decision:
        """Return what is shed of a slice."""
        shedder = self.shedder
        if shedder is None or shedder.strategy.level == "runs":
            return NOTHING
        self._aim(command.share, view)
        if command.share == 0 and not shedder.strategy.follows:
            return NOTHING
        decision = shedder.strategy.decide(view)
        return decision if command.share > 0 else NOTHING

    def _load(self, at: int, start: int, arrived: int) -> Load:
        shedder, arrivals, first = self.shedder, self.clock.arrivals, at - start
        assert shedder is not None
        now, waiting = self.clock.now(), max(arrived - first, 0)
        horizon = max((1 - shedder.f) * shedder.bound, 1e-9)
        rate = (arrived - int(arrivals[:arrived].searchsorted(now - horizon))) / horizon
        head = float(arrivals[first])
        if waiting > 1:  # those that wait came at some rate, too, even if nothing comes any more
            rate = max(rate, (waiting - 1) / max(float(arrivals[arrived - 1]) - head, horizon))
        queued = (self._work(at + max(waiting, 1)) - self._work(at)) / max(waiting, 1)
        event_time = self._unit_time * queued or self.full_time
        return Load(max(0.0, now - head), waiting, rate, self.full_time, event_time, self._open)

    def _aim(self, share: float, view: View) -> None:
        """Tell the strategy how much must go, if that has changed."""
        shedder = self.shedder
        assert shedder is not None
        if share == self._aimed[0] == 0:
            return
        window = float(view.sizes[0]) if len(view) else 1.0
        parts = partitions(window, longest_queue(shedder.bound, self.full_time), shedder.f)
        if (share, parts) != self._aimed:
            shedder.strategy.aim(share, parts)
            self._aimed = share, parts

    def _spared(self, decision: Decision, view: View) -> Decision:
        """Return a decision that spares the windows that are never shed."""
        if self.shedder is None or not self.shedder.unshed:
            return decision
        marked = self._marked[view.windows]
        pairs = decision.pairs if decision.events is None else decision.events[view.rows]
        hidden, least = decision.hidden, decision.least
        return Decision(
            None,
            None if pairs is None else pairs & ~marked,
            None if hidden is None else tuple(each & ~marked for each in hidden),
            decision.worth,
            None if least is None else np.where(marked, -np.inf, least),
        )

    def _drop_runs(self, count: int, at: int) -> int:
        shedder, operator = self.shedder, self.operator
        assert shedder is not None
        kept = self._marked if shedder.unshed else None
        utilities = [shedder.strategy.run_utilities(query) for query in range(len(operator.queries))]
        dropped = operator.drop_runs(count, utilities, at, shedder.seed + at, kept)
        self.clock.spend(self._open * self.costs.rank * 1e-9)
        self.run.runs_dropped += dropped
        self._open -= dropped
        return dropped

    # --- time -------------------------------------------------------------------------------------------------

    def _seconds(self, view: View, step: Step, decision: Decision) -> Floats:
        """Return what each event of a slice costs in virtual time."""
        if not isinstance(self.clock, VirtualClock):
            return np.zeros(len(view.types))
        pairs = np.where(step.is_shed, 0.0, self.costs.of_pairs(step.ledgers))
        events = np.full(len(view.types), self.costs.event)
        kept = np.where(step.is_shed, 0.0, 1.0 if step.hidden is None else 1.0 - step.hidden)
        asking = float(pairs.sum()) - self.costs.pair * np.count_nonzero(~step.is_shed)
        self._pace.note(asking * 1e-9, float(kept.sum()), self._open, self.operator.open_runs())
        if decision is not NOTHING and self.shedder is not None:
            effort = self.shedder.strategy.effort
            each = self.costs.of_decision(effort)
            if effort.per == "event":
                events += each
            elif effort.per == "pair":
                pairs += each
            elif effort.per == "state":  # those that runs are in: no more than there are runs
                pairs += each * sum(
                    np.maximum(np.minimum(ledger[:, OPEN], s), 1) for ledger, s in self._by_states(step)
                )
            else:
                pairs += each * (sum(ledger[:, OPEN] for ledger in step.ledgers) if step.met is None else step.met)
        of_pairs = np.bincount(view.rows, weights=pairs, minlength=len(events)).astype(np.float64)
        return (events + of_pairs) * 1e-9

    def _by_states(self, step: Step) -> list[tuple[Ints, int]]:
        return [(ledger, len(states)) for ledger, states in zip(step.ledgers, self.operator.engine.states, strict=True)]

    def _learn_times(self, spent: float, at: int, end: int, command: Command) -> None:
        """Take what a slice took into account in the mean times."""
        seconds, unit = spent / (end - at), spent / (self._work(end) - self._work(at))
        self._unit_time = unit if not self._unit_time else (1 - _SMOOTH) * self._unit_time + _SMOOTH * unit
        if command.share == 0 and not command.runs and self.shedder is not None:
            part = min(1.0, (end - at) * self.full_time / (_LONG * self.shedder.bound)) if self.full_time else 1.0
            self.full_time += part * (seconds - self.full_time)
            self._full_unit += part * (unit - self._full_unit)

    def _note(
        self, view: View, step: Step, command: Command, latencies: Floats, waiting: int, dropped: int
    ) -> None:  # fmt: skip
        shed = self.run.note_shed(view, step.is_shed, step.hidden)
        self._open = self.operator.open_runs()
        self.run.moments.append(
            Moment(
                self.clock.now(), float(latencies.max(initial=0.0)), waiting, command.share, shed, len(view),
                self._open, len(step.found),
            )
        )  # fmt: skip
