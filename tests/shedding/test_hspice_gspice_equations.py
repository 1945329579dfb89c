"""hSPICE and gSPICE by hand: thesis chapters 5 and 6."""

import numpy as np
import pytest

import penstock as pk
from penstock.runtime.costs import Costs
from penstock.runtime.training import unshed
from penstock.shedding.context import Features, Observed
from penstock.shedding.pane import Pane, frequencies
from penstock.shedding.strategies.gspice import GspiceSH
from penstock.shedding.strategies.hspice import HspicePM, HspiceW, utilities_by_state
from penstock.shedding.thresholds import Occurrences
from penstock.shedding.trees import Forest
from penstock.shedding.views import View
from penstock.shedding.zobrist import HashTable, Zobrist, edges_of, ranges_of


def test_utilities_of_figure_5_3() -> None:
    # A at 0 met 6 runs in s0 and took part in 2 that completed: 33 %; A at 2 met 4, took part in 1 that did: 25 %.
    completed, asked = np.zeros((2, 5, 2)), np.zeros((2, 5, 2))
    completed[0, 0, 0], asked[0, 0, 0] = 2, 6
    completed[0, 2, 0], asked[0, 2, 0] = 1, 4
    completed[1, 3, 1], asked[1, 3, 1] = 1, 4
    completed[1, 4, 1], asked[1, 4, 1] = 2, 5
    table = utilities_by_state(completed, asked, 1.0)
    assert np.rint(100 * table[0, :, 0]).tolist() == [33, 0, 25, 0, 0]
    assert np.rint(100 * table[1, :, 1]).tolist() == [0, 0, 0, 25, 40]
    assert table[0, :, 1].sum() == table[1, :, 0].sum() == 0
    assert utilities_by_state(completed, asked, 3.0)[0, 0, 0] == pytest.approx(1.0)


def test_the_virtual_window_and_its_threshold() -> None:
    # Utilities 0, 0.1, 0.4 that occur 6, 3 and 1 times in a window of 5 events: ws_v = 10, each event meets 2 runs.
    occurrences = Occurrences.of(np.array([0.0, 0.1, 0.4]), np.array([6.0, 3.0, 1.0]))
    assert occurrences.total == 10
    # To drop ρ = 1 of 5 events, ρ_v = 1 · 10 / 5 = 2 are to go; UT_th(2) = 0. For ρ = 4, ρ_v = 8 and UT_th(8) = 0.1.
    assert occurrences.threshold(2, exact=False).below == 0.0
    assert occurrences.threshold(6, exact=False).below == 0.0
    assert occurrences.threshold(8, exact=False).below == 0.1
    assert occurrences.threshold(10, exact=False).below == 0.4


def view_of(types: list[int], positions: list[int], size: int) -> View:
    rows = np.arange(len(types))
    return View(
        np.array(types), rows, rows, {}, rows, np.zeros_like(rows), np.array(positions), np.full(len(rows), size)
    )


def test_hspice_pm_hides_what_is_at_most_the_threshold() -> None:
    tables = (np.array([[[0.5, 0.0], [0.2, 0.1]]]),)  # one type, two positions, two states
    virtual = (np.array([[[1.0, 1.0], [1.0, 1.0]]]),)
    strategy = HspicePM(tables, virtual)
    strategy.aim(0.5)  # 2 of 4: utilities 0 and 0.1
    hidden = strategy.decide(view_of([0, 0], [0, 1], 2)).hidden
    assert hidden is not None
    assert hidden[0].tolist() == [[False, False], [True, True]]  # (state, pair)


