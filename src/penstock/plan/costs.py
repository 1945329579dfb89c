"""What a plan costs: the model of DARLING, section 4.2.3, equations (5) to (10), for trees and for the automaton.

The equations speak of a conjunctive pattern, with the order of SEQ as conditions like any other. Taken so, (9) gives
the wrong type the work: in SEQ(A a, B b) an arriving A joins no B at all, since every B is earlier, and an arriving B
joins every A. Summed over the types the two errors cancel; for Z(T) of one type they do not. So `Model` asks for the
selectivity of an order *given that the arriving event is the last*, and hands it to the equations as they stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod

from penstock.plan.joins import JoinCondition, JoinQuery, members
from penstock.plan.statistics import Statistics

MOST_COST = 1e280  # so that sums of what is too much can be compared
MOST_PREFIXES = 20_000  # of an automaton's runs that are counted: AND of n events has 2^n


# --- the equations -----------------------------------------------------------------------------------------------


def condition_time(times: Iterable[float]) -> float:
    """Equation (5): L_cond(N), the time that the conditions of a node take for one combination, from their f_i."""
    return sum(times)


def peer_time(parent_condition_time: float, peers: Iterable[float]) -> float:
    """Equation (6): L_peer(N), the time to combine one partial match of N with all PM(N') of its peers."""
    return parent_condition_time * prod(peers)


def arrival_time(path: Iterable[tuple[float, float, float]]) -> float:
    """Equation (7): Z(T), the time that an event of type T takes.

    Args:
        path: for each node from the leaf of T to the root, L_peer(N), V_n + V_r, and PM(N, T).
    """
    return sum((peer + changing) * new for peer, changing, new in path)


def new_at_leaf(selectivity: float, is_own: bool) -> float:
    """Equation (8): PM(L, T), the partial matches that an event of type T makes in a leaf, its own or another."""
    return selectivity if is_own else 0.0


def new_at_node(selectivity: float, new_below: float, stored_beside: Iterable[float]) -> float:
    """Equation (9): PM(N, T), from what is new in the son on the path of T and stored in the others."""
    return selectivity * new_below * prod(stored_beside)


def stored_at_leaf(rate: float, selectivity: float, window: float) -> float:
    """Equation (10), first line: PM(N) of a leaf."""
    return rate * selectivity * window


def stored_at_node(selectivity: float, sons: Iterable[float]) -> float:
    """Equation (10), second line: PM(N) of an inner node, from those of its sons."""
    return selectivity * prod(sons)


def buffer_sizes(
    times: Mapping[str, float], rates: Mapping[str, float], queue: float, share: float
) -> dict[str, float]:
    """Section 4.2.2: N_T, how many events of each type may wait, of N_in (`queue`) and beta (`share`)."""
    total = sum(times[name] * rates[name] for name in times)
    return {name: times[name] * rates[name] / total * queue * share for name in times}


# --- the model ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Times:
    """What the steps of a kernel take, in nanoseconds, as measured on one core.

    Args:
        pair: to look at a stored partial match in a scan.
        link: to look at one in an index.
        interval: for each interval that it is compared with.
        program: for each condition that is computed, of those that are in the intervals.
        search: to begin to look.
        arrive: V_n of a leaf, to take an event.
        create: V_n of an inner node, to make a partial match.
        remove: V_r, to keep it and remove it.
        match: V_n of the root: trees lay matches out at once, runs are chains that are laid out when they are read.
    """

    pair: float = 0.5
    link: float = 5.0
    interval: float = 0.2
    program: float = 6.0
    search: float = 90.0
    arrive: float = 45.0
    create: float = 9.0
    remove: float = 20.0
    match: float = 30.0


TREE_TIMES = Times()
AUTOMATON_TIMES = Times(create=6.0, remove=14.0, match=2.0)


class Model:
    """Sizes and times of the joins of a query, for sets of variables as bit masks."""

    def __init__(
        self,
        query: JoinQuery,
        statistics: Statistics,
        window_s: float,
        columns: Sequence[str] = (),
        times: Times = TREE_TIMES,
    ) -> None:
        self.query, self.statistics, self.window_s, self.times = query, statistics, window_s, times
        self.columns = columns
        self.rates = [statistics.rate_of(types) for types in query.types]
        self._selectivities = {each.text: self._selectivity(each) for each in query.conditions}
        self.stored, self.new = cache(self._stored), cache(self._new)
        self.share, self.pair_time = cache(self._share), cache(self._pair_time)

    def _selectivity(self, condition: JoinCondition) -> float:
        used = {condition.same} if condition.same >= 0 else set()
        if condition.term is not None:
            used = {column for _, _, column in condition.term.program if column >= 0}
        names = [self.columns[column] for column in used if column < len(self.columns)]
        return self.statistics.selectivity(condition, names)

    # --- how many ---

    def leaf_selectivity(self, variable: int) -> float:
        """Return SEL(L) of a leaf."""
        return prod(self._selectivities[each.text] for each in self.query.at_leaf(variable))

    def selectivity(self, left: int, right: int, last: int | None = None) -> float:
        """Return SEL(N) of the join of two sides; with `last`, for an event of that variable that arrives."""
        conditions = prod(self._selectivities[each.text] for each in self.query.at_join(left, right))
        return conditions / self._partitions() * self.order_selectivity(left, right, last)

    def order_selectivity(self, left: int, right: int, last: int | None = None) -> float:
        """Return the share of pairs that are in order, of those whose two sides are."""
        in_order = self.query.in_order
        sides = in_order(left, last) * in_order(right, last)
        return in_order(left | right, last) / sides if sides else 0.0

    def _partitions(self) -> float:
        return self.statistics.partitions if self.query.is_partitioned else 1.0

    def _stored(self, variables: int) -> float:
        """Return PM(N), by equation (10)."""
        first = variables & -variables
        if variables == first:
            v = first.bit_length() - 1
            return stored_at_leaf(self.rates[v], self.leaf_selectivity(v), self.window_s)
        rest = variables & ~first
        return stored_at_node(self.selectivity(first, rest), (self.stored(first), self.stored(rest)))

    def _new(self, variables: int, arriving: int) -> float:
        """Return PM(N, T), by equations (8) and (9)."""
        mine, rest = 1 << arriving, variables & ~(1 << arriving)
        if not rest:
            return new_at_leaf(self.leaf_selectivity(arriving), is_own=variables == mine)
        selectivity = self.selectivity(mine, rest, arriving)
        return new_at_node(selectivity, self.new(mine, arriving), (self.stored(rest),))

    # --- how long ---

    def is_kept(self, side: int, other: int) -> bool:
        """Whether a side has to be stored: whether an event of the other side can be the last of a pair."""
        return bool(self.query.wakes(other, side))

    def _pair_time(self, mine: int, theirs: int) -> tuple[float, float]:
        """Return L_cond of the join of two sides by equation (5), and the share of the stored that it is spent on."""
        asked = self.query.asked(mine, theirs)
        keys = [each for each, found in asked if any(b.is_key for b in found)]
        share = prod(self._selectivities[each.text] for each in keys) / self._partitions()
        is_indexed = bool(keys) or self.query.is_partitioned
        intervals = [each for each, found in asked if found and each not in keys]
        inside = prod(self._selectivities[each.text] for each in intervals)
        programs = sum(1 for each, found in asked if not found or not found[0].exact)
        f = [self.times.link if is_indexed else self.times.pair]
        f += [self.times.interval] * len(intervals) + [inside * self.times.program] * programs
        return condition_time(f), share

    def peer(self, side: int, other: int, arriving: int) -> float:
        """Return L_peer of a side of a join by equation (6), for what an arriving event makes there."""
        if not self.query.can_be_last(arriving, side | other):
            return 0.0
        condition, share = self.pair_time(side, other)
        if other & (other - 1) == 0:  # the events of a leaf lie in order: only those in place are looked at
            share *= self.order_selectivity(side, other, arriving)
        return self.times.search + peer_time(condition, (self.stored(other) * share,))

    def _share(self, side: int, other: int) -> float:
        """Return what a node costs per second, given its sibling (0: it is the root): its part of all R(T) Z(T)."""
        changing = self.times.arrive if side & (side - 1) == 0 else self.times.create if other else self.times.match
        if other and self.is_kept(side, other):
            changing += self.times.remove
        total = sum(
            self.rates[v] * arrival_time([(self.peer(side, other, v) if other else 0.0, changing, self.new(side, v))])
            for v in members(side)
            if self.query.can_be_last(v, side)  # others make nothing new
        )
        return min(MOST_COST, total)

    def automaton(self, variables: int | None = None) -> float:
        """Return what the automaton costs per second: it stores a run for every set of variables bound so far.

        `variables`: only what the steps cost that bind these.
        """
        chosen = self.query.all if variables is None else variables
        total, level, seen = 0.0, {0}, 0
        while level and seen < MOST_PREFIXES:
            following: set[int] = set()
            for bound in level:
                for v in members(chosen & ~bound):
                    if not self.query.can_be_last(v, bound) or self._needs_more(v, bound):
                        continue
                    seen += 1
                    following.add(bound | 1 << v)
                    total += self.rates[v] * self._step(bound, v)
            level = following
        return total

    def _needs_more(self, variable: int, bound: int) -> bool:
        """Whether something must come before a variable and is not there."""
        return any(self.query.after[u] >> variable & 1 for u in members(self.query.all & ~bound))

    def _step(self, bound: int, variable: int) -> float:
        """Return the time that an event takes to extend the runs of a set by a variable."""
        asking = 0.0
        if bound:
            condition, share = self.pair_time(1 << variable, bound)
            asking = self.times.search + peer_time(condition, (self.stored(bound) * share,))
        is_whole = bound | 1 << variable == self.query.all
        changing = self.times.match if is_whole else self.times.create + self.times.remove
        leaf = (asking, self.times.arrive if not bound else 0.0, self.new(1 << variable, variable))
        return arrival_time([leaf, (0.0, changing, self.new(bound | 1 << variable, variable))])
