"""What an overload detector sees, and what it says."""

from __future__ import annotations

from typing import NamedTuple, Protocol

# Named tuples: there are two for every slice of events, and to make a frozen dataclass takes three times as long.


class Load(NamedTuple):
    """The operator just before it takes events from its queue. Times are in seconds.

    Attributes:
        waited: l_q, how long the event at the head of the queue has waited.
        queue: q_size, how many events wait.
        rate: R, events that arrive in a second.
        full_time: l_p, the mean time of an event when nothing is shed: 1 / μ.
        time: the mean time of the events that wait, by what events took lately, shed or not.
        runs: n_γ, how many runs are open.
    """

    waited: float
    queue: int
    rate: float
    full_time: float
    time: float
    runs: int = 0


class Command(NamedTuple):
    """What must go.

    Attributes:
        share: of the events of each drop interval, from 0 to 1: δ.
        runs: how many runs: ρ of algorithm 1; None if the detector speaks of events.
    """

    share: float
    runs: int | None = None

    def runs_of(self, load: Load) -> int:
        """Return how many runs must go: so many, or the same share of them as of events."""
        return self.runs if self.runs is not None else round(self.share * load.runs)


KEEP_ALL = Command(0.0, 0)


class Detector(Protocol):
    """Says before each slice of events what must go."""

    def command(self, load: Load, events: int) -> Command:
        """Return what must go of the next so many events, or of the runs before they are processed."""
