"""Readers for the queries of EIRES and of the state-based paper: excerpts made here, and the recorded data sets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.lab.readers import (
    DataError,
    read_bike_trips,
    read_card_transactions,
    read_dlrm_instances,
    read_fires,
    read_gpu_pods,
)
from tests.lab.corpus import QUERIES
from tests.lab.test_readers import DATA, RECORDED, first, ordered
from tests.pattern.test_corpus import schema_of, schema_path

FRAUD, FIRE, CLUSTER = "eires-listing1-fraud", "eires-listing3-bushfire", "eires-listing4-cluster"
BIKES = "statebased-example1-bikes"
KINDS = {
    "int": pa.types.is_integer, "float": pa.types.is_floating,
    "string": lambda kind: pa.types.is_string(kind.value_type if pa.types.is_dictionary(kind) else kind),
}  # fmt: skip


def at(year: int, month: int, day: int, hour: int, minute: int) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


def found(name: str, table: pa.Table, changes: Mapping[str, str] | None = None, **given: Any) -> pk.Matches:
    """Return the matches of a query of the papers, with some of its text changed."""
    text = (QUERIES / f"{name}.cep").read_text(encoding="utf-8")
    for old, new in (changes or {}).items():
        assert old in text
        text = text.replace(old, new)
    engine = pk.Engine(pk.parse(text, name), seq="number", **given)
    return engine.process(table.append_column("number", pa.array(np.arange(len(table))))) + engine.flush()


@pytest.fixture
def cards(tmp_path: Path) -> pa.Table:
    """Customer 7: a payment of 150, one of 300 that is refused, and one of 180 elsewhere; customer 8 pays once."""
    rows = [(0, 1, 7, 3, 150.0), (1, 2, 8, 3, 20.0), (2, 3, 7, 4, 300.0), (4, 4, 7, 5, 180.0), (9, 5, 7, 6, 190.0)]
    return read_card_transactions(written(tmp_path, cards_of(rows)))


@pytest.fixture
def pods(tmp_path: Path) -> pa.Table:
    rows = [(0, "SUBMIT", 4), (0, "SCHEDULE", 4), (5, "SUBMIT", 12), (60, "FAIL", 4), (70, "DELETE", 12)]
    table = pa.table(
        {
            "time": pa.array([row[0] for row in rows], pa.int64()),
            "event_type": [row[1] for row in rows],
            "name": [f"openb-pod-{row[2]:04}" for row in rows],
            **{
                name: pa.array([1000] * len(rows), pa.int32())
                for name in ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
            },
            "qos": ["LS"] * len(rows),
            "pod_phase": ["Failed"] * len(rows),
        }
    )
    return read_gpu_pods(written(tmp_path, table))


@pytest.fixture
def fires(tmp_path: Path) -> pa.Table:
    """A strong fire that is seen twice in half an hour, and a weak one."""
    rows = [(340.0, 310.0, 90.0, -11.8), (345.0, 312.0, 95.0, -11.2), (310.0, 300.0, 9.0, -30.4)]
    table = pa.table(
        {
            "acq_datetime": pa.array([at(2019, 8, 1, 9, minute) for minute in (0, 30, 30)], pa.timestamp("us", "UTC")),
            "latitude": [row[3] for row in rows],
            "longitude": [142.06] * 3,
            **{name: [row[k] for row in rows] for k, name in enumerate(("brightness", "bright_t31", "frp"))},
            "confidence": [70] * 3,
            "satellite": ["Terra"] * 3,
            "daynight": ["D", "D", "N"],
        }
    )
    return read_fires(written(tmp_path, table))


@pytest.fixture
def trips(tmp_path: Path) -> pa.Table:
    """Bike 5 goes from one station to another, where it is taken again in the minute in which it comes."""
    stations = [("Grove St", 40.7196, -74.0431), ("Brunswick St", 40.7242, -74.0507)]
    table = pa.table(
        {
            "starttime": pa.array([at(2017, 1, 1, 5, 10), at(2017, 1, 1, 5, 20)], pa.timestamp("us", "UTC")),
            "stoptime": pa.array([at(2017, 1, 1, 5, 20), at(2017, 1, 1, 5, 40)], pa.timestamp("us", "UTC")),
            "bikeid": [5, 5],
            "usertype": ["Subscriber", None],
            **{
                f"{end}_station_{name}": [stations[i][k] for i in places]
                for end, places in (("start", (0, 1)), ("end", (1, 0)))
                for k, name in enumerate(("name", "latitude", "longitude"))
            },
        }
    )
    return read_bike_trips(written(tmp_path, table))


def cards_of(rows: list[tuple[int, int, int, int, float]]) -> pa.Table:
    minute, number, customer, terminal, amount = (list(each) for each in zip(*rows, strict=True))
    return pa.table(
        {
            "TX_DATETIME": pa.array([at(2018, 4, 1, 0, each) for each in minute], pa.timestamp("us", "UTC")),
            "TRANSACTION_ID": number,
            "CUSTOMER_ID": customer,
            "TERMINAL_ID": terminal,
            "TX_AMOUNT": amount,
            "TX_FRAUD": [int(each > 220) for each in amount],
            "TX_FRAUD_SCENARIO": [int(each > 220) for each in amount],
        }
    )


def written(folder: Path, table: pa.Table) -> Path:
    pq.write_table(table, folder / "excerpt.parquet")
    return folder / "excerpt.parquet"


@pytest.mark.parametrize(("name", "made"), [(FRAUD, "cards"), (FIRE, "fires"), (CLUSTER, "pods"), (BIKES, "trips")])
def test_what_the_schema_of_a_query_names_is_there_with_its_kind(
    name: str, made: str, request: pytest.FixtureRequest
) -> None:
    table: pa.Table = request.getfixturevalue(made)
    for attributes in schema_of(schema_path(name)).types.values():
        for attribute, kind in attributes.items():
            assert KINDS[str(getattr(kind, "value", kind))](table.schema.field(attribute).type), attribute


class TestCards:
    # The listing in proportion to payments of at most 220.
    SMALL: Mapping[str, str] = {"t1.vol > 10k": "t1.vol > 100", "t2.vol > 10k": "t2.vol > 100"}
    REMOTES: Mapping[str, Any] = {"locations": {"7": {"6"}}, "limits": {}, "clients": {}}

    def test_payments_above_the_limit_are_refused(self, cards: pa.Table) -> None:
        assert cards.column("type").to_pylist() == ["T", "T", "D", "T", "T"]
        assert cards.column("fraud").to_pylist() == [False, False, True, False, False]
        assert first(cards, "ts", 1) == [1_522_540_800_000_000]
        assert cards.slice(0, 1).select(["id", "cc", "vol", "loc", "user", "ben"]).to_pylist() == [
            {"id": 1, "cc": 7, "vol": 150.0, "loc": "3", "user": "7", "ben": "3"}
        ]

    def test_listing_1_finds_the_payment_at_an_unknown_place(self, cards: pa.Table) -> None:
        matches = found(FRAUD, cards, self.SMALL, remotes=self.REMOTES)
        assert [(match["t1"], match["d"], match["t2"]) for match in matches] == [((0,), (2,), (3,))]

    def test_listing_1_as_it_is_finds_nothing(self, cards: pa.Table) -> None:
        assert len(found(FRAUD, cards, remotes=self.REMOTES)) == 0

    @RECORDED
    def test_the_data_set(self) -> None:
        table = read_card_transactions(DATA / "card_transactions_simulated_2018.parquet")
        assert len(table) == 872_795
        assert ordered(table)
        refused = table.filter(pc.equal(table.column("type"), "D"))
        assert len(refused) == 1_603
        assert pc.all(refused.column("fraud")).as_py()
        assert pc.mean(table.column("fraud").cast(pa.int8())).as_py() == pytest.approx(0.0078, abs=0.0001)
        known = read_known_places(table)
        changes = {**self.SMALL, "5min": "3 days"}
        matches = found(FRAUD, table, changes, remotes={"locations": known, "limits": {}, "clients": {}})
        assert len(matches) > 0


def read_known_places(table: pa.Table) -> dict[str, set[str]]:
    """Return where each customer paid more than once."""
    counts = table.group_by(["user", "loc"]).aggregate([("ts", "count")]).to_pylist()
    known: dict[str, set[str]] = {}
    for row in counts:
        if row["ts_count"] > 1:
            known.setdefault(row["user"], set()).add(row["loc"])
    return known


class TestClusterTasks:
    FAILED = "PATTERN SEQ(Su a, Sc b, Fa c) WHERE [task_id] WITHIN 1 h SELECT EACH"

    def test_events_of_pods(self, pods: pa.Table) -> None:
        assert pods.column("type").to_pylist() == ["Su", "Sc", "Su", "Fa", "De"]
        assert pods.column("task_id").to_pylist() == [4, 4, 12, 4, 12]
        assert pods.column("ts").to_pylist() == [0, 0, 5_000_000, 60_000_000, 70_000_000]
        assert "pod_phase" not in pods.column_names
        failed = pk.Engine(pk.parse(self.FAILED)).process(pods)
        assert [(match["a"], match["b"], match["c"]) for match in failed] == [((0,), (1,), (3,))]

    def test_listing_4_runs_and_finds_nothing_without_machines(self, pods: pa.Table) -> None:
        assert len(found(CLUSTER, pods, remotes={"regions": {}})) == 0

    def test_an_unknown_event_is_refused(self, tmp_path: Path) -> None:
        table = pa.table(
            {
                "time": [0.0, 1.0], "event_type": ["SUBMIT", "EVICT"], "instance_sn": ["instance_1"] * 2,
                "role": ["CN"] * 2, "app_name": ["app_1"] * 2,
                **{f"{name}_request": [1] * 2 for name in ("cpu", "gpu", "rdma", "memory", "disk")},
            }
        )  # fmt: skip
        with pytest.raises(DataError, match="EVICT is no event type\n  fix: `event_type` must be one of SUBMIT"):
            read_dlrm_instances(written(tmp_path, table))

    @RECORDED
    def test_the_data_sets(self) -> None:
        table = read_gpu_pods(DATA / "alibaba_gpu_pod_events_2023.parquet")
        assert kinds_of(table) == {"Su": 8152, "Sc": 7255, "Fa": 1870, "Fi": 192, "De": 6090}
        assert ordered(table)
        failed = pk.Engine(pk.parse(self.FAILED)).process(table)
        assert 100 < len(failed) <= 1870
        instances = read_dlrm_instances(DATA / "alibaba_dlrm_instance_events_2025.parquet")
        assert kinds_of(instances) == {"Su": 16_591, "Sc": 16_591, "De": 14_993}
        assert ordered(instances)
        assert pc.count_distinct(instances.column("app_name")).as_py() == 156


def kinds_of(table: pa.Table) -> dict[str, int]:
    return {row["values"]: row["counts"] for row in pc.value_counts(table.column("type").combine_chunks()).to_pylist()}


class TestFires:
    GIVEN: Mapping[str, Any] = {
        "functions": {"overlap": lambda boundary: boundary, "UDF1": lambda a, b: b},
        "remotes": {"temperature": {"-12,142": 47.0}, "humidity": {"-12,142": 20.0}},
    }

    def test_three_readings_of_each_fire(self, fires: pa.Table) -> None:
        assert set(fires.column("type").to_pylist()) == {"Satellite"}
        assert first(fires, "channel", 6) == [7, 14, 16, 7, 14, 16]
        assert first(fires, "value", 3) == [340.0, 310.0, 90.0]
        assert fires.column("level").to_pylist() == ["high"] * 6 + ["low"] * 3
        assert fires.column("boundary").to_pylist()[::3] == ["-12,142", "-12,142", "-31,142"]
        assert fires.column("is_day").to_pylist()[::3] == [True, True, False]

    def test_listing_3_finds_the_fire_once_and_twice_in_a_row(self, fires: pa.Table) -> None:
        matches = [(match["a"], match["b"], match["c"]) for match in found(FIRE, fires, **self.GIVEN)]
        assert ((0,), (1,), (2,)) in matches
        assert ((0, 3), (1, 4), (2, 5)) in matches
        assert all(row < 6 for match in matches for part in match for row in part)

    def test_other_cells(self, fires: pa.Table, tmp_path: Path) -> None:
        coarse = read_fires(tmp_path / "excerpt.parquet", cell=5, rows=1)
        assert set(coarse.column("boundary").to_pylist()) == {"-15,140"}

    @RECORDED
    def test_the_data_set(self) -> None:
        table = read_fires(DATA / "australia_fires_modis_2019.parquet")
        assert len(table) == 3 * 36_011
        assert ordered(table)
        for channel in (7, 14, 16):
            levels = table.filter(pc.equal(table.column("channel"), channel)).column("level").cast(pa.string())
            assert 0.2 < pc.mean(pc.equal(levels, "high").cast(pa.int8())).as_py() < 0.4
        hours = np.unique(table.filter(table.column("is_day")).column("ts").to_numpy() // 3_600_000_000 % 24)
        assert set(hours.tolist()) == {23, 0, 1, 2, 3, 4, 5, 6}


class TestBikeTrips:
    NEAR: Mapping[str, str] = {"dist(c.x, c.y, a.x, a.y) > 300": "dist(c.x, c.y, a.x, a.y) <= 300"}
    GIVEN: Mapping[str, Any] = {"functions": {"warning": lambda a, b, c, d: 1.0}}

    def test_a_trip_is_asked_for_begun_and_ended(self, trips: pa.Table) -> None:
        told = [(row["type"], row["UID"], row["BID"], row["station"]) for row in trips.to_pylist()]
        assert told == [
            ("req", 0, None, "Grove St"), ("unlock", 0, 5, "Grove St"), ("req", 1, None, "Brunswick St"),
            ("avail", None, 5, "Brunswick St"), ("unlock", 1, 5, "Brunswick St"), ("avail", None, 5, "Grove St"),
        ]  # fmt: skip
        assert ordered(trips)
        assert np.diff(trips.column("ts").to_numpy())[:4].tolist() == [120_000_000, 480_000_000, 120_000_000, 0]
        x, y = (trips.column(name).to_numpy() for name in "xy")
        assert np.hypot(x[3] - x[0], y[3] - y[0]) == pytest.approx(820, abs=20)
        assert trips.column("is_subscriber").to_pylist() == [True, True, None, True, None, None]

    def test_example_1_for_bikes_that_are_taken_near_by(self, trips: pa.Table) -> None:
        changes = {**self.NEAR, "COUNT(b[])>5": "COUNT(b[])>0"}
        assert [(m["a"], m["b"], m["c"]) for m in found(BIKES, trips, changes, **self.GIVEN)] == [((2,), (3,), (4,))]
        assert len(found(BIKES, trips, {"COUNT(b[])>5": "COUNT(b[])>0"}, **self.GIVEN)) == 0

    @RECORDED
    def test_the_data_set(self) -> None:
        table = read_bike_trips(DATA / "jersey_city_bike_trips.parquet")
        assert len(table) == 3 * 344_708
        assert ordered(table)
        some = table.slice(0, 60_000)
        changes = {**self.NEAR, "COUNT(b[])>5": "COUNT(b[])>2"}
        assert len(found(BIKES, some, changes, **self.GIVEN)) > 0
        assert len(found(BIKES, some, **self.GIVEN)) == 0
