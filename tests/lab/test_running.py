"""Specs are run: the same numbers for the same seed, nothing twice, in processes and on Spark."""

from __future__ import annotations

import io
import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from penstock.lab import running
from penstock.lab.cells import written
from penstock.lab.measures import COUNTED
from penstock.lab.report import report
from penstock.lab.results import FILE, Results, ResultsError, circumstances, found, kind_of, means, store, stored
from penstock.lab.running import Place, Plan, execute
from penstock.lab.spec import Spec, specs
from penstock.lab.trying import tried
from penstock.runtime.costs import Costs
from tests.lab.test_readers import DATA, RECORDED
from tests.lab.tiny import tiny

QUIET = Console(file=io.StringIO())


def run(folder: Path, spec: Spec | None = None, on: Place = "here", **options: Any) -> list[dict[str, Any]]:
    plan = Plan((spec or tiny(),), folder, seeds=options.pop("seeds", 1), on=on, **options)
    return execute(plan, QUIET).rows


def counted(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in ("fingerprint", *COUNTED)) for row in rows)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Some runs, as they are on disk."""
    folder = tmp_path_factory.mktemp("lab")
    run(folder)
    kept: list[dict[str, Any]] = pq.read_table(folder / FILE).to_pylist()
    return kept


def test_a_run_has_what_was_measured_and_how(rows: list[dict[str, Any]]) -> None:
    assert {(row["rate"], row["strategy"]) for row in rows} == {
        (rate, name) for rate in (1.2, 2.0) for name in ("random-event", "espice", "pspice")
    }
    for row in rows:
        assert row["latency_max"] <= 1.0
        assert row["truth"] > 20
        assert 0 < row["match_probability"] < 1
        assert row["seed"] == 1
        assert re.fullmatch(r"[0-9a-f]{12}(-dirty)?|unknown", row["commit"])
        assert row["machine"] == circumstances()["machine"] != ""
        assert row["cores"] >= 1
        assert "numba" in row["libraries"]
        assert (row["is_quick"], row["costs"]) == (False, "")
    lost = {(row["rate"], row["strategy"]): row["strict_fn"] for row in rows}
    assert all(lost[2.0, name] > lost[1.2, name] for name in ("random-event", "espice", "pspice"))


def test_the_same_seed_gives_the_same_numbers_and_another_one_others(
    rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    again = run(tmp_path, seeds=2)
    first, second = ([row for row in again if row["seed"] == seed] for seed in (1, 2))
    assert counted(first) == counted(rows)
    assert [row["truth"] for row in first] != [row["truth"] for row in second]


def test_a_run_that_was_broken_off_goes_on(
    rows: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, seen = tried, list[str]()
    monkeypatch.setattr(running, "tried", _broken(whole, seen))
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    assert pq.read_table(tmp_path / FILE).num_rows == 2
    monkeypatch.setattr(running, "tried", _noted(whole, seen := list[str]()))
    assert counted(run(tmp_path)) == counted(rows)
    assert len(seen) == 4
    assert counted(run(tmp_path)) == counted(rows)
    assert len(seen) == 4  # nothing was left to do
    run(tmp_path, is_fresh=True)
    assert len(seen) == 10


def _noted(whole: Any, seen: list[str]) -> Any:
    def some(*given: Any) -> Any:
        for row in whole(*given):
            seen.append(row["fingerprint"])
            yield row

    return some


def _broken(whole: Any, seen: list[str]) -> Any:
    def some(*given: Any) -> Any:
        for row in whole(*given):
            if len(seen) == 2:
                raise KeyboardInterrupt
            seen.append(row["fingerprint"])
            yield row

    return some


def test_another_setting_is_another_run(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    other = run(tmp_path, tiny(f=0.7, rates=[1.2]))
    assert not {row["fingerprint"] for row in other} & {row["fingerprint"] for row in rows}


def test_other_unit_costs_are_another_run(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    Results(tmp_path).add(rows)
    costs = Costs(check=7.0, asks="fitting")
    both = run(tmp_path, costs=costs)
    assert len(both) == 2 * len(rows), "what was done without costs is not done with them"
    assert len(run(tmp_path, costs=costs)) == len(both)
    given = {row["costs"] for row in pq.read_table(tmp_path / FILE).to_pylist()}
    assert given == {"", json.dumps(asdict(costs), sort_keys=True)}
    measured = [{row["drop_ratio"] for row in both if bool(row["costs"]) is with_costs} for with_costs in (False, True)]
    assert measured[0] != measured[1]


def test_results_of_an_earlier_version_have_no_costs(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(rows).drop_columns(["costs"]), tmp_path / FILE)
    Results(tmp_path).add([{**rows[0], "fingerprint": "other", "costs": "some"}])
    assert [row["costs"] for row in Results(tmp_path).rows] == [""] * len(rows) + ["some"]


@pytest.mark.slow
def test_it_does_not_matter_if_it_runs_in_processes(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    assert counted(run(tmp_path, on="processes")) == counted(rows)


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_it_does_not_matter_if_it_runs_on_spark(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    assert counted(run(tmp_path, on="spark")) == counted(rows)


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("query.within", ["40 seconds", "60 seconds"]),
        ("data.data_set", ["DS3", "DS4"]),
        ("bin", [1, 4]),
        ("cost", [1, 4]),
    ],
)
def test_what_a_sweep_sets_makes_a_difference(path: str, values: list[Any], tmp_path: Path) -> None:
    sweep = {"label": "x", "path": path, "values": values}
    found_rows = run(tmp_path, tiny(rates=[1.6], strategies=["espice"], sweep=sweep))
    assert [row["value"] for row in found_rows] == [str(value) for value in values]
    measured = [(row["strict_fn"], row["truth"], row["drop_ratio"]) for row in found_rows]
    assert measured[0] != measured[1]


def test_an_option_of_strategies_can_be_swept(tmp_path: Path) -> None:
    sweep = {"label": "pane", "path": "strategy.pane", "values": [2, 20]}
    first, second = run(tmp_path, tiny(rates=[1.6], strategies=["gspice-sh"], sweep=sweep))
    assert first["truth"] == second["truth"]
    assert first["strict_fn"] != second["strict_fn"]


def test_means_are_stored_and_come_back(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    twice = [*rows, *({**row, "seed": 2, "strict_fn": row["strict_fn"] + 0.1} for row in rows)]
    given = means(twice)
    assert [row.seeds for row in given.rows["tiny"]] == [2] * 6
    one = next(row for row in given.rows["tiny"] if row.strategy == "espice" and row.rate == 2.0)
    here = next(row["strict_fn"] for row in rows if row["strategy"] == "espice" and row["rate"] == 2.0)
    assert one.means["strict_fn"] == pytest.approx(here + 0.05)
    assert one.deviations["strict_fn"] == pytest.approx(0.05)
    store(given, tmp_path)
    again = stored(tmp_path)
    store(again, tmp_path / "again")
    assert (tmp_path / "means.csv").read_text() == (tmp_path / "again" / "means.csv").read_text()
    assert again.about == given.about


def test_results_of_a_folder(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.add(rows[:2])
    results.add(rows[1:])
    assert len(Results(tmp_path).rows) == len(rows)
    assert len(found(tmp_path, [tiny()]).rows["tiny"]) == len(rows)


COSTS = Costs(check=7.0)


@pytest.fixture(scope="module")
def kinds(rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with full runs, quick ones, some with costs, and some of another spec of that name."""
    folder = tmp_path_factory.mktemp("kinds")
    Results(folder).add(rows)
    run(folder, is_quick=True)
    run(folder, tiny(rates=[1.2]), costs=COSTS)
    run(folder, tiny(rates=[1.2], f=0.7))
    return folder


