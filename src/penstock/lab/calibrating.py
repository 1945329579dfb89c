"""What our own engine's work costs: its time, measured, as a sum of the work that it counted."""

from __future__ import annotations

import time
import tomllib
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.engine import Engine
from penstock.engine.hooks import Hooks
from penstock.errors import PenstockError
from penstock.lab.data import query_of, table_of
from penstock.lab.spec import Data, QueryText, Value
from penstock.plan.tables import Floats
from penstock.runtime.costs import CHECKS, CREATED, MATCHES, Costs
from penstock.runtime.matching import LEDGER_WIDTH

_BATCHES = (256, 1024, 4096)  # events: so that what a batch costs can be told from what an event does
_REPEATS = 3  # of each batch the least time counts: what others do on the machine is no cost of ours


class CostsError(PenstockError):
    """A file of unit costs that cannot be used."""


@dataclass(frozen=True)
class Calibration:
    """Unit costs of our engine.

    Attributes:
        costs: in nanoseconds; what is not measured keeps its default.
        batch: what a batch costs more, in nanoseconds: it has no place in virtual time, where events come singly.
        error: the median deviation of the fit, as a share of the time.
        measurements: how many batches were timed.
    """

    costs: Costs
    batch: float
    error: float
    measurements: int

    def text(self) -> str:
        """Return the costs as TOML that `penstock lab run --costs` takes."""
        lines = [
            "# Unit costs of penstock's engine on this machine, in nanoseconds; made by `penstock lab calibrate`.",
            f"# {self.measurements} batches, median error {self.error:.0%}; a batch takes {self.batch:.0f} ns more.",
        ]
        units = [
            f"{each.name} = {getattr(self.costs, each.name):.4g}" for each in fields(Costs) if each.type == "float"
        ]
        return "\n".join([*lines, *units, f'asks = "{self.costs.asks}"', ""])


def workloads() -> list[tuple[Data, QueryText]]:
    """Return streams and queries that differ in what they do most: checks, new runs, matches, hardly anything."""
    timed: dict[str, Value] = {"within": "250 seconds", "window": "250 seconds every 50 seconds"}
    stocks: dict[str, Value] = {
        "within": "15 minutes",
        "window": "15 minutes every 5 minutes",
        "up": 1.001,
        "down": 0.999,
    }
    quotes = QueryText(file="stocks-sequence", parameters=stocks)
    queries = {"DS1": "synthetic-q1", "DS4": "synthetic-q1", "DS5": "synthetic-q2"}
    made = [
        (Data(source="synthetic", rows=120_000, options={"data_set": name}), QueryText(file=file, parameters=timed))
        for name, file in queries.items()
    ]
    many: dict[str, Value] = {"within": "2500 seconds", "window": "2500 seconds every 500 seconds"}
    checks = (Data(source="synthetic", rows=40_000), QueryText(file="synthetic-q1", parameters=many))
    return [*made, checks, (Data(source="stocks", rows=200_000, options={"symbols": 40}), quotes)]


def calibrated(rows: float = 1.0) -> Calibration:
    """Measure the time of `Engine.process` for some workloads, and fit the work that was counted to it.

    Args:
        rows: the share of the workloads' events.

    Raises:
        CostsError: what the fit needs is not installed.
    """
    _check_scipy()
    work, times = [], []
    for data, query in workloads():
        for size in _BATCHES:
            counted, seconds = _timed(data.model_copy(update={"rows": int(data.rows * rows)}), query, size)
            work.append(counted)
            times.append(seconds)
    features, measured = np.concatenate(work), np.concatenate(times)
    factors = _fit(features, measured)
    error = float(np.median(np.abs(features @ factors - measured) / measured))
    event, check, run, match = (float(factor) for factor in factors[1:])
    costs = Costs(event=event, pair=0.0, check=check, run=run, match=match, asks="fitting")
    return Calibration(costs, float(factors[0]), error, len(measured))


def _check_scipy() -> None:
    """Refuse to measure for minutes what cannot be fitted then."""
    if find_spec("scipy") is None:
        raise CostsError("unit costs are fitted by scipy, which is not installed\n  fix: pip install 'penstock[lab]'")


def _timed(data: Data, query: QueryText, size: int) -> tuple[Floats, Floats]:
    """Return what was counted for each batch, and the nanoseconds it took; the first tenth is for warming up."""
    table = table_of(data, 1)
    work, times = zip(*(_once(table, query, size) for _ in range(_REPEATS)), strict=True)
    warm = len(work[0]) // 10
    return work[0][warm:], np.min(times, axis=0)[warm:]


def _once(table: pa.Table, query: QueryText, size: int) -> tuple[Floats, Floats]:
    engine = Engine(query_of(query), plan="automaton")
    work, times = [], []
    for start in range(0, table.num_rows, size):
        batch = table.slice(start, size)
        ledger = np.zeros((batch.num_rows, LEDGER_WIDTH), np.int64)
        begun = time.thread_time_ns()
        engine.process(batch, Hooks(ledger=ledger))
        times.append(time.thread_time_ns() - begun)
        done = ledger.sum(axis=0)
        work.append([1, batch.num_rows, done[CHECKS], done[CREATED], done[MATCHES]])
    return np.array(work, np.float64), np.array(times, np.float64)


def _fit(features: Floats, times: Floats) -> Floats:
    """Return non-negative factors by least squares of relative errors, so that no workload outweighs the others.

    Outliers are left out: a pause of the machine is no cost of work.
    """
    from scipy.optimize import nnls

    shares = features / times[:, None]
    scales = np.maximum(shares.max(axis=0), 1e-12)
    kept = np.ones(len(times), np.bool_)
    factors: Floats = np.zeros(features.shape[1])
    for _ in range(3):
        factors = nnls(shares[kept] / scales, np.ones(int(kept.sum())))[0] / scales
        off = np.abs(shares @ factors - 1.0)
        kept = off <= 5 * np.median(off) + 1e-9
    return factors


def read_costs(path: Path) -> Costs:
    """Return unit costs of a file.

    Raises:
        CostsError: it cannot be read, or names something that is no cost.
    """
    try:
        given: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
        known = {each.name for each in fields(Costs)}
        if unknown := sorted(set(given) - known):
            raise CostsError(f"{path}: {unknown[0]!r} is no cost\n  fix: give some of {', '.join(sorted(known))}")
        return Costs(**given)
    except OSError as error:
        raise CostsError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise CostsError(f"{path}: cannot be used as costs: {error}") from None
