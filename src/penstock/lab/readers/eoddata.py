"""Minute bars as EODData delivers them: lines of symbol, time, open, high, low, close, volume."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from penstock.lab.readers.files import DataError, read_columns
from penstock.lab.readers.minute_bars import as_quotes

# No header; times such as 200802010930 are those of the exchange.
COLUMNS = {
    "symbol": pa.string(),
    "time": pa.string(),
    "open": pa.float64(),
    "high": pa.float64(),
    "low": pa.float64(),
    "close": pa.float64(),
    "volume": pa.int64(),
}
ZONE = "America/New_York"


def read_eoddata(path: Path | str, *, leaders: int = 4, followers: int = 20, zone: str = ZONE) -> pa.Table:
    """Return the minute bars of an EODData file, with symbols renamed and ordered as `read_minute_bars` does.

    Args:
        path: of the file.
        leaders: how many symbols become MLE1, MLE2, …
        followers: how many become C1, C2, …
        zone: of the times in the file.
    """
    bars = read_columns(path, COLUMNS)
    try:
        local = pc.strptime(bars.column("time"), format="%Y%m%d%H%M", unit="us")
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: {error}\n  fix: times must be like 200802010930") from error
    times = pc.assume_timezone(local, zone).cast(pa.timestamp("us", "UTC"))
    return as_quotes(bars.set_column(1, "timestamp", times), leaders, followers)
