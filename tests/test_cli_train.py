"""`penstock train`: models from a file, and what they say."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from penstock.cli import app
from penstock.shedding.storing import load
from penstock.shedding.strategies.catalogue import STRATEGIES

QUERY = "PATTERN SEQ(A a, B b) WHERE a.v < b.v WITHIN 2 s"
WINDOWED = f"{QUERY} WINDOW 2 s EVERY 1 s"


@pytest.fixture
def history(tmp_path: Path) -> Path:
    random = np.random.default_rng(1)
    table = pa.table(
        {
            "kind": random.choice(["A", "B", "C"], 2000),
            "at": np.arange(2000) * 50_000,
            "card": random.integers(0, 3, 2000),
            "v": random.random(2000),
        }
    )
    pq.write_table(table, tmp_path / "history.parquet")
    csv.write_csv(table, tmp_path / "history.csv")
    return tmp_path / "history.parquet"


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["train", *words])
    return done.exit_code, done.output


@pytest.mark.parametrize("strategy", sorted(set(STRATEGIES)))
def test_every_strategy_is_learned_from_a_file(history: Path, tmp_path: Path, strategy: str) -> None:
    query = tmp_path / "query.cep"
    query.write_text(QUERY)
    words = [str(history), "--query", str(query), "--strategy", strategy, "--out", str(tmp_path / "model")]
    code, output = run(*words, "--type", "kind", "--time", "at", "--by", "card")
    assert code == 0, output
    made, about = load(tmp_path / "model")
    assert made.name == strategy
    assert sorted(about["types"]) == ["", "A", "B", "C"]  # the first stands for all others
    assert about["rows"] == 2000


def test_a_model_is_shown_in_the_terminal_and_as_a_page(history: Path, tmp_path: Path) -> None:
    query = tmp_path / "query.cep"
    query.write_text(WINDOWED)
    page = tmp_path / "model.html"
    words = [str(history.with_suffix(".csv")), "--query", str(query), "--out", str(tmp_path / "model"), "--bins", "10"]
    code, output = run(*words, "--type", "kind", "--time", "at")
    assert code == 0
    assert f"the model: {tmp_path / 'model'}" in output
    code, output = run("--show", str(tmp_path / "model"), "--html", str(page))
    assert code == 0
    assert "espice, learned from 2,000 rows" in output
    assert "position in the window, from its beginning to its end; █ is the greatest value, 100\n" in output
    assert "A █" in output
    assert "C   " in output
    assert page.read_text().count("<tr>") == 4
    assert "http" not in page.read_text()


def test_a_model_as_json(history: Path, tmp_path: Path) -> None:
    query = tmp_path / "query.cep"
    query.write_text(WINDOWED)
    words = ["train", str(history), "--query", str(query), "--out", str(tmp_path / "model"), "--bins", "10", "--json"]
    done = CliRunner().invoke(app, [*words, "--type", "kind", "--time", "at"])
    facts = json.loads(done.stdout)
    assert (facts["model"], facts["strategy"], facts["rows"]) == (str(tmp_path / "model"), "espice", 2000)
    table = facts["tables"][0]
    assert sorted(table["rows"]) == sorted(facts["types"])
    assert np.array(table["values"]).shape == (4, 10)
    assert max(table["values"][table["rows"].index("C")]) == 0 < max(table["values"][table["rows"].index("A")])
    shown = CliRunner().invoke(app, ["train", "--show", str(tmp_path / "model"), "--json"])
    assert json.loads(shown.stdout) == facts


def test_a_query_is_worth_its_weight(history: Path, tmp_path: Path) -> None:
    (tmp_path / "one.cep").write_text(WINDOWED)
    (tmp_path / "other.cep").write_text(WINDOWED.replace("B b", "C b"))
    tables = {}
    for weights in (("20", "1"), ("1", "0.05"), ("1", "20"), ()):
        given = [word for weight in weights for word in ("--weight", weight)]
        words = [str(history), "--query", str(tmp_path / "one.cep"), "--query", str(tmp_path / "other.cep"), *given]
        rest = ["--out", str(tmp_path / "model"), "--bins", "10", "--type", "kind", "--time", "at", "--json"]
        done = CliRunner().invoke(app, ["train", *words, *rest])
        assert done.exit_code == 0, done.output
        facts = json.loads(done.stdout)
        assert facts["weights"] == [float(weight) for weight in weights or ("1", "1")]
        table = facts["tables"][0]
        tables[weights] = {name: max(table["values"][table["rows"].index(name)]) for name in "BC"}
    assert tables["20", "1"]["B"] > 10 * tables["20", "1"]["C"] > 0
    assert tables["20", "1"] == tables["1", "0.05"]  # what counts is how much more one is worth
    assert tables["1", "20"]["C"] > 10 * tables["1", "20"]["B"] > 0
    assert 0.8 < tables[()]["B"] / tables[()]["C"] < 1.25


@pytest.mark.parametrize(
    ("words", "told", "code"),
    [
        (["h.parquet", "--query", "q.cep", "--weight", "2", "--weight", "1", "--out", "m"], "1 of --query and 2 of", 2),
        (["h.parquet", "--query", "q.cep", "--weight", "0", "--out", "m"], "--weight 0 of q.cep says nothing", 2),
        (["h.parquet", "--query", "q.cep", "--weight", "nan", "--out", "m"], "--weight nan of q.cep says nothing", 2),
        (["h.parquet", "--query", "latin.cep", "--out", "m"], "latin.cep: is no UTF-8 text: invalid", 2),
        (["h.parquet", "--query", "wrong.cep", "--out", "m"], "wrong:1:22: ", 1),
        (["h.parquet", "--query", "q.cep", "--out", "m"], "h.parquet: cannot be read: ", 2),
        (["history.parquet", "--query", "q.cep", "--out", "m"], "has no column 'type' fix: give --type one that it", 2),
    ],
)
def test_each_message_has_a_fix(history: Path, words: list[str], told: str, code: int) -> None:
    (history.parent / "latin.cep").write_bytes(QUERY.replace("a.v", "a.größe").encode("latin-1"))
    (history.parent / "wrong.cep").write_text("PATTERN SEQ(A a, B b WITHIN 5 min")
    (history.parent / "q.cep").write_text(QUERY)
    with contextlib.chdir(history.parent):
        done = CliRunner().invoke(app, ["train", *words])
    assert (done.exit_code, done.stdout) == (code, "")
    assert told in " ".join(done.stderr.split())
    assert "\n  fix: " in done.stderr


def test_a_session_that_is_running_stays(spark: SparkSession, history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(history.parent)
    Path("q.cep").write_text(QUERY)
    done = CliRunner().invoke(app, ["train", "h.parquet", "--query", "q.cep", "--out", "m", "--spark"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "h.parquet: cannot be read: [PATH_NOT_FOUND]" in " ".join(done.stderr.split())
    assert "\n  fix: " in done.stderr
    assert spark.range(3).count() == 3


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere.parquet", "--query", "q.cep", "--out", "m"], "q.cep: cannot be read"),
        (["--show", "nowhere"], "holds no whole model"),
        ([], "give a history, --query, --out as well; or --show MODEL"),
        (["history.parquet", "--query", "q.cep"], "give --out as well"),
    ],
)
def test_mistakes_are_told(words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, output = run(*words)
    assert code == 2
    assert told in " ".join(output.replace("│", " ").split())
