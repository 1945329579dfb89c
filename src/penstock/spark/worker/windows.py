"""Where events are in the windows of a query: what strategies that shed from windows ask, across micro-batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.batches import Reader
from penstock.engine.functions import Functions
from penstock.engine.intake import Intake, attributes
from penstock.engine.keytable import KeyTable
from penstock.pattern import ast
from penstock.plan.layout import EVENT_HIGH, EVENT_LOW, EVENT_PART, EVENT_POS
from penstock.plan.planning import Plan, plan
from penstock.plan.tables import Floats, Ints
from penstock.plan.terms import Calls
from penstock.shedding.positions import expanded
from penstock.spark.worker.events import Rows
from penstock.spark.worker.spec import SEQ, Spec

_AGO = 20  # windows that are over, for what size the next ones will have
_NEVER = np.iinfo(np.int64).max


@cache
def only_windows(query: ast.Query) -> Plan:
    """Return the plan of a query that takes any event, with the partitions and windows of this one."""
    any_event = ast.Query(
        ast.Event((), "x"), within=query.within, partition=query.partition, window=query.window
    )  # fmt: skip
    return plan(any_event, Calls.DERIVED)


@dataclass(frozen=True)
class Pairs:
    """The pairs of an event and a window that it is in, n of them, of e events; in the order of the events.

    Attributes:
        rows: (n,) the event.
        windows: (n,) the number of the window.
        positions: (n,) how many events of the stream are before it in the window.
        sizes: (n,) how many events the window is expected to have: those of a key alike.
        low: (e,) the first window of an event.
        counts: (e,) how many windows it is in.
    """

    rows: Ints
    windows: Ints
    positions: Ints
    sizes: Ints
    low: Ints
    counts: Ints

    def in_all(self, chosen: Any) -> Any:
        """Return (…, e) for (…, n): whether that is so in all windows of an event, and it is in some."""
        flat = chosen.reshape(-1, len(self.rows))
        each = [np.bincount(self.rows, weights=line, minlength=len(self.counts)) for line in flat]
        return (np.array(each).reshape(*chosen.shape[:-1], -1) == self.counts) & (self.counts > 0)

    def mean(self, values: Floats) -> Floats:
        """Return (S, e) for (S, n): the mean over the windows of an event; 0 if it is in none."""
        each = [np.bincount(self.rows, weights=line, minlength=len(self.counts)) for line in values]
        means: Floats = np.array(each) / np.maximum(self.counts, 1)
        return means

    def bits(self, chosen: Any) -> Ints:
        """Return (e,) for (n,): the windows of an event of which that is so, as `penstock.Hooks.windows` has them."""
        places = self.windows - self.low[self.rows]
        bits = np.zeros(len(self.counts), np.int64)
        np.bitwise_or.at(bits, self.rows[chosen], np.int64(1) << places[chosen])
        return bits


class Positions:
    """Counts the events of windows, before any shedding. Windows are those of a partition, as PARTITION BY says.

    The size of a window of so many events is known. That of another is predicted to be the mean of the last ones of its
    key that were over (thesis, section 4.2.6.1); before there are any, of those of all keys, or that of the largest so
    far.

    Args:
        query: whose windows these are.
        spec: the detection, for its columns.
        state: from `state`, to go on from there.
    """

    def __init__(self, query: ast.Query, spec: Spec, state: Mapping[str, Any] | None = None) -> None:
        assert query.window is not None, "a query without windows has no positions"
        self._length, planned = query.window.length, only_windows(query)
        self._columns = list(dict.fromkeys([spec.type, spec.time, *attributes(planned)]))
        self._is_global = query.window.on is None and isinstance(self._length, ast.TimeSpan)
        if state is None:
            self._reader = Reader(attributes(planned), type=spec.type, time=spec.time, seq=SEQ)
            self._intake = Intake(planned, self._reader, self._functions(spec))
            self._open, self._starts, self._sizes = KeyTable(2), np.zeros(0, np.int64), np.zeros(0, np.int64)
            self._mean, self._over, self._next = 0.0, 0, 0
            self._means, self._overs = np.zeros(0), np.zeros(0, np.int64)  # the same by partition
            return
        self._reader = Reader.from_state(state["reader"])
        self._intake = Intake.from_state(planned, self._reader, state["intake"], self._functions(spec))
        self._open = KeyTable(2, state["open"].copy())
        self._starts, self._sizes = state["starts"].copy(), state["sizes"].copy()
        self._mean, self._over, self._next = float(state["mean"]), int(state["over"]), int(state["next"])
        self._means = state.get("means", np.zeros(0)).copy()  # older states have none
        self._overs = state.get("overs", np.zeros(0, np.int64)).copy()

    def _functions(self, spec: Spec) -> Functions:
        return Functions(spec.functions, spec.remotes, self._reader.texts)

    def take(self, rows: Rows) -> Pairs:
        """Take events that follow; return where they are."""
        size = len(rows)
        first, self._next = self._next, self._next + size
        table = rows.table.select(self._columns).append_column(SEQ, pa.array(np.arange(first, self._next)))
        taken = self._intake.take(self._reader.read(table))
        low, counts = np.zeros(size, np.int64), np.zeros(size, np.int64)
        events, of = taken.events, taken.rows
        low[of], counts[of] = events[EVENT_LOW], np.maximum(events[EVENT_HIGH] - events[EVENT_LOW] + 1, 0)
        places = np.repeat(np.arange(len(of)), counts[of])
        windows = expanded(low[of], counts[of])
        parts = events[EVENT_PART][places]
        numbers = self._numbers(parts, windows, events[EVENT_POS][places])
        positions = events[EVENT_POS][places] - self._starts[numbers]
        pairs = Pairs(of[places], windows, positions, self._expected(parts), low, counts)
        self._close(events)
        nobody = np.zeros(0, np.int64)
        self._intake.forget_windows(nobody, nobody)  # nothing asks what they were called
        return pairs

    def _numbers(self, parts: Ints, windows: Ints, places: Ints) -> Ints:
        """Return the numbers of windows among the open ones; note where new ones begin, and count their events."""
        numbers = self._open.number(np.stack([parts, windows]))
        more = self._open.size - len(self._starts)
        self._starts = np.concatenate([self._starts, np.full(more, _NEVER)])
        self._sizes = np.concatenate([self._sizes, np.zeros(more, np.int64)])
        np.minimum.at(self._starts, numbers, places)
        np.add.at(self._sizes, numbers, 1)
        return numbers

    def _expected(self, parts: Ints) -> Ints:
        """Return how many events windows of some partitions are expected to have."""
        if isinstance(self._length, ast.CountSpan):
            return np.full(len(parts), self._length.events)
        otherwise = max(1, round(self._mean) if self._over else int(self._sizes.max(initial=1)))
        by_part = np.where(self._overs > 0, np.maximum(np.rint(self._means), 1), otherwise).astype(np.int64)
        known = parts < len(by_part)
        return np.where(known, by_part[np.where(known, parts, 0)] if len(by_part) else otherwise, otherwise)

    def _close(self, events: Ints) -> None:
        """Forget windows that are over, and learn their sizes."""
        keys = self._open.known()
        if not len(keys) or not events.shape[1]:
            return
        oldest = np.full(int(keys[:, 0].max()) + 1, np.iinfo(np.int64).min)  # by partition: the first that is open
        is_known = events[EVENT_PART] < len(oldest)
        np.maximum.at(oldest, events[EVENT_PART][is_known], events[EVENT_LOW][is_known])
        if self._is_global:
            oldest[:] = int(events[EVENT_LOW][-1])
        is_over = keys[:, 1] < oldest[keys[:, 0]]
        if not is_over.any():
            return
        self._learn(keys[is_over, 0], self._sizes[is_over])
        self._open = KeyTable(2, keys[~is_over])
        self._starts, self._sizes = self._starts[~is_over], self._sizes[~is_over]

    def _learn(self, parts: Ints, sizes: Ints) -> None:
        """Take the sizes of windows that are over into account."""
        many, mean = len(sizes), float(sizes.mean())
        self._mean += (mean - self._mean) * many / (many + min(self._over, _AGO))
        self._over += many
        more = max(0, int(parts.max()) + 1 - len(self._means))
        self._means = np.concatenate([self._means, np.zeros(more)])
        self._overs = np.concatenate([self._overs, np.zeros(more, np.int64)])
        each, of = np.unique(parts, return_inverse=True)
        counts = np.bincount(of)
        means = np.bincount(of, weights=sizes) / counts
        before = np.minimum(self._overs[each], _AGO)
        self._means[each] += (means - self._means[each]) * counts / (counts + before)
        self._overs[each] += counts

    def state(self) -> dict[str, Any]:
        """Return all that must survive."""
        return {
            "reader": self._reader.state(), "intake": self._intake.state(), "open": self._open.known(),
            "starts": self._starts, "sizes": self._sizes, "mean": self._mean, "over": self._over, "next": self._next,
            "means": self._means, "overs": self._overs,
        }  # fmt: skip
