"""`penstock.Shedding`: what a user says about load shedding."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from penstock.pattern.durations import microseconds
from penstock.shedding.storing import ModelError, load
from penstock.shedding.strategies.catalogue import STRATEGIES, strategy_of
from penstock.shedding.strategies.chance import RandomEvent, RandomRun
from penstock.shedding.strategies.strategy import Strategy


def _duration(given: Any) -> Any:
    if not isinstance(given, str | timedelta):
        raise ValueError(f"{given!r} is no duration; write it as in '1 s', or give a timedelta")
    if not (us := microseconds(given)):
        raise ValueError("a bound is longer than nothing")
    return timedelta(microseconds=us)


class Fitted(NamedTuple):
    """A strategy that can be used.

    Attributes:
        strategy: with its model.
        types: the names of the types that it counts from 0 on; None if it knows none.
    """

    strategy: Strategy
    types: tuple[str, ...] | None


class Shedding(BaseModel):
    """How to keep a latency bound: what is dropped when more comes than can be processed in time.

    Attributes:
        bound: the latency that no event should exceed: "1 s", or a timedelta.
        strategy: what to drop; one of `penstock.shedding.strategies.catalogue.STRATEGIES`. docs/shedding.md says which
            is good for what.
        model: what the strategy has learned: a directory that `penstock train` wrote, or a strategy that was fitted.
            Only "random-event" and "random-run" need none.
        types: of a model that is a strategy, the names of its types in their order; a directory holds them itself.
        f: the share of the bound from which on is shed. A large one sheds nothing in short bursts; a small one leaves
            more time to shed what matters least.
        unshed: the share of windows that are never shed. From them the loss is estimated, and new models are learned.
        seed: of all that is left to chance; the same seed sheds the same.

    Examples:
        >>> Shedding(bound="1 s", strategy="random-event").bound_seconds
        1.0
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, extra="forbid")

    bound: Annotated[timedelta | str, BeforeValidator(_duration)]
    strategy: str = "random-event"
    model: Strategy | Path | str | None = None
    types: tuple[str, ...] | None = None
    f: Annotated[float, Field(gt=0, lt=1)] = 0.8
    unshed: Annotated[float, Field(ge=0, lt=1)] = 0.02
    seed: int = 1

    @field_validator("strategy")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in STRATEGIES:
            raise ValueError(f"there is no strategy {name!r}; there are {', '.join(STRATEGIES)}")
        return name

    @property
    def bound_seconds(self) -> float:
        """The bound, in seconds."""
        assert isinstance(self.bound, timedelta), "texts are read when it is made"
        return self.bound.total_seconds()

    def fitted(self) -> Fitted:
        """Return the strategy with its model, and the names of the model's types.

        Raises:
            ModelError: there is no model, or it is of another strategy.
        """
        if self.model is None:
            if self.strategy == RandomEvent.name:
                return Fitted(RandomEvent(self.seed), None)
            if self.strategy == RandomRun.name:
                return Fitted(RandomRun(), None)
            raise ModelError(f"{self.strategy} needs a model\n  fix: train one, and give it as model=")
        if isinstance(self.model, Strategy):
            made, types = self.model, self.types
        else:
            made, about = load(self.model)
            types = tuple(map(str, about["types"])) if "types" in about else self.types
        if not isinstance(made, strategy_of(self.strategy)):
            raise ModelError(
                f"the model is one of {made.name}, and the strategy is {self.strategy}\n"
                f"  fix: strategy={made.name!r}, or a model of {self.strategy}"
            )
        return Fitted(made, types)
