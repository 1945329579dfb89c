"""Matches as users get them: columns, which become an Arrow table, a data frame or Python objects when asked for."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.engine.chains import Chains
from penstock.engine.found import EventStore, Found, Laid, SmallInts
from penstock.engine.functions import Functions
from penstock.engine.returns import Returns
from penstock.engine.rules import rules
from penstock.engine.value_kinds import Kinds
from penstock.plan.layout import SPAN_HIGH, SPAN_LOW
from penstock.plan.planning import Plan
from penstock.plan.tables import Bools, Floats, Ints

if TYPE_CHECKING:
    import pandas as pd

PartitionKeys: TypeAlias = Callable[[Ints], Sequence[pa.Array]]  # partition numbers -> one column per attribute
WindowNames: TypeAlias = Callable[[Ints, Ints], Ints]  # partition and window numbers -> names

TIME = pa.timestamp("us", "UTC")
_SHOWN = 5
_LATER_FROM = 1024  # fewer matches are laid out at once: that costs less than to keep them as chains


@dataclass(frozen=True)
class Match:
    """One match.

    Attributes:
        query: the name of the query, None if it has none.
        key: the values of the PARTITION BY attributes.
        window: the name of its window: its start, or the number of the event that opened it; None without WINDOW.
        events: per bound variable, in the order of the text, the numbers (`seq`) of its events.
        first_ts: time of its first event, in microseconds.
        last_ts: time of its last event, in microseconds.
        known_ts: when it became known, in microseconds; None if only a number of events tells.
        values: the RETURN columns.
    """

    query: str | None
    key: tuple[Any, ...]
    window: int | None
    events: Mapping[str, tuple[int, ...]]
    first_ts: int
    last_ts: int
    known_ts: int | None
    values: Mapping[str, Any]

    def __getitem__(self, variable: str) -> tuple[int, ...]:
        return self.events.get(variable, ())


@dataclass(frozen=True)
class Layout:
    """The columns of a query's matches."""

    query: str | None
    keys: tuple[str, ...]
    variables: tuple[str, ...]  # those that are not negated, in the order of the text
    returns: tuple[str, ...]

    def names(self) -> list[str]:
        """Return the names of all columns; one that is taken gets a number, as in `a_2`."""
        names: list[str] = []
        times = "first_ts", "last_ts", "known_ts"
        for wanted in ("query", *self.keys, "window", *times, *self.variables, *self.returns):
            name, number = wanted, 2
            while name in names:
                name, number = f"{wanted}_{number}", number + 1
            names.append(name)
        return names


@dataclass(frozen=True)
class Chunk:
    """Rows that came out together. R matches, E elements."""

    offsets: Ints  # (R + 1,)
    variables: SmallInts  # (E,) places in Layout.variables
    seq: Ints  # (E,)
    windows: Ints | None  # (R,) names
    first_ts: Ints  # (R,)
    last_ts: Ints  # (R,)
    known_ts: Ints  # (R,)
    is_known: Bools  # (R,) whether known_ts is there
    keys: tuple[pa.Array, ...]  # each (R,)
    returns: tuple[pa.Array, ...]  # each (R,)

    def __len__(self) -> int:
        return len(self.first_ts)

    def laid_out(self) -> Chunk:
        """Return itself; see `Later`."""
        return self

    def lists(self, variable: int) -> pa.Array:
        """Return the numbers of a variable's events; null where it is unbound."""
        places = np.flatnonzero(self.variables == variable)
        owners = np.repeat(np.arange(len(self)), np.diff(self.offsets))[places]
        counts = np.bincount(owners, minlength=len(self))
        ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        mask = pa.array(counts == 0)
        return pa.ListArray.from_arrays(pa.array(ends), pa.array(self.seq[places], pa.int64()), mask=mask)

    def table(self, layout: Layout) -> pa.Table:
        """Return the rows as an Arrow table."""
        size = len(self)
        windows = pa.nulls(size, pa.int64()) if self.windows is None else pa.array(self.windows, pa.int64())
        columns = [
            pa.array([layout.query], pa.string()).take(pa.array(np.zeros(size, np.int64))),
            *self.keys,
            windows,
            pa.array(self.first_ts, pa.int64()).cast(TIME),
            pa.array(self.last_ts, pa.int64()).cast(TIME),
            pa.array(self.known_ts, pa.int64(), mask=~self.is_known).cast(TIME),
            *(self.lists(v) for v in range(len(layout.variables))),
            *self.returns,
        ]
        return pa.table(columns, layout.names())


