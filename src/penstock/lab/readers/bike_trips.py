"""Trips of rented bikes, as bikes that are asked for, taken and given back (state-based shedding, example 1)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.lab.readers.files import read_columns
from penstock.lab.readers.places import metres

TIME = pa.timestamp("us", "UTC")
COLUMNS = {"starttime": TIME, "stoptime": TIME, "bikeid": pa.int64(), "usertype": pa.string()} | {
    f"{end}_station_{name}": kind
    for end in ("start", "end")
    for name, kind in (("name", pa.string()), ("latitude", pa.float64()), ("longitude", pa.float64()))
}
LATITUDE = 40.72  # of Jersey City
TYPES = ["avail", "req", "unlock"]  # at the same time in this order: a bike can be taken when it has come
REQUEST_SECONDS = 120


def read_bike_trips(path: Path | str, *, request_seconds: int = REQUEST_SECONDS, rows: int | None = None) -> pa.Table:
    """Return the trips of `jersey_city_bike_trips` as three events each.

    `unlock` is a trip's start: the bike BID is taken at a station. `avail` is its end: the bike is free again, at
    another station perhaps. `req` is made up: the file does not say who asked for a bike, nor where. It stands at the
    station where the bike is taken, a while before; UID is the number of the trip, since users have none. So whoever
    asks takes a bike at the very place, and example 1, which looks for bikes that are taken far away, finds nothing.

    Args:
        path: of the file.
        request_seconds: how long before.
        rows: how many rows of the file.

    `x` and `y` are metres, east and north; stations at most 300 m apart are near each other by the paper's query.
    `is_subscriber` is null where the file does not say it.
    """
    table = read_columns(path, COLUMNS, rows=rows)
    start, stop = (pc.cast(table.column(name), pa.int64()).to_numpy() for name in ("starttime", "stoptime"))
    trip, bike = np.arange(len(table)), table.column("bikeid").to_numpy()
    ts = np.concatenate([stop, start - request_seconds * 1_000_000, start])
    kind = np.repeat(np.arange(len(TYPES), dtype=np.int8), len(table))
    order = np.lexsort((kind, ts))
    ends = ("end", "start", "start")
    lon, lat = (_of(table, ends, name).to_numpy() for name in ("longitude", "latitude"))
    x, y = metres(lon, lat, LATITUDE)
    events = pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(kind, TYPES),
            "ts": ts,
            "x": x,
            "y": y,
            "UID": pa.array(np.tile(trip, 3), mask=kind == TYPES.index("avail")),
            "BID": pa.array(np.tile(bike, 3), mask=kind == TYPES.index("req")),
            "station": _of(table, ends, "name"),
            "is_subscriber": pa.chunked_array([pc.equal(table.column("usertype").combine_chunks(), "Subscriber")] * 3),
        }
    )
    return events.take(order)


def _of(table: pa.Table, ends: tuple[str, ...], name: str) -> pa.ChunkedArray:
    """Return something about the stations of events, one kind of event after the other."""
    return pa.chunked_array([table.column(f"{end}_station_{name}").combine_chunks() for end in ends])
