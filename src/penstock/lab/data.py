"""The streams and the queries of experiments, as tables and syntax trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import PenstockError
from penstock.lab.generators import Buses, Generator, Soccer, Stocks, Synthetic
from penstock.lab.readers import DataError, read_minute_bars, read_soccer_match, recorded
from penstock.lab.spec import Data, QueryText, Spec, Value
from penstock.pattern import ast
from penstock.pattern.parser import parse

GENERATORS: Mapping[str, Callable[..., Generator]] = {
    "stocks": Stocks, "soccer": Soccer, "buses": Buses, "synthetic": Synthetic,
}  # fmt: skip
RECORDED: Mapping[str, tuple[str, Callable[..., pa.Table]]] = {  # the data set, and its reader
    "minute-bars": ("us_minute_bars_2018", read_minute_bars),
    "soccer-match": ("soccer_match_positions_2019", read_soccer_match),
}


class QueryFileError(PenstockError):
    """A query of the lab that does not exist, or lacks a parameter."""


def table_of(data: Data, seed: int) -> pa.Table:
    """Return the events of a stream. A recorded one is the same for every seed."""
    if data.source in GENERATORS:
        table = GENERATORS[data.source](seed=seed, **data.options).table(data.rows)
    else:
        name, read = RECORDED[data.source]
        table = read(recorded(name), **data.options).slice(0, data.rows)
    return moved(table, data.keep_moves) if data.keep_moves else table


def lacking(spec: Spec) -> str:
    """Return what recorded data a spec needs that are not there, with a way out; "" if it can be run."""
    try:
        for experiment in spec.experiments:
            if experiment.data.is_recorded:
                recorded(RECORDED[experiment.data.source][0])
    except DataError as error:
        return str(error)
    return ""


def halves_of(data: Data, seed: int) -> tuple[pa.Table, pa.Table]:
    """Return the events of a stream that are learned from, and those of the runs, which come after them."""
    if not data.train_rows:
        events = table_of(data, seed)
        half = events.num_rows // 2
        return events.slice(0, half), events.slice(half)
    whole = table_of(data.model_copy(update={"rows": data.train_rows + data.rows}), seed)
    half = table_of(data.model_copy(update={"rows": data.train_rows}), seed).num_rows
    return whole.slice(0, half), whole.slice(half)


def moved(table: pa.Table, share: float) -> pa.Table:
    """Return the quotes that differ by at least this share from the symbol's quote before.

    Examples:
        >>> quotes = pa.table({"type": ["A", "B", "A", "A"], "close": [10.0, 5.0, 10.01, 11.0]})
        >>> moved(quotes, 0.05).column("close").to_pylist()
        [11.0]
    """
    kinds = table.column("type").combine_chunks()
    encoded = kinds if isinstance(kinds, pa.DictionaryArray) else kinds.dictionary_encode()
    codes, close = encoded.indices.to_numpy(), table.column("close").to_numpy()
    order = np.argsort(codes, kind="stable")
    before = np.full(len(close), np.nan)
    is_same = codes[order][1:] == codes[order][:-1]
    before[order[1:]] = np.where(is_same, close[order][:-1], np.nan)
    return table.filter(pa.array(np.abs(close / before - 1) >= share))


def query_of(given: QueryText, changed: Mapping[str, Value] | None = None) -> ast.Query:
    """Return a query with its parameters.

    Args:
        given: the query.
        changed: parameters that are other than it says.

    Raises:
        QueryFileError: there is no such query, or a parameter is not given.
    """
    path = files("penstock.lab").joinpath("queries", f"{given.file}.cep")
    if not path.is_file():
        raise QueryFileError(f"the lab has no query {given.file!r}")
    parameters: dict[str, Any] = {**given.parameters, **(changed or {})}
    try:
        filled = {name: Template(str(value)).substitute(parameters) for name, value in parameters.items()}
        text = Template(path.read_text("utf-8")).substitute(filled)
    except KeyError as error:
        raise QueryFileError(f"{given.file}: the parameter {error} is not given") from None
    return parse(text, given.file)
