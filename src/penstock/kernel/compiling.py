"""`compiled`: numba with a disk cache that knows all of the kernel.

Numba calls a cached function stale when the file it stands in has changed. But compiled code holds the code of what it
calls, and the places of `penstock.plan.layout` too, so here a change in any of these files makes all of it stale.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, TypeVar

from numba import njit

_F = TypeVar("_F", bound=Callable[..., Any])


def compiled(function: _F) -> _F:
    """Compile a function of the kernel when it is first called, and keep the result on disk."""
    dispatcher: Any = njit(cache=True)(function)
    if hasattr(dispatcher, "_cache"):  # not if NUMBA_DISABLE_JIT is set
        dispatcher._cache._cache_file._source_stamp = stamp()
    return dispatcher  # to a caller it is the function


@cache
def stamp() -> str:
    """Return a digest of the sources that compiled code depends on."""
    sources = [*files("penstock.kernel").iterdir(), files("penstock.plan").joinpath("layout.py")]
    texts = sorted((source.name, source.read_bytes()) for source in sources if source.name.endswith(".py"))
    return sha256(repr(texts).encode()).hexdigest()
