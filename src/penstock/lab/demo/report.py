"""The page of the demo: drawn here, so that it needs neither a network nor a library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from penstock.lab.demo.playing import Moment

_WIDTH, _HEIGHT, _LEFT, _TOP = 860, 300, 56, 16
_COLOURS = {"without shedding": "#c0392b", "with shedding": "#1f6f8b"}
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:920px;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse}td,th{padding:.25em .9em;text-align:right;border-bottom:1px solid #ddd}
th:first-child,td:first-child{text-align:left}svg{width:100%;height:auto}pre{background:#f5f5f5;padding:.8em;overflow:auto}
"""


def page(facts: Mapping[str, Any], runs: Mapping[str, Sequence[Moment]]) -> str:
    """Return the report."""
    parts = [
        f"<h1>penstock: a latency bound under overload</h1><p>{escape(facts['words'])}</p>",
        f"<p>Measured in this run, on this machine: it can process <b>{facts['capacity']:,.0f} events/s</b> of this"
        f" query; it was sent {facts['rate']:,.0f} events/s, for {facts['seconds']:g} s. The bound is"
        f" {facts['bound']:g} s.</p><p><b>{escape(facts['verdict'])}</b></p>",
        "<h2>Latency of matches</h2>", latencies(runs, facts["bound"]), _table(facts["table"]),
        "<p>False negatives: matches of all events sent that were not found by the time the last was sent. False"
        " positives: matches found that are not among those of all events.</p>",
        "<h2>What was shed</h2><p>Of the symbols that lead, that follow and that do neither, the share of events that"
        " was shed, by their place in the stream.</p>", _cells(facts["shed_by_cell"], facts["sent_by_cell"]),
        "<h2>What the model says</h2><p>Events of a type in matches of the history, by the Spark job that trained it;"
        f" the greatest first.</p>{_bars_of(facts['utilities'])}",
        f"<h2>The query</h2><pre>{escape(facts['query'])}</pre>",
    ]  # fmt: skip
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>penstock demo</title>'
        f"<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def latencies(runs: Mapping[str, Sequence[Moment]], bound: float) -> str:
    """Return the latency of both runs over time, as a picture."""
    end = max((each.at for moments in runs.values() for each in moments), default=1.0)
    most = 1.05 * max([2 * bound, *(each.latency for moments in runs.values() for each in moments)])

    def x(at: float) -> float:
        return _LEFT + at / end * (_WIDTH - _LEFT - 10)

    def y(latency: float) -> float:
        return _TOP + (1 - latency / most) * (_HEIGHT - 2 * _TOP - 24)

    parts = [_axis(x, y, end, most)]
    parts.append(
        f'<line x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{y(bound):.1f}" y2="{y(bound):.1f}" stroke="#555"'
        ' stroke-dasharray="6 4"/>'
        f'<text x="{_WIDTH - 14}" y="{y(bound) - 5:.1f}" text-anchor="end" font-size="12">bound {bound:g} s</text>'
    )
    for place, (name, moments) in enumerate(runs.items()):
        points = " ".join(f"{x(each.at):.1f},{y(each.latency):.1f}" for each in moments)
        colour = _COLOURS[name]
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{points}"/>')
        parts.append(
            f'<text x="{_LEFT + 12}" y="{_TOP + 14 + 18 * place}" fill="{colour}" font-size="13">{name}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" role="img"'
        f' aria-label="latency over time">{"".join(parts)}</svg>'
    )


def _axis(x: Any, y: Any, end: float, most: float) -> str:
    lines = []
    for step in range(5):
        value = most * step / 4
        lines.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#e5e5e5"/>'
            f'<text x="{_LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end" font-size="12">{value:.1f} s</text>'
        )
    for step in range(6):
        at = end * step / 5
        lines.append(f'<text x="{x(at):.1f}" y="{_HEIGHT - 8}" text-anchor="middle" font-size="12">{at:.0f} s</text>')
    return "".join(lines)


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *rest = rows
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rest)
    return f"<table><tr>{''.join(f'<th>{escape(cell)}</th>' for cell in head)}</tr>{body}</table>"


def _cells(shed_cells: Sequence[Mapping[str, Any]], sent_cells: Sequence[Mapping[str, Any]]) -> str:
    """Return shares as a heat map: a row for what symbols are, a column for a part of the stream."""
    shed, sent = ({(c["role"], c["part"]): c["events"] for c in cells} for cells in (shed_cells, sent_cells))
    names = sorted({name for name, _ in sent})
    parts = 1 + max((part for _, part in sent), default=0)
    wide = (_WIDTH - 220) / parts
    lines = []
    for row, name in enumerate(names):
        y = 6 + 30 * row
        lines.append(f'<text x="100" y="{y + 18}" text-anchor="end" font-size="13">{escape(name)}</text>')
        for part in range(parts):
            share = shed.get((name, part), 0) / max(1, sent.get((name, part), 0))
            lines.append(
                f'<rect x="{108 + wide * part:.1f}" y="{y}" width="{wide - 1:.1f}" height="26" fill="#1f6f8b"'
                f' fill-opacity="{0.06 + 0.94 * min(1.0, share):.3f}"><title>{100 * share:.1f} %</title></rect>'
            )
        whole = [sum(count for (other, _), count in cells.items() if other == name) for cells in (shed, sent)]
        share = 100 * whole[0] / max(1, whole[1])
        lines.append(f'<text x="{_WIDTH - 104}" y="{y + 18}" font-size="12">{share:.1f} % in all</text>')
    return f'<svg viewBox="0 0 {_WIDTH} {12 + 30 * len(names)}" role="img" aria-label="shed">{"".join(lines)}</svg>'


def _bars_of(values: Mapping[str, float]) -> str:
    most = max([*values.values(), 1e-9])
    lines = []
    for place, (name, value) in enumerate(values.items()):
        y = 6 + 24 * place
        lines.append(
            f'<text x="100" y="{y + 13}" text-anchor="end" font-size="13">{escape(name)}</text>'
            f'<rect x="108" y="{y}" width="{520 * value / most:.1f}" height="16" fill="#1f6f8b"/>'
            f'<text x="{116 + 520 * value / most:.1f}" y="{y + 13}" font-size="12">{value:g}</text>'
        )
    return f'<svg viewBox="0 0 {_WIDTH} {12 + 24 * len(values)}" role="img" aria-label="bars">{"".join(lines)}</svg>'
