"""WHERE: the values of expressions: arithmetic, literals, comparison, logic, functions."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from tests.reference.answers import found


def holds(where: str, attributes: str, **registered: Any) -> bool:
    """Whether a condition on one event `A a` at time 0 is true."""
    return found(f"A a WHERE {where} WITHIN 1 h", f"A0({attributes})", **registered) == "0"


def table(text: str) -> list[list[str]]:
    """The rows of a table; there are two spaces or more between its columns."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if line.strip()]


TRUE = table("""
    x=7              a.x / 2 = 3.5
    x=3              1 + 2 * a.x = 7
    x=3              (1 + 2) * a.x = 9
    x=3              10 - 2 - a.x = 5
    x=3              a.x × 2 = 6
    x=-3             -a.x = 3
    x=3              2 - -a.x = 5
    x=7              a.x % 3 = 1
    x=-1             a.x % 3 = 2
    x=5              a.x % -3 = -1
    x=2.5            a.x % 1 = 0.5
    x=0.25, y=0.5    a.x + a.y = 0.75

    x=10000          a.x = 10k
    x=1500           a.x = 1.5k
    x=2000000        a.x = 2M
    x=2000           a.x = 2e3
    x=it's           a.x = 'it''s'
    x=red            a.x = "red"

    x=300000000      a.x = 5 min
    x=1800000000     a.x = 0.5 h
    x=3000           a.x = 3 ms
    x=2              a.x = 2 us
    x=86400000000    a.x = 1 d
    x=604800000000   a.x = 1 w
    x=3600000000     a.x = 2 hours - 1 hour
    x=3              a.x * 2 s = 6 s
    x=1.5            90 s / 1 min = a.x

    x=3              a.x = 3
    x=3              a.x == 3.0
    x=3              a.x <> 4
    x=3              a.x != 4
    x=3              a.x ≠ 4
    x=3              a.x < 4
    x=3              a.x <= 3
    x=3              a.x ≤ 3
    x=3              a.x > 2
    x=3              a.x >= 3
    x=3              a.x ≥ 3
    x=a              a.x < 'b'
    x=3              1 < a.x < 5
    x=3, y=3         5 > a.x >= a.y > 0
    x=1, y=1, z=1    a.x = a.y = a.z

    x=3              a.x IN (1, 3)
    x=3              a.x NOT IN (1, 2)
    x=3, y=3         a.x ∈ (a.y, 4)
    x=3              a.x ∉ (1, 2)
    x=c              a.x IN ('b', 'c')
    x=3              a.x + 1 IN (4)

    x=3, y=4         a.x = 3 AND a.y = 4
    x=3, y=4         a.x = 3, a.y = 4
    x=3, y=4         a.x = 1 OR a.y = 4
    x=3              NOT a.x = 1
    x=1, y=5         a.x = 1 OR a.x = 3 AND a.y = 4
    x=3, y=4         a.x = 3 ∧ (a.y = 1 ∨ ¬(a.y = 2))
    x=3              1 < 2
    x=3              a.ts = 0 AND a.seq = 0 AND a.type = 'A'
""")

FALSE = table("""
    x=-1             a.x % 3 = -1
    x=7              a.x / 2 = 3
    x=3              a.x = 4
    x=3              a.x = '3'
    x=3              a.x <> 3
    x=3              a.x < 3
    x=3              a.x <= 2
    x=3              a.x > 3
    x=3              a.x >= 4
    x=3              1 < a.x < 3
    x=3              3 < a.x < 5
    x=1, y=1, z=2    a.x = a.y = a.z
    x=2, y=1, z=1    a.x = a.y = a.z
    x=3              a.x IN (1, 2)
    x=3              a.x NOT IN (1, 3)
    x=3, y=5         a.x = 3 AND a.y = 4
    x=3, y=5         a.x = 3, a.y = 4
    x=3, y=4         a.x = 1 OR a.y = 1
    x=3              NOT a.x = 3
    x=1, y=5         (a.x = 1 OR a.x = 3) AND a.y = 4
""")

FUNCTIONS = table("""
    abs(a.x)                  -3     3
    abs(a.x)                  3      3
    sqrt(a.x)                 9      3
    sqrt(a.x)                 0      0
    floor(a.x)                2.7    2
    floor(a.x)                -2.1   -3
    ceil(a.x)                 2.1    3
    ceil(a.x)                 -2.7   -2
    round(a.x)                2.4    2
    round(a.x)                2.5    2
    round(a.x)                3.5    4
    round(a.x)                -2.5   -2
    exp(a.x)                  0      1
    ln(a.x)                   1      0
    ln(exp(a.x))              2      2
    pow(2, a.x)               3      8
    pow(2, a.x)               -1     0.5
    pow(a.x, 0.5)             4      2
    sign(a.x)                 -3     -1
    sign(a.x)                 0      0
    sign(a.x)                 0.1    1
    min(3, a.x, 2)            1      1
    min(3, a.x)               4      3
    max(3, a.x, 4)            5      5
    max(3, a.x)               2      3
    dist(0, 0, 3, a.x)        4      5
    dist(1, 1, 1, a.x, 3, 3)  2      3
    ABS(a.x)                  -3     3
    Max(1, a.x)               2      2
    abs(a.x - 2 s) / 1 s      1      1.999999
""")


@pytest.mark.parametrize(("attributes", "where"), TRUE)
def test_true(where: str, attributes: str) -> None:
    assert holds(where, attributes)


@pytest.mark.parametrize(("attributes", "where"), FALSE)
def test_false(where: str, attributes: str) -> None:
    assert not holds(where, attributes)


@pytest.mark.parametrize(("expression", "x", "value"), FUNCTIONS)
def test_functions(expression: str, x: str, value: str) -> None:
    assert holds(f"{expression} = {value}", f"x={x}")
    assert not holds(f"{expression} <> {value}", f"x={x}")


USERS: dict[str, Any] = {"double": lambda x: 2 * x, "lost": lambda x: math.nan, "none": lambda x: None}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("double(a.x) = 6", True),
        ("double(a.x) = 7", False),
        ("double(double(a.x) + 1) = 14", True),
        ("double(a.missing) <> 6", False),
        ("lost(a.x) <> 6", False),
        ("none(a.x) <> 6", False),
        ("NOT (lost(a.x) = 6)", True),
        ("max(1, lost(a.x)) = 1", False),
    ],
)
def test_user_functions(where: str, expected: bool) -> None:
    assert holds(where, "x=3", functions=USERS) is expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(6 * 3600, "0"), (6 * 3600 - 0.000001, ""), (24 * 3600, ""), (30 * 3600, "0"), (30 * 3600 - 1, "")],
)
def test_after_six_utc(seconds: float, expected: str) -> None:
    assert found("A a WHERE a.ts % 24 h >= 6 h WITHIN 1 h", f"A0@{seconds:.6f}") == expected


def test_differences_of_times() -> None:
    assert found("SEQ(A a, B b) WHERE b.ts - a.ts > 5 s WITHIN 1 h", "A0@0 B1@5 B2@5.000001") == "0 2"
