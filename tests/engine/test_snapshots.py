"""Snapshots: the same continuation from any point; whatever else is given is refused."""

from __future__ import annotations

import ast as python
import re
import struct
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import xxhash
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penstock as pk
from penstock.engine import snapshots
from penstock.engine.engine import Engine
from penstock.engine.matches import Matches
from penstock.engine.snapshots import SnapshotError, pack, unpack
from tests.engine.comparing import again, as_lists, difference, engine_of, in_order, rows
from tests.generators import Case, cases, seeded

QUERIES = {
    "plain": "PATTERN SEQ(A a, B b, C c) WHERE a.k = b.k AND a.n < c.n WITHIN 1 h PARTITION BY flag",
    "general": "PATTERN SEQ(A a, NOT B b, C+ c[]) WHERE b.x > c[first].x AND c[i-1].x < c[i].x WITHIN 6 s",
    "held": "PATTERN SEQ(A a, B+ b[], NOT C c) WITHIN 10 s WINDOW 20 s ON A s SELECT CUMULATIVE CONSUME ALL",
    "windows": "PATTERN SEQ(A a, B b) WITHIN 10 s WINDOW 9 s EVERY 1 s DISTINCT SELECT FIRST CONSUME a RETURN a.k",
}


def stream_of(size: int) -> dict[str, list[Any]]:
    random = Random(size)
    return {
        "type": [random.choice("ABC") for _ in range(size)],
        "ts": [1_000_000 * number for number in range(size)],
        "n": [random.choice([1, 2, None]) for _ in range(size)],
        "x": [random.random() for _ in range(size)],
        "k": [random.choice("pqr") for _ in range(size)],
        "flag": [random.choice([True, False]) for _ in range(size)],
    }


def part_of(batch: dict[str, list[Any]], start: int, stop: int) -> dict[str, list[Any]]:
    return {name: values[start:stop] for name, values in batch.items()}


def engine_on(query: str, size: int = 60) -> Engine:
    engine = Engine(pk.parse(query))
    engine.process(stream_of(size))
    return engine


@pytest.fixture(params=QUERIES, scope="module")
def blob(request: pytest.FixtureRequest) -> bytes:
    return engine_on(QUERIES[request.param]).snapshot()


# --- going on -------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases(), st.integers(0, 14))
def test_the_same_continuation_from_any_point(case: Case, cut: int) -> None:
    engine = engine_of(case.query)
    events = in_order(case.events)
    matches = engine.process(as_lists(events[:cut]))
    restored = again(engine)
    rest = engine.process(as_lists(events[cut:])) + engine.flush()
    rest_of_restored = restored.process(as_lists(events[cut:])) + restored.flush()
    assert rows(rest_of_restored) == rows(rest)
    assert not difference(case, matches + rest_of_restored)


def test_a_snapshot_of_what_was_restored_is_the_same() -> None:
    for case in seeded(100, 1000):
        engine = engine_of(case.query)
        engine.process(as_lists(in_order(case.events)))
        blob = engine.snapshot()
        assert engine.snapshot() == blob
        assert again(engine).snapshot() == blob, case


@pytest.mark.parametrize("query", QUERIES.values())
def test_snapshots_of_long_streams(query: str) -> None:
    """Restored after each of many batches, an engine finds what one finds that never stops."""
    size, step = 700, 50
    batch = stream_of(size)
    steady, restored = Engine(pk.parse(query)), Engine(pk.parse(query))
    expected, found = Matches(), Matches()
    for start in range(0, size, step):
        expected += steady.process(part_of(batch, start, start + step))
        restored = again(restored)
        found += restored.process(part_of(batch, start, start + step))
    assert rows(found + restored.flush()) == rows(expected + steady.flush())
    assert len(found) > 20


def test_a_snapshot_is_not_touched_by_what_follows() -> None:
    engine = engine_on(QUERIES["plain"])
    blob = engine.snapshot()
    copy = bytes(blob)
    engines = [Engine.restore(blob), Engine.restore(blob)]
    later = {**stream_of(40), "ts": [10**9 + second for second in range(40)]}
    once, twice = (rows(each.process(later)) for each in engines)
    assert once == twice
    assert blob == copy


def test_what_was_restored_has_as_much_room_as_what_is_new() -> None:
    """Little room would be filled again and again, and what is found come in as many pieces."""
    k = np.arange(20_000)
    stream = {"type": np.where(k % 2, "B", "A").tolist(), "ts": k * 1000, "seq": k, "v": k * 7 % 11}
    first, rest = ({name: column[span] for name, column in stream.items()} for span in (slice(1000), slice(1000, None)))
    engine = pk.Engine(pk.parse("PATTERN SEQ(A a, B b) WHERE b.v > a.v WITHIN 20 ms"), plan="automaton")
    engine.process(first)
    restored = pk.Engine.restore(engine.snapshot())
    pieces, of_restored = (len(each.process(rest).chunks) for each in (engine, restored))
    assert of_restored <= pieces + 3  # room for matches grows from its beginning again


