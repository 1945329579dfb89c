"""gSPICE by hand, from streams of a few events: thesis chapter 6, and E-BL of section 3.3.1."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

import penstock as pk
from penstock.runtime.costs import Costs
from penstock.runtime.training import unshed
from penstock.shedding.context import Features, Observed
from penstock.shedding.history import History
from penstock.shedding.strategies.ebl import EBL
from penstock.shedding.strategies.gspice import Gspice, GspiceSH, GspiceST, GspiceWH
from penstock.shedding.trees import LEAF, Forest
from penstock.shedding.views import View
from penstock.shedding.zobrist import HashTable, Zobrist, with_type

A, B = 0, 1
TUMBLING = "WITHIN 4 EVENTS WINDOW 4 EVENTS EVERY 4 EVENTS"
SLIDING = "WITHIN 4 EVENTS WINDOW 4 EVENTS EVERY 2 EVENTS"


def learned_from(queries: list[tuple[str, float]], types: str, ms: list[int] | None = None) -> History:
    events = {"type": list(types), "ts": 1000 * (np.arange(len(types)) if ms is None else np.array(ms))}
    is_split = all("WINDOW" in text for text, _ in queries)
    asked = [(pk.parse(f"PATTERN {text}"), weight) for text, weight in queries]
    history = unshed(asked, events, Costs(), is_split=is_split).history
    assert history is not None
    return history


def contexts(history: History, features: Features) -> np.ndarray:
    """Return the key of each event of a history."""
    return features.keys(*features.pane().follow(history.types, history.times), np.zeros((0, len(history.types)), int))


def seen_as(seen: Observed, keys: np.ndarray) -> list[tuple[float, float]]:
    """Return (M, O) of each event."""
    places = np.searchsorted(seen.keys, keys)
    assert (seen.keys[places] == keys).all()
    return list(zip(seen.worth[places].tolist(), seen.counts[places].tolist(), strict=True))


def test_matches_count_as_much_as_their_query_weighs() -> None:
    # Equation 6.2: M is the sum of the weights of the queries whose matches an event is in.
    # Windows ABCN ANBN ANNN ABNN: SEQ(A a, B b), weight 2, in the first, second and fourth; SEQ(A a, C c), 0.5, once.
    queries = [(f"SEQ(A a, B b) {TUMBLING}", 2.0), (f"SEQ(A a, C c) {TUMBLING}", 0.5)]
    history = learned_from(queries, "ABCNANBNANNNABNN")
    features = GspiceSH.features_of(len(history.names), (), [], pane=1)
    seen = GspiceSH.observed(history, features)
    of = seen_as(seen, contexts(history, features))
    assert of[0] == (2.0 + 0.5, 1)  # A behind nothing
    assert of[4] == of[8] == of[12] == (2.0 + 0.0 + 2.0, 3)  # A behind N
    assert of[1] == of[13] == (2.0 + 2.0, 2)  # B behind A
    assert of[6] == (2.0, 1)  # B behind N
    assert of[2] == (0.5, 1)  # C behind B
    assert [of[place] for place in (3, 5, 7, 10)] == [(0, 1), (0, 2), (0, 2), (0, 3)]  # N behind C, A, B, N
    keys = contexts(history, features)
    utilities = GspiceSH.of(features, seen).table.get(keys, np.full(len(keys), -1.0))
    assert utilities[[0, 4, 1, 6, 2, 3]].tolist() == [2.5, pytest.approx(4 / 3), 2.0, 2.0, 0.5, 0.0]  # equation 6.3


def test_in_a_window_the_position_counts_too() -> None:
    # Equation 6.4. Windows of ANABNBNN: w0 = ANAB with (A0, B3), (A2, B3); w1 = ABNB with (A2, B3), (A2, B5); no more.
    history = learned_from([(f"SEQ(A a, B b) {SLIDING}", 1.0)], "ANABNBNN")
    by_event = GspiceSH.fitted(history, pane=1)
    by_window = GspiceWH.fitted(history, pane=1, positions=4)
    keys = contexts(history, by_event.features)
    of_stream = by_event.table.get(keys, np.full(len(keys), -1.0))
    assert of_stream[[0, 2, 3, 5]].tolist() == [1, 3, 3, 1]  # (6.1): A0, A2, B3, B5, over all windows
    # A2 is at position 2 of w0, with one match, and at 0 of w1, with two. B3: two in w0, one in w1. B5: one in w1,
    # none in w2. So 8 of 14 pairs are worth 0, four 1 and two 2.
    occurrences = list(zip(by_window.values, by_window.cumulative * 14, strict=True))
    assert occurrences == [(0, pytest.approx(8)), (1, pytest.approx(12)), (2, pytest.approx(14))]
    assert kept(by_window, history, 8 / 14) == [(0, 0), (2, 0), (2, 1), (3, 0), (3, 1), (5, 1)]
    assert kept(by_window, history, 12 / 14) == [(2, 1), (3, 0)]


def kept(strategy: Gspice, history: History, share: float) -> list[tuple[int, int]]:
    """Return the pairs of event and window that stay."""
    rows, windows = history.pairs()
    order = np.lexsort((windows, rows))
    rows, windows = rows[order], windows[order]
    numbers = np.arange(len(history.types))
    view = View(
        history.types, history.times, numbers, {}, rows, windows, history.positions(rows, windows), np.array([4])
    )
    strategy.restore(strategy.features.pane().state())
    strategy.aim(share)
    pairs = strategy.decide(view).pairs
    assert pairs is not None
    return list(zip(rows[~pairs].tolist(), windows[~pairs].tolist(), strict=True))


# --- algorithm 7: the observations of table 6.1, and a pane of three events -------------------------------------

FEATURES = Features(2, 3, False, 1, ("e",), np.array([[6.0, 7.5]]), 0, 1)  # attributes of 5, 7, 8 are ranges 0, 1, 2
ZOBRIST = Zobrist.made(2, 3, 1, 4, 1, 1)
WORTH, SEEN = np.array([2.0, 1.0, 1.0]), np.array([3.0, 2.0, 3.0])  # of A with (1, 2), 5; (2, 1), 7; (2, 1), 8


def key(f_a: int, f_b: int, range_of_e: int) -> int:
    """Return K = K_1 ⊕ K_2, of type A."""
    k_1 = ZOBRIST.of_types[A, f_a] ^ ZOBRIST.of_types[B, f_b]
    return int(with_type(np.array([k_1 ^ ZOBRIST.of_values[0, range_of_e]]).view(np.int64), np.array([A]))[0])


def by_hash() -> GspiceSH:
    keys = np.array([key(1, 2, 0), key(2, 1, 1), key(2, 1, 2)])
    order, nothing = np.argsort(keys), np.zeros(3, np.int64)
    return GspiceSH.of(FEATURES, Observed(keys[order], nothing, nothing, np.zeros((3, 0)), WORTH[order], SEEN[order]))


def by_tree() -> GspiceST:
    """Return a tree that asks for the range of the attribute, the last of T, F_A, F_B and it, twice."""
    tree = Forest(
        np.array([0]), np.array([3, LEAF, 3, LEAF, LEAF]), np.array([0.5, 0, 1.5, 0, 0]),
        np.array([1, LEAF, 3, LEAF, LEAF]), np.array([2, LEAF, 4, LEAF, LEAF]), np.array([0, 2 / 3, 0, 1 / 2, 1 / 3]),
    )  # fmt: skip
    nothing = HashTable.of(np.zeros(0, np.int64), np.zeros(0))
    hashed = by_hash()
    return GspiceST(FEATURES, nothing, tree, np.zeros((2, 1)), hashed.values, hashed.cumulative)


def slice_of(types: list[int], e: list[float]) -> View:
    rows = np.arange(len(types))
    return View(np.array(types), rows, rows, {"e": np.array(e)}, rows, rows, rows * 0, rows[:1] + 1)


@pytest.mark.parametrize("made", [by_hash, by_tree])
@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize(
    ("share", "dropped"),
    [
        (0.0, [False, False, False]),  # lines 2 and 3: there is no overload
        (3 / 8, [False, False, True]),  # O^c(1/3) = 3/8, so u_th = 1/3: what has as much goes
        (5 / 8, [False, True, True]),
        (1.0, [True, True, True]),
    ],
)
def test_the_load_shedder_of_algorithm_7(
    made: Callable[[], Gspice], is_cut: bool, share: float, dropped: list[bool]
) -> None:
    # B A B go by, then come A with 5, 7 and 8: the panes are BAB, ABA and BAA.
    strategy = made()
    assert strategy.cumulative.tolist() == pytest.approx([3 / 8, 5 / 8, 1])
    assert strategy.decide(slice_of([B, A, B], [9, 9, 9])).events is None  # idle; K_1 is kept up to date all the same
    strategy.aim(share)
    parts = [([A], [5.0]), ([A, A], [7.0, 8.0])] if is_cut else [([A, A, A], [5.0, 7.0, 8.0])]
    events = [strategy.decide(slice_of(*part)).events for part in parts]
    told = [np.zeros(len(part[0]), bool) if each is None else each for part, each in zip(parts, events, strict=True)]
    assert np.concatenate(told).tolist() == dropped


def test_of_equals_only_as_many_go_as_must() -> None:
    strategy = by_hash()
    strategy.aim(4 / 8)  # three of eight are worth 1/3, and one more of the two that are worth 1/2
    assert strategy.threshold.below == 1 / 2
    assert strategy.threshold.share == pytest.approx(1 / 2)


# --- panes by time --------------------------------------------------------------------------------------------


def test_a_pane_by_time_tells_what_one_by_count_cannot() -> None:
    # B completes a match within 10 ms of an A: those at 5 and 308 ms do, those at 150 and 250 do not.
    times = [0, 5, 100, 150, 200, 250, 300, 308]
    history = learned_from([("SEQ(A a, B b) WITHIN 10 ms", 1.0)], "ABABABAB", times)
    of_b = slice(1, None, 2)
    utilities = {}
    for is_timed, length in ((True, 10_000), (False, 1)):
        made = GspiceSH.fitted(history, pane=length, pane_is_timed=is_timed)
        keys = contexts(history, made.features)
        utilities[is_timed] = made.table.get(keys, np.full(len(keys), -1.0))
    # By time: F of B is (1, 0) at 5 and 308 ms, (0, 0) else; that of A is always (0, 0): half of them are in a match.
    assert utilities[True][of_b].tolist() == [1, 0, 0, 1]
    assert utilities[True][::2].tolist() == [0.5] * 4
    # By count: an A is just before each B; before each A but the first is a B.
    assert utilities[False][of_b].tolist() == [0.5] * 4
    assert utilities[False][::2].tolist() == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3])


@pytest.mark.parametrize("cuts", [[0, 6], [0, 1, 2, 3, 4, 5, 6], [0, 4, 6]])
def test_frequencies_of_panes_by_time(cuts: list[int]) -> None:
    # A0 A4 B10 A11 B14 B30 and 10 µs: what is as old as that is in the pane, what is older is not.
    types, times = np.array([A, A, B, A, B, B]), np.array([0, 4, 10, 11, 14, 30])
    features, found = Features(2, 10, True, 1, (), np.zeros((0, 0)), 0, 1), []
    pane = features.pane()
    for start, stop in pairwise(cuts):
        all_types, at, begins = pane.follow(types[start:stop], times[start:stop])
        found.append(features.rows(all_types, at, begins, np.zeros((0, stop - start), np.int64))[:, 1:])
    assert np.concatenate(found).tolist() == [[0, 0], [1, 0], [2, 0], [1, 1], [2, 1], [0, 0]]


# --- E-BL -----------------------------------------------------------------------------------------------------


def test_shares_of_types_by_hand() -> None:
    # A window has 2 A, 4 B and 4 N; the pattern names A and B once: U is 1/2, 1/4 and 0. N goes first, all of it; then
    # x_T = λ / U_T: 2 · 2λ + 4 · 4λ = 20 λ events, so for 6 of 10 λ = 0.1, x_A = 0.2 and x_B = 0.4.
    strategy = EBL(np.array([1 / 2, 1 / 4, 0.0]), np.array([2.0, 4.0, 4.0]))
    types = np.repeat([0, 1, 2], 20_000)
    rows = np.arange(len(types))
    view = View(types, rows, rows, {}, rows, rows * 0, rows * 0, rows[:1] + 1)
    for share, wanted in ((0.2, [0, 0, 0.5]), (0.4, [0, 0, 1]), (0.6, [0.2, 0.4, 1]), (0.95, [0.75, 1, 1])):
        strategy.aim(share)
        pairs = strategy.decide(view).pairs
        assert pairs is not None
        assert [float(pairs[types == t].mean()) for t in range(3)] == pytest.approx(wanted, abs=0.02)
