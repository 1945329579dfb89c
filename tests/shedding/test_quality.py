"""False negatives and positives by hand, in arrays: thesis 2.2, equations 2.1 and 2.2."""

import numpy as np

from penstock.shedding.quality import Found, relaxed, strict


def found(*matches: tuple[int, int, int]) -> Found:
    """Return matches of (query, window, events)."""
    return Found(*(np.array(column) for column in zip(*matches, strict=True)))


def test_weighted_sums_of_what_is_lost_and_what_is_invented() -> None:
    # Queries of weight 2 and 0.5. Truth: three matches of the first, two of the second, 7 in all. Found: one of each,
    # one of the first with other events in the same window, and one in a window that has none.
    truth = found((0, 1, 11), (0, 1, 12), (0, 2, 13), (1, 1, 21), (1, 3, 22))
    got = found((0, 1, 11), (0, 1, 99), (1, 1, 21), (1, 9, 31))
    each = strict(truth, got, [2.0, 0.5])
    assert (each.truth, each.found) == (7.0, 5.0)
    assert each.false_negatives == 2 + 2 + 0.5  # 12 and 13 of the first, 22 of the second
    assert each.false_positives == 2 + 0.5  # 99 and 31
    assert each.lost == 4.5 / 7
    loose = relaxed(truth, got, [2.0, 0.5])  # by window, with multiplicity: 99 stands for 12
    assert loose.false_negatives == 2 + 0.5
    assert loose.false_positives == 0.5
