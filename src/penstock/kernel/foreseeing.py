"""Plain queries with many keys: what the next events will look up is brought into the cache while others are processed.

With 100,000 keys nearly every look-up in an index waits for memory: for the bucket, then for each run in it, which only
the run before tells. Which buckets the coming events will need is known, so they are asked for ahead of time, and their
runs one by one a little later. Nothing depends on it; if a hint is wrong, nothing is gained.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # it has no types
from numba.core import types
from numba.extending import intrinsic
from numba.np import arrayobj

from penstock.kernel.compiling import inlined
from penstock.kernel.indexing import bucket
from penstock.kernel.plain_memory import AHEAD, PlainMemory
from penstock.plan.layout import (
    EVENT_PART,
    HELD_NEXT,
    HELD_NODE,
    HINT_COLUMN,
    HINT_STATE,
    HINT_TAKES,
    NO_STATE,
    PLAIN_INDEX,
    REACH,
    SEGMENT_ROOM,
    SEGMENT_START,
)
from penstock.plan.plain import PlainTables

PACE = AHEAD // 4  # so many events after a bucket, its first run is asked for, then the second, then the third
MANY_RUNS = 1 << 14  # with fewer places for runs, they are in the cache anyway


_array: Any = arrayobj.make_array


def _prefetch(_: Any, array: Any, index: Any) -> Any:
    """Ask for a place of an array of one dimension, without waiting for it."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = _array(signature.args[0])(context, builder, arguments[0]).data
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        builder.call(function, [pointer, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), code


prefetch: Any = intrinsic(_prefetch)


@inlined
def bucket_of(m: PlainMemory, state: int, column: int, event: int) -> int:
    """Return the bucket of a state in which an event's key is."""
    key = float(m.events[EVENT_PART, event]) if column < 0 else m.columns[column, event]
    return bucket(key, m.segments[SEGMENT_START, state], m.segments[SEGMENT_ROOM, state])


@inlined
def ask_for(t: PlainTables, m: PlainMemory, event: int, variable: int, depth: int) -> None:
    """Ask for the buckets that an event will look up or add runs to, or for the first run of one of the groups in them.

    Args:
        t: the tables.
        m: the memory.
        event: which one.
        variable: the one that takes it; negative, if it is not known.
        depth: 0 for buckets; then the how manieth group of runs. What is less deep has been asked for.
    """
    if variable < 0:
        return
    ahead = m.ahead[event & (AHEAD - 1)]
    for h in range(m.hints.shape[1]):
        state = m.hints[variable, h, HINT_STATE]
        if state == NO_STATE:
            return
        if depth == 0:
            ahead[h] = bucket_of(m, state, m.hints[variable, h, HINT_COLUMN], event)
            prefetch(m.heads, np.int64(ahead[h]))
        elif m.hints[variable, h, HINT_TAKES] and ahead[h] >= 0:
            group = np.int64(m.heads[ahead[h]] if depth == 1 else m.runs[HELD_NEXT, ahead[h]])
            run = group >> 1
            ahead[h] = run
            if run >= 0:
                prefetch(m.registers[REACH], run)
                prefetch(m.registers[t.states[state, PLAIN_INDEX]], run)
                prefetch(m.runs[HELD_NEXT], run)
                prefetch(m.runs[HELD_NODE], run)


@inlined
def foresee(t: PlainTables, m: PlainMemory, start: int, first: int, last: int, event: int) -> None:
    """Ask for what the events that come some time after an event will need.

    Args:
        t: the tables.
        m: the memory; its takers are known of the events first .. last-1.
        start: the event with which the kernel began.
        first: where the block begins.
        last: where what is known of the takers ends.
        event: the one at hand.
    """
    if event == start:
        for each in range(first, min(first + AHEAD, last)):
            ask_for(t, m, each, m.takers[each - first], 0)
    for depth in range(4):
        each = event + AHEAD - depth * PACE
        if each < last:
            ask_for(t, m, each, m.takers[each - first], depth)
