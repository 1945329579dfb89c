"""What goes wrong, said so that the reader knows where and what to do.

`PenstockError` is the root. `QueryError` is a mistake in a query: it holds every problem that was found,
each with its place, an excerpt and a fix. `InternalError` is a mistake of ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

EXCERPT_WIDTH = 100


class PenstockError(Exception):
    """Root of all errors that penstock raises on purpose."""


class InternalError(PenstockError):
    """A bug in penstock itself; please report it with the query and the input."""


class SchemaError(PenstockError):
    """A schema file or object that cannot be read."""


@dataclass(frozen=True)
class Position:
    """A stretch of the query text: offsets from 0, line and column from 1."""

    start: int
    end: int
    line: int
    column: int


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a query, where it is and how to mend it.

    `code` is a short fixed name (`unknown-attribute`) for programs; `message` and `fix` are for people.
    """

    code: str
    message: str
    position: Position
    fix: str = ""

    def describe(self, source: str, name: str = "query") -> str:
        """Return the problem as text: place, message, excerpt with a caret, fix."""
        lines = [f"{name}:{self.position.line}:{self.position.column}: {self.message}"]
        lines += ["    " + line for line in excerpt(source, self.position)]
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)


class QueryError(PenstockError):
    """A query that cannot be used, with all problems at once.

    Examples:
        >>> import penstock as pk
        >>> try:
        ...     pk.parse("PATTERN SEQ(A a, B b WITHIN 5 min")
        ... except pk.QueryError as error:
        ...     print(error.problems[0].position.column)
        22
    """

    def __init__(self, problems: Iterable[Problem], source: str, name: str | None = None) -> None:
        self.problems = tuple(sorted(problems, key=lambda p: (p.position.start, p.code, p.message)))
        self.source = source
        self.name = name or "query"
        super().__init__("\n".join(p.describe(source, self.name) for p in self.problems))


def excerpt(source: str, position: Position) -> list[str]:
    """Return the line of a position and a line with carets below it, cut to a readable width."""
    line = source.split("\n")[position.line - 1].rstrip("\r") if source else ""
    column = position.column - 1
    first = max(0, column - EXCERPT_WIDTH // 2)
    shown = line[first : first + EXCERPT_WIDTH].replace("\t", " ")
    width = max(1, min(position.end - position.start, len(shown) - (column - first)))
    return [shown, " " * (column - first) + "^" * width]


def position_at(source: str, start: int, end: int | None = None) -> Position:
    """Return the `Position` of an offset, clamped into the text."""
    start = max(0, min(start, len(source)))
    end = start + 1 if end is None else max(start, end)
    before = source[:start]
    return Position(start, min(end, max(len(source), start)), before.count("\n") + 1, start - before.rfind("\n"))
