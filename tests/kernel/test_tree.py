"""Tree plans find what the reference matcher and the automaton find, whatever the tree."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from penstock.kernel.tree import process, sweep_all, with_more
from penstock.kernel.tree_memory import new_tree_memory, oldest, renumber
from penstock.pattern import ast
from penstock.pattern.parser import parse
from penstock.pattern.variables import variables
from penstock.plan import joins, layout
from penstock.plan.joins import join_query, why_not
from penstock.plan.terms import NotYetError
from penstock.plan.tree import Tree, join, leaf, splits, tree_tables
from penstock.reference import Event, Match, find
from penstock.reference.assignments import Known
from penstock.reference.conditions import World
from penstock.reference.events import Binding, Bound, Stream
from penstock.testing import stream
from tests.generators import FUNCTIONS, REMOTES, Case, Profile, seeded
from tests.kernel.driver import FIRST_ROOM, Driver

POLICIES = (ast.Policy.EACH, ast.Policy.LAST, ast.Policy.CUMULATIVE)
PROFILE = Profile(negation=0, repetition=0, policies=POLICIES, types=3)
CASES, TREES, SHARES = 3_000, 4, 4


class TreeDriver(Driver):
    """The test engine with a tree in place of the automaton; it shares the event store."""

    def __init__(self, query: ast.Query, world: World, seed: int) -> None:
        super().__init__(query, world)
        asked = join_query(self.plan)
        self.tree: Tree = random_tree(asked.all, Random(seed))
        self.tables = tree_tables(self.plan, asked, self.tree)
        m = self.memory
        self.tuples = new_tree_memory(self.tables, len(asked.names), m.columns.shape[0], m.constants, FIRST_ROOM)

    def process(self, events: list[Event]) -> None:
        start = int(self.memory.sizes[layout.SIZE_EVENTS])
        for event in events:
            self.add(event)
        m, ranks = self.memory, {text: rank for rank, text in enumerate(sorted(self.texts))}
        self.tuples = self.tuples._replace(
            events=m.events, fits=m.fits, columns=m.columns, ranks=np.array([ranks[t] for t in self.texts], np.int64)
        )
        status = -1
        while status != joins.DONE:
            status, start = process(self.tables, self.tuples, start, int(m.sizes[layout.SIZE_EVENTS]))
            if status != joins.DONE:
                self.tuples = with_more(self.tables, self.tuples, status)
        self.drain()

    def drain(self) -> None:
        m, names = self.tuples, [variable.name for variable in self.plan.numbered.variables]
        for k in range(int(m.work[joins.WORK_FOUND])):
            *bound, low, high = (int(x) for x in m.found[:, k])
            assert low <= high
            last = max(bound)
            ts = 0.0 if self.tables.options[joins.TREE_BY_COUNT] else float(m.events[layout.EVENT_TS, last])
            binding = Binding(tuple(Bound(name, (), at) for name, at in zip(names, bound, strict=True)))
            for window in range(low, high + 1):
                known = Known(binding, (ts, float(m.events[layout.EVENT_POS, last])))
                self.found[int(m.events[layout.EVENT_PART, last]), window].append(known)
        m.work[joins.WORK_FOUND] = 0

    def finish(self) -> None:
        """A tree has nothing that waits for the end."""


def random_tree(variables: int, random: Random) -> Tree:
    """Return some tree over a set of variables, either side first."""
    if variables & (variables - 1) == 0:
        return Tree(variables)
    sides = [random_tree(side, random) for side in random.choice(list(splits(variables)))]
    random.shuffle(sides)
    return join(*sides)


def world_of(query: ast.Query) -> World:
    return World(Stream([]), variables(query.pattern), FUNCTIONS, REMOTES)


def by_tree(case: Case, seed: int) -> frozenset[Match]:
    """Run a random tree on a case, in two pieces."""
    driver = TreeDriver(case.query, world_of(case.query), seed)
    events = sorted(case.events, key=lambda event: (event.ts, event.seq))
    cut = Random(seed).randint(0, len(events))
    driver.process(events[:cut])
    driver.process(events[cut:])
    return driver.matches()


def by_automaton(case: Case) -> frozenset[Match]:
    driver = Driver(case.query, world_of(case.query))
    driver.process(sorted(case.events, key=lambda event: (event.ts, event.seq)))
    driver.finish()
    return driver.matches()


def is_for_trees(query: ast.Query) -> bool:
    try:
        return why_not(Driver(query, world_of(query)).plan) is None
    except NotYetError:
        return False


@pytest.mark.parametrize(
    ("query", "events"),
    [
        ("SEQ(A a, B b, C c) WITHIN 3 s", "A0 A1 B2@1 B3@2 C4@3 C5@4 A6@5 B7@5 C8@5"),
        ("AND(A a, A b, A c) WITHIN 4 s", "A0 A1 A2 A3 A9"),  # no event twice
        ("SEQ(A|B x, * y, AND(B b, * z)) WITHIN 9 s", "A0 B1 A2 B3 A4 B5"),
        ("SEQ(A a, AND(B b, SEQ(C c, D d)), E e) WITHIN 9 s", "A0 C1 B2 D3 B4 E5 A6 B7 C8 D9 E10"),
        # A count of events, of the stream and of a partition.
        ("SEQ(A a, B b, A c) WITHIN 4 EVENTS", "A0 B1 X2 A3 B4 A5 X6 X7 A8"),
        ("SEQ(A a, B b) WITHIN 3 EVENTS PARTITION BY k", "A0(k=1) A1(k=2) B2(k=1) B3(k=2) A4(k=3) B5(k=1) B6 B7(k=2)"),
        # Windows that overlap, leave gaps, and are opened by events.
        ("SEQ(A a, B b, C c) WITHIN 9 s WINDOW 4 s EVERY 1 s", "A0 B1 C2 A3 B4 C5 C6"),
        ("AND(A a, B b) WITHIN 9 s WINDOW 2 s EVERY 5 s", "A0 B1 A4 B5 A6 B11"),
        ("SEQ(A a, B b) WITHIN 9 EVENTS WINDOW 3 EVENTS ON A", "A0 A1 B2 A3 B4 B5 B6"),
        # Texts: equal, in order, never in order with numbers, large numbers among them.
        (
            "SEQ(A a, B b) WHERE a.k < b.k WITHIN 1 h",
            "A0(k=m) A1(k=5) A2(k=a) B3(k=n) B4(k=b) B5(k=7) B6(k=9e17) B7(k=1)",
        ),
        ("SEQ(A a, B b) WHERE a.k >= b.k WITHIN 1 h", "A0(k=m) A1(k=5) A2(k=9e17) B3(k=n) B4(k=b) B5(k=5) B6(k=m)"),
        ("SEQ(A a, B b, C c) WHERE SAME[k] WITHIN 1 h", "A0(k=m) A1(k=0) B2(k=m) B3(k=-0.0) C4(k=m) C5(k=0) C6"),
        ("SEQ(A a, B b) WHERE a.k + 0 < b.k WITHIN 1 h", "A0(k=m) A1(k=5) B2(k=z) B3(k=6)"),
        # Missing values, infinite ones, and what is the same up to rounding.
        ("AND(A a, B b) WHERE a.v <> b.v WITHIN 1 h", "A0(v=1) A1 B2(v=1) B3(v=2) B4"),
        ("AND(A a, B b) WHERE a.v < b.v WITHIN 1 h", "A0(v=-inf) A1(v=inf) B2(v=inf) B3(v=-inf) A4(v=1) B5(v=1)"),
        (
            "AND(A a, B b, C c) WHERE a.v + b.v = c.v WITHIN 1 h",
            "A0(v=0.1) B1(v=0.2) C2(v=0.3) C3(v=0.30000000000000004)",
        ),
        (
            "AND(A a, B b, C c) WHERE a.v + b.v <= c.v WITHIN 1 h",
            "A0(v=0.1) B1(v=0.2) C2(v=0.3) C3(v=inf) A4(v=-inf) B5(v=inf)",
        ),
        ("SEQ(A a, B b) WHERE a.v * -1 = b.v WITHIN 1 h", "A0(v=0) A1(v=2) B2(v=0) B3(v=-2)"),
        (
            "AND(A a, B b, C c) WHERE abs(a.v - b.v) < c.v WITHIN 1 h",
            "A0(v=1) B1(v=1.5) C2(v=0.5) C3(v=0.6) A4 B5(v=0.5)",
        ),
    ],
)
def test_cases_by_hand(query: str, events: str) -> None:
    case = Case(parse(f"PATTERN {query}"), stream(events))
    truth = find(case.query, case.events)
    assert truth
    assert all(by_tree(case, seed) == truth for seed in range(12))


def long_stream(random: Random, count: int) -> list[Event]:
    """Return events of three types with ties in time, two partitions, texts, missing values."""
    ts, events = 0, []
    for seq in range(count):
        ts += random.choice([0, 1, 1, 1, 2]) * 1_000_000
        attributes = {"v": random.choice([random.random(), random.random(), None]), "k": random.choice([1, 2, "x"])}
        events.append(Event(random.choice("ABC"), ts, seq, {k: v for k, v in attributes.items() if v is not None}))
    return events


@pytest.mark.parametrize(
    "query",
    [
        "SEQ(A a, B b, C c) WHERE a.v < b.v AND a.v + b.v < c.v WITHIN 20 s",
        "SEQ(A a, B b, C c) WHERE SAME[k] WITHIN 30 s",
        "SEQ(A a, * b, AND(B c, C d)) WHERE a.v < c.v AND a.k = d.k WITHIN 8 EVENTS PARTITION BY k",
        "AND(A a, B b, SEQ(C c, A d)) WHERE abs(a.v - b.v) < 0.2 AND b.k <> d.k WITHIN 10 s WINDOW 6 s EVERY 2 s",
    ],
)
def test_long_streams_that_expire(query: str) -> None:
    case = Case(parse(f"PATTERN {query}"), long_stream(Random(3), 700))
    truth = by_automaton(case)
    assert len(truth) > 100
    assert all(by_tree(case, seed) == truth for seed in range(6))
    assert truth == find(case.query, case.events)


def test_trees_are_lazy() -> None:
    """Of a tree that joins the last variable first, events before it cost nothing but their place."""
    query = parse("PATTERN SEQ(A a, B b, C c) WHERE a.v < b.v WITHIN 1 h")
    driver = TreeDriver(query, world_of(query), 0)
    asked = join_query(driver.plan)
    driver.tables = tree_tables(driver.plan, asked, join(leaf(0), join(leaf(1), leaf(2))))
    driver.tuples = new_tree_memory(driver.tables, 3, 1, np.zeros(0), FIRST_ROOM)
    driver.process(stream(" ".join(f"A{2 * n}(v={n}) B{2 * n + 1}(v={n})" for n in range(50))))
    assert driver.tuples.work.tolist()[: joins.WORK_FULL] == [0, 0, 100, 0]
    driver.process(stream("C200"))
    pairs = 50 * 49 // 2  # a before b and less; b is compared with every earlier a
    assert driver.tuples.work.tolist()[: joins.WORK_FULL] == [0, 50 + 50 * 51 // 2, 100 + 1 + 50, pairs]


def test_the_event_store_may_drop_its_beginning() -> None:
    query = parse("PATTERN SEQ(A a, B b, C c) WHERE SAME[k] WITHIN 20 s")
    events = long_stream(Random(4), 300)
    driver = TreeDriver(query, world_of(query), 1)
    found: list[tuple[int, ...]] = []
    base = 0
    for at in range(0, 300, 50):
        driver.process(events[at : at + 50])  # the driver keeps its matches by number; here they are counted
        now = int(driver.memory.sizes[layout.SIZE_EVENTS]) - 1
        times = driver.memory.events[layout.EVENT_TS, : now + 1]
        sweep_all(driver.tables, driver.tuples, int(np.searchsorted(times, times[now] - 20_000_000)))
        dropped = oldest(driver.tables, driver.tuples, now)
        found += [tuple(b.at + base for b in k.binding.bound) for known in driver.found.values() for k in known]
        driver.found.clear()
        base += dropped
        drop(driver, dropped)
    assert base > 200
    whole = TreeDriver(query, world_of(query), 1)
    whole.process(events)
    assert sorted(found) == sorted(
        tuple(b.at for b in k.binding.bound) for known in whole.found.values() for k in known
    )


def drop(driver: TreeDriver, count: int) -> None:
    """Drop the oldest events of the store."""
    m = driver.memory
    for table in (m.events, m.fits, m.columns):
        table[:, : table.shape[1] - count] = table[:, count:].copy()
    m.sizes[layout.SIZE_EVENTS] -= count
    renumber(driver.tuples, count)


@pytest.mark.parametrize("share", range(SHARES))
def test_any_tree_finds_what_the_reference_finds(share: int) -> None:
    compared = found = 0
    first = share * CASES // SHARES
    for seed, case in enumerate(seeded(CASES // SHARES, first, PROFILE), start=first):
        if not is_for_trees(case.query):
            continue
        truth = find(case.query, case.events, functions=FUNCTIONS, remotes=REMOTES)
        for number in range(TREES):
            assert by_tree(case, TREES * seed + number) == truth, f"seed {seed}, tree {number}: {case!r}"
            compared += 1
        found += bool(truth)
    assert compared > CASES // SHARES
    assert found > CASES // SHARES // 20
