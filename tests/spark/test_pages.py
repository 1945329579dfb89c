"""The Python of the documentation that needs Spark runs: blocks marked `python spark`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.spark.jobs.job import Job
from tests.spark.frames import events, frame_of
from tests.test_docs import PAGES, blocks, page_id

MARKED = [page for page in PAGES if "```python spark\n" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", MARKED, ids=page_id)
def test_the_python_of_a_page_runs_on_spark(spark: SparkSession, tmp_path: Path, page: Path) -> None:
    frame = frame_of(spark, events(100), tmp_path / "events").withColumnRenamed("v", "amount")
    namespace: dict[str, Any] = {"__name__": "page", "spark": spark, "events": frame}
    try:
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.language == "python spark":
                exec(compile("\n" * (block.line - 1) + block.text, page_id(page), "exec"), namespace)
    finally:
        for query in spark.streams.active:
            query.stop()


JOBS = [
    pytest.param(block.text, page.parent, id=f"{page_id(page)}:{block.line}")
    for page in PAGES
    for block in blocks(page.read_text(encoding="utf-8"))
    if "[source]" in block.text and block.language.startswith("toml") and "query_file" not in block.text
]


@pytest.mark.parametrize(("text", "folder"), JOBS)
def test_a_job_on_a_page_is_one(text: str, folder: Path) -> None:
    Job.of(tomllib.loads(text), folder)


def test_there_are_jobs_on_pages() -> None:
    assert len(JOBS) >= 2


def test_pages_are_marked() -> None:
    assert {page_id(page) for page in MARKED} >= {"README.md", "docs/spark.md"}
