"""Batches of events in, columns of numbers out: the one place where a stream's data enter the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from penstock.engine.arrow import Kind, as_arrow, checked, columns_of, encoded, values_of
from penstock.engine.arrow_values import EXACT, BatchProblem, ColumnError, is_text, microseconds, numbers
from penstock.engine.texts import Texts
from penstock.errors import PenstockError
from penstock.plan.layout import TEXT_LOW
from penstock.plan.tables import Floats, Ints

__all__ = ["Batch", "BatchError", "BatchProblem", "Reader", "Texts"]

TYPE, TIME, SEQ = "type", "ts", "seq"  # what conditions call them, whatever their columns are called
_FAR_AWAY_US = 2**62
_OTHER = {"number": "text", "text": "number"}
_T = TypeVar("_T")


class BatchError(PenstockError):
    """A batch that cannot be used, with all problems at once; the engine is as it was before the batch.

    Examples:
        >>> try:
        ...     Reader(["price"]).read({"type": ["A"], "ts": [1.5], "prize": [3]})
        ... except BatchError as error:
        ...     print(error)
        column 'price': is missing; the batch has 'type', 'ts', 'prize'
          fix: did you mean 'prize'?
        column 'ts': times are of type double
          fix: give whole microseconds (seconds · 1_000_000, rounded) or a timestamp column
    """

    def __init__(self, problems: Iterable[BatchProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


@dataclass(frozen=True)
class Batch:
    """Events in order, as columns of equal length.

    Attributes:
        size: the number of events.
        ts: their times in microseconds.
        seq: their numbers, unique.
        types: their types, as numbers of `Reader.types`.
        columns: attributes by name; missing is NaN, a truth value 0 or 1, a text its code (`Texts.code`).
        kinds: what the attributes were before they became numbers.
        shared: what was worked out for one query and may serve others, see `penstock.engine.sharing`.
    """

    size: int
    ts: Ints
    seq: Ints
    types: Ints
    columns: dict[str, Floats] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)
    shared: dict[Any, Any] = field(default_factory=dict, compare=False)


class Reader:
    """Reads batches for all queries of an engine.

    Args:
        attributes: those that the queries name; others are not looked at.
        type: the column with the type of each event.
        time: the column with its time: integers, which are microseconds, or timestamps.
        seq: the column with its number. Without such a column, events are numbered as they come.

    Examples:
        >>> reader = Reader(["price"])
        >>> batch = reader.read({"type": ["A", "B", "A"], "ts": [10, 20, 20], "price": [1.5, None, 2]})
        >>> batch.types.tolist(), batch.seq.tolist(), batch.columns["price"].tolist()
        ([0, 1, 0], [0, 1, 2], [1.5, nan, 2.0])
    """

    def __init__(self, attributes: Iterable[str], *, type: str = TYPE, time: str = TIME, seq: str = SEQ) -> None:  # noqa: A002 - what users call it
        self.attributes = tuple(dict.fromkeys(attributes))
        self.texts, self.types = Texts(), Texts()
        self._type, self._time, self._seq = type, time, seq
        self._last: tuple[int, int] | None = None  # (ts, seq) of the last event
        self._most = -1  # the largest seq
        self._is_numbered: bool | None = None  # whether events come with numbers of their own
        self._kinds: dict[str, Kind] = {}  # of columns whose type was declared

    def read(self, batch: Any) -> Batch:
        """Return a batch as columns of numbers.

        Args:
            batch: a pyarrow Table or RecordBatch, a pandas or polars DataFrame, anything with `__arrow_c_stream__`,
                or a dict of lists or arrays. Its events are sorted by (time, seq) and after those of earlier batches.

        Raises:
            BatchError: with everything that is wrong with it.
        """
        texts, types = len(self.texts), len(self.types)
        try:
            return self._accept(_Reading(self, batch))
        except BaseException:
            self.texts.cut(texts)
            self.types.cut(types)
            raise

    def _accept(self, reading: _Reading) -> Batch:
        batch = reading.batch()
        if batch.size:
            self._last = int(batch.ts[-1]), int(batch.seq[-1])
            self._most = max(self._most, int(batch.seq.max()))
            self._is_numbered = reading.is_numbered
        self._kinds |= reading.declared
        return batch

    def advance(self, ts: int) -> None:
        """Take note that no event before `ts` will come: one would be late."""
        now = ts, np.iinfo(np.int64).min
        self._last = now if self._last is None else max(self._last, now)

    @property
    def end(self) -> str:
        """What a batch must be after, in words."""
        ts, seq = self._last or (0, 0)
        if seq == np.iinfo(np.int64).min:
            return f"the time that the stream has come to (ts {ts})"
        return f"the end of the batch before (ts {ts}, seq {seq})"

    def state(self) -> dict[str, Any]:
        """Return all that must survive, as arrays, lists of texts and numbers."""
        return {
            "attributes": list(self.attributes),
            "names": [self._type, self._time, self._seq],
            "texts": self.texts.state(),
            "types": self.types.state(),
            "last": np.array(self._last or (), np.int64),
            "most": self._most,
            "is_numbered": -1 if self._is_numbered is None else int(self._is_numbered),
            "kinds": [text for item in self._kinds.items() for text in item],
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Reader:
        """Return a reader that goes on where the one with this state stood."""
        kind, time, seq = state["names"]
        reader = cls(state["attributes"], type=kind, time=time, seq=seq)
        reader.texts, reader.types = Texts(state["texts"]), Texts(state["types"])
        last = [int(number) for number in state["last"]]
        reader._last = (last[0], last[1]) if last else None
        reader._most = int(state["most"])
        reader._is_numbered = None if state["is_numbered"] < 0 else bool(state["is_numbered"])
        reader._kinds = dict(zip(state["kinds"][::2], state["kinds"][1::2], strict=True))
        return reader


class _Reading:
    """One batch on its way in: gathers what is wrong with it."""

    def __init__(self, reader: Reader, batch: Any) -> None:
        self.reader = reader
        self.problems: list[BatchProblem] = []
        self.declared: dict[str, Kind] = {}
        self.asked = [name for name in reader.attributes if name not in (TYPE, TIME, SEQ)]
        wanted = {reader._type, reader._time, reader._seq, *self.asked}
        self.names, self.columns = self.attempt(lambda: columns_of(batch, wanted)) or ([], {})
        self.stop_if_wrong()
        self.is_numbered = reader._seq in self.columns

    def attempt(self, step: Callable[[], _T]) -> _T | None:
        """Return what a step returns; None if it finds a problem, which is noted."""
        try:
            return step()
        except ColumnError as error:
            self.problems.append(error.problem)
            return None

    def refuse(self, code: str, column: str, message: str, fix: str = "") -> None:
        self.problems.append(BatchProblem(code, column, message, fix))

    def stop_if_wrong(self) -> None:
        if self.problems:
            raise BatchError(self.problems)

    def batch(self) -> Batch:
        self.check_names()
        self.check_lengths()
        types, ts, seq = self.attempt(self.types), self.attempt(self.times), self.attempt(self.numbers)
        values = {name: self.attribute(name) for name in self.asked if name in self.columns}
        if ts is not None and seq is not None and len(ts) == len(seq):
            self.check_order(ts, seq)
        self.stop_if_wrong()
        assert types is not None
        assert ts is not None
        assert seq is not None
        return self.with_own(Batch(len(ts), ts, seq, types, *self.split(values)))

    def split(self, values: dict[str, Any]) -> tuple[dict[str, Floats], dict[str, Kind]]:
        self.declared = {n: v.kind for n, v in values.items() if v.is_declared and v.kind != "none"}
        return {n: v.numbers for n, v in values.items()}, {n: v.kind for n, v in values.items()}

    # --- columns ----------------------------------------------------------------------------------------------

    def check_names(self) -> None:
        reader = self.reader
        needed = [reader._type, reader._time, *self.asked]
        if reader._seq != SEQ or (reader._is_numbered and not self.is_numbered):
            needed.append(reader._seq)
        for name in needed:
            if name not in self.columns:
                close = get_close_matches(name, self.names, n=1)
                told = f"is missing; the batch has {', '.join(map(repr, self.names)) or 'no columns'}"
                add = (
                    "add it; where it has no value, give null"
                    if name in self.asked
                    else "add it, or say what it is called"
                )
                fix = f"did you mean '{close[0]}'?" if close else add
                self.refuse("missing-column", name, told, fix)
        if reader._is_numbered is False and self.is_numbered:
            told = "is new: earlier batches came without it, and their events were numbered as they came"
            self.refuse("numbers-changed", reader._seq, told, "give it from the first batch on, or leave it out")

    def check_lengths(self) -> None:
        """Only a dict can have columns of different lengths."""
        lengths = {name: len(column) for name, column in self.columns.items() if hasattr(column, "__len__")}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"'{name}' has {length}" for name, length in lengths.items())
            self.refuse("lengths-differ", "", f"columns differ in length: {told}", "give one value per event in each")

    def types(self) -> Ints | None:
        name = self.reader._type
        if name not in self.columns:
            return None
        column = as_arrow(name, self.columns[name])
        if not isinstance(column, list) and pa.types.is_null(column.type):
            column = column.cast(pa.string())
        if isinstance(column, list) or not is_text(column.type):
            told = "types are not all texts" if isinstance(column, list) else f"types are of type {column.type}"
            raise ColumnError(BatchProblem("wrong-type", name, told, "give texts"))
        places, distinct = encoded(name, column)
        if (places < 0).any():
            row = int(np.argmax(places < 0))
            raise ColumnError(BatchProblem("missing-value", name, f"row {row} has no type", "drop such rows"))
        return self.reader.types.add_all(distinct)[places]

    def times(self) -> Ints | None:
        name = self.reader._time
        if name not in self.columns:
            return None
        column = as_arrow(name, self.columns[name])
        if not isinstance(column, list) and pa.types.is_timestamp(column.type):
            ts, is_missing = microseconds(name, column)
            if is_missing.any():
                raise _no_value(name, int(np.argmax(is_missing)))
        else:
            fix = "give whole microseconds (seconds · 1_000_000, rounded) or a timestamp column"
            ts = _whole(name, column, "times", fix)
        if len(ts) and not -_FAR_AWAY_US < int(ts.min()) <= int(ts.max()) < _FAR_AWAY_US:
            raise ColumnError(BatchProblem("time-range", name, "a time is further than 2**62 microseconds from 1970"))
        return ts

    def numbers(self) -> Ints | None:
        reader = self.reader
        if self.is_numbered:
            return _whole(reader._seq, as_arrow(reader._seq, self.columns[reader._seq]), "numbers", "give integers")
        if reader._time not in self.columns or not hasattr(self.columns[reader._time], "__len__"):
            return None
        return np.arange(reader._most + 1, reader._most + 1 + len(self.columns[reader._time]), dtype=np.int64)

    def attribute(self, name: str) -> Any:
        values = self.attempt(lambda: values_of(name, self.columns[name], self.reader.texts))
        before = self.reader._kinds.get(name)
        if values is not None and values.is_declared and before is not None and values.kind != "none":
            was, now = ("text" if kind == "text" else "number" for kind in (before, values.kind))
            if was != now:
                told = f"is {now} here and was {was} in an earlier batch"
                self.refuse(
                    "type-changed", name, told, f"cast it to the same type in every batch, {was} or {_OTHER[was]}"
                )
        return values

    def with_own(self, batch: Batch) -> Batch:
        """Add what conditions call type, ts and seq to the columns, if a query names them."""
        for name in self.reader.attributes:
            if name == TYPE:
                batch.columns[name], batch.kinds[name] = self.type_texts(batch.types), "text"
            elif name in (TIME, SEQ):
                numbers = batch.ts if name == TIME else batch.seq
                self.attempt(lambda name=name, numbers=numbers: _check_exact(name, numbers))  # type: ignore[misc]
                batch.columns[name], batch.kinds[name] = numbers.astype(np.float64), "int"
        self.stop_if_wrong()
        return batch

    def type_texts(self, types: Ints) -> Floats:
        is_used = np.zeros(len(self.reader.types), np.bool_)
        is_used[types] = True
        used = np.flatnonzero(is_used)
        codes = np.full(len(is_used), TEXT_LOW)
        codes[used] += self.reader.texts.add_all(self.reader.types.as_arrow().take(pa.array(used)))
        return codes[types]

    # --- order ------------------------------------------------------------------------------------------------

    def check_order(self, ts: Ints, seq: Ints) -> None:
        reader = self.reader
        fix = f"sort the batch by ({reader._time}, {reader._seq})" if self.is_numbered else f"sort it by {reader._time}"
        steps, seq_steps = np.diff(ts), np.diff(seq)
        is_back = (steps < 0) | ((steps == 0) & (seq_steps < 0))
        if is_back.any():
            row = int(np.argmax(is_back)) + 1
            told = f"row {row} {_at(ts, seq, row)} is before row {row - 1} {_at(ts, seq, row - 1)}"
            self.refuse("unsorted", reader._time if steps[row - 1] else reader._seq, told, fix)
        if not (seq_steps > 0).all():
            self.check_unique(seq)
        if len(ts) and reader._last is not None and (int(ts[0]), int(seq[0])) <= reader._last:
            told = f"starts {_at(ts, seq, 0)}, not after {reader.end}"
            self.refuse("late", reader._time, told, "put events in order across batches; drop or hold back late ones")

    def check_unique(self, seq: Ints) -> None:
        order = np.argsort(seq, kind="stable")
        is_again = np.diff(seq[order]) == 0
        if is_again.any():
            at = int(np.argmax(is_again))
            rows = f"rows {order[at]} and {order[at + 1]}"
            fix = f"number events uniquely, or leave the column '{self.reader._seq}' out"
            self.refuse("seq-twice", self.reader._seq, f"{rows} have the same number, {seq[order[at]]}", fix)


def _at(ts: Ints, seq: Ints, row: int) -> str:
    return f"(ts {ts[row]}, seq {seq[row]})"


def _no_value(name: str, row: int) -> ColumnError:
    return ColumnError(BatchProblem("missing-value", name, f"row {row} has no value", "drop such rows"))


def _whole(name: str, column: Any, told: str, fix: str) -> Ints:
    """Return a column of whole numbers, none of which may be missing."""
    if isinstance(column, list):
        raise ColumnError(BatchProblem("wrong-type", name, f"{told} are not all integers", fix))
    if column.null_count:
        raise _no_value(name, int(np.argmax(column.is_null().to_numpy())))
    if not len(column):
        return np.zeros(0, np.int64)
    if not pa.types.is_integer(column.type):
        raise ColumnError(BatchProblem("wrong-type", name, f"{told} are of type {column.type}", fix))
    try:
        found: Ints = numbers(column.cast(pa.int64()))
    except pa.ArrowInvalid:
        raise ColumnError(BatchProblem("too-large", name, f"{told} are beyond 2**63", fix)) from None
    return found


def _check_exact(name: str, numbers: Ints) -> None:
    if len(numbers) and max(-int(numbers.min()), int(numbers.max())) > EXACT:
        told = "is named in a condition and holds numbers beyond 2**53, which are not exact as 64-bit floats"
        raise ColumnError(BatchProblem("too-large", name, told, "use smaller numbers"))
    checked(name, numbers)
