"""Matches of one query that wait for values, and the runs that go on without them (EIRES, section 5.2).

A match that is found has passed the conjuncts that look something up, or `pending OR` them (penstock.plan.postponing).
Here they are asked again where something was pending: a match goes on to RETURN, is dropped, or is *held* until
`Engine.resolve` has brought what it needs. Nothing comes out unproved, and what comes out is what it would have been
if all values had been there at once; only later.

Which matches are asked again: those that begin no later than the newest event at which something was not there. Any run
that has passed on a value that was not there holds an event of that time, or an earlier one first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from penstock.engine import obligations
from penstock.engine.found import Array, Found, as_state, from_state, joined, nothing
from penstock.engine.functions import Functions
from penstock.engine.general import GeneralMatcher
from penstock.engine.looking import Expressions
from penstock.engine.matcher import Matcher
from penstock.engine.obligations import Waiting
from penstock.engine.plain import PlainMatcher
from penstock.engine.returns import Returns
from penstock.engine.store import Store
from penstock.engine.value_kinds import Kinds
from penstock.plan.layout import TEXT_LOW
from penstock.plan.planning import Plan
from penstock.plan.tables import Bools, Floats, Ints
from penstock.plan.terms import Calls, Terms


class Postponed:
    """The obligations of one query, and the matches that wait for them."""

    def __init__(self, plan: Plan, store: Store, functions: Functions, kinds: Kinds) -> None:
        self.functions, self.depth = functions, plan.tables.loops.shape[1]
        terms = Terms(plan.numbered, Calls.DERIVED)
        asked = Expressions(terms, plan.numbered, frozenset(), False, store, functions)
        self.where = obligations.where(asked, plan.query, functions, kinds)
        returned = Returns(plan, store, kinds, functions).expressions
        self.returns = obligations.returns(returned, plan.query, functions, kinds)
        self.held: Found = nothing(self.depth)
        self.unproved = -1  # the newest event when something was not there
        self._told = functions.answers.told

    # --- matches ----------------------------------------------------------------------------------------------

    def follow(self, newest: int) -> None:
        """Take note of what was not there, up to the newest event."""
        if self.functions.answers.told != self._told:
            self.unproved, self._told = newest, self.functions.answers.told

    def may_hold(self, oldest: int) -> bool:
        """Whether matches of the next events, or of those from the oldest on, may have to be asked again."""
        return self.where.asks_per_run or bool(self.returns) or oldest <= self.unproved

    def settle(self, found: Found, newest: int) -> Found:
        """Take matches that were found; return those that are proved and have all their values; hold others."""
        self.follow(newest)
        if not len(found):
            return found
        is_doubtful = found.first <= self.unproved
        if self.where and is_doubtful.any():
            doubtful = found.pick(np.flatnonzero(is_doubtful))
            judged = self.where.judged(doubtful)
            self._hold(doubtful, judged.is_open & ~judged.is_false)
            is_kept = ~is_doubtful
            is_kept[is_doubtful] = ~judged.is_open & ~judged.is_false
            found = found.pick(np.flatnonzero(is_kept))
        if self.returns and len(found):
            is_open = self.returns.judged(found).is_open
            self._hold(found, is_open)
            found = found.pick(np.flatnonzero(~is_open))
        self.follow(newest)
        return found

    def _hold(self, found: Found, rows: Bools) -> None:
        if rows.any():
            self.held = joined([self.held, found.pick(np.flatnonzero(rows))])

    def resolve(self, source: str, keys: list[Any], newest: int) -> Found:
        """Return the matches that waited for these keys of a source, and for nothing else, and hold."""
        numbers = self._numbers(keys)
        is_asking = self.where.asking(self.held, source, numbers) | self.returns.asking(self.held, source, numbers)
        asking, self.held = (self.held.pick(np.flatnonzero(rows)) for rows in (is_asking, ~is_asking))
        return self.settle(asking, newest)

    def _numbers(self, keys: list[Any]) -> Floats:
        """Return keys as the columns have them; not texts that no event has."""
        texts = self.functions.texts
        found = [TEXT_LOW + texts.find(key) if isinstance(key, str) else float(key) for key in keys]
        return np.array([number for number in found if number != TEXT_LOW - 1], np.float64)

    # --- runs -------------------------------------------------------------------------------------------------

    def prune(self, matcher: Matcher, source: str, keys: list[Any]) -> None:
        """End the runs for which a conjunct is now known not to hold; tell the others what they have waited for.

        A tree keeps no runs: what it has joined stays until WITHIN has passed, and its matches are asked.
        """
        if not self.where or not isinstance(matcher, PlainMatcher | GeneralMatcher):
            return
        runs = matcher.runs()
        rows = np.flatnonzero(self.where.asking(runs, source, self._numbers(keys), are_runs=True))
        if len(rows):
            asking = runs.pick(rows)
            matcher.refresh(rows, asking, self.where.judged(asking, are_runs=True).is_false)

    def count(self, matcher: Matcher) -> tuple[Waiting, Waiting]:
        """Return how many runs, and how many matches, wait for each key that is awaited."""
        runs = Waiting()
        if self.where and isinstance(matcher, PlainMatcher | GeneralMatcher):
            runs = self.where.count(matcher.runs(), are_runs=True)
        return runs, self.where.count(self.held) | self.returns.count(self.held)

    # --- memory and snapshots ---------------------------------------------------------------------------------

    def oldest_event(self) -> int | None:
        """Return the oldest event of the matches that wait; None if none waits."""
        return int(self.held.first.min()) if len(self.held) else None

    def windows(self) -> tuple[Ints, Ints]:
        """Return the partition and the first window of every match that waits."""
        return self.held.part, self.held.low

    def state(self) -> dict[str, Array]:
        """Return all that must survive."""
        return {"unproved": np.array([self.unproved], np.int64), **as_state(self.held, "held")}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from a state."""
        self.unproved, self.held = int(state["unproved"][0]), from_state(state, "held")
