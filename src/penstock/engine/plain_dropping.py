"""Dropping runs of the plain kernel: what it needs for that is kept, as it is done before every slice of a stream."""

from __future__ import annotations

import numpy as np

from penstock.engine.matcher import quota
from penstock.kernel.dropping import Room, count_cells, drop_cells, drop_least
from penstock.kernel.plain_memory import PlainMemory
from penstock.plan.plain import PlainTables
from penstock.plan.tables import Floats, Ints

_NOTHING_LEFT: Floats = np.zeros(0)  # by partition: then it is what is left of WITHIN


class Dropper:
    """Counts and drops the runs of a plain query; for the arguments see `Engine.drop_runs_of_all`.

    Attributes:
        memory: that the runs are in.
        now: the time of the stream.
    """

    def __init__(self, tables: PlainTables, memory: PlainMemory) -> None:
        self._tables, self.memory, self.now = tables, memory, 0
        self._rooms: dict[int, Room] = {}  # by the number of columns

    def count(self, bins: int, left: Floats | None) -> Ints:
        """Return how many runs there are of each state and with each part left, (S, bins)."""
        left = _NOTHING_LEFT if left is None else left
        room = self._room(bins, left)
        count_cells(self._tables, self.memory, self.now, left, room)
        counts: Ints = room.cells[0].copy()
        return counts

    def drop_counted(self, wanted: Ints, seed: int | None) -> int:
        """Drop so many of the runs of each cell, which `count` has just counted; return how many."""
        room = self._rooms[wanted.shape[1]]
        return int(drop_cells(self._tables, self.memory, room, wanted.copy(), -1 if seed is None else seed))

    def drop_oldest(self, count: int, utility: Floats) -> Ints:
        """Drop the runs of least utility, of those that are alike the oldest; return how many of each state."""
        sizes = self.count(utility.shape[1], None)
        wanted = quota(utility, sizes, count).reshape(utility.shape)
        self.drop_counted(wanted, None)
        dropped: Ints = wanted.sum(axis=1)
        return dropped

    def drop_least(self, count: int, utility: Floats, left: Floats | None, seed: int | None) -> int:
        """Drop the runs of least utility; return how many. It is a single call of compiled code."""
        left = _NOTHING_LEFT if left is None else left
        states, room = len(self._tables.states), self._room(utility.shape[1], left)
        worth = np.ascontiguousarray(np.broadcast_to(utility, (states, utility.shape[1])), np.float64)
        return int(
            drop_least(self._tables, self.memory, self.now, left, worth, count, -1 if seed is None else seed, room)
        )

    def _room(self, bins: int, left: Floats) -> Room:
        """Return room for so many columns."""
        room, partitions, places = self._rooms.get(bins), len(left), self.memory.runs.shape[1]
        if room is not None and room.parts.shape[1] >= partitions and len(room.columns) >= places:
            return room
        states = len(self._tables.states)
        self._rooms[bins] = room = Room(
            np.zeros((2, 2 * partitions), np.int64), np.zeros(places, np.int32), np.zeros((3, states, bins), np.int64),
            np.zeros(states * bins),
        )  # fmt: skip
        return room
