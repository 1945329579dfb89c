"""Results: a Parquet file with a row per run, and a small CSV with their means that is part of the project."""

from __future__ import annotations

import csv
import json
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import PenstockError
from penstock.lab.cells import settings, written
from penstock.lab.judging import Row
from penstock.lab.measures import MEASURES
from penstock.lab.spec import Spec
from penstock.runtime.costs import Costs

FILE = "results.parquet"
STORED = "means.csv"
ABOUT = "about.json"
_KEY = ("spec", "experiment", "x", "value", "rate", "strategy")
_DEVIATIONS = ("strict_fn", "strict_fp", "relaxed_fn", "relaxed_fp")
_LIBRARIES = ("numpy", "numba", "pyarrow", "scikit-learn")


class ResultsError(PenstockError):
    """Results that are not there or cannot be read."""


# --- one row per run ----------------------------------------------------------------------------------------------


class Results:
    """The runs of a folder: read when it is opened, written after each that is added.

    Args:
        folder: where they are kept.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.failures: list[str] = []  # what could not be run, and why
        rows = pq.read_table(self.path).to_pylist() if self.path.is_file() else []
        self.rows: list[dict[str, Any]] = [{"costs": "", **row} for row in rows]  # older files do not tell them

    @property
    def done(self) -> set[str]:
        """The fingerprints of the runs."""
        return {row["fingerprint"] for row in self.rows}

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add runs, in place of earlier ones that they repeat; the file is whole at any moment."""
        new = {row["fingerprint"]: dict(row) for row in rows}
        self.rows = [row for row in self.rows if row["fingerprint"] not in new] + list(new.values())
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".part")
        pq.write_table(pa.Table.from_pylist(self.rows), beside)
        os.replace(beside, self.path)


def circumstances() -> dict[str, Any]:
    """Return what a result depends on besides its spec: the commit, the machine, the versions."""
    return {
        "commit": _commit(), "machine": _processor(), "cores": os.cpu_count() or 1,
        "python": platform.python_version(), "penstock": metadata.version("penstock"),
        "libraries": ", ".join(f"{name} {metadata.version(name)}" for name in _LIBRARIES),
    }  # fmt: skip


def _commit() -> str:
    here = Path(__file__).parent
    try:
        said = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=here, capture_output=True, text=True, check=True, timeout=10,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return said.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


# --- means --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Means:
    """Means over seeds, by spec, and where they come from.

    Attributes:
        rows: by spec.
        about: the circumstances of the runs, each with all values that it has.
        left_out: runs of the same folder that are not in them, in words.
    """

    rows: dict[str, list[Row]]
    about: dict[str, Any]
    left_out: tuple[str, ...] = ()


def means(rows: Iterable[Mapping[str, Any]]) -> Means:
    """Return the means of runs that differ in their seed alone."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in _KEY), []).append(row)
    result: dict[str, list[Row]] = {}
    for key in sorted(groups, key=str):
        group, (spec, *place) = groups[key], key
        values = {name: np.array([row[name] for row in group], np.float64) for name in MEASURES}
        averages = {name: float(each.mean()) for name, each in values.items()}
        deviations = {name: float(values[name].std()) for name in _DEVIATIONS}
        experiment, x, value, rate, strategy = place
        curve = tuple(np.mean([row["curve"] for row in group], axis=0).tolist())
        mean = Row(experiment, x, value, rate, strategy, len(group), averages, deviations, curve)
        result.setdefault(spec, []).append(mean)
    return Means(result, _about(list(groups.values())))


def _about(groups: list[list[Mapping[str, Any]]]) -> dict[str, Any]:
    rows = [row for group in groups for row in group]
    names = ("commit", "machine", "cores", "python", "penstock", "libraries", "is_quick", "costs")
    about: dict[str, Any] = {
        name: sorted({str(row[name]) for row in rows}) for name in names if rows and name in rows[0]
    }
    seconds = sum(row["run_seconds"] + row["model_seconds"] for row in rows)
    return {
        **about,
        "runs": len(rows),
        "seeds": max((len(g) for g in groups), default=0),
        "run_seconds": round(seconds),
    }


def store(given: Means, folder: Path) -> None:
    """Write means as CSV, with what they come from beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / STORED).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*_KEY, "seeds", *MEASURES, *(f"{name}_deviation" for name in _DEVIATIONS), "curve"])
        for spec, rows in given.rows.items():
            for row in rows:
                place = (spec, row.experiment, row.x, row.value, f"{row.rate:g}", row.strategy, row.seeds)
                numbers = [*(row.means[name] for name in MEASURES), *(row.deviations[name] for name in _DEVIATIONS)]
                curve = " ".join(f"{latency:.3g}" for latency in row.curve)
                writer.writerow([*place, *(f"{number:.5g}" for number in numbers), curve])
    (folder / ABOUT).write_text(json.dumps(given.about, indent=2) + "\n", "utf-8")


