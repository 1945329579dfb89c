"""Rows that are no events, come twice or too late, among others: each leaves once, and changes nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from penstock.reference import Event
from penstock.spark.worker.results import COUNTS, EVENT, LATE, MALFORMED, OUTPUT, REASON
from penstock.spark.worker.spec import Spec
from tests.engine.comparing import in_order
from tests.generators import Case, seeded
from tests.spark.simulating import spec_for, streamed, table_of
from tests.spark.test_workers import DELAY_US, END, found_in, in_one_process, waits_for_events

CASES, FIRST, BAD = 50, 230_000, 10**6  # the numbers of bad rows begin with this
LONG_AGO = -(10**12)  # microseconds; the streams begin at about 0
REASONS = {
    "no time": "no ts: an event needs a time",
    "no type": "no type: an event needs a type",
    "far": "ts is beyond 2**62 microseconds from 1970",
    "twice": "another event has the same seq",
}


def spoilt(part: list[Event], spec: Spec, may_be_late: bool, first: int, random: Random) -> tuple[pa.Table, list[str]]:
    """Return a micro-batch with bad rows among its events, and of which kinds they are."""
    asked = [event for event in part if spec.counting is None or event.type in spec.counting]
    kinds = [kind for kind in (*REASONS, LATE) if random.random() < 0.5 and (may_be_late or kind != LATE)]
    kinds = [kind for kind in kinds if asked or kind not in ("twice", LATE)]
    rows: list[tuple[Event, str]] = [(event, "") for event in part]
    for number, kind in enumerate(kinds):
        like = random.choice(asked) if asked else Event("A", 0, 0, {})
        ts = {"far": 2**62 + 1, LATE: LONG_AGO}.get(kind, like.ts)
        bad = like if kind == "twice" else replace(like, seq=first + number, ts=ts)
        places = [place for place, (event, _) in enumerate(rows) if event is like]
        rows.insert(random.randint(places[0] + 1 if places else 0, len(rows)), (bad, kind))
    table = table_of([event for event, _ in rows], spec)
    for name, column in (("no time", "ts"), ("no type", "type")):
        place = table.schema.get_field_index(column)
        told = zip((kind for _, kind in rows), table.column(column).to_pylist(), strict=True)
        values = [None if kind == name else value for kind, value in told]
        table = table.set_column(place, table.schema.field(place), pa.array(values, table.schema.field(place).type))
    return table, kinds


def check(seed: int, case: Case, watermark_us: int | None) -> Counter[str]:
    """Run a stream with bad rows; return how many there were of each kind."""
    random, spec = Random(seed), spec_for(case.query, watermark_us=watermark_us)
    events, told = in_order(case.events), Counter[str]()
    cuts = sorted(random.randint(0, len(events)) for _ in range(3))
    tables: list[pa.Table] = []
    for start, stop in zip([0, *cuts], [*cuts, len(events)], strict=True):
        table, kinds = spoilt(events[start:stop], spec, start > 0, BAD + 100 * len(tables), random)
        tables.append(table)
        told += Counter(kinds)
    steps: list[dict[str, Any]] = []

    def note(found: list[pa.Table]) -> None:
        steps.extend(row for table in found for row in table.column(COUNTS).to_pylist() if row is not None)

    found = streamed(spec, [*tables, table_of([END], spec)], random, each=note)
    assert found_in(found, case.query) == in_one_process(case), f"seed {seed}: {case!r}"
    bad = [row for row in found.select([OUTPUT, EVENT, REASON]).to_pylist() if row[OUTPUT] in (LATE, MALFORMED)]
    reasons = Counter(row[REASON] for row in bad if row[OUTPUT] == MALFORMED)
    assert reasons == Counter({REASONS[kind]: count for kind, count in told.items() if kind != LATE})
    assert sum(row[OUTPUT] == LATE for row in bad) == told[LATE]
    sums = {name: sum(step[name] for step in steps) for name in ("rows", "processed", "late", "malformed", "shed")}
    buckets = 3 if spec.by else 1
    held = sum(step["held"] for step in steps[-buckets:])  # of the last batch, which every bucket is told of
    assert sums["rows"] == sum(map(len, tables)) + 1
    assert (sums["late"], sums["malformed"], sums["shed"]) == (told[LATE], sum(reasons.values()), 0)
    assert sums["processed"] + sums["late"] + sums["malformed"] + held == sums["rows"]
    return told


@pytest.mark.parametrize("watermark_us", [None, DELAY_US])
def test_bad_rows_go_where_they_should_and_the_rest_is_matched(watermark_us: int | None) -> None:
    told = Counter[str]()
    for seed, case in enumerate(seeded(CASES, FIRST), start=FIRST):
        if not waits_for_events(spec_for(case.query)):
            told += check(seed, case, watermark_us)
    assert min(told[kind] for kind in (*REASONS, LATE)) > 20, f"too few of a kind: {told}"
