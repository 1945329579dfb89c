"""From an amount to drop to a utility threshold: cumulative utility occurrences and their inverse.

eSPICE counts them in each partition of a window (thesis 4.2.2.2, 4.2.3.2), hSPICE in the virtual window (5.2.1.3),
gSPICE in the stream (6.2.3): the same function of utilities and of how often each occurs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from penstock.kernel.compiling import entry
from penstock.plan.tables import Floats, Ints
from penstock.shedding.deciding import CERTAIN, Chances

LEVELS = 101  # utilities of eSPICE are whole numbers from 0 to 100
UTILITIES: Floats = np.arange(LEVELS, dtype=np.float64)


@dataclass(frozen=True)
class Threshold:
    """Drop what has less utility than `below`, and this `share` of what has exactly that much.

    The papers drop all that has a utility of u_th or less, which is a share of 1: at least the amount that was asked
    for, and often more.
    """

    below: float
    share: float


NOTHING = Threshold(-np.inf, 0.0)


def cdt(utilities: Ints, shares: Floats) -> Floats:
    """Return CDT(u), u = 0 … 100: how many events of a window have a utility of at most u (equation 4.2, algorithm 3).

    Args:
        utilities: (T, B) UT, whole numbers from 0 to 100.
        shares: (T, B) S: how many events of a type a cell has in a window on average, the position shares.

    Examples:
        >>> ut = np.array([[70, 15, 10, 5, 0], [0, 60, 30, 10, 0]])
        >>> s = np.array([[0.8, 0.5, 0.1, 0.2, 0.5], [0.2, 0.5, 0.9, 0.8, 0.5]])
        >>> [round(float(cdt(ut, s)[u]), 2) for u in (0, 5, 10)]
        [1.2, 1.4, 2.3]
    """
    occurrences = np.bincount(utilities.reshape(-1), weights=shares.reshape(-1), minlength=LEVELS)
    cumulative: Floats = np.cumsum(occurrences)  # O_u = o_u + O_(u-1)
    return cumulative


@dataclass(frozen=True)
class Occurrences:
    """Utilities in ascending order, and how many events have at most as much (hSPICE's OC_u, gSPICE's O_u^c).

    Attributes:
        values: (U,) ascending.
        cumulative: (U,) of events in the drop interval.
    """

    values: Floats
    cumulative: Floats

    @classmethod
    def of(cls, utilities: Floats, counts: Floats) -> Occurrences:
        """Return those of utilities that occur so many times."""
        values, places = np.unique(np.asarray(utilities, np.float64).reshape(-1), return_inverse=True)
        return cls(values, np.cumsum(np.bincount(places.reshape(-1), weights=np.asarray(counts).reshape(-1))))

    @property
    def total(self) -> float:
        """How many events there are."""
        return float(self.cumulative[-1]) if len(self.cumulative) else 0.0

    def threshold(self, amount: float, *, exact: bool = True) -> Threshold:
        """Return the threshold that drops an amount of events: u_th = UT_th(amount), the least u with OC_u ≥ amount.

        Args:
            amount: how many.
            exact: whether of the events at the threshold only as many are dropped as are needed. The papers drop all.

        Examples:
            >>> occurrences = Occurrences.of(np.array([0.0, 1.0, 2.0]), np.array([4.0, 2.0, 2.0]))
            >>> occurrences.threshold(5), occurrences.threshold(5, exact=False)
            (Threshold(below=1.0, share=0.5), Threshold(below=1.0, share=1.0))
        """
        if amount <= 0 or not len(self.values):
            return NOTHING
        at = min(int(self.cumulative.searchsorted(amount * (1 - 1e-12))), len(self.values) - 1)
        before = float(self.cumulative[at - 1]) if at else 0.0
        here = float(self.cumulative[at]) - before
        share = min(1.0, (amount - before) / here) if exact and here > 0 else 1.0
        return Threshold(float(self.values[at]), share)


@entry
def find_thresholds(tables: Floats, share: float, is_exact: bool, below: Ints, at: Chances) -> None:
    """Find the threshold of each partition of a window: `Occurrences.threshold`, compiled, for whole utilities.

    A detector asks for another share before every slice, so this is done as often.

    Args:
        tables: (partitions, LEVELS) CDT of each.
        share: of its events that is to be dropped: ρ is this share of them.
        is_exact: as there.
        below: (partitions,) the result: what has less utility goes.
        at: (partitions,) and the chance of what has just as much, as `penstock.shedding.deciding.chances` has them.
    """
    for part in range(len(tables)):
        cumulative, u, before = tables[part], 0, 0.0
        amount = share * cumulative[-1]
        below[part], at[part] = 0, 0
        if amount <= 0:
            continue
        while u < len(cumulative) - 1 and cumulative[u] < amount * (1 - 1e-12):
            before, u = cumulative[u], u + 1
        here = cumulative[u] - before
        going = min(1.0, (amount - before) / here) if is_exact and here > 0 else 1.0
        if going > 0:
            below[part], at[part] = u, np.uint64(math.ceil(going * CERTAIN))


def utility_threshold(table: Floats, amount: float) -> int:
    """Return the least u with CDT(u) ≥ amount; the greatest utility, if there is none (algorithm 4, lines 1 to 7)."""
    return int(Occurrences(UTILITIES, table).threshold(amount, exact=False).below)
