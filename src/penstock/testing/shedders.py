"""`check_shedder`: what every strategy must keep to, whatever it learns and drops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np

from penstock.pattern import ast
from penstock.pattern.parser import parse
from penstock.plan.tables import Floats
from penstock.reference.quality import Quality
from penstock.runtime.costs import OPEN, Costs
from penstock.runtime.matching import Operator
from penstock.runtime.training import Unshed, unshed
from penstock.shedding.history import History
from penstock.shedding.quality import Found, strict
from penstock.shedding.storing import load, save
from penstock.shedding.strategies.chance import RandomEvent, RandomRun
from penstock.shedding.strategies.strategy import Strategy
from penstock.shedding.views import NOTHING, Decision, Level, View

WINDOW = 40
_FIRST = f"PATTERN SEQ(A a, B b, C c) WHERE a.v < c.v WITHIN {WINDOW} EVENTS WINDOW {WINDOW} EVENTS EVERY 20 EVENTS "
FIRST = _FIRST + "SELECT FIRST CONSUME a"
EACH = _FIRST + "SELECT EACH"
_SLICE = 20
_LESS, _MORE = 0.1, 0.15  # than it was to drop, as a share of all: what goes takes runs with it that it had begun


def structured(windows: int, seed: int) -> dict[str, Any]:
    """Return a stream in which type and position tell what an event is worth, in windows of 40 events.

    In the first half of every 40 events there are two A and a B, in the second two C: these make matches. There are
    some C in the first quarter and some A in the last one, which do not, and noise of three more types.
    """
    numbers = np.random.default_rng(seed)
    types = numbers.choice(np.array(["N1", "N2", "N3"]), (windows, WINDOW))
    for window in types:
        window[numbers.choice(np.arange(0, 8), 2, replace=False)] = "A"
        window[numbers.choice(np.arange(10, 16), 1)] = "B"
        window[numbers.choice(np.arange(22, 30), 2, replace=False)] = "C"
        window[numbers.choice(np.arange(31, 40), 2, replace=False)] = "A"
    size = windows * WINDOW
    return {"type": types.reshape(-1), "ts": np.arange(size) * 1000, "v": numbers.uniform(0, 10, size)}


class _Trial:
    """A strategy on a structured stream: trained on one part, tried on another."""

    def __init__(self, query: str, seed: int = 1) -> None:
        self.query: list[tuple[ast.Query, float]] = [(parse(query), 1.0)]
        self.learned: Unshed = unshed(self.query, structured(150, seed), Costs(), is_split=True)
        self.events = structured(60, seed + 1000)
        self.truth = unshed(self.query, self.events, Costs(), is_split=True, is_observed=False).run.found

    @property
    def history(self) -> History:
        assert self.learned.history is not None
        return self.learned.history

    def operator(self) -> Operator:
        operator = Operator(self.query, is_split=True, names=self.history.names)
        operator.take(self.events)
        return operator

    def run(self, strategy: Strategy, share: float) -> tuple[Found, Floats]:
        """Shed a share of all that comes; return the matches, and the pairs of event and run that were left."""
        operator, found, asked = self.operator(), [], []
        strategy.aim(share)
        for start, view in views(operator):
            decision = strategy.decide(view) if share > 0 else NOTHING
            if strategy.level == "runs" and share > 0:
                utilities = [strategy.run_utilities(0)]
                operator.drop_runs(round(share * operator.open_runs()), utilities, start, start, None)
            step = operator.process(start, view, decision)
            asked.append(np.where(step.is_shed, 0, step.ledgers[0][:, OPEN]))
            found.append(step.found)
        found.append(operator.finish())
        return Found.joined(found), np.concatenate(asked).astype(np.float64)

    def quality(self, strategy: Strategy, share: float) -> Quality:
        return strict(self.truth, self.run(strategy, share)[0], [1.0])


def views(operator: Operator) -> Iterator[tuple[int, View]]:
    """Yield the slices of an operator's events."""
    for start in range(0, operator.stream.size, _SLICE):
        yield start, operator.stream.view(start, min(operator.stream.size, start + _SLICE))


def check_shedder(strategy: type[Strategy], **options: Any) -> None:
    """Check that a strategy keeps to what all of them must; raise an AssertionError that says what it does not.

    It sheds nothing when it is idle, keeps to its amount, decides the same on a replay and after it was saved and read
    again, invents no match under EACH without negation and consumption, and beats chance on data with structure.

    The amount is a share of the pairs of event and window, or of event and run: at most 0.1 less and 0.15 more of all
    may go. Of runs just as many go as are to. Where a field `exact` is False, all goes that is worth as little as the
    last that must: then the amount is that of the same with `exact=True`, and no less may go.

    Args:
        strategy: the class.
        options: that `fitted` takes.

    Examples:
        >>> from penstock.shedding.strategies.espice import Espice
        >>> check_shedder(Espice)
    """
    trial = _Trial(FIRST)
    made = strategy.fitted(trial.history, **options)
    _check_idle(trial, made)
    _check_amount(trial, made)
    _check_replay(trial, made)
    _check_saved(trial, made)
    _check_beats_chance(trial, made)
    _check_invents_nothing(strategy, options)


