"""Texts as numbers: one dictionary per engine, so that the kernel compares numbers only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.kernel.intake import EMPTY
from penstock.kernel.texts import Bytes, fill_slots, find_texts, number_texts
from penstock.plan.layout import TEXT_HIGH, TEXT_LOW
from penstock.plan.tables import Bools, Floats, Ints

FIRST_ROOM = 64  # texts, a power of two; and bytes


class Texts:
    """Numbers for texts, from 0 in the order in which they come.

    Examples:
        >>> texts = Texts(["pear", "fig"])
        >>> texts.add("fig"), texts.add("apple"), texts[0]
        (1, 2, 'pear')
        >>> texts.ranks().tolist()
        [2, 1, 0]
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._size = 0
        self._pool: Bytes = np.zeros(FIRST_ROOM, np.uint8)  # the texts in UTF-8, end to end
        self._ends: Ints = np.zeros(FIRST_ROOM + 1, np.int64)  # text n is pool[ends[n] : ends[n + 1]]
        self._slots: Ints = np.full((2 * FIRST_ROOM, 2), EMPTY, np.int64)
        self._ranked: list[str] = []  # the texts that have a rank, and their numbers in alphabetical order
        self._order: list[int] = []
        self._ranks: Ints = np.zeros(0, np.int64)
        self.add_all(list(texts))

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, number: int) -> str:
        return self._pool[self._ends[number] : self._ends[number + 1]].tobytes().decode()

    def as_arrow(self) -> Any:
        """Return the texts by number as an Arrow array, which shares their memory."""
        ends = self._ends[: self._size + 1]
        return pa.LargeStringArray.from_buffers(self._size, pa.py_buffer(ends), pa.py_buffer(self._pool))

    def find(self, text: str) -> int:
        """Return the number of a text, -1 if it has none."""
        numbers = np.empty(1, np.int64)
        find_texts(self._slots, self._pool, self._ends, *_bytes([text]), numbers)
        return int(numbers[0])

    def add(self, text: str) -> int:
        """Return the number of a text; a new text gets a new one."""
        return int(self.add_all([text])[0])

    def add_all(self, texts: Any) -> Ints:
        """Return the numbers of texts, a list or an Arrow array; new texts get new ones."""
        data, offsets = _bytes(texts)
        numbers = np.empty(len(texts), np.int64)
        at = 0
        while True:
            at, self._size = number_texts(self._slots, self._pool, self._ends, self._size, data, offsets, numbers, at)
            if at == len(numbers):
                return numbers
            self._make_room(int(offsets[at + 1] - offsets[at]))

    def _make_room(self, length: int) -> None:
        """Make room for one more text of so many bytes; room doubles."""
        if self._size + 1 == len(self._ends):
            self._ends = np.concatenate([self._ends, np.zeros(len(self._ends) - 1, np.int64)])
            self._fill_slots()
        if self._ends[self._size] + length > len(self._pool):
            self._pool = np.concatenate([self._pool, np.zeros(max(length, len(self._pool)), np.uint8)])

    def _fill_slots(self) -> None:
        self._slots = np.full((2 * (len(self._ends) - 1), 2), EMPTY, np.int64)
        fill_slots(self._slots, self._pool, self._ends, self._size)

    def code(self, text: str) -> float:
        """Return a text as conditions see it (`penstock.plan.terms.TEXT_BASE`); a new text gets a number."""
        return TEXT_LOW + self.add(text)

    def ranks(self) -> Ints:
        """Return the alphabetical rank of each text, by code points."""
        ranked = len(self._ranked)
        if ranked < self._size:
            self._ranked += self.as_arrow()[ranked:].to_pylist()
            # To Python's sort those that had a rank are one run already in order: it only merges the new ones in.
            self._order = sorted([*self._order, *range(ranked, self._size)], key=self._ranked.__getitem__)
            self._ranks = np.empty(self._size, np.int64)
            self._ranks[self._order] = np.arange(self._size)
        return self._ranks

    def _forget_ranks(self) -> None:
        self._ranked, self._order, self._ranks = [], [], np.zeros(0, np.int64)

    def cut(self, size: int) -> None:
        """Forget the texts that came after the first `size`."""
        if size == self._size:
            return
        self._size = size
        self._fill_slots()
        if len(self._ranked) > size:
            self._forget_ranks()

    def forget(self, used: Bools) -> Ints:
        """Forget the texts that are not used; return the new number of each old one, -1 if it is gone."""
        kept = np.flatnonzero(used)
        numbers = np.full(self._size, -1, np.int64)
        numbers[kept] = np.arange(len(kept))
        texts = self.as_arrow().take(pa.array(kept))
        self._size, self._pool, self._ends = 0, self._pool[:0].copy(), np.zeros(FIRST_ROOM + 1, np.int64)
        self._fill_slots()
        self._forget_ranks()
        self.add_all(texts)
        return numbers

    def state(self) -> list[str]:
        """Return the texts by number; `Texts(state)` brings them back."""
        texts: list[str] = self.as_arrow().to_pylist()
        return texts


def strings(texts: Sequence[str]) -> Any:
    """Return texts as an Arrow array. Not by `pa.array`, whose first call imports pandas if it is installed."""
    encoded = [text.encode() for text in texts]
    ends = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(each) for each in encoded], out=ends[1:])
    return pa.LargeStringArray.from_buffers(len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))


def _bytes(texts: Any) -> tuple[Bytes, Ints]:
    """Return texts as the kernel looks them up: their bytes end to end, and where each starts and stops."""
    array = texts if isinstance(texts, pa.Array) else strings(texts)
    array = array if pa.types.is_large_string(array.type) else array.cast(pa.large_string())
    _, offsets, data = array.buffers() if len(array) else (None, bytes(8), None)  # of nothing, Arrow may have none
    pool, ends = np.frombuffer(data or b"", np.uint8), np.frombuffer(offsets, np.int64)
    pool.flags.writeable = ends.flags.writeable = False  # always: else numba would compile twice
    return pool, ends[array.offset : array.offset + len(array) + 1]


def text_numbers(values: Floats) -> Ints:
    """Return the numbers of the texts among values."""
    values = values[(values >= TEXT_LOW) & (values < TEXT_HIGH)]
    return (values - TEXT_LOW).astype(np.int64)


def renumber_texts(values: Floats, numbers: Ints) -> None:
    """Give the texts among values their new numbers, in place."""
    is_text = (values >= TEXT_LOW) & (values < TEXT_HIGH)
    values[is_text] = TEXT_LOW + numbers[(values[is_text] - TEXT_LOW).astype(np.int64)]
