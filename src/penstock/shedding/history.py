"""What happened while nothing was shed: what every strategy learns from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from penstock.plan.tables import Bools, Floats, Ints
from penstock.shedding.positions import cells, expanded


@dataclass(frozen=True)
class Elements:
    """The events of matches, or of runs that a negated event ended, one behind the other: E elements of R of them.

    Attributes:
        owners: (E,) which match.
        rows: (E,) which event of the history.
        windows: (E,) in which window.
        states: (E,) the state of the run that took the event.
        count: R.
    """

    owners: Ints
    rows: Ints
    windows: Ints
    states: Ints
    count: int

    @classmethod
    def none(cls) -> Elements:
        """Return no elements."""
        empty = np.zeros(0, np.int64)
        return cls(empty, empty, empty, empty, 0)

    def narrowed(self, first_row: int, kept: Bools) -> Elements:
        """Return those of some windows; events are counted from a row on."""
        chosen = kept[self.windows] & (self.rows >= first_row)
        count = len(np.unique(self.owners[chosen]))
        return Elements(
            self.owners[chosen], self.rows[chosen] - first_row, self.windows[chosen], self.states[chosen], count
        )

    @classmethod
    def joined(cls, parts: Sequence[Elements]) -> Elements:
        """Return elements behind each other."""
        starts = np.cumsum([0, *(part.count for part in parts)])
        owners = [part.owners + start for part, start in zip(parts, starts[:-1], strict=True)]
        rest = [[getattr(part, name) for part in parts] for name in ("rows", "windows", "states")]
        arrays = [np.concatenate([np.zeros(0, np.int64), *each]) for each in (owners, *rest)]
        return cls(arrays[0], arrays[1], arrays[2], arrays[3], int(starts[-1]))


@dataclass(frozen=True)
class Progress:
    """How the runs of a query fared.

    T types, B cells of positions, S states.

    Attributes:
        weight: of the query.
        ends: (S,) the states in which a run is complete.
        matches: what became of runs that completed.
        abandoned: and of runs that a negated event ended; it is the last element of each.
        moves: (S, S) how often a run got from one state to another.
        open_runs: (T, B, S) the runs that were open when an event of a type came at a position, as decisions would have
            seen it, summed up.
        rewards: (S, S) R_q(s, s'), the mean time to process an event that takes a run from s to s'.
        named: (T,) how often the pattern names a type.
        reach: how many events of a run's key come within WITHIN on average; None if windows are matched on their own,
            and a run ends with its window.
    """

    weight: float
    ends: Bools
    matches: Elements
    abandoned: Elements
    moves: Ints
    open_runs: Ints
    rewards: Floats
    named: Floats
    reach: float | None = None

    @property
    def stays(self) -> Ints:
        """How often an event left a run in its state: (S,)."""
        asked = self.open_runs.sum(axis=(0, 1))
        stays: Ints = np.maximum(asked - self.moves.sum(axis=1), 0)
        return stays

    @property
    def completed(self) -> Elements:
        """Both: the thesis calls runs that were abandoned completed, too (section 2.1)."""
        return Elements.joined([self.matches, self.abandoned])


@dataclass(frozen=True)
class History:
    """Events, their windows, and what the queries made of them.

    n events, W windows.

    Attributes:
        names: of the types; the last one, "", stands for types that never came.
        types: (n,) places in `names`.
        times: (n,) in microseconds.
        columns: (n,) each: numeric attributes.
        low: (n,) the first window of an event.
        high: (n,) its last; less than `low`, if it is in none.
        places: (n,) of the event in the stream, or among those of its key.
        starts: (W,) place of a window's first event.
        sizes: (W,) how many events it had.
        bins: B, the cells that positions are put into.
        queries: how the runs of each query fared.
        counts: (W,) the windows that count; None: all.
        own: (n,) the events that count, to strategies that look at the stream; None: all.
        foreseen: (n,) how many events the windows of an event were expected to have when it came, as decisions have it;
            0: nothing was known. None: as many as they had.
    """

    names: tuple[str, ...]
    types: Ints
    times: Ints
    columns: Mapping[str, Floats]
    low: Ints
    high: Ints
    places: Ints
    starts: Ints
    sizes: Ints
    bins: int
    queries: tuple[Progress, ...]
    counts: Bools | None = None
    own: Bools | None = None
    foreseen: Ints | None = None
    _pairs: list[tuple[Ints, Ints]] = field(default_factory=list, repr=False, compare=False)

    def pairs(self) -> tuple[Ints, Ints]:
        """Return (rows, windows) of all pairs of an event and a window that it is in, and that counts."""
        if not self._pairs:
            counts = np.maximum(self.high - self.low + 1, 0)
            rows, windows = np.repeat(np.arange(len(self.types)), counts), expanded(self.low, counts)
            chosen = slice(None) if self.counts is None else self.counts[windows]
            self._pairs.append((rows[chosen], windows[chosen]))
        return self._pairs[0]

    def events(self) -> Ints:
        """Return the events that count."""
        return np.arange(len(self.types)) if self.own is None else np.flatnonzero(self.own)

    def narrowed(self, first_event: int, kept: Bools) -> History:
        """Return the part of a history from an event on, of the windows that count, and of their events.

        Args:
            first_event: where it begins.
            kept: (W,) the windows that count.
        """
        queries = tuple(
            replace(
                query,
                matches=query.matches.narrowed(first_event, kept),
                abandoned=query.abandoned.narrowed(first_event, kept),
            )
            for query in self.queries
        )
        part = slice(first_event, None)
        before = np.concatenate([[0], np.cumsum(kept)])  # how many windows that count come before each
        low = np.minimum(self.low[part], len(kept))
        own = before[np.maximum(self.high[part] + 1, low)] > before[low]
        return replace(
            self, types=self.types[part], times=self.times[part],
            columns={name: column[part] for name, column in self.columns.items()},
            low=self.low[part], high=self.high[part], places=self.places[part], queries=queries, counts=kept, own=own,
            foreseen=None if self.foreseen is None else self.foreseen[part], _pairs=[],
        )  # fmt: skip

    def positions(self, rows: Ints, windows: Ints) -> Ints:
        """Return the positions of events in windows."""
        positions: Ints = self.places[rows] - self.starts[windows]
        return positions

    def table(
        self, rows: Ints, windows: Ints, counts: Floats | None = None, *, is_foreseen: bool = False
    ) -> Floats:  # fmt: skip
        """Return how often pairs are of a type and in a cell: (T, B). A pair of many cells counts in parts.

        Args:
            rows: of the events.
            windows: that they are in.
            counts: how often each pair counts; None: once.
            is_foreseen: whether windows are as large as they were expected to be; else as large as they turned out.
        """
        sizes = sizes_met(rows, windows, self.sizes, self.foreseen if is_foreseen else None)
        first, many = cells(self.positions(rows, windows), sizes, self.bins)
        types, weights = np.repeat(self.types[rows], many), np.repeat(1.0 / many, many)
        if counts is not None:
            weights = weights * np.repeat(counts, many)
        flat = types * self.bins + expanded(first, many)
        size = len(self.names) * self.bins
        counted: Floats = np.bincount(flat, weights=weights, minlength=size).astype(np.float64)
        return counted.reshape(len(self.names), self.bins)

    @property
    def window_size(self) -> float:
        """N, the mean size of a window."""
        sizes = self.sizes if self.counts is None else self.sizes[self.counts]
        return float(sizes.mean()) if len(sizes) else 1.0

    @property
    def reaches(self) -> list[float]:
        """How many events a run of each query may see, on average: those of its window, or those within WITHIN."""
        return [self.window_size if query.reach is None else query.reach for query in self.queries]

    @property
    def windows(self) -> int:
        """How many windows there were."""
        return len(self.starts) if self.counts is None else int(self.counts.sum())

    def event_counts(self) -> Floats:
        """Return how many events of a type a cell had, over all windows: (T, B)."""
        return self.table(*self.pairs())

    def events_met(self) -> Floats:
        """Return the same, at the positions that decisions would have seen."""
        return self.table(*self.pairs(), is_foreseen=True)

    def contributions(self) -> Floats:
        """Return how often an event of a type at a position was in a match or in an abandoned run, times weights."""
        total = np.zeros((len(self.names), self.bins))
        for query in self.queries:
            done = query.completed
            total += query.weight * self.table(done.rows, done.windows)
        return total

    def completed_by_state(self, query: int) -> Floats:
        """Return how often an event contributed to a run in a state that completed: (T, B, S), equation 5.2, above.

        Positions are those that decisions would have seen.
        """
        done, states = self.queries[query].completed, len(self.queries[query].ends)
        tables = [
            self.table(done.rows[chosen], done.windows[chosen], is_foreseen=True)
            for chosen in (done.states == s for s in range(states))
        ]
        return np.stack(tables, axis=2)


def sizes_met(rows: Ints, windows: Ints, sizes: Ints, foreseen: Ints | None) -> Ints:
    """Return (n,) how large the windows of pairs are: as they were expected to be, if that is asked for and was known.

    Args:
        rows: (n,) the events.
        windows: (n,) the windows.
        sizes: of windows, as they turned out.
        foreseen: of events, as `History` has it; None: it is not asked for.

    Examples:
        >>> sizes_met(np.array([0, 1]), np.array([0, 0]), np.array([7]), np.array([0, 5])).tolist()
        [7, 5]
    """
    met = sizes[windows]
    return met if foreseen is None else np.where(foreseen[rows] > 0, foreseen[rows], met)
