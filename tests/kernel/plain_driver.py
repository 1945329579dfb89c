"""The driver of the plain kernel, for tests."""

from __future__ import annotations

import numpy as np

from penstock.kernel.blocks import evaluate
from penstock.kernel.plain import process, sweep_all
from penstock.kernel.plain_memory import new_plain_memory, with_plain_room
from penstock.pattern import ast
from penstock.plan import layout
from penstock.reference import Event
from penstock.reference.assignments import Known
from penstock.reference.conditions import World
from penstock.reference.events import Binding, Bound
from tests.kernel.driver import FIRST_ROOM, Driver


class PlainDriver(Driver):
    """Like Driver, with the plain kernel."""

    def __init__(self, query: ast.Query, world: World) -> None:
        super().__init__(query, world)
        assert self.plan.plain is not None
        self.memory = new_plain_memory(
            self.plan.plain,
            len(self.plan.numbered.variables),
            len(self.plan.terms.columns),
            len(self.plan.terms.references),
            self.memory.constants,
            FIRST_ROOM,
        )

    def process(self, events: list[Event]) -> None:
        start = int(self.memory.sizes[layout.SIZE_EVENTS])
        for event in events:
            self.add(event)
        stop = int(self.memory.sizes[layout.SIZE_EVENTS])
        ranks = {text: rank for rank, text in enumerate(sorted(self.texts))}
        self.memory = self.memory._replace(
            ranks=np.array([ranks[text] for text in self.texts], np.int64),
            exact=np.full(len(self.plan.plain.conjuncts), False)
            | np.isin(self.plan.plain.conjuncts[:, layout.CONJ_OP], [8])
            | (not self.texts),
            newest=np.concatenate(
                [self.memory.newest, np.zeros((2, max(0, len(self.streams) - self.memory.newest.shape[1])), np.int64)],
                axis=1,
            ),
        )
        self.ask_own(start, stop)
        while True:
            status, start = process(self.plan.plain, self.memory, start, stop)
            if status == layout.DONE:
                break
            self.memory = with_plain_room(self.memory, status)
            sweep_all(self.plan.plain, self.memory, start - 1)
        self.drain()

    def ask_own(self, start: int, stop: int) -> None:
        m, terms = self.memory, self.plan.terms
        for variable, conditions in enumerate(self.plan.own):
            for c in conditions:
                refs = np.array([terms.references[r].column for r in terms.conditions[c].references])
                numbering = {r: k for k, r in enumerate(terms.conditions[c].references)}
                program = np.array(
                    [(code, numbering.get(a, a) if code == 1 else a) for code, a in terms.conditions[c].program],
                    np.int64,
                )
                truth = evaluate(
                    program,
                    np.ascontiguousarray(m.columns[refs, start:stop]).reshape(len(refs), stop - start),
                    m.constants,
                    m.ranks,
                )
                m.fits[variable, start:stop] &= truth == 1.0

    def finish(self) -> None:
        self.drain()

    def drain(self) -> None:
        m = self.memory
        names = [variable.name for variable in self.plan.numbered.variables]
        for k in range(int(m.sizes[layout.HAS_FOUND])):
            node, bound = (
                int(m.found[layout.MATCH_NODE, k]),
                [Bound(names[int(m.found[layout.MATCH_VARIABLE, k])], (), int(m.found[layout.MATCH_EVENT, k]))],
            )
            while node >= 0:
                event, variable = int(m.nodes[layout.LINK_EVENT, node]), int(m.nodes[layout.LINK_VARIABLE, node])
                bound.append(Bound(names[variable], (), event))
                node = int(m.nodes[layout.LINK_PARENT, node])
            at = bound[0].at
            ts = 0.0 if isinstance(self.query.within, ast.CountSpan) else float(m.events[layout.EVENT_TS, at])
            known = Known(Binding(tuple(bound)), (ts, float(m.events[layout.EVENT_POS, at])))
            part = int(m.events[layout.EVENT_PART, at])
            for window in range(int(m.found[layout.MATCH_LOW, k]), int(m.found[layout.MATCH_HIGH, k]) + 1):
                self.found[part, window].append(known)
        m.sizes[layout.HAS_FOUND] = 0
