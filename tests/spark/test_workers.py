"""What the workers find is what the engine finds in one process, however rows are parted, shuffled and cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.matches import Matches
from penstock.engine.rules import rules
from penstock.pattern import ast
from penstock.pattern.parser import parse
from penstock.plan.planning import plan
from penstock.plan.terms import Calls
from penstock.reference import Event
from penstock.spark.outputs import layout_of
from penstock.spark.worker.batch import BatchWorker
from penstock.spark.worker.bucket import Bucket, Given
from penstock.spark.worker.packing import BUCKET, Pack
from penstock.spark.worker.results import OUTPUT
from penstock.spark.worker.spec import TIE, Spec
from tests.engine.comparing import as_lists, engine_of, in_order
from tests.generators import Case, seeded
from tests.spark.simulating import batched, matches_of, spec_for, streamed, table_of

SHARES, CASES = 6, 600
END = Event("the end", 2 * 10**15, 10**9, {})  # an event that lets all time pass
DELAY_US = 3_000_000
START = 1_700_000_000_000_000


def found_by(matches: Matches) -> Counter[Any]:
    return Counter((m.query, m.key, m.window, *_bound(m.events), *_values(m.values)) for m in matches)


def found_in(table: pa.Table, query: ast.Query) -> Counter[Any]:
    """Return the matches in a table of results in the same form."""
    layout = layout_of(query)
    found: Counter[Any] = Counter()
    for row in matches_of(table):
        named = dict(zip(layout.names(), (row[name] for name in layout.names()), strict=True))
        columns = list(named.values())
        key, window = tuple(columns[1 : 1 + len(layout.keys)]), columns[1 + len(layout.keys)]
        lists = columns[5 + len(layout.keys) :]
        events = {
            variable: tuple(event["seq"] for event in bound)
            for variable, bound in zip(layout.variables, lists, strict=False)
            if bound
        }
        if any(END.seq in bound for bound in events.values()):
            continue  # a match of the end itself
        values = dict(zip(layout.returns, lists[len(layout.variables) :], strict=True))
        name = round(window.timestamp() * 1e6) if isinstance(window, datetime) else window
        found[(row["query"], key, name, *_bound(events), *_values(values))] += 1
    return found


def _bound(events: Any) -> list[Any]:
    return sorted(events.items())


def _values(values: Any) -> list[Any]:
    return [(name, _value(value)) for name, value in values.items()]


def _value(value: Any) -> Any:
    """Numbers are compared as floats: a stream knows the type of a column, one process only what it has seen."""
    if isinstance(value, list):
        return tuple(map(_value, value))
    return value if value is None or isinstance(value, str | bool) else round(float(value), 6)


def in_one_process(case: Case) -> Counter[Any]:
    engine = engine_of(case.query)
    return found_by(engine.process(as_lists(in_order(case.events))) + engine.flush())


def waits_for_events(spec: Spec) -> bool:
    """Whether only events, not time, tell that a match is known: the end of a stream never comes then."""
    ((query, _),) = spec.queries
    return isinstance(query.within, ast.CountSpan) and rules(plan(query, Calls.DERIVED)).waits


@pytest.mark.parametrize("share", range(SHARES))
def test_a_batch_in_partitions_gives_what_one_process_gives(share: int) -> None:
    first = 200_000 + share * CASES // SHARES
    ways: Counter[str] = Counter()
    for seed, case in enumerate(seeded(CASES // SHARES, first), start=first):
        spec = spec_for(case.query)
        ways["key" if spec.by else "whole" if spec.reach is None else "slices"] += 1
        found = batched(spec, table_of(case.events, spec), Random(seed), in_memory_bytes=seed % 2 * 10**6)
        assert found_in(found, case.query) == in_one_process(case), f"seed {seed}: {case!r}"
    assert min(ways[way] for way in ("key", "slices", "whole")) >= 5, f"too few cases of a kind: {ways}"


@pytest.mark.parametrize("watermark_us", [None, DELAY_US])
@pytest.mark.parametrize("share", range(SHARES))
def test_a_stream_in_micro_batches_gives_what_one_process_gives(share: int, watermark_us: int | None) -> None:
    first = 210_000 + share * CASES // SHARES
    for seed, case in enumerate(seeded(CASES // SHARES, first), start=first):
        random, spec = Random(seed), spec_for(case.query, watermark_us=watermark_us)
        if waits_for_events(spec):
            continue
        events = in_order(case.events)
        if watermark_us is not None:  # each is late by less than the watermark waits
            events.sort(key=lambda event: event.ts + random.randrange(DELAY_US))
        cuts = sorted(random.randint(0, len(events)) for _ in range(random.randint(0, 4)))
        parts = [events[a:b] for a, b in zip([0, *cuts], [*cuts, len(events)], strict=True)]
        found = streamed(spec, [table_of(part, spec) for part in [*parts, [END]]], random)
        assert found_in(found, case.query) == in_one_process(case), f"seed {seed}: {case!r}"


# --- what is no event, and what is large ---------------------------------------------------------------------------


@pytest.mark.parametrize("broken", [{"ts": 2**63 - 1}, {"ts": START + 10**9, "type": None}])
def test_a_row_that_is_no_event_does_not_move_the_time(broken: dict[str, Any]) -> None:
    """Else everything after it would be late."""
    spec = spec_for(parse("PATTERN SEQ(A a, B b) WITHIN 1 min"), watermark_us=DELAY_US)
    first, last = Event("A", START, 0, {}), Event("B", START + 1_000_000, 2, {})
    bad = table_of([Event("A", START, 1, {})], spec)
    for name, value in broken.items():
        place = bad.schema.get_field_index(name)
        bad = bad.set_column(place, bad.schema.field(name), pa.array([value], bad.schema.field(name).type))
    tables = [table_of([first], spec), bad, table_of([last], spec), table_of([END], spec)]
    found = streamed(spec, tables, Random(0))
    outputs = Counter(found.column(OUTPUT).to_pylist())
    assert (outputs["matches"], outputs["malformed"], outputs["late"]) == (1, 1, 0)


def test_a_large_partition_stays_on_disk() -> None:
    """What a worker holds in memory at any time is a part of what it is given."""
    count, spec = 1_500_000, spec_for(parse("PATTERN SEQ(A a, B b) WITHIN 1 ms PARTITION BY k"))
    size = 50_000
    before, peak, total = pa.total_allocated_bytes(), 0, 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal peak, total
        for start in range(0, count, size):
            seq = np.arange(start, start + size, dtype=np.int64)
            ts = START + (seq * 7919 % count) * 1000  # in no order
            columns = {"type": np.array(["A", "B"])[seq % 2], "ts": ts, "seq": seq, "k": np.full(size, "p"), TIE: seq}
            schema = pa.schema([*spec.events, pa.field(TIE, pa.int64())])
            arrays = [
                pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(size, f.type) for f in schema
            ]
            batch = pa.record_batch(arrays, schema=schema)
            total += batch.nbytes
            yield batch
            peak = max(peak, pa.total_allocated_bytes() - before)

    for _ in BatchWorker(spec, in_memory_bytes=1 << 20)(batches()):
        peak = max(peak, pa.total_allocated_bytes() - before)
    assert peak < 0.6 * total, f"{peak:,} of {total:,} bytes"


def test_the_state_of_a_bucket_has_only_what_can_still_be_in_a_match() -> None:
    """It is written with every micro-batch; what is over need not be."""
    spec = spec_for(parse("PATTERN SEQ(A a, B b) WITHIN 1 s"))
    step_us, sizes, states = 10_000, (300, 4_000), list[int]()
    for size in sizes:
        events = [Event("AB"[n % 2], START + n * step_us, n, {"x": float(n)}) for n in range(size)]
        bucket = Bucket.of(spec, range(1), None)
        table = table_of(events, spec).append_column(BUCKET, pa.array(np.zeros(size, np.int32)))
        rows = [row for batch in Pack(spec, range(1))(table.to_batches()) for row in batch.to_pylist()]
        assert any(len(found) for found in bucket.step(Given.of(rows), 0))
        states.append(len(bucket.snapshot()))
    assert states[1] < 1.1 * states[0], f"{states} bytes after {sizes} events, of which 100 are in reach"
