"""Models are read as they were written, and what is no model is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.spark.training.models import Model, ModelError, Observed

WINDOWS = Observed(
    "PATTERN SEQ(A a, B b) WITHIN 5 s WINDOW 5 s", "pairs", 1.0, ((), ("a",), ("a", "b")),
    {
        "seen": np.array([4, 2]), "events": np.array([[4, 4], [0, 2]]), "contributing": np.array([[3, 1], [0, 1]]),
        "contributions": np.array([[5, 1], [0, 6]]), "windows": np.array(3), "matches": np.array(6),
    },
)  # fmt: skip
SPANS = Observed(
    "PATTERN SEQ(A a, B b) WITHIN 5 s", None, 2.0, ((), ("a",), ("a", "b")),
    {
        "seen": np.array([4, 2]), "matched": np.array([2, 1]), "contributing": np.array([[2, 0], [1, 1]]),
        "contributions": np.array([[9, 0], [4, 5]]), "matches": np.array(9),
    },
)  # fmt: skip
MODEL = Model("contribution", 2, ("A", "Bé"), (WINDOWS, SPANS), rows=8, malformed=1)


def test_utilities_are_shares_of_events_and_queries_are_weighted() -> None:
    assert MODEL.utility(0).tolist() == [[0.75, 0.25], [0, 0.5]]
    assert MODEL.utility(1).tolist() == [[0.5, 0], [0.5, 0.5]]
    assert MODEL.utility().tolist() == [[1.75, 0.25], [1, 1.5]]
    assert MODEL.utility_of_types(0).tolist() == [0.5, 0.5]
    assert MODEL.utility_of_types(1).tolist() == [0.5, 0.5]
    assert MODEL.utility_of_types().tolist() == [1.5, 1.5]
    assert MODEL.shares(0).tolist() == [[1, 4 / 6], [0, 2 / 6]]
    assert MODEL.shares(1).tolist() == [[4 / 6, 4 / 6], [2 / 6, 2 / 6]]


def test_a_model_is_read_as_it_was_written(tmp_path: Path) -> None:
    MODEL.save(tmp_path / "new" / "model")
    MODEL.save(tmp_path / "new" / "model")  # over the one before
    again = Model.load(tmp_path / "new" / "model")
    told = "Model contribution of 8 rows, 2 types, 2 positions; pairs: 6 matches, query: 9 matches"
    assert repr(again) == repr(MODEL) == told
    assert replace(again, queries=()) == replace(MODEL, queries=())
    for one, other in zip(MODEL.queries, again.queries, strict=True):
        assert replace(one, sums={}) == replace(other, sums={})
        assert {name: array.tolist() for name, array in one.sums.items()} == {
            name: array.tolist() for name, array in other.sums.items()
        }


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("model.json", None, "holds no whole model: there is no model.json"),
        ("model.json", b"{}", "is not about a model of penstock"),
        ("model.json", b"[", "does not hold what it should"),
        ("0.seen.npy", None, "holds no whole model: there is no 0.seen.npy"),
        ("0.seen.npy", b"PK\x03\x04", "does not hold what it should"),
        ("0.seen.npy", b"", "does not hold what it should"),
    ],
)
def test_what_is_no_model_is_refused(tmp_path: Path, name: str, content: bytes | None, told: str) -> None:
    MODEL.save(tmp_path)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelError, match=rf"{told}[^\n]*\n  fix: give the folder that Model.save has written"):
        Model.load(tmp_path)


def test_arrays_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    MODEL.save(tmp_path)
    np.save(tmp_path / "0.seen.npy", np.zeros(3, np.int64))
    with pytest.raises(ModelError, match=r"the array seen is int64 \(3,\), and there are 2 types\n  fix: "):
        Model.load(tmp_path)
    np.save(tmp_path / "0.seen.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(ModelError, match="does not hold what it should"):
        Model.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"version": 99}, "has format 99, and this version of penstock reads format 1"),
        ({"queries": [{"query": "", "name": None, "weight": 1, "states": [], "sums": ["../x"]}]}, "no names of arrays"),
    ],
)
def test_what_another_version_or_hand_wrote_is_refused(tmp_path: Path, change: dict[str, object], told: str) -> None:
    MODEL.save(tmp_path)
    about = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    (tmp_path / "model.json").write_text(json.dumps(about | change), encoding="utf-8")
    with pytest.raises(ModelError, match=rf"{told}[^\n]*\n  fix: "):
        Model.load(tmp_path)