def _check_idle(trial: _Trial, strategy: Strategy) -> None:
    strategy.aim(0.0)
    operator = trial.operator()
    for start, view in views(operator):
        step = operator.process(start, view, strategy.decide(view))
        assert not step.is_shed.any(), f"{strategy.name} sheds when it is idle"
    quality = trial.quality(strategy, 0.0)
    assert quality.lost == quality.invented == 0, f"{strategy.name} changes matches when it is idle"


def _check_amount(trial: _Trial, strategy: Strategy) -> None:
    if strategy.level == "runs":
        _check_number(trial, strategy)
        return
    exact, whole = strategy, trial.run(strategy, 0.0)[1]
    if getattr(strategy, "exact", True) is False:
        exact = replace(cast(Any, strategy), exact=True)
    for share in (0.2, 0.5):
        gone = _gone(trial.run(exact, share)[1], whole, strategy.level)
        message = f"{strategy.name} was to drop {share} of what comes, and drops {gone:.2f}"
        assert share - _LESS < gone < share + _MORE, message
        if exact is not strategy:
            more = _gone(trial.run(strategy, share)[1], whole, strategy.level)
            assert more >= gone, f"{strategy.name} drops {gone:.2f} if exact, and else only {more:.2f}"


def _gone(left: Floats, whole: Floats, level: Level) -> float:
    """Return the share of pairs that went: of event and run if events are hidden from runs, else of event, window."""
    return float(np.mean(left == 0)) if level in ("stream", "window") else float(1 - left.sum() / whole.sum())


def _check_number(trial: _Trial, strategy: Strategy) -> None:
    """Check that as many runs go as are to: each has a utility, and none is left over or dropped with another."""
    operator, many = trial.operator(), 0
    for start, view in views(operator):
        many += operator.open_runs() // 2
        wanted, before = operator.open_runs() // 2, operator.open_runs()
        dropped = operator.drop_runs(wanted, [strategy.run_utilities(0)], start, start, None)
        assert dropped == wanted == before - operator.open_runs(), (
            f"{strategy.name} was to drop {wanted}, not {dropped}"
        )
        operator.process(start, view, NOTHING)
    assert many, "there were no runs to drop"


def _check_replay(trial: _Trial, strategy: Strategy) -> None:
    strategy.aim(0.4)
    all_views = [view for _, view in views(trial.operator())]
    before = strategy.state()
    first = [strategy.decide(view) for view in all_views]
    if before:
        strategy.restore(before)
    again = [strategy.decide(view) for view in all_views]
    assert all(map(_are_same, first, again)), f"{strategy.name} decides otherwise when a batch is replayed"
    if strategy.level == "runs":
        runs = [trial.run(strategy, 0.6)[0] for _ in range(2)]
        same = np.array_equal(runs[0].windows, runs[1].windows)
        assert same, f"{strategy.name} drops other runs when a batch is replayed"
        return
    assert any(map(_sheds, first)), f"{strategy.name} sheds nothing of what it was to"


def _check_saved(trial: _Trial, strategy: Strategy) -> None:
    with TemporaryDirectory() as folder:
        save(strategy, Path(folder) / "model", {"types": list(trial.history.names)})
        loaded, about = load(Path(folder) / "model")
    assert about == {"types": list(trial.history.names)}
    if strategy.level == "runs":
        assert np.array_equal(strategy.run_utilities(0), loaded.run_utilities(0)), f"{strategy.name} is not saved whole"
        return
    if state := strategy.state():
        loaded.restore(state)
    for each in (strategy, loaded):
        each.aim(0.4)
    for _, view in views(trial.operator()):
        same = _are_same(strategy.decide(view), loaded.decide(view))
        assert same, f"{strategy.name} decides otherwise after it was saved and read again"


def _check_beats_chance(trial: _Trial, strategy: Strategy) -> None:
    if type(strategy) in (RandomEvent, RandomRun):
        return
    share = 0.1 if strategy.level == "runs" else 0.4
    chance = RandomRun.fitted(trial.history) if strategy.level == "runs" else RandomEvent(7)
    lost, by_chance = trial.quality(strategy, share).lost, trial.quality(chance, share).lost
    assert lost < by_chance, f"{strategy.name} loses {lost:.2f} of the matches, and chance {by_chance:.2f}"


def _check_invents_nothing(strategy: type[Strategy], options: dict[str, Any]) -> None:
    trial = _Trial(EACH, seed=5)
    made = strategy.fitted(trial.history, **options)
    for share in (0.1, 0.6):
        invented = trial.quality(made, share).false_positives
        assert invented == 0, f"{made.name} invents {invented:.0f} matches under EACH"


def _sheds(decision: Decision) -> bool:
    parts = [decision.events, decision.pairs, *(decision.hidden or ())]
    is_by_worth = decision.least is not None and bool(np.isfinite(decision.least).any())
    return is_by_worth or any(part is not None and bool(part.any()) for part in parts)


def _are_same(one: Decision, other: Decision) -> bool:
    def parts(decision: Decision) -> list[Any]:
        lists = [decision.hidden or (), decision.worth or ()]
        return [decision.events, decision.pairs, decision.least, *lists[0], *lists[1]]

    pairs = list(zip(parts(one), parts(other), strict=True))
    return all((a is None) == (b is None) and (a is None or np.array_equal(a, b)) for a, b in pairs)
