"""The ledger, worth, open runs and moves of the plain kernel, against runs played out one by one in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as pk
from penstock.engine.hooks import CHECKS, CREATED, LEDGER_WIDTH, MATCHES, OPEN, SHED, HookError, Hooks
from tests.engine.comparing import again

SECOND = 1_000_000
Row = tuple[str, int, int, int | None]  # type, time, v, key


@dataclass(frozen=True)
class Shape:
    """SEQ(A a, B b, C c) WHERE a.v < b.v, and what else it has."""

    policy: str = "EACH"
    negated: bool = False  # NOT X n before c
    keyed: bool = False
    within: int = 4  # seconds, or events
    by_count: bool = False
    window: bool = False  # 3 s every 1 s

    @property
    def query(self) -> pk.Query:
        pattern = "SEQ(A a, B b, NOT X n, C c)" if self.negated else "SEQ(A a, B b, C c)"
        within = f"{self.within} {'EVENTS' if self.by_count else 's'}"
        key, window = "PARTITION BY k" if self.keyed else "", "WINDOW 3 s EVERY 1 s" if self.window else ""
        clauses = f"WHERE a.v < b.v WITHIN {within} {key} {window} SELECT {self.policy}"
        return pk.parse(f"PATTERN {pattern} {clauses}")


SHAPES = [
    Shape(policy, negated, keyed, by_count=by_count)
    for policy in ("EACH", "FIRST", "STRICT")
    for negated in (False, True)
    for keyed in (False, True)
    for by_count in (False, True)
] + [Shape(within=9, window=True), Shape("FIRST", keyed=True, within=9, window=True)]


@dataclass
class Run:
    state: int
    first_ts: int
    first_pos: int
    last_pos: int
    v: int
    events: tuple[int, ...] = ()
    is_taken: bool = False


@dataclass
class Slow:
    """The same, one run at a time. States are numbered by how many events are bound."""

    shape: Shape
    runs: dict[int | None, list[Run]] = field(default_factory=dict)
    counts: dict[int | None, int] = field(default_factory=dict)
    moves: Any = field(default_factory=lambda: np.zeros((4, 4), np.int64))
    number: int = 0  # of the event
    ended: list[tuple[tuple[int, ...], str, int]] = field(default_factory=list)  # the events of a run, why, by which

    def is_open(self, run: Run, ts: int, pos: int) -> bool:
        within = self.shape.within
        used = pos - run.first_pos + 1 if self.shape.by_count else ts - run.first_ts
        if used > (within if self.shape.by_count else within * SECOND):
            return False
        if self.shape.policy == "STRICT" and run.last_pos != pos - 1:
            return False
        return not self.shape.window or run.first_ts // SECOND >= ts // SECOND - 2

    def end(self, runs: list[Run], why: str = "timed out", by: int = -1) -> None:
        self.ended += [(run.events, why, by) for run in runs if not run.is_taken]

    def add(self, row: Row, hidden: Any, worth: Any, least: float) -> tuple[list[int], list[int]]:
        """Return the line of the ledger, without checks, and what was open."""
        kind, ts, v, key, k = row[0], row[1], row[2], row[3] if self.shape.keyed else 0, self.number
        pos = self.counts.get(key, 0)
        self.counts[key] = pos + 1
        self.number += 1
        self.end([run for run in self.runs.get(key, []) if not self.is_open(run, ts, pos)])
        runs = self.runs[key] = [run for run in self.runs.get(key, []) if self.is_open(run, ts, pos)]
        summary = [1] + [sum(run.state == s for run in runs) for s in (1, 2, 3)]
        if sum(float(w) * n for w, n in zip(worth, summary, strict=True)) <= least:
            return [0, 0, 0, 0, 1], summary
        made, gone, matches = [], [], 0
        for run in runs:
            if hidden[run.state]:
                continue
            if kind == "ABC"[run.state] and (run.state != 1 or run.v < v):
                self.moves[run.state, run.state + 1] += 1
                gone += [] if self.shape.policy == "EACH" else [run]
                made += [replace(run, state=2, last_pos=pos, events=(*run.events, k), is_taken=False)][: 2 - run.state]
                run.is_taken = True
                matches += run.state == 2
            elif kind == "X" and self.shape.negated and run.state == 2:
                gone.append(run)
                self.end([run], "abandoned", k)
        if kind == "A" and not hidden[0]:
            self.moves[0, 1] += 1
            made.append(Run(1, ts, pos, pos, v, (k,)))
        self.runs[key] = [run for run in runs if all(run is not each for each in gone)] + made
        is_seen = [n for n, is_hidden in zip(summary, hidden, strict=True) if not is_hidden]
        return [0, len(made), matches, sum(is_seen), 0], summary


@st.composite
def streams(draw: st.DrawFn) -> list[Row]:
    random = Random(draw(st.integers(0, 2**20)))  # how a stream looks matters little; that it is long, much
    count, kinds, ts = draw(st.integers(0, 60)), draw(st.sampled_from(["ABC", "ABCX", "AABBCX"])), 0
    rows = []
    for _ in range(count):
        ts += random.choice([0, 0, SECOND // 3, SECOND, 2 * SECOND])
        rows.append((random.choice(kinds), ts, random.randint(0, 3), random.choice([0, 1, 2, None])))
    return rows


def batch(rows: Sequence[Row]) -> dict[str, list[Any]]:
    return {name: [row[at] for row in rows] for at, name in enumerate(("type", "ts", "v", "k"))}


def pieces(count: int, random: Random) -> list[tuple[int, int]]:
    cuts = sorted(random.randint(0, count) for _ in range(random.randint(0, 4)))
    return list(pairwise([0, *cuts, count]))


@dataclass
class Noted:
    """What comes out of a stream with all hooks."""

    ledger: Any
    open_runs: Any
    moves: Any
    matches: int = 0


def noted(shape: Shape, rows: list[Row], hooks: Hooks, random: Random | None = None) -> Noted:
    """Return what the engine notes, of one batch, or of several, with snapshots and batches without hooks between."""
    engine = pk.Engine(shape.query, plan="automaton")
    ledger = np.zeros((len(rows), LEDGER_WIDTH), np.int64)
    out = Noted(ledger, np.zeros((3, 4), np.int64), np.zeros((4, 4), np.int64))
    for start, stop in [(0, len(rows))] if random is None else pieces(len(rows), random):
        line = np.zeros((stop - start, LEDGER_WIDTH), np.int64)
        some = replace(hooks.of(np.arange(start, stop)), ledger=line, open_runs=out.open_runs, moves=out.moves)
        out.matches += len(engine.process(batch(rows[start:stop]), some))
        ledger[start:stop] = line
        if random is not None and random.random() < 0.3:
            engine = again(engine)
        if random is not None and random.random() < 0.3:
            engine.process(batch([]))  # nobody asks: then it is counted anew
        if random is not None and random.random() < 0.3:
            assert engine.open_runs().sum() == len({str(run.events) for run in engine.runs()})
    return out


def decisions(rows: list[Row], seed: int) -> Hooks:
    random = np.random.default_rng(seed)
    count = len(rows)
    return Hooks(
        states=random.random((4, count)) < 0.1,
        cells=random.integers(-1, 3, count),
        worth=(random.integers(0, 3, (4, count)) * 0.5).astype(np.float64),
        least=random.integers(-1, 3, count).astype(np.float64),
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@settings(max_examples=40, deadline=None)
@given(rows=streams(), seed=st.integers(0, 2**20))
def test_what_is_noted_is_what_happens(shape: Shape, rows: list[Row], seed: int) -> None:
    hooks = decisions(rows, seed)
    assert hooks.states is not None
    assert hooks.worth is not None
    assert hooks.cells is not None
    slow, wanted, open_runs = Slow(shape), np.zeros((len(rows), LEDGER_WIDTH), np.int64), np.zeros((3, 4), np.int64)
    for k, row in enumerate(rows):
        if shape.keyed and row[3] is None:
            continue
        wanted[k], summary = slow.add(row, hooks.states[:, k], hooks.worth[:, k], float(np.asarray(hooks.least)[k]))
        if hooks.cells[k] >= 0:
            open_runs[hooks.cells[k]] += summary
    once, cut = noted(shape, rows, hooks), noted(shape, rows, hooks, Random(seed))
    for out in (once, cut):
        out.ledger[:, CHECKS], checks = 0, out.ledger[:, CHECKS].copy()
        assert out.ledger.tolist() == wanted.tolist()
        assert out.open_runs.tolist() == open_runs.tolist()
        assert out.moves.tolist() == slow.moves.tolist()
        assert (checks >= 0).all()
    assert once.matches == cut.matches
    if not shape.window:
        assert once.matches == wanted[:, MATCHES].sum()


@pytest.mark.parametrize("policy", ["EACH", "FIRST"])
def test_an_event_that_waits_for_room_is_noted_once(policy: str) -> None:
    """Runs, elements, matches and candidates all need more room than there is at first."""
    random = Random(1)
    rows: list[Row] = [
        (random.choice("AAAB"), 1000 * k, random.randint(0, 3), random.randint(0, 3)) for k in range(900)
    ]
    rows += [("C", 10**6, 0, k % 4) for k in range(8)]
    shape = Shape(policy, keyed=True)
    slow = Slow(shape)
    never = np.zeros(4), np.ones(4), -1.0
    wanted = [slow.add(row, *never)[0] for row in rows]
    quiet = Hooks(cells=np.zeros(len(rows), np.int64), worth=np.ones((4, len(rows))), least=-1.0)
    out, cut = noted(shape, rows, quiet), noted(shape, rows, quiet, Random(5))
    assert out.ledger[:, CREATED:].tolist() == cut.ledger[:, CREATED:].tolist() == [line[1:] for line in wanted]
    assert out.ledger[:, MATCHES].max() > (1_000 if policy == "EACH" else 0)


def test_checks_are_those_of_the_work() -> None:
    rows = [(kind, k, 3 * (kind == "B"), 0) for k, kind in enumerate("AABBCAXC")]
    engine, ledger = pk.Engine(Shape().query, plan="automaton"), np.zeros((8, LEDGER_WIDTH), np.int64)
    engine.process(batch(rows), Hooks(ledger=ledger))
    assert ledger[:, CHECKS].tolist() == [0, 0, 2, 2, 4, 0, 0, 4]
    assert ledger[:, CHECKS].sum() == engine.work["checks"]
    assert ledger[:, CREATED].sum() == engine.work["runs_created"]


def test_an_event_that_is_shed_by_hand_takes_nothing() -> None:
    rows = [(kind, k, k, 0) for k, kind in enumerate("AABC")]
    ledger = np.full((4, LEDGER_WIDTH), 7)
    hooks = Hooks(events=np.array([False, True, False, False]), ledger=ledger)
    assert len(pk.Engine(Shape().query, plan="automaton").process(batch(rows), hooks)) == 1
    assert ledger[1].tolist() == [0] * LEDGER_WIDTH
    assert ledger[:, OPEN].tolist() == [1, 0, 2, 3]
    assert not ledger[:, SHED].any()


def test_the_summary_of_the_thesis() -> None:
    """Equation 5.4: what an event is worth in a window is summed over the window's runs, by their states."""
    rows = [("A", 0, 0, 0), ("A", 1, 0, 1), ("A", 2, 0, 1), ("B", 3, 1, 0), ("B", 4, 1, 1)]
    worth = np.zeros((4, 5))
    worth[:, 3:] = [[0.25], [2.0], [0.0], [0.0]]
    ledger = np.zeros((5, LEDGER_WIDTH), np.int64)
    hooks = Hooks(worth=worth, least=np.array([-1, -1, -1, 2.25, 2.25]), ledger=ledger)
    engine = pk.Engine(Shape(keyed=True).query, plan="automaton")
    engine.process(batch(rows), hooks)
    assert ledger[:, SHED].tolist() == [0, 0, 0, 1, 0]  # 0.25 + 2 in the window with one run; 0.25 + 4 in the other
    assert engine.open_runs().tolist() == [0, 3, 2, 0]


