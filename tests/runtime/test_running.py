"""The loop in virtual time: the bound is kept, and everything is the same every time."""

import numpy as np
import pytest

from penstock.runtime.clocks import VirtualClock
from penstock.runtime.costs import Costs
from penstock.runtime.matching import Operator
from penstock.runtime.profiles import Bursts, Constant, Profile, Ramp, Recorded, peaks
from penstock.runtime.running import Loop
from penstock.shedding.quality import relaxed, strict
from penstock.shedding.strategies.catalogue import STRATEGIES
from penstock.testing.shedders import structured
from tests.runtime.runs import BOUND, CAPACITY, QUERY, costs, shed_run, truth

EVENTS = structured(250, 77)  # 10,000 events: 10 s at capacity


@pytest.mark.parametrize("rate", [1.2, 1.6, 2.0, 10.0])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_bound_is_kept(strategy: str, rate: float) -> None:
    run, _ = shed_run(strategy, rate, EVENTS)
    assert run.latencies.max() <= BOUND
    assert len(run.latencies) == 10_000
    assert (run.latencies > 0).all()


@pytest.mark.parametrize(
    "profile",
    [peaks(), Ramp(0.5, 3.0), Bursts(0.8, 20.0, 2000, 400), Recorded(np.arange(10_000) * 500)],
    ids=["peaks", "ramp", "bursts", "recorded"],
)
@pytest.mark.parametrize("strategy", ["random-event", "espice", "pspice", "hspice-pm"])
def test_the_bound_is_kept_under_every_profile(strategy: str, profile: Profile) -> None:
    run, _ = shed_run(strategy, profile, EVENTS)
    assert run.latencies.max() <= BOUND


def test_latency_settles_near_f_times_the_bound() -> None:
    for strategy in ("random-event", "ebl", "espice"):
        run, _ = shed_run(strategy, 1.4, EVENTS)
        later = run.latencies[len(run.latencies) // 2 :]
        assert 0.75 * BOUND < float(np.median(later)) < 0.85 * BOUND


def test_without_shedding_latency_grows_without_end() -> None:
    operator = Operator(QUERY, is_split=True)
    operator.take(EVENTS)
    run = Loop(operator, VirtualClock(Constant(1.5).arrivals(10_000, CAPACITY)), costs())()
    assert run.latencies[-1] > 2 * BOUND
    assert run.latencies[-1] > 1.8 * run.latencies[5000] > 0
    assert strict(truth(EVENTS).found, run.found, [1.0]).lost == 0


def test_nothing_is_shed_when_the_operator_keeps_up() -> None:
    for strategy in STRATEGIES:
        run, _ = shed_run(strategy, 0.9, EVENTS)
        assert run.shed_pairs == run.overdue == run.runs_dropped == 0
        quality = strict(truth(EVENTS).found, run.found, [1.0])
        assert quality.lost == quality.invented == 0


@pytest.mark.parametrize("strategy", ["random-event", "espice", "pspice", "hspice-pm", "hspice-w", "gspice-wh"])
def test_the_same_seed_gives_the_same_bits(strategy: str) -> None:
    one, other = (shed_run(strategy, 1.6, EVENTS, unshed=0.1)[0] for _ in range(2))
    assert one.latencies.tobytes() == other.latencies.tobytes()
    assert one.found.events.tobytes() == other.found.events.tobytes()
    assert [m.shed for m in one.moments] == [m.shed for m in other.moments]


def test_every_pair_is_accounted_for() -> None:
    run, loop = shed_run("espice", 1.8, EVENTS)
    windows = loop.operator.stream
    whole = int((windows.high - windows.low + 1).sum())
    overdue = whole - run.pairs  # pairs of events that were let go unseen
    assert run.shed_pairs == run.shed_by_cell.sum()
    assert (overdue > 0) == (run.overdue > 0)


def test_dropping_runs_invents_nothing_that_counts() -> None:
    for rate in (1.3, 1.8):
        run, _ = shed_run("pspice", rate, EVENTS)
        assert run.runs_dropped > 0
        assert relaxed(truth(EVENTS).found, run.found, [1.0]).invented == 0


def test_the_virtual_clock_is_a_queue() -> None:
    numbers = np.random.default_rng(3)
    arrivals, seconds = np.cumsum(numbers.exponential(1, 500)), numbers.exponential(1.1, 500)
    clock, expected, free = VirtualClock(arrivals), [], 0.0
    for arrival, cost in zip(arrivals, seconds, strict=True):
        free = max(free, arrival) + cost
        expected.append(free)
    done = np.concatenate([clock.work(a, seconds[a : a + 100]) for a in range(0, 500, 100)])
    assert np.allclose(done, expected)
    assert clock.now() == pytest.approx(expected[-1])


def test_costs_of_a_ledger() -> None:
    ledger = np.array([[3, 1, 0, 5, 0], [0, 0, 2, 1, 0]])  # checks, created, matches, open, shed
    units = Costs(event=1, pair=10, check=2, run=7, match=100)
    assert units.of_pairs([ledger]).tolist() == [10 + 2 * 5 + 7, 10 + 2 + 200]
    fitting = Costs(event=1, pair=10, check=2, run=7, match=100, asks="fitting", factors=(3.0,))
    assert fitting.of_pairs([ledger]).tolist() == [10 + 3 * 2 * 3 + 7, 10 + 200]
    assert units.scaled(2).check == 4
    assert units.scaled(2).asks == "open"


def test_profiles() -> None:
    assert np.allclose(np.diff(Constant(1.2).arrivals(100, 1000)), 1 / 1200)
    load = peaks(base=0.5, factor=1000)
    gaps = np.diff(load.arrivals(10_000, 1000))
    assert np.isclose(gaps, 1 / 500_000, rtol=1e-3).mean() == pytest.approx(0.7, abs=0.01)
    ramp = np.diff(Ramp(1.0, 2.0).arrivals(1000, 1000))
    assert ramp[0] == pytest.approx(1 / 1000, rel=0.01)
    assert ramp[-1] == pytest.approx(1 / 2000, rel=0.01)
    bursts = np.diff(Bursts(0.5, 5.0, 100, 10).arrivals(1000, 1000))
    assert np.isclose(bursts, 1 / 5000).mean() == pytest.approx(0.1, abs=0.01)
    assert Recorded(np.array([5, 1_000_005]), speed=2).arrivals(2, 1).tolist() == [0, 0.5]
