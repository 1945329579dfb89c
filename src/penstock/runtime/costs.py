"""What work costs in virtual time."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np

from penstock.plan.tables import Floats, Ints
from penstock.shedding.views import Effort

# Columns of a ledger, as `penstock.Hooks.ledger` has them.
CHECKS, CREATED, MATCHES, OPEN, SHED = range(5)


@dataclass(frozen=True)
class Costs:
    """Unit costs in nanoseconds.

    The defaults are those of an operator as the papers describe it: it asks every open run about every event, and that
    is most of its work. `penstock lab calibrate` measures those of our engine, which asks only the runs that wait for
    an event of its type, and shares runs between windows: what the papers save by shedding, it mostly does not spend.

    Attributes:
        event: to take an event from the queue.
        pair: to look at an event in one of its windows.
        check: to ask a run whether it takes an event.
        run: to make a run.
        match: to hand out a match.
        lookup: to look up a utility in a table.
        hash: to work out a Zobrist key and look it up.
        node: to go through a node of a tree.
        rank: to rank a run among those that may be dropped.
        asks: which runs are asked about an event: "open", all that are open in the window, as in the papers'
            operators; "fitting", those that wait for an event of its type and key, as our kernel does.
        factors: by query, how much more than that its checks cost; 1 where none is given.
    """

    event: float = 50.0
    pair: float = 20.0
    check: float = 100.0
    run: float = 100.0
    match: float = 200.0
    lookup: float = 3.0
    hash: float = 25.0
    node: float = 3.0
    rank: float = 10.0
    asks: Literal["open", "fitting"] = "open"
    factors: tuple[float, ...] = ()

    def scaled(self, factor: float) -> Costs:
        """Return costs of a machine that is so much slower."""
        units = {each.name: getattr(self, each.name) * factor for each in fields(self) if each.type == "float"}
        return replace(self, **units)

    def of_pairs(self, ledgers: list[Ints]) -> Floats:
        """Return what each pair took, of all queries, by their ledgers (n, 5)."""
        total = np.full(len(ledgers[0]), self.pair, np.float64)
        for query, ledger in enumerate(ledgers):
            asked = ledger[:, OPEN] if self.asks == "open" else ledger[:, CHECKS]
            factor = self.factors[query] if query < len(self.factors) else 1.0
            total += self.check * factor * asked + self.run * ledger[:, CREATED] + self.match * ledger[:, MATCHES]
        return total

    def of_decision(self, effort: Effort) -> float:
        """Return what one decision takes."""
        return float(getattr(self, effort.what)) * effort.many
