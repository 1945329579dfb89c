"""penstock on Spark: `detect` finds matches in batch and streaming DataFrames."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.spark.collecting import collect
    from penstock.spark.columns import DetectError
    from penstock.spark.detecting import detect
    from penstock.spark.job import Job, JobError
    from penstock.spark.kafka import KafkaOnce, KafkaRepeating
    from penstock.spark.models import Model, ModelError
    from penstock.spark.outputs import output
    from penstock.spark.postgres import PostgresOnce
    from penstock.spark.progress import Listener, Progress
    from penstock.spark.running import RunError, run
    from penstock.spark.scoring import ScoreError, score
    from penstock.spark.sinks import CheckpointId, Fanout, FilesByBatch, ParquetByBatch, SinkError

__all__ = [
    "CheckpointId", "DetectError", "Fanout", "FilesByBatch", "Job", "JobError", "KafkaOnce", "KafkaRepeating",
    "Listener", "Model", "ModelError", "ParquetByBatch", "PostgresOnce", "Progress", "RunError", "ScoreError",
    "SinkError", "collect", "detect", "output", "run", "score",
]  # fmt: skip

# Where each name comes from. It is loaded at first use: workers come here for a part of it only.
_ELSEWHERE = {
    "CheckpointId": "penstock.spark.sinks",
    "DetectError": "penstock.spark.columns",
    "Fanout": "penstock.spark.sinks",
    "FilesByBatch": "penstock.spark.sinks",
    "Job": "penstock.spark.job",
    "JobError": "penstock.spark.job",
    "KafkaOnce": "penstock.spark.kafka",
    "KafkaRepeating": "penstock.spark.kafka",
    "Listener": "penstock.spark.progress",
    "Model": "penstock.spark.models",
    "ModelError": "penstock.spark.models",
    "ParquetByBatch": "penstock.spark.sinks",
    "PostgresOnce": "penstock.spark.postgres",
    "Progress": "penstock.spark.progress",
    "RunError": "penstock.spark.running",
    "ScoreError": "penstock.spark.scoring",
    "SinkError": "penstock.spark.sinks",
    "collect": "penstock.spark.collecting",
    "detect": "penstock.spark.detecting",
    "output": "penstock.spark.outputs",
    "run": "penstock.spark.running",
    "score": "penstock.spark.scoring",
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
