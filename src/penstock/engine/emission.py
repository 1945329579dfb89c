"""From the matches that are found to those that are emitted: SELECT and CONSUME on whole matches, LIMIT, DISTINCT.

Three ways, by what the query needs (`penstock.engine.rules`):

- Nothing to choose: matches pass through.
- What belongs together comes together, because every match is known at its last event: compiled
  (`penstock.kernel.choosing`). Between calls only the consumed events and the counts of LIMIT are remembered.
- Matches that are known late, CUMULATIVE and SELECT per variable: one by one (`penstock.engine.held`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from penstock.engine.found import Array, EventStore, Found, Progress, nothing
from penstock.engine.held import Held, found_of, items_of
from penstock.engine.remembered import Remembered
from penstock.engine.rules import rules
from penstock.kernel import choosing
from penstock.pattern.ast import Policy
from penstock.plan.planning import Plan
from penstock.plan.tables import Floats, Ints

VERSION = 1


class Emission:
    """Decides which of the matches that are found are emitted, and when.

    It expects of the kernel that the matches of one moment in one partition come in one call, and that those of
    FIRST and EACH are given no later than `Progress` says.
    """

    def __init__(self, plan: Plan, store: EventStore) -> None:
        self.rules = rules(plan)
        self.store = store
        self.depth = plan.tables.loops.shape[1]
        self.consumed = Remembered()  # by event and window
        self.counts = Remembered()  # of LIMIT, by partition and window
        is_rare = self.rules.waits or self.rules.policy is Policy.CUMULATIVE or bool(self.rules.listed)
        self.held = Held(self.rules) if is_rare and not self.rules.is_plain else None

    @property
    def is_plain(self) -> bool:
        """Whether every match that is found is emitted at once; `add` then needs no progress."""
        return self.rules.is_plain

    def add(self, found: Found, now: Progress) -> Found:
        """Take matches that were found up to `now`; return those that are decided, one row for each match and windows.

        What is returned is in the order in which matches count, unless the query makes no choice.
        """
        if self.is_plain:
            return found
        if self.held is not None:
            return found_of(self.held.add(items_of(found, self.store, self.rules), now), self.depth)
        if len(found):
            found = self._decided(found)
        self._forget(now)
        return found

    def flush(self) -> Found:
        """Decide all that is left, since the stream is over."""
        if self.held is None:
            return nothing(self.depth)
        return found_of(self.held.add([], None), self.depth)

    def oldest_event(self) -> int | None:
        """Return the oldest event of the matches that wait: it and later ones must stay in the store; None if none."""
        return None if self.held is None else min((item.bound[0][0] for item in self.held.items()), default=None)

    # --- where every match is known at its last event ----------------------------------------------------------

    def _decided(self, found: Found) -> Found:
        if self.rules.may_repeat:
            found = self._one_of_each(found, earliest_only=False)
        if self.rules.policy is Policy.LAST:
            last = found.last
            order = np.arange(len(found)) if (last[1:] >= last[:-1]).all() else np.argsort(last, kind="stable")
            picked = choosing.latest(
                order, found.offsets, found.events, found.variables, len(self.rules.ranks), found.low, found.high
            )
            found = found.pick(*picked)
        if self.rules.consumes or self.rules.limit is not None:
            found = self._in_turn(found)
        return self._one_of_each(found, earliest_only=True) if self.rules.is_distinct else found

    def _one_of_each(self, found: Found, earliest_only: bool) -> Found:
        """Keep one match of each assignment in each window, or in the earliest of its windows."""
        if not len(found):
            return found
        order = self._order(found, np.zeros((0, len(found))))
        groups = choosing.numbered(order, found.offsets, found.events, found.variables)
        return found.pick(*choosing.one_of_each(order, groups, found.low, found.high, earliest_only))

    def _order(self, found: Found, known: Floats) -> Ints:
        return choosing.in_order(known, found.offsets, found.events, found.variables, self.rules.ranks)

    def _in_turn(self, found: Found) -> Found:
        """Apply CONSUME and LIMIT, in the order in which matches count."""
        found = found.pick(self._order(found, np.stack([found.known_ts, found.known_pos])))
        pairs = np.stack(found.per_window())
        if self.rules.consumes:
            clock = self.store.pos if self.rules.is_by_count else self.store.ts
            about = np.stack([found.part, clock(found.last)])
            table = self.consumed.with_room(int(found.lengths[pairs[0]].sum()))
            kept = choosing.consume(
                pairs, found.offsets, found.events, found.variables, self.rules.consuming,
                about, table.keys, table.values, table.extra,
            )  # fmt: skip
            pairs = pairs[:, kept]
        if self.rules.limit is not None:
            table = self.counts.with_room(pairs.shape[1])
            pairs = pairs[:, choosing.limit(pairs, found.part, self.rules.limit, table.keys, table.values)]
        return found.pick(pairs[0], pairs[1], pairs[1])

    def _forget(self, now: Progress) -> None:
        """Forget the events that are out of reach, and the windows that are closed, now and then."""
        if self.consumed.is_large:
            clock = now.pos if self.rules.is_by_count else now.ts
            _, part_and_time = self.consumed.entries()
            part, time = part_and_time
            self.consumed.keep(clock[part] <= time + self.rules.within)
        if self.counts.is_large:
            (part, window), _ = self.counts.entries()
            self.counts.keep(window >= now.window[part])

    # --- snapshots --------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Array]:
        """Return all that is remembered between calls, as arrays by name."""
        found: dict[str, Array] = {"version": np.array([VERSION])}
        found |= self.consumed.state("consumed") | self.counts.state("counts")
        if self.held is not None:
            found |= {f"held.{name}": array for name, array in self.held.state(self.depth).items()}
        return found

    @classmethod
    def from_state(cls, plan: Plan, store: EventStore, state: Mapping[str, Array]) -> Emission:
        """Return an emission that goes on where the one that gave the state stopped."""
        emission = cls(plan, store)
        emission.consumed.restore(state, "consumed")
        emission.counts.restore(state, "counts")
        if emission.held is not None:
            prefix = "held."
            emission.held.restore({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
        return emission
