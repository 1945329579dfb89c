"""The compiled engine against the straightforward one in plain Python, on the queries of the papers.

Events per second are of this machine; the ratios are what to compare. Time is the process's own (CPU), which other
work on the machine disturbs least. Both engines are timed after the same warm-up (one WITHIN, so that the number of
runs has settled), the faster one for longer, and must find the same matches. Matches are counted; the Engine lays them
out when they are read, so what it takes with that is measured, too.
Exits with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import streams
from plain_engine import ATTRIBUTE, Found, Match, PlainEngine, Spec, Step, any_of, as_matches, matches_of, rows
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from streams import MEMBERS, SECOND, STEPS, Stream

import penstock as pk
from penstock.engine.detector import Mode

BATCH = 16_384
LONG, LONG_EVENTS, LONG_SECONDS = 20, 2_000_000, 1.0  # the Engine alone: so many times the timed events; at most
BAR_RATIO, BAR_CHECKS = 30.0, 30.0  # at least so many times the plain engine, above so many run checks per event
BAR_KEYS = 2.0  # cost per event with the most and the fewest keys
BAR_PLAN = 1.2  # cost per event of the plan that is chosen, and of the best
VERIFIED_MATCHES = 100_000  # the comparison of matches stops here: sets of tuples are large
KEYS, EVENTS_PER_KEY = (10, 1_000, 100_000), 8  # so many events of a key inside WITHIN
SETTLED = 3  # so many WITHIN before the clock starts, as keys grow: until the memory, too, has stopped growing
SIMILAR = 50  # queries at once
PLAN_ROUNDS = 6  # of each plan: what is compared differs by a few hundredths
ALIKE = 20  # queries at once that begin alike


@dataclass(frozen=True)
class Case:
    """A query as text and by hand, its stream, and how many events to take."""

    name: str
    policy: str
    text: str
    spec: Spec
    stream: Callable[[int], Stream]
    warm: int  # events before the clock starts: those of one WITHIN, at least
    timed: int  # events that both engines are timed on: a second or so in plain Python
    prototype: str = ""  # events/s of the prototype of DESIGN.md, section 4


# --- the queries --------------------------------------------------------------------------------------------


def rising_sum(seconds: int, policy: str, timed: int, prototype: str = "", data_set: str = "DS1") -> Case:
    """Q1 of thesis table 6.4 on its data set."""
    text = f"PATTERN SEQ(A a, B b, C c) WHERE a.V1 < b.V1 AND a.V1 + b.V1 < c.V1 WITHIN {seconds} s {_policy(policy)}"
    steps = (
        Step(("a",), ("A",), extend=lambda _, e: e[ATTRIBUTE], consumes=policy == "FIRST"),
        Step(("b",), ("B",), lambda v, e: v < e[ATTRIBUTE], lambda v, e: v + e[ATTRIBUTE]),
        Step(("c",), ("C",), lambda v, e: v < e[ATTRIBUTE]),
    )
    spec = Spec(steps, seconds * SECOND, greedy=policy == "EACH")
    name = f"6.4 Q1, {seconds:,} s"
    return Case(name, policy, text, spec, lambda n: streams.exponential(n, data_set), seconds, timed, prototype)


def kleene(seconds: int, timed: int, data_set: str = "DS1") -> Case:
    """Q3 of thesis table 6.4 on its data set: SEQ(A; B+; C)."""
    text = (
        "PATTERN SEQ(A a, B+ b[], C c) WHERE a.V1 + SUM(b[..i-1].V1) < b[i].V1 AND a.V1 + SUM(b[].V1) < c.V1 "
        f"WITHIN {seconds} s"
    )
    steps = (
        Step(("a",), ("A",), extend=lambda _, e: e[ATTRIBUTE]),
        Step(("b",), ("B",), lambda v, e: v < e[ATTRIBUTE], lambda v, e: v + e[ATTRIBUTE], repeats=True),
        Step(("c",), ("C",), lambda v, e: v < e[ATTRIBUTE]),
    )
    spec, name = Spec(steps, seconds * SECOND), f"6.4 Q3 SEQ(A;B+;C), {seconds:,} s"
    return Case(name, "EACH", text, spec, lambda n: streams.exponential(n, data_set), seconds, timed, "0.16 M")


def rising_stocks(symbols: int, minutes: int, timed: int, rise: float = 1.01) -> Case:
    """Five given symbols, each at a price above the one before."""
    names = ("a", "b", "c", "d", "e")
    pattern = ", ".join(f"C{k} {name}" for k, name in enumerate(names, 1))
    rises = " AND ".join(f"{x}.close * {rise} < {y}.close" for x, y in pairwise(names))
    text = f"PATTERN SEQ({pattern}) WHERE {rises} WITHIN {minutes} min"

    def rose(value: float, event: tuple[Any, ...]) -> bool:
        return value < event[ATTRIBUTE]  # type: ignore[no-any-return]

    def kept(_: Any, event: tuple[Any, ...]) -> float:
        return event[ATTRIBUTE] * rise  # type: ignore[no-any-return]

    steps = (
        Step(("a",), ("C1",), extend=kept),
        *(Step((name,), (f"C{k}",), rose, kept) for k, name in enumerate(names[1:], 2)),
    )
    spec = Spec(steps, minutes * 60 * SECOND)
    warm, name = symbols * minutes, f"rising stocks, 5 steps, {symbols} symbols"
    return Case(name, "EACH", text, spec, lambda n: streams.stocks(n, symbols), warm, timed, "1 to 4 M")


def same_id(ids: int, timed: int, per_key: int = EVENTS_PER_KEY) -> Case:
    """Four steps with the same id; WITHIN grows with the ids, so that each has as many events in it."""
    text = f"PATTERN SEQ(A a, B b, C c, D d) WHERE SAME[id] WITHIN {ids * per_key} ms"
    steps = tuple(Step((kind.lower(),), (kind,)) for kind in "ABCD")
    spec = Spec(steps, ids * per_key * 1000, same=ATTRIBUTE)
    warm, name = ids * per_key, f"SAME[id], 4 steps, {ids:,} ids"
    return Case(name, "EACH", text, spec, lambda n: streams.keyed(n, ids), warm, timed, "4 M")


def any_at_stop(stops: int, per_stop: float, policy: str, timed: int) -> Case:
    """Q4 of thesis table 3.1: any four of twenty buses that are late at the same stop."""
    seconds = round(stops * per_stop)
    members = ", ".join(f"B{k} b{k}" for k in range(1, MEMBERS + 1))
    text = f"PATTERN ANY(4, {members}) WHERE SAME[stop] WITHIN {seconds} s SELECT {policy}"
    spec = Spec(any_of(4, "B", MEMBERS), seconds * SECOND, greedy=policy == "EACH", same=ATTRIBUTE)
    return Case("ANY(4 of 20), same stop", policy, text, spec, lambda n: streams.buses(n, stops), seconds, timed)


def any_in_reach(
    events: int, striker_share: float, policy: str, timed: int, reach: float = 0.5, members: int = MEMBERS
) -> Case:
    """Q3 of thesis table 3.1: a striker, then any four of twenty defenders near him."""
    defenders = range(1, members + 1)
    listed = ", ".join(f"D{k} d{k}" for k in defenders)
    near = " AND ".join(f"abs(s.x - d{k}.x) <= {reach}" for k in defenders)
    text = f"PATTERN SEQ(S s, ANY(4, {listed})) WHERE {near} WITHIN {events // 10} s {_policy(policy, 's')}"
    striker = Step(("s",), ("S",), extend=lambda _, e: (e[ATTRIBUTE], 0))
    spec = Spec((striker, *any_of(4, "D", members, reach)), events // 10 * SECOND, greedy=policy == "EACH")
    name, prototype = "S; ANY(4 of 20) in reach", "0.09 M" if policy == "EACH" else "3 M"
    return Case(name, policy, text, spec, lambda n: streams.players(n, striker_share), events, timed, prototype)


def ten_steps(symbols: int, window: int, policy: str, timed: int, percent: float = 1) -> Case:
    """Q1 of thesis table 4.2 with its windows: ten symbols that all rise, or all fall."""
    up, down = 1 + percent / 100, 1 - percent / 100
    moves = [f"(C1.close >= prev(C1.close) * {up} OR C1.close <= prev(C1.close) * {down})"]
    for k in range(2, STEPS + 1):
        rises = f"C1.close > prev(C1.close) AND C{k}.close >= prev(C{k}.close) * {up}"
        moves.append(f"({rises} OR C1.close < prev(C1.close) AND C{k}.close <= prev(C{k}.close) * {down})")
    text = (
        f"PATTERN SEQ({', '.join(f'C{k}' for k in range(1, STEPS + 1))}) WHERE {' AND '.join(moves)} WITHIN {window} "
        f"EVENTS WINDOW {window} EVENTS ON MLE1|MLE2|MLE3|MLE4 leader {_policy(policy, 'C1')}"
    )

    def moved(rising: bool | None, event: tuple[Any, ...]) -> bool:
        close, before = event[ATTRIBUTE], event[ATTRIBUTE + 1]
        if rising is None:
            return close >= before * up or close <= before * down  # type: ignore[no-any-return]
        return close >= before * up if rising else close <= before * down  # type: ignore[no-any-return]

    def direction(rising: bool | None, event: tuple[Any, ...]) -> bool:
        return event[ATTRIBUTE] > event[ATTRIBUTE + 1] if rising is None else rising

    steps = tuple(Step((f"C{k}",), (f"C{k}",), moved, direction) for k in range(1, STEPS + 1))
    leaders = tuple(f"MLE{k}" for k in range(1, streams.LEADERS + 1))
    spec = Spec(steps, window, True, policy == "EACH", previous=ATTRIBUTE, opened_by=leaders)
    name = "4.2 Q1, 10 steps, windows"
    return Case(name, policy, text, spec, lambda n: streams.stocks(n, symbols), window, timed)


def _policy(policy: str, consumed: str = "a") -> str:
    return f"SELECT FIRST CONSUME {consumed}" if policy == "FIRST" else "SELECT EACH"


def similar(number: int, timed: int = 400_000) -> Case:
    """Return one of many queries that share types and conditions: two symbols of fifty, and one of their own."""
    text = (
        f"PATTERN SEQ(C1 a, C2 b, C{3 + number} c) WHERE a.close > 100 AND abs(b.close - 100) < 2 "
        "AND a.close * 1.01 < b.close AND b.close < c.close WITHIN 5 min"
    )
    unused = rising_stocks(50, 5, timed).spec  # the plain engine is not asked
    return Case(f"query {number}", "EACH", text, unused, lambda n: streams.stocks(n, 55), 250, timed)


def rare_end(seconds: int, timed: int) -> Case:
    """A sequence whose last type is a hundred times rarer than the others: what a tree plan is for."""
    text = f"PATTERN SEQ(A a, B b, D d) WHERE a.V1 < b.V1 AND b.V1 < d.V1 WITHIN {seconds} s"
    name = f"SEQ of three, the last rare, {seconds:,} s"
    unused = rising_sum(seconds, "EACH", timed).spec  # the plain engine is not asked
    return Case(name, "EACH", text, unused, lambda n: streams.exponential(n, "rare end"), seconds, timed)


def settled(case: Case) -> Case:
    """Return a case with a longer warm-up, and timed for one WITHIN at least."""
    return replace(case, warm=SETTLED * case.warm, timed=max(case.timed, case.warm))


CASES = (
    rising_sum(250, "EACH", 100_000, "4 to 7 M"),
    rising_sum(250, "FIRST", 200_000, "7 M"),
    rising_sum(2_500, "EACH", 3_000, "0.3 to 0.5 M"),
    rising_sum(2_500, "FIRST", 100_000),
    rising_stocks(50, 30, 100_000, 1.02),
    kleene(760, 3_000),
    same_id(10_000, 200_000),
    any_at_stop(100, 5.2, "EACH", 20_000),
    any_at_stop(100, 5.2, "FIRST", 50_000),
    any_in_reach(5_350, 0.25, "EACH", 1_000),
    any_in_reach(5_350, 0.25, "FIRST", 8_000),
    ten_steps(60, 1_200, "EACH", 20_000),
    ten_steps(60, 1_200, "FIRST", 400_000),
)
SERIES = {
    "case": CASES,
    "window": tuple(rising_sum(250 * by, "EACH", 400_000 // by**2) for by in (1, 2, 5, 10)),
    "keys": tuple(settled(same_id(ids, 400_000)) for ids in KEYS),
    "many": (similar(0), similar(1)),  # see `measure_many`, and `measure_alike`
    "plan": (
        rising_sum(250, "EACH", 200_000),
        rising_sum(2_500, "EACH", 20_000),
        rising_stocks(50, 30, 200_000, 1.02),
        same_id(10_000, 200_000),
        rare_end(2_500, 400_000),
    ),
}


# --- one case -----------------------------------------------------------------------------------------------


@dataclass
class Result:
    """What was measured; rates are events per second."""

    name: str
    policy: str
    prototype: str = ""
    engine: float = 0.0  # on the long stream
    laid_out: float = 0.0  # the same, with all matches laid out
    plain: float = 0.0
    checks: float = 0.0  # runs that the plain engine asked, per event
    matches: float = 0.0  # per event
    peak_mb: float = 0.0  # growth over the long stream
    automaton: float = 0.0  # events/s of each plan, where both are measured
    tree: float = 0.0
    alone: float = 0.0  # of many queries, each in an engine of its own
    compared: int = 0  # matches, found by both engines
    differing: int = 0  # matches found by one engine only

    @property
    def ratio(self) -> float:
        """How many times as fast as the plain engine: rates after the same warm-up."""
        return self.engine / self.plain if self.plain else 0.0

    @property
    def has_bar(self) -> bool:
        """Whether a run is asked often enough for the ratio to have a bar."""
        return self.checks > BAR_CHECKS

    @property
    def regret(self) -> float:
        """How many times the cost of the best plan the chosen one has."""
        return max(self.automaton, self.tree, self.engine) / self.engine if self.automaton else 1.0

    @property
    def ns_per_check(self) -> float:
        """The Engine's time per event by the run checks of the plain engine, whatever plan the Engine chose."""
        return 1e9 / (self.engine * self.checks) if self.engine and self.checks else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self) | {"ratio": self.ratio, "ns_per_check": self.ns_per_check}

    def row(self, brief: bool) -> dict[str, str]:
        """Return what a table shows of it; brief, if there was no plain engine."""
        both = {
            "prototype": self.prototype,
            "laid out": f"{self.laid_out:,.0f}",
            "plain": f"{self.plain:,.0f}",
            "ratio": f"{self.ratio:,.1f}",
            "checks/event": f"{self.checks:,.1f}",
            "bar": f"{BAR_RATIO:.0f}" if self.has_bar else "none",
            "ns/check": f"{self.ns_per_check:,.2f}",
        }
        return {
            "case": self.name,
            "policy": self.policy,
            "Engine": f"{self.engine:,.0f}",
            **({} if brief else both),
            **({"automaton": f"{self.automaton:,.0f}", "tree": f"{self.tree:,.0f}"} if self.automaton else {}),
            **({"alone": f"{self.alone:,.0f}", "gain": f"{self.engine / self.alone:,.1f}"} if self.alone else {}),
            "matches/event": f"{self.matches:,.2f}",
            "peak MB": f"{self.peak_mb:,.0f}",
        }


