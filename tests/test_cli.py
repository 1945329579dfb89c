"""The command line, as a user meets it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

from penstock.cli import app, schema_beside
from penstock.spark.java import JavaError

QUERIES = Path(__file__).parent / "queries"
GOOD = "PATTERN SEQ(A a, B b) WHERE a.price < b.price WITHIN 5 min\n"
SYNTAX = "PATTERN SEQ(A a, B b WITHIN 5 min\n"
TWO_PROBLEMS = "PATTERN SEQ(A a, B b)\nWHERE a.price < c.price\n"
SCHEMA = '[types.A]\nprice = "float"\n\n[types.B]\nprice = "float"\n'


def run(*arguments: str | Path, stdin: str | bytes | None = None) -> Result:
    result = CliRunner().invoke(app, [str(each) for each in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.cep").write_text(GOOD, encoding="utf-8")
    (tmp_path / "syntax.cep").write_text(SYNTAX, encoding="utf-8")
    (tmp_path / "two.cep").write_text(TWO_PROBLEMS, encoding="utf-8")
    return tmp_path


class TestCheck:
    def test_a_good_query(self, folder: Path) -> None:
        result = run("check", folder / "good.cep")
        assert result.exit_code == 0
        assert result.stdout == f"{folder / 'good.cep'}: fine\n"
        assert "no schema" in result.stderr

    def test_all_problems_with_their_place_and_fix(self, folder: Path) -> None:
        result = run("check", folder / "two.cep")
        assert result.exit_code == 1
        assert re.findall(r"two\.cep:(\d+):(\d+):", result.stdout) == [("2", "17"), ("2", "24")]
        assert "    WHERE a.price < c.price\n                    ^" in result.stdout
        assert "fix: " in result.stdout

    def test_json(self, folder: Path) -> None:
        result = run("check", "--json", folder / "good.cep", folder / "syntax.cep", folder / "two.cep")
        assert result.exit_code == 1
        found = json.loads(result.stdout)
        assert [(Path(each["file"]).name, each["code"], each["line"], each["column"]) for each in found] == [
            ("syntax.cep", "syntax", 1, 22),
            ("two.cep", "unknown-variable", 2, 17),
            ("two.cep", "no-within", 2, 24),
        ]
        assert all(set(each) == {"file", "code", "message", "line", "column", "fix"} for each in found)

    def test_json_of_no_problem_is_an_empty_list(self, folder: Path) -> None:
        result = run("check", "--json", folder / "good.cep")
        assert (result.exit_code, json.loads(result.stdout)) == (0, [])

    def test_stdin(self) -> None:
        assert run("check", "-", stdin=GOOD).stdout == "stdin: fine\n"
        result = run("check", "-", stdin=SYNTAX)
        assert result.exit_code == 1
        assert result.stdout.startswith("stdin:1:22: ")

    def test_the_schema_is_used(self, folder: Path) -> None:
        (folder / "my.toml").write_text(SCHEMA.replace("price", "prise"), encoding="utf-8")
        result = run("check", folder / "good.cep", "--schema", folder / "my.toml")
        assert result.exit_code == 1
        assert "did you mean a.prise?" in result.stdout
        assert result.stderr == ""

    def test_every_query_of_the_papers(self) -> None:
        files = sorted(QUERIES.glob("*.cep"))
        result = run("check", *files)
        assert result.exit_code == 0, result.output
        assert result.stdout.count(": fine\n") == len(files) > 40
        assert result.stderr == ""

    def test_a_file_with_a_byte_order_mark_and_windows_line_ends(self, tmp_path: Path) -> None:
        file = tmp_path / "windows.cep"
        file.write_bytes(b"\xef\xbb\xbf" + TWO_PROBLEMS.replace("\n", "\r\n").encode())
        assert re.findall(r"windows\.cep:(\d+):(\d+):", run("check", file).stdout) == [("2", "17"), ("2", "24")]


class TestWhatCannotBeRead:
    @pytest.mark.parametrize("command", ["check", "explain"])
    def test_a_missing_file(self, command: str, tmp_path: Path) -> None:
        self.refused(run(command, tmp_path / "no.cep"), f"{tmp_path / 'no.cep'}: cannot be read: No such file")

    @pytest.mark.parametrize("command", ["check", "explain"])
    def test_a_directory(self, command: str, tmp_path: Path) -> None:
        self.refused(run(command, tmp_path), f"{tmp_path}: cannot be read: Is a directory")

    @pytest.mark.parametrize("command", ["check", "explain"])
    def test_bytes_that_are_no_text(self, command: str, tmp_path: Path) -> None:
        file = tmp_path / "latin.cep"
        file.write_bytes(GOOD.replace("price", "größe").encode("latin-1"))
        told = f"{file}: is no UTF-8 text: invalid start byte at byte 32\n  fix: save it as UTF-8"
        self.refused(run(command, file), told)
        self.refused(run(command, "-", stdin=b"\xff\xfe"), "stdin: is no UTF-8 text")

    @pytest.mark.parametrize("command", ["check", "explain"])
    @pytest.mark.parametrize(
        ("schema", "message"),
        [(None, "cannot be read"), ("types = [", "is no TOML"), ('[types.A]\nx = "real"\n', "types.A.x: 'real' is no")],
    )
    def test_a_schema(self, command: str, schema: str | None, message: str, folder: Path) -> None:
        file = folder / "my.toml"
        if schema is not None:
            file.write_text(schema, encoding="utf-8")
        self.refused(run(command, folder / "good.cep", "--schema", file), f"{file}: {message}")

    def test_the_other_files_are_still_checked(self, folder: Path) -> None:
        result = run("check", folder / "no.cep", folder / "two.cep", folder / "good.cep")
        assert result.exit_code == 2
        assert result.stdout.count("two.cep:2:") == 2
        assert "good.cep: fine" in result.stdout

    def refused(self, result: Result, message: str) -> None:
        assert result.exit_code == 2
        assert result.stdout == ""
        assert result.stderr.startswith(message)
        assert len([line for line in result.stderr.splitlines() if not line.startswith("  fix: ")]) == 1


class TestSchemaBeside:
    @pytest.mark.parametrize("kept", range(4))
    def test_the_longest_name_wins(self, kept: int, tmp_path: Path) -> None:
        names = ["schema.toml", "a.schema.toml", "a-b.schema.toml", "a-b-c.schema.toml"]
        for name in names[: kept + 1]:
            (tmp_path / name).touch()
        assert schema_beside(tmp_path / "a-b-c.cep") == tmp_path / names[kept]

    def test_there_may_be_none(self, tmp_path: Path) -> None:
        (tmp_path / "b.schema.toml").touch()
        assert schema_beside(tmp_path / "a-b.cep") is None

    def test_a_dot_in_the_name_is_kept(self, tmp_path: Path) -> None:
        (tmp_path / "sec4.3.schema.toml").touch()
        assert schema_beside(tmp_path / "sec4.3-q1.cep") == tmp_path / "sec4.3.schema.toml"


class TestExplain:
    def test_text(self, folder: Path) -> None:
        result = run("explain", folder / "good.cep")
        assert result.exit_code == 0
        assert result.stdout.startswith("PATTERN SEQ(A a, B b)\nWHERE a.price < b.price\nWITHIN 5 min\n\nVariables\n")
        assert "  a.price < b.price  at b\n" in result.stdout

    def test_with_the_schema_beside_it(self, folder: Path) -> None:
        (folder / "good.schema.toml").write_text(SCHEMA, encoding="utf-8")
        assert "one event of type A; price (float)" in run("explain", folder / "good.cep").stdout

    @pytest.mark.parametrize("options", [["--json"], ["--format", "json"]])
    def test_json(self, options: list[str], folder: Path) -> None:
        facts = json.loads(run("explain", folder / "good.cep", *options).stdout)
        assert facts["within"] == {"us": 300_000_000}
        assert facts["conjuncts"][0]["checked_at"] == ["b"]

    @pytest.mark.parametrize(("kind", "start"), [("mermaid", "flowchart"), ("dot", "digraph")])
    def test_diagrams(self, kind: str, start: str, folder: Path) -> None:
        result = run("explain", "--format", kind, folder / "good.cep")
        assert result.exit_code == 0
        assert result.stdout.startswith(start)

    def test_the_plan(self, folder: Path) -> None:
        text = run("explain", folder / "good.cep").stdout
        assert "\n\nAutomaton, on the plain kernel\n" in text
        assert "         a.price < b.price, by interval on a.price\n" in text
        assert "\n\nTree plan, at A 1/s, B 1/s\n" in text
        plan = json.loads(run("explain", "--json", folder / "good.cep").stdout)["plan"]
        assert (plan["kernel"], plan["problem"], plan["tree"]["order"]) == ("plain", None, "(a b)")
        assert plan["states"][1]["steps"][0]["checks"][0]["how"] == "interval"

    def test_rates(self, folder: Path) -> None:
        text = run("explain", folder / "good.cep", "--rate", "A=10", "--rate", "B=0.5").stdout
        assert "\n\nTree plan, at A 10/s, B 0.5/s\n" in text

    @pytest.mark.parametrize("rate", ["A", "A=", "=3", "A=fast", "A=-1", "A=0", "A=nan", "A=inf"])
    def test_what_is_no_rate(self, rate: str, folder: Path) -> None:
        result = run("explain", folder / "good.cep", "--rate", rate)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "--rate A=10" in result.stderr

    def test_a_query_that_cannot_be_run_is_still_explained(self, folder: Path) -> None:
        members = ", ".join(f"SEQ(A{n} a{n}, B{n} b{n})" for n in range(12))
        (folder / "many.cep").write_text(f"PATTERN AND({members}) WITHIN 1 s", encoding="utf-8")
        result = run("explain", folder / "many.cep")
        assert result.exit_code == 0
        assert "\n\nVariables\n" in result.stdout
        assert "\n\nPlan\n  none: the pattern has more than 5,000 states" in result.stdout

    def test_a_query_with_problems(self, folder: Path) -> None:
        result = run("explain", folder / "two.cep")
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.count("two.cep:2:") == 2

    def test_an_unknown_format(self, folder: Path) -> None:
        assert run("explain", "--format", "svg", folder / "good.cep").exit_code == 2


class TestDemo:
    """Worked example 1: thesis 2.1, figure 2.3."""

    @pytest.fixture
    def facts(self) -> Any:
        return json.loads(run("demo", "--small", "--json").stdout)

    def test_matches_by_policy(self, facts: Any) -> None:
        first = [each for found in facts["policies"].values() for each in found]
        assert all(each.endswith("(window 0)") for each in first)
        assert facts["policies"]["SELECT FIRST CONSUME ALL"] == ["A0 B2 C5 (window 0)"]
        assert facts["policies"]["SELECT FIRST CONSUME a, b"] == ["A0 B2 C5 (window 0)", "A1 B3 C5 (window 0)"]
        assert facts["policies"]["SELECT LAST"] == ["A1 B3 C5 (window 0)"]
        assert len(facts["policies"]["SELECT EACH"]) == 4

    def test_quality_after_shedding(self, facts: Any) -> None:
        assert facts["shed"] == "B2"
        assert facts["matches"]["without B2"] == ["A0 B3 C5 (window 0)"]
        strict, relaxed = facts["quality"]["strict"], facts["quality"]["relaxed"]
        assert (strict["false_negatives"], strict["false_positives"], strict["score"]) == (1, 1, 0)
        assert (relaxed["false_negatives"], relaxed["false_positives"], relaxed["score"]) == (0, 0, 1)

    def test_text(self) -> None:
        result = run("demo", "--small")
        assert result.exit_code == 0
        for part in ("CONSUME ALL", "A0 B3 C5 (window 0)", "strict", "relaxed", "without --small"):
            assert part in result.stdout


def test_a_demo_that_is_too_short_is_refused() -> None:
    result = run("demo", "--seconds", "1")
    assert result.exit_code == 2
    assert "--seconds" in result.stderr


class TestDoctor:
    def test_json(self) -> None:
        facts = json.loads(run("doctor", "--json").stdout)
        assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
        assert facts["packages"]["lark"] == metadata.version("lark")
        assert set(facts["extras"]) == {"spark", "redis", "postgres", "kafka", "lab", "serve"}
        assert set(facts["extras"]["kafka"]) == {*facts["extras"]["spark"], "confluent-kafka"}
        assert "pyspark" in facts["extras"]["spark"]
        assert None not in facts["packages"].values()

    def test_what_is_missing_comes_with_a_command(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("penstock.cli._version", lambda package: None if package == "redis" else "1.0")
        monkeypatch.setenv("COLUMNS", "200")
        text = run("doctor").stdout
        assert 'pip install "penstock[redis]"' in text
        assert "penstock[spark]" not in text

    def test_nothing_is_cut_off(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "60")
        assert "…" not in run("doctor").stdout


def test_version() -> None:
    assert run("--version").stdout == f"penstock {metadata.version('penstock')}\n"


def commands(group: Any, *names: str) -> Iterator[str]:
    """Yield the commands of a group and of the groups in it."""
    for name, each in group.commands.items():
        if hasattr(each, "commands"):
            yield from commands(each, *names, name)
        else:
            yield " ".join((*names, name))


COMMANDS = list(commands(get_command(app)))


def test_all_commands_are_found() -> None:
    lab = {f"lab {name}" for name in ("list", "run", "report", "calibrate")}
    assert set(COMMANDS) == {"check", "explain", "detect", "train", "demo", "doctor"} | lab


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    assert "--json" in re.sub(r"\x1b\[[\d;]*m", "", result.stdout)


class TestWithoutWhatSparkNeeds:
    """A message with a way out and exit code 2, as for anything that cannot be started."""

    @pytest.mark.parametrize(
        ("command", "instead"),
        [
            ("penstock demo", ", or penstock demo --small"),
            ("penstock train history.parquet --query good.cep --out model --spark", ""),
            ("penstock lab run thesis-3.6 --quick --on spark", ""),
        ],
    )
    def test_without_pyspark(self, command: str, instead: str, folder: Path) -> None:
        """In a process of its own: modules that are imported anew here would stand beside those of other tests."""
        (folder / "pyspark.py").write_text("raise ModuleNotFoundError(\"No module named 'pyspark'\", name='pyspark')")
        code = "import sys; sys.path.insert(0, '.'); from penstock.cli import app; app()"
        words = [sys.executable, "-c", code, *command.split()[1:]]
        done = subprocess.run(words, cwd=folder, capture_output=True, encoding="utf-8", check=False)
        assert (done.returncode, done.stdout) == (2, "")
        called = re.match(r"penstock( lab)? [a-z]+", command)
        assert called
        assert f"{called[0]} needs pyspark\n  fix: pip install 'penstock[spark]'{instead}\n" in done.stderr
        assert "Traceback" not in done.stderr

    @pytest.mark.parametrize("command", ["demo", "train history.parquet --query good.cep --out model --spark"])
    def test_without_a_java(self, command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def none() -> None:
            raise JavaError(("java on PATH: there is none",))

        monkeypatch.setattr("penstock.spark.session.use_java", none)
        monkeypatch.chdir(folder)
        result = run(*command.split())
        assert result.exit_code == 2
        assert "none was found\n    java on PATH: there is none\n  fix: pip install" in result.stderr


def test_as_a_program(folder: Path) -> None:
    command = [str(Path(sys.executable).parent / "penstock"), "check", "two.cep", "-"]
    done = subprocess.run(command, cwd=folder, input=GOOD, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("two.cep:2:17: ")
    assert done.stdout.endswith("stdin: fine\n")
    assert "Traceback" not in done.stderr
