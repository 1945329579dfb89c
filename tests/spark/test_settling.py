"""Workers that freeze what they have loaded."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from penstock.spark.worker import settling


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that has frozen nothing yet."""
    monkeypatch.setattr(settling, "_times", 0)
    gc.unfreeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("fresh")
class TestSettle:
    def test_what_is_loaded_is_not_looked_at_again(self) -> None:
        loaded = [[number] for number in range(settling._MANY)]
        settling.settle()
        assert gc.get_freeze_count() > len(loaded)
        assert len(gc.get_objects()) < settling._MANY

    def test_what_comes_later_is_collected_as_ever(self) -> None:
        loaded = [[number] for number in range(settling._MANY)]
        settling.settle()
        cycle: list[object] = [loaded]
        cycle.append(cycle)
        del cycle
        assert gc.collect() >= 1

    def test_little_is_left_as_it_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(settling, "_MANY", 10**9)
        settling.settle()
        assert gc.get_freeze_count() == 0

    def test_a_worker_does_not_freeze_on_and_on(self) -> None:
        counts, kept = [], []
        for _ in range(settling._MOST_TIMES + 2):
            kept.append([[number] for number in range(settling._MANY)])
            settling.settle()
            counts.append(gc.get_freeze_count())
        assert counts[-3] > counts[0]
        assert counts[-1] <= counts[-2] <= counts[-3]  # some of what is frozen may go meanwhile
