"""How much is lost while load is shed: keys that are never shed, and what would have been shed of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from penstock.engine.matches import Matches
from penstock.plan.tables import Bools, Ints
from penstock.shedding.chance import uniform
from penstock.spark.worker.results import Counts


def marked(table: pa.Table, keys: Sequence[str], share: float, seed: int) -> Bools:
    """Return which rows are of keys that are never shed: this share of all keys, by a hash.

    Examples:
        >>> table = pa.table({"card": pa.array(range(10_000))})
        >>> bool(0.08 < marked(table, ["card"], 0.1, 1).mean() < 0.12)
        True
    """
    if not share or not keys or not len(table):
        return np.zeros(len(table), np.bool_)
    columns = {name: table.column(name) for name in keys}
    whole = {name: each.fill_null(0) if pa.types.is_integer(each.type) else each for name, each in columns.items()}
    hashes = pd.util.hash_pandas_object(pa.table(whole).to_pandas(), index=False).to_numpy()
    is_marked: Bools = uniform(seed, hashes.view(np.int64)) < share
    return is_marked


class Judge:
    """Counts the matches of marked keys, and those of them that would have been lost: with an event to be shed.

    Args:
        state: from `state`, to go on from there.
    """

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        nothing = np.zeros(0, np.int64)
        self._marked: Ints = nothing if state is None else state["marked"].copy()  # events that matches may have
        self._gone: Ints = nothing if state is None else state["gone"].copy()  # those of them that would be shed

    def note(self, seq: Ints, is_marked: Bools, is_gone: Bools) -> None:
        """Take events that are processed: their numbers, whether they are marked, and would have been shed."""
        self._marked = np.concatenate([self._marked, seq[is_marked]])
        self._gone = np.concatenate([self._gone, seq[is_gone]])

    def count(self, found: Matches, counts: Counts) -> None:
        """Count matches."""
        for _, chunk in found.chunks:
            if not len(chunk) or not len(self._marked):
                continue
            laid = chunk.laid_out()
            owners = np.repeat(np.arange(len(laid)), np.diff(laid.offsets))
            is_marked = np.isin(laid.seq[laid.offsets[:-1]], self._marked)
            has_gone = np.bincount(owners, weights=np.isin(laid.seq, self._gone), minlength=len(laid)) > 0
            counts.judged += int(is_marked.sum())
            counts.judged_lost += int((is_marked & has_gone).sum())

    def forget(self, kept: Ints) -> None:
        """Take note that matches to come have no other events than these, and later ones."""
        self._marked, self._gone = (each[np.isin(each, kept)] for each in (self._marked, self._gone))

    def state(self) -> dict[str, Any]:
        """Return all that must survive."""
        return {"marked": self._marked, "gone": self._gone}
