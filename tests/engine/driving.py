"""The kernel's test driver with the engine's own emission behind it instead of the reference's policies."""

from __future__ import annotations

import math
from collections.abc import Iterable
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.emission import Emission
from penstock.engine.found import Found, Progress, joined, of_memory
from penstock.engine.matches import Output
from penstock.pattern import ast
from penstock.pattern.variables import variables
from penstock.plan import layout
from penstock.plan.tables import Floats, Ints
from penstock.reference import Event
from penstock.reference.conditions import World
from penstock.reference.events import Stream
from tests.generators import FUNCTIONS, REMOTES, Case
from tests.kernel.driver import Driver

KINDS = {"n": "int", "x": "float", "k": "string", "flag": "bool", "v": "float"}


class Store:
    """The events of a driver, as `penstock.engine.found.EventStore` wants them."""

    def __init__(self, driver: EmittingDriver) -> None:
        self.driver = driver
        self.previous: list[Event | None] = []
        self.rows: list[Event] = []

    def row(self, row: int, events: Ints) -> Ints:
        values: Ints = self.driver.memory.events[row, events]
        return values

    def ts(self, events: Ints) -> Ints:
        return self.row(layout.EVENT_TS, events)

    def pos(self, events: Ints) -> Ints:
        return self.row(layout.EVENT_POS, events)

    def seq(self, events: Ints) -> Ints:
        return self.row(layout.EVENT_SEQ, events)

    def column(self, name: str, is_previous: bool, events: Ints) -> Floats:
        read = self.previous if is_previous else self.rows
        rows = [read[event] for event in events.tolist()]
        return np.array([math.nan if row is None else self.driver.number(row.value(name)) for row in rows])

    def text(self, ids: Ints) -> list[str]:
        texts = list(self.driver.texts)
        return [texts[k] for k in ids.tolist()]

    def text_id(self, text: str) -> int:
        return self.driver.texts.setdefault(text, len(self.driver.texts))

    def ranks(self) -> Ints:
        order = sorted(self.driver.texts)
        return np.array([order.index(text) for text in self.driver.texts], np.int64)


class EmittingDriver(Driver):
    """One query; `emitted` is what came out, call by call."""

    def __init__(self, query: ast.Query, *, snapshots: bool = False) -> None:
        super().__init__(query, World(Stream([]), variables(query.pattern), FUNCTIONS, REMOTES))
        self.store = Store(self)
        self.emission = Emission(self.plan, self.store)
        self.emitted: list[Found] = []
        self.snapshots = snapshots

    def add(self, event: Event) -> None:
        before = int(self.memory.sizes[layout.SIZE_EVENTS])
        key = tuple(event.value(name.text) for name in self.query.partition)
        earlier = next((e for e in reversed(self.streams.get(key, [])) if e.type == event.type), None)
        super().add(event)
        if self.memory.sizes[layout.SIZE_EVENTS] > before:
            self.store.rows.append(event)
            self.store.previous.append(earlier)

    def progress(self) -> Progress:
        count = int(self.memory.sizes[layout.SIZE_EVENTS])
        table = np.zeros((3, len(self.streams)), np.int64)
        for k in range(count):
            part = self.memory.events[layout.EVENT_PART, k]
            table[:, part] = self.memory.events[[layout.EVENT_TS, layout.EVENT_POS, layout.EVENT_LOW], k]
        return Progress(*table)

    def drain(self) -> None:
        found = of_memory(self.plan.tables, self.memory)
        self.memory.sizes[layout.SIZE_FOUND] = 0
        self.emitted.append(self.emission.add(found, self.progress()))
        if self.snapshots:
            state = self.emission.state()
            assert all(isinstance(array, np.ndarray) for array in state.values())
            self.emission = Emission.from_state(self.plan, self.store, state)

    def finish(self) -> None:
        super().finish()
        self.emitted.append(self.emission.flush())

    def everything(self) -> Found:
        return joined(self.emitted)

    def keys(self) -> list[tuple[Any, ...]]:
        return list(self.streams)

    def output(self) -> Output:
        return Output(self.plan, self.store, self.key_columns, self.window_names, KINDS.get)

    def key_columns(self, parts: Ints) -> list[pa.Array]:
        keys = [self.keys()[part] for part in parts.tolist()]
        return [pa.array([key[k] for key in keys]) for k in range(len(self.query.partition))]

    def window_names(self, parts: Ints, numbers: Ints) -> Ints:
        assert self.query.window is not None
        pairs = zip(parts.tolist(), numbers.tolist(), strict=True)
        return np.array([self.window_name(self.query.window, part, number) for part, number in pairs], np.int64)


def driven(case: Case, seed: int, *, pieces: int = 1, snapshots: bool = False) -> EmittingDriver:
    """Run a case, in so many pieces cut at random."""
    driver = EmittingDriver(case.query, snapshots=snapshots)
    events = sorted(case.events, key=lambda event: (event.ts, event.seq))
    for piece in cut(events, pieces, Random(seed)):
        driver.process(piece)
    driver.finish()
    return driver


def cut(events: list[Event], pieces: int, random: Random) -> Iterable[list[Event]]:
    places = sorted(random.randint(0, len(events)) for _ in range(pieces - 1))
    return [events[a:b] for a, b in zip([0, *places], [*places, len(events)], strict=True)]
