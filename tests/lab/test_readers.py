"""Readers: small files of each format, and the recorded data sets if they lie beside the repository."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.lab import statistics
from penstock.lab.completion import completion
from penstock.lab.readers import (
    DataError,
    read_debs2013,
    read_dublin_buses,
    read_eoddata,
    read_minute_bars,
    read_soccer_match,
    read_toronto_buses,
    recorded,
)
from tests.lab.corpus import query

DATA = Path(__file__).parents[2].parent / "shared" / "data"
RECORDED = pytest.mark.skipif(not DATA.exists(), reason=f"the recorded data are not there: {DATA}")


def ordered(table: pa.Table) -> bool:
    return bool((np.diff(table.column("ts").to_numpy()) >= 0).all())


def first(table: pa.Table, name: str, count: int) -> list[object]:
    return list(table.column(name).slice(0, count).to_pylist())


@pytest.fixture(scope="module")
def bars() -> pa.Table:
    return read_minute_bars(DATA / "us_minute_bars_2018.parquet")


@pytest.fixture(scope="module")
def match() -> pa.Table:
    return read_soccer_match(DATA / "soccer_match_positions_2019.parquet")


class TestWhereDataLie:
    def test_the_environment_names_the_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "some.parquet").touch()
        monkeypatch.setenv("PENSTOCK_DATA", str(tmp_path))
        assert recorded("some") == tmp_path / "some.parquet"
        with pytest.raises(DataError, match=r"there is no other\.parquet"):
            recorded("other")

    def test_without_a_folder_the_error_says_what_to_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("PENSTOCK_DATA", raising=False)
        with pytest.raises(DataError, match="fix: set PENSTOCK_DATA"):
            recorded("some")

    def test_a_file_of_another_format_is_refused(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"timestamp": [1]}), tmp_path / "other.parquet")
        with pytest.raises(DataError, match="it has no symbol, open"):
            read_minute_bars(tmp_path / "other.parquet")
        (tmp_path / "other.csv").write_text("1,2\n")
        with pytest.raises(DataError, match="fix: a file with the columns symbol"):
            read_eoddata(tmp_path / "other.csv")


def test_only_the_largest_symbols_are_kept(tmp_path: Path) -> None:
    names, price = ["ZZZ", "AAA", "MMM"], pa.array([1.0, 2.0, 3.0])
    bars = {"timestamp": pa.array([0, 0, 0], pa.timestamp("us", "UTC")), "symbol": names, "volume": [10, 50, 100]}
    pq.write_table(pa.table({**bars, **dict.fromkeys(("open", "high", "low", "close"), price)}), tmp_path / "b.parquet")
    whole, largest = (
        read_minute_bars(tmp_path / "b.parquet", leaders=1, followers=1, others=others) for others in (True, False)
    )
    assert first(whole, "type", 3) == ["MLE1", "C1", "ZZZ"]
    assert first(largest, "type", 3) == ["MLE1", "C1"]


class TestEoddata:
    def test_symbols_are_renamed_by_traded_value(self, tmp_path: Path) -> None:
        lines = ["ZZZ,200802010930,1,1,1,1,10", "AAA,200802010930,2,2,2,2,50", "MMM,200802010930,5,5,5,5,100",
                 "MMM,200802010931,5,6,5,6,100", "BBB,200802010931,1,1,1,1,1"]  # fmt: skip
        (tmp_path / "bars.txt").write_text("\n".join(lines))
        table = read_eoddata(tmp_path / "bars.txt", leaders=1, followers=2)
        assert table.column("type").to_pylist() == ["MLE1", "C1", "C2", "MLE1", "BBB"]
        assert first(table, "ts", 1) == [1_201_876_200_000_000]  # 14:30 UTC
        assert table.column("close").to_pylist() == [5, 2, 1, 6, 1]

    def test_other_times_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "bars.txt").write_text("AAA,2008-02-01,1,1,1,1,10\n")
        with pytest.raises(DataError, match="times must be like 200802010930"):
            read_eoddata(tmp_path / "bars.txt")

    @RECORDED
    def test_the_sample_is_the_same_as_lines_and_as_parquet(self, tmp_path: Path) -> None:
        path = DATA / "nasdaq_eoddata_sample_2008.parquet"
        sample = pq.read_table(path)
        times = pc.strftime(pc.cast(sample.column("timestamp"), pa.timestamp("us", "America/New_York")), "%Y%m%d%H%M")
        rows = zip(*(sample.column(name).to_pylist() for name in ("symbol", "open", "high", "low", "close", "volume")),
                   [text[:12] for text in times.to_pylist()], strict=True)  # fmt: skip
        lines = [f"{symbol},{at},{a},{b},{c},{d},{volume}" for symbol, a, b, c, d, volume, at in rows]
        (tmp_path / "bars.txt").write_text("\n".join(lines))
        options = {"leaders": 4, "followers": 3}
        assert read_eoddata(tmp_path / "bars.txt", **options).equals(read_minute_bars(path, **options))  # type: ignore[arg-type]


@RECORDED
class TestMinuteBars:
    def test_bars_are_events_of_284_symbols(self, bars: pa.Table) -> None:
        assert len(bars) == 1_863_910
        assert ordered(bars)
        assert first(bars, "type", 6) == ["MLE1", "MLE2", "MLE3", "MLE4", "C1", "C2"]
        assert first(bars, "close", 1) == [172.25]  # Apple, in which most value is traded

    def test_rare_moves_and_no_lead(self, bars: pa.Table) -> None:
        found = statistics.quotes(bars)
        assert found.symbols == 284
        assert 0.001 < found.moves[0.01] < 0.002
        assert found.lead[0] > 0.4
        assert abs(found.lead[1]) < 0.02

    def test_the_first_rows_are_enough(self) -> None:
        assert len(read_minute_bars(DATA / "us_minute_bars_2018.parquet", rows=1000)) == 1000


@RECORDED
class TestTheMatchOf2019:
    def test_one_event_per_second_and_object(self, match: pa.Table) -> None:
        counts = match.group_by(["type", "team"]).aggregate([("ts", "count")])
        assert len(counts) == 23
        assert set(counts.column("ts_count").to_pylist()) == {2765}
        assert ordered(match)

    def test_roles_are_told_by_mean_places(self, match: pa.Table) -> None:
        means = {
            (row["type"], row["team"]): row["x_mean"]
            for row in match.group_by(["type", "team"]).aggregate([("x", "mean")]).to_pylist()
        }
        assert means["G", "A"] == pytest.approx(-41.4, abs=0.1)  # number 1
        assert means["G", "B"] == pytest.approx(38.3, abs=0.1)
        assert means["S", "A"] > 0 > means["S", "B"]

    def test_query_6_completes_about_as_often_as_the_thesis_says(self, match: pa.Table) -> None:
        found = completion(query("thesis-table4.2-q6"), match.to_batches())
        assert found.opened == 100
        assert 0.03 < found.share < 0.09

    def test_other_rates(self) -> None:
        table = read_soccer_match(DATA / "soccer_match_positions_2019.parquet", hertz=25)
        assert len(table) == 1_589_645


class TestDebs2013:
    def test_lines_of_the_challenge(self, tmp_path: Path) -> None:
        rows = [
            (13, 10753_295594424116, -40_000, 0), (14, 10753_300000000000, -40_100, 0),
            (59, 10753_310000000000, 10_000, 500), (47, 10753_320000000000, -20_000, 0),
            (4, 10753_290000000000, 10_000, 0), (8, 10753_291000000000, 60_000, 0),
            (61, 10753_330000000000, 41_000, 0), (67, 10753_340000000000, 9_000, 100),
            (105, 10753_350000000000, 0, 0), (59, 10754_310000000000, 20_000, 500),
        ]  # fmt: skip
        rows.sort(key=lambda row: row[1])
        (tmp_path / "full-game").write_text("\n".join(f"{s},{t},{x},{y},0,0,0,0,0,0,0,0,0" for s, t, x, y in rows))
        table = read_debs2013(tmp_path / "full-game")
        told = [(row["type"], row["team"], row["x"], row["possession"]) for row in table.to_pylist()]
        assert told == [
            ("BALL", None, 10.0, False), ("G", "A", -40.0, False), ("S", "A", 10.0, True), ("D1", "A", -20.0, False),
            ("G", "B", 41.0, False), ("S", "B", 9.0, False), ("S", "A", 20.0, False),
        ]  # fmt: skip
        assert first(table, "ts", 1) == [10_753_290_000]

    @RECORDED
    def test_the_sample(self) -> None:
        table = read_debs2013(DATA / "debs2013_soccer_sample.parquet")
        assert ordered(table)
        assert 60 < len(table) <= 3 * 23  # three sensors, 21.4 s
        assert not pc.any(table.column("possession")).as_py()  # the ball is at rest, far away


class TestBuses:
    def test_lines_of_dublin(self, tmp_path: Path) -> None:
        lines = [
            "1357000000000000,46,0,046A0001,2012-12-31,5826,PO,0,-6.25,53.34,130,46001,33145,1715,1",
            "1357000020000000,15,0,00150001,2012-12-31,5827,PO,1,-6.26,53.35,-20,15001,33001,1715,0",
            "1357000010000000,46,0,046A0001,2012-12-31,5828,PO,0,-6.27,53.36,,46002,33009,null,0",
        ]
        (tmp_path / "siri.csv").write_text("\n".join(lines))
        table = read_dublin_buses(tmp_path / "siri.csv")
        assert table.column("type").to_pylist() == ["B2", "B1", "B3"]  # line 46 has more reports; 33009 before 33145
        assert table.column("delay").to_pylist() == [timedelta(seconds=130), None, timedelta(seconds=-20)]
        assert table.column("at_stop").to_pylist() == [True, False, False]
        assert len(pk.Engine(query("thesis-table3.1-q4-sequence")).process(table)) == 0

    @RECORDED
    def test_toronto_has_stops_and_standing_buses(self) -> None:
        table = read_toronto_buses(
            DATA / "toronto_bus_gps_2016.parquet", DATA / "toronto_bus_stops_2016.parquet", rows=200_000
        )
        assert len(table) == 200_000
        assert ordered(table)
        assert "delay" not in table.column_names
        assert pc.approximate_median(table.column("distance")).as_py() < 200
        assert 0.02 < statistics.reports(table).late < 0.3
