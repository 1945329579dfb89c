"""What a model says, as tables of numbers to look at: a heat map in a page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from penstock.plan.tables import Floats
from penstock.shedding.strategies.strategy import Strategy

MOST_COLUMNS = 60
_STYLE = """
body{font:14px sans-serif;margin:2em}table{border-collapse:collapse}td{min-width:3px;height:14px}
th{text-align:right;padding:0 .6em;font-weight:normal}
"""


@dataclass(frozen=True)
class Heat:
    """A table of utilities.

    Attributes:
        title: what it is about.
        rows: the names of its rows.
        columns: what the columns are.
        values: (rows, columns).
    """

    title: str
    rows: tuple[str, ...]
    columns: str
    values: Floats

    def narrowed(self, most: int = MOST_COLUMNS) -> Heat:
        """Return it with neighbouring columns put together, if there are too many."""
        width = self.values.shape[1]
        if width <= most:
            return self
        edges = np.linspace(0, width, most + 1).astype(int)
        means = np.stack([self.values[:, a:b].mean(axis=1) for a, b in pairwise(edges)], axis=1)
        return Heat(self.title, self.rows, self.columns, means)

    @property
    def shades(self) -> Floats:
        """The values from 0 to 1."""
        most = float(self.values.max(initial=0.0))
        return self.values / most if most > 0 else self.values


def heats(strategy: Strategy, types: Sequence[str]) -> list[Heat]:
    """Return the tables of a model; none, if it has no utilities."""
    made: Any = strategy
    names, positions = tuple(types), "position in the window, from its beginning to its end"
    if isinstance(getattr(made, "tables", None), tuple):
        if strategy.level == "runs":
            left = "events left of the window, from none to all"
            return [
                Heat(f"query {q + 1}: a run, by its state", _states(len(table)), left, np.asarray(table, np.float64))
                for q, table in enumerate(made.tables)
            ]
        return [
            Heat(f"query {q + 1}: an event to runs in state {state}", names, positions, table[:, :, state])
            for q, table in enumerate(made.tables)
            for state in range(table.shape[2])
        ]
    for attribute in ("utilities", "otherwise"):
        found = getattr(made, attribute, None)
        if isinstance(found, np.ndarray):
            table = found.astype(np.float64)
            what = "an event" if attribute == "utilities" else "an event of a context that was never seen"
            return [Heat(what, names, positions, table.reshape(len(names), -1))]
    return []


def _states(count: int) -> tuple[str, ...]:
    return tuple(f"state {state}" for state in range(count))


def page(title: str, tables: Sequence[Heat]) -> str:
    """Return a page with heat maps; it needs no network."""
    parts = [_drawn(each.narrowed(400)) for each in tables]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
        f"<h1>{escape(title)}</h1>{''.join(parts)}</html>\n"
    )


def _drawn(heat: Heat) -> str:
    lines = []
    for name, values, shades in zip(heat.rows, heat.values, heat.shades, strict=True):
        cells = "".join(
            f'<td title="{value:.4g}" style="background:rgb({255 - 200 * s:.0f},{255 - 120 * s:.0f},255)">'
            for value, s in zip(values, shades, strict=True)
        )
        lines.append(f"<tr><th>{escape(name)}{cells}")
    most = float(heat.values.max(initial=0.0))
    words = f"Columns: {escape(heat.columns)}. Darkest: {most:.4g}."
    return f"<h2>{escape(heat.title)}</h2><p>{words}</p><table>{''.join(lines)}</table>"
