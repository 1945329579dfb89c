"""Positions of Dublin's buses as the city published them: lines of fifteen values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.lab.readers.files import read_columns

# No header. `timestamp` is in microseconds, `delay` in seconds (early is negative).
COLUMNS = {
    "timestamp": pa.int64(),
    "line": pa.string(),
    "direction": pa.string(),
    "journey_pattern": pa.string(),
    "time_frame": pa.string(),
    "vehicle_journey": pa.string(),
    "operator": pa.string(),
    "congestion": pa.int8(),
    "lon": pa.float64(),
    "lat": pa.float64(),
    "delay": pa.int64(),
    "block": pa.string(),
    "vehicle": pa.string(),
    "stop": pa.string(),
    "at_stop": pa.int8(),
}


def read_dublin_buses(path: Path | str) -> pa.Table:
    """Return the reports of buses: `delay`, `stop`, `at_stop`, `line`, `congestion`, `lon`, `lat`; types are B1, B2, …

    Buses are numbered by line, the line with the most reports first, and on a line by the number of the vehicle: so
    buses with neighbouring numbers meet at the same stops. A vehicle is of the line that most of its reports name.
    """
    table = read_columns(path, COLUMNS).sort_by("timestamp")
    kind, names = _numbered(table.column("line"), table.column("vehicle"))
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(kind.astype(np.int32), names),
            "ts": table.column("timestamp"),
            "delay": pc.multiply(table.column("delay"), 1_000_000).cast(pa.duration("us")),
            "stop": table.column("stop"),
            "at_stop": pc.equal(table.column("at_stop"), 1),
            "line": table.column("line"),
            "congestion": pc.equal(table.column("congestion"), 1),
            "lon": table.column("lon"),
            "lat": table.column("lat"),
        }
    )


def _numbered(
    line: pa.ChunkedArray, vehicle: pa.ChunkedArray
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], list[str]]:
    """Return for each report the number of its bus, from 0, and the names of the buses."""
    lines = line.combine_chunks().fill_null("").dictionary_encode()
    vehicles = vehicle.combine_chunks().fill_null("").dictionary_encode()
    of_line, of_vehicle = lines.indices.to_numpy(), vehicles.indices.to_numpy()
    reports = np.zeros((len(vehicles.dictionary), len(lines.dictionary)), np.int64)
    np.add.at(reports, (of_vehicle, of_line), 1)
    home = reports.argmax(axis=1)
    per_line = reports.sum(axis=0)
    vehicle_names, line_names = np.array(vehicles.dictionary.to_pylist()), np.array(lines.dictionary.to_pylist())
    order = np.lexsort((vehicle_names, line_names[home], -per_line[home]))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place[of_vehicle], [f"B{k}" for k in range(1, len(order) + 1)]
