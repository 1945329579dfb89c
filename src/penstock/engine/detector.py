"""One query in an engine: intake, matcher, emission and output, put together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.engine.arrow import Kind
from penstock.engine.batches import Batch, Reader
from penstock.engine.chains import Chains
from penstock.engine.emission import Emission
from penstock.engine.found import Found
from penstock.engine.functions import Functions
from penstock.engine.general import GeneralMatcher
from penstock.engine.hooks import MAX_WINDOWS, HookError, Hooks
from penstock.engine.intake import Intake
from penstock.engine.matcher import Matcher
from penstock.engine.matches import Matches, Output
from penstock.engine.plain import PlainMatcher
from penstock.engine.store import Store
from penstock.engine.texts import renumber_texts, text_numbers
from penstock.engine.tree import TreeMatcher, best_tree, read_tree, statistics_of
from penstock.pattern import ast
from penstock.plan import layout
from penstock.plan.planning import Plan
from penstock.plan.tables import Bools, Ints
from penstock.plan.tree import why_no_tree

Mode: TypeAlias = Literal["auto", "automaton", "tree"]

_CHOOSE_FROM = 1024  # events, before a plan is chosen
_RECLAIM_FROM = 4096  # fewer events are not worth looking for those that can be dropped
_SPELLED: dict[str, str | None] = {"text": "string", "mixed": None, "none": None}


class Detector:
    """Finds the matches of one query in the batches of a reader."""

    def __init__(self, plan: Plan, reader: Reader, functions: Functions, max_runs: int, mode: Mode = "auto") -> None:
        self.plan, self.reader, self.functions = plan, reader, functions
        self.without_key = 0  # events that are in no partition
        self._kinds: dict[str, Kind] = {}  # what the attributes were in all batches so far
        # Where only events of a partition tell that its runs are over, one that gets no more may keep its events long.
        self._has_quiet_partitions = bool(plan.query.partition) and isinstance(plan.query.within, ast.CountSpan)
        self.store = Store(plan, reader, functions)
        self.intake = Intake(plan, reader, functions)
        self._max_runs, self._mode = max_runs, mode
        make = GeneralMatcher if plan.plain is None else PlainMatcher
        self.matcher: Matcher = make(plan, self.store, max_runs)
        self.why_no_tree = "plan='automaton' was asked for" if mode == "automaton" else why_no_tree(plan)
        self._choose_at = _CHOOSE_FROM if mode == "auto" else 1  # choose a plan when so many events have come
        self.emission = Emission(plan, self.store)
        self._passes_all = self.emission.is_plain and not plan.query.returns
        self.output = Output(plan, self.store, self._keys, self.intake.window_names, self._kind, functions)
        functions.kinds = self._kind

    def process(self, batch: Batch, hooks: Hooks | None = None) -> Matches:
        """Return the matches that a batch completes."""
        self._kinds |= {name: _common(self._kinds.get(name, "none"), kind) for name, kind in batch.kinds.items()}
        self.functions.kinds = self._kind  # a new object each time: what follows from it is worked out again
        taken = self.intake.take(batch)
        self.without_key += taken.without_key
        start = self.store.size
        self.store.append(taken)
        self._shed(None if hooks is None else hooks.of(taken.rows), start)
        if self.why_no_tree is None and self.intake.count >= self._choose_at:
            self._choose(batch.types[taken.rows], start)
        has_rows = isinstance(self.matcher, PlainMatcher) or self.plan.query.window is None
        if isinstance(self.matcher, PlainMatcher | TreeMatcher) and self._passes_all and has_rows:
            matches = Matches()
            for laid, first, stop in self.matcher.run_laid_out(start):
                self.store.progress(first, stop)
                matches += self.output.of_chains(laid) if isinstance(laid, Chains) else self.output.of_laid_out(laid)
        else:
            matches = self._emitted(self.matcher.run(start))
        self._reclaim()
        return matches

    def check(self, hooks: Hooks, size: int) -> None:
        """Refuse hooks that a batch of this size, or the query, cannot have; from now on it keeps runs for them."""
        hooks.check(size, len(self.plan.automaton.states))
        if not hooks.needs_runs:
            return
        if self.plan.plain is None:
            raise HookError(f"the query has no hooks about runs: {self.plan.why_not_plain}")
        if hooks.windows is not None and self.plan.numbered.negations:
            raise HookError("events of a query with a negation cannot be shed from some of their windows only")
        if isinstance(self.matcher, TreeMatcher):
            raise HookError(
                "the query runs by a tree plan, which keeps no runs\n  fix: Engine(query, plan='automaton') keeps runs"
            )
        self.why_no_tree = "hooks are about runs"

    def _shed(self, hooks: Hooks | None, start: int) -> None:
        """Hand the decisions about the events from place `start` on to the matcher."""
        if hooks is not None and hooks.events is not None:
            self.store.fits[:, start : self.store.size][:, hooks.events] = False
        if hooks is not None and hooks.windows is not None:
            events = self.store.events[:, start : self.store.size]
            most = int((events[layout.EVENT_HIGH] - events[layout.EVENT_LOW] + 1).max(initial=0))
            if most > MAX_WINDOWS:
                raise HookError(f"an event is in {most} windows, and shedding tells {MAX_WINDOWS} apart")
        if isinstance(self.matcher, PlainMatcher):
            self.matcher.set_hooks(hooks, start)

    def _choose(self, types: Ints, start: int) -> None:
        """Choose the cheapest plan for the newest events; take in again what was before place `start`."""
        self._choose_at = 4 * self.intake.count
        tree = best_tree(self.plan, statistics_of(self.plan, self.store, types), is_must=self._mode == "tree")
        now = self.matcher.tree if isinstance(self.matcher, TreeMatcher) else None
        if tree is None or tree == now:
            return
        size, self.store.size = self.store.size, start
        matcher = TreeMatcher(self.plan, self.store, self._max_runs, tree)
        matcher.replay()
        self.matcher, self.store.size = matcher, size

    def flush(self) -> Matches:
        """Return the matches that only the end of the stream completes."""
        matches = self._emitted(self.matcher.flush())
        return matches + self.output.of(self.emission.flush())

    def runs(self) -> Matches:
        """Return the open runs, as if they were matches: those that the newest event could have continued."""
        found, newest = self.matcher.runs(), self.store.newest
        clock, first = (newest[1], self.store.pos) if self.emission.rules.is_by_count else (newest[0], self.store.ts)
        low = np.maximum(found.low, newest[2][found.part]) if self.plan.query.window is not None else found.low
        is_open = (low <= found.high) & (clock[found.part] - first(found.first) <= self.emission.rules.within)
        return self.output.of_runs(found.in_windows(low, found.high).pick(np.flatnonzero(is_open)))

    def _emitted(self, steps: Iterator[tuple[Found, int, int]]) -> Matches:
        matches = Matches()
        for found, start, stop in steps:
            progress = self.store.progress(start, stop)
            matches += self.output.of(self.emission.add(found, progress))
        return matches

    def _keys(self, parts: Ints) -> list[pa.Array]:
        """Return the PARTITION BY values of matches; looked up once per partition, not per match."""
        distinct, places = np.unique(parts, return_inverse=True)
        keys, chosen = self.intake.keys(distinct), pa.array(places)
        return [_column([key[k] for key in keys]).take(chosen) for k in range(len(self.plan.query.partition))]

    def _kind(self, name: str) -> str | None:
        kind = self._kinds.get(name, "none")
        return _SPELLED.get(kind, kind)

    def _reclaim(self) -> None:
        """Drop events, when there are three times as many as were needed last time."""
        if self.store.size >= max(_RECLAIM_FROM, 3 * self.store.kept):
            self.drop_unneeded()

    def drop_unneeded(self) -> None:
        """Drop events that nothing needs."""
        store = self.store
        if not store.size:
            return
        needed = self.matcher.needed()
        oldest = self.emission.oldest_event()
        if oldest is not None:
            needed |= store.numbers[: store.size] >= oldest
        if not self._has_quiet_partitions and needed.any():
            needed[int(np.argmax(needed)) :] = True  # WITHIN bounds them, and numbers without gaps are found faster
        self.matcher.move_events(store.keep(needed))
        if self.plan.query.window is not None:
            self.intake.forget_windows(*self.matcher.windows())

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
            "kinds": dict(self._kinds),
            "matcher": self.matcher.state(),
            "store": self.store.state(),
            "intake": self.intake.state(),
            "emission": self.emission.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; the reader has been restored."""
        self.without_key = int(state["without_key"])
        self._kinds |= state["kinds"]
        self.store.restore(state["store"])
        if "tree" in state["matcher"]:
            tree = read_tree(state["matcher"]["tree"])
            self.matcher = TreeMatcher(self.plan, self.store, self._max_runs, tree)
        self._choose_at = int(state["choose_at"])
        self.matcher.restore(state["matcher"])
        self.intake = Intake.from_state(self.plan, self.reader, state["intake"], self.functions)
        self.output.window_names = self.intake.window_names
        self.emission = Emission.from_state(self.plan, self.store, state["emission"])


def _column(values: list[Any]) -> pa.Array:
    """Return values as an Arrow array; as texts, if they mix numbers and texts, which Arrow does not."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array(map(str, values), pa.string())


def _common(before: Kind, now: Kind) -> Kind:
    """Return what an attribute is that was of one kind in earlier batches and is of another now."""
    if now in (before, "none"):
        return before
    if before == "none":
        return now
    return "float" if {before, now} == {"int", "float"} else "mixed"
