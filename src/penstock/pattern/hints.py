"""From the parser's words to the user's: what was expected, and what was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.pattern.variables import RESERVED

CLAUSES = ("PATTERN", "WHERE", "WITHIN", "PARTITION BY", "WINDOW", "LIMIT", "SELECT", "CONSUME", "RETURN")
UNITS = "us ms s min h d w"
SPAN_FIX = "write a duration, as in 5 min, or a number of events, as in 8 EVENTS"
MAX_EXPECTED = 10
MAX_WORD = 40
MAX_NUMBER = 40
MAX_NAME = 80

# What the terminals of a set stand for together, the larger sets first.
_TOGETHER = {
    "an expression": {
        "NAME", "NUMBER", "DURATION", "STRING", "TRUE", "FALSE", "_REMOTE", "_SAME", "LPAR", "LSQB", "MINUS",
    },
    "a pattern": {"NAME", "STAR", "LPAR", "_SEQ", "_AND", "_OR", "_ANY", "_KLEENE", "_NOT"},
    "an operator": {"PLUS", "MINUS", "STAR", "SLASH", "PERCENT"},
    "a repetition": {"PLUS", "STAR", "OPTIONAL", "LBRACE"},
}  # fmt: skip
_SPELLED = {
    "NAME": "a name", "ATTRIBUTE": "an attribute", "NUMBER": "a number", "DURATION": "a duration", "STRING": "a text",
    "COMPARATOR": "a comparison",
    "LPAR": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "LBRACE": "'{'", "RBRACE": "'}'", "COMMA": "','",
    "DOT": "'.'", "VBAR": "'|'", "PLUS": "'+'", "MINUS": "'-'", "STAR": "'*'", "SLASH": "'/'", "PERCENT": "'%'",
    "OPTIONAL": "'?'", "LIST": "'[]'", "__ANON_0": "'..'", "I": "i", "I_BEFORE": "i-1", "_PARTITION": "PARTITION BY",
    "$END": "the end of the query",
}  # fmt: skip
_SAID_OTHERWISE = {"QUOTED", "MAGNITUDE", "_NOT_IN", "SEMICOLON", "COMMENT", "WHITESPACE"}
_KEYWORDS = [
    "PATTERN", "SEQ", "AND", "OR", "ANY", "NOT", "WHERE", "WITHIN", "PARTITION", "WINDOW", "EVERY", "DISTINCT",
    "LIMIT", "SELECT", "EACH", "FIRST", "LAST", "CUMULATIVE", "STRICT", "CONSUME", "RETURN", "EVENTS", "SAME", "REMOTE",
    "KLEENE",
]  # fmt: skip
_COMMA_NUMBER = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w,])")


@dataclass(frozen=True)
class CommaNumber:
    """A number written as `10,000`: where it starts, and what to write instead."""

    start: int
    fix: str


def comma_number(text: str, at: int) -> CommaNumber | None:
    """Return the number with commas that an offset is in; None if there is none.

    Examples:
        >>> comma_number("a.x > 10,000", 9).fix
        'numbers take no commas: write 10000 or 10k'
        >>> comma_number("f(10, 000)", 6), comma_number("a.x > 10,00", 9)
        (None, None)
    """
    for found in _COMMA_NUMBER.finditer(text, max(0, at - MAX_NUMBER), at + MAX_NUMBER):
        if found.start() <= at < found.end():
            number = found[0].replace(",", "")
            short = re.sub("000$", "k", re.sub("000000$", "M", number)) if "." not in number else number
            ways = " or ".join(dict.fromkeys([number, short]))
            return CommaNumber(found.start(), f"numbers take no commas: write {ways}")
    return None


def word_at(text: str, start: int) -> str:
    """Return the word, number or sign that starts at an offset."""
    found = re.compile(r"\d[\w.]*|\w+|\s|\S").match(text, start)
    return found[0] if found else ""


def expected_text(terminals: Iterable[str]) -> str:
    """Return what may stand here in the words of docs/language.md, the likeliest first."""
    left = set(terminals) - _SAID_OTHERWISE
    names = []
    for name, together in _TOGETHER.items():
        if together <= left:
            left -= together
            names.append(name)
    names = sorted({*names, *(_SPELLED.get(t, t.lstrip("_")) for t in left)}, key=_rank)
    clauses = [name for name in names if name in CLAUSES]
    if len(clauses) > 2:
        names[names.index(clauses[1]) : names.index(clauses[-1]) + 1] = ["a later clause"]
    if not names:
        return "something else"
    shown = names if len(names) <= MAX_EXPECTED else [*names[: MAX_EXPECTED - 1], "…"]
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + f" or {shown[-1]}"


def _rank(name: str) -> tuple[int, int, str]:
    if name in CLAUSES:
        return 3, CLAUSES.index(name), name
    order = 0 if name.startswith(("a ", "an ")) else 1 if name.startswith("'") else 4 if name.startswith("the ") else 2
    return order, 0, name


def syntax_fix(text: str, start: int, found: str, expected: Iterable[str]) -> str:
    """Return what to write instead, or "" if nothing better than the expected list can be said."""
    before, expected = text[:start].rstrip(), set(expected)
    if not text.strip():
        return "start with PATTERN, as in: PATTERN SEQ(A a, B b) WITHIN 5 min"
    if not before and found.upper() != "PATTERN":
        return "a query starts with PATTERN"
    comma = comma_number(text, start) if found == "," else None
    if comma is not None:
        return comma.fix
    if re.search(r"\b(WITHIN|EVERY|WINDOW)\s+[\d.]+\s*[kM]?$", before, re.IGNORECASE) and found.upper() != "EVENTS":
        return f"say the unit: a duration ({UNITS}) or EVENTS"
    if re.fullmatch(r"\d[\w.]*", found) and re.match(r"[\d.]+\s*[^\W\d]", text[start:]):
        return f"unknown unit; there are {UNITS}, k (thousand) and M (million)"
    if found == ":" and (clock := re.search(r"(?<![\w.:])\d{1,2}$", before)):
        return _clock_fix(text[clock.start() :])
    if _is_call_in_brackets(text[start:], expected):
        return _bracket_fix(before)
    if found in ("'", '"', "`"):
        return f"close it with another {found}; a {found} inside is doubled"
    return _word_fix(before, found, expected) or _place_fix(before, found, expected)


def _clock_fix(text: str) -> str:
    clock = re.match(r"(\d+)\s*:([0-5]\d)(?!\w|:|\s*[ap]m\b)", text, re.IGNORECASE)
    if clock is None:
        return ""
    hours, minutes = int(clock[1]), int(clock[2])
    written = f"{60 * hours + minutes} min" if minutes else f"{hours} h"
    return f"write a time of day as {written} and compare with a.ts % 24 h"


def _is_call_in_brackets(rest: str, expected: set[str]) -> bool:
    """Return whether what stands in brackets after a name is no index but the arguments of a function."""
    if {"I", "FIRST", "LAST", "NUMBER"} <= expected:
        return re.match(r"[^\W\d]\w*\s*[.,(\[]|('[^']*'|\"[^\"]*\")\s*[,\]]", rest) is not None
    return expected == {"RSQB"} and re.match(r",[^\]]*[^\W\d]", rest) is not None


def _bracket_fix(before: str) -> str:
    name = re.search(r"(`[^`]+`|\w+)$", before.rpartition("[")[0].rstrip()[-MAX_NAME:])
    called = name[0] if name else "f"
    keyword = difflib.get_close_matches(called.upper(), ["REMOTE", "SAME"], n=1, cutoff=0.8)
    return f"did you mean {keyword[0]}[…]?" if keyword else f"functions take parentheses: {called}(…)"


def _word_fix(before: str, found: str, expected: set[str]) -> str:
    word, is_open = found.upper(), before.count("(") > before.count(")")
    quoted = f"as a name it goes in back quotes: `{found}`"
    if word in {clause.split()[0] for clause in CLAUSES}:
        if is_open:
            return "close the open parenthesis before it" + (f"; {quoted}" if "NAME" in expected else "")
        if "NAME" in expected:
            return f"{found} is a keyword; {quoted}"
        return "clauses come once each, in this order: " + ", ".join(CLAUSES)
    if word in RESERVED and "NAME" in expected:
        return f"{found} is a keyword; {quoted}"
    for each in (word, _last_word(before).upper()):  # `A WHER a.x`: the mistake was read as a name
        close = difflib.get_close_matches(each, _KEYWORDS, n=1, cutoff=0.75)
        if close and each != close[0] and expected & {close[0], "_" + close[0]}:
            return f"did you mean {close[0]}?"
    return ""


def _place_fix(before: str, found: str, expected: set[str]) -> str:
    last = _last_word(before)
    if last and {"DOT", "LSQB"} <= expected:
        return f"an attribute goes with its variable, as in a.{last}"
    if found in ("+", "*", "?", "{") and "LIST" in expected:
        return "a repetition goes between type and name, as in A+ a[]"
    is_open = before.count("(") > before.count(")")
    if not found and is_open:
        return "close the open parenthesis"
    if is_open and {"COMMA", "RPAR"} <= expected and re.match(r"[^\W\d]", found):
        return "put a comma between the parts"
    return ""


def _last_word(text: str) -> str:
    found = re.search(r"\w+$", text[-MAX_WORD:])  # of a long text, the search would be quadratic
    return found[0] if found else ""
