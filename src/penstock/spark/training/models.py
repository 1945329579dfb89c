"""A model: what was summed up over a history, and the utilities that follow from it.

A model is a directory: `model.json` and an array per file, as numpy writes them. Nothing in it is pickled or run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import PenstockError
from penstock.plan.tables import Floats, Ints
from penstock.shedding.storing import read_array

FORMAT, VERSION = "penstock model", 1
_FILE = "model.json"
_ANOTHER = "\n  fix: give the folder that Model.save has written, or collect it again"


class ModelError(PenstockError):
    """A model that cannot be read, or asked for something that it does not have."""


@dataclass(frozen=True)
class Observed:
    """What was summed up for a query.

    Attributes:
        query: its text.
        name: its name, None if it has none.
        weight: how much a match counts.
        states: what is bound in each state of its automaton.
        sums: arrays by name, as `contributions.py` and `observing.py` say; T types, B bins: (T, B), (T,), or () for
            one number.
    """

    query: str
    name: str | None
    weight: float
    states: tuple[tuple[str, ...], ...]
    sums: Mapping[str, Ints]


@dataclass(frozen=True)
class Model:
    """What a history says about the worth of events.

    Attributes:
        kind: what it is made for.
        positions: how many bins positions are in, B.
        types: of events, T of them, in alphabetical order.
        queries: what was summed up for each.
        rows: how many rows were read.
        malformed: how many of them were no events.
    """

    kind: str
    positions: int
    types: tuple[str, ...]
    queries: tuple[Observed, ...]
    rows: int = 0
    malformed: int = 0

    def __repr__(self) -> str:
        each = ", ".join(f"{q.name or 'query'}: {int(q.sums['matches']):,} matches" for q in self.queries)
        return f"Model {self.kind} of {self.rows:,} rows, {len(self.types)} types, {self.positions} positions; {each}"

    # --- contributions ----------------------------------------------------------------------------------------

    def utility(self, query: int | None = None) -> Floats:
        """Return UT[type, bin]: the share of events of a type at a position that are in a match, 0 if there was none.

        Of several queries, the sum of each one's share times its weight, as eSPICE weighs them (thesis 4.2.3.1). The
        paper takes how often an event is in a match, `contributions`; the share of events that are, `contributing`,
        stays between 0 and 1 where a query has many matches of the same events.

        Args:
            query: the place of one query; then without its weight.
        """
        if query is None:
            return _sum(each.weight * self.utility(place) for place, each in enumerate(self.queries))
        sums = self.queries[query].sums
        return _share(sums["contributing"], sums["events"] if "events" in sums else sums["seen"][:, None])

    def utility_of_types(self, query: int | None = None) -> Floats:
        """Return the share of events of a type that are in a match, wherever they are; else like `utility`."""
        if query is None:
            return _sum(each.weight * self.utility_of_types(place) for place, each in enumerate(self.queries))
        sums = self.queries[query].sums
        if "events" not in sums:
            return _share(sums["matched"], sums["seen"])
        # A window of fewer positions than bins has an event in several bins: these are shares of bins, then.
        return _share(sums["contributing"].sum(axis=1), sums["events"].sum(axis=1))

    def shares(self, query: int = 0) -> Floats:
        """Return S[type, bin]: the share of the events at a position that are of a type (eSPICE 3.3)."""
        sums = self.queries[query].sums
        events = sums["events"] if "events" in sums else np.repeat(sums["seen"][:, None], self.positions, axis=1)
        return _share(events, events.sum(axis=0, keepdims=True))

    # --- files ------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the model into a directory, which is made if it is not there."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _FILE).unlink(missing_ok=True)  # it is written last: without it, there is no model
        for place, each in enumerate(self.queries):
            for name, array in each.sums.items():
                np.save(folder / f"{place}.{name}.npy", array, allow_pickle=False)
        about = {
            "format": FORMAT,
            "version": VERSION,
            "kind": self.kind,
            "positions": self.positions,
            "types": list(self.types),
            "rows": self.rows,
            "malformed": self.malformed,
            "queries": [_described(each) for each in self.queries],
        }
        (folder / _FILE).write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """Read a model.

        Raises:
            ModelError: there is none, it is of another version, or something of it is missing.
        """
        folder = Path(path)
        try:
            about = json.loads((folder / _FILE).read_text(encoding="utf-8"))
            _check(about, folder)
            queries = [_loaded(folder, place, each) for place, each in enumerate(about["queries"])]
            model = cls(
                str(about["kind"]), int(about["positions"]), tuple(map(str, about["types"])), tuple(queries),
                int(about["rows"]), int(about["malformed"]),
            )  # fmt: skip
        except FileNotFoundError as error:
            missing = Path(str(error.filename)).name
            raise ModelError(f"{folder} holds no whole model: there is no {missing}{_ANOTHER}") from error
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"{folder} does not hold what it should: {error}{_ANOTHER}") from error
        for each in queries:
            _check_shapes(each, len(model.types), folder)
        return model


def _check(about: Any, folder: Path) -> None:
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ModelError(f"{folder / _FILE} is not about a model of penstock{_ANOTHER}")
    if about["version"] != VERSION:
        raise ModelError(
            f"{folder} has format {about['version']}, and this version of penstock reads format {VERSION}\n"
            "  fix: collect it again"
        )


def _described(observed: Observed) -> dict[str, Any]:
    return {
        "query": observed.query,
        "name": observed.name,
        "weight": observed.weight,
        "states": [list(state) for state in observed.states],
        "sums": sorted(observed.sums),
    }


def _loaded(folder: Path, place: int, about: dict[str, Any]) -> Observed:
    names = [str(name) for name in about["sums"]]
    if any(not name.isidentifier() for name in names):
        raise ValueError(f"no names of arrays: {names}")
    sums = {name: read_array(folder / f"{place}.{name}.npy") for name in names}
    states = tuple(tuple(map(str, state)) for state in about["states"])
    return Observed(str(about["query"]), about["name"], float(about["weight"]), states, sums)


def _check_shapes(observed: Observed, types: int, folder: Path) -> None:
    for name, array in observed.sums.items():
        if array.dtype != np.int64 or (array.ndim and len(array) != types):
            raise ModelError(
                f"{folder}: the array {name} is {array.dtype} {array.shape}, and there are {types} types{_ANOTHER}"
            )


def _share(part: Ints, whole: Ints) -> Floats:
    shares: Floats = part / np.maximum(whole, 1)
    return shares


def _sum(tables: Iterable[Floats]) -> Floats:
    total: Floats = np.sum(list(tables), axis=0)
    return total
