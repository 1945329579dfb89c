"""Tree plans in the engine: the kernel that joins buffers of events (penstock.kernel.tree), and which tree it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from penstock.engine.found import Found, Laid
from penstock.engine.matcher import MAX_FOUND, TooManyRunsError
from penstock.engine.store import Store
from penstock.kernel.reclaiming import lay_out_tuples
from penstock.kernel.tree import process, reindex, sweep_all, with_more
from penstock.kernel.tree_memory import TreeMemory, new_tree_memory, oldest, renumber
from penstock.plan import joins, layout
from penstock.plan.joins import join_query
from penstock.plan.planning import Plan
from penstock.plan.statistics import Sample, Statistics, estimate
from penstock.plan.tables import Bools, Floats, Ints
from penstock.plan.tree import Tree, join, leaf, tree_tables, tree_to_take

_T = TypeVar("_T")
_SAMPLE, _PAIRS = 4096, 500  # events, the newest ones, and pairs of them that statistics are estimated from


class TreeMatcher:
    """Finds the EACH matches of a query by joins, in the order of a tree."""

    def __init__(self, plan: Plan, store: Store, max_runs: int, tree: Tree) -> None:
        self.plan, self.store, self.max_runs, self.tree = plan, store, max_runs, tree
        self.tables = tree_tables(plan, join_query(plan), tree)
        sizes = len(plan.numbered.variables), len(plan.terms.columns)
        self.memory: TreeMemory = new_tree_memory(self.tables, *sizes, store.constants())

    # --- running ----------------------------------------------------------------------------------------------

    def run(self, start: int) -> Iterator[tuple[Found, int, int]]:
        """Process the events of the store from place `start` on; yield matches, and the events that they are of."""
        return self._run(start, self._drain)

    def run_laid_out(self, start: int) -> Iterator[tuple[Laid, int, int]]:
        """Like `run`, for queries that let every match pass: it is laid out as users get it, once."""
        return self._run(start, self._drain_laid_out)

    def replay(self) -> Iterator[Any]:
        """Take in the events of the store again, whose matches have been found already: they are not laid out."""
        return self._run(0, lambda: self.memory.work.__setitem__(joins.WORK_FOUND, 0))

    def _run(self, start: int, drain: Callable[[], _T]) -> Iterator[tuple[_T, int, int]]:
        store = self.store
        self.memory = self.memory._replace(
            events=store.events, fits=store.fits, columns=store.columns, ranks=store.ranks()
        )
        at = start
        while True:
            status, at = process(self.tables, self.memory, at, store.size)
            count = int(self.memory.work[joins.WORK_FOUND])
            if status in (joins.DONE, joins.MORE_FOUND):
                yield drain(), start, at
                start = at
            if status == joins.DONE:
                return
            if status != joins.MORE_FOUND or not count or self.memory.found.shape[1] < MAX_FOUND:
                self._make_room(status, at)

    def _make_room(self, status: int, at: int) -> None:
        if status == joins.MORE_TUPLES:
            self._sweep(at)
            full = int(self.memory.work[joins.WORK_FULL])
            size, room = self.memory.segments[joins.SEG_SIZE, full], self.memory.segments[joins.SEG_ROOM, full]
            if int(self.memory.segments[joins.SEG_SIZE].sum()) > self.max_runs:
                raise TooManyRunsError(self.max_runs, at)
            if 4 * size < room and self._swept_at != at:
                self._swept_at = at
                return
        self.memory = with_more(self.tables, self.memory, status)

    _swept_at = -1  # the last event before which there was no room, and a sweep made some

    def _horizon(self, at: int) -> int:
        """Return the first event within reach of the one at a place."""
        row = layout.EVENT_POS if self.tables.options[joins.TREE_BY_COUNT] else layout.EVENT_TS
        clock = self.store.events[row, : self.store.size]
        at = min(at, self.store.size - 1)
        return int(np.searchsorted(clock[: at + 1], clock[at] - self.tables.options[joins.TREE_WITHIN]))

    def _sweep(self, at: int) -> None:
        if self.store.size:
            sweep_all(self.tables, self.memory, self._horizon(at))

    def flush(self) -> Iterator[tuple[Found, int, int]]:
        """Return what only the end of the stream completes: nothing."""
        return iter(())

    def advance(self, ts: int) -> Iterator[tuple[Found, int, int]]:
        """Let time come to `ts`; return what that completes: nothing."""
        return iter(())

    # --- matches ----------------------------------------------------------------------------------------------

    def _drain_laid_out(self) -> Laid:
        m, variables = self.memory, len(self.memory.fits)
        count = int(m.work[joins.WORK_FOUND])
        offsets = np.arange(0, (count + 1) * variables, variables)
        of, seq = np.empty(count * variables, np.int32), np.empty(count * variables, np.int64)
        times = np.empty((2, count), np.int64)
        lay_out_tuples(m.found, m.events, layout.EVENT_SEQ, of, seq, times)
        part = m.events[layout.EVENT_PART, m.found[0, :count]] if self.plan.query.partition else None
        m.work[joins.WORK_FOUND] = 0
        return Laid(offsets, of, seq, times[0], times[1], part)

    def _drain(self) -> Found:
        m, variables = self.memory, len(self.memory.fits)
        count = int(m.work[joins.WORK_FOUND])
        table = m.found[:, :count]
        order = np.argsort(table[:variables], axis=0, kind="stable")
        events = np.take_along_axis(table[:variables], order, axis=0)
        last = events[-1] if count else np.zeros(0, np.int64)
        low, high = table[variables + joins.FOUND_LOW].copy(), table[variables + joins.FOUND_HIGH].copy()
        if self.plan.query.window is None:
            low[:] = high[:] = 0
        store = self.store
        by_count = self.tables.options[joins.TREE_BY_COUNT]
        known_ts = np.zeros(count) if by_count else store.events[layout.EVENT_TS, last].astype(np.float64)
        found = Found(
            np.arange(0, (count + 1) * variables, variables), order.T.reshape(-1).astype(np.int32),
            store.numbers[events.T.reshape(-1)], np.zeros((0, count * variables), np.int32), low, high,
            store.events[layout.EVENT_PART, last], known_ts, store.events[layout.EVENT_POS, last].astype(np.float64),
        )  # fmt: skip
        m.work[joins.WORK_FOUND] = 0
        return found

    def windows(self) -> tuple[Ints, Ints]:
        """Return the partition and the first window of every tuple."""
        m, variables = self.memory, len(self.memory.fits)
        pairs = zip(m.segments[joins.SEG_START].tolist(), m.segments[joins.SEG_SIZE].tolist(), strict=True)
        live = np.concatenate([np.arange(start, start + size) for start, size in pairs])
        part, low = m.tuples[variables + joins.ROW_PART, live], m.tuples[variables + joins.ROW_LOW, live]
        return part.astype(np.int64), low.astype(np.int64)

    @property
    def work(self) -> dict[str, int]:
        """What has been done so far; tuples count as runs."""
        work = self.memory.work
        return {
            "checks": int(work[joins.WORK_CHECKS]),
            "runs_created": int(work[joins.WORK_CREATED]),
            "matches": int(work[joins.WORK_MATCHES]),
            "runs": int(self.memory.segments[joins.SEG_SIZE].sum()),
        }

    # --- memory -----------------------------------------------------------------------------------------------

    def needed(self) -> Bools:
        """Return which events of the store are still needed: those from the oldest on that a tuple holds."""
        needed = np.zeros(self.store.size, np.bool_)
        self._sweep(self.store.size)
        needed[oldest(self.tables, self.memory, self._horizon(self.store.size)) :] = True
        return needed

    def move_events(self, places: Ints) -> None:
        """Follow the store, which has dropped its oldest events."""
        renumber(self.memory, int((places < 0).sum()))

    def live_values(self) -> Iterator[Floats]:
        """Yield the values of the tuples, as views to change in place; `reindex` must follow."""
        segments = self.memory.segments
        for start, size in zip(segments[joins.SEG_START].tolist(), segments[joins.SEG_SIZE].tolist(), strict=True):
            yield self.memory.tuples[:, start : start + size]

    def reindex(self) -> None:
        """Follow a change of the tuples: texts have new numbers."""
        self.memory = self.memory._replace(constants=self.store.constants())
        self.memory.links[:] = -1
        reindex(self.tables, self.memory)

    # --- snapshots --------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return all that must survive, after dropping what is over."""
        self._sweep(self.store.size)
        m = self.memory
        spans = zip(m.segments[joins.SEG_START].tolist(), m.segments[joins.SEG_SIZE].tolist(), strict=True)
        tuples = {f"tuples.{n}": m.tuples[:, start : start + size] for n, (start, size) in enumerate(spans)}
        return {"tree": spelled(self.tree), "segments": m.segments, "latest": m.latest, "work": m.work, **tuples}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; the store has been restored, and the tree is that of the state."""
        m = self.memory
        segments = state["segments"].copy()
        total = int((segments[joins.SEG_START] + segments[joins.SEG_ROOM]).max())
        tuples = np.zeros((m.tuples.shape[0], total + m.tuples.shape[1] - int(m.segments[joins.SEG_ROOM].sum())))
        for n, (start, size) in enumerate(zip(segments[joins.SEG_START], segments[joins.SEG_SIZE], strict=True)):
            tuples[:, start : start + size] = state[f"tuples.{n}"]
        links = np.full((2, tuples.shape[1]), -1, np.int64)
        self.memory = m._replace(
            segments=segments, tuples=tuples, links=links, latest=state["latest"].copy(), work=state["work"].copy(),
            events=self.store.events, fits=self.store.fits, columns=self.store.columns,
        )  # fmt: skip
        reindex(self.tables, self.memory)


# --- choosing ---------------------------------------------------------------------------------------------------


class Chooser:
    """Chooses the tree of a query that may have one, again and again; `is_must`: even if the automaton is cheaper."""

    def __init__(self, plan: Plan, *, is_must: bool = False) -> None:
        self._plan, self._query, self._is_must = plan, join_query(plan), is_must
        self._known: Statistics | None = None  # those that the last choice was made by
        self._best: Tree | None = None

    def best(self, store: Store, types: Ints) -> Tree | None:
        """Return the cheapest tree for the newest events of a store; None if the automaton is cheaper and will do.

        Args:
            store: the events.
            types: their types.
        """
        statistics = self._statistics(store, types)
        if self._known is None or not statistics.is_near(self._known):
            self._best = tree_to_take(self._plan, statistics, self._query, is_must=self._is_must)
            self._known = statistics
        return self._best

    def _statistics(self, store: Store, types: Ints) -> Statistics:
        """Estimate rates and selectivities."""
        count, parts = min(_SAMPLE, store.size, len(types)), None
        chosen = slice(store.size - count, store.size)
        if self._query.is_partitioned:
            parts = store.events[layout.EVENT_PART, chosen]
        sample = Sample(
            tuple(store.reader.types.state()), types[len(types) - count :], store.events[layout.EVENT_TS, chosen],
            store.columns[:, chosen], store.constants(), store.ranks(), parts,
        )  # fmt: skip
        return estimate(self._plan, sample, self._query, pairs=_PAIRS)


def spelled(tree: Tree) -> str:
    """Return a tree as text: numbers of variables in brackets."""
    if tree.left is None or tree.right is None:
        return str(tree.variables.bit_length() - 1)
    return f"({spelled(tree.left)} {spelled(tree.right)})"


def read_tree(text: str) -> Tree:
    """Return the tree that `spelled` made text of."""
    stack: list[Tree] = []
    for token in text.replace("(", " ").replace(")", " ) ").split():
        if token == ")":
            right, left = stack.pop(), stack.pop()
            stack.append(join(left, right))
        else:
            stack.append(leaf(int(token)))
    return stack[0]
