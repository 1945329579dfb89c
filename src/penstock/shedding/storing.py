"""Models in files: a directory of plain arrays and one JSON file. Nothing in it is pickled or run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from penstock.errors import PenstockError
from penstock.shedding.strategies.catalogue import STRATEGIES
from penstock.shedding.strategies.strategy import Strategy

FORMAT, VERSION = "penstock shedding model", 1
_FILE = "model.json"
_ANOTHER = "\n  fix: give the folder that `penstock train` has written, or train it again"


class ModelError(PenstockError):
    """A model that cannot be read."""


def save(strategy: Strategy, path: str | Path, about: Mapping[str, Any] | None = None) -> None:
    """Write a strategy with its model into a directory, which is made if it is not there.

    Args:
        strategy: what to save.
        path: where.
        about: what else to keep with it, such as the names of types and the text of queries; plain values.
    """
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _FILE).unlink(missing_ok=True)  # it is written last: without it, there is no model
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    values = _taken_apart(strategy, "", arrays)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
    whole = {
        "format": FORMAT, "version": VERSION, "strategy": strategy.name, "strategy_version": strategy.version,
        "values": values, "arrays": sorted(arrays), "about": dict(about or {}),
    }  # fmt: skip
    (folder / _FILE).write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def load(path: str | Path) -> tuple[Strategy, dict[str, Any]]:
    """Read a strategy with its model, and what else was kept with it.

    Raises:
        ModelError: there is none, it is of another version, or something of it is missing.
    """
    folder = Path(path)
    try:
        whole = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        if not isinstance(whole, dict) or whole.get("format") != FORMAT:
            raise ModelError(f"{folder / _FILE} is not about a model for shedding{_ANOTHER}")
        if whole["version"] != VERSION:
            raise ModelError(
                f"{folder} has format {whole['version']}, and this version of penstock reads format {VERSION}\n"
                "  fix: train it again"
            )
        kind = STRATEGIES[whole["strategy"]]
        version = whole.get("strategy_version", 1)  # it was not written before there was a second one
        if version != kind.version:
            raise ModelError(
                f"{folder} has version {version} of a model of {kind.name}, and this version of penstock reads "
                f"version {kind.version}\n  fix: train it again"
            )
        arrays = {name: read_array(folder / f"{_checked(name)}.npy") for name in whole["arrays"]}
        strategy = _put_together(kind, whole["values"], "", arrays)
    except FileNotFoundError as error:
        missing = Path(str(error.filename)).name
        raise ModelError(f"{folder} holds no whole model: there is no {missing}{_ANOTHER}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"{folder} does not hold what it should: {error}{_ANOTHER}") from error
    return strategy, whole["about"]


def _checked(name: str) -> str:
    if not all(part.isidentifier() or part.isdigit() for part in name.split(".")):
        raise ValueError(f"no name of an array: {name!r}")
    return name


def read_array(path: Path) -> np.ndarray[Any, Any]:
    """Read an array that numpy has written, and nothing else."""
    with path.open("rb") as file:  # not np.load, which takes archives, too
        array: np.ndarray[Any, Any] = np.lib.format.read_array(file, allow_pickle=False)
    return array


def _taken_apart(whole: Any, prefix: str, arrays: dict[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    """Return the plain values of a dataclass; put its arrays, and those in it, into `arrays`."""
    values: dict[str, Any] = {}
    for each in fields(whole):
        if not each.init:
            continue
        name, value = prefix + each.name, getattr(whole, each.name)
        if isinstance(value, np.ndarray):
            arrays[name] = value
        elif is_dataclass(value):
            values[each.name] = _taken_apart(value, f"{name}.", arrays)
        elif isinstance(value, tuple) and value and isinstance(value[0], np.ndarray):
            values[each.name] = len(value)
            arrays.update({f"{name}.{place}": array for place, array in enumerate(value)})
        else:
            values[each.name] = list(value) if isinstance(value, tuple) else value
    return values


def _put_together(kind: Any, values: dict[str, Any], prefix: str, arrays: Mapping[str, Any]) -> Any:
    """Return a dataclass of plain values and arrays."""
    hints, parts = get_type_hints(kind), {}
    for each in fields(kind):
        name, hint = prefix + each.name, hints[each.name]
        if not each.init:
            continue
        if isinstance(hint, type) and is_dataclass(hint):
            parts[each.name] = _put_together(hint, values[each.name], f"{name}.", arrays)
        elif _is_array(hint):
            parts[each.name] = arrays[name]
        elif get_origin(hint) is tuple and _is_array(get_args(hint)[0]):
            parts[each.name] = tuple(arrays[f"{name}.{place}"] for place in range(int(values[each.name])))
        else:
            value = values[each.name]
            parts[each.name] = tuple(value) if isinstance(value, list) else value
    return kind(**parts)


def _is_array(hint: Any) -> bool:
    is_array = hint is np.ndarray or get_origin(hint) is np.ndarray
    return is_array or (isinstance(hint, UnionType) and any(map(_is_array, get_args(hint))))
