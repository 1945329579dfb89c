"""What a strategy is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from penstock.errors import InternalError
from penstock.plan.tables import Floats
from penstock.shedding.history import History
from penstock.shedding.views import NOTHING, Decision, Effort, Level, View


class Strategy(ABC):
    """Decides what to shed: learns from a history, turns an amount into a threshold, decides by looking up.

    Decisions depend on the model, the amount and the events alone, never on a clock or on chance that cannot be
    replayed: so the same events are shed when a batch is processed again. What is not in the model and must survive,
    such as a predecessor pane, is `state`.

    A strategy is a dataclass: its fields are the model and its options, and are what `penstock.shedding.storing` saves.

    Attributes:
        name: as users spell it.
        level: what it drops: events of the stream; events from windows; events from runs; whole runs.
        effort: what a decision costs.
        follows: whether it must see all events, also when nothing is shed.
        version: of its fields: one more whenever they, or what they mean, change, so that older files are refused.
    """

    name: ClassVar[str]
    level: ClassVar[Level]
    effort: ClassVar[Effort] = Effort()
    follows: ClassVar[bool] = False
    version: ClassVar[int] = 1

    @classmethod
    @abstractmethod
    def fitted(cls, history: History, **options: Any) -> Self:
        """Return the strategy with a model of a history."""

    @abstractmethod
    def aim(self, share: float, partitions: int = 1) -> None:
        """Drop this share of what comes from now on, in each of so many partitions of a window."""

    def decide(self, view: View) -> Decision:
        """Return what is shed of a slice."""
        return NOTHING

    def run_utilities(self, query: int) -> Floats:
        """Return what runs of a query are worth: (S, B) by state and by what is left, the least first; (1, B): all."""
        raise InternalError(f"{self.name} does not drop runs")

    def state(self) -> Mapping[str, Any]:
        """Return what must survive besides the model."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        assert not state, f"{self.name} keeps nothing"
