"""Times of this machine: what a detector for runs needs in real time."""

from __future__ import annotations

from penstock.runtime.costs import Costs
from penstock.runtime.training import unshed
from penstock.testing.shedders import structured
from tests.runtime.runs import QUERY


def test_times_are_of_this_machine() -> None:
    events = structured(120, 3)
    real = unshed(QUERY, events, Costs(), is_split=True, is_real=True)
    virtual = unshed(QUERY, events, Costs(), is_split=True)
    slower = unshed(QUERY, events, Costs().scaled(1000), is_split=True, is_real=True)
    assert virtual.history is not None
    assert real.history is not None
    assert (real.history.contributions() == virtual.history.contributions()).all()
    assert len(real.run.found) == len(virtual.run.found)
    # Virtual costs have no part in it.
    assert 1e-8 < real.event_seconds < 1e-2
    assert 0.02 < slower.event_seconds / real.event_seconds < 50
    # The fit gives back about the mean that it was fitted to, and dropping takes some time.
    assert 0.2 < real.event_time(100) / real.event_seconds < 5
    assert 0 < real.shed_time(100) < 1
