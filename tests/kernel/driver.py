"""A small engine around the kernel, for tests: takes the reference's events, gives the reference's matches.

It fills the event store row by row and applies SELECT and CONSUME to whole matches with the reference's own code, so it
tests what the kernel does: EACH, FIRST, STRICT, consumption at binding, windows, negation, conditions.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np

from penstock.kernel.machine import finish, process
from penstock.kernel.memory import Memory, new_memory, with_larger_segments, with_partitions, with_room
from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.plan import layout
from penstock.plan.planning import plan
from penstock.plan.terms import TEXT_BASE
from penstock.reference import Event, Match
from penstock.reference.assignments import Known
from penstock.reference.conditions import World, opens
from penstock.reference.events import Binding, Bound, Stream
from penstock.reference.policies import consume, distinct, in_order

FIRST_ROOM = 4  # small, so that every array has to grow


class Driver:
    """One query, fed by `process` and ended by `finish`."""

    def __init__(self, query: ast.Query, world: World) -> None:
        self.query, self.world, self.plan = query, world, plan(query)
        self.texts: dict[str, int] = {}
        constants = np.array([self.number(c) for c in self.plan.terms.constants], np.float64)
        self.memory = new_memory(self.plan.tables, len(self.plan.terms.columns), constants, FIRST_ROOM)
        self.streams: dict[tuple[Any, ...], list[Event]] = {}
        self.forbidding: dict[tuple[int, int], int] = {}
        self.openings: dict[int, list[Event]] = defaultdict(list)
        self.closed: dict[int, int] = defaultdict(int)
        self.found: dict[tuple[int, int], list[Known]] = defaultdict(list)

    def number(self, value: Any) -> float:
        if isinstance(value, str):
            return TEXT_BASE + self.texts.setdefault(value, len(self.texts))
        return math.nan if value is None else float(value)

    # --- events in --------------------------------------------------------------------------------------------

    def add(self, event: Event) -> None:
        key = tuple(event.value(name.text) for name in self.query.partition)
        if None in key:
            return
        stream = self.streams.setdefault(key, [])
        stream.append(event)
        at, m = int(self.memory.sizes[layout.SIZE_EVENTS]), self.memory
        if at == m.events.shape[1]:
            m = self.memory = with_room(m, ("events", "fits", "columns"), 2 * at)
        m.sizes[layout.SIZE_EVENTS] += 1
        part, position = list(self.streams).index(key), len(stream) - 1
        low, high = self.windows(event, position, part, stream)
        m.events[: layout.EVENT_BEFORE, at] = (event.ts, position, event.seq, part, low, high)
        for v, info in enumerate(self.plan.numbered.variables):
            m.fits[v, at] = not info.types or event.type in info.types
        earlier = next((e for e in reversed(stream[:-1]) if e.type == event.type), None)
        for c, column in enumerate(self.plan.terms.columns):
            read = earlier if column.is_previous else event
            m.columns[c, at] = math.nan if read is None else self.number(read.value(column.name))
        for n, negation in enumerate(self.plan.numbered.negations):
            m.events[layout.EVENT_BEFORE + n, at] = self.forbidding.get((n, part), -1)
            if m.fits[negation.variable, at]:
                self.forbidding[n, part] = at

    def windows(self, event: Event, position: int, part: int, stream: list[Event]) -> tuple[int, int]:
        window = self.query.window
        if window is None:
            return 0, 0
        if window.on is not None:
            return self.opened(window, event, part, stream)
        every = window.every or window.length
        if isinstance(window.length, ast.TimeSpan) and isinstance(every, ast.TimeSpan):
            return (event.ts - window.length.us) // every.us + 1, event.ts // every.us
        assert isinstance(window.length, ast.CountSpan)
        assert isinstance(every, ast.CountSpan)
        return max(0, (position - window.length.events) // every.events + 1), position // every.events

    def opened(self, window: ast.Window, event: Event, part: int, stream: list[Event]) -> tuple[int, int]:
        assert window.on is not None
        world = World(Stream(stream), self.world.variables, self.world.functions, self.world.remotes)
        if opens(window.on, len(stream) - 1, world):
            self.openings[part].append(event)
        for opening in self.openings[part][self.closed[part] :]:
            if isinstance(window.length, ast.TimeSpan):
                is_over = event.ts - opening.ts >= window.length.us and event is not opening
            else:
                is_over = len(stream) - 1 - stream.index(opening) >= window.length.events
            self.closed[part] += is_over
        return self.closed[part], len(self.openings[part]) - 1

    def process(self, events: list[Event]) -> None:
        start = int(self.memory.sizes[layout.SIZE_EVENTS])
        for event in events:
            self.add(event)
        self.memory = with_partitions(self.memory, len(self.streams))
        ranks = {text: rank for rank, text in enumerate(sorted(self.texts))}
        self.memory = self.memory._replace(ranks=np.array([ranks[text] for text in self.texts], np.int64))
        while True:
            stop = int(self.memory.sizes[layout.SIZE_EVENTS])
            status, start = process(self.plan.tables, self.memory, start, stop)
            if status == layout.DONE:
                break
            self.memory = more_room(self.memory, status)
        self.drain()

    def finish(self) -> None:
        m = self.memory
        runs, waiting = int(m.segments[layout.SEGMENT_SIZE].sum()), int(m.sizes[layout.SIZE_WAITING])
        room = 8 * runs + 2 * waiting + m.found.shape[1] + m.chain.shape[1] + int(m.runs[layout.RUN_LENGTH].max()) + 8
        self.memory = with_room(m, ("found", "known", "waiting", "chain"), room)
        finish(self.plan.tables, self.memory)
        self.drain()

    # --- matches out ------------------------------------------------------------------------------------------

    def drain(self) -> None:
        m = self.memory
        names = [variable.name for variable in self.plan.numbered.variables]
        for k in range(int(m.sizes[layout.SIZE_FOUND])):
            node, bound = int(m.found[layout.FOUND_NODE, k]), []
            while node >= 0:
                event, variable = int(m.nodes[layout.NODE_EVENT, node]), int(m.nodes[layout.NODE_VARIABLE, node])
                bound.append(Bound(names[variable], (), event))
                node = int(m.nodes[layout.NODE_PARENT, node])
            known = Known(Binding(tuple(bound)), (float(m.known[0, k]), float(m.known[1, k])))
            part = int(m.events[layout.EVENT_PART, bound[0].at])
            for window in range(int(m.found[layout.FOUND_LOW, k]), int(m.found[layout.FOUND_HIGH, k]) + 1):
                self.found[part, window].append(known)
        m.sizes[layout.SIZE_FOUND] = 0

    def matches(self) -> frozenset[Match]:
        order = [v.name for v in self.plan.numbered.variables if not v.is_negated]
        kept: dict[Any, Match] = {}
        for (part, window), known in sorted(self.found.items(), key=lambda item: item[0]):
            chosen = distinct(known)
            if self.query.select.policy not in (Policy.FIRST, Policy.STRICT):
                chosen = consume(chosen, self.query.consume, self.query.select, order)
            for each in in_order(chosen)[: self.query.limit]:
                match = self.match(part, window, each.binding, order)
                is_once = self.query.window is not None and self.query.window.distinct
                kept.setdefault((part, match.bindings) if is_once else match, match)
        return frozenset(kept.values())

    def match(self, part: int, window: int, binding: Binding, order: list[str]) -> Match:
        seq = self.memory.events[layout.EVENT_SEQ]
        bindings = ((name, tuple(int(seq[b.at]) for b in binding.of(name))) for name in order)
        name = None if self.query.window is None else self.window_name(self.query.window, part, window)
        return Match(self.query.name, list(self.streams)[part], name, tuple(b for b in bindings if b[1]))

    def window_name(self, window: ast.Window, part: int, number: int) -> int:
        if window.on is not None:
            return self.openings[part][number].seq
        every = window.every or window.length
        return number * (every.us if isinstance(every, ast.TimeSpan) else every.events)


def more_room(memory: Memory, status: int) -> Memory:
    """Make room for what the kernel says it has too little of."""
    tables = {
        layout.MORE_CANDIDATES: ("candidates",),
        layout.MORE_NODES: ("nodes",),
        layout.MORE_FOUND: ("found", "known"),
        layout.MORE_WAITING: ("waiting",),
        layout.LONGER_CHAINS: ("chain",),
    }
    if status == layout.MORE_RUNS:
        return with_larger_segments(memory)
    return with_room(memory, tables[status], 2 * getattr(memory, tables[status][0]).shape[1] + 8)
