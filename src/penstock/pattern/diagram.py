"""The pattern as a picture, for Mermaid and for Graphviz: a flow from left to right.

Each variable is a box, with the conjuncts that can be decided when it is bound (it is the last that they name);
AND, OR, ANY and groups are frames; what is asked of the whole match stands in a note.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, TypeAlias

from penstock.pattern import ast
from penstock.pattern.render import render_clauses, render_expression, render_pattern, repetition_sign

LINE_WIDTH = 40

Kind: TypeAlias = Literal["event", "list", "option", "negation", "point", "start", "end", "note"]


@dataclass(frozen=True)
class _Box:
    id: str
    kind: Kind
    title: str = ""
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Frame:
    id: str
    title: str
    members: list[_Box | _Frame] = field(default_factory=list)


@dataclass(frozen=True)
class _Flow:
    """The picture: boxes and frames, in the order of the text, and arrows between boxes."""

    members: list[_Box | _Frame]
    arrows: list[tuple[str, str]]
    notes: tuple[str, ...]


def mermaid(query: ast.Query) -> str:
    """Return the pattern of a query as a Mermaid flowchart.

    Args:
        query: from `parse` or the builder.

    Examples:
        >>> from penstock.pattern.parser import parse
        >>> print(mermaid(parse("PATTERN SEQ(A a, B+ b[]) WHERE a.v < b[i].v WITHIN 5 min")).partition("classDef")[0])
        flowchart LR
          start((" "))
          n1["A a"]
          n2[["B+ b[]<br/>a.v #lt; b[i].v"]]
          match(((" ")))
          note1["WITHIN 5 min"]
          start --> n1
          n1 --> n2
          n2 --> match
        <BLANKLINE>
    """
    flow = _flow(query)
    notes = [_Box("note1", "note", "", flow.notes)] if flow.notes else []
    members = [*flow.members, *notes]
    lines = ["flowchart LR", *_mermaid_members(members, "  ")]
    lines += [f"  {tail} --> {head}" for tail, head in flow.arrows]
    lines += [f"  classDef {kind} {style}" for kind, style in _MERMAID_STYLES.items()]
    by_kind: dict[Kind, list[str]] = {}
    for box in _boxes(members):
        by_kind.setdefault(box.kind, []).append(box.id)
    lines += [f"  class {','.join(ids)} {_MERMAID_CLASSES[kind]}" for kind, ids in by_kind.items()]
    return "\n".join(lines) + "\n"


def dot(query: ast.Query) -> str:
    """Return the pattern of a query as a Graphviz graph.

    Args:
        query: from `parse` or the builder.

    Examples:
        >>> from penstock.pattern.parser import parse
        >>> print(dot(parse("PATTERN SEQ(A a, B+ b[]) WITHIN 5 min")).splitlines()[0])
        digraph pattern {
    """
    flow = _flow(query)
    lines = ["digraph pattern {", *(f"  {each}" for each in _DOT_DEFAULTS)]
    if flow.notes:
        rows = "".join(f'{html.escape(row)}<br align="left"/>' for row in _wrapped(flow.notes))
        lines.append(f"  label=<{rows}>; labelloc=t; labeljust=l; fontsize=10;")
    lines += _dot_members(flow.members, "  ")
    lines += [f"  {tail} -> {head};" for tail, head in reversed(flow.arrows)]  # Graphviz draws the last on top
    return "\n".join([*lines, "}"]) + "\n"


# --- query to flow ------------------------------------------------------------------------------------------


def _flow(query: ast.Query) -> _Flow:
    order = {event.variable: place for place, event in reversed(list(enumerate(ast.events(query.pattern))))}
    conditions: dict[str, list[str]] = {}
    general = []
    for conjunct in ast.conjuncts(query.where):
        text, named = render_expression(conjunct), ast.variables_of(conjunct)
        if named and all(variable in order for variable in named):
            conditions.setdefault(max(named, key=order.__getitem__), []).append(text)
        else:
            general.append(f"WHERE {text}")
    clauses = render_clauses(query).items()
    general += [f"{word} {text}" for word, text in clauses if word not in ("PATTERN", "WHERE")]
    drawing = _Drawing(conditions)
    members: list[_Box | _Frame] = [_Box("start", "start")]
    first, last = drawing.add(query.pattern, members)
    members.append(_Box("match", "end"))
    return _Flow(members, [("start", first), *drawing.arrows, (last, "match")], tuple(general))


class _Drawing:
    """Draws a pattern part by part; every part has one box where it starts and one where it ends."""

    def __init__(self, conditions: dict[str, list[str]]) -> None:
        self.conditions = conditions
        self.arrows: list[tuple[str, str]] = []
        self.counts = {"n": 0, "g": 0, "p": 0}

    def add(self, pattern: ast.Pattern, into: list[_Box | _Frame]) -> tuple[str, str]:
        """Draw a part into a frame and return its first and its last box."""
        match pattern:
            case ast.Event():
                return self._event(pattern, pattern, "event", into)
            case ast.Negation(event=event):
                return self._event(pattern, event, "negation", into)
            case ast.Repetition(part=ast.Event() as event):
                return self._event(pattern, event, "list", into)
            case ast.Option(part=ast.Event() as event):
                return self._event(pattern, event, "option", into)
            case ast.Sequence(parts=parts):
                ends = [self.add(part, into) for part in parts]
                self.arrows += [(last, first) for (_, last), (first, _) in pairwise(ends)]
                return ends[0][0], ends[-1][1]
            case ast.Repetition(part=part):
                return self.add(part, self._frame(_repetition_title(pattern), into))
            case ast.Option(part=part):
                return self.add(part, self._frame("? (at most once)", into))
            case ast.Conjunction(parts=parts):
                return self._branches("AND (all, in any order)", parts, into)
            case ast.Disjunction(parts=parts):
                return self._branches("OR (one of them)", parts, into)
            case ast.AnyOf(count=count, parts=parts):
                return self._branches(f"ANY {count} (in any order)", parts, into)

    def _id(self, letter: Literal["n", "g", "p"]) -> str:
        self.counts[letter] += 1
        return f"{letter}{self.counts[letter]}"

    def _event(self, pattern: ast.Pattern, event: ast.Event, kind: Kind, into: list[_Box | _Frame]) -> tuple[str, str]:
        lines = tuple(self.conditions.pop(event.variable, ()))
        box = _Box(self._id("n"), kind, render_pattern(pattern), lines)
        into.append(box)
        return box.id, box.id

    def _frame(self, title: str, into: list[_Box | _Frame]) -> list[_Box | _Frame]:
        frame = _Frame(self._id("g"), title)
        into.append(frame)
        return frame.members

    def _branches(self, title: str, parts: tuple[ast.Pattern, ...], into: list[_Box | _Frame]) -> tuple[str, str]:
        inside = self._frame(title, into)
        fork, join = _Box(self._id("p"), "point"), _Box(self._id("p"), "point")
        inside.append(fork)
        for part in parts:
            first, last = self.add(part, inside)
            self.arrows += [(fork.id, first), (last, join.id)]
        inside.append(join)
        return fork.id, join.id


def _repetition_title(repetition: ast.Repetition) -> str:
    match repetition.low, repetition.high:
        case 0, None:
            words = "any number of times"
        case 1, None:
            words = "once or more"
        case low, None:
            words = f"{low} times or more"
        case low, high:
            words = f"{low} times" if low == high else f"{low} to {high} times"
    return f"{repetition_sign(repetition)} ({words})"


def _boxes(members: Iterable[_Box | _Frame]) -> Iterator[_Box]:
    for member in members:
        if isinstance(member, _Box):
            yield member
        else:
            yield from _boxes(member.members)


def _wrapped(lines: Iterable[str]) -> list[str]:
    """Return lines that fit into a box, with nothing in them that cannot be printed."""
    return [part for line in lines for part in textwrap.wrap(_printable(line), LINE_WIDTH, break_on_hyphens=False)]


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


# --- flow to Mermaid ----------------------------------------------------------------------------------------

_MERMAID_SHAPES: dict[Kind, tuple[str, str]] = {
    "event": ("[", "]"), "list": ("[[", "]]"), "option": ("(", ")"), "negation": ("{{", "}}"), "point": ("((", "))"),
    "start": ("((", "))"), "end": ("(((", ")))"), "note": ("[", "]"),
}  # fmt: skip
_MERMAID_STYLES = {
    "step": "fill:#eef4fb,stroke:#34618f,color:#111",
    "maybe": "fill:#fff,stroke:#34618f,color:#111,stroke-dasharray:4 3",
    "forbidden": "fill:#fdecea,stroke:#b3261e,color:#111,stroke-dasharray:4 3",
    "dot": "fill:#555,stroke:#555",
    "goal": "fill:#fff,stroke:#555",
    "note": "fill:#fffbe6,stroke:#c9b458,color:#111,text-align:left",
}
_MERMAID_CLASSES: dict[Kind, str] = {
    "event": "step", "list": "step", "option": "maybe", "negation": "forbidden", "point": "dot", "start": "dot",
    "end": "goal", "note": "note",
}  # fmt: skip
# A back quote after the opening quote would start Markdown, a star at the start of a line a list.
_MERMAID_CODES = {
    '"': "#quot;",
    "#": "#35;",
    "&": "#amp;",
    "<": "#lt;",
    ">": "#gt;",
    "`": "#96;",
    "*": "#42;",
    "\\": "#92;",
}


def _mermaid_text(lines: Iterable[str]) -> str:
    text = "<br/>".join("".join(_MERMAID_CODES.get(c, c) for c in line) for line in _wrapped(lines))
    return f'"{text or " "}"'


def _mermaid_members(members: Iterable[_Box | _Frame], indent: str) -> Iterator[str]:
    for member in members:
        if isinstance(member, _Frame):
            yield f"{indent}subgraph {member.id}[{_mermaid_text([member.title])}]"
            yield from _mermaid_members(member.members, indent + "  ")
            yield f"{indent}end"
        else:
            opening, closing = _MERMAID_SHAPES[member.kind]
            yield f"{indent}{member.id}{opening}{_mermaid_text([member.title, *member.lines])}{closing}"


# --- flow to Graphviz ---------------------------------------------------------------------------------------

_DOT_DEFAULTS = [
    "rankdir=LR; ordering=out;",
    'fontname="Helvetica";',
    'node [shape=box, style="rounded,filled", fillcolor="#eef4fb", color="#34618f"];',
    'node [fontname="Helvetica", fontsize=12];',
    'edge [color="#555555", arrowsize=0.7];',
]
_DOT_SHAPES: dict[Kind, str] = {
    "event": "",
    "list": "peripheries=2",
    "option": 'style="rounded,filled,dashed", fillcolor="#ffffff"',
    "negation": 'shape=octagon, style="filled,dashed", fillcolor="#fdecea", color="#b3261e"',
    "point": 'shape=point, width=0.08, color="#555555", fillcolor="#555555"',
    "start": 'shape=circle, width=0.15, fillcolor="#555555", color="#555555", label=""',
    "end": 'shape=doublecircle, width=0.15, fillcolor="#555555", color="#555555", label=""',
    "note": "",
}


def _dot_text(title: str, lines: Iterable[str]) -> str:
    rows = [f"<b>{html.escape(row)}</b>" for row in _wrapped([title])]
    rows += [f'<font point-size="10">{html.escape(row)}</font>' for row in _wrapped(lines)]
    return "<" + "<br/>".join(rows) + ">"


def _dot_members(members: Iterable[_Box | _Frame], indent: str) -> Iterator[str]:
    for member in members:
        if isinstance(member, _Frame):
            yield f"{indent}subgraph cluster_{member.id} {{"
            yield f'{indent}  label=<<i>{html.escape(member.title)}</i>>; fontsize=11; color="#999999"; style=rounded;'
            yield from _dot_members(member.members, indent + "  ")
            yield f"{indent}}}"
        else:
            parts = [_DOT_SHAPES[member.kind]]
            if member.kind not in ("point", "start", "end"):
                parts.insert(0, f"label={_dot_text(member.title, member.lines)}")
            yield f"{indent}{member.id} [{', '.join(filter(None, parts))}];"
