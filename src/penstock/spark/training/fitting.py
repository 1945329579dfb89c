"""Strategies from sums over a history of any size: `collect` on Spark, then a table on the driver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.pattern import ast
from penstock.pattern.parser import parse
from penstock.plan.planning import plan
from penstock.plan.tables import Bools, Floats, Ints
from penstock.plan.terms import Calls
from penstock.runtime.costs import Costs
from penstock.runtime.walking import Walk
from penstock.shedding.configuration import Fitted
from penstock.shedding.strategies.espice import Espice, utility_table
from penstock.shedding.strategies.pspice import Pspice, PspiceWithoutTime
from penstock.spark.training.contributions import WHOLE
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
        raise ModelError(
            f"the model is of {model.kind!r}, and eSPICE is made of contributions\n"
            '  fix: collect(…, model="contribution"), or pspice_of'
        )
    in_windows = {"events" in each.sums for each in model.queries}
    if len(in_windows) > 1:
        raise ModelError("some queries have WINDOW and others have none\n  fix: collect them apart")
    if in_windows == {True}:
        if any("event_parts" not in each.sums for each in model.queries):
            raise ModelError(
                "the model is of an earlier version, in which short windows counted too much\n  fix: collect anew"
            )
        sums = model.queries[0].sums
        shares: Floats = sums["event_parts"] / WHOLE / max(1, int(sums["windows"]))
        contributions: Floats = _weighted(model, "contribution_parts") / WHOLE
    else:
        contributions = _weighted(model, "contributions").sum(axis=1, keepdims=True)
        seen = model.queries[0].sums["seen"][:, None]
        shares = seen / max(1, int(seen.sum()))
    return Fitted(Espice(utility_table(contributions), shares, seed=seed), model.types)


def _weighted(model: Model, name: str) -> Floats:
    """Return the sum over the queries, by their weights."""
    total: Floats = np.sum([each.weight * each.sums[name] for each in model.queries], axis=0)
    return total


@dataclass(frozen=True)
class _Chain:
    weight: float
    ends: Bools
    moves: Ints
    stays: Ints
    rewards: Floats


def pspice_of(model: Model, *, with_time: bool = True) -> Fitted:
    """Return pSPICE with the transitions that `collect` has summed up; without `with_time`, pSPICE--.

    What a run has left is a part of WITHIN on Spark, so the events of a "window" are those that come within the
    query's WITHIN, of the same key, on average.

    Raises:
        ModelError: it has no transitions.

    Examples:
        fitted = pspice_of(collect(history, query, by="card", model="transition"))
        shed = pk.Shedding(bound="2 s", strategy="pspice", model=fitted.strategy, types=fitted.types)
    """
    if model.kind != "transition":
        raise ModelError(
            f"the model is of {model.kind!r}, and pSPICE is made of transitions\n"
            '  fix: collect(…, model="transition"), or espice_of'
        )
    chains, reaches = [], []
    for place, each in enumerate(model.queries):
        query = parse(each.query)
        walk = Walk(plan(query, Calls.DERIVED))
        moves = _moves(query, model.types, each.sums["taken"])
        stays = np.maximum(each.sums["open"].sum(axis=0) - moves.sum(axis=1), 0)
        chains.append(_Chain(each.weight, walk.ends, moves, stays, walk.rewards(Costs(), place)))
        reaches.append(int(each.sums["reach"]) / max(1, int(each.sums["seen"].sum())))
    made = Pspice if with_time else PspiceWithoutTime
    return Fitted(made.of(chains, reaches, with_time=with_time), model.types)


def _moves(query: ast.Query, types: tuple[str, ...], taken: Ints) -> Ints:
    """Return (S, S) from which state runs got to which, where (T, S) have taken an event of a type in a state.

    Where a type can take a run to several states, these get equal parts: which it was is not counted.
    """
    planned = plan(query, Calls.DERIVED)
    targets: dict[tuple[int, int], set[int]] = {}
    for step in planned.automaton.transitions:
        names = planned.numbered.variables[step.variable].types
        for code, name in enumerate(types):
            if not names or name in names:
                targets.setdefault((code, step.source), set()).add(step.target)
    moves = np.zeros((taken.shape[1], taken.shape[1]), np.int64)
    for (code, source), each in targets.items():
        count, rest = divmod(int(taken[code, source]), len(each))
        for number, target in enumerate(sorted(each)):
            moves[source, target] += count + (number < rest)
    return moves
