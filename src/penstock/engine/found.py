"""Matches as the kernel finds them, as columns: what goes into and comes out of `penstock.engine.emission`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.kernel.memory import Memory
from penstock.plan import layout
from penstock.plan.tables import Floats, Ints, Tables

SmallInts = NDArray[np.int32]
Array = NDArray[Any]
Element: TypeAlias = tuple[int, int, tuple[int, ...]]  # event, variable, rounds


class EventStore(Protocol):
    """What is known of events, by their running numbers. Texts are TEXT_BASE + their id; missing is NaN."""

    def ts(self, events: Ints) -> Ints:
        """Return times, in microseconds."""

    def pos(self, events: Ints) -> Ints:
        """Return positions in the partition."""

    def seq(self, events: Ints) -> Ints:
        """Return the users' numbers."""

    def column(self, name: str, is_previous: bool, events: Ints) -> Floats:
        """Return an attribute; or that of the previous event of the same type."""

    def text(self, ids: Ints) -> list[str]:
        """Return texts by their ids."""

    def text_id(self, text: str) -> int:
        """Return the id of a text, which may be new."""

    def ranks(self) -> Ints:
        """Return the alphabetical rank of each text, by its id."""


@dataclass(frozen=True)
class Progress:
    """How far the stream is, per partition number.

    All matches of partition p that are known at (`ts[p]`, `pos[p]`) or before have been given; for WITHIN n EVENTS, at
    position `pos[p]`. The windows before `window[p]` take no more events.
    """

    ts: Ints  # (P,) time of the newest event; later if a watermark says so
    pos: Ints  # (P,) position of the newest event
    window: Ints  # (P,) 0 without WINDOW


@dataclass(frozen=True)
class Found:
    """K matches with E elements in all. Match k has the elements `offsets[k]` .. `offsets[k + 1] - 1`, oldest first."""

    offsets: Ints  # (K + 1,)
    variables: SmallInts  # (E,) numbers of variables, see penstock.plan.positions
    events: Ints  # (E,) running numbers of events: 0, 1, 2, … since the query started, in the order of the stream
    rounds: SmallInts  # (D, E) rounds of the loops around a variable, outermost first; D may be 0 without RETURN
    low: Ints  # (K,) the first window that the match is in, by number; 0 without WINDOW
    high: Ints  # (K,) the last
    part: Ints  # (K,) number of the partition
    known_ts: Floats  # (K,) when the match became known; 0 for WITHIN n EVENTS
    known_pos: Floats  # (K,) at a position, half a one later or earlier, or infinitely late

    def __len__(self) -> int:
        return len(self.low)

    @property
    def lengths(self) -> Ints:
        """How many elements each match has."""
        return np.diff(self.offsets)

    @property
    def first(self) -> Ints:
        """The first event of each match."""
        return self.events[self.offsets[:-1]]

    @property
    def last(self) -> Ints:
        """The last event of each match."""
        return self.events[self.offsets[1:] - 1]

    @property
    def owners(self) -> Ints:
        """The match of each element."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.lengths)

    def pick(self, rows: Ints, low: Ints | None = None, high: Ints | None = None) -> Found:
        """Return some of the matches, in this order, perhaps in other windows; one may be picked several times."""
        lengths = self.lengths[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.repeat(self.offsets[rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Found(
            offsets,
            self.variables[places],
            self.events[places],
            self.rounds[:, places],
            self.low[rows] if low is None else low,
            self.high[rows] if high is None else high,
            self.part[rows],
            self.known_ts[rows],
            self.known_pos[rows],
        )

    def in_windows(self, low: Ints, high: Ints) -> Found:
        """Return the same matches in other windows."""
        return replace(self, low=low, high=high)

    def per_window(self) -> tuple[Ints, Ints]:
        """Return pairs (match, window): each match with each of its windows."""
        counts = self.high - self.low + 1
        rows = np.repeat(np.arange(len(self), dtype=np.int64), counts)
        firsts = np.repeat(self.low - (np.cumsum(counts) - counts), counts)
        return rows, firsts + np.arange(len(rows))


@dataclass(frozen=True)
class Laid:
    """K matches as users get them, with E elements in all, oldest first."""

    offsets: Ints  # (K + 1,)
    variables: SmallInts  # (E,) places among the variables that are not negated
    seq: Ints  # (E,)
    first_ts: Ints  # (K,)
    last_ts: Ints  # (K,) when they became known, too
    part: Ints | None  # (K,) number of the partition
    windows: Ints | None = None  # (K,) number of the window; a match in several is there several times

    def __len__(self) -> int:
        return len(self.first_ts)


def nothing(depth: int = 0) -> Found:
    """Return no matches."""
    ints, floats = np.zeros(0, np.int64), np.zeros(0, np.float64)
    rounds = np.zeros((depth, 0), np.int32)
    return Found(np.zeros(1, np.int64), np.zeros(0, np.int32), ints, rounds, ints, ints, ints, floats, floats)


def joined(parts: Sequence[Found]) -> Found:
    """Return the matches of several, one after the other."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return nothing()
    depth = max(each.rounds.shape[0] for each in parts)
    return Found(
        np.concatenate([[0], np.cumsum(np.concatenate([each.lengths for each in parts]))]).astype(np.int64),
        np.concatenate([each.variables for each in parts]),
        np.concatenate([each.events for each in parts]),
        np.concatenate([deepened(each.rounds, depth) for each in parts], axis=1),
        *(np.concatenate([getattr(each, name) for each in parts]) for name in PER_MATCH),
    )


