"""Helpers for tests: yours and ours."""

from typing import Any

from penstock.testing.streams import SECOND_US, stream

__all__ = ["SECOND_US", "check_shedder", "stream"]


def __getattr__(name: str) -> Any:
    if name == "check_shedder":  # loaded at first use: it needs all of the engine
        from penstock.testing.shedders import check_shedder

        return check_shedder
    raise AttributeError(f"module 'penstock.testing' has no attribute {name!r}")
