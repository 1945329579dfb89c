"""The eight synthetic data sets of the thesis (table 6.3)."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field
from pydantic.dataclasses import dataclass

from penstock.lab.generators.generator import SECOND_US, TYPE, Generator, types

DataSet = Literal["DS1", "DS2", "DS3", "DS4", "DS5", "DS6", "DS7", "DS8"]

# Mean seconds between two events of a type (thesis, table 6.3).
MEAN_GAP_SECONDS: dict[DataSet, dict[str, float]] = {
    "DS1": {"A": 2.5, "B": 15, "C": 40},
    "DS2": {"A": 2.8, "B": 15, "C": 15},
    "DS3": {"A": 4, "B": 6, "C": 12},
    "DS4": {"A": 6, "B": 6, "C": 6},
    "DS5": {"A": 2.5, "B": 15, "C": 40, "D": 2.5, "E": 15, "F": 40},
    "DS6": {"A": 2.8, "B": 15, "C": 15, "D": 2.8, "E": 15, "F": 15},
    "DS7": {"A": 4, "B": 6, "C": 12, "D": 4, "E": 6, "F": 12},
    "DS8": {"A": 6, "B": 6, "C": 6, "D": 6, "E": 6, "F": 6},
}

BLOCK_ROWS = 1 << 16


@dataclass(frozen=True)
class Synthetic(Generator):
    """Events of three or six types with exponential gaps per type, and a value `V1` uniform in 1 … 10.

    Independent exponential gaps per type are exponential gaps for all together, with types drawn by their rates. A
    block spans the time that its number of events takes on average, and its events lie in it as those of a Poisson
    process do when their number is known: gaps are exponential, and only the number of events in a whole block is not
    random.

    Attributes:
        data_set: DS1 … DS8.
        seed: of the random numbers.

    Examples:
        >>> Synthetic("DS1", seed=1).block(0).select(["type", "ts"]).slice(0, 1).to_pylist()
        [{'type': 'A', 'ts': 3221954}]
    """

    data_set: DataSet = "DS1"
    seed: Annotated[int, Field(ge=0)] = 1

    @property
    def block_rows(self) -> int:
        """How many events a block has."""
        return BLOCK_ROWS

    @property
    def rates(self) -> dict[str, float]:
        """Events per second, by type."""
        return {name: 1 / gap for name, gap in MEAN_GAP_SECONDS[self.data_set].items()}

    @property
    def schema(self) -> pa.Schema:
        """The columns of a block."""
        return pa.schema([("type", TYPE), ("ts", pa.int64()), ("V1", pa.float64())])

    def block(self, number: int) -> pa.RecordBatch:
        """Return the events of a block."""
        random, rates = self.numbers(number), np.array(list(self.rates.values()))
        ends = np.cumsum(rates) / rates.sum()
        kind = np.searchsorted(ends[:-1], random.random(BLOCK_ROWS), side="right")
        value = random.uniform(1, 10, BLOCK_ROWS)
        gaps = random.standard_exponential(BLOCK_ROWS + 1)
        span = BLOCK_ROWS / rates.sum() * SECOND_US
        ts = (np.cumsum(gaps)[:-1] * (span / gaps.sum()) + number * span).astype(np.int64)
        return pa.record_batch([types(kind, list(self.rates)), pa.array(ts), pa.array(value)], schema=self.schema)
