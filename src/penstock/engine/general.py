"""All other queries in the engine: the general kernel with its memory (penstock.kernel.machine)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock.engine.found import Found, of_memory
from penstock.engine.hooks import Hooks
from penstock.engine.matcher import MAX_FOUND, TooManyRunsError, lowest
from penstock.engine.store import Store
from penstock.kernel.machine import finish, process, sweep_over
from penstock.kernel.memory import Memory, new_memory, wider, with_larger_segments, with_partitions, with_room
from penstock.kernel.passing import pass_time
from penstock.kernel.reclaiming import mark_ancestors
from penstock.plan import layout
from penstock.plan.layout import (
    BY_COUNT,
    EVENT_PART,
    NODE_EVENT,
    NODE_PARENT,
    RUN_FIRST,
    RUN_LENGTH,
    RUN_NODE,
    SEGMENT_ROOM,
    SEGMENT_SIZE,
    SEGMENT_START,
    SIZE_EVENTS,
    SIZE_FOUND,
    SIZE_NODES,
    SIZE_WAITING,
    WAIT_FIRST,
    WAIT_NODE,
    WITHIN,
)
from penstock.plan.planning import Plan
from penstock.plan.tables import Bools, Floats, Ints

_TABLES = {
    layout.MORE_CANDIDATES: ("candidates",),
    layout.MORE_NODES: ("nodes",),
    layout.MORE_FOUND: ("found", "known"),
    layout.MORE_WAITING: ("waiting",),
    layout.LONGER_CHAINS: ("chain",),
}


class GeneralMatcher:
    """Finds the matches of any query."""

    def __init__(self, plan: Plan, store: Store, max_runs: int) -> None:
        self.plan, self.store, self.max_runs = plan, store, max_runs
        self.tables = plan.tables._replace(options=plan.tables.options.copy())
        self.memory = new_memory(plan.tables, len(plan.terms.columns), store.constants())
        self._nodes_kept = 0
        self._stopped = layout.DONE, -1  # why and before which event the kernel last stopped

    # --- running ----------------------------------------------------------------------------------------------

    def run(self, start: int) -> Iterator[tuple[Found, int, int]]:
        """Process the events of the store from place `start` on; yield matches, and the events that they are of."""
        self._load()
        self._stopped = layout.DONE, -1
        at, stop = start, self.store.size
        while True:
            status, at = process(self.tables, self.memory, at, stop)
            count = int(self.memory.sizes[SIZE_FOUND])
            if status in (layout.DONE, layout.MORE_FOUND):
                yield self._drain(), start, at
                start = at
            if status == layout.DONE:
                self._check_runs(at)
                return
            if status != layout.MORE_FOUND or not count or self.memory.found.shape[1] < MAX_FOUND:
                self._make_room(status, at)

    def set_hooks(self, hooks: Hooks | None, start: int) -> None:
        """Say what is shed and counted of the events from place `start` on."""
        options, memory, hooks = self.tables.options, self.memory, hooks or Hooks()
        options[layout.SHEDS], options[layout.OBSERVES] = hooks.windows is not None, hooks.cells is not None
        options[layout.HOOKS_FROM] = start
        size = self.store.size - start if hooks.windows is not None or hooks.cells is not None else 0
        table = np.zeros((layout.HOOK_WIDTH, size), np.int64)
        if hooks.windows is not None:
            table[layout.HOOK_SHED] = hooks.windows
        if hooks.cells is not None:
            table[layout.HOOK_CELL] = hooks.cells
        observed = memory.observed[:0] if hooks.counted is None else hooks.counted
        self.memory = memory._replace(hooks=table, observed=observed)
        if hooks.states is not None or options[layout.SKIPS]:
            self._hide(hooks.states, start)

    def _hide(self, states: Bools | None, start: int) -> None:
        """Remember from which runs events are hidden: a negation may look back at them later."""
        room, skips = self.store.events.shape[1], self.memory.skips
        if skips.shape[1] < room:
            self.memory = self.memory._replace(skips=wider(skips, room))
        self.memory.skips[:, start : self.store.size] = False if states is None else states
        self.tables.options[layout.SKIPS] = 1

    def open_runs(self) -> Ints:
        """Return how many runs are open in each state."""
        self._sweep(self.store.size - 1)
        counts: Ints = self.memory.segments[SEGMENT_SIZE].copy()
        return counts

    def drop_runs(self, count: int, utility: Floats) -> Ints:
        """Drop the `count` runs of least utility, or all if there are fewer; return how many of each state.

        Args:
            count: how many.
            utility: (S, B) of a run by its state and by what it has left of WITHIN, in B equal parts, the least first.
        """
        self._sweep(self.store.size - 1)
        m, live = self.memory, self._live()
        states = np.repeat(np.arange(len(self.tables.states)), m.segments[SEGMENT_SIZE])
        chosen = lowest(utility, states, self._left(live), count)
        m.runs[RUN_NODE, live[chosen]] = layout.GONE
        self._sweep(self.store.size - 1)
        return np.bincount(states[chosen], minlength=len(self.tables.states))

    def _left(self, live: Ints) -> Floats:
        """Return the share of WITHIN that runs have left."""
        events, options, first = self.store.events, self.tables.options, self.memory.runs[RUN_FIRST, live]
        if options[BY_COUNT]:
            row, now = layout.EVENT_POS, self.memory.newest[events[EVENT_PART, first]]
        else:
            row, now = layout.EVENT_TS, np.full(len(live), self.store.size - 1)
        left: Floats = 1 - (events[row, now] - events[row, first]) / max(1, int(options[WITHIN]))
        return left

    def _load(self) -> None:
        store = self.store
        self.memory = self.memory._replace(
            events=store.events, fits=store.fits, columns=store.columns, ranks=store.ranks()
        )
        self.memory.sizes[SIZE_EVENTS] = store.size
        partitions = int(store.events[EVENT_PART, : store.size].max(initial=0)) + 1
        self.memory = with_partitions(self.memory, partitions)

    def _make_room(self, status: int, at: int) -> None:
        is_new, self._stopped = self._stopped != (status, at), (status, at)
        if status == layout.MORE_RUNS:
            self._sweep(at - 1)
            self._check_runs(at)
            segments = self.memory.segments
            if not is_new or (2 * segments[SEGMENT_SIZE] > segments[SEGMENT_ROOM]).any():
                self.memory = with_larger_segments(self.memory)
            return
        if status == layout.MORE_NODES:
            self._reclaim_nodes(at - 1)
            if is_new and 2 * self._nodes_kept < self.memory.nodes.shape[1]:
                return
        names = _TABLES[status]
        self.memory = with_room(self.memory, names, 2 * getattr(self.memory, names[0]).shape[1] + 8)

    def _check_runs(self, at: int) -> None:
        """Refuse to go on with too many runs."""
        if self._count() > self.max_runs:
            self._sweep(at - 1)
            if self._count() > self.max_runs:
                raise TooManyRunsError(self.max_runs, at)

    def _count(self) -> int:
        return int(self.memory.segments[SEGMENT_SIZE].sum())

    def flush(self) -> Iterator[tuple[Found, int, int]]:
        """End the stream; yield what only that completes."""
        self._make_room_for_all()
        finish(self.tables, self.memory)
        yield self._drain(), self.store.size, self.store.size

    def advance(self, ts: int) -> Iterator[tuple[Found, int, int]]:
        """Let time come to `ts`; yield what that completes."""
        if self.tables.options[BY_COUNT] or not self.store.size:
            return
        self._make_room_for_all()
        pass_time(self.tables, self.memory, ts)
        yield self._drain(), self.store.size, self.store.size

    def _make_room_for_all(self) -> None:
        """Make room for a match of every run and of all that waits."""
        self._load()
        m = self.memory
        runs, waiting = int(m.segments[SEGMENT_SIZE].sum()), int(m.sizes[SIZE_WAITING])
        ways = max(1, int((self.tables.states[:, 3] - self.tables.states[:, 2]).max(initial=1)))
        room = (ways + 1) * runs + 2 * waiting + int(m.runs[RUN_LENGTH].max(initial=0)) + 8
        small = tuple(name for name in ("found", "known", "waiting", "chain") if getattr(m, name).shape[1] < room)
        if small:
            self.memory = with_room(m, small, 2 * room)

    # --- matches ----------------------------------------------------------------------------------------------

    def _drain(self) -> Found:
        found = of_memory(self.tables, self.memory)
        self.memory.sizes[SIZE_FOUND] = 0
        return _numbered(found, self.store)

    def runs(self) -> Found:
        """Return the open runs, as if they were matches."""
        self._sweep(self.store.size - 1)
        m, live = self.memory, self._live()
        found = np.zeros((layout.FOUND_WIDTH, len(live)), np.int64)
        found[layout.FOUND_NODE], found[layout.FOUND_LENGTH] = m.runs[RUN_NODE, live], m.runs[RUN_LENGTH, live]
        found[layout.FOUND_LOW], found[layout.FOUND_HIGH] = m.runs[layout.RUN_LOW, live], m.runs[layout.RUN_HIGH, live]
        sizes = m.sizes.copy()
        sizes[SIZE_FOUND] = len(live)
        as_found = m._replace(found=found, known=np.zeros((layout.KNOWN_WIDTH, len(live))), sizes=sizes)
        return _numbered(of_memory(self.tables, as_found), self.store)

    def refresh(self, rows: Ints, found: Found, is_dropped: Bools) -> None:
        """Drop some of the runs that `runs` has just returned, as `PlainMatcher.refresh`; they keep no values."""
        self.memory.runs[RUN_NODE, self._live()[rows[is_dropped]]] = layout.GONE
        sweep_over(self.plan.tables, self.memory, self.store.size - 1)

    def windows(self) -> tuple[Ints, Ints]:
        """Return the partition and the first window of every run and of every match that waits."""
        m, live, waiting = self.memory, self._live(), int(self.memory.sizes[SIZE_WAITING])
        first = np.concatenate([m.runs[RUN_FIRST, live], m.waiting[WAIT_FIRST, :waiting]])
        low = np.concatenate([m.runs[layout.RUN_LOW, live], m.waiting[layout.WAIT_LOW, :waiting]])
        return self.store.events[layout.EVENT_PART, first], low

    def _live(self) -> Ints:
        segments = self.memory.segments
        pairs = zip(segments[SEGMENT_START].tolist(), segments[SEGMENT_SIZE].tolist(), strict=True)
        return np.concatenate([np.arange(start, start + size) for start, size in pairs])

    @property
    def work(self) -> dict[str, int]:
        """What has been done so far."""
        sizes = self.memory.sizes
        return {
            "checks": int(sizes[layout.SIZE_CHECKS]),
            "runs_created": int(sizes[layout.SIZE_CREATED]),
            "matches": int(sizes[layout.SIZE_MATCHES]),
            "runs": self._count(),
        }

    # --- memory -----------------------------------------------------------------------------------------------

    def _sweep(self, now: int) -> None:
        if now >= 0:
            sweep_over(self.tables, self.memory, now)

    def _reclaim_nodes(self, now: int) -> None:
        """Drop the elements that neither a run nor a match that waits goes back to."""
        self._sweep(now)
        m = self.memory
        count, live, waiting = int(m.sizes[SIZE_NODES]), self._live(), int(m.sizes[SIZE_WAITING])
        found = int(m.sizes[SIZE_FOUND])
        marked = np.zeros(count, np.bool_)
        holders = (m.runs[RUN_NODE], live), (m.waiting[WAIT_NODE], slice(waiting)), (m.found[0], slice(found))
        for row, places in holders:
            marked[row[places]] = True
        mark_ancestors(np.ascontiguousarray(m.nodes[NODE_PARENT, :count]), marked)
        places = np.cumsum(marked) - 1
        kept = m.nodes[:, :count][:, marked]
        parents = kept[NODE_PARENT]
        kept[NODE_PARENT] = np.where(parents >= 0, places[parents], -1)
        m.nodes[:, : kept.shape[1]] = kept
        for row, chosen in holders:
            row[chosen] = places[row[chosen]]
        m.sizes[SIZE_NODES] = self._nodes_kept = kept.shape[1]

    def needed(self) -> Bools:
        """Return which events are bound in runs, or may still be looked at by a negation."""
        size, m, options = self.store.size, self.memory, self.tables.options
        self._reclaim_nodes(size - 1)
        events = self.store.events[:, :size]
        newest = m.newest[events[EVENT_PART]]  # of the partition of each event
        row, now = (layout.EVENT_POS, newest) if options[BY_COUNT] else (layout.EVENT_TS, size - 1)
        needed: Bools = events[row] >= events[row, now] - options[WITHIN]
        if options[layout.WINDOWS]:
            needed &= events[layout.EVENT_HIGH] >= events[layout.EVENT_LOW, newest]
        bound = m.nodes[NODE_EVENT, : self._nodes_kept]
        needed[bound] = needed[newest[bound]] = True  # the newest event of a run's partition tells whether it is over
        return needed

    def move_events(self, places: Ints) -> None:
        """Follow the store: events have new places."""
        m, live, waiting = self.memory, self._live(), int(self.memory.sizes[SIZE_WAITING])
        m.nodes[NODE_EVENT, : self._nodes_kept] = places[m.nodes[NODE_EVENT, : self._nodes_kept]]
        m.runs[RUN_FIRST, live] = places[m.runs[RUN_FIRST, live]]
        m.waiting[WAIT_FIRST, :waiting] = places[m.waiting[WAIT_FIRST, :waiting]]
        m.newest[:] = np.where(m.newest >= 0, places[m.newest], -1)
        if self.tables.options[layout.SKIPS]:
            kept = m.skips[:, : len(places)][:, places >= 0]
            m.skips[:, : kept.shape[1]] = kept
            self.tables.options[layout.SKIPS] = kept.any()
        m.sizes[SIZE_EVENTS] = self.store.size

    def live_values(self) -> Iterator[Floats]:
        """Yield nothing: runs keep no values, they look at their events."""
        return iter(())

    def reindex(self) -> None:
        """Follow a change of texts, which have new numbers."""
        self.memory = self.memory._replace(constants=self.store.constants())

    # --- snapshots --------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return all that must survive, after dropping what is over."""
        self._reclaim_nodes(self.store.size - 1)
        m = self.memory
        return {
            "sizes": m.sizes,
            "segment_sizes": m.segments[SEGMENT_SIZE],
            "nodes": m.nodes[:, : self._nodes_kept],
            "runs": m.runs[:, self._live()],
            "waiting": m.waiting[:, : int(m.sizes[SIZE_WAITING])],
            "skips": m.skips[:, : self.store.size if self.tables.options[layout.SKIPS] else 0],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; the store has been restored."""
        m, sizes = self.memory, state["segment_sizes"]
        rooms = np.maximum(m.segments[SEGMENT_ROOM], 2 * sizes)
        starts = np.concatenate([[0], np.cumsum(rooms)[:-1]])
        runs = np.zeros((m.runs.shape[0], int(rooms.sum())), np.int64)
        at = 0
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            runs[:, start : start + size] = state["runs"][:, at : at + size]
            at += size
        self.memory = _with_columns(m, "nodes", state["nodes"])
        self.memory = _with_columns(self.memory, "waiting", state["waiting"])
        self.memory = self.memory._replace(
            sizes=state["sizes"].copy(), segments=np.stack([starts, sizes, rooms]).astype(np.int64), runs=runs
        )
        longest = int(runs[RUN_LENGTH].max(initial=0)) + 8
        self.memory = with_room(self.memory, ("chain",), longest)
        self._nodes_kept = state["nodes"].shape[1]
        self._load()
        if state["skips"].shape[1]:
            self._hide(state["skips"], 0)
        self.memory.newest[self.store.events[EVENT_PART, : self.store.size]] = np.arange(self.store.size)


def _numbered(found: Found, store: Store) -> Found:
    """Return matches whose events are meant by their running numbers instead of their places."""
    return Found(
        found.offsets, found.variables, store.numbers[found.events], found.rounds, found.low, found.high, found.part,
        found.known_ts, found.known_pos,
    )  # fmt: skip


def _with_columns(memory: Memory, name: str, columns: Ints) -> Memory:
    memory = with_room(memory, (name,), columns.shape[1] + columns.shape[1] // 2 + 8)
    getattr(memory, name)[:, : columns.shape[1]] = columns
    return memory
