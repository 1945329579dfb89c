"""One query in an engine: intake, matcher, emission and output, put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.engine.arrow import Kind, column_of, common_kind
from penstock.engine.batches import Batch, Reader
from penstock.engine.chains import Chains
from penstock.engine.emission import Emission
from penstock.engine.ended import ABANDONED, TIMED_OUT, Ended, together
from penstock.engine.found import Found, nothing
from penstock.engine.functions import Functions
from penstock.engine.general import GeneralMatcher
from penstock.engine.hooks import MAX_WINDOWS, HookError, Hooks
from penstock.engine.intake import Intake
from penstock.engine.matcher import Matcher, RunMatcher
from penstock.engine.matches import Matches, Output
from penstock.engine.obligations import Waiting
from penstock.engine.plain import PlainMatcher
from penstock.engine.postponed import Postponed
from penstock.engine.sharing import needs_own_types_only
from penstock.engine.store import Store
from penstock.engine.texts import renumber_texts, text_numbers
from penstock.engine.tree import Chooser, TreeMatcher, read_tree
from penstock.pattern import ast
from penstock.plan import layout
from penstock.plan.planning import Plan
from penstock.plan.tables import Bools, Ints
from penstock.plan.tree import why_no_tree

Mode: TypeAlias = Literal["auto", "automaton", "tree"]

_CHOOSE_FROM = 1024  # events, before a plan is chosen
_LEAST_SAMPLE = 64  # events of a batch that a choice may rest on, where others are left out
# Fewer events, of few batches, are not worth looking for those that can be dropped; more are, of however large batches.
_RECLAIM_FROM, _RECLAIM_BATCHES, _RECLAIM_AT = 4096, 4, 1 << 16
_RECLAIM_TIMES = 3.0  # as many events as were needed last time, before those are looked for
_ABOUT_RUNS = "hooks are about runs"
_WORK = ("checks", "runs_created", "matches")  # counts that go on if the plan changes
_SPELLED: dict[str, str | None] = {"text": "string", "mixed": None, "none": None}


class Detector:
    """Finds the matches of one query in the batches of a reader."""

    def __init__(
        self, plan: Plan, reader: Reader, functions: Functions, max_runs: int, mode: Mode = "auto", ended: bool = False,
        is_alone: bool = True,
    ) -> None:  # fmt: skip
        self.plan, self.reader, self.functions = plan, reader, functions
        self.without_key = 0  # events that are in no partition
        self._kinds: dict[str, Kind] = {}  # what the attributes were in all batches so far
        # Where only events of a partition tell that its runs are over, one that gets no more may keep its events long.
        self._has_quiet_partitions = bool(plan.query.partition) and isinstance(plan.query.within, ast.CountSpan)
        self.store = Store(plan, reader, functions)
        self.intake = Intake(plan, reader, functions)
        self._max_runs, self._mode = max_runs, mode
        self._ended: list[Ended] | None = [] if ended else None  # since somebody last asked
        self.matcher: Matcher = self._automaton()
        self._work_before: dict[str, int] = {}  # what was done by plans that it has left, and not again by this one
        self.why_no_tree = "plan='automaton' was asked for" if mode == "automaton" else why_no_tree(plan)
        if ended:
            self.why_no_tree = self.why_no_tree or _ABOUT_RUNS
        self._choose_at = _CHOOSE_FROM if mode == "auto" else 1  # choose a plan when so many events have come
        self._chooser: Chooser | None = None  # from the first choice on
        self.emission = Emission(plan, self.store)
        self.passes_all = self.emission.is_plain and not plan.query.returns
        # A query that is alone shares nothing, and is faster with all events: its numbers have no gaps then.
        self._own_types_only = not is_alone and self.passes_all and not ended and needs_own_types_only(plan)
        self.output = Output(plan, self.store, self._keys, self.intake.window_names, self._kind, functions)
        self.postponed = Postponed(plan, self.store, functions, self._kind) if plan.postpones else None
        functions.kinds = self._kind

    def _automaton(self) -> RunMatcher:
        if self.plan.plain is None:
            return GeneralMatcher(self.plan, self.store, self._max_runs)
        return PlainMatcher(self.plan, self.store, self._max_runs, reports=self._ended is not None)

    def _ask(self) -> None:
        """Say who asks functions and sources now."""
        self.functions.kinds = self._kind  # a new object each time: what follows from it is worked out again
        self.functions.answers.must_block = self.plan.must_block

    def process(self, batch: Batch, hooks: Hooks | None = None) -> Matches:
        """Return the matches that a batch completes."""
        self._kinds |= {name: common_kind(self._kinds.get(name, "none"), kind) for name, kind in batch.kinds.items()}
        self._ask()
        least = min(max(_RECLAIM_FROM, _RECLAIM_BATCHES * batch.size), _RECLAIM_AT)
        if self.store.size >= least and self.store.is_short_for(batch.size):
            self.drop_unneeded()
        taken = self.intake.take(batch, own_types_only=self._own_types_only and hooks is None)
        self.without_key += taken.without_key
        start = self.store.size
        self.store.append(taken)
        chosen = None if hooks is None else hooks.of(taken.rows)
        self._shed(chosen, start)
        is_sample = taken.shared is None or len(taken.rows) >= _LEAST_SAMPLE or self._mode == "tree"
        if self.why_no_tree is None and self.intake.count >= self._choose_at and is_sample:
            self._choose(batch.types[taken.rows], start)
        has_rows = isinstance(self.matcher, PlainMatcher) or self.plan.query.window is None
        passes_all = self.passes_all and not self._may_hold()
        if isinstance(self.matcher, PlainMatcher | TreeMatcher) and passes_all and has_rows:
            matches = Matches()
            for laid, first, stop in self.matcher.run_laid_out(start):
                self.store.progress(first, stop)
                matches += self._of_chains(laid) if isinstance(laid, Chains) else self.output.of_laid_out(laid)
        else:
            matches = self._emitted(self.matcher.run(start))
        if taken.shared is not None:
            self.store.advance(self.intake.now)  # events that were left out tell the time
        if chosen is not None and chosen.ledger is not None:
            self._note(chosen, chosen.ledger, taken.rows)
        if self._ended is not None:
            self._gather_ended(self._ended)
        self.reclaim(least, _RECLAIM_TIMES)
        return matches

    def _of_chains(self, chains: Chains) -> Matches:
        """Return matches as users get them."""
        return self.output.of_chains(chains)

    def _note(self, hooks: Hooks, ledger: Ints, rows: Ints) -> None:
        """Write down what the events took that are in these rows of the batch."""
        assert isinstance(self.matcher, PlainMatcher), "other kernels have no ledger"
        lines = self.matcher.ledger()
        ledger[rows] = lines if hooks.events is None else np.where(hooks.events[:, None], 0, lines)

    def check(self, hooks: Hooks, size: int) -> None:
        """Refuse hooks that a batch of this size, or the query, cannot have; if they are about runs, keep runs."""
        hooks.check(size, len(self.plan.automaton.states))
        if not hooks.needs_runs:
            return
        if hooks.windows is not None and self.plan.numbered.negations and self.plan.plain is None:
            raise HookError(
                "the general kernel cannot shed events of a query with a negation from some of their windows only, and "
                f"the query needs it: {self.plan.why_not_plain}\n"
                "  fix: change that part of the query; or shed by events and states"
            )
        matcher = self.keep_runs()
        if hooks.tallies and not isinstance(matcher, PlainMatcher):
            raise HookError(
                "hooks.worth, open_runs, moves and ledger are of the plain kernel, and the query needs the general "
                f"one: {self.plan.why_not_plain}\n"
                "  fix: change that part of the query; or shed by events and states, and count by cells"
            )

    def keep_runs(self) -> RunMatcher:
        """Return a matcher that keeps runs, from now on: if there is a tree, change to the automaton.

        Raises:
            HookError: a tree was asked for.
        """
        if self.why_no_tree is None and self._mode == "tree":
            raise HookError(
                "plan='tree' was asked for, and a tree plan keeps no runs\n"
                "  fix: Engine(query), or Engine(query, plan='automaton'), which keeps runs from the start"
            )
        if isinstance(self.matcher, TreeMatcher):
            self._change_to(matcher := self._automaton(), matcher.run(0))
        self.why_no_tree = self.why_no_tree or _ABOUT_RUNS
        assert isinstance(self.matcher, PlainMatcher | GeneralMatcher)
        return self.matcher

    def keep_plain_runs(self) -> PlainMatcher:
        """Return the plain kernel's matcher, from now on.

        Raises:
            HookError: the query does not run on it.
        """
        matcher = self.keep_runs()
        if not isinstance(matcher, PlainMatcher):
            raise HookError(
                "runs are chosen by what partitions have left, or by chance, in the plain kernel, and the query needs "
                f"the general one: {self.plan.why_not_plain}\n  fix: change that part of the query; or use drop_runs"
            )
        return matcher

    def _shed(self, hooks: Hooks | None, start: int) -> None:
        """Hand the decisions about the events from place `start` on to the matcher."""
        if hooks is not None and hooks.events is not None:
            self.store.fits[:, start : self.store.size][:, hooks.events] = False
        if hooks is not None and hooks.windows is not None:
            events = self.store.events[:, start : self.store.size]
            most = int((events[layout.EVENT_HIGH] - events[layout.EVENT_LOW] + 1).max(initial=0))
            if most > MAX_WINDOWS:
                raise HookError(f"an event is in {most} windows, and shedding tells {MAX_WINDOWS} apart")
        if isinstance(self.matcher, PlainMatcher | GeneralMatcher):
            self.matcher.set_hooks(hooks, start)

    def _choose(self, types: Ints, start: int) -> None:
        """Choose the cheapest plan for the newest events; take in again what was before place `start`."""
        self._choose_at = 4 * self.intake.count
        self._chooser = self._chooser or Chooser(self.plan, is_must=self._mode == "tree")
        tree = self._chooser.best(self.store, types)
        now = self.matcher.tree if isinstance(self.matcher, TreeMatcher) else None
        if tree is None or tree == now:
            return
        size, self.store.size = self.store.size, start
        matcher = TreeMatcher(self.plan, self.store, self._max_runs, tree)
        self._change_to(matcher, matcher.replay())
        self.store.size = size

    def _change_to(self, matcher: Matcher, again: Iterable[Any]) -> None:
        """Take in again, by another plan, the events of the store, whose matches are out already."""
        for _ in again:
            pass
        before, now = self.work, matcher.work
        self.matcher, self._work_before = matcher, {name: before[name] - now[name] for name in _WORK}

    @property
    def work(self) -> dict[str, int]:
        """What has been done so far, by whatever plan; and the number of open runs."""
        return {name: count + self._work_before.get(name, 0) for name, count in self.matcher.work.items()}

    def advance(self, ts: int) -> Matches:
        """Return the matches that the passing of time completes: no event before `ts` will follow."""
        self._ask()
        matches, progress = Matches(), self.store.advance(ts)
        for found, _, _ in self.matcher.advance(ts):
            matches += self._settled(self.emission.add(found, progress))
        return matches + self._settled(self.emission.add(nothing(self.emission.depth), progress))

    def flush(self) -> Matches:
        """Return the matches that only the end of the stream completes."""
        self._ask()
        matches = self._emitted(self.matcher.flush())
        if self._ended is not None:
            self._gather_ended(self._ended)
        return matches + self._settled(self.emission.flush())

    # --- what is postponed ------------------------------------------------------------------------------------

    def _may_hold(self) -> bool:
        """Whether matches that are about to be found may have to wait for values."""
        if self.postponed is None:
            return False
        self.postponed.follow(self.intake.count - 1)
        return self.postponed.may_hold(int(self.store.numbers[0]))

    def _settled(self, found: Found) -> Matches:
        """Return the matches that wait for nothing."""
        return self.output.of(found if self.postponed is None else self.postponed.settle(found, self.intake.count - 1))

    def resolve(self, source: str, keys: list[Any]) -> Matches:
        """Go on with the values of keys that have come; return the matches that waited for them."""
        if self.postponed is None:
            return Matches()
        self._ask()
        newest = self.intake.count - 1
        self.store.renew()
        self.postponed.prune(self.matcher, source, keys)
        return self.output.of(self.postponed.resolve(source, keys, newest))

    def waiting(self) -> tuple[Waiting, Waiting]:
        """Return how many runs, and how many matches, wait for each key that is awaited."""
        if self.postponed is None:
            return Waiting(), Waiting()
        self._ask()  # keys may be looked up themselves
        return self.postponed.count(self.matcher)

    @property
    def is_waiting(self) -> bool:
        """Whether a match waits for a value."""
        return self.postponed is not None and bool(len(self.postponed.held))

    # --- looking inside ---------------------------------------------------------------------------------------

    def runs(self) -> Matches:
        """Return the open runs, as if they were matches: those that the newest event could have continued."""
        matcher = self.matcher if isinstance(self.matcher, PlainMatcher | GeneralMatcher) else self.keep_runs()
        found, newest = matcher.runs(), self.store.newest
        clock, first = (newest[1], self.store.pos) if self.emission.rules.is_by_count else (newest[0], self.store.ts)
        low = np.maximum(found.low, newest[2][found.part]) if self.plan.query.window is not None else found.low
        is_open = (low <= found.high) & (clock[found.part] - first(found.first) <= self.emission.rules.within)
        return self.output.of_runs(found.in_windows(low, found.high).pick(np.flatnonzero(is_open)))

    def ended(self) -> Ended:
        """Return the runs that have ended since this was last called, and forget them."""
        assert self._ended is not None, "only if they are asked for"
        assert isinstance(self.matcher, PlainMatcher), "other kernels do not know"
        self.matcher.end_runs()
        self._gather_ended(self._ended)
        ended, self._ended = together(self._ended), []
        return ended

    def has_ended(self) -> bool:
        """Return whether there are runs that have ended and that nobody has asked for."""
        if self._ended is None:
            return False
        self._ended = [self.ended()]
        return len(self._ended[0]) > 0

    def _gather_ended(self, ended: list[Ended]) -> None:
        """Lay out the runs that have ended, as long as their events are there."""
        assert isinstance(self.matcher, PlainMatcher)
        for over in self.matcher.take_over():
            rows, _ = over.found.per_window()
            is_abandoned, numbers = over.is_abandoned[rows], over.by[rows]
            by = np.full(len(rows), -1, np.int64)
            by[is_abandoned] = self.store.seq(numbers[is_abandoned])
            why = tuple(np.where(is_abandoned, ABANDONED, TIMED_OUT).tolist())
            ended.append(Ended(self.output.of_runs(over.found), why, by))

    def _emitted(self, steps: Iterator[tuple[Found, int, int]]) -> Matches:
        matches = Matches()
        for found, start, stop in steps:
            progress = self.store.progress(start, stop)
            matches += self._settled(self.emission.add(found, progress))
        return matches

    def _keys(self, parts: Ints) -> list[pa.Array]:
        """Return the PARTITION BY values of matches; looked up once per partition, not per match."""
        distinct, places = np.unique(parts, return_inverse=True)
        keys, chosen = self.intake.keys(distinct), pa.array(places)
        return [column_of([key[k] for key in keys]).take(chosen) for k in range(len(self.plan.query.partition))]

    def _kind(self, name: str) -> str | None:
        kind = self._kinds.get(name, "none")
        return _SPELLED.get(kind, kind)

    def reclaim(self, least: int, times: float) -> None:
        """Drop events that nothing needs, when there are so many times as many as were needed last time."""
        if self.store.size >= max(least, times * self.store.kept):
            self.drop_unneeded()

    def drop_unneeded(self) -> None:
        """Drop events that nothing needs."""
        store = self.store
        if not store.size:
            return
        if self._ended is not None:
            self._ended = [self.ended()]  # the events of runs that are over go now
        needed = self.matcher.needed()
        for waiting in (self.emission, self.postponed):
            oldest = None if waiting is None else waiting.oldest_event()
            if oldest is not None:
                needed |= store.numbers[: store.size] >= oldest
        if not self._has_quiet_partitions and needed.any():
            needed[int(np.argmax(needed)) :] = True  # WITHIN bounds them, and numbers without gaps are found faster
        self.matcher.move_events(store.keep(needed))
        if self.plan.query.window is not None:
            parts, lows = self.matcher.windows()
            if self.postponed is not None:
                held_parts, held_lows = self.postponed.windows()
                parts, lows = np.concatenate([parts, held_parts]), np.concatenate([lows, held_lows])
            self.intake.forget_windows(parts, lows)

    # --- texts ------------------------------------------------------------------------------------------------

    def mark_texts(self, used: Bools) -> None:
        """Mark the texts that are still needed."""
        self.intake.mark_texts(used)
        constants = [each for each in self.plan.terms.constants if isinstance(each, str)]
        used[[self.reader.texts.add(text) for text in constants]] = True
        for values in (self.store.columns[:, : self.store.size], *self.matcher.live_values()):
            used[text_numbers(values)] = True

    def renumber_texts(self, numbers: Ints) -> None:
        """Follow the texts, which have new numbers."""
        self.intake.renumber_texts(numbers)
        for values in (self.store.columns[:, : self.store.size], *self.matcher.live_values()):
            renumber_texts(values, numbers)
        self.matcher.reindex()

    # --- snapshots --------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return all that must survive."""
        return {
            "without_key": self.without_key,
            "choose_at": self._choose_at,
            "keeps_runs": int(self.why_no_tree == _ABOUT_RUNS),
            "work_before": dict(self._work_before),
            "kinds": dict(self._kinds),
            "matcher": self.matcher.state(),
            "store": self.store.state(),
            "intake": self.intake.state(),
            "emission": self.emission.state(),
            **({} if self.postponed is None else {"postponed": self.postponed.state()}),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; the reader has been restored."""
        self._restore_stream(state)
        if "tree" in state["matcher"]:
            tree = read_tree(state["matcher"]["tree"])
            self.matcher = TreeMatcher(self.plan, self.store, self._max_runs, tree)
        self._choose_at, self._work_before = int(state["choose_at"]), dict(state["work_before"])
        if state["keeps_runs"]:
            self.why_no_tree = _ABOUT_RUNS
        self.matcher.restore(state["matcher"])
        self.emission = Emission.from_state(self.plan, self.store, state["emission"])
        if self.postponed is not None:
            self.postponed.restore(state["postponed"])

    def _restore_stream(self, state: dict[str, Any]) -> None:
        """Go on from what a state knows of the stream."""
        self.without_key = int(state["without_key"])
        self._kinds |= state["kinds"]
        self.store.restore(state["store"])
        self.intake = Intake.from_state(self.plan, self.reader, state["intake"], self.functions)
        self.output.window_names = self.intake.window_names

    def follow(self, state: dict[str, Any], work: dict[str, int]) -> None:
        """Go on alone with a query that ran together with others, which kept its runs: find them again.

        Args:
            state: what they know of the stream, as in a snapshot.
            work: what counts as done by this query.
        """
        self._restore_stream(state)
        if self._mode == "auto":
            self._choose_at = self.intake.count
        matcher = self._automaton()
        assert isinstance(matcher, PlainMatcher), "others do not run together"
        for _ in matcher.run_laid_out(0):
            pass
        now = matcher.work
        self.matcher, self._work_before = matcher, {name: work[name] - now[name] for name in _WORK}
