"""Strategies from sums over a history of any size: `collect` on Spark, then a table on the driver."""

from __future__ import annotations

import numpy as np

from penstock.plan.tables import Floats
from penstock.shedding.configuration import Fitted
from penstock.shedding.strategies.espice import Espice, utility_table
from penstock.spark.training.models import Model, ModelError


def espice_of(model: Model, *, seed: int = 1) -> Fitted:
    """Return eSPICE with the contributions that `collect` has summed up.

    With WINDOW, by type and position; without, by type alone: an event has no position then.

    Raises:
        ModelError: it has no contributions, or some queries have WINDOW and others have none.

    Examples:
        fitted = espice_of(collect(history, query, by="card"))
        shed = pk.Shedding(bound="2 s", strategy="espice", model=fitted.strategy, types=fitted.types)
    """
    if model.kind != "contribution":
        raise ModelError(f"the model is of {model.kind!r}, and eSPICE is made of contributions")
    in_windows = {"events" in each.sums for each in model.queries}
    if len(in_windows) > 1:
        raise ModelError("some queries have WINDOW and others have none\n  fix: collect them apart")
    contributions: Floats = np.sum([each.weight * each.sums["contributions"] for each in model.queries], axis=0)
    if in_windows == {True}:
        sums = model.queries[0].sums
        shares: Floats = sums["events"] / max(1, int(sums["windows"]))
    else:
        contributions = contributions.sum(axis=1, keepdims=True)
        seen = model.queries[0].sums["seen"][:, None]
        shares = seen / max(1, int(seen.sum()))
    return Fitted(Espice(utility_table(contributions), shares, seed=seed), model.types)
