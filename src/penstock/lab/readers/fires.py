"""Fires that satellites saw in Australia, as readings of channels (EIRES, listing 3)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.lab.readers.files import read_columns

COLUMNS = {
    "acq_datetime": pa.timestamp("us", "UTC"),
    "latitude": pa.float64(),
    "longitude": pa.float64(),
    "brightness": pa.float64(),
    "bright_t31": pa.float64(),
    "frp": pa.float64(),
    "confidence": pa.int64(),
    "satellite": pa.string(),
    "daynight": pa.string(),
}
# The channels of the query's satellite, the column that stands for each, and from which value on its level is high:
# 3.9 µm (here 4 µm, kelvin) and 11 µm (kelvin). Channel 16 is at 13.3 µm, which the file does not have: the fire's
# power (megawatts) stands in. A quarter to a third of the fires are high in each.
CHANNELS = ((7, "brightness", 335.0), (14, "bright_t31", 308.0), (16, "frp", 50.0))


def read_fires(path: Path | str, *, cell: float = 1.0, rows: int | None = None) -> pa.Table:
    """Return the fires of `australia_fires_modis_2019`: three readings of each, one per channel, of type Satellite.

    Args:
        path: of the file.
        cell: how many degrees the cells of `boundary` are long and wide.
        rows: how many rows of the file.

    `boundary` is the cell that a fire lies in, as text of its south-western corner: cells that are equal overlap.
    `level` is 'high' or 'low', of the reading's `value`. Times are UTC, the satellites pass over Australia by day from
    23 to 7 o'clock; `is_day` says whether it was day there. The readings of a fire have the same time.
    """
    table = read_columns(path, COLUMNS, rows=rows)
    count = len(CHANNELS)
    value = np.stack([table.column(name).to_numpy() for _, name, _ in CHANNELS], axis=1)
    is_high = value >= [limit for _, _, limit in CHANNELS]
    corners = [np.floor(table.column(name).to_numpy() / cell) * cell for name in ("latitude", "longitude")]
    south, west = (pc.cast(pa.array(np.round(corner, 6)), pa.string()) for corner in corners)
    fires = pa.table(
        {
            "ts": pc.cast(table.column("acq_datetime"), pa.int64()),
            "boundary": pc.binary_join_element_wise(south, west, ","),
            "lat": table.column("latitude"),
            "lon": table.column("longitude"),
            "confidence": table.column("confidence"),
            "satellite": table.column("satellite"),
            "is_day": pc.equal(table.column("daynight"), "D"),
        }
    ).take(np.repeat(np.arange(len(table)), count))
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(np.zeros(len(fires), np.int8), ["Satellite"]),
            "ts": fires.column("ts"),
            "channel": np.tile([channel for channel, _, _ in CHANNELS], len(table)),
            "value": value.ravel(),
            "level": pa.DictionaryArray.from_arrays(is_high.ravel().astype(np.int8), ["low", "high"]),
            **{name: fires.column(name) for name in fires.column_names[1:]},
        }
    )
