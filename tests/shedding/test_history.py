"""What a history says of some of its windows, and of windows with fewer events than a table has cells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import penstock as pk
from penstock.runtime.costs import Costs
from penstock.runtime.stream import Stream
from penstock.runtime.training import unshed
from penstock.shedding.history import History
from penstock.shedding.strategies.gspice import GspiceSH
from penstock.shedding.strategies.hspice import HspicePM


def history(text: str, events: Any, **options: Any) -> History:
    found = unshed([(pk.parse(f"PATTERN {text}"), 1.0)], events, Costs(), is_split=True, **options).history
    assert found is not None
    return found


def short_and_long(windows: int) -> dict[str, Any]:
    """Return windows of a second, by turns of 2 and of 18 events: an A, perhaps N, a B."""
    types, times = [], []
    for window in range(windows):
        size = 2 if window % 2 else 18
        types += ["A", *["N"] * (size - 2), "B"]
        times += [window * 1_000_000 + place * 1000 for place in range(size)]
    return {"type": types, "ts": np.array(times)}


def test_runs_are_counted_in_all_cells_of_a_position_as_matches_are() -> None:
    seen = history("SEQ(A a, B b) WITHIN 1 s WINDOW 1 s EVERY 1 s", short_and_long(1000))
    assert seen.bins == 10
    utilities = HspicePM.fitted(seen).tables[0][seen.names.index("A"), :, 0]
    # Each A is in a match, at position 0: the cell 0 of the long windows, the cells 0 to 4 of the short ones.
    assert utilities[0] > 0.9
    assert (np.abs(utilities[1:5] - 1) < 0.3).all(), "each has a fifth of 500 windows, by a hash"
    assert utilities[1:5].mean() > 0.85
    assert not utilities[5:].any()


def test_events_of_windows_that_do_not_count_do_not_count() -> None:
    # Each window of four events is a match; a quarter of the windows is marked.
    events = {"type": ["A", "B", "N", "N"] * 200, "ts": np.arange(800)}
    seen = history("SEQ(A a, B b) WITHIN 4 EVENTS WINDOW 4 EVENTS EVERY 4 EVENTS", events)
    marked = np.arange(len(seen.starts)) % 4 == 0
    part = seen.narrowed(0, 0, marked)
    assert part.events().tolist() == np.flatnonzero(np.repeat(marked, 4)).tolist()
    whole, narrowed = (GspiceSH.fitted(each, pane=1) for each in (seen, part))
    of_types = [made.otherwise[[seen.names.index(name) for name in "ABN"], 0].tolist() for made in (whole, narrowed)]
    assert of_types == [[1.0, 1.0, 0.0]] * 2
    later = seen.narrowed(100, 25, marked[:50])  # windows 28, 32, … 48; events are counted from 100 on
    assert later.events().tolist() == [4 * w - 100 + k for w in range(28, 50, 4) for k in range(4)]


def test_an_event_counts_if_one_of_its_windows_does() -> None:
    events = {"type": ["A", "B", "N", "N"] * 5, "ts": np.arange(20)}
    seen = history("SEQ(A a, B b) WITHIN 8 EVENTS WINDOW 8 EVENTS EVERY 4 EVENTS", events)
    only_second = np.arange(len(seen.starts)) == 1
    assert seen.narrowed(0, 0, only_second).events().tolist() == list(range(4, 12))
    nowhere = replace(seen, low=seen.low + 9, high=seen.high - 9)
    assert not len(nowhere.narrowed(0, 0, only_second).events())


def test_the_size_of_a_window_is_not_known_before_one_is_over() -> None:
    stream = Stream([pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 s WINDOW 1 s EVERY 1 s")], is_split=True)
    stream.take(short_and_long(3))
    assert [stream.expected_size(now) for now in (0, 4, 17)] == [1, 5, 18]  # what has come so far
    assert stream.view(0, 6).sizes.tolist() == [6], "of all windows; a slice is known when it is decided about"
    assert stream.expected_size(18) == 18, "the first window was over"
    assert stream.expected_size(20) == 10
