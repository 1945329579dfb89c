"""`penstock lab` as a user meets it: results on stdout, as JSON on demand, notes and progress on stderr."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from penstock.cli import app
from penstock.lab import calibrating, results, spec
from penstock.lab.calibrating import Calibration, CostsError
from penstock.lab.results import stored
from penstock.runtime.costs import Costs
from tests.lab.tiny import tiny


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["lab", *words], catch_exceptions=False)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two specs, of which the one that is small is run here."""
    found = {"tiny": tiny(rates=[1.2], strategies=["random-event"]), "thesis-3.6": spec.specs()["thesis-3.6"]}
    monkeypatch.setattr(spec, "specs", lambda: found)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("known")
def test_runs_and_what_is_reported_of_them() -> None:
    (Path.cwd() / "costs.toml").write_text("check = 7.0\n")
    done = run("run", "tiny", "--quick", "--processes", "1", "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert (facts["runs"], facts["failures"], facts["results"]) == (1, [], "lab-results/results.parquet")
    assert "tiny q1" in done.stderr, "the progress"
    again = json.loads(run("run", "tiny", "--quick", "--costs", "costs.toml", "--processes", "1", "--json").stdout)
    assert again["runs"] == 2, "what was done without the costs is not done with them"

    shown = run("report", "--json")
    facts = json.loads(shown.stdout)
    assert (facts["html"], facts["of"], facts["claims"].keys()) == ("lab-report.html", "quick runs", {"3.6-bound"})
    assert shown.stderr.startswith('left out: 1 quick runs with the unit costs {"asks": "open", "check": 7.0, ')
    of_costs = run("report", "--quick", "--costs", "costs.toml")
    assert of_costs.stdout.startswith('lab-report.html, of quick runs with the unit costs {"asks"')
    assert of_costs.stderr == "left out: 1 quick runs; `penstock lab report --quick` shows them\n"


def test_recorded_data_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all specs, those that need them are left out with a message; to ask for one of them is a mistake."""
    small = {"tiny": tiny(rates=[1.2], strategies=["random-event"]), "recorded": spec.specs()["recorded-stocks"]}
    monkeypatch.setattr(spec, "specs", lambda: small)
    monkeypatch.setenv("PENSTOCK_DATA", str(tmp_path))
    done = run("run", "--all", "--quick", "--processes", "1", "--results", str(tmp_path), "--json")
    facts = json.loads(done.stdout)
    assert (done.exit_code, facts["runs"], facts["left_out"]) == (0, 1, ["recorded-stocks"])
    assert "left out: recorded-stocks: there is no us_minute_bars_2018.parquet" in done.stderr
    assert "fix: set PENSTOCK_DATA" in done.stderr
    named = run("run", "recorded", "--quick", "--processes", "1", "--results", str(tmp_path))
    assert named.exit_code == 1
    assert "recorded-stocks q1: there is no us_minute_bars_2018.parquet" in named.stderr


@pytest.mark.usefixtures("known")
def test_nothing_to_report() -> None:
    done = run("report")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "lab-results has no results\n  fix: run `penstock lab run --all --quick`\n"


def test_a_page_that_cannot_be_written_is_told() -> None:
    done = run("report", "--stored", "--html", "nowhere/page.html")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "nowhere/page.html: cannot be read or written: No such file or directory\n"


class TestCalibrate:
    MADE = Calibration(replace(Costs(), check=7.0, asks="fitting"), 40.0, 0.1, 12)

    @pytest.mark.parametrize("as_json", [False, True])
    def test_what_is_told(self, as_json: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(calibrating, "calibrated", lambda rows: self.MADE)
        done = run("calibrate", "--out", str(tmp_path / "costs.toml"), *(["--json"] if as_json else []))
        text = (tmp_path / "costs.toml").read_text()
        assert tomllib.loads(text)["check"] == 7
        if not as_json:
            assert done.stdout == text
            return
        facts: dict[str, Any] = json.loads(done.stdout)
        assert facts["file"] == str(tmp_path / "costs.toml")
        assert (facts["costs"]["check"], facts["batch"], facts["measurements"]) == (7, 40, 12)

    def test_without_scipy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(calibrating, "find_spec", lambda name: None)
        with pytest.raises(CostsError, match=r"fix: pip install 'penstock\[lab\]'"):
            calibrating.calibrated()


def test_stored_results_are_of_one_kind_and_need_no_fingerprint() -> None:
    assert results.kind_of(stored().about) == "quick runs"
