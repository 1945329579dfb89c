"""What an event leaves of a condition is worth what the whole condition is."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernel.compiling import compiled
from penstock.kernel.folding import ALWAYS, NEVER, fold
from penstock.kernel.stack import run_program
from penstock.plan.layout import ADD, AND, CONST, EQ, GT, LT, NE, NOT, OR, REF
from penstock.plan.tables import Floats, Ints

REFERENCES = 4  # the first two are columns of the event, the others registers of the run
VALUES = st.sampled_from([0.0, 1.0, 2.0, float("nan")])


@compiled
def folded(rows: Ints, size: int, columns: Floats, constants: Floats, left: Ints, known: Floats) -> int:
    """Fold the program in the first rows; the loads are behind it."""
    ranks, stack, marks = np.zeros(0, np.int64), np.zeros(512), np.zeros(512, np.int64)
    return fold(rows, (0, size), (size, len(rows)), columns, 0, constants, ranks, left, known, stack, marks)


@compiled
def worth(rows: Ints, size: int, values: Floats, constants: Floats) -> float:
    """Run a program."""
    return run_program(rows, 0, size, values, constants, np.zeros(0, np.int64), np.zeros(512))


def programs() -> st.SearchStrategy[list[tuple[int, int]]]:
    """Return programs of any shape."""
    reads = st.integers(0, REFERENCES - 1).map(lambda r: [(REF, r)])
    constants = st.integers(0, 1).map(lambda c: [(CONST, c)])
    pairs = [ADD, EQ, NE, LT, GT, AND, OR, AND, OR]
    return st.recursive(
        reads | constants,
        lambda below: (
            st.builds(lambda a, b, code: [*a, *b, (code, 0)], below, below, st.sampled_from(pairs))
            | below.map(lambda a: [*a, (NOT, 0)])
        ),
        max_leaves=10,
    )


@settings(deadline=None, max_examples=1000)  # the first is compiled
@given(programs(), st.lists(VALUES, min_size=REFERENCES, max_size=REFERENCES))
def test_what_is_left_is_worth_the_same(program: list[tuple[int, int]], values: list[float]) -> None:
    constants, size = np.array([1.0, 0.5]), len(program)
    loads = [(r, 0 if r < 2 else 1, r) for r in range(REFERENCES)]
    rows = np.array([*((code, argument, 0) for code, argument in program), *loads], np.int64)
    columns = np.array(values[:2])[:, None].copy()
    left, known = np.zeros_like(rows), np.zeros(len(rows))
    length = folded(rows, size, columns, constants, left, known)
    holds = worth(rows, size, np.array(values), constants) == 1.0
    if length in (ALWAYS, NEVER):
        assert holds == (length == ALWAYS)
        return
    assert 0 < length <= size
    assert {argument for code, argument, _ in left[:length] if code == REF} <= {2, 3}
    assert (worth(left, length, np.array(values), known) == 1.0) == holds
