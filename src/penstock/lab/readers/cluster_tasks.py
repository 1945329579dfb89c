"""Life-cycle events of tasks in two clusters, with the names of the cluster query (EIRES, listing 4)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.lab.readers.files import DataError, read_columns

TYPES = {"SUBMIT": "Su", "SCHEDULE": "Sc", "FAIL": "Fa", "FINISH": "Fi", "DELETE": "De"}
GPU_PODS: Mapping[str, pa.DataType] = {
    "time": pa.float64(),
    "event_type": pa.string(),
    "name": pa.string(),
    "cpu_milli": pa.int64(),
    "memory_mib": pa.int64(),
    "num_gpu": pa.int64(),
    "gpu_milli": pa.int64(),
    "qos": pa.string(),
}
DLRM_INSTANCES: Mapping[str, pa.DataType] = {
    "time": pa.float64(),
    "event_type": pa.string(),
    "instance_sn": pa.string(),
    "role": pa.string(),
    "app_name": pa.string(),
    "cpu_request": pa.int64(),
    "gpu_request": pa.int64(),
    "rdma_request": pa.int64(),
    "memory_request": pa.float64(),
    "disk_request": pa.float64(),
}


def read_gpu_pods(path: Path | str, *, rows: int | None = None) -> pa.Table:
    """Return the events of `alibaba_gpu_pod_events_2023`; `_tasks` says what types and attributes are.

    `pod_phase` is left out: it is how a pod ended, and stands in its earlier events, too.

    Args:
        path: of the file.
        rows: how many rows of it.
    """
    return _tasks(path, GPU_PODS, "name", rows)


def read_dlrm_instances(path: Path | str, *, rows: int | None = None) -> pa.Table:
    """Return the events of `alibaba_dlrm_instance_events_2025`; `_tasks` says what types and attributes are.

    No instance fails here: all end by De.

    Args:
        path: of the file.
        rows: how many rows of it.
    """
    return _tasks(path, DLRM_INSTANCES, "instance_sn", rows)


def _tasks(path: Path | str, columns: Mapping[str, pa.DataType], task: str, rows: int | None) -> pa.Table:
    """Return events Su (submit), Sc (schedule), Fa (fail), Fi (finish), De (delete) of tasks.

    `task_id` is the number in a task's name; times count from the beginning of the trace. No task is evicted, and none
    submitted again. `machine` and `region` are there so that listing 4 can be run, and null: the traces do not say
    where a task was. The other columns keep their names.
    """
    table = read_columns(path, columns, rows=rows)
    kinds = pc.index_in(table.column("event_type"), pa.array(list(TYPES)))
    number = pc.replace_substring_regex(table.column(task), r"^.*\D", "")
    try:
        task_id = number.cast(pa.int64())
        kinds = kinds.combine_chunks().cast(pa.int8(), safe=True)
        if kinds.null_count:
            raise pa.ArrowInvalid(f"{table.column('event_type')[kinds.is_null().index(True).as_py()]} is no event type")
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{path}: {error}\n  fix: `event_type` must be one of {', '.join(TYPES)}, and `{task}` end in a number"
        ) from error
    seconds = table.column("time").to_numpy()
    kept = [name for name in columns if name not in ("time", "event_type", task)]
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(kinds, list(TYPES.values())),
            "ts": np.round(seconds * 1e6).astype(np.int64),
            "task_id": task_id,
            "machine": pa.nulls(len(table), pa.int64()),
            "region": pa.nulls(len(table), pa.string()),
            **{name: table.column(name) for name in kept},
        }
    )
