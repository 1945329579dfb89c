"""Minute bars of stocks, with the names that the papers' queries have for symbols."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.lab.readers.files import read_columns

COLUMNS = {
    "timestamp": pa.timestamp("us", "UTC"),
    "symbol": pa.string(),
    "open": pa.float64(),
    "high": pa.float64(),
    "low": pa.float64(),
    "close": pa.float64(),
    "volume": pa.int64(),
}


def read_minute_bars(
    path: Path | str, *, leaders: int = 4, followers: int = 20, others: bool = True, rows: int | None = None
) -> pa.Table:
    """Return the minute bars of a Parquet file: `us_minute_bars_2018`, `nasdaq_eoddata_sample_2008` or one like them.

    Args:
        path: of the file.
        leaders: how many symbols become MLE1, MLE2, …
        followers: how many become C1, C2, …
        others: whether the bars of all other symbols are kept, too: a small market is one of the largest symbols.
        rows: how many rows of the file.

    The symbols are ranked by the value that is traded in them (the sum of close × volume over all that is read, ties by
    name): the first are the leaders, the next the followers; all others keep their names. The bars of a minute have one
    time; among them leaders come first, then followers, then the others by name.
    """
    events = as_quotes(read_columns(path, COLUMNS, rows=rows), leaders, followers)
    if others:
        return events
    return events.filter(pc.less(events.column("type").combine_chunks().indices, leaders + followers))


def as_quotes(bars: pa.Table, leaders: int, followers: int) -> pa.Table:
    """Return bars as events: types are symbols, renamed and ordered as `read_minute_bars` says."""
    symbols = bars.column("symbol").combine_chunks().dictionary_encode()
    names = np.array(symbols.dictionary.to_pylist(), dtype=object)
    value = np.bincount(
        symbols.indices.to_numpy(),
        pc.multiply(bars.column("close"), bars.column("volume")).to_numpy(),
        minlength=len(names),
    )
    ranked = np.lexsort((names, -value))
    by_name = np.sort(ranked[leaders + followers :])
    by_name = by_name[np.argsort(names[by_name])]
    order = np.concatenate([ranked[: leaders + followers], by_name])
    place = np.empty(len(names), np.int64)
    place[order] = np.arange(len(names))
    renamed = [*(f"MLE{k}" for k in range(1, leaders + 1)), *(f"C{k}" for k in range(1, followers + 1))]
    types = [*renamed[: len(names)], *names[order[len(renamed) :]]]
    ts = pc.cast(bars.column("timestamp"), pa.int64()).to_numpy()
    kind = place[symbols.indices.to_numpy()]
    sorted_rows = np.lexsort((kind, ts))
    events = pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(kind.astype(np.int32), types),
            "ts": ts,
            **{name: bars.column(name) for name in ("open", "high", "low", "close", "volume")},
        }
    )
    return events.take(sorted_rows)