class TestOneKind:
    """A report is of runs that can be compared: quick ones or full ones, with the same costs, of today's specs."""

    def test_full_runs_come_first(self, kinds: Path, rows: list[dict[str, Any]]) -> None:
        given = found(kinds, [tiny()])
        assert given == replace(means(rows), left_out=given.left_out)
        assert kind_of(given.about) == "full runs"
        assert [each.partition(";")[0] for each in given.left_out] == [
            "left out: 3 full runs that the specs of today do not ask for",
            f"left out: 3 full runs with the unit costs {written(COSTS)}",
            "left out: 6 quick runs",
        ]
        assert given.left_out[1].endswith("`penstock lab report --costs` shows them")
        assert given.left_out[2].endswith("`penstock lab report --quick` shows them")

    def test_quick_runs_on_demand_and_if_there_are_no_others(self, kinds: Path, tmp_path: Path) -> None:
        given = found(kinds, [tiny()], is_quick=True)
        assert (kind_of(given.about), given.about["runs"]) == ("quick runs", 6)
        quick = [row for row in Results(kinds).rows if row["is_quick"]]
        Results(tmp_path).add(quick)
        assert found(tmp_path, [tiny()]) == means(quick)

    def test_runs_with_other_costs_on_demand(self, kinds: Path) -> None:
        given = found(kinds, [tiny()], costs=COSTS)
        assert kind_of(given.about) == f"full runs with the unit costs {written(COSTS)}"
        assert [(row.rate, row.seeds) for row in given.rows["tiny"]] == [(1.2, 1)] * 3
        assert "by the unit costs named above" in report([tiny()], given)

    def test_a_kind_that_is_not_there(self, kinds: Path) -> None:
        with pytest.raises(ResultsError, match="it has 9 full runs, 6 quick runs, 3 full runs with"):
            found(kinds, [tiny()], costs=Costs(check=8.0))


def test_what_cannot_be_run_is_told_and_the_rest_is_run(tmp_path: Path) -> None:
    sweep = {"label": "x", "path": "query.window", "values": ["60 seconds every 20 seconds", "no window"]}
    plan = Plan((tiny(rates=[1.6], strategies=["random-event"], sweep=sweep),), tmp_path, seeds=1, on="here")
    results = execute(plan, QUIET)
    assert [row["value"] for row in results.rows] == ["60 seconds every 20 seconds"]
    assert len(results.failures) == 1
    assert "tiny q1: " in results.failures[0]


@RECORDED
@pytest.mark.parametrize("name", ["recorded-stocks", "recorded-soccer"])
def test_a_spec_on_recorded_data_is_run_once(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its data are the same for every seed. pSPICE keeps the bound and invents nothing."""
    monkeypatch.setenv("PENSTOCK_DATA", str(DATA))
    spec = specs()[name]
    (experiment,) = spec.experiments
    pspice = [each for each in experiment.strategies if each.name == "pspice"]
    small = experiment.model_copy(update={"strategies": pspice, "rates": [1.6]})
    (row,) = run(tmp_path, spec.model_copy(update={"experiments": [small]}), seeds=3)
    assert row["truth"] > 50
    assert row["latency_max"] <= 1.0
    assert row["strict_fn"] > 0.1
    assert row["strict_fp"] < 0.03
