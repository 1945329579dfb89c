"""Text to query: lark reads the grammar beside this file, `tree_to_query` turns its tree into the AST.

Any text gives a `Query` or a `QueryError` with a position inside the text. Nothing here recurses; what comes
after it does, so a query deeper than `MAX_DEPTH` is refused.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Literal

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError

from penstock.errors import Position, Problem, QueryError, position_at
from penstock.pattern import ast, hints
from penstock.pattern.tree_to_query import RefusedError, TreeToQuery

MAX_DEPTH = 100
MAX_LENGTH = 100_000
MAX_SHOWN = 40


def parse(text: str, name: str | None = None) -> ast.Query:
    """Read a query.

    Args:
        text: the query, as docs/language.md describes it.
        name: what matches and error messages call it.

    Raises:
        QueryError: if the text is no query; it says where and what was expected.

    Examples:
        >>> query = parse("PATTERN SEQ(A a, B b) WHERE a.v < b.v WITHIN 250 s")
        >>> query.within
        TimeSpan(us=250000000)
    """
    parts = _read(text, "start", name)
    query = ast.Query(**parts, name=name, source=text, position=Position(0, len(text), 1, 1))
    too_deep = deeper_than(query, MAX_DEPTH)
    if too_deep is not None:
        message = f"nested deeper than {MAX_DEPTH} levels"
        position = too_deep.position or position_at(text, 0)
        raise QueryError([Problem("too-deep", message, position, "split the query")], text, name)
    return query


def parse_span(text: str) -> ast.Span:
    """Read a span, as it stands after WITHIN.

    Args:
        text: a duration or a number of events.

    Raises:
        QueryError: if the text is neither.

    Examples:
        >>> parse_span("5 min"), parse_span("8 EVENTS")
        (TimeSpan(us=300000000), CountSpan(events=8))
    """
    span: ast.Span = _read(text, "span", "span")
    return span


def deeper_than(node: ast.Node, limit: int) -> ast.Node | None:
    """Return a node that stands deeper than `limit` levels below and with `node`, if there is one.

    Args:
        node: where to start; it is the first level.
        limit: the number of levels that are allowed.

    Examples:
        >>> deeper_than(ast.Minus(ast.Minus(ast.Number(1))), limit=2)
        Number(value=1)
    """
    stack = [(node, 1)]
    while stack:
        each, depth = stack.pop()
        if depth > limit:
            return each
        stack += [(child, depth + 1) for child in ast.children(each)]
    return None


@cache
def _parser() -> Lark:
    grammar = files("penstock.pattern").joinpath("grammar.lark").read_text(encoding="utf-8")
    start = ["start", "span"]
    return Lark(
        grammar, parser="lalr", lexer="contextual", start=start, propagate_positions=True, maybe_placeholders=True
    )


def _read(text: str, start: Literal["start", "span"], name: str | None) -> Any:
    if len(text) > MAX_LENGTH:
        message = f"a query has at most {MAX_LENGTH:,} characters, this one {len(text):,}"
        raise QueryError([Problem("too-long", message, position_at(text, MAX_LENGTH), "split the query")], text, name)
    try:
        return TreeToQuery().transform(_parser().parse(text, start=start))
    except UnexpectedInput as error:
        raise QueryError([_syntax_problem(text, start, error)], text, name) from None
    except VisitError as error:
        if not isinstance(error.orig_exc, RefusedError):
            raise
        raise QueryError([error.orig_exc.problem], text, name) from None


def _syntax_problem(text: str, start: Literal["start", "span"], error: UnexpectedInput) -> Problem:
    found, at = "", len(text.rstrip())  # the end, unless the error says otherwise
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        found, at = str(error.token), error.token.start_pos or 0
    elif isinstance(error, UnexpectedCharacters):
        at = error.pos_in_stream or 0
        found = hints.word_at(text, at)
    expected = _expected(text[:at], start)
    shown = found if len(found) <= MAX_SHOWN else found[: MAX_SHOWN - 1] + "…"
    seen = f"unexpected {shown!r}" if found else "the text ends too early"
    message = f"{seen}; expected {hints.expected_text(expected)}"
    fix = hints.SPAN_FIX if start == "span" else hints.syntax_fix(text, at, shown, expected)
    return Problem("syntax", message, position_at(text, at, at + max(1, len(found))), fix)


def _expected(before: str, start: str) -> set[str]:
    """Return the terminals that may follow a text which is right so far."""
    state = _parser().parse_interactive(before, start)
    state.exhaust_lexer()
    terminals: set[str] = state.accepts()  # type: ignore[no-untyped-call]  # lark leaves it untyped
    return terminals
