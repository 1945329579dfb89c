"""How much work rows are: an event takes as long as the runs of its key that wait for its type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from penstock.engine.arrow_values import numbers
from penstock.engine.engine import Engine
from penstock.plan.tables import Bools, Floats, Ints

EVENT = 50.0  # runs: to take an event in is as much work as to ask so many
UNITS = "runs asked"  # what durations are fitted to: a state that was fitted to other units says nothing


@dataclass(frozen=True)
class Work:
    """What n rows are to do, in runs that are asked. Runs are taken to be spread evenly over the keys that come.

    Attributes:
        kinds: (n,) the type of each row.
        asked: of each query, or of several that are run as one: (S, T) the runs of a key that wait in a state for an
            event of a type.
    """

    kinds: Ints
    asked: list[Floats]

    @classmethod
    def of(cls, table: pa.Table, type_name: str, by: Sequence[str], engine: Engine, *, by_query: bool) -> Work:
        """Return that of rows: they ask the open runs, of their own keys, that wait for their types."""
        kinds = table.column(type_name).combine_chunks().dictionary_encode()
        names = kinds.dictionary.cast(pa.string()).to_pylist()
        keys = max(1, table.group_by(list(by)).aggregate([]).num_rows) if by else 1
        asked = [runs / keys for runs in engine.waiting(names, by_query=by_query)]
        return cls(numbers(kinds.indices.cast(pa.int64()), 0), asked)

    @cached_property
    def of_rows(self) -> Floats:
        """(n,) what each of them takes, if it is processed."""
        each = np.array([EVENT + sum(runs[:, kind].sum() for runs in self.asked) for kind in range(self._types)])
        work: Floats = each[self.kinds]
        return work

    def hidden_from(self, hidden: tuple[Bools, ...]) -> Floats:
        """Return (n,) what is saved of each row that is hidden from the runs in some states."""
        saved: Floats = np.zeros(len(self.kinds))
        for runs, states in zip(self.asked, hidden, strict=True):
            saved += np.einsum("sn,sn->n", runs[:, self.kinds], states)
        return saved

    @property
    def _types(self) -> int:
        return self.asked[0].shape[1] if self.asked else 0