def test_of_equals_only_as_many_go_as_must_if_that_is_wanted() -> None:
    # Six of ten pairs are worth nothing: all of them go where one must; if exact, a sixth of the events, from all runs.
    tables, virtual = (np.array([[[0.0, 0.0], [0.1, 0.4]]]),), (np.array([[[3.0, 3.0], [3.0, 1.0]]]),)
    view, at = view_of([0] * 6000, [0, 1] * 3000, 2), np.array([0, 1] * 3000)
    for share, of_first, of_second in ((0.1, 1 / 6, 0.0), (0.6, 1.0, 0.0), (0.7, 1.0, 1 / 3)):
        all_of_it, exact = HspicePM(tables, virtual), HspicePM(tables, virtual, exact=True)
        hidden = []
        for strategy in (all_of_it, exact):
            strategy.aim(share)
            decided = strategy.decide(view).hidden
            assert decided is not None
            hidden.append(decided[0])
        assert (hidden[0] >= hidden[1]).all()
        assert hidden[0][:, at == 0].all()
        assert hidden[1][0, at == 0].mean() == hidden[1][1, at == 0].mean() == pytest.approx(of_first, abs=0.02)
        assert hidden[1][0, at == 1].mean() == pytest.approx(of_second, abs=0.02)
        assert hidden[0][0, at == 1].all() == (of_second > 0)
        assert not hidden[0][1, at == 1].any()


def test_hspice_w_sums_over_the_runs_of_a_window() -> None:
    # Two runs in s1 and one in s0: U = 1 · 0.5 + 2 · 0.1 = 0.7 (equation 5.4); the kernel compares it with u_th.
    tables, shares = (np.array([[[0.5, 0.1]]]),), np.array([[1.0]])
    strategy = HspiceW(tables, (np.array([[0.7]]),), (shares,))
    strategy.aim(0.5)
    decision = strategy.decide(view_of([0], [0], 1))
    assert decision.worth is not None
    assert decision.least is not None
    assert float(np.array([1, 2]) @ decision.worth[0][:, 0]) == pytest.approx(0.7)
    assert decision.least.tolist() == [0.7]


def test_hspice_w_has_one_threshold_for_all_queries() -> None:
    # Two queries, one type, two positions with an event each: worth 0.1 and 0.4 to the one, 2 and 8 to the other, which
    # has half of the runs. ws = 2, so ρ = 0.5 is the least utility, 1 the two least; those of the light query go first.
    tables = (np.array([[[0.1], [0.4]]]), np.array([[[2.0], [8.0]]]))
    strategy = HspiceW(tables, tuple(each[:, :, 0] for each in tables), (np.full((1, 2), 0.5),) * 2)
    for share, limit in ((0.25, 0.1), (0.5, 0.4), (0.75, 2.0), (1.0, 8.0)):
        strategy.aim(share)
        decision = strategy.decide(view_of([0, 0], [0, 1], 2))
        assert decision.least is not None
        assert decision.least.tolist() == [limit] * 2


def test_observations_of_table_6_1() -> None:
    # (A, (1, 2), 5) three times, two of them in a match; (A, (2, 1), 7) twice, one; (A, (2, 1), 8) three times, one.
    keys = np.array([1, 1, 1, 2, 2, 3, 3, 3])
    worth = np.array([1.0, 0, 1, 0, 1, 0, 0, 1])
    nothing = np.zeros(len(keys), np.int64)
    seen, places = Observed.of(keys, nothing, nothing, worth)
    assert places.tolist() == [0, 3, 5]
    assert seen.counts.tolist() == [3, 2, 3]
    assert seen.utilities.round(2).tolist() == [0.67, 0.5, 0.33]


def test_the_pane_of_figure_6_1() -> None:
    # R0 C1 X2 R3 X4 with a pane of four events: F of X4 is (2, 1, 1).
    types = np.array([0, 1, 2, 0, 2])
    everything, at, begins = Pane(4, False, 3).follow(types, np.arange(5))
    assert frequencies(everything, at, begins, 3)[4].tolist() == [2, 1, 1]
    everything, at, begins = Pane(2, True, 3).follow(types, np.arange(5))  # of two microseconds
    assert frequencies(everything, at, begins, 3)[4].tolist() == [1, 0, 1]


def test_features_for_trees_do_not_depend_on_the_order_of_events() -> None:
    types, features = np.array([0, 1, 2, 0, 2]), Features(3, 4, False, 1, (), np.zeros((0, 0)), 0, 1)
    everything, at, begins = features.pane().follow(types, np.arange(5))
    chosen, no_ranges = np.array([4, 1, 3]), np.zeros((0, 3), np.int64)
    rows = features.rows(everything, at[chosen], begins[chosen], no_ranges)
    assert rows.tolist() == [[2, 2, 1, 1], [1, 1, 0, 0], [0, 1, 1, 1]]


