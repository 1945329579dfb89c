"""Runs are dropped over all queries of an engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.engine.matcher import quota
from penstock.engine.plain import PlainMatcher
from penstock.plan.tables import Floats


def drop_from_all(
    matchers: Sequence[PlainMatcher], count: int, utilities: Sequence[Floats], left: Floats | None, seed: int | None
) -> int:
    """Drop the runs of least utility over all matchers; return how many; see `Engine.drop_runs_of_all`.

    This is algorithm 2 of the thesis (section 3.2.6): runs are counted by cell instead of sorted.
    """
    droppers = [matcher.dropper() for matcher in matchers]
    if len(droppers) == 1:
        return droppers[0].drop_least(count, utilities[0], left, seed)
    each = [dropper.count(utility.shape[1], left) for dropper, utility in zip(droppers, utilities, strict=True)]
    whole = [np.broadcast_to(utility, sizes.shape) for utility, sizes in zip(utilities, each, strict=True)]
    joint = [np.concatenate([array.reshape(-1) for array in arrays]) for arrays in (whole, each)]
    parts = np.split(quota(joint[0], joint[1], count), np.cumsum([sizes.size for sizes in each])[:-1])
    return sum(
        dropper.drop_counted(wanted.reshape(sizes.shape), seed)
        for dropper, sizes, wanted in zip(droppers, each, parts, strict=True)
    )
