"""Choosing among matches that become known late, or by the rarer policies: one by one, in plain Python.

A match goes through five stages, and waits in each until nothing that is still to come can change what the stage
decides. W is WITHIN. A match is known no earlier than its last event and no later than W after its first event.

1. readings: of two readings of one assignment, that known first counts. An assignment is remembered until W after its
   first event.
2. groups: LAST, CUMULATIVE and SELECT per variable decide when all matches with the same last event are known: W after
   the event.
3. consumption goes in the order in which matches are known. Without groups, a match's turn comes when it is known. With
   groups, those that are known before it have a last event before that, so they have left stage 2 by W later.
4. LIMIT goes in the same order; under CUMULATIVE with consumption, which may change when a match is known, W later
   again.
5. DISTINCT: the same match of another window is known by W after its first event too; with groups, has left stage 4 by
   3 W after its last.

If no match waits (Rules.waits), each stage decides at once, since what belongs together comes together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from penstock.engine.found import Array, Element, EventStore, Found, Progress, as_state, from_state, of_rows
from penstock.engine.rules import Rules
from penstock.pattern.ast import Policy
from penstock.plan.tables import Ints

Group: TypeAlias = tuple[int, int, int]  # partition, window, last event


class Item(NamedTuple):
    """A match in one window. `start` and `end` are times of its first and last event, or positions."""

    part: int
    window: int
    when: tuple[float, float]
    bound: tuple[Element, ...]
    start: int
    end: int

    @property
    def events(self) -> tuple[int, ...]:
        """Its events, oldest first."""
        return tuple(event for event, _, _ in self.bound)

    @property
    def group(self) -> Group:
        """What it has in common with the matches that it competes with."""
        return self.part, self.window, self.bound[-1][0]

    @property
    def assignment(self) -> tuple[tuple[int, int], ...]:
        """What is bound to what."""
        return tuple((event, variable) for event, variable, _ in self.bound)

    def of(self, variable: int) -> tuple[int, ...]:
        """Return the events that are bound to a variable."""
        return tuple(event for event, bound, _ in self.bound if bound == variable)


class Held:
    """The stages, and what each remembers."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.seen: dict[tuple[int, tuple[tuple[int, int], ...]], Item] = {}  # by window and assignment
        self.grouped: list[Item] = []  # in stage 2
        self.turning: list[Item] = []  # in stage 3; for CUMULATIVE, all matches of decided groups
        self.counting: list[Item] = []  # in stage 4
        self.comparing: list[Item] = []  # in stage 5
        # By window and event: the partition and the end of a match that holds it; of one that has consumed it.
        self.used: dict[tuple[int, int], tuple[int, int]] = {}
        self.gone: dict[tuple[int, int], tuple[int, int]] = {}
        self.counts: dict[tuple[int, int], int] = {}  # by partition and window
        self.closed: dict[tuple[int, int], int] = {}  # when a window was first seen to be closed

    # --- when -------------------------------------------------------------------------------------------------

    def _is_past(self, now: Progress | None, part: int, time: float) -> bool:
        """Whether everything that is known at a time (a position) has been given; None: the stream is over."""
        if now is None or not self.rules.waits:
            return True
        return bool((now.pos if self.rules.is_by_count else now.ts)[part] > time)

    def _is_given(self, now: Progress | None, item: Item) -> bool:
        """Whether everything that is known when a match is, or before, has been given."""
        if now is None or not self.rules.waits:
            return True
        here = (0.0 if self.rules.is_by_count else float(now.ts[item.part]), float(now.pos[item.part]))
        return item.when <= here

    def _moment(self, item: Item) -> float:
        return item.when[1] if self.rules.is_by_count else item.when[0]

    def _has_turn(self, now: Progress | None, item: Item, lag: int) -> bool:
        if not self.rules.groups:
            return self._is_given(now, item)
        return self._is_past(now, item.part, self._moment(item) + lag * self.rules.within)

    def in_order(self, items: Iterable[Item]) -> list[Item]:
        """Sort matches as they become known; at the same moment, by their events, then by their variables."""
        ranks = self.rules.ranks

        def key(item: Item) -> tuple[Any, ...]:
            return item.when, item.events, tuple(sorted((int(ranks[v]), e) for e, v, _ in item.bound))

        return sorted(items, key=key)

    # --- the stages -------------------------------------------------------------------------------------------

    def add(self, items: Iterable[Item], now: Progress | None) -> list[Item]:
        """Take matches that were found; return those that are decided. `now` is None when the stream is over."""
        items = [item for item in self.in_order(items) if self._is_new(item)]
        items = self._selected(items, now)
        items = self._left(items, now)
        items = self._limited(items, now)
        items = self._of_earliest_window(items, now)
        self._forget(now)
        return items

    def _is_new(self, item: Item) -> bool:
        if not self.rules.may_repeat:
            return True
        return self.seen.setdefault((item.window, item.assignment), item) is item

    def _selected(self, items: list[Item], now: Progress | None) -> list[Item]:
        if not self.rules.groups:
            return items
        self.grouped += items
        decided, self.grouped = _parted(
            self.grouped, lambda item: self._is_past(now, item.part, item.end + self.rules.within)
        )
        if self.rules.policy is Policy.CUMULATIVE and self.rules.consumes:
            return decided  # it gathers from what consumption leaves
        groups: dict[Any, list[Item]] = defaultdict(list)
        others = [v for v in self.rules.variables if v not in self.rules.listed]
        for item in decided:
            key = tuple(item.of(v) for v in others) if self.rules.listed else ()
            groups[item.group, key].append(item)
        return [self._chosen(group) for group in groups.values()]

    def _chosen(self, group: list[Item]) -> Item:
        if self.rules.policy is Policy.CUMULATIVE:
            return _together(group, self.rules.gathered)
        if self.rules.policy is Policy.LAST:
            return max(group, key=self._lateness)
        best = max(map(self._preference, group))
        return _together([item for item in group if self._preference(item) == best], self.rules.gathered)

    def _lateness(self, item: Item) -> tuple[Any, ...]:
        return item.events[::-1], tuple(item.of(v)[::-1] for v in reversed(self.rules.variables))

    def _preference(self, item: Item) -> tuple[Any, ...]:
        found = []
        for v in reversed(self.rules.variables):
            if self.rules.listed.get(v) is Policy.LAST:
                found.append(item.of(v)[::-1])
            elif self.rules.listed.get(v) is Policy.FIRST:
                found.append(tuple(-event for event in item.of(v)))
        return tuple(found)

    def _left(self, items: list[Item], now: Progress | None) -> list[Item]:
        if not self.rules.consumes:
            return items
        self.turning += items
        if self.rules.policy is Policy.CUMULATIVE:
            return self._left_of_groups(now)
        ready, self.turning = _parted(self.turning, lambda item: self._has_turn(now, item, 1))
        return [self._emit(item) for item in self.in_order(ready) if self._is_left(item)]

    def _left_of_groups(self, now: Progress | None) -> list[Item]:
        groups: dict[Group, list[Item]] = defaultdict(list)
        for item in self.turning:
            groups[item.group].append(item)
        newest = {group: max(group_items, key=lambda item: item.when) for group, group_items in groups.items()}
        ready = [group for group in groups if self._has_turn(now, newest[group], 1)]
        self.turning = [item for item in self.turning if item.group not in set(ready)]
        emitted = []
        for group in sorted(ready, key=lambda group: (newest[group].when, group[2])):
            left = [item for item in groups[group] if self._is_left(item)]
            if left:
                emitted.append(self._emit(_together(left, self.rules.gathered)))
        return emitted

    def _is_left(self, item: Item) -> bool:
        for event, variable, _ in item.bound:
            key = item.window, event
            if key in self.gone or (key in self.used and self.rules.consuming[variable]):
                return False
        return True

    def _emit(self, item: Item) -> Item:
        for event, variable, _ in item.bound:
            self.used[item.window, event] = item.part, item.end
            if self.rules.consuming[variable]:
                self.gone[item.window, event] = item.part, item.end
        return item

    def _limited(self, items: list[Item], now: Progress | None) -> list[Item]:
        if self.rules.limit is None:
            return items
        self.counting += items
        lag = 2 if self.rules.policy is Policy.CUMULATIVE and self.rules.consumes else 1
        ready, self.counting = _parted(self.counting, lambda item: self._has_turn(now, item, lag))
        kept = []
        for item in self.in_order(ready):
            place = item.part, item.window
            if self.counts.get(place, 0) < self.rules.limit:
                self.counts[place] = self.counts.get(place, 0) + 1
                kept.append(item)
        return kept

    def _of_earliest_window(self, items: list[Item], now: Progress | None) -> list[Item]:
        if not self.rules.is_distinct:
            return items
        self.comparing += items
        ready, self.comparing = _parted(self.comparing, lambda item: self._is_compared(now, item))
        earliest: dict[tuple[tuple[int, int], ...], Item] = {}
        for item in sorted(ready, key=lambda item: item.window):
            earliest.setdefault(item.assignment, item)
        return list(earliest.values())

    def _is_compared(self, now: Progress | None, item: Item) -> bool:
        lasts = item.end + 3 * self.rules.within if self.rules.groups else item.start + self.rules.within
        return self._is_past(now, item.part, lasts)

    # --- forgetting -------------------------------------------------------------------------------------------

    def _forget(self, now: Progress | None) -> None:
        if now is None:
            self.seen, self.used, self.gone, self.counts, self.closed = {}, {}, {}, {}, {}
            return
        clock = now.pos if self.rules.is_by_count else now.ts
        within, lag = self.rules.within, 3 if self.rules.groups else 1
        self.seen = {key: item for key, item in self.seen.items() if clock[item.part] <= item.start + within}
        for events in (self.used, self.gone):
            for key in [key for key, (part, end) in events.items() if clock[part] > end + lag * within]:
                del events[key]
        for part, window in [place for place in self.counts if place[1] < now.window[place[0]]]:
            since = self.closed.setdefault((part, window), int(clock[part]))
            if not self.rules.waits or clock[part] > since + 4 * within:  # what was found in it has left all stages
                del self.counts[part, window], self.closed[part, window]

    # --- snapshots --------------------------------------------------------------------------------------------

    def state(self, depth: int) -> dict[str, Array]:
        """Return all that is remembered, as arrays."""
        found: dict[str, Array] = {}
        for name in _STAGES:
            items = getattr(self, name)
            found |= as_state(found_of(items, depth), name)
            found[f"{name}.spans"] = np.array([(item.start, item.end) for item in items], np.int64).reshape(-1, 2)
        found |= as_state(found_of(list(self.seen.values()), depth), "seen")
        found["seen.spans"] = np.array([(i.start, i.end) for i in self.seen.values()], np.int64).reshape(-1, 2)
        found["used"] = np.array([(*key, *value) for key, value in self.used.items()], np.int64).reshape(-1, 4)
        found["gone"] = np.array([(*key, *value) for key, value in self.gone.items()], np.int64).reshape(-1, 4)
        counts = [(*key, count, self.closed.get(key, _OPEN)) for key, count in self.counts.items()]
        found["counts"] = np.array(counts, np.int64).reshape(-1, 4)
        return found

    def restore(self, state: Mapping[str, Array]) -> None:
        """Remember what `state` returned."""
        for name in _STAGES:
            setattr(self, name, _items(state, name))
        self.seen = {(item.window, item.assignment): item for item in _items(state, "seen")}
        self.used = {(w, event): (part, end) for w, event, part, end in state["used"].tolist()}
        self.gone = {(w, event): (part, end) for w, event, part, end in state["gone"].tolist()}
        counts = state["counts"].tolist()
        self.counts = {(part, window): count for part, window, count, _ in counts}
        self.closed = {(part, window): since for part, window, _, since in counts if since != _OPEN}

    def items(self) -> list[Item]:
        """Return the matches that wait."""
        return [*self.grouped, *self.turning, *self.counting, *self.comparing]


