"""How good the result of a shed run is against the unshed one (thesis 2.2, equations 2.1 and 2.2).

`penstock.reference.quality` says the same of single matches; here they are arrays, millions of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.plan.tables import Floats, Ints
from penstock.reference.quality import Quality
from penstock.shedding.chance import mixed


@dataclass(frozen=True)
class Found:
    """Matches, as far as they must be told apart: R of them.

    Attributes:
        queries: (R,) the place of the query.
        windows: (R,) the window.
        events: (R,) a number that stands for the events bound to each variable.
    """

    queries: Ints
    windows: Ints
    events: Ints

    @classmethod
    def of(cls, query: int, windows: Ints, offsets: Ints, variables: Ints, rows: Ints) -> Found:
        """Return the matches of a query whose elements stand behind each other."""
        each = mixed(rows * 1024 + variables, 5).view(np.int64)
        sums = np.concatenate([[0], np.cumsum(each)])  # they wrap around, which does no harm
        return cls(np.full(len(windows), query), windows, sums[offsets[1:]] - sums[offsets[:-1]])

    @classmethod
    def joined(cls, parts: Sequence[Found]) -> Found:
        """Return matches behind each other."""
        empty = np.zeros(0, np.int64)
        names = ("queries", "windows", "events")
        return cls(*(np.concatenate([empty, *(getattr(part, name) for part in parts)]) for name in names))

    def __len__(self) -> int:
        return len(self.queries)

    def between(self, first: int, last: int) -> Found:
        """Return the matches of windows first .. last-1."""
        chosen = (self.windows >= first) & (self.windows < last)
        return Found(self.queries[chosen], self.windows[chosen], self.events[chosen])


def strict(truth: Found, found: Found, weights: Sequence[float]) -> Quality:
    """Compare; a match is the same if query, window and bound events are."""
    return _compared(_keys(truth, truth.events), _keys(found, found.events), truth, found, weights)


def relaxed(truth: Found, found: Found, weights: Sequence[float]) -> Quality:
    """Compare; a match is as good as another of the same query and window, counted with multiplicity."""
    return _compared(_keys(truth), _keys(found), truth, found, weights)


def _keys(found: Found, events: Ints | None = None) -> Ints:
    keys = mixed(found.windows * 64 + found.queries, 3).view(np.int64)
    return keys if events is None else mixed(keys ^ events, 4).view(np.int64)


def _compared(wanted: Ints, got: Ints, truth: Found, found: Found, weights: Sequence[float]) -> Quality:
    factors: Floats = np.asarray(weights, np.float64)
    keys, places = np.unique(np.concatenate([wanted, got]), return_inverse=True)
    of_truth, of_found = places[: len(wanted)], places[len(wanted) :]
    counts = [np.bincount(each, minlength=len(keys)) for each in (of_truth, of_found)]
    weight = np.zeros(len(keys))
    weight[of_truth], weight[of_found] = factors[truth.queries], factors[found.queries]
    return Quality(
        float(factors[truth.queries].sum()),
        float(factors[found.queries].sum()),
        float((weight * np.maximum(counts[0] - counts[1], 0)).sum()),
        float((weight * np.maximum(counts[1] - counts[0], 0)).sum()),
    )
