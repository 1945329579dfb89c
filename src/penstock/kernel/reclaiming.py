"""Elements of runs that nothing needs any more, and matches laid out flat."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernel.compiling import entry
from penstock.plan.layout import (
    EVENT_SEQ,
    EVENT_TS,
    LINK_EVENT,
    LINK_PARENT,
    LINK_VARIABLE,
    MATCH_EVENT,
    MATCH_HIGH,
    MATCH_LOW,
    MATCH_NODE,
    MATCH_VARIABLE,
)
from penstock.plan.tables import Bools, Ints

SmallInts = NDArray[np.int32]


@entry
def mark_ancestors(parents: SmallInts | Ints, marked: Bools) -> None:
    """Mark what marked elements go back to; the parent of an element is before it."""
    for node in range(len(marked) - 1, -1, -1):
        if marked[node] and parents[node] >= 0:
            marked[parents[node]] = True


@entry
def chain_lengths(nodes: SmallInts, last: Ints, lengths: Ints) -> None:
    """Write how many elements each chain has."""
    for k in range(len(last)):
        count, node = 0, last[k]
        while node >= 0:
            count, node = count + 1, nodes[LINK_PARENT, node]
        lengths[k] = count


@entry
def unroll_chains(nodes: SmallInts, last: Ints, ends: Ints, numbers: Ints, variables: SmallInts, events: Ints) -> None:
    """Write the elements of each chain, oldest first, so that they end at its place in `ends`; events by number."""
    for k in range(len(last)):
        at, node = ends[k] - 1, last[k]
        while node >= 0:
            variables[at], events[at] = nodes[LINK_VARIABLE, node], numbers[nodes[LINK_EVENT, node]]
            at, node = at - 1, nodes[LINK_PARENT, node]


@entry
def match_offsets(nodes: SmallInts, found: Ints, offsets: Ints) -> None:
    """Write where the elements of each match begin and end."""
    for k in range(len(offsets) - 1):
        count, node = 1, found[MATCH_NODE, k]
        while node >= 0:
            count, node = count + 1, nodes[LINK_PARENT, node]
        offsets[k + 1] = offsets[k] + count


@entry
def lay_out(
    nodes: SmallInts, found: Ints, events: Ints, places: SmallInts, offsets: Ints, variables: SmallInts, seq: Ints,
    times: Ints,
) -> None:  # fmt: skip
    """Write matches as users get them: the place and the number of each element, the first and the last time."""
    for k in range(len(offsets) - 1):
        at, node, event = offsets[k + 1] - 1, found[MATCH_NODE, k], found[MATCH_EVENT, k]
        variables[at], seq[at] = places[found[MATCH_VARIABLE, k]], events[EVENT_SEQ, event]
        times[1, k] = events[EVENT_TS, event]
        while node >= 0:
            at, event = at - 1, nodes[LINK_EVENT, node]
            variables[at], seq[at] = places[nodes[LINK_VARIABLE, node]], events[EVENT_SEQ, event]
            node = nodes[LINK_PARENT, node]
        times[0, k] = events[EVENT_TS, event]


@entry
def window_rows(found: Ints, count: int) -> int:
    """Return how many rows matches have: one for each window that they are in."""
    rows = 0
    for k in range(count):
        rows += found[MATCH_HIGH, k] - found[MATCH_LOW, k] + 1
    return rows


@entry
def repeat_per_window(
    found: Ints, offsets: Ints, variables: SmallInts, seq: Ints, times: Ints,
    to_offsets: Ints, to_variables: SmallInts, to_seq: Ints, to_times: Ints, windows: Ints, last: Ints,
) -> None:  # fmt: skip
    """Write each match once for each of its windows; also the window, and the event that completes the match.

    Without room for elements, only where they will begin is written.
    """
    row = 0
    for k in range(len(offsets) - 1):
        size = offsets[k + 1] - offsets[k]
        for window in range(found[MATCH_LOW, k], found[MATCH_HIGH, k] + 1):
            at = to_offsets[row]
            to_offsets[row + 1] = at + size
            if len(to_seq):
                for e in range(size):
                    to_variables[at + e], to_seq[at + e] = variables[offsets[k] + e], seq[offsets[k] + e]
                to_times[0, row], to_times[1, row] = times[0, k], times[1, k]
                windows[row], last[row] = window, found[MATCH_EVENT, k]
            row += 1


@entry
def lay_out_tuples(found: Ints, events: Ints, row: int, variables: SmallInts, values: Ints, times: Ints) -> None:
    """Write matches of a tree, which have an event per variable, oldest event first: variables, and a row of events."""
    count, size = times.shape[1], 0 if times.shape[1] == 0 else len(variables) // times.shape[1]
    for k in range(count):
        base = k * size
        for v in range(size):
            event, at = found[v, k], v
            while at > 0 and found[variables[base + at - 1], k] > event:
                variables[base + at] = variables[base + at - 1]
                at -= 1
            variables[base + at] = v
        for at in range(size):
            values[base + at] = events[row, found[variables[base + at], k]]
        times[0, k] = events[EVENT_TS, found[variables[base], k]]
        times[1, k] = events[EVENT_TS, found[variables[base + size - 1], k]]


@entry
def number_rounds(offsets: Ints, variables: SmallInts, is_list: Bools, seen: Ints, rounds: SmallInts) -> None:
    """Number the elements of each list in each match, from 1; `seen` has a place per variable."""
    for k in range(len(offsets) - 1):
        seen[:] = 0
        for e in range(offsets[k], offsets[k + 1]):
            if is_list[variables[e]]:
                seen[variables[e]] += 1
                rounds[0, e] = seen[variables[e]]
