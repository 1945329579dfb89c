"""Models in files: what cannot be read is refused, and it is said why."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from penstock.shedding.storing import ModelError, load, save
from penstock.shedding.strategies.espice import Espice
from penstock.shedding.strategies.hspice import HspicePM, HspiceW


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save(Espice(np.array([[100, 3]]), np.array([[1.0, 2.0]])), tmp_path / "model", {"types": ["A"]})
    assert load(tmp_path / "model")[1] == {"types": ["A"]}
    return tmp_path / "model"


def test_another_version_is_refused(model: Path) -> None:
    file = model / "model.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"version": 99}))
    with pytest.raises(
        ModelError, match=r"has format 99, and this version of penstock reads .*\n  fix: train it again"
    ):
        load(model)


@pytest.mark.parametrize("kind", [HspicePM, HspiceW])
def test_a_model_whose_arrays_meant_something_else_is_refused(kind: type[HspicePM | HspiceW], tmp_path: Path) -> None:
    table = np.array([[[0.5, 0.0]]])
    made = HspicePM((table,), (table,)) if kind is HspicePM else HspiceW((table,), (table[..., 0],), (table[..., 1],))
    save(made, tmp_path)
    assert load(tmp_path)[0].name == kind.name
    file = tmp_path / "model.json"
    whole = json.loads(file.read_text())
    del whole["strategy_version"]  # as it was before
    file.write_text(json.dumps(whole))
    told = (
        f"has version 1 of a model of {kind.name}, and this version of penstock reads version 3\n  fix: train it again"
    )
    with pytest.raises(ModelError, match=told):
        load(tmp_path)


def test_a_model_that_is_newer_than_penstock_is_refused(model: Path) -> None:
    file = model / "model.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"strategy_version": 7}))
    with pytest.raises(ModelError, match=r"has version 7 of a model of espice, .* reads version 1\n  fix: train it"):
        load(model)


def test_a_model_of_before_versions_is_read_if_nothing_has_changed(model: Path) -> None:
    file = model / "model.json"
    whole = json.loads(file.read_text())
    del whole["strategy_version"]
    file.write_text(json.dumps(whole))
    assert load(model)[0].name == "espice"


def test_a_missing_array_is_named(model: Path) -> None:
    (model / "shares.npy").unlink()
    with pytest.raises(ModelError, match=r"holds no whole model: there is no shares\.npy"):
        load(model)


@pytest.mark.parametrize("cut", [0, 40, -4])
def test_an_array_that_was_cut_short_is_refused(model: Path, cut: int) -> None:
    file = model / "shares.npy"
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(ModelError, match="does not hold what it should"):
        load(model)


def test_an_array_of_objects_is_not_unpickled(model: Path) -> None:
    np.save(model / "shares.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ModelError, match=r"does not hold what it should.*[Oo]bject"):
        load(model)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": "another"}, "is not about a model for shedding"),
        ({"strategy": "nobody"}, "does not hold what it should: 'nobody'"),
        ({"arrays": ["utilities"]}, "does not hold what it should: 'shares'"),
        ({"arrays": ["../shares"]}, "no name of an array"),
        ({"values": {}}, "does not hold what it should: 'exact'"),
    ],
)
def test_an_altered_file_is_refused(model: Path, change: dict[str, object], told: str) -> None:
    file = model / "model.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(ModelError, match=told):
        load(model)


def test_what_is_no_json_is_refused(model: Path) -> None:
    (model / "model.json").write_text("{")
    with pytest.raises(ModelError, match="does not hold what it should"):
        load(model)
