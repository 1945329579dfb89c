"""The elements of many matches by variable and round, looked up for all matches at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from penstock.engine.found import Found, SmallInts
from penstock.plan.positions import (
    NOTHING,
    Bag,
    InOrder,
    Leaf,
    Loop,
    Members,
    Never,
    Numbered,
    OneOf,
    Part,
    SideBySide,
)
from penstock.plan.tables import Bools, Ints


@dataclass(frozen=True)
class Seats:
    """Where an expression is evaluated: matches, and rounds of the repetitions that it ranges over."""

    match: Ints  # (S,) never falling
    rounds: SmallInts  # (depth, S)


class Elements:
    """The elements of matches, variable by variable. An element is meant by its number among those of its variable."""

    def __init__(self, found: Found, depths: list[int]) -> None:
        self.found, self.depths = found, depths
        self.owners = found.owners
        order = np.argsort(found.variables, kind="stable")
        ends = np.searchsorted(found.variables[order], np.arange(len(depths) + 1))
        self.places = [order[ends[v] : ends[v + 1]] for v in range(len(depths))]  # per variable: where in `found`
        self.counts = [np.bincount(self.owners[p], minlength=len(found)) for p in self.places]  # per variable and match
        self.starts = [np.cumsum(count) - count for count in self.counts]  # the number of the first element of a match

    def rounds_of(self, variables: list[int], depth: int) -> Seats:
        """Return the rounds in which at least one of the variables is bound, match by match."""
        places = np.concatenate([self.places[v] for v in variables])
        keys = np.concatenate([self.owners[places][None, :], self._rounds(places, depth)])
        order = np.lexsort(keys[::-1])
        keys = keys[:, order]
        is_new = np.ones(len(order), np.bool_)
        is_new[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
        return Seats(keys[0, is_new], keys[1:, is_new].astype(np.int32))

    def current(self, variable: int, seats: Seats) -> Ints:
        """Return the element of a variable in the round of each seat; -1: none."""
        depth = self.depths[variable]
        if depth == 0:
            return np.where(self.counts[variable] > 0, self.starts[variable], -1)[seats.match]
        places = self.places[variable]
        size = len(places)
        codes = np.concatenate([self.owners[places], seats.match])
        rounds = np.concatenate([self._rounds(places, depth), seats.rounds[:depth]], axis=1).astype(np.int64)
        for row in rounds:  # as one number per element and seat, kept small so that it stays one
            codes = np.unique(codes * (row.max(initial=0) + 1) + row, return_inverse=True)[1].reshape(-1)
        here = np.full(codes.max(initial=0) + 1, -1)
        here[codes[:size]] = np.arange(size)
        found: Ints = here[codes[size:]]
        return found

    def _rounds(self, places: Ints, depth: int) -> SmallInts:
        return self.found.rounds[:depth, places]


def expanded(start: Ints, stop: Ints) -> tuple[Ints, Ints]:
    """Return all numbers of the ranges start[k] .. stop[k]-1, and for each the k."""
    lengths = stop - start
    owners = np.repeat(np.arange(len(start)), lengths)
    return owners, np.arange(len(owners)) + np.repeat(start - (np.cumsum(lengths) - lengths), lengths)


# --- lists that are there -----------------------------------------------------------------------------------


def lists_there(numbered: Numbered, counts: list[Ints], gathered: frozenset[int], is_by_runs: bool) -> list[Bools]:
    """Return, per variable and match, whether it is a list whose branch was taken, though it may have no element."""
    bound = np.array(counts) > 0
    kinds, of = np.unique(bound, axis=1, return_inverse=True)
    there = np.zeros_like(kinds)
    for k in range(kinds.shape[1]):
        mine = set(np.flatnonzero(kinds[:, k]).tolist())
        there[list(_lists(numbered, numbered.root, mine, is_by_runs)), k] = True
        there[list(gathered & mine), k] = True
    return list(there[:, of.reshape(-1)])


def _lists(numbered: Numbered, part: Part, bound: set[int], is_by_runs: bool) -> set[int]:
    match part:
        case InOrder(parts=parts) | SideBySide(parts=parts):
            return set().union(*(_lists(numbered, each, bound, is_by_runs) for each in parts))
        case Members(parts=parts):
            taken = (each for each in parts if bound & set(_variables(numbered, each)))
            return set().union(*(_lists(numbered, each, bound, is_by_runs) for each in taken))
        case OneOf(parts=parts):
            return _lists(numbered, _taken(numbered, parts, bound, is_by_runs), bound, is_by_runs)
        case Loop(loop=loop):
            return set(numbered.loops[loop].variables)
        case Leaf() | Never() | Bag():
            return set()


def _taken(numbered: Numbered, parts: tuple[Part, ...], bound: set[int], is_by_runs: bool) -> Part:
    """Return the branch that was taken: one that is bound, or the last that may be nothing; of runs, the first."""
    for part in parts:
        if bound & set(_variables(numbered, part)):
            return part
    if parts[-1] == NOTHING:  # an option: taken if that is possible without an event
        parts = (NOTHING, *parts[:-1])
    order = parts if is_by_runs else parts[::-1]
    return next(part for part in order if _can_be_empty(numbered, part))


def _variables(numbered: Numbered, part: Part) -> Iterator[int]:
    match part:
        case Leaf(variable=variable):
            yield variable
        case Bag(bag=bag):
            yield from numbered.bags[bag].members
        case Loop(loop=loop):
            yield from numbered.loops[loop].variables
        case InOrder(parts=parts) | SideBySide(parts=parts) | OneOf(parts=parts) | Members(parts=parts):
            for each in parts:
                yield from _variables(numbered, each)


def _can_be_empty(numbered: Numbered, part: Part) -> bool:
    match part:
        case Leaf() | Bag() | Members():
            return False
        case Never():
            return True
        case Loop(loop=loop):
            return numbered.loops[loop].low == 0
        case InOrder(parts=parts) | SideBySide(parts=parts):
            return all(_can_be_empty(numbered, each) for each in parts)
        case OneOf(parts=parts):
            return any(_can_be_empty(numbered, each) for each in parts)
