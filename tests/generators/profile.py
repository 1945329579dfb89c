"""What random queries may use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.pattern.ast import Policy

Top = Literal["sequence", "and", "or", "any"]


@dataclass(frozen=True)
class Profile:
    """The parts of the language to draw from. A law that does not hold for all of it leaves something out.

    Attributes:
        leaves: the most positive events that a pattern names.
        types: how many types there are, at most 4; with few, an event fits in many ways.
        top: what the outermost construct is, of at least two parts; None: anything.
        negation: how often `NOT B b` stands where it may, in multiples of the usual; 0: never.
        wildcard: `* x`, and in WINDOW … ON too.
        repetition: how often something is repeated, in multiples of the usual; 0: never, and nothing is optional.
        where: WHERE.
        aggregates: `SUM(a[].x)` and its like.
        previous: `prev(a.x)`.
        clock: times by themselves, as in `a.ts % 4 s`; otherwise they are only compared with each other.
        count_within: WITHIN n EVENTS; otherwise only by time.
        count_window: WINDOW n EVENTS; otherwise only by time.
        window: of 100 queries, how many have a WINDOW.
        partition: of 100 queries, how many have a PARTITION BY.
        policies: those of SELECT.
        per_variable: of 100 queries with EACH, how many have policies per variable, as in `SELECT EACH, LAST b`.
        consume: of 100 queries, how many have a CONSUME.
        limit: LIMIT … PER WINDOW.
        distinct: DISTINCT.
        returns: RETURN.
    """

    leaves: int = 5
    types: int = 4
    top: Top | None = None
    negation: int = 1
    wildcard: bool = True
    repetition: int = 1
    where: bool = True
    aggregates: bool = True
    previous: bool = True
    clock: bool = True
    count_within: bool = True
    count_window: bool = True
    window: int = 50
    partition: int = 25
    policies: tuple[Policy, ...] = tuple(Policy)
    per_variable: int = 45
    consume: int = 60
    limit: bool = True
    distinct: bool = True
    returns: bool = True


EVERYTHING = Profile()
