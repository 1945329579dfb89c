"""From the parser's words to the user's: what was expected, and what was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

CLAUSES = ("PATTERN", "WHERE", "WITHIN", "PARTITION BY", "WINDOW", "LIMIT", "SELECT", "CONSUME", "RETURN")
UNITS = "us ms s min h d w"
MAX_EXPECTED = 8

_SPELLED = {
    "NAME": "a name", "ATTRIBUTE": "an attribute", "NUMBER": "a number", "DURATION": "a duration", "STRING": "a text",
    "COMPARATOR": "a comparison",
    "LPAR": "(", "RPAR": ")", "LSQB": "[", "RSQB": "]", "LBRACE": "{", "RBRACE": "}", "COMMA": ",", "SEMICOLON": ";",
    "DOT": ".", "VBAR": "|", "PLUS": "+", "MINUS": "-", "STAR": "*", "SLASH": "/", "PERCENT": "%", "OPTIONAL": "?",
    "LIST": "[]", "__ANON_0": "..", "I": "i", "I_BEFORE": "i-1", "_PARTITION": "PARTITION BY",
    "$END": "the end of the query",
}  # fmt: skip
_SAID_OTHERWISE = {"QUOTED", "MAGNITUDE", "_NOT_IN", "SEMICOLON", "COMMENT", "WHITESPACE"}
_KEYWORDS = [
    "PATTERN", "SEQ", "AND", "OR", "ANY", "NOT", "WHERE", "WITHIN", "PARTITION", "WINDOW", "EVERY", "DISTINCT",
    "LIMIT", "SELECT", "EACH", "FIRST", "LAST", "CUMULATIVE", "STRICT", "CONSUME", "RETURN", "EVENTS", "SAME", "REMOTE",
    "KLEENE",
]  # fmt: skip


def word_at(text: str, start: int) -> str:
    """Return the word, number or sign that starts at an offset."""
    found = re.compile(r"\w+|\s|\S").match(text, start)
    return found[0] if found else ""


def expected_text(terminals: Iterable[str]) -> str:
    """Return what may stand here in the words of docs/language.md, the likeliest first."""
    names = sorted({_SPELLED.get(t, t.lstrip("_")) for t in terminals if t not in _SAID_OTHERWISE}, key=_rank)
    if not names:
        return "something else"
    shown = names if len(names) <= MAX_EXPECTED else [*names[: MAX_EXPECTED - 1], "…"]
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + f" or {shown[-1]}"


def _rank(name: str) -> tuple[int, str]:
    order = 0 if name.startswith(("a ", "an ")) else 1 if not name[0].isalnum() else 2
    return order, name


def syntax_fix(text: str, start: int, found: str, expected: Iterable[str]) -> str:
    """Return what to write instead, or "" if nothing better than the expected list can be said."""
    before = text[:start].rstrip()
    if not text.strip():
        return "start with PATTERN, as in: PATTERN SEQ(A a, B b) WITHIN 5 min"
    if not before and found.upper() != "PATTERN":
        return "a query starts with PATTERN"
    if re.search(r"\b(WITHIN|EVERY|WINDOW)\s+[\d.]+\s*[kM]?$", before, re.IGNORECASE) and found.upper() != "EVENTS":
        return f"say the unit: a duration ({UNITS}) or EVENTS"
    if re.fullmatch(r"\d+\w*", found) and re.match(r"[\d.]+\s*[^\W\d]", text[start:]):
        return f"unknown unit; there are {UNITS}, k (thousand) and M (million)"
    if found.upper() in {clause.split()[0] for clause in CLAUSES}:
        if before.count("(") > before.count(")"):
            return "close the open parenthesis before it"
        return "clauses come once each, in this order: " + ", ".join(CLAUSES)
    if found.upper() in _KEYWORDS and "NAME" in set(expected):
        return f"{found} is a keyword; as a name it goes in back quotes: `{found}`"
    close = difflib.get_close_matches(found.upper(), _KEYWORDS, n=1, cutoff=0.75)
    if close and found.upper() != close[0] and ("_" + close[0] in set(expected) or close[0] in set(expected)):
        return f"did you mean {close[0]}?"
    if not found and before.count("(") > before.count(")"):
        return "close the open parenthesis"
    return ""
