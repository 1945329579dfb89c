"""Times and nulls of a column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.arrow_values import microseconds, numbers
from penstock.plan.tables import Bools, Ints

FAR_AWAY_US = 2**62


def times(column: Any, name: str) -> tuple[Ints, Bools]:
    """Return times in microseconds, and where there is none."""
    if pa.types.is_integer(column.type):
        return numbers(column.cast(pa.int64())), is_null(column)
    return microseconds(name, column)


def is_null(column: Any) -> Bools:
    """Return where there is no value."""
    if not column.null_count:
        return np.zeros(len(column), np.bool_)
    found: Bools = np.array(column.is_null().combine_chunks(), np.bool_)
    return found
