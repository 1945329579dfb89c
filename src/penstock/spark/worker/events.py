"""Rows as tables of events: which of them can be used, in which order, and which of them matches may need."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.arrow_values import EXACT, is_text, numbers
from penstock.plan.layout import TEXT_HIGH, TEXT_LOW
from penstock.plan.tables import Bools, Floats, Ints
from penstock.spark.worker.spec import TIE, WORTH, Spec
from penstock.spark.worker.times import FAR_AWAY_US, is_null, times

_FORGET_FROM = 8192  # fewer events are not worth a search for those to forget


@dataclass(frozen=True)
class Rows:
    """Rows with their times in microseconds, in no order as yet; and what they are worth, if a strategy has said so."""

    table: pa.Table
    ts: Ints
    tie: Ints
    worth: Floats | None = None

    def __len__(self) -> int:
        return len(self.ts)

    def take(self, places: Ints) -> Rows:
        """Return some of the rows, in this order."""
        worth = None if self.worth is None else self.worth[places]
        return Rows(self.table.take(pa.array(places)), self.ts[places], self.tie[places], worth)

    def slice(self, start: int, stop: int) -> Rows:
        """Return rows that follow one another."""
        worth = None if self.worth is None else self.worth[start:stop]
        return Rows(self.table.slice(start, stop - start), self.ts[start:stop], self.tie[start:stop], worth)

    def where(self, chosen: Bools) -> Rows:
        """Return the rows that are chosen; without a copy if that is all of them."""
        return self if chosen.all() else self.take(np.flatnonzero(chosen))

    def sorted(self) -> Rows:
        """Return the rows in the order of the stream: by time, then by what breaks ties."""
        order = in_order(self.ts, self.tie)
        return self if order is None else self.take(order)


@dataclass(frozen=True)
class Malformed:
    """Rows that cannot be events, each with the reason."""

    table: pa.Table
    reasons: pa.Array


def in_order(ts: Ints, tie: Ints) -> Ints | None:
    """Return the order of rows by time, then by tie; None if they are in it.

    Rows come as a few runs that are in order of time each, which a merge sort puts together fast. Ties are rare.
    """
    if len(ts) < 2:
        return None
    steps = np.diff(ts)
    order = None
    if (steps < 0).any():
        order = np.argsort(ts, kind="stable")
        ts, tie = ts[order], tie[order]
        steps = np.diff(ts)
    equal = steps == 0
    if not (equal & (np.diff(tie) < 0)).any():
        return order
    tied = np.flatnonzero(np.concatenate([equal, [False]]) | np.concatenate([[False], equal]))
    order = np.arange(len(ts)) if order is None else order
    order[tied] = order[tied][np.lexsort((tie[tied], ts[tied]))]
    return order


def read(table: pa.Table, spec: Spec) -> tuple[Rows, Malformed | None]:
    """Part a table of rows into those that can be events and those that cannot."""
    tie = numbers(table.column(TIE))
    worth = numbers(table.column(WORTH), np.nan) if WORTH in table.schema.names else None
    table = table.drop_columns([TIE]) if table.schema.names[-1] == TIE else table.select(spec.events.names)
    table = table if table.schema.equals(spec.events) else table.cast(spec.events)
    ts, has_no_time = times(table.column(spec.time), spec.time)
    reasons = _Reasons(len(table))
    reasons.add(has_no_time, f"no {spec.time}: an event needs a time")
    reasons.add(np.abs(ts) > FAR_AWAY_US, f"{spec.time} is beyond 2**62 microseconds from 1970")
    reasons.add(is_null(table.column(spec.type)), f"no {spec.type}: an event needs a type")
    if spec.seq is not None:
        reasons.add(is_null(table.column(spec.seq)), f"no {spec.seq}: an event needs a number")
    for name in spec.read:
        _check_attribute(table.column(name), name, reasons)
    rows = Rows(table, ts, tie, worth)
    if reasons.texts is None:
        return rows, None
    is_bad = reasons.texts != ""
    bad = table.filter(pa.array(is_bad))
    return rows.where(~is_bad), Malformed(bad, pa.array(reasons.texts[is_bad].tolist(), pa.string()))


@dataclass
class _Reasons:
    size: int
    texts: Any = None  # (size,) an array of objects once there is a reason; "" where there is none

    def add(self, is_so: Bools, reason: str) -> None:
        if not is_so.any():
            return
        if self.texts is None:
            self.texts = np.full(self.size, "", object)
        self.texts[is_so & (self.texts == "")] = reason


def _check_attribute(column: Any, name: str, reasons: _Reasons) -> None:
    """Look for values that the engine takes no batch with."""
    if is_text(column.type):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            reasons.add(_is_no_text(column), f"{name} is no UTF-8 text")
        return
    if pa.types.is_floating(column.type) or pa.types.is_decimal(column.type) or column.type == pa.int64():
        values = numbers(column.cast(pa.float64(), safe=False), np.nan)
        looks_like_text = (values >= TEXT_LOW) & (values < TEXT_HIGH)
        reasons.add(looks_like_text, f"{name} is between 2**52 and 2**52 + 2**40: give it as text")
    if column.type == pa.int64():
        whole = numbers(column)
        reasons.add(
            (whole > EXACT) | (whole < -EXACT), f"{name} is beyond 2**53, not exact as a float: give it as text"
        )


def _is_no_text(column: Any) -> Bools:
    def is_bad(value: bytes | None) -> bool:
        try:
            (value or b"").decode()
        except UnicodeDecodeError:
            return True
        return False

    return np.array([is_bad(each.as_buffer().to_pybytes() if each.is_valid else None) for each in column], np.bool_)


@dataclass
class Kept:
    """The events that a match may still need, with all that it holds of them.

    Attributes:
        table: in the order of the stream.
        seq: (n,) their numbers inside; in ascending order if they are counted and not given.
    """

    table: pa.Table
    seq: Ints
    is_counted: bool
    _order: Ints | None = field(default=None, repr=False)  # by number, if they are given

    def add(self, table: pa.Table, seq: Ints) -> None:
        """Take events that follow."""
        self.table = pa.concat_tables([self.table, table])
        self.seq, self._order = np.concatenate([self.seq, seq]), None

    def forget(self, kept: Ints, least: int = _FORGET_FROM, times: float = 2.0) -> None:
        """Forget events that are not among these numbers, when there are so many times as many."""
        if len(self.seq) < max(least, times * len(kept)):
            return
        chosen = np.isin(self.seq, kept)
        self.table = self.table.filter(pa.array(chosen)).combine_chunks()
        self.seq, self._order = self.seq[chosen], None

    def places(self, seq: Ints) -> Ints:
        """Return the places of events by their numbers."""
        if self.is_counted:
            return np.searchsorted(self.seq, seq).astype(np.int64)
        if self._order is None:
            self._order = np.argsort(self.seq, kind="stable")
        found: Ints = self._order[np.searchsorted(self.seq, seq, sorter=self._order)]
        return found

    def is_known(self, seq: Ints) -> Bools:
        """Return which numbers are those of events that are here."""
        found: Bools = np.isin(seq, self.seq)
        return found
