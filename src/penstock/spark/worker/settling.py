"""Keeps a Python worker ready for its next task.

Spark's daemon runs `gc.collect()` in a worker after each task, and has given the worker to the next task by then, which
waits. With the engine, numba, pandas and pyarrow loaded, a collection looks at half a million objects that never go
away: 60 to 100 ms for each Python stage of each micro-batch. Objects that are frozen are not looked at.
"""

from __future__ import annotations

import gc

_MANY = 20_000  # objects that a collection looks at: some ms
_MOST_TIMES = 6  # what is frozen is freed when nothing refers to it, but not collected: no worker freezes on and on

_times = 0


def settle() -> None:
    """Freeze what a worker has loaded, when it has loaded much since it last did so."""
    global _times
    if _times >= _MOST_TIMES or len(gc.get_objects()) < _MANY:
        return
    _times += 1
    gc.collect()
    gc.freeze()