def stored(folder: Path | None = None) -> Means:
    """Return stored means: those of a folder, or those that are part of the project.

    Raises:
        ResultsError: there are none.
    """
    place = folder or Path(str(files("penstock.lab").joinpath("results")))
    if not (place / STORED).is_file():
        raise ResultsError(
            f"{place} has no {STORED}\n  fix: run `penstock lab run --all --quick`, then `penstock lab report`"
        )
    rows: dict[str, list[Row]] = {}
    with (place / STORED).open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            averages = {name: float(line[name]) for name in MEASURES}
            deviations = {name: float(line[f"{name}_deviation"]) for name in _DEVIATIONS}
            rows.setdefault(line["spec"], []).append(
                Row(
                    line["experiment"], int(line["x"]), line["value"], float(line["rate"]), line["strategy"],
                    int(line["seeds"]), averages, deviations, tuple(map(float, line["curve"].split())),
                )
            )  # fmt: skip
    return Means(rows, json.loads((place / ABOUT).read_text("utf-8")))


# --- runs of one kind ---------------------------------------------------------------------------------------------


def found(folder: Path, specs: Iterable[Spec], *, is_quick: bool = False, costs: Costs | None = None) -> Means:
    """Return the means of a folder's runs of one kind, as specs ask for them: others are not comparable.

    Args:
        folder: with the runs.
        specs: as they are today; runs that they do not ask for are left out.
        is_quick: whether quick runs are wanted. If not, those are taken if there are no full ones.
        costs: the unit costs of the runs that are wanted; None: those of the papers' operators.

    Raises:
        ResultsError: it has none.
    """
    rows = Results(folder).rows
    if not rows:
        raise ResultsError(f"{folder} has no results\n  fix: run `penstock lab run --all --quick`")
    known = list(specs)
    most = max(int(row["seed"]) for row in rows)
    for quick in (True,) if is_quick else (False, True):
        asked = {
            setting.fingerprint(*cell)
            for spec in known
            for setting in settings(spec, most, is_quick=quick, costs=costs)
            for cell in setting.cells
        }
        taken = [row for row in rows if row["fingerprint"] in asked]
        if taken:
            others = [row for row in rows if row["fingerprint"] not in asked]
            return replace(means(taken), left_out=tuple(_left_out(others, quick, written(costs))))
    kinds = Counter(kind_of(_about([[row]])) for row in rows)
    there = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    raise ResultsError(
        f"{folder} has no runs of the kind that is asked for; it has {there}, perhaps of earlier specs\n"
        "  fix: run `penstock lab run` with the same --quick and --costs as `penstock lab report`"
    )


def kind_of(about: Mapping[str, Any]) -> str:
    """Return what kind of runs means are of, in words.

    Examples:
        >>> kind_of({"is_quick": ["True"]}), kind_of({"is_quick": ["False"], "costs": ['{"check": 7.0}']})
        ('quick runs', 'full runs with the unit costs {"check": 7.0}')
    """
    kind = {("True",): "quick runs", ("False",): "full runs"}.get(tuple(about.get("is_quick", ())), "runs")
    costs = [each for each in about.get("costs", []) if each]
    return f"{kind} with the unit costs {', '.join(costs)}" if costs else kind


def _left_out(rows: Iterable[Mapping[str, Any]], is_quick: bool, costs: str) -> Iterator[str]:
    """Say which runs are left out, and how they can be shown."""
    counts = Counter((bool(row["is_quick"]), str(row["costs"])) for row in rows)
    for (quick, given), count in sorted(counts.items()):
        kind = kind_of({"is_quick": [str(quick)], "costs": [given]})
        if (quick, given) == (is_quick, costs):
            yield f"left out: {count} {kind} that the specs of today do not ask for"
        else:
            options = [*(["--quick"] if quick else []), *(["--costs"] if given else [])]
            how = f"`penstock lab report {' '.join(options)}`" if options else "`penstock lab report`"
            yield f"left out: {count} {kind}; {how} shows them"
