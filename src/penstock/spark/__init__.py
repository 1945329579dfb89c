"""penstock on Spark: `detect` finds matches in batch and streaming DataFrames."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.spark.columns import DetectError
    from penstock.spark.detecting import detect
    from penstock.spark.drifting import DriftWatch
    from penstock.spark.generating import generated
    from penstock.spark.jobs.job import Job, JobError
    from penstock.spark.jobs.running import RunError, run
    from penstock.spark.outputs import output
    from penstock.spark.progress import Listener, Progress
    from penstock.spark.sinks.kafka import KafkaOnce, KafkaRepeating
    from penstock.spark.sinks.once import CheckpointId, Fanout, FilesByBatch, ParquetByBatch, SinkError
    from penstock.spark.sinks.postgres import PostgresOnce
    from penstock.spark.tasking import tasks
    from penstock.spark.training.collecting import collect
    from penstock.spark.training.learning import learn
    from penstock.spark.training.models import Model, ModelError
    from penstock.spark.training.scoring import ScoreError, score

__all__ = [
    "CheckpointId", "DetectError", "DriftWatch", "Fanout", "FilesByBatch", "Job", "JobError", "KafkaOnce",
    "KafkaRepeating", "Listener", "Model", "ModelError", "ParquetByBatch", "PostgresOnce", "Progress", "RunError",
    "ScoreError", "SinkError", "collect", "detect", "generated", "learn", "output", "run", "score", "tasks",
]  # fmt: skip

# Where each name comes from. It is loaded at first use: workers come here for a part of it only.
_ELSEWHERE = {
    "CheckpointId": "penstock.spark.sinks.once",
    "DetectError": "penstock.spark.columns",
    "DriftWatch": "penstock.spark.drifting",
    "Fanout": "penstock.spark.sinks.once",
    "FilesByBatch": "penstock.spark.sinks.once",
    "Job": "penstock.spark.jobs.job",
    "JobError": "penstock.spark.jobs.job",
    "KafkaOnce": "penstock.spark.sinks.kafka",
    "KafkaRepeating": "penstock.spark.sinks.kafka",
    "Listener": "penstock.spark.progress",
    "Model": "penstock.spark.training.models",
    "ModelError": "penstock.spark.training.models",
    "ParquetByBatch": "penstock.spark.sinks.once",
    "PostgresOnce": "penstock.spark.sinks.postgres",
    "Progress": "penstock.spark.progress",
    "RunError": "penstock.spark.jobs.running",
    "ScoreError": "penstock.spark.training.scoring",
    "SinkError": "penstock.spark.sinks.once",
    "collect": "penstock.spark.training.collecting",
    "detect": "penstock.spark.detecting",
    "generated": "penstock.spark.generating",
    "learn": "penstock.spark.training.learning",
    "output": "penstock.spark.outputs",
    "run": "penstock.spark.jobs.running",
    "score": "penstock.spark.training.scoring",
    "tasks": "penstock.spark.tasking",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'penstock.spark' has no attribute {name!r}")
    try:
        return getattr(import_module(_ELSEWHERE[name]), name)
    except ModuleNotFoundError as error:
        if error.name not in ("pyspark", "pandas"):
            raise
        raise ModuleNotFoundError(
            f"penstock.spark needs {error.name}\n  fix: pip install 'penstock[spark]'", name=error.name
        ) from error


def __dir__() -> list[str]:
    return [*globals(), *__all__]
