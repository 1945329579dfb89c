"""Any text at all gives a query or an error that points into the text, soon; any query is its text.

The texts are random, or queries of tests/queries that were damaged; each chunk has its own seed, so a failure
comes back. 10,000 texts in all.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings

from penstock.errors import Problem, QueryError, position_at
from penstock.pattern import ast
from penstock.pattern.parser import MAX_LENGTH, parse
from penstock.pattern.render import render
from penstock.pattern.variables import RESERVED
from tests.pattern.strategies import queries

QUERIES = sorted((Path(__file__).parents[1] / "queries").glob("*.cep"))
CORPUS = [path.read_text(encoding="utf-8") for path in QUERIES]
WHOLE = """PATTERN SEQ(A a, NOT B|`BRK.B` b, (C+ c[], * d){2,5}, ANY(2, E e, F? f), KLEENE(G g)) -- all of it
WHERE a.x = 'it''s' = "q", c[i].y >= c[i-1].y % 2.5, NOT (SUM(c[..i].x) > 10k OR a.x ∉ (1, -2e3)), SAME[k, f(j)]
AND prev(a.x) <> REMOTE[s, a.k].limit AND a.z IN REMOTE[a.user] # and more
WITHIN 5 min PARTITION BY card, `unit price` WINDOW 250 s ON S|T s WHERE s.v > 3 DISTINCT LIMIT 1 PER WINDOW
SELECT EACH, LAST a, CUMULATIVE c CONSUME a, d RETURN abs(a.x) AS y, COUNT(c[]), c[last].x"""

TEXTS_PER_CHUNK = 500
MUTATED_CHUNKS = range(10)
RANDOM_CHUNKS = range(100, 110)
SECONDS = 5  # of the processor, for one text: far more than any takes, far less than a blow-up would

WORDS = [
    *sorted(RESERVED), "A", "a", "x", "i", "first", "last", "each", "none", "all", "events", "by", "per", "prev", "sum",
    "COUNT", "min", "5 min", "5", "0", "2.5", "10k", "1e999", "1e-999", "9" * 400, "''", "'x'", '"', "'", "`", "``",
    "`a b`", "(", ")", "[", "]", "[]", "{", "}", "{2,5}", "{5,2}", "..", ".", ",", ";", "|", "+", "-", "*", "/", "%",
    "?", "!", "=", "<>", "<=", "!=", "≠", "≤", "∈", "∉", "∧", "∨", "¬", "×", "−", "--", "#", "\n", "\r", "\r\n", "\t",
    "\x00", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\ufeff", "ſ", "İ", "K", "²", "٣", "é", "e\u0301", "\ud800",
    "🦆", "\\", "$", "@", "&", "~", "^",
]  # fmt: skip


def check_positions(query: ast.Query, text: str) -> None:
    """Check that every node that was written knows where; a clause that was left out has no place."""
    for node in ast.walk(query):
        if node.position is None:
            assert node in (ast.Select(), ast.Consume())
        else:
            assert node.position == position_at(text, node.position.start, node.position.end)


def check_problem(problem: Problem, text: str) -> None:
    place, lines = problem.position, text.split("\n")
    assert 0 <= place.start <= place.end <= len(text)
    assert 1 <= place.line <= len(lines)
    assert 1 <= place.column <= len(lines[place.line - 1]) + 1
    assert sum(len(line) + 1 for line in lines[: place.line - 1]) + place.column - 1 == place.start
    assert problem.describe(text)


def query_or_problems(text: str) -> ast.Query | tuple[Problem, ...]:
    started = time.process_time()
    try:
        return parse(text)
    except QueryError as error:
        return error.problems
    finally:
        assert time.process_time() - started < SECONDS


def check(text: str) -> bool:
    """Check what must hold for any text, and return whether it is a query."""
    found = query_or_problems(text)
    if isinstance(found, ast.Query):
        check_positions(found, text)
        canonical = render(found)
        assert len(canonical) > MAX_LENGTH or parse(canonical) == found
        return True
    assert found
    for problem in found:
        check_problem(problem, text)
    return False


# --- queries ------------------------------------------------------------------------------------------------


@settings(max_examples=1_000, deadline=None)
@given(queries)
def test_a_query_is_its_text(query: ast.Query) -> None:
    back = parse(render(query), query.name)
    assert back == query
    assert repr(back) == repr(query)  # 1 == 1.0, but they are not the same number
    assert render(back) == render(query)


@pytest.mark.parametrize("text", [*CORPUS, WHOLE])
def test_real_queries_are_their_text(text: str) -> None:
    assert check(text)


# --- texts --------------------------------------------------------------------------------------------------


BARE = [re.sub(r"^\s*(--|#).*\n", "", text, flags=re.MULTILINE) for text in CORPUS]
SHORT = [WHOLE, *(text for text in BARE if len(text) < 400)]


def tokens(text: str) -> list[str]:
    return re.findall(r"\w+|\s+|.", text, re.DOTALL)


def damage(parts: list[str], chance: random.Random) -> None:
    """Change a list of tokens or characters somewhere, once."""
    at, other = chance.randrange(len(parts)), chance.randrange(len(parts))
    match chance.randrange(8):
        case 0:
            del parts[at]
        case 1:
            parts.insert(at, parts[at])
        case 2:
            parts[at], parts[other] = parts[other], parts[at]
        case 3:
            parts.insert(at, chance.choice(WORDS))
        case 4:
            parts[at] = chance.choice(WORDS)
        case 5:
            del parts[min(at, other) : max(at, other)]
        case 6:
            parts[at] = parts[at].swapcase()
        case 7:
            parts[at:at] = parts[min(at, other) : min(max(at, other), min(at, other) + 10)]


def mutated(chance: random.Random) -> str:
    parts = tokens(chance.choice(SHORT))
    for _ in range(chance.randint(1, 3)):
        damage(parts, chance)
        parts = parts or [" "]
    if chance.random() < 0.3:
        parts = list("".join(parts))
        damage(parts, chance)
    return "".join(parts)


def anything(chance: random.Random) -> str:
    size = chance.randint(0, 30)
    match chance.randrange(3):
        case 0:
            return "".join(chr(chance.choice([chance.randrange(128), chance.randrange(0x110000)])) for _ in range(size))
        case 1:
            return "PATTERN " + chance.choice(["", " "]).join(chance.choices(WORDS, k=size))
        case _:
            return chance.choice(["", " "]).join(chance.choices(WORDS, k=size))


def check_chunk(make: Callable[[random.Random], str], seed: int) -> int:
    chance = random.Random(seed)
    accepted = 0
    for number in range(TEXTS_PER_CHUNK):
        text = make(chance)
        try:
            accepted += check(text)
        except Exception as error:
            error.add_note(f"text {number} of chunk {seed}: {text!r}")
            raise
    return accepted


@pytest.mark.parametrize("seed", MUTATED_CHUNKS)
def test_damaged_queries(seed: int) -> None:
    assert 0 < check_chunk(mutated, seed) < TEXTS_PER_CHUNK  # some damage does no harm, most does


@pytest.mark.parametrize("seed", RANDOM_CHUNKS)
def test_random_texts(seed: int) -> None:
    check_chunk(anything, seed)


def test_there_are_enough_texts() -> None:
    assert TEXTS_PER_CHUNK * (len(MUTATED_CHUNKS) + len(RANDOM_CHUNKS)) >= 10_000


# --- large texts --------------------------------------------------------------------------------------------

MANY = 10_000
NESTED = {
    "parentheses of a pattern": f"PATTERN {'(' * MANY}A{')' * MANY}",
    "open parentheses": f"PATTERN {'(' * MANY}",
    "closed parentheses": f"PATTERN A{')' * MANY}",
    "sequences": f"PATTERN {'SEQ(' * MANY}A{')' * MANY}",
    "groups": f"PATTERN {'(' * MANY}A{')+' * MANY}",
    "kleene": f"PATTERN {'KLEENE(' * MANY}A{')' * MANY}",
    "negations": f"PATTERN {'NOT ' * MANY}A",
    "parentheses": f"PATTERN A WHERE {'(' * MANY}A.x{')' * MANY}",
    "not": f"PATTERN A WHERE {'NOT ' * MANY}A.x",
    "exclamation marks": f"PATTERN A WHERE {'!' * MANY}A.x",
    "minus": f"PATTERN A WHERE {'- ' * MANY}A.x",
    "minus without blanks": f"PATTERN A WHERE {'-' * MANY}A.x",
    "sums": f"PATTERN A WHERE A.x{' + 1' * MANY}",
    "comparisons": f"PATTERN A WHERE A.x{' = 1' * MANY}",
    "calls": f"PATTERN A WHERE {'f(' * MANY}A.x{')' * MANY}",
    "remote": f"PATTERN A WHERE {'REMOTE[s, ' * MANY}A.x{']' * MANY}",
    "square brackets": f"PATTERN A WHERE {'[' * MANY}x{']' * MANY}",
    "curly brackets": f"PATTERN A{'{' * MANY}",
    "members": f"PATTERN A WHERE {'A.x IN (' * MANY}1{')' * MANY}",
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in NESTED.items()])
def test_deep_nesting(text: str) -> None:
    check(text)


LONG = {
    "pattern": "PATTERN SEQ({}",
    "name": "PATTERN A{}",
    "condition": "PATTERN A WHERE {}",
    "number": "PATTERN A WHERE A.x = 1{}",
    "text": "PATTERN A WHERE A.x = '{}",
    "quoted": "PATTERN `{}",
    "index": "PATTERN A WHERE A[i{}",
    "span": "PATTERN A WITHIN 5{}",
    "comment": "PATTERN A -- {}",
    "nothing": "{}",
    "word before the mistake": "PATTERN A {} ( $",
    "number before the mistake": "PATTERN A WITHIN {} $",
    "texts before the mistake": "PATTERN A WHERE '{}' ( $",
}
FILLINGS = ["x", "1", " ", "\n", "'", "`", "``", "$", "0.1", "é", "-", "--\n", "i-", "WITHIN 1 "]
MANY_TOKENS = ["(", "A,", "1 "]


@pytest.mark.parametrize("frame", [pytest.param(frame, id=name) for name, frame in LONG.items()])
def test_long_texts(frame: str) -> None:
    for filling in [*FILLINGS, *MANY_TOKENS]:
        length = MAX_LENGTH // 20 if filling in MANY_TOKENS else MAX_LENGTH - 100
        check(frame.format(filling * (length // len(filling))))
        check(frame.format(filling * (1_000_000 // len(filling))))


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(" + "Abcd efgh," * (MAX_LENGTH // 10 - 10) + "A)",
        "PATTERN A WHERE A.x=1" + " AND A.x=1" * (MAX_LENGTH // 10 - 10),
        "PATTERN A WHERE A.x IN (" + "123456789," * (MAX_LENGTH // 10 - 10) + "1)",
    ],
)
def test_the_longest_queries(text: str) -> None:
    started = time.process_time()
    parse(text)
    assert time.process_time() - started < 4 * SECONDS


@pytest.mark.parametrize("digits", [10, 299, 300, 301, 5_000, 50_000])
@pytest.mark.parametrize(
    "form", ["{}", "{}.5", "0.{}", "{}k", "1e{}", "1e-{}", "{}e{}", "{} s", "0.{} s", "{} EVENTS", "{}.{}M"]
)
def test_huge_numbers(form: str, digits: int) -> None:
    number = form.replace("{}", "9" * digits)
    for frame in ("A.x = {}", "A[{}].x = 1", "A.x IN ({})"):
        check(f"PATTERN A WHERE {frame.format(number)}")
    check(f"PATTERN A WITHIN {number}")
    check(f"PATTERN ANY({number}, A)")
    check(f"PATTERN A{{{number},{number}}}")
