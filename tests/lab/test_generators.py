"""What every generator keeps to: the same seed gives the same events, however the stream is cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from penstock.lab.generators import Buses, Generator, Soccer, Stocks, Synthetic

ALL: list[Generator] = [
    Stocks(),
    Stocks(symbols=40, followers=10, episodes=2),
    Soccer(),
    Soccer(hertz=2),
    Synthetic("DS1"),
    Synthetic("DS8"),
    Buses(),
    Buses(buses=30, incidents=3),
]
STREAMS = pytest.mark.parametrize("stream", ALL, ids=repr)


def with_seed(stream: Any, seed: int) -> Generator:
    changed: Generator = replace(stream, seed=seed)
    return changed


@STREAMS
def test_the_same_seed_gives_the_same_events(stream: Generator) -> None:
    assert stream.block(2).equals(with_seed(stream, 1).block(2))
    assert not stream.block(2).equals(with_seed(stream, 2).block(2))
    assert not stream.block(2).equals(stream.block(3))


@STREAMS
def test_a_stream_is_the_same_in_any_cut(stream: Generator) -> None:
    rows = 2 * stream.block_rows + 100
    whole = stream.table(rows)
    assert whole.num_rows == rows
    assert stream.table(rows // 3).equals(whole.slice(0, rows // 3))
    backwards = [stream.block(number) for number in (2, 1, 0)]
    assert pa.Table.from_batches(backwards[::-1]).slice(0, rows).equals(whole)
    assert [len(batch) for batch in stream.batches(rows)] == [stream.block_rows] * 2 + [100]


@STREAMS
def test_events_are_in_order_and_whole(stream: Generator) -> None:
    table = stream.table(3 * stream.block_rows)
    assert table.schema.equals(stream.schema)
    ts = table.column("ts").to_numpy()
    assert ts[0] >= 0
    assert (np.diff(ts) >= 0).all()
    assert all(table.column(name).null_count == 0 for name in table.column_names if name != "team")


@STREAMS
def test_no_events_are_a_table_too(stream: Generator) -> None:
    assert stream.table(0).schema.equals(stream.schema)


def test_parameters_are_checked() -> None:
    with pytest.raises(ValidationError, match="less than or equal to 1"):
        Stocks(influence=1.5)
    with pytest.raises(ValidationError, match="more than 20 symbols"):
        Stocks(symbols=20)
    with pytest.raises(ValidationError, match="DS8"):
        Synthetic("DS9")  # type: ignore[arg-type] # what is tested