class Later:
    """Rows that become a chunk when they are first asked for.

    Args:
        chains: the matches.
        keys: their PARTITION BY values, a column per attribute.
        first_window: the number of the first window that a match is in.
        names: what this window and the following ones are called; None without WINDOW.
    """

    def __init__(self, chains: Chains, keys: tuple[pa.Array, ...], first_window: int, names: Ints | None) -> None:
        self._chains: Chains | None = chains
        self._size, self._keys, self._first_window, self._names = len(chains), keys, first_window, names
        self._chunk: Chunk | None = None

    def __len__(self) -> int:
        return self._size

    def __reduce__(self) -> tuple[Any, ...]:
        return Chunk.laid_out, (self.laid_out(),)

    def laid_out(self) -> Chunk:
        """Return the chunk."""
        chains = self._chains
        if self._chunk is None and chains is not None:
            laid = chains.laid_out()
            windows = None
            if self._names is not None and laid.windows is not None:
                windows = self._names[laid.windows - self._first_window]
            self._chunk = _chunk(laid, windows, self._keys)
        self._chains = None  # behind the chunk: another thread may be here, too
        assert self._chunk is not None
        return self._chunk


def _chunk(laid: Laid, windows: Ints | None, keys: tuple[pa.Array, ...]) -> Chunk:
    return Chunk(
        laid.offsets, laid.variables, laid.seq, windows, laid.first_ts, laid.last_ts, laid.last_ts,
        np.ones(len(laid), np.bool_), keys, (),
    )  # fmt: skip


