"""When a model is out of date: each paper's sign of it, and a detector of a library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from penstock.errors import PenstockError
from penstock.plan.tables import Floats
from penstock.shedding.markov import deviation


class MatchesSign(Protocol):
    """Tells from the matches of windows that are not shed whether a model is out of date."""

    def observe(self, value: float) -> bool:
        """Take the number of matches of a window; return whether the model is out of date."""


@dataclass
class MatrixDrift:
    """pSPICE: the transition matrix of new observations deviates from that of the model, for any query (thesis 3.2.4).

    Attributes:
        matrices: those of the model, per query.
        threshold: the mean squared error from which on the model is out of date.
    """

    matrices: Sequence[Floats]
    threshold: float = 1e-4

    def observe(self, values: Sequence[Floats]) -> bool:
        """Compare new transition matrices, per query.

        Examples:
            >>> same, near, far = np.eye(2), np.array([[0.9, 0.1], [0.0, 1.0]]), np.array([[0.6, 0.4], [0.0, 1.0]])
            >>> sign = MatrixDrift([same, same], 0.01)
            >>> sign.observe([near, near]), sign.observe([near, far])
            (False, True)
        """
        pairs = zip(self.matrices, values, strict=True)
        return any(deviation(old, new) > self.threshold for old, new in pairs)


@dataclass
class MatchesDrift:
    """eSPICE: windows that are not shed have more or fewer matches than when the model was built (thesis 4.2.6.3).

    Attributes:
        mean: matches in a window when the model was built.
        threshold: the deviation, as a share of that, from which on the model is out of date.
        windows: how many windows a mean is taken over.
    """

    mean: float
    threshold: float = 0.3
    windows: int = 50
    _seen: list[float] = field(default_factory=list, init=False)

    def observe(self, value: float) -> bool:
        """Take the number of matches of a window that was not shed; compare the mean of each `windows` of them."""
        self._seen.append(value)
        if len(self._seen) < self.windows:
            return False
        mean, self._seen = float(np.mean(self._seen)), []
        return abs(mean - self.mean) > self.threshold * max(self.mean, 1e-12)


@dataclass
class LibraryDrift:
    """A drift detector of river on the matches of windows that are not shed: ADWIN, KSWIN or PageHinkley.

    Attributes:
        method: its name in river.drift.
    """

    method: str = "ADWIN"
    _detector: Any = field(init=False)

    def __post_init__(self) -> None:
        self._detector = _made(self.method)

    def observe(self, value: float) -> bool:
        """Take the number of matches of a window that was not shed."""
        self._detector.update(value)
        return bool(self._detector.drift_detected)


def _made(method: str) -> Any:
    try:
        from river import drift
    except ImportError as error:
        raise PenstockError(
            "drift is detected by river, which is not installed\n  fix: pip install 'penstock[lab]'"
        ) from error
    known: dict[str, Any] = {"ADWIN": drift.ADWIN, "KSWIN": drift.KSWIN, "PageHinkley": drift.PageHinkley}
    if method not in known:
        raise PenstockError(f"there is no drift detector {method!r}\n  fix: give one of {', '.join(known)}")
    return known[method]()
