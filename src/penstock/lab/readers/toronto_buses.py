"""Positions of Toronto's buses, with the nearest stop of the route and how long a bus has been standing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.lab.readers.files import read_columns
from penstock.lab.readers.places import Floats, metres

GPS = {
    "timestamp": pa.timestamp("us", "UTC"),
    "route": pa.string(),
    "vehicle_id": pa.int32(),
    "lat": pa.float64(),
    "lon": pa.float64(),
}
STOPS = {"route": pa.string(), "stop_id": pa.string(), "stop_lat": pa.float64(), "stop_lon": pa.float64()}
LATITUDE = 43.7  # of Toronto
STILL_M = 30.0  # a bus that has moved less between two reports stands
GAP_SECONDS = 300  # after a longer silence nobody knows
CHUNK = 1 << 16


def read_toronto_buses(gps: Path | str, stops: Path | str, *, rows: int | None = None) -> pa.Table:
    """Return the reports of buses: a type per vehicle, with `route`, `stop`, `distance`, `standing`, `lat`, `lon`.

    The data have no delay, and none can be worked out without a timetable: so the queries about delays do not run on
    them. What can be told is how long a bus has been `standing`, within 30 m from report to report: a stop in traffic
    or at the end of a line is in it, too. Queries may ask for that instead; it is not the same.

    Args:
        gps: the path of `toronto_bus_gps_2016`.
        stops: that of `toronto_bus_stops_2016`.
        rows: how many rows of the positions.

    `stop` is the nearest stop of the route, `distance` how far away it is in metres; both are null where the route has
    no stops in the table. A type is V and the number of the vehicle.
    """
    table = read_columns(gps, GPS, rows=rows)
    ts = pc.cast(table.column("timestamp"), pa.int64()).to_numpy()
    vehicle = table.column("vehicle_id").to_numpy()
    x, y = metres(table.column("lon").to_numpy(), table.column("lat").to_numpy(), LATITUDE)
    stop, distance = _nearest(table.column("route"), x, y, read_columns(stops, STOPS))
    kinds, kind = np.unique(vehicle, return_inverse=True)
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(kind.astype(np.int32), [f"V{number}" for number in kinds]),
            "ts": ts,
            "route": table.column("route"),
            "stop": stop,
            "distance": pa.array(distance, mask=np.isnan(distance)),
            "standing": pa.array(_standing(kind, ts, x, y), pa.duration("us")),
            "lat": table.column("lat"),
            "lon": table.column("lon"),
        }
    )


def _nearest(routes: pa.ChunkedArray, x: Floats, y: Floats, stops: pa.Table) -> tuple[pa.Array, Floats]:
    """Return the nearest stop of its route for each report, and how far away it is."""
    encoded = routes.combine_chunks().dictionary_encode()
    route = encoded.indices.to_numpy()
    at = metres(stops.column("stop_lon").to_numpy(), stops.column("stop_lat").to_numpy(), LATITUDE)
    places = np.stack(at, axis=1)
    of_route = np.array(stops.column("route").to_pylist())
    index, distance = np.zeros(len(x), np.int64), np.full(len(x), np.nan)
    by_route = np.argsort(route, kind="stable")
    ends = np.searchsorted(route[by_route], np.arange(len(encoded.dictionary) + 1))
    for number, name in enumerate(encoded.dictionary.to_pylist()):
        mine = np.flatnonzero(of_route == name)
        if not len(mine):
            continue
        for first in range(ends[number], ends[number + 1], CHUNK):
            rows = by_route[first : min(first + CHUNK, ends[number + 1])]
            far = np.hypot(x[rows, None] - places[mine, 0], y[rows, None] - places[mine, 1])
            nearest = far.argmin(axis=1)
            index[rows], distance[rows] = mine[nearest], far[np.arange(len(rows)), nearest]
    names = stops.column("stop_id").combine_chunks()
    return names.take(pa.array(index, mask=np.isnan(distance))), distance


def _standing(bus: NDArray[np.int64], ts: NDArray[np.int64], x: Floats, y: Floats) -> NDArray[np.int64]:
    """Return for each report how long its bus has not moved, in microseconds."""
    order = np.lexsort((ts, bus))
    moved = np.append(np.inf, np.hypot(np.diff(x[order]), np.diff(y[order])))
    silent = np.append(np.inf, np.diff(ts[order]))
    is_new = np.append(True, np.diff(bus[order]) != 0)
    starts = is_new | (moved > STILL_M) | (silent > GAP_SECONDS * 1_000_000)
    since = ts[order][np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))]
    standing = np.empty(len(order), np.int64)
    standing[order] = ts[order] - since
    return standing
