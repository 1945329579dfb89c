"""Where recorded data lie, and what their columns must be."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from penstock.errors import PenstockError

FOLDER = "PENSTOCK_DATA"  # the environment variable with the folder of the data sets


class DataError(PenstockError):
    """A recorded stream that is not there, or not in the format that its reader reads."""


def recorded(name: str, folder: Path | str | None = None) -> Path:
    """Return the path of a data set.

    Args:
        name: of the file, without `.parquet`.
        folder: where the data sets are; by default the folder that the environment variable PENSTOCK_DATA names.

    Raises:
        DataError: there is no such file, or no folder is known.
    """
    chosen = folder or os.environ.get(FOLDER)
    if not chosen:
        raise DataError(
            f"where is {name}.parquet?\n  fix: set {FOLDER} to the folder of the data sets, or give the folder"
        )
    path = Path(chosen) / f"{name}.parquet"
    if not path.is_file():
        raise DataError(f"there is no {path.name} in {path.parent}\n  fix: set {FOLDER} to the folder that has it")
    return path


def read_columns(path: Path | str, columns: Mapping[str, pa.DataType], *, rows: int | None = None) -> pa.Table:
    """Return columns of a Parquet file, or of a CSV file without a header.

    Args:
        path: of a file; one whose name ends in `.parquet` is Parquet.
        columns: their names and types: of a CSV file all, in order; of a Parquet file those to be read.
        rows: how many rows of it, from the first on; None: all.
    """
    path = Path(path)
    try:
        if path.suffix == ".parquet":
            table = _first_rows(path, list(columns), rows)
        else:
            table = csv.read_csv(
                path,
                read_options=csv.ReadOptions(column_names=list(columns)),
                convert_options=csv.ConvertOptions(column_types=dict(columns)),
            )
        return table.slice(0, rows).cast(pa.schema(columns.items())) if rows else table.cast(pa.schema(columns.items()))
    except (OSError, KeyError, pa.ArrowInvalid) as error:
        wanted = ", ".join(f"{name} ({kind})" for name, kind in columns.items())
        raise DataError(f"cannot read {path}: {error}\n  fix: a file with the columns {wanted}") from error


def _first_rows(path: Path, columns: list[str], rows: int | None) -> pa.Table:
    file = pq.ParquetFile(path)
    missing = [name for name in columns if name not in file.schema_arrow.names]
    if missing:
        raise KeyError(f"it has no {', '.join(missing)}")
    groups, had = [], 0
    for group in range(file.num_row_groups):
        if rows is not None and had >= rows:
            break
        groups.append(group)
        had += file.metadata.row_group(group).num_rows
    return file.read_row_groups(groups, columns)
