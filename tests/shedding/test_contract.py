"""Every strategy keeps to the contract; and the contract notices a strategy that does not."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pytest

from penstock.shedding.chance import uniform
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


class DropsTooMuch(Wrong):
    def aim(self, share: float, partitions: int = 1) -> None:
        super().aim(min(1.0, share * 2), partitions)


class DecidesByRealChance(Wrong):
    def decide(self, view: View) -> Decision:
        return Decision(events=np.random.default_rng().random(len(view.types)) < self._share)


class DropsWhatMatters(Wrong):
    """Drops the events of which matches are made."""

    def decide(self, view: View) -> Decision:
        noise = np.bincount(view.types, minlength=8).argmax()  # the most frequent types are noise
        return Decision(events=(view.types != noise) & (uniform(3, view.numbers) < 2 * self._share))


@dataclass
class ForgetsWhatItLearned(Wrong):
    """Has something that is not saved: it is no field."""

    name: ClassVar[str] = "wrong"
    bias: ClassVar[int] = 0

    @classmethod
    def fitted(cls, history: History, **options: Any) -> Self:
        made = cls(1)
        made.__dict__["bias"] = 5
        return made

    def decide(self, view: View) -> Decision:
        return Decision(events=uniform(self.bias, view.numbers) < self._share)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (ShedsWhenIdle, "idle"),
        (DropsTooLittle, "was to drop 0.2 of what comes, and drops 0.0"),
        (DropsTooMuch, r"was to drop 0\.2 of what comes, and drops 0\.(39|4)"),
        (DecidesByRealChance, "replayed"),
        (ForgetsWhatItLearned, "saved and read"),
        (DropsWhatMatters, "and chance"),
    ],
)
def test_the_contract_notices(wrong: type[Strategy], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STRATEGIES, "wrong", wrong)
    with pytest.raises(AssertionError, match=says):
        check_shedder(wrong)


@pytest.mark.parametrize("name", ["hspice-pm", "hspice-w"])
def test_hspice_keeps_to_the_contract_if_exact(name: str) -> None:
    check_shedder(STRATEGIES[name], exact=True)


@dataclass
class Inexact(Wrong):
    """Drops another amount unless it is exact."""

    name: ClassVar[str] = "wrong"
    factor: ClassVar[float] = 1.0
    exact: bool = False

    def aim(self, share: float, partitions: int = 1) -> None:
        super().aim(min(1.0, share if self.exact else self.factor * share), partitions)


class DropsMoreUnlessExact(Inexact):
    factor = 4.0


class DropsLessUnlessExact(Inexact):
    factor = 0.9


def test_what_is_not_exact_may_drop_more_and_no_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STRATEGIES, "wrong", DropsMoreUnlessExact)
    with pytest.raises(AssertionError, match="and chance"):  # it is chance itself; its amount is right
        check_shedder(DropsMoreUnlessExact)
    monkeypatch.setitem(STRATEGIES, "wrong", DropsLessUnlessExact)
    with pytest.raises(AssertionError, match=r"drops 0\.\d+ if exact, and else only 0\.1"):
        check_shedder(DropsLessUnlessExact)
