"""Numbers for keys, over the arrays of `penstock.kernel.intake`."""

from __future__ import annotations

import numpy as np

from penstock.kernel.intake import EMPTY, find_keys, number_keys
from penstock.plan.tables import Ints

FIRST_ROOM = 64


class KeyTable:
    """Numbers for keys of so many parts, from 0 in the order in which they come. A key is a column of int64.

    Examples:
        >>> table = KeyTable(2)
        >>> table.number(np.array([[7, 7, 8, 7], [1, 2, 1, 1]])).tolist()
        [0, 1, 2, 0]
        >>> table.find(np.array([[8, 9], [1, 1]])).tolist()
        [2, -1]
    """

    def __init__(self, width: int, keys: Ints | None = None, room: int = FIRST_ROOM) -> None:
        known = np.zeros((0, width), np.int64) if keys is None else keys
        self.keys, self.size = known, len(known)
        self._make_room(max(room, 1 << self.size.bit_length()))

    def _make_room(self, room: int) -> None:
        """Take room for so many keys, a power of two, and put those that are there into new slots."""
        known = np.array(self.keys[: self.size].T, order="C")  # a copy: those of a snapshot may be read-only
        self.keys = np.zeros((room, len(known)), np.int64)
        self.slots = np.full((2 * room, 1 + len(known)), EMPTY, np.int64)
        number_keys(self.slots, self.keys, 0, known, np.empty(self.size, np.int64), 0)

    def grow(self) -> None:
        """Take twice the room."""
        self._make_room(2 * len(self.keys))

    def number(self, wanted: Ints) -> Ints:
        """Return the numbers of keys; new keys get new ones."""
        numbers = np.empty(wanted.shape[1], np.int64)
        at, self.size = number_keys(self.slots, self.keys, self.size, wanted, numbers, 0)
        while at < len(numbers):
            self.grow()
            at, self.size = number_keys(self.slots, self.keys, self.size, wanted, numbers, at)
        return numbers

    def find(self, wanted: Ints) -> Ints:
        """Return the numbers of keys, EMPTY where there is none."""
        numbers = np.empty(wanted.shape[1], np.int64)
        find_keys(self.slots, wanted, numbers)
        return numbers

    def known(self) -> Ints:
        """Return the keys by number; `KeyTable(width, known)` brings them back."""
        return self.keys[: self.size].copy()
