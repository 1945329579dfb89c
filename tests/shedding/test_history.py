"""What a history says of some of its windows, and of windows with fewer events than a table has cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.runtime.costs import Costs
from penstock.runtime.stream import Stream
from penstock.runtime.training import unshed
from penstock.shedding.history import History
from penstock.shedding.strategies.gspice import GspiceSH
from penstock.shedding.strategies.hspice import HspicePM, HspiceW


def history(text: str, events: Any, **options: Any) -> History:
    found = unshed([(pk.parse(f"PATTERN {text}"), 1.0)], events, Costs(), is_split=True, **options).history
    assert found is not None
    return found


def in_seconds(sizes: Sequence[int]) -> dict[str, Any]:
    """Return a window a second, of so many events each: an A, perhaps N, a B."""
    types, times = [], []
    for second, size in enumerate(sizes):
        types += ["A", *["N"] * (size - 2), "B"]
        times += [second * 1_000_000 + place * 1000 for place in range(size)]
    return {"type": types, "ts": np.array(times)}


def test_runs_are_counted_in_all_cells_of_a_position_as_matches_are() -> None:
    seen = history("SEQ(A a, B b) WITHIN 1 s WINDOW 1 s EVERY 1 s", in_seconds([2] * 1000), bins=8)
    utilities = HspicePM.fitted(seen).tables[0][seen.names.index("A"), :, 0]
    # Each A is in a match, at position 0 of 2, which is the cells 0 to 3: each has a quarter of the runs, by a hash.
    assert (np.abs(utilities[:4] - 1) < 0.3).all()
    assert utilities[:4].mean() > 0.85
    assert not utilities[4:].any()


@pytest.mark.parametrize("made", [HspicePM, HspiceW])
def test_hspice_learns_at_the_positions_that_its_decisions_look_up(made: Any) -> None:
    # The third window has 2 events where 6 are expected, (4 + 8) / 2, and the fourth 10 where 5 are, (4 + 8 + 2) / 3
    # rounded. So B comes at 3 of 4, at 7 where 4 are expected, at 1 where 6 are, and at 9 where 5 are. With 12 cells
    # these are the cells 9 to 11, the last of 3 (of a place that is behind the end), 2 and 3, and the last of 5 again.
    seen = history("SEQ(A a, B b) WITHIN 1 s WINDOW 1 s EVERY 1 s", in_seconds([4, 8, 2, 10]), bins=12)
    assert seen.foreseen is not None
    assert seen.foreseen.tolist() == [0] * 4 + [4] * 8 + [6] * 2 + [5] * 10
    b, waiting = seen.names.index("B"), 1
    wanted = np.zeros(12)
    for first, stop in ((9, 12), (9, 12), (2, 4), (10, 12)):
        wanted[first:stop] += 1 / (stop - first)
    np.testing.assert_allclose(seen.completed_by_state(0)[b, :, waiting], wanted)
    met = seen.queries[0].open_runs[b, :, waiting]
    assert met.sum() == 4
    assert set(np.flatnonzero(met)) <= {2, 3, 9, 10, 11}
    assert met[2:4].sum() == 1
    model = made.fitted(seen)
    assert not model.tables[0][b, 4:9].any()
    assert (model.tables[0][b, met[:] > 0, waiting] > 0).all()
    # eSPICE goes by the sizes that windows have: B is last in each.
    assert np.flatnonzero(seen.contributions()[b]).tolist() == [6, 7, 8, 9, 10, 11]
    whole = made.fitted(replace(seen, foreseen=None))
    assert not np.array_equal(whole.tables[0], model.tables[0])


def test_events_of_windows_that_do_not_count_do_not_count() -> None:
    # Each window of four events is a match; a quarter of the windows is marked.
    events = {"type": ["A", "B", "N", "N"] * 200, "ts": np.arange(800)}
    seen = history("SEQ(A a, B b) WITHIN 4 EVENTS WINDOW 4 EVENTS EVERY 4 EVENTS", events)
    marked = np.arange(len(seen.starts)) % 4 == 0
    part = seen.narrowed(0, marked)
    assert part.events().tolist() == np.flatnonzero(np.repeat(marked, 4)).tolist()
    whole, narrowed = (GspiceSH.fitted(each, pane=1) for each in (seen, part))
    of_types = [made.otherwise[[seen.names.index(name) for name in "ABN"], 0].tolist() for made in (whole, narrowed)]
    assert of_types == [[1.0, 1.0, 0.0]] * 2
    some = marked & (np.arange(len(marked)) >= 25) & (np.arange(len(marked)) < 50)
    later = seen.narrowed(100, some)  # windows 28, 32, … 48; events are counted from 100 on
    assert later.events().tolist() == [4 * w - 100 + k for w in range(28, 50, 4) for k in range(4)]


def test_an_event_counts_if_one_of_its_windows_does() -> None:
    events = {"type": ["A", "B", "N", "N"] * 5, "ts": np.arange(20)}
    seen = history("SEQ(A a, B b) WITHIN 8 EVENTS WINDOW 8 EVENTS EVERY 4 EVENTS", events)
    only_second = np.arange(len(seen.starts)) == 1
    assert seen.narrowed(0, only_second).events().tolist() == list(range(4, 12))
    nowhere = replace(seen, low=seen.low + 9, high=seen.high - 9)
    assert not len(nowhere.narrowed(0, only_second).events())


def test_the_size_of_a_window_is_not_known_before_one_is_over() -> None:
    stream = Stream([pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 s WINDOW 1 s EVERY 1 s")], is_split=True)
    stream.take(in_seconds([18, 2, 18]))
    assert [stream.expected_size(now) for now in (0, 4, 17)] == [1, 5, 18]  # what has come so far
    assert stream.view(0, 6).sizes.tolist() == [6], "of all windows; a slice is known when it is decided about"
    assert stream.expected_size(18) == 18, "the first window was over"
    assert stream.expected_size(20) == 10