@pytest.mark.parametrize("shape", [s for s in SHAPES if s.policy != "STRICT" and not s.window], ids=str)
def test_runs_that_are_dropped_are_open_no_more(shape: Shape) -> None:
    random = Random(3)
    rows: list[Row] = [(random.choice("AAABX"), k * SECOND // 8, random.randint(0, 3), k % 2) for k in range(60)]
    engine = pk.Engine(replace(shape, within=60).query, plan="automaton")
    before, after = np.zeros((30, LEDGER_WIDTH), np.int64), np.zeros((30, LEDGER_WIDTH), np.int64)
    engine.process(batch(rows[:30]), Hooks(ledger=before))
    dropped = engine.drop_runs(3, np.random.default_rng(2).random((4, 5)))
    assert dropped.sum() == 3
    open_before = engine.open_runs()
    assert open_before.sum() == len(engine.runs())
    engine.process(batch(rows[30:]), Hooks(ledger=after))
    fresh = pk.Engine.restore(engine.snapshot())
    assert fresh.open_runs().tolist() == engine.open_runs().tolist()
    last = np.zeros((2, LEDGER_WIDTH), np.int64), np.zeros((2, LEDGER_WIDTH), np.int64)
    late: list[Row] = [("Z", 8 * SECOND, 0, 0), ("Z", 8 * SECOND, 0, 1)]
    engine.process(batch(late), Hooks(ledger=last[0]))
    fresh.process(batch(late), Hooks(ledger=last[1]))
    assert last[0].tolist() == last[1].tolist()
    total = 1 + engine.open_runs().sum()
    assert last[0][:, OPEN].sum() - shape.keyed == total if shape.keyed else last[0][0, OPEN] == total


def test_openers_follow_the_events_that_move() -> None:
    """Old events are dropped from the engine's memory now and then; what is counted by them is not lost."""
    random = Random(8)
    rows: list[Row] = [(random.choice("ABCX"), k * SECOND // 4, random.randint(0, 3), k % 3) for k in range(9_000)]
    shape = Shape(keyed=True)
    slow, engine, ledger = Slow(shape), pk.Engine(shape.query, plan="automaton"), np.zeros((9_000, 5), np.int64)
    for start in range(0, 9_000, 1_000):
        engine.process(batch(rows[start : start + 1_000]), Hooks(ledger=ledger[start : start + 1_000]))
    wanted = [slow.add(row, np.zeros(4), np.ones(4), -1.0)[0] for row in rows]
    assert ledger[:, CREATED:].tolist() == [line[1:] for line in wanted]
    assert engine.kept().size < 9_000


def test_what_does_not_fit_is_refused() -> None:
    engine, rows = pk.Engine(Shape().query, plan="automaton"), batch([("A", 1, 0, 0)])
    with pytest.raises(HookError, match="need each other"):
        engine.process(rows, Hooks(worth=np.ones((4, 1))))
    with pytest.raises(HookError, match=r"hooks.ledger has the shape \(1, 2\), and the batch needs \(1, 5\)"):
        engine.process(rows, Hooks(ledger=np.zeros((1, 2), np.int64)))
    with pytest.raises(HookError, match=r"open_runs needs hooks\.cells"):
        engine.process(rows, Hooks(open_runs=np.zeros((1, 4), np.int64)))
    with pytest.raises(HookError, match="moves is added to in place"):
        engine.process(rows, Hooks(moves=np.zeros((4, 4), np.int32)))
    general = pk.Engine(pk.parse("PATTERN SEQ(A a, B b, NOT C c) WITHIN 1 s"), plan="automaton")
    with pytest.raises(HookError, match=r"needs the general one: .*\n  fix"):
        general.process(batch([("A", 1, 0, 0)]), Hooks(moves=np.zeros((3, 3), np.int64)))
    assert general.open_runs().tolist() == [0, 0, 0]
