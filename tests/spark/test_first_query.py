"""The page on the first query holds: its files, with its commands, give what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path

from pyspark.sql import SparkSession
from typer.testing import CliRunner

from penstock.cli import app
from penstock.spark.jobs.job import Job
from penstock.spark.jobs.running import run as run_job
from tests.test_docs import ROOT, blocks

PAGE = (ROOT / "docs" / "first-query.md").read_text(encoding="utf-8")


def write_files(folder: Path) -> None:
    for block in blocks(PAGE):
        _, _, name = block.language.partition(" ")
        if "." in name:
            (folder / name).write_text(block.text, encoding="utf-8")


def test_the_steps_of_the_page(spark: SparkSession, tmp_path: Path) -> None:
    write_files(tmp_path)
    query = tmp_path / "tested.cep"
    assert CliRunner().invoke(app, ["check", str(query)]).output.endswith("tested.cep: fine\n")
    assert CliRunner().invoke(app, ["explain", str(query)]).exit_code == 0
    misspelt = tmp_path / "misspelt.cep"
    misspelt.write_text(query.read_text(encoding="utf-8").replace("large.amount >", "large.amuont >"), encoding="utf-8")
    assert "did you mean large.amount?" in CliRunner().invoke(app, ["check", str(misspelt)]).output

    run_job(Job.read(tmp_path / "job.toml"), spark=spark)
    assert alerts(tmp_path / "alerts") == [("4711", 1.2, 950.0)]


def test_the_same_as_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    """Where the batch was run before, as a reader would."""
    write_files(tmp_path)
    run_job(Job.read(tmp_path / "job.toml"), spark=spark)
    (tmp_path / "incoming").mkdir()
    (tmp_path / "payments.csv").rename(tmp_path / "incoming" / "payments.csv")
    run = next(block.text for block in blocks(PAGE) if block.language == "toml" and "checkpoint" in block.text)
    job = (tmp_path / "job.toml").read_text(encoding="utf-8").replace("payments.csv", "incoming")
    job = job.replace('"alerts"', '"alerts-of-stream"')
    assert 'path = "alerts-of-stream"' in PAGE
    (tmp_path / "job.toml").write_text(re.sub(r"\[run\].*", "", job, flags=re.DOTALL) + run, encoding="utf-8")
    run_job(Job.read(tmp_path / "job.toml"), spark=spark)
    assert alerts(tmp_path / "alerts-of-stream") == [("4711", 1.2, 950.0)]


def alerts(folder: Path) -> list[tuple[str, float, float]]:
    lines = [line for path in sorted(folder.glob("*/*.json")) for line in path.read_text().splitlines()]
    return [(row["small"][0]["card"], row["tried"], row["taken"]) for row in map(json.loads, lines)]
