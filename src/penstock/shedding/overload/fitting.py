"""Time as a function of the number of runs, fitted to what was measured (thesis 3.2.5: f and g of algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from penstock.plan.tables import Floats

# What a form has besides a constant. Plain numbers: a fit is asked once for every slice of events.
FORMS: Mapping[str, Callable[[float], float] | None] = {
    "constant": None,
    "root": math.sqrt,
    "linear": lambda n: n,
    "n log n": lambda n: n * math.log2(n + 1),
    "quadratic": lambda n: n * n,
}
_FOLDS = 4


@dataclass(frozen=True)
class Fit:
    """A function of the number of runs that never falls.

    Attributes:
        form: one of FORMS.
        factors: the constant, and the factor of the form's term.
        error: the mean squared error on measurements that it was not fitted to.
    """

    form: str
    factors: tuple[float, ...]
    error: float = 0.0

    def __call__(self, runs: float) -> float:
        """Return the time with so many runs."""
        term = FORMS[self.form]
        return self.factors[0] if term is None else self.factors[0] + self.factors[1] * term(runs)

    def inverse(self, time: float, most: int) -> int:
        """Return the greatest number of runs, up to `most`, with which it takes at most this time: f⁻¹; 0 if none."""
        time *= 1 + 1e-9  # what is equal but for rounding is equal
        if self(most) <= time:
            return most
        low, high = 0, most  # f(low) ≤ time, if any is; f(high) > time
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self(middle) <= time else (low, middle)
        return low


def fitted(runs: Floats, times: Floats) -> Fit:
    """Return the form with the least error on measurements left out of its fit; forms that fall are not taken.

    Examples:
        >>> n = np.arange(100.0)
        >>> fitted(n, 3 + 2 * n).form
        'linear'
    """
    runs, times = np.asarray(runs, np.float64), np.asarray(times, np.float64)
    if not len(runs):
        return Fit("constant", (0.0,))
    found = [fit for form in FORMS if (fit := _try(form, runs, times)) is not None]
    negligible = 1e-9 * float(np.mean(times**2))  # of two forms that both fit, the simpler one
    return min(found, key=lambda fit: (fit.error + negligible) * (1 + 0.05 * len(fit.factors)))


def _try(form: str, runs: Floats, times: Floats) -> Fit | None:
    """Return a fit with its error when folds are left out one after the other; None if it falls somewhere."""
    term = FORMS[form]
    terms = np.stack([np.ones_like(runs), *([[term(n) for n in runs]] if term is not None else [])]).T
    scales = np.maximum(np.abs(terms).max(axis=0), 1e-300)  # so that no term is much larger than the others
    terms = terms / scales
    factors = np.linalg.lstsq(terms, times, rcond=None)[0]
    if (factors[1:] < 0).any():
        return None
    folds, errors = np.arange(len(times)) % _FOLDS, []
    for fold in range(min(_FOLDS, len(times))):
        kept = folds != fold if len(times) > _FOLDS else np.ones(len(times), np.bool_)
        part = np.linalg.lstsq(terms[kept], times[kept], rcond=None)[0]
        errors.append(np.mean((terms[folds == fold] @ part - times[folds == fold]) ** 2))
    return Fit(form, tuple(map(float, factors / scales)), float(np.mean(errors)))
