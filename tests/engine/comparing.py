"""The engine beside the reference matcher: cases fed in pieces and forms, matches compared one by one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from penstock.engine.engine import Engine
from penstock.engine.matches import Matches
from penstock.pattern.parser import parse
from penstock.reference import Event, Match, find
from penstock.testing import stream
from tests.generators import FUNCTIONS, REMOTES, Case

Row = tuple[Any, ...]

# The attributes of the generators, and others of cases by hand; a batch has all of them.
_KINDS = {"n": pa.int64(), "x": pa.float64(), "k": pa.string(), "flag": pa.bool_(), "v": None, "id": None}


def case_of(query: str, events: str) -> Case:
    """Return a case from its text."""
    return Case(parse(f"PATTERN {query}"), stream(events))


def engine_of(queries: Any, **options: Any) -> Engine:
    """Return an engine for queries of the generators."""
    return Engine(queries, functions=FUNCTIONS, remotes=REMOTES, **options)


def in_order(events: Iterable[Event]) -> list[Event]:
    return sorted(events, key=lambda event: (event.ts, event.seq))


# --- events as batches ----------------------------------------------------------------------------------------


def as_lists(events: Sequence[Event]) -> dict[str, list[Any]]:
    """Return a batch."""
    return {
        "type": [event.type for event in events],
        "ts": [event.ts for event in events],
        "seq": [event.seq for event in events],
        **{name: [event.attributes.get(name) for event in events] for name in _KINDS},
    }


def as_arrays(events: Sequence[Event]) -> dict[str, Any]:
    columns = as_lists(events)
    numbers = {"ts": np.int64, "seq": np.int64, "n": np.float64, "x": np.float64}
    return {name: np.array(values, numbers.get(name, object)) for name, values in columns.items()}


def as_table(events: Sequence[Event]) -> pa.Table:
    kinds = {"type": pa.string(), "ts": pa.timestamp("us"), "seq": pa.int64(), **_KINDS}
    return pa.table({name: pa.array(values, kinds[name]) for name, values in as_lists(events).items()})


def as_record_batch(events: Sequence[Event]) -> pa.RecordBatch:
    (batch,) = as_table(events).combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], as_table([]).schema)]
    return batch


def as_pandas(events: Sequence[Event]) -> pd.DataFrame:
    kinds = {"ts": "int64", "seq": "int64", "n": "Int64", "x": "float64", "flag": "boolean"}
    return pd.DataFrame(as_lists(events), dtype="object").astype(kinds)


FORMS: dict[str, Callable[[Sequence[Event]], Any]] = {
    "lists": as_lists,
    "arrays": as_arrays,
    "table": as_table,
    "record batch": as_record_batch,
    "pandas": as_pandas,
    "polars": lambda events: pl.from_arrow(as_table(events)),
}


# --- feeding --------------------------------------------------------------------------------------------------


def pieces(events: Sequence[Event], cuts: Iterable[int]) -> Iterator[list[Event]]:
    """Yield the events in order, cut at these places."""
    ordered = in_order(events)
    places = sorted(min(cut, len(ordered)) for cut in cuts)
    for start, stop in pairwise([0, *places, len(ordered)]):
        yield ordered[start:stop]


def again(engine: Engine) -> Engine:
    """Return an engine that goes on from a snapshot of another."""
    return Engine.restore(engine.snapshot(), functions=FUNCTIONS, remotes=REMOTES)


def found(case: Case, random: Random, *, restores: bool = False, engine: Engine | None = None) -> Matches:
    """Return what the engine finds in a case that is fed in random pieces, with snapshots between some of them."""
    engine, matches = engine or engine_of(case.query), Matches()
    every = list(pieces(case.events, (random.randint(0, len(case.events)) for _ in range(random.randint(0, 3)))))
    chosen = random.randrange(len(every))
    for number, piece in enumerate(every):
        matches += engine.process(as_lists(piece))
        if restores and (number == chosen or random.random() < 0.2):
            engine = again(engine)
    return matches + engine.flush()


# --- comparing ------------------------------------------------------------------------------------------------


def rows(matches: Matches) -> list[Row]:
    """Return matches without their values, in their order."""
    return [(m.query, m.key, m.window, tuple(m.events.items()), m.first_ts, m.last_ts) for m in matches]


def row(match: Match) -> Row:
    """Return a match of the reference in the form of `rows`."""
    return match.query, match.key, match.window, match.bindings, match.first_ts, match.last_ts


def expected(case: Case) -> frozenset[Match]:
    return find(case.query, case.events, functions=FUNCTIONS, remotes=REMOTES)


def difference(case: Case, matches: Matches) -> str:
    """Return how matches differ from those of the reference, with multiplicity and values; nothing if they do not."""
    true = expected(case)
    got, wanted = Counter(rows(matches)), Counter(map(row, true))
    if got != wanted:
        return f"too many: {dict(got - wanted)}, too few: {dict(wanted - got)}"
    values = {row(match): match.values for match in true}
    for match, place in zip(matches, rows(matches), strict=True):
        there = values[place]
        if list(match.values) != list(there) or not all(is_close(match.values[n], there[n]) for n in there):
            return f"{place} has the values {dict(match.values)} instead of {dict(there)}"
    return ""


def is_close(a: Any, b: Any) -> bool:
    """Return whether two values of RETURN are the same; sums may differ by what rounding does."""
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(is_close, a, b))
    if a is None or b is None or isinstance(a, str) or isinstance(b, str):
        return bool(a == b)
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) and isinstance(a, bool) == isinstance(b, bool)
