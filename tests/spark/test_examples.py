"""The examples run: one in a process of its own, as a reader would run it, the others in the session of the tests."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.kafka.broker import Broker, jars

EXAMPLES = Path(__file__).parents[2] / "examples"
LIMIT_SECONDS = 600


def run(folder: Path, *arguments: str) -> str:
    """Run Python in a folder; return what it prints."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=LIMIT_SECONDS
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_fraud(tmp_path: Path) -> None:
    assert "19 cards were tested and then used" in run(tmp_path, str(EXAMPLES / "fraud.py"))


@pytest.fixture
def run_here(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Path], str]:
    """Runs a program in this process, where there is a session already, and returns what it prints."""
    monkeypatch.setattr(SparkSession, "stop", lambda session: None)  # it is not its own
    monkeypatch.chdir(tmp_path)

    def run_program(path: Path) -> str:
        runpy.run_path(str(path), run_name="__main__")
        return capsys.readouterr().out

    return run_program


def test_stocks(run_here: Callable[[Path], str]) -> None:
    told = run_here(EXAMPLES / "stocks.py")
    assert told.count("batch ") == 6
    assert "no ts: an event needs a time" in told


def test_the_notebook(run_here: Callable[[Path], str], tmp_path: Path) -> None:
    """Its cells run one after the other; what a cell shows at its end is not looked at."""
    cells = json.loads((EXAMPLES / "penstock.ipynb").read_text(encoding="utf-8"))["cells"]
    script = tmp_path / "notebook.py"
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    script.write_text("\n\n".join(code), encoding="utf-8")
    told = run_here(script)
    assert "100,000 rows" in told


@pytest.mark.kafka
def test_kafka_pipeline(tmp_path: Path) -> None:
    with Broker() as broker:
        broker.create_topic("payments", 2)
        broker.create_topic("alerts")
        connector = ["--servers", broker.servers, "--jars", *jars().spark_jars.split(",")]
        first = run(tmp_path, str(EXAMPLES / "kafka_pipeline.py"), *connector, "--send", "1000")
        assert run(tmp_path, str(EXAMPLES / "kafka_pipeline.py"), *connector).strip() == "0 alerts"
        count = len(broker.read("alerts"))
    assert count > 10
    assert first.strip() == f"{count} alerts"