def measure(kind: str, at: int, quick: bool, with_engine: bool) -> Result:
    """Measure one case, in a process of its own; `kind` and `at` say which. Series are for the Engine only."""
    if kind == "many":
        return measure_alike(quick) if at else measure_many(quick)
    case, with_plain = SERIES[kind][at], kind == "case"
    timed = max(1, case.timed // (4 if quick else 1))
    rounds, seconds = (2, LONG_SECONDS / 4) if quick else (PLAN_ROUNDS if kind == "plan" else 3, LONG_SECONDS)
    if not with_plain:  # a whole WITHIN, never cut short: what is done once per WITHIN is counted once
        timed, seconds = max(timed, case.warm), 60.0
    stream = case.stream(case.warm + (min(timed * LONG, LONG_EVENTS) if with_plain else timed))
    result = Result(case.name, case.policy, case.prototype)
    gc.disable()  # as timeit does; it is the plain engine that gains
    batches = in_batches(stream, case.warm)
    events = rows(stream, 0, case.warm + timed) if with_plain else []
    if with_engine:
        time_engine(case, in_batches(streams.first(stream, 64), 32), 0.0)  # whatever must be compiled or loaded
        before = memory_bytes("VmRSS", forget_peak=True)
        _, result.matches = time_engine(case, batches, seconds)
        result.peak_mb = (memory_bytes("VmHWM") - before) / 2**20
    for _ in range(rounds):  # what is compared is timed in turns: the machine is not always as fast
        if with_engine:
            result.engine = max(result.engine, time_engine(case, batches, seconds)[0])
        if with_engine and kind == "plan":
            result.automaton = max(result.automaton, time_engine(case, batches, seconds, "automaton")[0])
            result.tree = max(result.tree, time_engine(case, batches, seconds, "tree")[0])
        if with_plain:
            time_plain(result, case, events)
    if with_plain and with_engine:
        result.laid_out = max(time_engine(case, batches, seconds, lays_out=True)[0] for _ in range(rounds))
        compare(result, case, stream)
    return result


def measure_many(quick: bool) -> Result:
    """Measure many similar queries in one engine, and each in an engine of its own."""
    cases = [similar(number) for number in range(SIMILAR)]
    timed = cases[0].timed // (4 if quick else 1)
    stream = cases[0].stream(cases[0].warm + timed)
    return together_and_alone("similar", [case.text for case in cases], stream, cases[0].warm, 2 if quick else 3)


def measure_alike(quick: bool) -> Result:
    """Measure queries of five steps, of which three are common. There are few matches: the common steps are the load.

    With many (WITHIN 20 min and factors of 1.02: 56 an event) it was 1.4 times instead of 3.
    """
    texts = [
        f"PATTERN SEQ(C1 a, C2 b, C3 c, C{4 + number} d, C{30 + number} e) WHERE a.close < b.close "
        "AND b.close < c.close AND c.close * 1.1 < d.close AND d.close * 1.1 < e.close WITHIN 15 min"
        for number in range(ALIKE)
    ]
    stream = streams.stocks(1_000 + (50_000 if quick else 200_000), 55)
    return together_and_alone("3 common steps of 5", texts, stream, 1_000, 2 if quick else 3)


def together_and_alone(name: str, texts: list[str], stream: Stream, warm: int, rounds: int) -> Result:
    """Measure queries in one engine, and each in an engine of its own; rates are events times queries."""
    first, later = in_batches(stream, warm)
    timed = sum(map(len, later))
    result = Result(f"{len(texts)} queries, {name}", "EACH")

    def rate(groups: list[list[str]]) -> tuple[float, int]:
        engines, found = [pk.Engine([pk.parse(text) for text in group]) for group in groups], 0
        for engine in engines:
            for batch in first:
                engine.process(batch)
        start = time.process_time()
        for engine in engines:
            found += sum(len(engine.process(batch)) for batch in later)
        return timed * len(texts) / (time.process_time() - start), found

    gc.disable()
    rate([texts[:2]])  # whatever must be compiled or loaded
    together = max(rate([texts]) for _ in range(rounds))
    alone = max(rate([[text] for text in texts]) for _ in range(rounds))
    result.engine, result.alone = together[0], alone[0]
    result.matches, result.compared = together[1] / timed, together[1]
    result.differing = abs(together[1] - alone[1])
    return result


def in_batches(stream: Stream, warm: int) -> list[list[pa.Table]]:
    """Return a stream as Arrow tables of BATCH events: those before `warm`, and those from there on."""
    table = pa.table({name: pa.array(column) for name, column in stream.items()})
    table = table.set_column(0, "type", table["type"].dictionary_encode())
    cuts = [(start, min(warm, start + BATCH)) for start in range(0, warm, BATCH)]
    later = [(start, start + BATCH) for start in range(warm, len(table), BATCH)]
    return [[table.slice(start, stop - start) for start, stop in part] for part in (cuts, later)]


def time_engine(
    case: Case, batches: list[list[pa.Table]], seconds: float, plan: Mode = "auto", *, lays_out: bool = False
) -> tuple[float, float]:
    """Return events per second after the warm-up, and matches per event; stops when the time is up."""
    engine = pk.Engine(pk.parse(case.text), plan=plan)
    for batch in batches[0]:
        engine.process(batch)
    events, found, start = 0, 0, time.process_time()
    for batch in batches[1]:
        matches = engine.process(batch)
        found += len(matches)
        events += len(batch)
        if lays_out:
            for _, chunk in matches.chunks:
                chunk.laid_out()
        if time.process_time() - start > seconds:
            break
    return events / (time.process_time() - start), found / events


def time_plain(result: Result, case: Case, events: list[tuple[Any, ...]]) -> None:
    """Time the plain engine on events that are tuples already: reading columns is not its fault."""
    engine, found = PlainEngine(case.spec), 0
    engine.process(events[: case.warm])
    before, start = engine.checks, time.process_time()
    for at in range(case.warm, len(events), BATCH):
        found += len(engine.process(events[at : at + BATCH]))
    seconds, timed = time.process_time() - start, len(events) - case.warm
    result.plain = max(result.plain, timed / seconds)
    result.checks, result.matches = (engine.checks - before) / timed, found / timed


def compare(result: Result, case: Case, stream: Stream) -> None:
    """Count the matches that both find, and those that only one does, on as long a prefix as is bearable."""
    plain, expected, events = PlainEngine(case.spec), list[Found](), 0
    while events < case.warm + case.timed and len(expected) < VERIFIED_MATCHES:
        expected += plain.process(rows(stream, events, events + 256))
        events += 256
    engine = pk.Engine(pk.parse(case.text))
    found, total = set[Match](), 0
    prefix = in_batches(streams.first(stream, events), 0)[1]
    for matches in (*(engine.process(batch) for batch in prefix), engine.flush()):
        found |= matches_of(matches.to_arrow())
        total += len(matches)
    wanted = as_matches(expected)
    result.compared, result.differing = len(wanted & found), len(wanted ^ found) + total - len(found)


def memory_bytes(field: str, forget_peak: bool = False) -> int:
    """Return what this process holds (VmRSS) or has held at most (VmHWM); 0 where there is no /proc."""
    if not (own := Path("/proc/self")).exists():
        return 0
    if forget_peak:
        (own / "clear_refs").write_text("5", encoding="ascii")
    lines = (own / "status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) * 1024


# --- all of them --------------------------------------------------------------------------------------------


def bars(results: dict[str, list[Result]]) -> list[tuple[str, bool]]:
    """Return what was to be reached, in words, and whether it was."""
    judged = []
    for r in results["case"]:
        name = f"{r.name} {r.policy}"
        text = f"{name}: same matches ({r.compared:,} shared, {r.differing:,} differ)"
        judged.append((text, r.compared > 0 and not r.differing))
        if r.has_bar:
            text = f"{name}: {r.ratio:.1f} times the plain engine, at least {BAR_RATIO:.0f}"
            judged.append((text, r.ratio >= BAR_RATIO))
    if results["keys"]:
        spread = max(r.engine for r in results["keys"]) / min(r.engine for r in results["keys"])
        text = f"cost per event from {KEYS[0]:,} to {KEYS[-1]:,} keys: within {spread:.2f}, at most {BAR_KEYS}"
        judged.append((text, spread <= BAR_KEYS))
    for r in results["many"]:
        judged.append((f"{r.name}: as many matches at once as alone ({r.compared:,})", not r.differing))
    for r in results["plan"]:
        text = f"{r.name}: the chosen plan costs {r.regret:.2f} times the best, at most {BAR_PLAN}"
        judged.append((text, r.regret <= BAR_PLAN))
    return judged


def show(results: dict[str, list[Result]], console: Console) -> None:
    """Print the table of the cases and the series."""
    titles = {
        "case": "events/s after one WITHIN, the Engine on longer streams than the plain one",
        "window": "as the window grows: 6.4 Q1, EACH",
        "plan": "events/s of the plan that is chosen, and of both",
        "keys": f"as keys grow, and WITHIN with them: {EVENTS_PER_KEY} events of a key in it; after {SETTLED} WITHIN",
        "many": "events/s times queries: in one engine, and each in an engine of its own",
    }
    for kind in (kind for kind in titles if results[kind]):
        table = Table(title=titles[kind])
        for at, name in enumerate(results[kind][0].row(brief=kind != "case")):
            table.add_column(name, justify="right" if at > 1 else "left")
        for r in results[kind]:
            table.add_row(*map(escape, r.row(brief=kind != "case").values()))
        console.print(table)


def main() -> int:
    """Measure all cases, each in a fresh process, and judge them."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json", action="store_true", help="write the results as JSON")
    options.add_argument("--quick", action="store_true", help="fewer events and rounds")
    options.add_argument("--plain", action="store_true", help="the plain engine only: no ratios, no bars, no series")
    options.add_argument("--case", default="", help="only the cases whose name holds this text; no series")
    asked = options.parse_args()
    kinds = ["case"] if asked.case or asked.plain else list(SERIES)
    results: dict[str, list[Result]] = {kind: [] for kind in SERIES}
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        for kind, at, case in [(name, at, case) for name in kinds for at, case in enumerate(SERIES[name])]:
            if asked.case in case.name:
                print(case.name, case.policy, file=sys.stderr)
                results[kind].append(pool.submit(measure, kind, at, asked.quick, not asked.plain).result())
    judged = [] if asked.plain else bars(results)
    if asked.json:
        numbers = {kind: [r.as_dict() for r in several] for kind, several in results.items()}
        print(json.dumps({"results": numbers, "bars": judged}, indent=1))
    else:
        show(results, Console(width=None if sys.stdout.isatty() else 150))
        for text, passed in judged:
            print("PASS" if passed else "FAIL", text)
    return 0 if all(passed for _, passed in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
