"""How good a result is against the truth (thesis 2.2, equations 2.1 and 2.2; DARLING, equation 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.reference.events import Match

Mode = Literal["strict", "relaxed"]


@dataclass(frozen=True)
class Quality:
    """What was lost and what was invented; every count is weighted by the weight of its query.

    Attributes:
        truth: matches that should be found.
        found: matches that were found.
        false_negatives: matches of the truth that were not found (FN_Q, thesis equation 2.2).
        false_positives: matches found that are not in the truth (FP_Q, thesis equation 2.1).
        score: share of the truth that was found (DARLING, equation 4); 1 if there was nothing to find.
    """

    truth: float
    found: float
    false_negatives: float
    false_positives: float

    @property
    def score(self) -> float:
        """The weighted share of true matches that were found."""
        return 1.0 if self.truth == 0 else (self.truth - self.false_negatives) / self.truth

    @property
    def lost(self) -> float:
        """False negatives, as a share of the truth; 0 if there was nothing to find."""
        return self.false_negatives / self.truth if self.truth else 0.0

    @property
    def invented(self) -> float:
        """False positives, as a share of the truth; 0 if there was nothing to find."""
        return self.false_positives / self.truth if self.truth else 0.0


def quality(
    truth: Iterable[Match],
    found: Iterable[Match],
    mode: Mode = "strict",
    weights: Mapping[str | None, float] | None = None,
) -> Quality:
    """Compare a result with the truth.

    Args:
        truth: the matches without shedding.
        found: the matches to judge.
        mode: "strict": a match is the same if query, partition, window and bound events are; "relaxed": if query,
            partition and window are, counted with multiplicity.
        weights: per query name; 1 where none is given.

    Examples:
        >>> a, b = (Match("q", (), 0, (("x", (n,)),)) for n in (1, 2))
        >>> quality([a], [b])
        Quality(truth=1.0, found=1.0, false_negatives=1.0, false_positives=1.0)
        >>> quality([a], [b], mode="relaxed").score
        1.0
    """
    if mode not in ("strict", "relaxed"):
        raise ValueError(f"mode is 'strict' or 'relaxed', not {mode!r}")
    wanted, got = Counter(_identity(m, mode) for m in truth), Counter(_identity(m, mode) for m in found)

    def weighted(counts: Counter[tuple[str | None, Hashable]]) -> float:
        return float(sum(count * (weights or {}).get(query, 1.0) for (query, _), count in counts.items()))

    return Quality(weighted(wanted), weighted(got), weighted(wanted - got), weighted(got - wanted))


def _identity(match: Match, mode: Mode) -> tuple[str | None, Hashable]:
    what: Hashable = (match.key, match.window)
    return match.query, what if mode == "relaxed" else (what, match.bindings)
