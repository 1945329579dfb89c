"""How the tables in this folder ask the reference matcher, and how they write its answers.

An answer is one line: matches between ` | `, in order; in a match, for each variable that is not negated, in the order
of the text, the numbers of its events, with commas in a list and `-` if it is unbound; before it, its window, if any.
So `0: 1 2,3 -` binds 1 to the first variable, 2 and 3 to the second and nothing to the third, in window 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.pattern import ast
from penstock.pattern.parser import parse
from penstock.pattern.variables import variables
from penstock.reference import Event, Match, find, runs
from penstock.testing import stream


def found(query: str, events: str | Iterable[Event], **registered: Any) -> str:
    """Return the matches of `PATTERN query`; `registered` are the functions and remotes of `find`."""
    asked = parse(f"PATTERN {query}")
    return written(asked, find(asked, _events(events), **registered))


def open_runs(query: str, events: str | Iterable[Event], **registered: Any) -> str:
    """Return the runs of `PATTERN query` that are open after the events."""
    asked = parse(f"PATTERN {query}")
    return written(asked, runs(asked, _events(events), **registered))


def written(query: ast.Query, matches: Iterable[Match]) -> str:
    names = [name for name, variable in variables(query.pattern).items() if not variable.negated]
    ordered = sorted(matches, key=lambda match: (match.window or 0, [match[name] for name in names]))
    return " | ".join(_match(match, names) for match in ordered)


def _events(events: str | Iterable[Event]) -> Iterable[Event]:
    return stream(events) if isinstance(events, str) else events


def _match(match: Match, names: list[str]) -> str:
    bound = " ".join(",".join(map(str, match[name])) or "-" for name in names)
    return bound if match.window is None else f"{match.window}: {bound}"
