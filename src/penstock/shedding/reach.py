"""How many events a run may see before its time is over, where windows are not matched on their own.

It is what pSPICE has instead of a window's size: then a run ends WITHIN after its first event, not with a window.
"""

from __future__ import annotations

import numpy as np

from penstock.plan.tables import Ints


def events_within(parts: Ints, times: Ints, within_us: int) -> Ints:
    """Return (n,) how many events of its partition are within a time before each event, with itself.

    Args:
        parts: (n,) the partition of each event.
        times: (n,) in microseconds, in order.
        within_us: how long a run may be.

    Examples:
        >>> events_within(np.array([0, 1, 0, 0]), np.array([0, 5, 10, 11]), 10).tolist()
        [1, 1, 2, 2]
    """
    if not len(times):
        return np.zeros(0, np.int64)
    order = np.argsort(parts, kind="stable")  # each partition in the order of time
    since, apart = times[order] - times.min(), int(times.max() - times.min()) + 1
    starts = parts[order] * apart
    first = np.searchsorted(starts + since, np.maximum(starts + since - within_us, starts))
    counts = np.empty(len(order), np.int64)
    counts[order] = np.arange(len(order)) - first + 1
    return counts
