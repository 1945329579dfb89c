"""Windows that are matched on their own have the same matches as windows that share their runs."""

from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.runtime.matching import Operator
from penstock.runtime.splitting import SplitError, split
from penstock.shedding.views import NOTHING, Decision

QUERIES = {
    "count": "SEQ(A a, B b, C c) WHERE a.v < c.v WITHIN 12 EVENTS WINDOW 12 EVENTS EVERY 5 EVENTS",
    "time": "SEQ(A a, B b) WHERE a.v < b.v WITHIN 8 s WINDOW 8 s EVERY 3 s",
    "opened": "SEQ(A a, B b, C c) WITHIN 15 EVENTS WINDOW 15 EVENTS ON A o WHERE o.v > 5",
    "previous": "SEQ(A a, B b) WHERE a.v > prev(a.v) AND b.v > prev(b.v) WITHIN 9 s WINDOW 9 EVENTS EVERY 4 EVENTS",
    "negated": "SEQ(A a, NOT C c, B b) WHERE c.v > 5 WITHIN 12 EVENTS WINDOW 12 EVENTS EVERY 5 EVENTS",
    "shorter": "SEQ(A a, B b) WITHIN 5 EVENTS WINDOW 12 EVENTS EVERY 5 EVENTS",
}
POLICIES = ["SELECT EACH", "SELECT FIRST", "SELECT FIRST CONSUME a", "SELECT FIRST CONSUME ALL", "SELECT STRICT"]


def events(seed: int, size: int = 400) -> dict[str, Any]:
    numbers = np.random.default_rng(seed)
    return {
        "type": numbers.choice(np.array(["A", "B", "C", "D"]), size),
        "ts": np.cumsum(numbers.choice([0, 1, 1, 7], size, p=[0.1, 0.5, 0.35, 0.05])) * 500_000,
        "v": numbers.integers(0, 10, size).astype(np.float64),
    }


def operated(query: pk.Query, stream: dict[str, Any], size: int, decision: Decision = NOTHING) -> set[Any]:
    operator, found = Operator([(query, 1.0)], is_split=True), set()
    operator.take(stream)
    for start in range(0, operator.stream.size, size):
        stop = min(operator.stream.size, start + size)
        step = operator.process(start, operator.stream.view(start, stop), decision)
        for match in step.matches:
            each = {name: tuple(seq >> 20 for seq in seqs) for name, seqs in match.events.items()}
            found.add((match.key[0], *sorted(each.items())))
    return found


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", QUERIES)
def test_the_same_matches(name: str, policy: str) -> None:
    query = pk.parse(f"PATTERN {QUERIES[name]} {policy}")
    for seed in range(3):
        stream = events(seed)
        shared = pk.Engine(query)
        matches = shared.process(stream) + shared.flush()
        operator = Operator([(query, 1.0)], is_split=True)
        operator.take(stream)
        starts = operator.stream.cut.opens
        wanted = {(m.window, *sorted(m.events.items())) for m in matches}
        names = _names(query, stream, starts)
        got = {(names[key], *rest) for key, *rest in operated(query, stream, 37)}
        assert got == wanted


def _names(query: pk.Query, stream: dict[str, Any], starts: Any) -> list[int]:
    """Return what windows are called, by number."""
    window = query.window
    assert window is not None
    if window.on is not None:
        return [int(start) for start in starts]
    every = 5 if "5 EVENTS" in pk.render(query).split("EVERY")[1] else 4 if "4 EVENTS" in pk.render(query) else 3
    if "EVERY 3" in pk.render(query):
        us, ts = 3_000_000, stream["ts"]
        first, last = (int(ts[0]) - 8_000_000) // us + 1, int(ts[-1]) // us
        used = [w for w in range(first, last + 1) if ((ts >= w * us) & (ts < w * us + 8_000_000)).any()]
        return [w * us for w in used]
    return [every * number for number in range(len(starts))]


def test_what_cannot_be_split_is_refused() -> None:
    with pytest.raises(SplitError, match="no WINDOW"):
        split(pk.parse("PATTERN A a WITHIN 1 s"))
    queries = [(pk.parse(f"PATTERN A a WITHIN 1 s WINDOW {n} s"), 1.0) for n in (1, 2)]
    with pytest.raises(SplitError, match="same WINDOW"):
        Operator(queries, is_split=True)
