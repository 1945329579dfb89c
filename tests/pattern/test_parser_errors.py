"""What the parser refuses: the places and the words of its errors, and its limits.

The words are golden (golden/errors.txt): each query of that file stands above the error that it gives.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import QueryError, position_at
from penstock.pattern import ast
from penstock.pattern.parser import MAX_DEPTH, MAX_LENGTH, parse, parse_span

GOLDEN = Path(__file__).parent / "golden" / "errors.txt"
BAR = "-" * 80


def blocks(text: str) -> list[tuple[str, str]]:
    """Read pairs of a query and its error; a line of dashes ends each."""
    said = [block.strip("\n") for block in text.split(f"{BAR}\n") if block.strip()]
    return list(zip(said[0::2], said[1::2], strict=True))


def error_of(text: str) -> str:
    with pytest.raises(QueryError) as caught:
        parse(text)
    return str(caught.value)


@pytest.mark.parametrize(("query", "error"), blocks(GOLDEN.read_text(encoding="utf-8")))
def test_errors_are_worded_as_agreed(query: str, error: str) -> None:
    assert error_of(query) == error


def problem(text: str, name: str | None = None) -> tuple[str, int, int, int]:
    with pytest.raises(QueryError) as caught:
        parse(text, name)
    (found,) = caught.value.problems
    place = found.position
    return found.code, place.start, place.line, place.column


# --- places -------------------------------------------------------------------------------------------------


def test_nodes_know_where_they_stand() -> None:
    text = "PATTERN SEQ(A a,\n  NOT B b)\nWHERE a.x\r\n < 'two\nlines' + b.`y z`\u2028\x0b AND [k] WITHIN 5\nmin"
    found = {text[node.position.start : node.position.end] for node in ast.walk(parse(text)) if node.position}
    assert {"A a", "NOT B b", "B b", "a.x", "'two\nlines'", "b.`y z`", "[k]", "5\nmin", "k"} <= found
    for node in ast.walk(parse(text)):
        assert node.position == position_at(text, node.position.start, node.position.end) if node.position else True


# @ marks the place that the error must point at.
PLACES = """
syntax|@
syntax|@  \\n
syntax|@SEQ(A a)
syntax|PATTERN@
syntax|PATTERN@   \\n\\n
syntax|PATTERN SEQ(A a, B b @WITHIN 5 min
syntax|PATTERN\\n\\n  SEQ(A a,\\n B b @WITHIN 5 min
syntax|PATTERN\\r\\nSEQ(A a,\\r B @$
syntax|PATTERN A\\u2028a\\x0bWHERE 'two\\nlines' @'
syntax|PATTERN A a WHERE a.x = @12abc WITHIN 5 s
syntax|PATTERN A a WHERE a.x = @12.5abc WITHIN 5 s
syntax|PATTERN A a WHERE a.x = @'no end
syntax|PATTERN A a WITHIN 5@
syntax|PATTERN A a WITHIN 15 @minx
syntax|PATTERN A a WITHIN @15minx
no-variable|PATTERN SEQ(A a, @A|B)
no-variable|PATTERN SEQ(A a, @*)
no-variable|PATTERN A a WINDOW 5 s @ON A|B
list|PATTERN SEQ(@A a[])
list|PATTERN SEQ(@A? a[])
count|PATTERN A@{5,2} a[]
count|PATTERN A@{0} a[]
count|PATTERN A@{0,0} a[]
count|PATTERN A@{1.5} a[]
count|PATTERN @ANY(0, A a)
count|PATTERN A a WITHIN @0 EVENTS
count|PATTERN A a WITHIN @5e18 EVENTS
count|PATTERN A a @LIMIT 0 PER WINDOW
count|PATTERN A a WHERE a[@0].x = 1
count|PATTERN A a WHERE a[@1e2].x = 1
negation|PATTERN SEQ(A a, @NOT SEQ(B b, C c))
negation|PATTERN SEQ(A a, @NOT B+ b[])
negation|PATTERN SEQ(A a, @NOT NOT B b)
duration|PATTERN A a WITHIN @1.5 us
duration|PATTERN A a WITHIN @1.00000000000000000000000000000000000000001 s
duration|PATTERN A a WITHIN @9999999 w
number|PATTERN A a WHERE a.x = @1e309
number|PATTERN A a WHERE a.x = @1e999999999999999999999
number|PATTERN A a WHERE a.x = @NINESk
number|PATTERN A a WHERE a.x = @NINES9
number|PATTERN A a WITHIN @NINES9 s
prev|PATTERN A a WHERE @prev(1) = 1
prev|PATTERN A a WHERE @prev(a.x, a.y) = 1
aggregate|PATTERN A a WHERE @abs(a[].x) = 1
aggregate|PATTERN A a WHERE @SUM(a[].x, 1) = 1
aggregate|PATTERN A a WHERE @SUM(a[]) = 1
remote|PATTERN A a WHERE @REMOTE[1] = 1
"""


@pytest.mark.parametrize("line", [line for line in PLACES.split("\n") if line])
def test_errors_point(line: str) -> None:
    code, _, marked = line.partition("|")
    marked = marked.replace("NINES", "9" * 300)
    for escape in ("\\n", "\\r", "\\x0b", "\\u2028"):
        marked = marked.replace(escape, escape.encode().decode("unicode_escape"))
    before, _, after = marked.partition("@")
    lines = before.split("\n")
    assert problem(before + after) == (code, len(before), len(lines), len(lines[-1]) + 1)


def test_errors_name_the_query() -> None:
    with pytest.raises(QueryError, match=r"^fraud:1:8: "):
        parse("PATTERN", "fraud")


def test_long_words_are_cut_in_the_message() -> None:
    assert len(error_of("PATTERN A a WHERE a.x = 1 '" + "x" * 50_000 + "'")) < 500


# --- limits -------------------------------------------------------------------------------------------------


def test_parentheses_cost_no_depth() -> None:
    many, close = "(" * 5_000, ")" * 5_000
    assert parse(f"PATTERN {many}A a{close} WHERE {many}a.x{close}") == parse("PATTERN A a WHERE a.x")


def test_depth() -> None:
    deepest = "- " * (MAX_DEPTH - 2) + "a.x"
    assert parse(f"PATTERN A a WHERE {deepest}").where is not None
    assert problem(f"PATTERN A a WHERE - {deepest}")[0] == "too-deep"
    assert problem("PATTERN A a WHERE a.x" + " + 1" * MAX_DEPTH)[0] == "too-deep"


def test_length() -> None:
    text = "PATTERN A a"
    assert parse(text.ljust(MAX_LENGTH)) == parse(text)
    assert problem(text.ljust(MAX_LENGTH + 1))[:2] == ("too-long", MAX_LENGTH)


@pytest.mark.parametrize(
    ("text", "span"),
    [("5 min", ast.TimeSpan(300_000_000)), (" 8 EVENTS ", ast.CountSpan(8)), ("1k events", ast.CountSpan(1000))],
)
def test_spans(text: str, span: ast.Span) -> None:
    assert parse_span(text) == span


@pytest.mark.parametrize("text", ["", "5", "min", "5 min 3", "0 EVENTS", "5 min LIMIT 1 PER WINDOW", "1.5 us", "-5 s"])
def test_what_is_no_span(text: str) -> None:
    with pytest.raises(QueryError, match=r"^span:1:"):
        parse_span(text)
