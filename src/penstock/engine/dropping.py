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
    each = [matcher.run_cells(utility.shape[1], left) for matcher, utility in zip(matchers, utilities, strict=True)]
    if len(matchers) == 1:
        wanted = quota(utilities[0], each[0], count).reshape(each[0].shape)
        return int(matchers[0].drop_counted(each[0], wanted, seed).sum())
    joint = [np.concatenate([np.asarray(array).reshape(-1) for array in arrays]) for arrays in (utilities, each)]
    parts = np.split(quota(joint[0], joint[1], count), np.cumsum([sizes.size for sizes in each])[:-1])
    dropped = 0
    for matcher, sizes, wanted in zip(matchers, each, parts, strict=True):
        dropped += int(matcher.drop_counted(sizes, wanted.reshape(sizes.shape), seed).sum())
    return dropped
