"""Zobrist hashing of an event's context: a key that changes by four XORs when the pane moves on (thesis 6.2.2.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.kernel.compiling import compiled
from penstock.plan.tables import Bools, Floats, Ints
from penstock.shedding.chance import mixed

ENDS = (0.001, 0.999)  # quantiles of an attribute's values, between which its ranges are


@dataclass(frozen=True)
class Zobrist:
    """Random numbers for frequencies and for ranges of attributes.

    Attributes:
        of_types: (T, F) R_T^l, uint64: a number for each type and bin of its frequency.
        of_values: (A, V) R_E^l, uint64: for each attribute and range of its values.
        frequency_bin: how many successive frequencies are one bin.
    """

    of_types: NDArray[np.uint64]
    of_values: NDArray[np.uint64]
    frequency_bin: int

    @classmethod
    def made(cls, types: int, longest: int, attributes: int, ranges: int, frequency_bin: int, seed: int) -> Zobrist:
        """Return random numbers for panes of at most `longest` events."""
        bins = longest // frequency_bin + 1
        of_types = mixed(np.arange(types * bins), 2 * seed).reshape(types, bins)
        of_values = mixed(np.arange(attributes * ranges), 2 * seed + 1).reshape(attributes, ranges)
        return cls(of_types, of_values, frequency_bin)

    def keys(self, types: Ints, at: Ints, begins: Ints, ranges: Ints) -> Ints:
        """Return K = K_1 ⊕ K_2 of events, int64.

        Args:
            types: of the stream, as `Pane.follow` returns them.
            at: (n,) where the events are in it.
            begins: (n,) where their panes begin.
            ranges: (A, n) the range of each attribute.
        """
        keys = np.zeros(len(at), np.uint64)
        _of_panes(types, at, begins, self.of_types, self.frequency_bin, keys)
        for numbers, each in zip(self.of_values, ranges, strict=True):
            keys ^= numbers[each]
        return keys.view(np.int64)


@compiled
def _of_panes(
    types: Ints, at: Ints, begins: Ints, numbers: NDArray[np.uint64], frequency_bin: int, keys: NDArray[np.uint64]
) -> None:  # fmt: skip
    """Write K_1, the XOR over all types of R_T^(F_T): updated type by type, never computed anew."""
    counts = np.zeros(len(numbers), np.int64)
    key = np.uint64(0)
    for t in range(len(numbers)):
        key ^= numbers[t, 0]
    most = numbers.shape[1] - 1
    begin = begins[0] if len(begins) else 0
    end = begin
    for k in range(len(at)):
        while end < at[k]:
            t = types[end]
            key ^= numbers[t, min(counts[t] // frequency_bin, most)]
            counts[t] += 1
            key ^= numbers[t, min(counts[t] // frequency_bin, most)]
            end += 1
        while begin < begins[k]:
            t = types[begin]
            key ^= numbers[t, min(counts[t] // frequency_bin, most)]
            counts[t] -= 1
            key ^= numbers[t, min(counts[t] // frequency_bin, most)]
            begin += 1
        keys[k] = key


# --- tables ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HashTable:
    """Utilities by key, with open addressing: UT[T_e][K], the tables of all types in one.

    Attributes:
        keys: (2^k,) int64; where `values` is NaN there is nothing.
        values: (2^k,) utilities.
    """

    keys: Ints
    values: Floats

    @classmethod
    def of(cls, keys: Ints, values: Floats) -> HashTable:
        """Return a table of keys, all different."""
        size = 1 << max(4, int(2 * len(keys)).bit_length())
        table = cls(np.zeros(size, np.int64), np.full(size, np.nan))
        _put(table.keys, table.values, np.asarray(keys, np.int64), np.asarray(values, np.float64))
        return table

    def get(self, keys: Ints, otherwise: Floats) -> Floats:
        """Return the utilities of keys; of those that are not there, what `otherwise` says for each."""
        result = np.empty(len(keys))
        _get(self.keys, self.values, keys, otherwise, result)
        return result


def with_type(keys: Ints, types: Ints) -> Ints:
    """Return keys in which the type is, too: one table serves all types."""
    joint: Ints = (keys.view(np.uint64) ^ mixed(types, 77)).view(np.int64)
    return joint


@compiled
def _slot(keys: Ints, values: Floats, key: int) -> int:
    mask = len(keys) - 1
    at = (key ^ (key >> 29)) & mask
    while not np.isnan(values[at]) and keys[at] != key:
        at = (at + 1) & mask
    return at


@compiled
def _put(keys: Ints, values: Floats, new: Ints, worth: Floats) -> None:
    for k in range(len(new)):
        at = _slot(keys, values, new[k])
        keys[at], values[at] = new[k], worth[k]


@compiled
def _get(keys: Ints, values: Floats, asked: Ints, otherwise: Floats, result: Floats) -> None:
    for k in range(len(asked)):
        found = values[_slot(keys, values, asked[k])]
        result[k] = otherwise[k] if np.isnan(found) else found


# --- ranges of values -----------------------------------------------------------------------------------------


def ranges_of(values: Floats, edges: Floats) -> Ints:
    """Return the range of each value: 0 below the first edge, and so on; one more for what is missing."""
    ranges = np.searchsorted(edges, values, side="right").astype(np.int64)
    is_missing: Bools = np.isnan(values)
    return np.where(is_missing, len(edges) + 1, ranges)


def edges_of(values: Floats, count: int) -> Floats:
    """Return edges that cut values into ranges of the same width, `count` of them (bins of fixed size, 6.2.2.3)."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return np.zeros(0)
    low, high = np.quantile(finite, ENDS)
    return edges_between(float(low), float(high), count)


def edges_between(low: float, high: float, count: int) -> Floats:
    """Return edges that cut what is between two values into so many ranges of the same width."""
    edges: Floats = np.linspace(low, high, count + 1)[1:-1] if high > low and count > 1 else np.zeros(0)
    return edges