@dataclass(frozen=True)
class Matches:
    """Matches of one query, or of several put together with `+`.

    `len(matches)`, iteration (`Match` objects), `to_arrow()`, `to_pandas()`, `to_dicts()`.

    The columns of a table: `query`, the PARTITION BY attributes, `window`, `first_ts`, `last_ts` and `known_ts` (when
    the match became known; null where only a number of events tells) as UTC timestamps, per variable the list of the
    numbers (`seq`) of its events (null if it is unbound), the RETURN columns. Times in RETURN columns are microseconds,
    as everywhere in the language. A name that is taken already gets a number, as in `a_2`.
    """

    chunks: tuple[tuple[Layout, Chunk | Later], ...] = field(default=())

    def __len__(self) -> int:
        return sum(len(chunk) for _, chunk in self.chunks)

    def __add__(self, other: Matches) -> Matches:
        return Matches(self.chunks + other.chunks) if isinstance(other, Matches) else NotImplemented

    def __iter__(self) -> Iterator[Match]:
        for layout, chunk in self.chunks:
            yield from _rows(layout, chunk.laid_out())

    def __repr__(self) -> str:
        count = len(self)
        shown = [f"  {_spelled(match)}" for match, _ in zip(self, range(_SHOWN), strict=False)]
        more = [f"  … and {count - _SHOWN} more"] if count > _SHOWN else []
        return "\n".join([f"{count:,} {'match' if count == 1 else 'matches'}", *shown, *more])

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table; matches of several queries have the columns of all, null where a query has none."""
        if not self.chunks:
            return _empty()
        tables = [chunk.laid_out().table(layout) for layout, chunk in self.chunks]
        table = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
        for place, column in enumerate(table.schema):  # no value ever told the type
            if pa.types.is_null(column.type):
                table = table.set_column(place, column.name, table.column(place).cast(pa.float64()))
        return table

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas data frame. Needs pandas."""
        return self.to_arrow().to_pandas()

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a dict per match, with the columns of `to_arrow` as keys."""
        return list(self.to_arrow().to_pylist())

    def as_set(self) -> frozenset[tuple[Any, ...]]:
        """Return (query, key, window, bindings, first_ts, last_ts, values) of all matches, for comparisons in tests."""
        return frozenset(
            (m.query, m.key, m.window, *map(_hashable, (m.events.items(), m.first_ts, m.last_ts, m.values.items())))
            for m in self
        )


def _empty() -> pa.Table:
    """Return a table of no matches. It is not made at import: pyarrow then imports pandas, which takes long."""
    types = {"query": pa.string(), "window": pa.int64(), "first_ts": TIME, "last_ts": TIME, "known_ts": TIME}
    return pa.schema(types.items()).empty_table()


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple | ItemsView) else value


def _spelled(match: Match) -> str:
    parts = [f"{name} {', '.join(map(str, events))}" for name, events in match.events.items()]
    if match.key:
        parts.insert(0, f"key {', '.join(map(str, match.key))}")
    if match.window is not None:
        parts.append(f"window {match.window}")
    return "; ".join([*parts, *(f"{name} = {value}" for name, value in match.values.items())])


def _rows(layout: Layout, chunk: Chunk) -> Iterator[Match]:
    offsets, variables, seq = chunk.offsets.tolist(), chunk.variables.tolist(), chunk.seq.tolist()
    keys = list(zip(*(column.to_pylist() for column in chunk.keys), strict=True)) or [()] * len(chunk)
    values = list(zip(*(column.to_pylist() for column in chunk.returns), strict=True)) or [()] * len(chunk)
    windows = [None] * len(chunk) if chunk.windows is None else chunk.windows.tolist()
    times = zip(chunk.first_ts.tolist(), chunk.last_ts.tolist(), strict=True)
    known = pa.array(chunk.known_ts, mask=~chunk.is_known).to_pylist()
    for k, (first, last) in enumerate(times):
        bound: dict[int, tuple[int, ...]] = {}
        for e in range(offsets[k], offsets[k + 1]):
            bound[variables[e]] = (*bound.get(variables[e], ()), seq[e])
        events = {layout.variables[v]: bound[v] for v in sorted(bound)}
        named = dict(zip(layout.returns, values[k], strict=True))
        yield Match(layout.query, tuple(keys[k]), windows[k], events, first, last, known[k], named)


class Output:
    """Makes `Matches` of what a query's emission lets through.

    Args:
        plan: of the query.
        store: where events are looked up; those of the matches must still be there.
        partition_keys: the PARTITION BY values of partitions, a column per attribute.
        window_names: the names of windows.
        kinds: the types of attributes, see `Returns`.
        functions: what RETURN may call.

    Raises:
        NotYetError: RETURN calls something, and there are no functions.
    """

    def __init__(
        self,
        plan: Plan,
        store: EventStore,
        partition_keys: PartitionKeys,
        window_names: WindowNames,
        kinds: Kinds = lambda name: None,
        functions: Functions | None = None,
    ) -> None:
        self.store, self.partition_keys, self.window_names = store, partition_keys, window_names
        self.returns = Returns(plan, store, kinds, functions)
        self.rules = rules(plan)
        variables = plan.numbered.variables
        self.places = np.zeros(len(variables), np.int32)  # of each variable among those that are not negated
        self.places[list(self.rules.variables)] = np.arange(len(self.rules.variables))
        self.has_windows = plan.query.window is not None
        self.layout = Layout(
            plan.query.name,
            tuple(name.text for name in plan.query.partition),
            tuple(variables[v].name for v in self.rules.variables),
            tuple(self.returns.names),
        )

    def of_runs(self, found: Found) -> Matches:
        """Return runs as if they were matches, without the RETURN columns."""
        return self._of(found, [], replace(self.layout, returns=()))

    def of_laid_out(self, laid: Laid) -> Matches:
        """Return matches that need nothing more but their keys."""
        if not len(laid):
            return Matches()
        parts = np.zeros(len(laid), np.int64) if laid.part is None else laid.part
        keys = tuple(self.partition_keys(parts)) if self.layout.keys else ()
        windows = None if laid.windows is None else self.window_names(parts, laid.windows)
        return Matches(((self.layout, _chunk(laid, windows, keys)),))

    def of_chains(self, chains: Chains) -> Matches:
        """Return matches that need nothing more but their keys, and that are laid out later, if they are many."""
        is_later, names, low = len(chains) >= _LATER_FROM, None, 0
        if is_later and chains.spans is not None:
            low, high = int(chains.spans[SPAN_LOW].min()), int(chains.spans[SPAN_HIGH].max())
            # Their names may be forgotten soon; keys would make a table of them large, as would a leap in time.
            is_later = not self.layout.keys and high - low < len(chains)
            if is_later:
                names = self.window_names(np.zeros(high - low + 1, np.int64), np.arange(low, high + 1))
        if not is_later:
            return self.of_laid_out(chains.laid_out())
        keys = tuple(self.partition_keys(chains.part())) if self.layout.keys else ()
        return Matches(((self.layout, Later(chains, keys, low, names)),))

    def of(self, found: Found) -> Matches:
        """Return matches, one for each window that they are in."""
        return self._of(found, self.returns.of(found), self.layout) if len(found) else Matches()

    def _of(self, found: Found, returns: list[pa.Array], layout: Layout) -> Matches:
        windows = None
        if self.has_windows:
            rows, numbers = found.per_window()
            if len(rows) > len(found):
                found, returns = found.pick(rows, numbers, numbers), [column.take(pa.array(rows)) for column in returns]
            windows = self.window_names(found.part, numbers)
        last_ts = self.store.ts(found.last)
        known_ts, is_known = self._known(found, last_ts)
        chunk = Chunk(
            found.offsets, self.places[found.variables], self.store.seq(found.events), windows,
            self.store.ts(found.first), last_ts, known_ts, is_known,
            tuple(self.partition_keys(found.part)) if layout.keys else (), tuple(returns),
        )  # fmt: skip
        return Matches(((layout, chunk),))

    def _known(self, found: Found, last_ts: Ints) -> tuple[Ints, Bools]:
        """Return when matches became known, and whether that has a time: not, where a number of events must pass."""
        if not self.rules.is_by_count:
            return found.known_ts.astype(np.int64), np.ones(len(found), np.bool_)
        return last_ts, _is_whole(found.known_pos)


def _is_whole(positions: Floats) -> Bools:
    whole: Bools = np.floor(positions) == positions
    return whole
