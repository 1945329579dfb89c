"""How a command ends when something is wrong: a message with a fix on stderr and an exit code, never a traceback.

Exit codes: 0 all is well, 1 a query has problems, 2 something could not be read or started, or the command line is
wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from penstock.errors import PenstockError, QueryError

PROBLEMS, UNUSABLE = 1, 2
STDIN = "-"
_OF_SPARK = ("pyspark", "py4j", "pandas")


class UnreadableError(PenstockError):
    """A file that cannot be read as text."""


@contextmanager
def told(command: str, instead: str = "") -> Iterator[None]:
    """Turn what is raised within into a message and an exit code.

    Args:
        command: as the user wrote it, for what it needs and is not installed.
        instead: what else the user can do then.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in _OF_SPARK:
            raise
        typer.echo(f"{command} needs {error.name}\n  fix: pip install 'penstock[spark]'{instead}", err=True)
        raise typer.Exit(UNUSABLE) from None
    except PenstockError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(PROBLEMS if isinstance(error, QueryError) else UNUSABLE) from None
    except OSError as error:
        if error.filename is None:  # no file of the user's, so a mistake of ours
            raise
        typer.echo(f"{error.filename}: cannot be read or written: {error.strerror}", err=True)
        raise typer.Exit(UNUSABLE) from None


def read_text(file: str, name: str) -> str:
    """Return the text of a file, or of stdin.

    Args:
        file: where it is; `STDIN`.
        name: what to call it in messages.

    Raises:
        UnreadableError: it is not there, or no text.
    """
    try:
        data = sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UnreadableError(f"{name}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise UnreadableError(
            f"{name}: is no UTF-8 text: {error.reason} at byte {error.start}\n  fix: save it as UTF-8"
        ) from None
