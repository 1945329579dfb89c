"""Plain queries in the engine: the plain kernel with its memory (penstock.kernel.plain)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np

from penstock.engine.chains import Chains, endings, spare
from penstock.engine.elements import Elements
from penstock.engine.ended import Over
from penstock.engine.found import Found, SmallInts
from penstock.engine.hooks import Hooks
from penstock.engine.matcher import MAX_FOUND, TooManyRunsError
from penstock.engine.plain_dropping import Dropper
from penstock.engine.plain_hooks import open_runs, with_hooks
from penstock.engine.plain_state import restored, state_of
from penstock.engine.store import Store
from penstock.kernel.ending import end_over
from penstock.kernel.memory import wider
from penstock.kernel.plain import process, process_noted
from penstock.kernel.plain_memory import must_grow, new_plain_memory, with_needed_nodes, with_plain_room
from penstock.kernel.reclaiming import chain_lengths, number_rounds, unroll_chains
from penstock.kernel.sweeping import sweep_all
from penstock.plan import layout
from penstock.plan.layout import (
    HAS_CHECKS,
    HAS_CREATED,
    HAS_ENDED,
    HAS_EVENTS,
    HAS_FOUND,
    HAS_MATCHES,
    HAS_NODES,
    HAS_OVER,
    HELD_NODE,
    HELD_SEEN,
    REACH,
    SEGMENT_SIZE,
    SEGMENT_START,
)
from penstock.plan.plain import slot_of
from penstock.plan.planning import Plan
from penstock.plan.registers import Keep, Register
from penstock.plan.tables import Bools, Floats, Ints

_T = TypeVar("_T")
_MOST_FOUND = 4 * MAX_FOUND  # they take little room: an int32 each, and a group's end


class PlainMatcher:
    """Finds the matches of a plain query."""

    def __init__(self, plan: Plan, store: Store, max_runs: int, *, reports: bool = False) -> None:
        assert plan.plain is not None, "the general kernel runs queries that are not plain"
        self.plan, self.store = plan, store
        options = plan.plain.options.copy()
        self.tables = plan.plain._replace(options=options, hooks=options)
        self.tables.options[layout.PLAIN_MAX_RUNS], self.tables.options[layout.PLAIN_REPORTS] = max_runs, reports
        self.tables.options[layout.PLAIN_SEEN] |= reports
        sizes = len(plan.numbered.variables), len(plan.terms.columns), len(plan.terms.references)
        self.memory = new_plain_memory(self.tables, *sizes, store.constants())
        self._loops = np.array([bool(v.loops) for v in plan.numbered.variables])
        self._has_rounds = (bool(plan.query.returns) or plan.postpones) and bool(self._loops.any())
        self._nodes_kept, self._has_hooks = 0, False
        self._dropper = Dropper(self.tables, self.memory)
        self._over: list[Over] = []  # runs that have ended, if they are reported; their events are in the store
        self.given_out: WeakSet[Chains] = WeakSet()  # matches that somebody still has
        self._stopped = layout.DONE, -1  # why and before which event the kernel last stopped
        self._places = (np.cumsum([not v.is_negated for v in plan.numbered.variables]) - 1).astype(np.int32)
        store.functions.when_text.append(self._follow_texts)

    # --- running ----------------------------------------------------------------------------------------------

    def run(self, start: int) -> Iterator[tuple[Found, int, int]]:
        """Process the events of the store from place `start` on; yield matches, and the events that they are of."""
        return self._run(start, self._drain)

    def run_laid_out(self, start: int) -> Iterator[tuple[Chains, int, int]]:
        """Like `run`, for queries that let every match pass: it is laid out as users get it, once, when they ask."""
        return self._run(start, self._drain_chains)

    def set_hooks(self, hooks: Hooks | None, start: int) -> None:
        """Say what is shed and counted of the events from place `start` on."""
        self._has_hooks, hooks = hooks is not None, hooks or Hooks()
        if hooks.tallies:
            self._load()
        self.memory = with_hooks(self.tables, self.memory, hooks, start)

    def ledger(self) -> Ints:
        """Return what the events took that `set_hooks` was about, see `Hooks.ledger`."""
        return self.memory.ledger

    def open_runs(self) -> Ints:
        """Return how many runs are open in each state."""
        return open_runs(self.tables, self.memory, self.store.now)

    def drop_runs(self, count: int, utility: Floats) -> Ints:
        """Drop the `count` runs of least utility, or all if there are fewer; return how many of each state.

        Args:
            count: how many.
            utility: (S, B) of a run by its state and by what it has left of WITHIN, in B equal parts, the least first.
        """
        return self.dropper().drop_oldest(count, utility)

    def dropper(self) -> Dropper:
        """Return what counts the runs that are open now, and drops some."""
        if self.tables.options[layout.PLAIN_REPORTS]:
            self._sweep(self.store.size - 1)  # what is over has ended, and was not dropped
        self._dropper.memory, self._dropper.now = self.memory, self.store.now
        return self._dropper

    def refresh(self, rows: Ints, found: Found, is_dropped: Bools) -> None:
        """Drop some of the runs that `runs` has just returned; read again what others keep of derived columns.

        Args:
            rows: the runs, by their places in what `runs` returned.
            found: these runs.
            is_dropped: which of them are to go.
        """
        m, live = self.memory, self._live()[rows]
        states = np.repeat(np.arange(len(self.tables.states)), m.segments[SEGMENT_SIZE])[rows]
        m.registers[REACH, live[is_dropped]] = np.nan
        self.tables.options[layout.PLAIN_TALLIES] = 0  # they are counted anew when they are next asked for
        elements = Elements(found, [0] * len(self.plan.numbered.variables))
        for state, slots in enumerate(self.plan.registers.slots):
            here = states == state
            for kept in slots if here.any() else ():
                if isinstance(kept, Register) and kept.column in self.plan.terms.derived and kept.variable >= 0:
                    slot = slot_of(self.tables, self.plan.numbered, self.plan.registers, state, kept)
                    chosen = np.flatnonzero(here & (elements.counts[kept.variable] > 0))
                    at = elements.starts[kept.variable][chosen]
                    if kept.keep is not Keep.FIRST:
                        at = at + elements.counts[kept.variable][chosen] - 1
                    events = found.events[elements.places[kept.variable][at]]
                    m.registers[slot, live[chosen]] = self.store.columns[kept.column, self.store.places(events)]
        self._sweep(self.store.size - 1)

    def _run(self, start: int, drain: Callable[[], _T]) -> Iterator[tuple[_T, int, int]]:
        self._load()
        self._stopped = layout.DONE, -1
        at, stop = start, self.store.size
        step = process_noted if self._is_noted() else process
        tables = self.tables if self._is_hooked() else self.tables._replace(hooks=None)
        while True:
            status, at = step(tables, self.memory, at, stop)
            count = int(self.memory.sizes[HAS_FOUND])
            if status in (layout.DONE, layout.MORE_FOUND, layout.MORE_NODES):  # matches hold nodes, which are reclaimed
                yield drain(), start, at
                start = at
            if status == layout.DONE:
                return
            if status != layout.MORE_FOUND or not count or self.memory.found.shape[1] < _MOST_FOUND:
                self._make_room(status, at)

    def _is_hooked(self) -> bool:
        """Return whether the kernel must have the code for hooks.

        If there are hooks that say nothing yet, it has: it had better not be compiled again in the first overload.
        """
        return self._has_hooks or bool(self.tables.options[list(layout.PLAIN_HOOKS)].any())

    def _is_noted(self) -> bool:
        """Return whether something is asked for that the leaner entry of the kernel does not do."""
        options = self.tables.options
        splits = bool(options[layout.PLAIN_SHEDS]) and bool(self.plan.numbered.negations)
        return len(self.memory.ledger) > 0 or bool(options[layout.PLAIN_REPORTS]) or splits

    def _load(self) -> None:
        """Take over what the store has got: its arrays may have grown."""
        store, plan = self.store, self.plan
        self.memory = self.memory._replace(
            events=store.events, fits=store.fits, columns=store.columns, ranks=self._ranks(), exact=self._exact()
        )
        self.memory.sizes[HAS_EVENTS] = store.size
        if plan.query.partition and store.size:
            partitions = int(store.events[layout.EVENT_PART, : store.size].max()) + 1
            if partitions > self.memory.newest.shape[1]:
                newest = np.zeros((layout.NEWEST_WIDTH, 2 * partitions), np.int64)
                newest[:, : self.memory.newest.shape[1]] = self.memory.newest
                self.memory = self.memory._replace(newest=newest)

    def _ranks(self) -> Ints:
        store = self.store
        return store.ranks() if store.is_calling or self.plan.ordered @ store.has_text else np.zeros(0, np.int64)

    def _exact(self) -> Bools:
        """Say which conjuncts may be intervals: an order of texts is not one of their numbers."""
        is_equality = self.tables.conjuncts[:, layout.CONJ_OP] == layout.EQ
        may_be_text: Bools = self.plan.reads @ self.store.has_text
        if self.store.functions.has_texts:
            may_be_text |= self.plan.calling
        exact: Bools = is_equality | ~may_be_text
        return exact

    def _follow_texts(self) -> None:
        """While the kernel runs, a function has returned the first text: what calls one may be no interval any more."""
        self.memory.exact[:] = self._exact()

    def _make_room(self, status: int, at: int) -> None:
        is_new, self._stopped = self._stopped != (status, at), (status, at)
        if status == layout.TOO_MANY_RUNS:
            self._sweep(at - 1)
            if is_new:  # some of them were over
                return
            raise TooManyRunsError(int(self.tables.options[layout.PLAIN_MAX_RUNS]), at)
        if status == layout.MORE_NODES:
            self._reclaim_nodes(at - 1)
            if is_new and 4 * self._nodes_kept < self.memory.nodes.shape[1]:
                return
        if status == layout.MORE_OVER:
            self._sweep(at - 1)
            if not is_new:
                self.memory = self.memory._replace(over=wider(self.memory.over, 2 * self.memory.over.shape[1]))
            return
        if status == layout.MORE_RUNS and is_new and not must_grow(self.memory, self._sweep(at - 1)):
            return
        self.memory = with_plain_room(self.tables, self.memory, status)
        if status == layout.MORE_RUNS:
            self._sweep(at - 1)  # builds the indexes anew

    def flush(self) -> Iterator[tuple[Found, int, int]]:
        """Return what only the end of the stream completes: nothing. If runs are reported, all end."""
        if self.tables.options[layout.PLAIN_REPORTS]:
            self._end_over(0, ends_all=True)
        return iter(())

    def advance(self, ts: int) -> Iterator[tuple[Found, int, int]]:
        """Let time come to `ts`; return what that completes: nothing."""
        return iter(())

    # --- matches ----------------------------------------------------------------------------------------------

    def _drain(self) -> Found:
        m, count = self.memory, int(self.memory.sizes[HAS_FOUND])
        events, variables = endings(m)
        low = high = np.zeros(count, np.int64)
        if m.spans.shape[1]:
            low, high = m.spans[layout.SPAN_LOW, :count].copy(), m.spans[layout.SPAN_HIGH, :count].copy()
        found = self._unrolled(m.found[layout.MATCH_NODE, :count], events, variables, low, high)
        m.sizes[[HAS_FOUND, HAS_ENDED]] = 0
        return found

    def _drain_chains(self) -> Chains:
        query = self.plan.query
        chains = Chains(
            self.memory, self._places, has_windows=query.window is not None, has_parts=bool(query.partition)
        )
        self.memory.sizes[[HAS_FOUND, HAS_ENDED]] = 0
        self.given_out.add(chains)
        return chains

    def _unrolled(self, nodes: SmallInts, events: SmallInts, variables: SmallInts, low: Ints, high: Ints) -> Found:
        """Lay out matches flat: chains of nodes, each with one more element."""
        m, count = self.memory, len(nodes)
        lengths = np.zeros(count, np.int64)
        chain_lengths(m.nodes, nodes, lengths)
        offsets = np.concatenate([[0], np.cumsum(lengths + 1)])
        flat, of = np.zeros(offsets[-1], np.int64), np.zeros(offsets[-1], np.int32)
        flat[offsets[1:] - 1], of[offsets[1:] - 1] = self.store.numbers[events], variables
        unroll_chains(m.nodes, nodes, offsets[1:] - 1, self.store.numbers, of, flat)
        rounds, store = np.zeros((int(self._has_rounds), len(flat)), np.int32), self.store
        if self._has_rounds:
            number_rounds(offsets, of, self._loops, np.zeros(len(self._loops), np.int64), rounds)
        by_count = self.tables.options[layout.PLAIN_BY_COUNT]
        known_ts = np.zeros(count) if by_count else store.events[layout.EVENT_TS, events].astype(np.float64)
        known_pos = store.events[layout.EVENT_POS, events].astype(np.float64)
        part = store.events[layout.EVENT_PART, events]
        return Found(offsets, of, flat, rounds, low, high, part, known_ts, known_pos)

    def runs(self) -> Found:
        """Return the open runs, as if they were matches."""
        m, options = self.memory, self.tables.options
        self._sweep(self.store.size - 1)
        live = self._live()
        nodes = m.runs[HELD_NODE, live]
        events, variables = m.nodes[layout.LINK_EVENT, nodes], m.nodes[layout.LINK_VARIABLE, nodes]
        low = high = np.zeros(len(live), np.int64)
        if options[layout.PLAIN_LOW] >= 0:
            low, high = m.registers[options[[layout.PLAIN_LOW, layout.PLAIN_HIGH]]][:, live].astype(np.int64)
        return self._unrolled(m.nodes[layout.LINK_PARENT, nodes], events, variables, low, high)

    def windows(self) -> tuple[Ints, Ints]:
        """Return the partition and the first window of every run."""
        live, options, registers = self._live(), self.tables.options, self.memory.registers
        low = registers[options[layout.PLAIN_LOW], live].astype(np.int64)
        if options[layout.PLAIN_PART] < 0:
            return np.zeros(len(live), np.int64), low
        return registers[options[layout.PLAIN_PART], live].astype(np.int64), low

    def _live(self) -> Ints:
        """Return the places of the runs."""
        segments = self.memory.segments
        pairs = zip(segments[SEGMENT_START].tolist(), segments[SEGMENT_SIZE].tolist(), strict=True)
        places = np.concatenate([np.arange(start, start + size) for start, size in pairs])
        live: Ints = places[~np.isnan(self.memory.registers[REACH, places])]
        return live

    @property
    def work(self) -> dict[str, int]:
        """What has been done so far."""
        sizes = self.memory.sizes
        return {
            "checks": int(sizes[HAS_CHECKS]),
            "runs_created": int(sizes[HAS_CREATED]),
            "matches": int(sizes[HAS_MATCHES]),
            "runs": len(self._live()),
        }

    # --- runs that end without a match --------------------------------------------------------------------------

    def _sweep(self, now: int) -> Ints:
        """Drop the runs that are over at an event; report them first, if so asked. Return how many each state had."""
        sizes: Ints = self.memory.segments[SEGMENT_SIZE].copy()
        if self.tables.options[layout.PLAIN_REPORTS] and now >= 0:
            self._end_over(int(self.memory.events[layout.EVENT_TS, now]))
        sweep_all(self.tables, self.memory, now)
        return sizes

    def _end_over(self, now: int, *, ends_all: bool = False) -> None:
        """Let the runs leave that are over by a time, and note them; there is room for a while."""
        self._drain_over()
        room = 2 * int(self.memory.segments[SEGMENT_SIZE].sum()) + 256
        if self.memory.over.shape[1] < room:
            self.memory = self.memory._replace(over=np.zeros((layout.OVER_WIDTH, 2 * room), np.int64))
        end_over(self.tables, self.memory, now, ends_all)

    def _drain_over(self) -> None:
        """Lay out the runs that have ended: their elements may be reclaimed, and their events get other places."""
        m, count = self.memory, int(self.memory.sizes[HAS_OVER])
        if not count:
            return
        over = m.over[:, :count]
        nodes, by = over[layout.OVER_NODE], over[layout.OVER_BY]
        events, variables = m.nodes[layout.LINK_EVENT, nodes], m.nodes[layout.LINK_VARIABLE, nodes]
        low, high = over[layout.OVER_LOW].copy(), over[layout.OVER_HIGH].copy()
        found = self._unrolled(m.nodes[layout.LINK_PARENT, nodes], events, variables, low, high)
        numbers = np.where(by >= 0, self.store.numbers[by], -1)
        self._over.append(Over(found, over[layout.OVER_WHY] == layout.ABANDONED, numbers))
        m.sizes[HAS_OVER] = 0

    def end_runs(self) -> None:
        """Note the runs that are over by now."""
        if self.store.size:
            self._end_over(self.store.now)

    def take_over(self) -> list[Over]:
        """Return the runs that have ended since this was last called."""
        self._drain_over()
        over, self._over = self._over, []
        return over

    # --- memory -----------------------------------------------------------------------------------------------

    def _reclaim_nodes(self, now: int) -> None:
        """Drop the elements that no run goes back to, after dropping the runs that are over."""
        self._sweep(now)
        self._drain_over()
        m = self.memory
        is_held = spare([each for each in self.given_out if each.nodes is m.nodes], m.nodes)
        self.memory = with_needed_nodes(m, is_held=is_held)
        self._nodes_kept = int(m.sizes[HAS_NODES])

    def needed(self) -> Bools:
        """Return which events of the store are bound in runs; all of them have been processed, and may now move."""
        self._reclaim_nodes(self.store.size - 1)
        store, needed = self.store, np.zeros(self.store.size, np.bool_)
        needed[self.memory.nodes[layout.LINK_EVENT, : self._nodes_kept]] = True
        if spare([each for each in self.given_out if each.events is store.events], store.events):
            store.events = store.events.copy()
        return needed

    def move_events(self, places: Ints) -> None:
        """Follow the store: events have new places."""
        m, live = self.memory, self._live()
        m.nodes[layout.LINK_EVENT, : self._nodes_kept] = places[m.nodes[layout.LINK_EVENT, : self._nodes_kept]]
        if self.tables.options[layout.PLAIN_MOVES]:
            m.runs[HELD_SEEN, live] = -1
        self.tables.options[layout.PLAIN_TALLIES] = 0
        m.sizes[HAS_EVENTS] = self.store.size

    def live_values(self) -> Iterator[Floats]:
        """Yield the registers of the runs, as views to change in place; `reindex` must follow."""
        segments = self.memory.segments
        for start, size in zip(segments[SEGMENT_START].tolist(), segments[SEGMENT_SIZE].tolist(), strict=True):
            yield self.memory.registers[:, start : start + size]

    def reindex(self) -> None:
        """Follow a change of the registers: texts have new numbers."""
        self.memory = self.memory._replace(constants=self.store.constants())
        self._sweep(self.store.size - 1)

    # --- snapshots --------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return all that must survive, after dropping what is over."""
        self._reclaim_nodes(self.store.size - 1)
        return state_of(self.memory, self._nodes_kept)

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; the store has been restored."""
        self.memory, self._nodes_kept = restored(self.memory, state), state["nodes"].shape[1]
        self.tables.options[layout.PLAIN_TALLIES] = 0
        self._load()
        self._sweep(self.store.size - 1)  # builds the indexes
