"""How many events may be taken at once, where runs branch: they may become many among them.

What a slice takes is known when it is over: until then nothing more is shed. Mean times foretell it as long as the
number of runs hardly changes within it, as under FIRST and STRICT, where an event opens one run and others go on. Under
EACH, LAST and CUMULATIVE a run that takes an event may also stay as it was: an event can double the runs, and some
hundred events have taken more than a thousand times as long as those before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass
class Pace:
    """What a pair takes that is not shed, by the runs that are open.

    Attributes:
        by_run: the seconds of a pair for each run that is open, as they were last; 0: nothing is known yet.
    """

    by_run: float = 0.0

    def note(self, seconds: float, pairs: float, before: int, after: int) -> None:
        """Take note of what pairs took that were not shed, where runs were open.

        Args:
            seconds: of all, without what a pair takes anyway.
            pairs: how many; one that was hidden from some runs counts in part.
            before: the runs that were open before.
            after: and after them.
        """
        if pairs >= 1 and before + after > 0:
            self.by_run = seconds / pairs / math.sqrt(max(before, 1) * max(after, 1))

    def events(self, room: float, event_time: float) -> int:
        """Return how many events fit into some time, though each may double what the next one takes; 1 at least.

        Examples:
            >>> [Pace().events(0.05, event_time) for event_time in (1e-5, 1e-3, 1.0)]
            [12, 5, 1]
        """
        return max(1, int(math.log2(1 + room / max(event_time, 1e-12))))
