"""Text to query: lark reads the grammar beside this file, `tree_to_query` turns its tree into the AST.

Any text gives a `Query` or a `QueryError` with a position inside the text. The LALR parser works without
recursion; what comes after it recurses, so a tree deeper than `MAX_DEPTH` is refused before.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError

from penstock.errors import Position, Problem, QueryError, position_at
from penstock.pattern import ast, hints
from penstock.pattern.tree_to_query import RefusedError, TreeToQuery

MAX_DEPTH = 100
MAX_LENGTH = 1_000_000


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
    if len(text) > MAX_LENGTH:
        message = f"a query has at most {MAX_LENGTH:,} characters, this one {len(text):,}"
        raise QueryError([Problem("too-long", message, position_at(text, MAX_LENGTH))], text, name)
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        raise QueryError([_syntax_problem(text, error)], text, name) from None
    too_deep = _deeper_than(tree, MAX_DEPTH)
    if too_deep is not None:
        start = 0 if too_deep.meta.empty else too_deep.meta.start_pos
        message, fix = f"nested deeper than {MAX_DEPTH} levels", "split the query, or drop parentheses"
        raise QueryError([Problem("too-deep", message, position_at(text, start), fix)], text, name)
    try:
        parts = TreeToQuery().transform(tree)
    except VisitError as error:
        if not isinstance(error.orig_exc, RefusedError):
            raise
        raise QueryError([error.orig_exc.problem], text, name) from None
    return ast.Query(**parts, name=name, source=text, position=Position(0, len(text), 1, 1))


@cache
def _parser() -> Lark:
    grammar = files("penstock.pattern").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=True)


def _syntax_problem(text: str, error: UnexpectedInput) -> Problem:
    found, start = "", len(text.rstrip())  # the end, unless the error says otherwise
    expected: set[str] = set()
    if isinstance(error, UnexpectedToken):
        expected = set(error.accepts or error.expected)
        if error.token.type != "$END":
            found, start = str(error.token), error.token.start_pos or 0
    elif isinstance(error, UnexpectedCharacters):
        start = error.pos_in_stream or 0
        found, expected = hints.word_at(text, start), set(error.allowed or ())
    position = position_at(text, start, start + max(1, len(found)))
    seen = f"unexpected {found!r}" if found else "the query ends too early"
    message = f"{seen}; expected {hints.expected_text(expected)}"
    return Problem("syntax", message, position, hints.syntax_fix(text, start, found, expected))


def _deeper_than(tree: Tree[Token], limit: int) -> Tree[Token] | None:
    stack = [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        if depth > limit:
            return node
        stack += [(child, depth + 1) for child in node.children if isinstance(child, Tree)]
    return None
