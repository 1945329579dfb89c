"""A table of keys (a, b) that compiled code reads and writes: what emission remembers from call to call."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from penstock.engine.found import Array
from penstock.kernel.choosing import insert
from penstock.plan.tables import Bools, Ints

_SMALLEST = 64


class Remembered:
    """Entries with a key of two numbers, a value that is not 0, and two more numbers (penstock.kernel.choosing)."""

    def __init__(self) -> None:
        self._reset(_SMALLEST)
        self._swept = 0  # how many entries the last sweep left

    def _reset(self, places: int) -> None:
        self.keys: Ints = np.zeros((2, places), np.int64)
        self.values: Ints = np.zeros(places, np.int64)  # 0: the place is free
        self.extra: Ints = np.zeros((2, places), np.int64)

    @property
    def is_large(self) -> bool:
        """Whether there is so much that forgetting some pays: twice what the last sweep left."""
        return bool(np.count_nonzero(self.values) > 2 * self._swept + _SMALLEST)

    def entries(self) -> tuple[Ints, Ints]:
        """Return the keys, and what goes with them, of all entries."""
        places = np.flatnonzero(self.values)
        return self.keys[:, places], self.extra[:, places]

    def keep(self, kept: Bools, room: int = 0) -> None:
        """Keep some of the entries, as `entries` gives them, and make room for others."""
        places = np.flatnonzero(self.values)[kept]
        keys, values, extra = self.keys[:, places], self.values[places], self.extra[:, places]
        self._reset(max(_SMALLEST, 1 << (2 * (len(places) + room)).bit_length()))
        insert(self.keys, self.values, self.extra, keys, values, extra)
        self._swept = len(places)

    def with_room(self, room: int) -> Remembered:
        """Make room for so many more entries."""
        size = int(np.count_nonzero(self.values))
        if 2 * (size + room) > len(self.values):
            swept = self._swept
            self.keep(np.ones(size, np.bool_), room)
            self._swept = swept
        return self

    def state(self, name: str) -> dict[str, Array]:
        """Return the entries as arrays, for a snapshot."""
        places = np.flatnonzero(self.values)
        return {
            f"{name}.keys": self.keys[:, places],
            f"{name}.values": self.values[places],
            f"{name}.extra": self.extra[:, places],
        }

    def restore(self, state: Mapping[str, Array], name: str) -> None:
        """Take over what `state` gave."""
        values = state[f"{name}.values"]
        self._reset(max(_SMALLEST, 1 << (2 * len(values)).bit_length()))
        insert(self.keys, self.values, self.extra, state[f"{name}.keys"], values, state[f"{name}.extra"])
        self._swept = 0
