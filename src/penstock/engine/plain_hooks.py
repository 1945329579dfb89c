"""Hooks on the plain kernel: the arrays that it reads and adds to for one batch, and how its runs are counted."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.engine.hooks import Hooks
from penstock.kernel.dropping import count_open
from penstock.kernel.plain_memory import PlainMemory
from penstock.kernel.tallying import recount
from penstock.plan import layout
from penstock.plan.layout import HAS_EVENTS, LEDGER_SHED, LEDGER_WIDTH, SUMMARY_WIDTH, TALLY_ANEW, TALLY_KEPT
from penstock.plan.plain import PlainTables
from penstock.plan.tables import Ints


def with_hooks(tables: PlainTables, memory: PlainMemory, hooks: Hooks, start: int) -> PlainMemory:
    """Return a memory with the decisions about the events from place `start` on; the options say which there are."""
    options, empty = tables.options, np.zeros(0, np.int64)
    options[layout.PLAIN_SKIPS] = hooks.states is not None
    options[layout.PLAIN_SHEDS] = hooks.windows is not None
    options[layout.PLAIN_OBSERVES] = hooks.counted is not None
    options[layout.PLAIN_TRACES] = hooks.moves is not None
    memory.sizes[layout.HAS_BATCH] = start
    memory = memory._replace(
        skips=memory.skips[:, :0] if hooks.states is None else np.ascontiguousarray(hooks.states),
        sheds=empty if hooks.windows is None else hooks.windows,
        cells=empty if hooks.cells is None else hooks.cells,
        observed=memory.observed[:0] if hooks.counted is None else hooks.counted,
        moves=memory.moves[:0] if hooks.moves is None else hooks.moves,
    )
    if not hooks.tallies:
        options[layout.PLAIN_TALLIES] = 0
        return memory._replace(ledger=memory.ledger[:0])
    return _with_tallies(tables, memory, hooks, start)


def _with_tallies(tables: PlainTables, memory: PlainMemory, hooks: Hooks, start: int) -> PlainMemory:
    """Return a memory that keeps a ledger of the events from place `start` on, and counts open runs for it."""
    options, states, size = tables.options, len(tables.states), int(memory.sizes[HAS_EVENTS])
    ledger = np.zeros((size - start, LEDGER_WIDTH), np.int64)
    ledger[:, LEDGER_SHED] = -1
    worth = np.zeros((states + 1, 0))
    if hooks.worth is not None:
        worth = np.empty((states + 1, size - start))
        worth[:states], worth[states] = hooks.worth, hooks.least
    memory = memory._replace(
        ledger=ledger,
        worth=worth,
        open_runs=memory.open_runs[:0] if hooks.open_runs is None else hooks.open_runs,
        summary=_with_rows(memory.summary, memory.newest.shape[1], [1] + [0] * (states - 1) + [-1] * SUMMARY_WIDTH),
        tallies=_with_rows(memory.tallies, size, [0] * states),
    )
    was = options[layout.PLAIN_TALLIES]
    is_ended_otherwise = options[layout.PLAIN_LOW] >= 0 or options[layout.PLAIN_LAST] >= 0
    options[layout.PLAIN_TALLIES] = TALLY_ANEW if is_ended_otherwise else TALLY_KEPT
    if options[layout.PLAIN_TALLIES] == TALLY_KEPT and was != TALLY_KEPT:
        if memory.runs.shape[0] == layout.HELD_WIDTH:
            memory = memory._replace(runs=np.concatenate([memory.runs, np.zeros((1, memory.runs.shape[1]), np.int32)]))
        recount(tables, memory)
    return memory


def _with_rows(array: Any, count: int, row: list[int]) -> Any:
    """Return an array with so many rows at least: those that are there, and copies of a new one."""
    if count <= len(array):
        return array
    longer = np.empty((2 * count, array.shape[1]), array.dtype)
    longer[: len(array)], longer[len(array) :] = array, row
    return longer


def open_runs(tables: PlainTables, memory: PlainMemory, now: int) -> Ints:
    """Return how many runs are open in each state; `now`: the time of the stream."""
    counts = np.zeros(len(tables.states), np.int64)
    count_open(tables, memory, now, counts)
    return counts
