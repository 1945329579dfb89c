"""The queries that are measured: of the papers, as text and by hand, each with its stream.

Times are seconds or minutes of the stream; `timed` events take the plain engine a second or so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import streams
from plain_engine import ATTRIBUTE, Spec, Step, any_of
from streams import MEMBERS, SECOND, STEPS, Stream

KEYS, EVENTS_PER_KEY = (10, 1_000, 100_000), 8  # so many events of a key inside WITHIN
SETTLED = 3  # so many WITHIN before the clock starts, as keys grow: until the memory, too, has stopped growing


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
    prototype: tuple[float, ...] = ()  # millions of events/s of a prototype: from, to; its streams are not known


# --- the queries --------------------------------------------------------------------------------------------


def rising_sum(seconds: int, policy: str, timed: int, prototype: tuple[float, ...] = (), data_set: str = "DS1") -> Case:
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
    return Case(name, "EACH", text, spec, lambda n: streams.exponential(n, data_set), seconds, timed, (0.16,))


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
    return Case(name, "EACH", text, spec, lambda n: streams.stocks(n, symbols), warm, timed, (1, 4))


def same_id(ids: int, timed: int, per_key: int = EVENTS_PER_KEY) -> Case:
    """Four steps with the same id; WITHIN grows with the ids, so that each has as many events in it."""
    text = f"PATTERN SEQ(A a, B b, C c, D d) WHERE SAME[id] WITHIN {ids * per_key} ms"
    steps = tuple(Step((kind.lower(),), (kind,)) for kind in "ABCD")
    spec = Spec(steps, ids * per_key * 1000, same=ATTRIBUTE)
    warm, name = ids * per_key, f"SAME[id], 4 steps, {ids:,} ids"
    return Case(name, "EACH", text, spec, lambda n: streams.keyed(n, ids), warm, timed, (4,))


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
    name, prototype = "S; ANY(4 of 20) in reach", (0.09,) if policy == "EACH" else (3.0,)
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
    rising_sum(250, "EACH", 100_000, (4, 7)),
    rising_sum(250, "FIRST", 200_000, (7,)),
    rising_sum(2_500, "EACH", 3_000, (0.3, 0.5)),
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
        ten_steps(60, 1_200, "EACH", 200_000),
    ),
}
