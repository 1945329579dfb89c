"""pSPICE's utility of a run: a Markov chain says whether it completes, a Markov reward process what it still costs.

Thesis, section 3.2.3. States are those of the query's automaton; a step is an event of the window.
"""

from __future__ import annotations

import numpy as np

from penstock.plan.tables import Bools, Floats, Ints


def transition_matrix(moves: Ints, stays: Ints) -> Floats:
    """Return T_q: the probability to get from a state to another by one event (section 3.2.3.1).

    Args:
        moves: (S, S) how often a run went from one state to another.
        stays: (S,) how often an event left a run where it was.

    Examples:
        >>> transition_matrix(np.array([[0, 1], [0, 0]]), np.array([2, 5])).round(2).tolist()
        [[0.67, 0.33], [0.0, 1.0]]
    """
    counts = moves + np.diag(stays).astype(np.float64)
    totals = counts.sum(axis=1, keepdims=True)
    # A state that was never seen stays where it is.
    matrix: Floats = np.where(totals > 0, counts / np.maximum(totals, 1), np.eye(len(counts)))
    return matrix


def completion(matrix: Floats, ends: Bools, bins: int, bin_size: int) -> Floats:
    """Return P[state, k]: the probability to complete if k · bin_size events are left, k = 0 … bins.

    P = f(S, R_w) (equation 3.2) is the power R_w of the matrix (equation 3.3). It is taken for every bin_size-th number
    of events; between, `interpolated` is linear.

    Args:
        matrix: (S, S) the transition matrix.
        ends: (S,) the states in which a run is complete; it stays complete.

    Examples:
        >>> third = 1 / 3
        >>> chain = np.array([[2*third, third, 0, 0], [0, 2*third, third, 0], [0, 0, 2*third, third], [0, 0, 0, 1]])
        >>> p = completion(chain, np.array([False, False, False, True]), 3, 1)
        >>> bool(np.allclose(p[2], [0, 1/3, 1 - (2/3)**2, 1 - (2/3)**3]))
        True
    """
    absorbing = np.where(ends[:, None], np.eye(len(matrix)), matrix)
    step = np.linalg.matrix_power(absorbing, bin_size)
    result = np.empty((len(matrix), bins + 1))
    result[:, 0] = ends
    for k in range(bins):
        result[:, k + 1] = step @ result[:, k]
    return np.clip(result, 0.0, 1.0)


def remaining_time(matrix: Floats, rewards: Floats, ends: Bools, bins: int, bin_size: int) -> Floats:
    """Return τ[state, k]: the processing time a run still takes if k · bin_size events are left (section 3.2.3.2).

    Value iteration: τ_j(s) = Σ_s' T(s, s') · (R(s, s') + τ_(j-1)(s')), once for each event that is left; a complete run
    takes no more. bin_size iterations at a time are one product with a power of the matrix.

    Args:
        matrix: (S, S) the transition matrix.
        rewards: (S, S) R_q(s, s'), the mean time to process an event that takes a run from s to s'.
        ends: (S,) the states in which a run is complete.
    """
    absorbing = np.where(ends[:, None], 0.0, matrix)
    once = (absorbing * rewards).sum(axis=1)  # the expected reward of one event
    size = len(matrix)
    whole = np.zeros((size + 1, size + 1))  # (τ, 1) -> (T τ + once, 1)
    whole[:size, :size], whole[:size, size], whole[size, size] = absorbing, once, 1.0
    step = np.linalg.matrix_power(whole, bin_size)
    result = np.zeros((size + 1, bins + 1))
    result[size, 0] = 1.0
    for k in range(bins):
        result[:, k + 1] = step @ result[:, k]
    return result[:size]


def scaled(values: Floats) -> Floats:
    """Return values as shares of the greatest: completion and time are brought to one scale (section 3.2.3.3)."""
    most = float(values.max(initial=0.0))
    return values / most if most > 0 else values


def utility(weight: float, completion_: Floats, time: Floats, *, least: float = 1e-3) -> Floats:
    """Return U = w · P / τ (equation 3.1) of values on one scale.

    Args:
        weight: of the query.
        completion_: (S, ·) completion probabilities.
        time: (S, ·) remaining processing times, scaled like them; less than `least` counts as `least`, so that a run
            at the very end of its window is not worth any number.
    """
    result: Floats = weight * completion_ / np.maximum(time, least)
    return result


def interpolated(table: Floats, left: Floats, bin_size: float) -> Floats:
    """Return the columns of a table between bins, linearly: table[:, left / bin_size]."""
    at = np.clip(np.asarray(left, np.float64) / bin_size, 0, table.shape[1] - 1)
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, table.shape[1] - 1)
    part = at - low
    result: Floats = table[:, low] * (1 - part) + table[:, high] * part
    return result


def deviation(one: Floats, other: Floats) -> float:
    """Return the mean squared error between two transition matrices: a model is retrained from a threshold on (3.2.4).

    Examples:
        >>> deviation(np.array([[0.5, 0.5]]), np.array([[0.7, 0.3]]))
        0.04
    """
    return round(float(np.mean((one - other) ** 2)), 15)
