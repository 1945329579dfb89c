"""What gSPICE looks at, an event's context and content, and what was seen of each kind of it (thesis, section 6.2.2).

Features are the type of an event, how often each type was in the pane before it, the ranges of its attributes, and on
the granularity of windows its position. A Zobrist key stands for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from penstock.plan.tables import Floats, Ints
from penstock.shedding.chance import mixed
from penstock.shedding.pane import Pane, frequencies
from penstock.shedding.zobrist import Zobrist, ranges_of, with_type

_POSITION_SEED = 991


@dataclass(frozen=True)
class Features:
    """What an event's utility is predicted from.

    Attributes:
        types: T, how many types there are.
        length: L_ω of the pane, in events or microseconds.
        is_timed: whether it is in microseconds.
        frequency_bin: how many successive frequencies are one.
        attributes: the names of those that count.
        edges: (A, V) where their values are cut into ranges.
        bins: of positions, on the granularity of windows; 0 on that of the stream.
        seed: of the Zobrist numbers.
    """

    types: int
    length: int
    is_timed: bool
    frequency_bin: int
    attributes: tuple[str, ...]
    edges: Floats
    bins: int
    seed: int

    def pane(self) -> Pane:
        """Return a pane that begins with the stream."""
        return Pane(self.length, self.is_timed, self.types)

    def ranges(self, columns: Mapping[str, Floats]) -> Ints:
        """Return the ranges of attributes: (A, n)."""
        rows = [ranges_of(columns[name], edges) for name, edges in zip(self.attributes, self.edges, strict=True)]
        return np.stack(rows) if rows else np.zeros((0, 0), np.int64)

    def keys(self, types: Ints, at: Ints, begins: Ints, ranges: Ints) -> Ints:
        """Return the Zobrist keys of events, with their types in them."""
        longest = 64 * self.frequency_bin if self.is_timed else self.length
        values = self.edges.shape[1] + 2
        zobrist = Zobrist.made(self.types, longest, len(self.attributes), values, self.frequency_bin, self.seed)
        return with_type(zobrist.keys(types, at, begins, ranges), types[at])

    def rows(self, types: Ints, at: Ints, begins: Ints, ranges: Ints) -> Floats:
        """Return the features of events for trees: (n, 1 + T + A). The events may be in any order."""
        order = np.argsort(at, kind="stable")  # a pane slides on, never back
        often = np.empty((len(at), self.types), np.int64)
        often[order] = frequencies(types, at[order], begins[order], self.types) // self.frequency_bin
        parts = [types[at][:, None], often, ranges.T.reshape(len(at), len(self.attributes))]
        return np.concatenate(parts, axis=1).astype(np.float64)


def with_position(keys: Ints, at: Ints) -> Ints:
    """Return keys in which the cell of a position is, too."""
    joint: Ints = (keys.view(np.uint64) ^ mixed(at, _POSITION_SEED)).view(np.int64)
    return joint


@dataclass(frozen=True)
class Observed:
    """Aggregated observations S_g: what was seen alike is one (equation 6.2). Observations of parts can be joined.

    K kinds, F features.

    Attributes:
        keys: (K,).
        types: (K,) of the event.
        cells: (K,) of its position; 0 on the granularity of the stream.
        inputs: (K, F) features for trees; without columns, if there are no trees.
        worth: (K,) M, the weighted number of matches that events of this kind contributed to.
        counts: (K,) O, how often it was seen.
    """

    keys: Ints
    types: Ints
    cells: Ints
    inputs: Floats
    worth: Floats
    counts: Floats

    @classmethod
    def of(cls, keys: Ints, types: Ints, cells: Ints, worth: Floats) -> tuple[Self, Ints]:
        """Put observations together; return them without inputs, and the place of one observation of each kind.

        Args:
            keys: (n,) of what was observed.
            types: (n,) of the events.
            cells: (n,) of their positions.
            worth: (n,) the weighted number of matches that each contributed to.

        Examples:
            >>> keys, none = np.array([4, 4, 9, 4, 9]), np.zeros(5, np.int64)
            >>> Observed.of(keys, none, none, np.array([1.0, 0, 0, 1, 1]))[0].utilities.round(2).tolist()
            [0.67, 0.5]
        """
        found, places, which = np.unique(keys, return_index=True, return_inverse=True)
        counts = np.bincount(which).astype(np.float64)
        sums: Floats = np.bincount(which, weights=worth).astype(np.float64)
        return cls(found, types[places], cells[places], np.zeros((len(found), 0)), sums, counts), places

    @property
    def utilities(self) -> Floats:
        """U_e = M / O (equation 6.3)."""
        return self.worth / self.counts

    def with_inputs(self, inputs: Floats) -> Self:
        """Return it with features for trees."""
        return replace(self, inputs=inputs)

    def means(self, types: int, cells: int) -> Floats:
        """Return (T, B) the mean utility of a type, at a position; 0 where there was none."""
        flat, size = self.types * cells + self.cells, types * cells
        worth, counts = (np.bincount(flat, weights=each, minlength=size) for each in (self.worth, self.counts))
        means: Floats = worth / np.maximum(counts, 1)
        return means.reshape(types, cells)
