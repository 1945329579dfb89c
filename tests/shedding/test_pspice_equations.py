"""pSPICE by hand: thesis chapter 3."""

import numpy as np
import pytest

from penstock.shedding.markov import (
    completion,
    deviation,
    interpolated,
    remaining_time,
    scaled,
    transition_matrix,
    utility,
)
from penstock.shedding.overload.fitting import Fit, fitted
from penstock.shedding.overload.latency import LatencyDetector
from penstock.shedding.overload.load import Load

ENDS = np.array([False, False, False, True])
UNIFORM = np.array([[2, 1, 0, 0], [0, 2, 1, 0], [0, 0, 2, 1], [0, 0, 0, 3]]) / 3  # SEQ(A; B; C), three equal types


def test_transition_matrix_of_observations() -> None:
    moves = np.zeros((4, 4), np.int64)
    moves[0, 1], moves[1, 2], moves[2, 3] = 10, 20, 30
    matrix = transition_matrix(moves, np.array([20, 40, 60, 0]))
    assert np.allclose(matrix, UNIFORM)


def test_completion_is_a_power_of_the_matrix() -> None:
    chances = completion(UNIFORM, ENDS, 20, 1)
    assert chances[2, 1] == pytest.approx(1 / 3)
    for left in range(21):
        assert chances[2, left] == pytest.approx(1 - (2 / 3) ** left)
    # From state 1 with two events left: both must fit, 1 / 9.
    assert chances[1, 2] == pytest.approx(1 / 9)
    assert chances[0, 2] == 0
    assert chances[3].tolist() == [1.0] * 21
    for left in (3, 17):
        assert chances[0, left] == pytest.approx(np.linalg.matrix_power(UNIFORM, left)[0, 3])


def test_bins_are_every_so_many_powers_and_linear_between() -> None:
    fine, coarse = completion(UNIFORM, ENDS, 20, 1), completion(UNIFORM, ENDS, 4, 5)
    assert np.allclose(coarse, fine[:, ::5])
    between = interpolated(coarse, np.array([7.0]), 5.0)[:, 0]
    assert np.allclose(between, coarse[:, 1] + 0.4 * (coarse[:, 2] - coarse[:, 1]))


def test_value_iteration_by_hand() -> None:
    rewards = np.full((4, 4), 1.0)
    rewards[2, 3] = 4.0
    times = remaining_time(UNIFORM, rewards, ENDS, 3, 1)
    # One event left in state 2: 2/3 · 1 + 1/3 · 4 = 2. Two: 2 + 2/3 · 2 = 10/3, for then it is in state 2 with 2/3.
    assert times[2, 1] == pytest.approx(2)
    assert times[2, 2] == pytest.approx(10 / 3)
    # In state 1, one event: 1. Two: 1 + 2/3 · 1 + 1/3 · 2 = 7/3.
    assert times[1, 1] == pytest.approx(1)
    assert times[1, 2] == pytest.approx(7 / 3)
    assert times[3].tolist() == [0.0] * 4
    assert np.allclose(
        remaining_time(UNIFORM, rewards, ENDS, 2, 4), remaining_time(UNIFORM, rewards, ENDS, 8, 1)[:, ::4]
    )


def test_utility_is_weight_times_completion_by_time() -> None:
    assert utility(2.0, np.array([[0.5]]), np.array([[0.25]]))[0, 0] == pytest.approx(4.0)  # equation 3.1
    assert scaled(np.array([2.0, 4.0])).tolist() == [0.5, 1.0]


def test_deviation_is_the_mean_squared_error() -> None:
    assert deviation(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([[0.7, 0.3], [0.0, 1.0]])) == pytest.approx(0.02)


def test_the_best_form_is_taken() -> None:
    n = np.arange(1.0, 400.0)
    noise = np.random.default_rng(1).normal(0, 0.01, len(n))
    assert fitted(n, 5 + 0.2 * n + noise).form == "linear"
    assert fitted(n, 5 + 0.01 * n * n + noise).form == "quadratic"
    assert fitted(n, 5 + 0.1 * n * np.log2(n + 1) + noise).form == "n log n"
    assert fitted(n, 5 + 3 * np.sqrt(n) + noise).form == "root"
    assert fitted(n, 5 - 0.2 * n).form == "constant"  # nothing that falls


def test_inverse_of_a_fit() -> None:
    fit = Fit("linear", (1.0, 0.5))
    assert fit.inverse(11.0, 100) == 20
    assert fit.inverse(11.4, 100) == 20
    assert fit.inverse(0.5, 100) == 0
    assert fit.inverse(1000.0, 100) == 100


def test_algorithm_1_by_hand() -> None:
    # f(n) = 10 µs + 1 µs · n, g(n) = 0.1 µs · n. LB = 1 s, n = 1,000: l_p = 1,010 µs, l_s = 100 µs.
    detector = LatencyDetector(1.0, 0.0, Fit("linear", (10e-6, 1e-6)), Fit("linear", (0.0, 1e-7)), horizon=1)

    def load(waited: float) -> Load:
        return Load(waited=waited, queue=0, rate=1000.0, full_time=1e-3, time=1e-3, runs=1000)

    assert detector.command(load(0.99889 - 1e-9), 1).runs == 0  # l_e + l_s = LB
    # l_q = 0.9995: l'_p = 1 - 0.9995 - 0.0001 = 400 µs, n' = 390, ρ = 610.
    assert detector.command(load(0.9995), 1).runs == 610
    assert detector.command(load(1.1), 1).runs == 1000


def test_the_safety_buffer_brings_the_bound_forward() -> None:
    fits = Fit("linear", (10e-6, 1e-6)), Fit("constant", (0.0,))
    load = Load(waited=0.85, queue=0, rate=1000.0, full_time=1e-3, time=1e-3, runs=1000)
    assert LatencyDetector(1.0, 0.0, *fits, horizon=1).command(load, 1).runs == 0
    assert LatencyDetector(1.0, 0.2, *fits, horizon=1).command(load, 1).runs == 1000  # inequality 3.6


def test_a_horizon_spreads_what_must_be_made_good() -> None:
    fits = Fit("linear", (10e-6, 1e-6)), Fit("constant", (0.0,))
    load = Load(waited=0.81, queue=0, rate=1000.0, full_time=1e-3, time=1e-3, runs=1000)
    # 10 ms too late, 100 events to make it good: each may take 1 ms · 99/100 - 0.1 ms = 890 µs: 880 runs stay.
    assert LatencyDetector(1.0, 0.2, *fits, horizon=100).command(load, 1).runs == 120
