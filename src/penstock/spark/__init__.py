"""penstock on Spark: `detect` finds matches in batch and streaming DataFrames."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.spark.columns import DetectError
    from penstock.spark.detecting import detect
    from penstock.spark.outputs import output

__all__ = ["DetectError", "detect", "output"]

# Where each name comes from. It is loaded at first use: workers come here for a part of it only.
_ELSEWHERE = {
    "DetectError": "penstock.spark.columns",
    "detect": "penstock.spark.detecting",
    "output": "penstock.spark.outputs",
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
