"""Elements of runs that nothing needs any more, and matches laid out flat."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernel.compiling import entry
from penstock.plan.layout import (
    EVENT_SEQ,
    EVENT_TS,
    HELD_NODE,
    LINK_EVENT,
    LINK_PARENT,
    LINK_VARIABLE,
    SEGMENT_SIZE,
    SEGMENT_START,
    SPAN_HIGH,
    SPAN_LOW,
)
from penstock.plan.tables import Bools, Ints

SmallInts = NDArray[np.int32]
Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]


@entry
def mark_ancestors(parents: SmallInts | Ints, marked: Bools) -> None:
    """Mark what marked elements go back to; the parent of an element is before it."""
    for node in range(len(marked) - 1, -1, -1):
        if marked[node] and parents[node] >= 0:
            marked[parents[node]] = True


@entry
def keep_needed(
    segments: Ints, runs: SmallInts, nodes: SmallInts, eights: Words, marked: Bytes, places: SmallInts, to: SmallInts
) -> int:
    """Write the elements that runs go back to, to the places from 0 on; let runs point to these; return how many.

    Mostly they are few of many, so the others are passed over eight at a time.

    Args:
        segments: of the runs.
        runs: as in `PlainMemory`.
        nodes: the elements.
        eights: at least a byte for each element, 0 throughout.
        marked: the same bytes, one by one.
        places: room for the new place of each element.
        to: where to write them; it may be `nodes` itself.
    """
    for s in range(segments.shape[1]):
        for run in range(segments[SEGMENT_START, s], segments[SEGMENT_START, s] + segments[SEGMENT_SIZE, s]):
            node = runs[HELD_NODE, run]
            while node >= 0 and not marked[node]:
                marked[node] = 1
                node = nodes[LINK_PARENT, node]
    kept = 0
    for word in range(len(eights)):
        if eights[word] == 0:
            continue
        for node in range(8 * word, 8 * word + 8):
            if marked[node]:
                parent = nodes[LINK_PARENT, node]
                to[LINK_EVENT, kept], to[LINK_VARIABLE, kept] = nodes[LINK_EVENT, node], nodes[LINK_VARIABLE, node]
                to[LINK_PARENT, kept] = places[parent] if parent >= 0 else -1
                places[node] = kept
                kept += 1
    for s in range(segments.shape[1]):
        for run in range(segments[SEGMENT_START, s], segments[SEGMENT_START, s] + segments[SEGMENT_SIZE, s]):
            runs[HELD_NODE, run] = places[runs[HELD_NODE, run]]
    return kept


@entry
def chain_lengths(nodes: SmallInts, last: SmallInts, lengths: Ints) -> None:
    """Write how many elements each chain has."""
    for k in range(len(last)):
        count, node = 0, last[k]
        while node >= 0:
            count, node = count + 1, nodes[LINK_PARENT, node]
        lengths[k] = count


@entry
def unroll_chains(
    nodes: SmallInts, last: SmallInts, ends: Ints, numbers: Ints, variables: SmallInts, events: Ints
) -> None:
    """Write the elements of each chain, oldest first, so that they end at its place in `ends`; events by number."""
    for k in range(len(last)):
        at, node = ends[k] - 1, last[k]
        while node >= 0:
            variables[at], events[at] = nodes[LINK_VARIABLE, node], numbers[nodes[LINK_EVENT, node]]
            at, node = at - 1, nodes[LINK_PARENT, node]


@entry
def match_offsets(nodes: SmallInts, before: SmallInts, offsets: Ints) -> None:
    """Write where the elements of each match begin and end; `before` is the element before the last."""
    for k in range(len(before)):
        count, node = 1, before[k]
        while node >= 0:
            count, node = count + 1, nodes[LINK_PARENT, node]
        offsets[k + 1] = offsets[k] + count


@entry
def lay_out(
    nodes: SmallInts, before: SmallInts, last: SmallInts, events: Ints, places: SmallInts, offsets: Ints,
    variables: SmallInts, seq: Ints, times: Ints,
) -> None:  # fmt: skip
    """Write matches as users get them: the place and the number of each element, the first and the last time.

    `before` is the element before the last of each match, `last` (2, ·) the event and the variable of the last.
    """
    for k in range(len(before)):
        at, node, event = offsets[k + 1] - 1, before[k], last[0, k]
        variables[at], seq[at] = places[last[1, k]], events[EVENT_SEQ, event]
        times[1, k] = events[EVENT_TS, event]
        while node >= 0:
            at, event = at - 1, nodes[LINK_EVENT, node]
            variables[at], seq[at] = places[nodes[LINK_VARIABLE, node]], events[EVENT_SEQ, event]
            node = nodes[LINK_PARENT, node]
        times[0, k] = events[EVENT_TS, event]


@entry
def repeat_per_window(
    spans: Ints, offsets: Ints, variables: SmallInts, seq: Ints, times: Ints,
    to_offsets: Ints, to_variables: SmallInts, to_seq: Ints, to_times: Ints, windows: Ints, owners: Ints,
) -> None:  # fmt: skip
    """Write each match once for each of its windows; also the window, and which match it is.

    Without room for elements, only where they will begin is written.
    """
    row = 0
    for k in range(len(offsets) - 1):
        size = offsets[k + 1] - offsets[k]
        for window in range(spans[SPAN_LOW, k], spans[SPAN_HIGH, k] + 1):
            at = to_offsets[row]
            to_offsets[row + 1] = at + size
            if len(to_seq):
                for e in range(size):
                    to_variables[at + e], to_seq[at + e] = variables[offsets[k] + e], seq[offsets[k] + e]
                to_times[0, row], to_times[1, row] = times[0, k], times[1, k]
                windows[row], owners[row] = window, k
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