def test_zobrist_keys_are_those_of_the_frequencies() -> None:
    numbers = np.random.default_rng(1)
    types, times = numbers.integers(0, 4, 500), np.cumsum(numbers.integers(1, 5, 500))
    zobrist = Zobrist.made(4, 7, 1, 3, 1, seed=3)
    ranges = numbers.integers(0, 3, (1, 500))
    pane, keys, often = Pane(7, False, 4), [], []
    for start in range(0, 500, 83):  # in whatever cuts
        part = slice(start, start + 83)
        followed = pane.follow(types[part], times[part])
        keys.append(zobrist.keys(*followed, ranges[:, part]))
        often.append(frequencies(*followed, 4))
    key, frequency = np.concatenate(keys), np.concatenate(often)
    for j in (0, 5, 99, 499):
        expected = np.bitwise_xor.reduce([zobrist.of_types[t, frequency[j, t]] for t in range(4)])
        assert key[j] == (expected ^ zobrist.of_values[0, ranges[0, j]]).view(np.int64)


def test_a_hash_table_has_what_was_put_in() -> None:
    keys = np.random.default_rng(2).integers(-(2**60), 2**60, 5000)
    keys = np.unique(keys)
    table = HashTable.of(keys, np.arange(len(keys)).astype(np.float64))
    asked = np.concatenate([keys, keys + 1])
    otherwise = np.full(len(asked), -5.0)
    got = table.get(asked, otherwise)
    assert got[: len(keys)].tolist() == list(range(len(keys)))
    assert (got[len(keys) :] == -5).mean() > 0.99


def test_ranges_of_values() -> None:
    edges = edges_of(np.linspace(0, 10, 1001), 5)
    assert np.allclose(edges, [2, 4, 6, 8], atol=0.02)
    assert ranges_of(np.array([-3.0, 3.0, 9.5, np.nan]), edges).tolist() == [0, 1, 4, 5]


def test_a_forest_of_arrays_says_what_scikit_learn_says() -> None:
    from sklearn.ensemble import RandomForestRegressor

    numbers = np.random.default_rng(4)
    rows, labels = numbers.random((600, 3)), numbers.random(600)
    model = RandomForestRegressor(n_estimators=5, max_depth=6, random_state=1).fit(rows, labels)
    forest = Forest.joined([each.tree_ for each in model.estimators_])
    assert np.allclose(forest.predict(rows), model.predict(rows.astype(np.float32)), atol=1e-6)


def test_gspice_learns_what_the_pane_tells() -> None:
    # B matters only behind an A: what came before it says so, its type and position do not.
    numbers = np.random.default_rng(5)
    types = numbers.choice(np.array(["A", "B", "N"]), 4000, p=[0.2, 0.3, 0.5])
    query = pk.parse("PATTERN SEQ(A a, B b) WITHIN 3 EVENTS WINDOW 3 EVENTS EVERY 1 EVENTS SELECT FIRST CONSUME ALL")
    history = unshed([(query, 1.0)], {"type": types, "ts": np.arange(4000)}, Costs(), is_split=True).history
    assert history is not None
    strategy = GspiceSH.fitted(history, pane=2)
    strategy.aim(0.3)
    rows = np.arange(6)
    code = {name: place for place, name in enumerate(history.names)}
    stream = np.array([code[t] for t in ("A", "N", "B", "N", "N", "B")])
    decision = strategy.decide(View(stream, rows, rows, {}, rows, rows, rows * 0, rows * 0 + 3))
    assert decision.events is not None
    utility = strategy.table.get(
        strategy.features.keys(*strategy.features.pane().follow(stream, rows), np.zeros((0, 6), np.int64)),
        np.full(6, -1.0),
    )
    assert utility[2] > 0.5 > utility[5] == 0