_STAGES = ("grouped", "turning", "counting", "comparing")
_OPEN = -(2**62)  # of a window that is not closed


def _items(state: Mapping[str, Array], name: str) -> list[Item]:
    spans = state[f"{name}.spans"]
    return _as_items(from_state(state, name), spans[:, 0].tolist(), spans[:, 1].tolist())


def _parted(items: list[Item], condition: Callable[[Item], bool]) -> tuple[list[Item], list[Item]]:
    """Return those that fulfil a condition, and the others."""
    asked = [(item, condition(item)) for item in items]
    return [item for item, is_so in asked if is_so], [item for item, is_so in asked if not is_so]


def _together(group: list[Item], gathered: frozenset[int]) -> Item:
    """Bind to each gathered variable all events that it has in the group; its rounds count them."""
    if not gathered:
        return group[0]
    kept = [element for element in group[0].bound if element[1] not in gathered]
    for v in sorted(gathered):
        events = sorted({event for item in group for event in item.of(v)})
        kept += [(event, v, (number,)) for number, event in enumerate(events, start=1)]
    first = min(group, key=lambda item: item.start)
    return group[0]._replace(bound=tuple(sorted(kept)), when=max(item.when for item in group), start=first.start)


def items_of(found: Found, store: EventStore, rules: Rules) -> list[Item]:
    """Return matches as items, one for each window."""
    if not len(found):
        return []
    clock = store.pos if rules.is_by_count else store.ts
    return _as_items(found, clock(found.first).tolist(), clock(found.last).tolist())


def _as_items(found: Found, starts: list[int], ends: list[int]) -> list[Item]:
    rounds = list(map(tuple, found.rounds.T.tolist())) if found.rounds.shape[0] else [()] * len(found.events)
    elements = list(zip(found.events.tolist(), found.variables.tolist(), rounds, strict=True))
    whens = list(zip(found.known_ts.tolist(), found.known_pos.tolist(), strict=True))
    parts, offsets = found.part.tolist(), found.offsets.tolist()
    rows, windows = found.per_window()
    return [
        Item(parts[k], window, whens[k], tuple(elements[offsets[k] : offsets[k + 1]]), starts[k], ends[k])
        for k, window in zip(rows.tolist(), windows.tolist(), strict=True)
    ]


def found_of(items: list[Item], depth: int) -> Found:
    """Return items as matches."""
    windows: Ints = np.array([item.window for item in items], np.int64)
    return Found(
        *of_rows((item.bound for item in items), depth),
        windows,
        windows,
        np.array([item.part for item in items], np.int64),
        np.array([item.when[0] for item in items], np.float64),
        np.array([item.when[1] for item in items], np.float64),
    )
