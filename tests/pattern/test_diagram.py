"""Diagrams: golden files (golden/*.query with .mmd and .dot beside), and that any query gives a well-formed one."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from hypothesis import given, settings

from penstock.pattern import ast
from penstock.pattern.diagram import dot, mermaid
from penstock.pattern.parser import parse
from tests.pattern.strategies import queries

GOLDEN = Path(__file__).parent / "golden"
DRAWN = sorted(GOLDEN.glob("*.query"))

# The two languages, as far as diagrams use them.
MERMAID_LINE = re.compile(
    r"""flowchart\ LR
    |\ +\w+(\["T"\]|\[\["T"\]\]|\("T"\)|\{\{"T"\}\}|\(\("T"\)\)|\(\(\("T"\)\)\))
    |\ +subgraph\ \w+\["T"\] |\ +end |\ +\w+\ -->\ \w+ |\ +classDef\ \w+\ [\w:#,. -]+ |\ +class\ [\w,]+\ \w+
    """.replace("T", r"(?:[^\"\#<>&`\n]|<br/>|\#(?:quot|lt|gt|amp|\d+);)+"),
    re.VERBOSE,
)
DOT_ATTRIBUTES = r"\w+=(?:\w[\w.]*|\"[^\"]*\"|<(?:[^<>]|</?(?:b|i|font[^<>]*|br[^<>]*)/?>)*>)"
DOT_LINE = re.compile(
    r"digraph pattern \{|\s*\}|\s*subgraph cluster_\w+ \{|\s*\w+ -> \w+;|\s*(?:A;? ?)+|\s*\w+ \[A(?:, A)*\];".replace(
        "A", DOT_ATTRIBUTES
    )
)


@pytest.mark.parametrize("path", DRAWN, ids=lambda path: path.stem)
def test_mermaid_is_as_agreed(path: Path) -> None:
    text = mermaid(parse(path.read_text(encoding="utf-8")))
    assert text == path.with_suffix(".mmd").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", DRAWN, ids=lambda path: path.stem)
def test_dot_is_as_agreed(path: Path) -> None:
    text = dot(parse(path.read_text(encoding="utf-8")))
    assert text == path.with_suffix(".dot").read_text(encoding="utf-8")


def test_there_are_golden_diagrams() -> None:
    assert len(DRAWN) >= 3


@settings(max_examples=150, deadline=None)
@given(queries)
def test_any_query_gives_well_formed_mermaid(query: ast.Query) -> None:
    lines = mermaid(query).removesuffix("\n").split("\n")
    for line in lines:
        assert MERMAID_LINE.fullmatch(line), line
    assert sum(line.lstrip().startswith("subgraph") for line in lines) == sum(line.strip() == "end" for line in lines)


@settings(max_examples=150, deadline=None)
@given(queries)
def test_any_query_gives_well_formed_dot(query: ast.Query) -> None:
    text = dot(query)
    for line in text.removesuffix("\n").split("\n"):
        assert DOT_LINE.fullmatch(line), line


@settings(max_examples=150, deadline=None)
@given(queries)
def test_every_event_is_drawn_once_and_can_be_reached(query: ast.Query) -> None:
    events = list(ast.events(query.pattern))
    for text, arrow in ((mermaid(query), "-->"), (dot(query), "->")):
        arrows = re.findall(rf"^ +(\w+) {arrow} (\w+);?$", text, re.MULTILINE)
        assert {f"n{number + 1}" for number in range(len(events))} == {
            n for pair in arrows for n in pair if n[0] == "n"
        }
        reached, frontier = {"start"}, ["start"]
        while frontier:
            here = frontier.pop()
            found = [head for tail, head in arrows if tail == here and head not in reached]
            reached.update(found)
            frontier += found
        assert reached == {n for pair in arrows for n in pair}


# --- where conditions stand ---------------------------------------------------------------------------------


def labels(text: str) -> list[str]:
    """The texts of the boxes of a Mermaid diagram, as people read them."""
    found = re.findall(r"^ +(?:n|note)\d+\W+\"(.*)\"", mermaid(parse(text)), re.MULTILINE)
    return [html.unescape(re.sub(r"#(\d+|\w+);", _entity, each)) for each in found]


def _entity(code: re.Match[str]) -> str:
    return f"&#{code[1]};" if code[1].isdigit() else f"&{code[1]};"


def test_a_conjunct_stands_at_the_last_variable_that_it_names() -> None:
    text = "PATTERN SEQ(A a, B b, C c) WHERE c.x > a.x AND a.y = 1 AND [k] AND b.z = a.z AND 1 < 2 WITHIN 8 EVENTS"
    assert labels(text) == [
        "A a<br/>a.y = 1",
        "B b<br/>b.z = a.z",
        "C c<br/>c.x > a.x",
        "WHERE SAME[k]<br/>WHERE 1 < 2<br/>WITHIN 8 EVENTS",
    ]


def test_a_conjunct_that_names_no_variable_of_the_pattern_stands_in_the_note() -> None:
    assert labels("PATTERN A a WHERE a.x = q.x") == ["A a", "WHERE a.x = q.x"]


def test_of_a_variable_that_is_there_twice_the_first_has_the_conditions() -> None:
    assert labels("PATTERN SEQ(A a, B a) WHERE a.x = 1") == ["A a<br/>a.x = 1", "B a"]


def test_special_signs_are_shown_as_they_are() -> None:
    (label,) = labels("""PATTERN `"#&<>*\\` a WHERE a.x = '<b>&amp;#35;"'""")
    assert label == """`"#&<>*\\` a<br/>a.x = '<b>&amp;#35;"'"""


def test_special_signs_are_escaped_for_graphviz() -> None:
    text = dot(parse("""PATTERN `<b>&"\\` a WHERE a.x = '<i>&amp;' AND 1 < 2"""))
    assert "<b>`&lt;b&gt;&amp;&quot;\\` a</b>" in text
    assert ">a.x = &#x27;&lt;i&gt;&amp;amp;&#x27;</font>" in text
    assert "label=<WHERE 1 &lt; 2<br" in text


def test_long_conditions_are_broken_and_control_characters_written_out() -> None:
    (label,) = labels("PATTERN A a WHERE a.one_rather_long_name + a.another_rather_long_name > 'x\x00\ny'")
    assert label == "A a<br/>a.one_rather_long_name +<br/>a.another_rather_long_name > 'x\\x00\\ny'"
