"""Several queries that begin alike, in an engine: one detector finds the matches of all (penstock.plan.prefixes)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from penstock.engine.batches import Batch, Reader
from penstock.engine.chains import Chains
from penstock.engine.detector import Detector
from penstock.engine.functions import Functions
from penstock.engine.hooks import Hooks
from penstock.engine.intake import Intake
from penstock.engine.matches import Matches, Output
from penstock.engine.plain import PlainMatcher
from penstock.engine.rules import rules
from penstock.engine.store import Store
from penstock.pattern.parser import parse
from penstock.pattern.render import render
from penstock.plan import layout
from penstock.plan.costs import AUTOMATON_TIMES, Model
from penstock.plan.joins import join_query
from penstock.plan.planning import Plan, plan
from penstock.plan.prefixes import Merged, merged_queries
from penstock.plan.statistics import Sample, estimate
from penstock.plan.tables import Ints
from penstock.plan.terms import Calls
from penstock.plan.tree import CLEARLY, choose

_SAMPLE, _LEAST_SAMPLE, _PAIRS = 4096, 64, 500  # events, and pairs of them, that a choice rests on
_MOST_ASKED = 8  # members that it rests on
_CHOOSE_FROM = 1024  # events, before it is asked whether each alone is cheaper
_NOTHING = {"checks": 0, "runs_created": 0, "matches": 0}


class Together(Detector):
    """Finds the matches of queries that begin alike; `part` makes them go on alone.

    Args:
        merged: the queries as one.
        plan: that of the one query; it must be plain.
        members: the detectors of the queries, which have seen nothing of the stream.
        max_runs: how many runs a query may have; those that run together have theirs together.
    """

    def __init__(
        self, merged: Merged, plan: Plan, members: Sequence[Detector], reader: Reader, functions: Functions,
        max_runs: int, *, chooses: bool,
    ) -> None:  # fmt: skip
        super().__init__(plan, reader, functions, max_runs * len(members), "automaton", is_alone=False)
        self.merged, self.members = merged, members
        self._next_choice = _CHOOSE_FROM if chooses else 2**62  # events, before it is asked what is cheaper
        self._variables = [[plan.numbered.number_of(name) for name in names] for names in merged.names]
        self._owners = np.zeros(len(plan.numbered.variables), np.int32)  # of the last element of a match
        self._places = []  # per member: of the variables among its own
        for member, variables in enumerate(self._variables):
            self._owners[variables] = member
            places = np.zeros(len(plan.numbered.variables), np.int32)
            places[variables] = np.arange(len(variables))
            self._places.append(places)
        self._outputs = [
            Output(each.plan, self.store, self._keys, self._window_names, self._kind, functions) for each in members
        ]

    def _window_names(self, parts: Ints, numbers: Ints) -> Ints:
        return self.intake.window_names(parts, numbers)

    def _of_chains(self, chains: Chains) -> Matches:
        """Return the matches of each member."""
        assert isinstance(self.matcher, PlainMatcher), "a tree has no chains"
        matches = Matches()
        for member, part in chains.parted(self._owners, self._places):
            self.matcher.given_out.add(part)
            matches += self._outputs[member].of_chains(part)
        return matches

    def process(self, batch: Batch, hooks: Hooks | None = None) -> Matches:
        """Return the matches that a batch completes."""
        assert hooks is None, "hooks are about the runs of each query"
        return super().process(batch)

    # --- alone ------------------------------------------------------------------------------------------------

    def part(self) -> None:
        """Let the members go on alone, from where the stream is."""
        state, work = self.state(), self.work
        for member, variables in zip(self.members, self._variables, strict=True):
            store, intake = dict(state["store"]), dict(state["intake"])
            for row, variable in enumerate(variables):
                store[f"fits.{row}"] = state["store"][f"fits.{variable}"]
            columns = member.plan.terms.columns
            rows = [self.plan.terms.columns.index(column) for column in columns]
            for row, place in enumerate(rows):
                store[f"columns.{row}"] = state["store"][f"columns.{place}"]
            store["has_text"] = state["store"]["has_text"][rows]
            intake["latest"] = state["intake"]["latest"][:, self.intake.previous_rows(member.intake)]
            member.follow({**state, "store": store, "intake": intake}, work)
            work = _NOTHING

    def is_dearer(self, batch: Batch) -> bool:
        """Return whether the members are clearly cheaper alone, by the rates and values of a batch.

        A tree of joins may be cheaper than an automaton that is shared; queries that have no tree do not count.
        """
        if self.intake.count + batch.size < self._next_choice or batch.size < _LEAST_SAMPLE:
            return False
        self._next_choice = 4 * (self.intake.count + batch.size)
        newest = slice(max(0, batch.size - _SAMPLE), batch.size)
        sample = replace(
            batch, size=newest.stop - newest.start, ts=batch.ts[newest], seq=batch.seq[newest],
            types=batch.types[newest], columns={name: each[newest] for name, each in batch.columns.items()}, shared={},
        )  # fmt: skip
        asked = [k for k, each in enumerate(self.members) if each.why_no_tree is None]
        costs = [self._costs(k, sample) for k in asked[:: 1 + (len(asked) - 1) // _MOST_ASKED]]
        return sum(alone for alone, _ in costs) < CLEARLY * sum(shared for _, shared in costs)

    def _costs(self, member: int, sample: Batch) -> tuple[float, float]:
        """Return what a member costs alone, and its part of what all cost together."""
        plan, query = self.members[member].plan, join_query(self.members[member].plan)
        store = Store(plan, self.reader, self.functions)
        taken = Intake(plan, self.reader, self.functions).take(sample)
        store.append(taken)
        chosen = slice(0, store.size)
        statistics = estimate(
            plan,
            Sample(
                tuple(self.reader.types.state()), sample.types[taken.rows], store.events[layout.EVENT_TS, chosen],
                store.columns[:, chosen], store.constants(), store.ranks(), store.events[layout.EVENT_PART, chosen],
            ),
            query, pairs=_PAIRS,
        )  # fmt: skip
        choice = choose(plan, statistics, query)
        if choice.tree is None or choice.automaton_cost is None:
            return 0.0, 0.0
        columns = [column.name for column in plan.terms.columns]
        model = Model(query, statistics, choice.tree.model.window_s, columns, AUTOMATON_TIMES)
        users = np.bincount(np.concatenate(self._variables), minlength=len(self._owners))
        shared, before, bound = 0.0, 0.0, 0
        for number, variable in enumerate(self._variables[member]):
            bound |= 1 << number
            cost = model.automaton(bound)
            shared, before = shared + (cost - before) / int(users[variable]), cost
        return choice.tree.cost if choice.is_tree else choice.automaton_cost, shared

    # --- snapshots --------------------------------------------------------------------------------------------

    def spelled(self) -> dict[str, Any]:
        """Return what `restored` needs to make it anew, with all that must survive."""
        return {
            "query": render(self.merged.query),
            "members": list(self.merged.members),
            "names": {str(k): list(names) for k, names in enumerate(self.merged.names)},
            "next_choice": self._next_choice,
            "state": self.state(),
        }

    @classmethod
    def restored(
        cls, spelled: dict[str, Any], members: Sequence[Detector], reader: Reader, functions: Functions, max_runs: int
    ) -> Together:
        """Return what `spelled` is about; the members have been made."""
        names = tuple(tuple(spelled["names"][str(k)]) for k in range(len(members)))
        merged = Merged(parse(spelled["query"]), tuple(spelled["members"]), names)
        planned = plan(merged.query, Calls.DERIVED)
        together = cls(merged, planned, members, reader, functions, max_runs, chooses=False)
        together._next_choice = int(spelled["next_choice"])
        together.restore(spelled["state"])
        return together


def put_together(
    detectors: Sequence[Detector], reader: Reader, functions: Functions, max_runs: int, *, chooses: bool
) -> list[Detector]:
    """Return the detectors that batches go to: one for several queries that begin alike, and that of each other query.

    Args:
        detectors: one for each query; they have seen nothing of the stream.
        reader: that of the engine.
        functions: likewise.
        max_runs: how many runs a query may have.
        chooses: whether a plan is chosen by what the stream is like.
    """
    running = list(detectors)
    places = [k for k, each in enumerate(detectors) if each.plan.plain is not None and each.passes_all]
    for merged in merged_queries([detectors[k].plan.query for k in places]):
        merged = replace(merged, members=tuple(places[k] for k in merged.members))
        planned = plan(merged.query, Calls.DERIVED)
        if planned.plain is None or not rules(planned).is_plain:
            continue
        members = [detectors[k] for k in merged.members]
        together = Together(merged, planned, members, reader, functions, max_runs, chooses=chooses)
        running = with_together(running, together)
    return running


def with_together(running: list[Detector], together: Together) -> list[Detector]:
    """Return detectors with one for several, in the place of the first of these."""
    first, *others = together.members
    return [together if each is first else each for each in running if each not in others]


def parted(running: list[Detector], is_parting: Callable[[Together], bool]) -> list[Detector]:
    """Return detectors with those of queries that go on alone instead of one for several."""
    found: list[Detector] = []
    for each in running:
        if isinstance(each, Together) and is_parting(each):
            each.part()
            found += each.members
        else:
            found.append(each)
    return found