def test_max_runs_and_columns_survive() -> None:
    engine = Engine(pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 h"), max_runs=3, time="when")
    engine.process({"type": ["A", "A"], "when": [1, 2]})
    with pytest.raises(pk.PenstockError, match="more than 3 runs"):
        again(engine).process({"type": ["A", "A"], "when": [3, 4]})


# --- what is refused ------------------------------------------------------------------------------------------


def refused(blob: Any, told: str) -> None:
    with pytest.raises(SnapshotError, match=told):
        Engine.restore(blob)


def test_truncated(blob: bytes) -> None:
    lengths = {0, 1, 7, 8, 9, 10, 17, 18, 25, 26, 27, 40, 100, len(blob) // 2, len(blob) - 8, len(blob) - 1}
    for length in sorted(lengths | {len(blob) * k // 50 for k in range(50)}):
        refused(blob[:length], "too few" if length < 26 else "truncated or was altered")


def test_longer(blob: bytes) -> None:
    refused(blob + b"\0", "truncated or was altered")
    refused(blob + blob, "truncated or was altered")


def test_altered(blob: bytes) -> None:
    random = Random(7)
    for place in [*range(60), *(random.randrange(len(blob)) for _ in range(240))]:
        altered = bytearray(blob)
        altered[place] ^= 1 << random.randrange(8)
        told = "does not begin like" if place < 8 else "has format" if place < 10 else "truncated or was altered"
        refused(bytes(altered), told)


def test_swapped_pieces(blob: bytes) -> None:
    middle = len(blob) // 2
    refused(blob[:26] + blob[middle:] + blob[26:middle], "truncated or was altered")


@pytest.mark.parametrize("version", [0, snapshots.VERSION + 1, 65_535])
def test_another_version(blob: bytes, version: int) -> None:
    told = f"has format {version}, and this version .* reads format {snapshots.VERSION}\n  fix: restore it with"
    refused(blob[:8] + struct.pack("<H", version) + blob[10:], told)


@pytest.mark.parametrize("length", [0, 1, 25, 26, 27, 100, 10_000])
def test_random_bytes(length: int) -> None:
    for seed in range(20):
        refused(Random(seed).randbytes(length), "no snapshot")
        refused(snapshots.MAGIC + Random(seed).randbytes(length), "no snapshot|has format|truncated")


@pytest.mark.parametrize("thing", [None, "penstock", 5, ["penstock"], np.zeros(3)])
def test_what_is_not_bytes(thing: Any) -> None:
    refused(thing, "no snapshot")


def sealed(header: bytes, data: bytes = b"") -> bytes:
    """Return a blob whose checksum is right, whatever it says."""
    length = struct.pack("<Q", len(header))
    digest = xxhash.xxh3_64_intdigest(length + header + data)
    return snapshots.MAGIC + struct.pack("<HQQ", snapshots.VERSION, len(header), digest) + header + data


@pytest.mark.parametrize(
    "header",
    [b"", b"{", b"[]", b"5", b"null", b"{}", b'{"queries": 5}', b"\xff\xfe",
     b'{"queries": {"\\u0000array": ["int64", [9], 0]}}', b'{"queries": {"\\u0000array": ["object", [1], 0]}}',
     b'{"queries": {"\\u0000array": 5}}', b'{"queries": {"\\u0000array": ["int64", [-1], 0]}}'],
)  # fmt: skip
def test_a_right_checksum_over_nonsense(header: bytes) -> None:
    refused(sealed(header), "does not hold what it should")


def test_a_right_checksum_over_a_part_of_a_state(blob: bytes) -> None:
    tree = unpack(blob)
    for path in ([], ["reader"], ["detectors", "0"]):
        here = tree
        for name in path:
            here = here[name]
        for name in list(here):
            kept = here.pop(name)
            refused(pack(tree), "does not hold what it should")
            here[name] = kept
    assert rows(Engine.restore(pack(tree)).flush()) == rows(Engine.restore(blob).flush())


# --- bytes ----------------------------------------------------------------------------------------------------

NUMBERS = st.integers(-(2**63), 2**63 - 1)
TABLES = st.builds(
    lambda row, width: np.array([row] * width, np.int64), st.lists(NUMBERS, max_size=4), st.integers(1, 3)
)
LEAVES = st.one_of(
    st.text(max_size=5),
    NUMBERS,
    st.floats(allow_nan=False),
    st.none(),
    st.lists(st.text(max_size=3), max_size=3),
    TABLES,
    st.lists(st.booleans(), max_size=9).map(lambda values: np.array(values, np.bool_)),
)
TREES = st.dictionaries(st.text("abc", max_size=3), LEAVES | st.dictionaries(st.text("abc", max_size=3), LEAVES))


@settings(max_examples=50, deadline=None)
@given(TREES)
def test_a_tree_comes_back(tree: dict[str, Any]) -> None:
    np.testing.assert_equal(unpack(pack(tree)), tree)


def test_parts_of_arrays_come_back() -> None:
    whole = np.arange(24, dtype=np.int32).reshape(4, 6)
    tree = {"part": whole[:, 1:4], "column": whole[:, 2], "turned": whole.T, "none": whole[:, :0]}
    np.testing.assert_equal(unpack(pack(tree)), tree)


def test_nothing_is_pickled() -> None:
    """No module of the engine imports what makes objects of bytes, and arrays of objects are refused."""
    for path in Path(snapshots.__file__).parent.glob("*.py"):
        for node in python.walk(python.parse(path.read_text())):
            if isinstance(node, python.Import | python.ImportFrom):
                names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                assert not re.search(r"pickle|marshal|shelve|dill|joblib", " ".join(names)), path
    with pytest.raises(AssertionError, match="object"):
        pack({"objects": np.array([object()])})
