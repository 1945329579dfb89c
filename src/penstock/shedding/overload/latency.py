"""pSPICE's overload detector: from the latency of the next event to a number of runs (thesis 3.2.5)."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.shedding.overload.fitting import Fit
from penstock.shedding.overload.load import KEEP_ALL, Command, Load


@dataclass
class LatencyDetector:
    """Algorithm 1: drop as many runs as it takes for the next event to be on time.

    As it stands in the thesis, the bound is checked at each event and made good within that event. Checked once for
    many events, that would drop all runs at the first small delay, so the time to make good is a horizon of K events:
    l'_p = (LB - b_s - l_q - l_s) / K + (1 - 1 / K) / R. With K = 1 this is equation 3.5. Without a buffer, it drops
    where l_e + l_s > LB (equation 3.4).

    Attributes:
        bound: LB, in seconds.
        buffer: b_s, the safety buffer (equation 3.6), in seconds.
        event_time: f, the time of an event as a function of the number of runs.
        shed_time: g, the time that it takes to drop runs, likewise.
        horizon: K, in events; 1 is the paper's; None is a quarter of the events that the buffer stands for.
    """

    bound: float
    buffer: float
    event_time: Fit
    shed_time: Fit
    horizon: int | None = None

    def command(self, load: Load, events: int) -> Command:
        """Return how many runs to drop, and the share of an event's time that this is."""
        expected = self.event_time(load.runs)  # l_p
        shedding = self.shed_time(load.runs)  # l_s
        if load.waited + expected + shedding + self.buffer <= self.bound:  # inequality 3.6
            return KEEP_ALL
        wanted = self._wanted(load, shedding, events)  # l'_p, equation 3.5
        kept = self.event_time.inverse(wanted, load.runs)  # n'_γ
        share = 0.0 if expected <= 0 else min(1.0, max(0.0, 1.0 - wanted / expected))
        return Command(share, load.runs - kept)

    def _wanted(self, load: Load, shedding: float, events: int) -> float:
        horizon = self.horizon or max(events, round(self.buffer / max(load.full_time, 1e-12) / 4))
        left = self.bound - self.buffer - load.waited - shedding
        return left / horizon + (1 - 1 / horizon) / max(load.rate, 1e-9)