PER_MATCH = ("low", "high", "part", "known_ts", "known_pos")
FIELDS = ("offsets", "variables", "events", "rounds", *PER_MATCH)


def deepened(rounds: SmallInts, depth: int) -> SmallInts:
    """Return rounds with room for those of `depth` loops."""
    missing = depth - rounds.shape[0]
    return rounds if missing <= 0 else np.concatenate([rounds, np.zeros((missing, rounds.shape[1]), np.int32)])


def as_state(found: Found, prefix: str) -> dict[str, Array]:
    """Return the columns under names with a prefix, for a snapshot."""
    return {f"{prefix}.{name}": getattr(found, name) for name in FIELDS}


def from_state(state: Mapping[str, Array], prefix: str) -> Found:
    """Return what `as_state` made columns of."""
    return Found(*(state[f"{prefix}.{name}"] for name in FIELDS))


def of_memory(tables: Tables, memory: Memory, first_event: int = 0) -> Found:
    """Return what the kernel has found; `first_event` is the running number of the first event in its memory."""
    count = int(memory.sizes[layout.SIZE_FOUND])
    table, known = memory.found[:, :count], memory.known[:, :count]
    lengths = table[layout.FOUND_LENGTH]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    nodes = np.zeros(offsets[-1], np.int64)
    node, left = table[layout.FOUND_NODE].copy(), lengths.copy()
    rows = np.flatnonzero(left > 0)
    while len(rows):  # one step back along all chains at once
        left[rows] -= 1
        nodes[offsets[rows] + left[rows]] = node[rows]
        node[rows] = memory.nodes[layout.NODE_PARENT, node[rows]]
        rows = rows[left[rows] > 0]
    events = memory.nodes[layout.NODE_EVENT, nodes]
    return Found(
        offsets,
        memory.nodes[layout.NODE_VARIABLE, nodes].astype(np.int32),
        events + first_event,
        memory.nodes[layout.NODE_ROUND : layout.NODE_ROUND + tables.loops.shape[1], nodes].astype(np.int32),
        table[layout.FOUND_LOW].copy(),
        table[layout.FOUND_HIGH].copy(),
        memory.events[layout.EVENT_PART, events[offsets[:-1]]],
        known[layout.KNOWN_TS].copy(),
        known[layout.KNOWN_POS].copy(),
    )


def of_rows(rows: Iterable[tuple[Element, ...]], depth: int) -> tuple[Ints, SmallInts, Ints, SmallInts]:
    """Return offsets, variables, events and rounds of matches given as rows of elements."""
    every = list(rows)
    flat = [element for row in every for element in row]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in every])]).astype(np.int64)
    rounds = np.zeros((depth, len(flat)), np.int32)
    for k, (_, _, own) in enumerate(flat):
        rounds[: len(own), k] = own
    return offsets, np.array([v for _, v, _ in flat], np.int32), np.array([e for e, _, _ in flat], np.int64), rounds
