"""The events of an operator: their types, windows and attributes, in the order of the stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.arrow import columns_of
from penstock.engine.batches import SEQ, TIME, TYPE, Reader
from penstock.engine.intake import Intake, attributes
from penstock.pattern import ast
from penstock.plan.layout import EVENT_PART, EVENT_POS, EVENT_TS
from penstock.plan.planning import plan as planned
from penstock.plan.tables import Floats, Ints
from penstock.plan.terms import Calls
from penstock.runtime.splitting import WINDOW, SplitError, previous_name
from penstock.runtime.windows import Cut
from penstock.shedding.history import sizes_met
from penstock.shedding.positions import expanded
from penstock.shedding.reach import events_within
from penstock.shedding.views import View

PAIR_BITS = 20  # of a pair's number: which of its event's windows it is
_CHANGE = "change_"


class Stream:
    """Takes batches of events; shows slices of them as pairs of an event and a window, and as batches for an engine.

    Args:
        queries: that have the same WINDOW and PARTITION BY, or no WINDOW.
        is_split: whether windows are matched on their own.
        names: of types, as a model has them; the last one, "", stands for all that it does not know.

    Attributes:
        cut: the windows that the stream is cut into, from `take` on.
    """

    def __init__(self, queries: Sequence[ast.Query], *, is_split: bool, names: tuple[str, ...] = ()) -> None:
        cuts = [(query.window, query.partition) for query in queries]
        if is_split and any(cut != cuts[0] for cut in cuts):
            raise SplitError("the queries of an operator must have the same WINDOW and PARTITION BY")
        plans = [planned(query, Calls.DERIVED) for query in queries]
        self.is_split = is_split
        self._names = tuple(dict.fromkeys(name for plan in plans for name in attributes(plan)))
        self.reader = Reader(self._names)
        self._types = names
        for name in names[:-1]:
            self.reader.types.add(name)  # so they have the numbers that the model knows them by
        self._intake = Intake(plans[0], self.reader)
        self._columns = plans[0].terms.columns
        self._window, self._has_keys = queries[0].window, bool(queries[0].partition)
        self.size = 0
        empty = np.zeros(0, np.int64)
        self.types, self.times, self.numbers = empty, empty, empty
        self.columns: dict[str, Floats] = {}  # numeric attributes, and how they have changed
        self.cut = Cut.none(empty)
        self.work = np.zeros(1, np.int64)  # events and pairs before each event, and in all
        self._raw: dict[str, Any] = {}

    def take(self, batch: Any) -> None:
        """Take the events of a whole stream, in order."""
        columns = columns_of(batch, {TYPE, TIME, SEQ, *self._names})[1]
        read = self.reader.read(batch)
        taken = self._intake.take(read)
        self.size = read.size
        self.types, self.times, self.numbers = read.types, read.ts, read.seq
        if self._types:
            self.types = np.minimum(read.types, len(self._types) - 1)
        self._raw = {name: _compact(column) for name, column in columns.items() if name not in (TIME, SEQ, TYPE)}
        self._raw[TYPE] = pa.DictionaryArray.from_arrays(pa.array(read.types, pa.int32()), pa.array(self._read_names()))
        for name in self._names:
            if read.kinds.get(name) in ("int", "float", "bool"):
                self.columns[name] = read.columns[name]
        for place, column in enumerate(self._columns):
            if column.is_previous:
                before = np.full(self.size, np.nan)
                before[taken.rows] = taken.columns[place]
                self._raw[previous_name(column.name)] = before
                with np.errstate(divide="ignore", invalid="ignore"):
                    self.columns[_CHANGE + column.name] = self.columns[column.name] / before - 1
        if self.is_split:
            assert self._window is not None, "queries without WINDOW are not split"
            self.cut = Cut.of(taken.events, taken.rows, self.times, self._window, has_keys=self._has_keys)
        else:
            places = np.zeros(self.size, np.int64)
            places[taken.rows] = taken.events[EVENT_POS]
            self.cut = Cut.none(places)
        self.work = np.concatenate([[0], np.cumsum(1 + np.maximum(self.high - self.low + 1, 0))])

    @property
    def low(self) -> Ints:
        """The first window of each event."""
        return self.cut.low

    @property
    def high(self) -> Ints:
        """Its last; less than `low`, if it is in none."""
        return self.cut.high

    @property
    def sizes(self) -> Ints:
        """How many events each window has."""
        return self.cut.sizes

    def sizes_met(self, rows: Ints, windows: Ints) -> Ints:
        """Return (n,) how large the windows of pairs were expected to be when their events came; see `History`."""
        return sizes_met(rows, windows, self.sizes, self.cut.foreseen)

    def expected_size(self, now: int, stop: int | None = None) -> int:
        """Return how many events a window is expected to have when event `now` comes.

        A window of a number of events has that many. For others it is the mean of the last windows that were over;
        before there is one, as many as the first has had so far, with the events before `stop` or with this one.
        """
        if self._window is not None and isinstance(self._window.length, ast.CountSpan):
            return self._window.length.events
        if not self.is_split:
            return 1
        over = self.cut.last_ones(now)
        if not len(over):
            return max(1, (stop or now + 1) - int(self.cut.opens.min())) if len(self.cut.opens) else 1
        return max(1, round(float(self.sizes[over].mean())))

    def _expected_sizes(self, start: int, stop: int, rows: Ints) -> Ints:
        """Return how many events windows should have: one number for all pairs, or one for each if there are keys.

        A key of which no window is over takes those that were over last, of whatever key.
        """
        expected = self.expected_size(start, stop)
        if not self._is_by_key:
            return np.array([expected])
        foreseen = self.cut.foreseen[start + rows]
        return np.where(foreseen > 0, foreseen, expected)

    @property
    def _is_by_key(self) -> bool:
        """Whether windows of keys may have different sizes."""
        return self.is_split and self._has_keys

    def left(self, windows: Ints, now: int) -> Floats:
        """Return the share of its events that each of some windows has left when event `now` comes."""
        passed, size = now - self.cut.starts[windows], np.full(len(windows), self.expected_size(now))
        if self._is_by_key:
            passed, foreseen = self.cut.passed(windows, now)
            size = np.where(foreseen > 0, foreseen, size)
        left: Floats = np.clip(1.0 - passed / size, 0.0, 1.0)
        return left

    def reach(self, query: ast.Query, stop: int) -> float | None:
        """Return how many events of the same key are within WITHIN before one of events 0 .. stop-1, on average.

        None if windows are matched on their own: there runs end with their window.
        """
        if self.is_split:
            return None
        if isinstance(query.within, ast.CountSpan):
            return float(query.within.events)
        assert isinstance(query.within, ast.TimeSpan), "a query without WITHIN is refused"
        plan = planned(replace(query, window=None), Calls.DERIVED)  # asked is its partition alone
        reader = Reader(attributes(plan))
        rows = np.arange(min(stop, self.size))
        events = Intake(plan, reader).take(reader.read(self.batch(rows, self.cut.low[rows]))).events
        counts = events_within(events[EVENT_PART], events[EVENT_TS], query.within.us)
        return float(counts.mean()) if len(counts) else 1.0

    def view(self, start: int, stop: int) -> View:
        """Return events start .. stop-1 and their pairs."""
        counts = np.maximum(self.high[start:stop] - self.low[start:stop] + 1, 0)
        rows, windows = np.repeat(np.arange(stop - start), counts), expanded(self.low[start:stop], counts)
        positions = self.cut.places[start + rows] - self.cut.starts[windows]
        return View(
            self.types[start:stop], self.times[start:stop], self.numbers[start:stop],
            {name: column[start:stop] for name, column in self.columns.items()},
            rows, windows, positions, self._expected_sizes(start, stop, rows), counts,
        )  # fmt: skip

    def batch(self, rows: Ints, windows: Ints) -> dict[str, Any]:
        """Return pairs as a batch; the number of a pair says its event and which of its windows it is."""
        chosen = pa.array(rows)
        columns = {name: column.take(chosen) if isinstance(column, pa.Array | pa.ChunkedArray) else column[rows]
                   for name, column in self._raw.items()}  # fmt: skip
        numbers = rows << PAIR_BITS | (windows - self.cut.low[rows])
        extra = {WINDOW: windows} if self.is_split else {}
        return {TIME: self.times[rows], SEQ: numbers, **columns, **extra}

    def of_pairs(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Return the events and the windows of pairs."""
        rows = numbers >> PAIR_BITS
        return rows, self.cut.low[rows] + (numbers & ((1 << PAIR_BITS) - 1))

    @property
    def names(self) -> tuple[str, ...]:
        """The types; the last one, "", stands for all others."""
        return self._types or (*self._read_names(), "")

    def _read_names(self) -> list[str]:
        return [self.reader.types[code] for code in range(len(self.reader.types))]


def _compact(column: Any) -> Any:
    """Return a column in one piece, texts as numbers of texts: so some of its rows are taken fastest."""
    array = column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    is_text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    return array.dictionary_encode() if is_text else array
