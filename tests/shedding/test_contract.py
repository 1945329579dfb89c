"""Every strategy keeps to the contract; and the contract notices a strategy that does not."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pytest

from penstock.shedding.history import History
from penstock.shedding.strategies.catalogue import STRATEGIES
from penstock.shedding.strategies.chance import RandomEvent
from penstock.shedding.strategies.strategy import Strategy
from penstock.shedding.views import Decision, View
from penstock.testing import check_shedder


@pytest.mark.parametrize("name", STRATEGIES)
def test_strategy_keeps_to_the_contract(name: str) -> None:
    check_shedder(STRATEGIES[name])


@dataclass
class Wrong(RandomEvent):
    """Does one thing wrong."""

    name: ClassVar[str] = "wrong"

    @classmethod
    def fitted(cls, history: History, **options: Any) -> Self:
        return cls(1)


class ShedsWhenIdle(Wrong):
    def decide(self, view: View) -> Decision:
        return Decision(events=np.ones(len(view.types), np.bool_))


class DropsTooLittle(Wrong):
    def aim(self, share: float, partitions: int = 1) -> None:
        super().aim(share / 10, partitions)


class DecidesByRealChance(Wrong):
    def decide(self, view: View) -> Decision:
        return Decision(events=np.random.default_rng().random(len(view.types)) < self._share)


class KnowsNothing(DropsTooLittle):
    """Is not the class that chance is compared with."""

    def aim(self, share: float, partitions: int = 1) -> None:
        RandomEvent.aim(self, share, partitions)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [(ShedsWhenIdle, "idle"), (DropsTooLittle, "was to drop"), (DecidesByRealChance, "replayed")],
)
def test_the_contract_notices(wrong: type[Strategy], says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        check_shedder(wrong)
