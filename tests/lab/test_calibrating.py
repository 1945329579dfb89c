"""Unit costs of our engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from penstock.lab.calibrating import CostsError, _fit, calibrated, read_costs


def test_costs_are_found_in_times_that_are_made_of_them() -> None:
    random = np.random.default_rng(1)
    work = random.integers(1, 1000, (200, 3)).astype(np.float64)
    times = work @ np.array([5.0, 0.0, 2.0])
    times[::40] += 1e6  # pauses
    assert _fit(work, times) == pytest.approx([5.0, 0.0, 2.0], abs=0.01)


def test_measured_costs_are_costs_that_a_run_takes(tmp_path: Path) -> None:
    found = calibrated(rows=0.1)
    assert found.costs.asks == "fitting"
    assert min(found.costs.event, found.costs.check, found.costs.run, found.costs.match) >= 0
    assert found.costs.event + found.costs.check + found.costs.run > 0
    path = tmp_path / "costs.toml"
    path.write_text(found.text())
    again = read_costs(path)
    assert again.asks == "fitting"
    assert again.event == pytest.approx(found.costs.event, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "message"), [("surprise = 1", "'surprise' is no cost"), ("event =", "cannot be used")]
)
def test_a_file_that_has_no_costs_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "costs.toml"
    path.write_text(text)
    with pytest.raises(CostsError, match=message):
        read_costs(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CostsError, match=r"nothing\.toml: cannot be read: No such file"):
        read_costs(tmp_path / "nothing.toml")
