"""Positions in windows of any size, as cells of a table with a fixed number of them (thesis 4.2.6.1 and 4.2.6.2).

A table has N positions, the mean size of a window, in bins of `bs` positions: B = N / bs cells. The scaling factor of a
window of ws events is sf = ws / N. If ws is larger than B, several positions share a cell; if it is smaller, a position
is several cells, and its utility is their mean.
"""

from __future__ import annotations

import numpy as np

from penstock.plan.tables import Ints


def cells(positions: Ints, sizes: Ints, count: int) -> tuple[Ints, Ints]:
    """Return the first cell of positions in windows of these sizes, and how many cells each is.

    Positions behind the end of a window, which a window may have that turns out longer than was expected, are in the
    last cell.

    Examples:
        >>> [part.tolist() for part in cells(np.arange(4), np.full(4, 4), 2)]
        [[0, 0, 1, 1], [1, 1, 1, 1]]
        >>> [part.tolist() for part in cells(np.arange(2), np.full(2, 2), 5)]
        [[0, 3], [3, 2]]
        >>> [part.tolist() for part in cells(np.array([9]), np.array([4]), 2)]
        [[1], [1]]
    """
    positions = np.minimum(positions, sizes - 1)
    first = positions * count // sizes
    if int(sizes.min(initial=count)) >= count:
        return first, np.ones(len(positions), np.int64)
    is_up = sizes < count
    first = np.where(is_up, -(-positions * count // sizes), first)
    return first, np.where(is_up, -(-(positions + 1) * count // sizes) - first, 1)


def expanded(starts: Ints, counts: Ints) -> Ints:
    """Return start, start + 1, … for each start, as many as its count says.

    Examples:
        >>> expanded(np.array([3, 7]), np.array([2, 3])).tolist()
        [3, 4, 7, 8, 9]
    """
    ends = np.cumsum(counts)
    result: Ints = np.repeat(starts - ends + counts, counts) + np.arange(ends[-1] if len(ends) else 0)
    return result
