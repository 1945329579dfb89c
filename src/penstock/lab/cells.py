"""The cells of experiments: one run each, and what those that share a stream and a query have in common."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import xxhash

from penstock.lab.spec import Experiment, Spec, Value
from penstock.runtime.costs import Costs

QUICK_ROWS = 0.25  # of the rows of a stream


@dataclass(frozen=True)
class Cell:
    """A run.

    Attributes:
        spec: the name of the spec.
        experiment: with the sweep's value in it.
        x: the place of the sweep's value among its values; 0 without a sweep.
        value: the value, as text.
        rate: of arrivals.
        strategy: the name of the strategy.
        seed: of the stream and of all chance.
    """

    spec: str
    experiment: str
    x: int
    value: str
    rate: float
    strategy: str
    seed: int


@dataclass(frozen=True)
class Setting:
    """What cells share: a stream and an operator, so that the truth and the training are theirs together.

    Attributes:
        spec: the name of the spec.
        experiment: with fewer rows, if the run is quick.
        values: of the sweep, with their places: one, or several if they do not change the stream and the operator.
        seed: of the stream.
        cells: the runs, with the value of the sweep.
        costs: of work in virtual time; None: those of the papers' operators.
    """

    spec: str
    experiment: Experiment
    seed: int
    cells: tuple[tuple[Cell, Value | None], ...]
    costs: Costs | None = None

    def fingerprint(self, cell: Cell, value: Value | None) -> str:
        """Return a short text that is another one when anything about a run is."""
        about = [self.experiment.model_dump(exclude={"rates", "quick_rates", "strategies", "sweep"}), value, cell.rate]
        sweep = None if self.experiment.sweep is None else self.experiment.sweep.path
        options = [each.model_dump() for each in self.experiment.strategies if each.name == cell.strategy]
        # Without costs of its own a run has the fingerprint that it had when they were no part of it.
        costs = [] if self.costs is None else [written(self.costs)]
        return xxhash.xxh64_hexdigest(
            json.dumps([cell.spec, *about, sweep, options, cell.seed, *costs], sort_keys=True).encode()
        )

    def without(self, done: set[str]) -> Setting:
        """Return what is left of it when runs with these fingerprints are done."""
        return replace(self, cells=tuple(each for each in self.cells if self.fingerprint(*each) not in done))


def written(costs: Costs | None) -> str:
    """Return unit costs as a text, which is the same for the same costs; "" for those of the papers' operators."""
    return "" if costs is None else json.dumps(asdict(costs), sort_keys=True)


def settings(
    spec: Spec, seeds: int, *, is_quick: bool, rows: float = 1.0, costs: Costs | None = None
) -> Iterator[Setting]:
    """Yield all that is to be run of a spec.

    Args:
        spec: the spec.
        seeds: how many runs of each kind, with the seeds 1, 2, …; one on recorded data, which do not change with it.
        is_quick: whether to run fewer rates and values on less data.
        rows: the share of the data.
        costs: of work in virtual time; None: those of the papers' operators.
    """
    for given in spec.experiments:
        share = rows * (QUICK_ROWS if is_quick else 1.0)
        data = given.data.model_copy(
            update={
                "rows": max(2, round(given.data.rows * share)), "train_rows": round(given.data.train_rows * rows),
            }
        )  # fmt: skip
        experiment = given.model_copy(update={"data": data})
        for seed in range(1, (1 if data.is_recorded else seeds) + 1):
            for values in _groups(experiment, is_quick=is_quick):
                cells = tuple(
                    (Cell(spec.name, experiment.id, x, _text(value), rate, each.name, seed), value)
                    for x, value in values
                    for rate in experiment.chosen_rates(is_quick=is_quick)
                    for each in experiment.strategies
                )  # fmt: skip
                yield Setting(spec.name, experiment, seed, cells, costs)


def _text(value: Value | None) -> str:
    return "" if value is None else str(value)


def _groups(experiment: Experiment, *, is_quick: bool) -> list[list[tuple[int, Value | None]]]:
    """Return the values of the sweep with their places; those that share a stream and an operator together."""
    sweep = experiment.sweep
    if sweep is None:
        return [[(0, None)]]
    places = [(sweep.values.index(value), value) for value in sweep.chosen(is_quick=is_quick)]
    return [list(places)] if sweep.path.startswith("strategy.") else [[place] for place in places]
