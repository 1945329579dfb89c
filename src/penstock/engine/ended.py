"""Runs that ended without a match, as users get them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from penstock.engine.found import Found
from penstock.engine.matches import Match, Matches
from penstock.engine.queries import EngineError
from penstock.plan.planning import Plan
from penstock.plan.tables import Bools, Ints

TIMED_OUT, ABANDONED = "timed out", "abandoned"


def check_ended(plans: Iterable[Plan], mode: str) -> None:
    """Refuse to report how runs of these queries end, if that is not known.

    Raises:
        EngineError: says why.
    """
    if mode == "tree":
        raise EngineError("a tree plan keeps no runs that could end\n  fix: plan='automaton', or no `ended`")
    for plan in plans:
        if plan.plain is None:
            name = "a query" if plan.query.name is None else f"the query '{plan.query.name}'"
            raise EngineError(
                f"how runs end is known on the plain kernel, and {name} needs the general one: {plan.why_not_plain}\n"
                "  fix: change that part of the query, or give it an engine of its own without `ended`"
            )
        if plan.postpones:
            raise EngineError(
                "while conditions are postponed it is not known which runs there are\n"
                "  fix: either `ended` or `postpone`"
            )


def _none() -> Ints:
    return np.zeros(0, np.int64)


@dataclass(frozen=True)
class Ended:
    """Runs that ended without a match, in no particular order; one for each window that they ended in.

    Attributes:
        runs: what was bound, in the form of matches.
        why: of each, "abandoned": a negated event forbade it; or "timed out": WITHIN, its window or the stream is over,
            or, under STRICT, another event came than the one that it needed.
        by: of each, the number (`seq`) of the event that forbade it; -1 if it timed out.
    """

    runs: Matches = field(default_factory=Matches)
    why: tuple[str, ...] = ()
    by: Ints = field(default_factory=_none)

    def __len__(self) -> int:
        return len(self.why)

    def __add__(self, other: Ended) -> Ended:
        return Ended(self.runs + other.runs, self.why + other.why, np.concatenate([self.by, other.by]))

    def __iter__(self) -> Iterator[tuple[Match, str, int]]:
        return zip(self.runs, self.why, self.by.tolist(), strict=True)


def together(pieces: Sequence[Ended]) -> Ended:
    """Return several as one."""
    runs = Matches(tuple(chunk for each in pieces for chunk in each.runs.chunks))
    why = tuple(reason for each in pieces for reason in each.why)
    return Ended(runs, why, np.concatenate([_none(), *(each.by for each in pieces)]))


@dataclass(frozen=True)
class Over:
    """The same, as the kernel finds them."""

    found: Found
    is_abandoned: Bools  # (K,)
    by: Ints  # (K,) running numbers of events; -1: none
