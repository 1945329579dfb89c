"""What all generators are: a stream cut into blocks, each made from the seed and its number alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

SECOND_US = 1_000_000
TYPE = pa.dictionary(pa.int16(), pa.string())  # a number per event, and the names once


class Generator(ABC):
    """A stream without end, ordered by time, that is the same for the same parameters.

    A generator is a frozen dataclass whose fields are its parameters, `seed` among them. A block depends on these and
    on its number, on nothing else: so blocks can be made in any order and anywhere, on Spark too
    (`penstock.spark.generated`), and the stream is the same.

    Columns are `type` (text, as numbers of a dictionary), `ts` (int64, microseconds from 0) and attributes.

    Examples:
        >>> from penstock.lab.generators import Synthetic
        >>> stream = Synthetic("DS1", seed=7)
        >>> stream.table(100_000).num_rows
        100000
        >>> stream.block(3).equals(Synthetic("DS1", seed=7).block(3))
        True
    """

    seed: int

    @property
    @abstractmethod
    def block_rows(self) -> int:
        """How many events a block has: each the same number."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of a block."""

    @abstractmethod
    def block(self, number: int) -> pa.RecordBatch:
        """Return the events of a block; the first has the number 0."""

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the first events of the stream, block by block; the last is cut to fit."""
        for number in range(-(-rows // self.block_rows)):
            yield self.block(number).slice(0, rows - number * self.block_rows)

    def table(self, rows: int) -> pa.Table:
        """Return the first events of the stream."""
        return pa.Table.from_batches(self.batches(rows), self.schema)

    def numbers(self, *place: int) -> np.random.Generator:
        """Return random numbers for a place of the stream, such as a block: the same for the same seed and place."""
        return np.random.default_rng([self.seed, *place])


def types(codes: NDArray[Any], names: Sequence[str]) -> pa.DictionaryArray:
    """Return the column `type`: for each event its number in the list of names."""
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int16)), pa.array(names, pa.string()))
