"""The public names: they exist, they are cheap, and nothing is promised that is not there."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import penstock as pk
from penstock.pattern import builder

HEAVY = {"numba", "numpy", "pandas", "pyarrow", "pyspark", "polars", "sklearn", "altair"}
PLANNED = ("detect",)
ENGINE = {
    name
    for name, module in vars(pk)["_ELSEWHERE"].items()
    if module.startswith(("penstock.engine", "penstock.shedding"))
}


def modules_after(code: str) -> set[str]:
    """Run code in a fresh process and return the names of the modules that it has loaded."""
    script = f"{code}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("name", pk.__all__)
def test_a_public_name_exists_and_is_documented(name: str) -> None:
    assert getattr(pk, name).__doc__
    assert name in dir(pk)


def test_type_checkers_see_the_same_names() -> None:
    (branch,) = [node for node in ast.parse(Path(pk.__file__).read_text("utf-8")).body if isinstance(node, ast.If)]
    seen = [alias.name for node in branch.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(seen) == sorted(pk.__all__)


def test_every_name_for_building_queries_is_public() -> None:
    types_of_parts = {"Element", "EventPart", "Operand", "Part", "RemoteValue", "Value"}
    assert set(builder.__all__) - types_of_parts <= set(pk.__all__)


def test_a_name_is_the_same_object_each_time() -> None:
    assert pk.parse is pk.parse
    assert pk.reference is pk.reference


@pytest.mark.parametrize("name", [*PLANNED, "no_such_name"])
def test_what_is_planned_is_not_there(name: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
        getattr(pk, name)


def test_import_loads_nothing_heavy() -> None:
    loaded = modules_after("import penstock")
    assert loaded & HEAVY == set()
    assert not any(name.startswith(("lark", "pydantic", "typer")) for name in loaded)


def test_using_the_language_loads_nothing_heavy() -> None:
    names = sorted(set(pk.__all__) - ENGINE)
    code = f"import penstock as pk\nfor name in {names}: getattr(pk, name)\nimport penstock.cli"
    assert modules_after(code) & HEAVY == set()


def test_import_takes_less_than_a_second() -> None:
    script = "import time; start = time.process_time(); import penstock; print(time.process_time() - start)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=True)
    assert float(done.stdout) < 1
