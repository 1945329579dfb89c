"""What steps add up to if each is forgotten bit by bit: sums over a finite past, so that a block needs little of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def faded(steps: Floats, span: int) -> Floats:
    """Return the sums of steps that fade: each counts in full at once, not at all after `span` rows, linearly between.

    Args:
        steps: (span + n, …) the rows that results are asked for, after the `span` rows before them.
        span: how long a step has an effect.

    Returns:
        (n, …) the sums.

    Examples:
        >>> faded(np.array([0.0, 0.0, 0.0, 0.0, 8.0, 0.0, 0.0, 0.0, 0.0]), 4).tolist()
        [8.0, 6.0, 4.0, 2.0, 0.0]
    """
    once = np.cumsum(steps, axis=0)
    twice = np.cumsum(np.concatenate([np.zeros_like(steps[:1]), once]), axis=0)  # sums of the rows before
    here = np.arange(span, len(steps))
    result: Floats = once[here] - (twice[here] - twice[here - span]) / span
    return result
