"""The plot of a figure: what was measured as lines, the paper's stated numbers as diamonds."""

from __future__ import annotations

from typing import Any

from penstock.errors import PenstockError
from penstock.lab.judging import Numbers, Row
from penstock.lab.measures import MEASURES
from penstock.lab.spec import Experiment, Figure, Spec

COLOURS = {
    "espice": "#1f77b4", "ebl": "#ff7f0e", "pspice": "#2ca02c", "pspice--": "#98df8a", "random-run": "#bcbd22",
    "random-event": "#8c8c8c", "hspice-pm": "#9467bd", "hspice-w": "#c5a3dd", "gspice-sh": "#d62728",
    "gspice-st": "#e377c2", "gspice-sf": "#f7b6d2", "gspice-wh": "#8c564b", "gspice-wt": "#c49c94",
    "gspice-wf": "#17becf",
}  # fmt: skip
WIDTH, HEIGHT = 270, 190


class PlotError(PenstockError):
    """What plots need is not installed."""


def plot(spec: Spec, figure: Figure, rows: list[Row]) -> dict[str, Any]:
    """Return the Vega-Lite specification of a figure.

    Args:
        spec: the spec.
        figure: one of its figures.
        rows: the means of its runs.

    Raises:
        PlotError: altair is not installed.
    """
    try:
        import altair as alt
    except ImportError as error:
        raise PlotError(
            "plots are made by altair, which is not installed\n  fix: pip install 'penstock[lab]'"
        ) from error
    experiment = spec.experiment(figure.experiment)
    mine = [row for row in rows if row.experiment == figure.experiment]
    points = [point for row in mine for point in (_over_time(row) if figure.x == "time" else [_point(row, figure)])]
    layers = _lines(alt, figure, experiment, mine, points)
    if stated := _stated(spec, figure, experiment):
        diamonds = alt.Chart(alt.InlineData(values=stated)).mark_point(shape="diamond", size=70, strokeWidth=1.6)
        layers.append(diamonds.encode(**_channels(alt, figure, experiment)))
    chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, title=f"{figure.id}  {figure.title}")
    drawn: dict[str, Any] = chart.configure_title(anchor="start", fontSize=13).configure_view(stroke="#ddd").to_dict()
    return drawn


def _lines(
    alt: Any, figure: Figure, experiment: Experiment, rows: list[Row], points: list[dict[str, Any]]
) -> list[Any]:  # fmt: skip
    """Return what was measured, as layers: lines, with points and deviations, or with the bound."""
    told_apart: dict[str, Any] = {}
    if figure.x != "rate" and len({row.rate for row in rows}) > 1:
        told_apart["strokeDash"] = alt.StrokeDash("rate:N", title="rate", legend=alt.Legend(orient="bottom"))
    if figure.x == "time":
        told_apart["detail"] = alt.Detail("place:N")
    base = alt.Chart(alt.InlineData(values=points)).encode(**_channels(alt, figure, experiment))
    layers: list[Any] = [base.mark_line(strokeWidth=1.8).encode(**told_apart)]
    if figure.x == "time":
        bound = alt.Chart(alt.InlineData(values=[{"y": experiment.bound}]))
        layers.append(bound.mark_rule(color="#555", strokeDash=[5, 4]).encode(y="y:Q"))
    else:
        layers.append(base.mark_point(filled=True, size=32))
    if any(point["high"] > point["low"] for point in points):
        layers.append(base.mark_rule(opacity=0.5).encode(y="low:Q", y2="high:Q"))
    return layers


def _channels(alt: Any, figure: Figure, experiment: Experiment) -> dict[str, Any]:
    """Return what is where: along the axes, as colours, beside the pointer."""
    measure, names = MEASURES[figure.y], [each.name for each in experiment.strategies]
    kind = _kind(experiment, figure)
    colours = alt.Scale(domain=names, range=[COLOURS.get(name, "#333") for name in names])
    legend = alt.Legend(orient="bottom", columns=4, symbolType="stroke")
    return {
        "x": alt.X(
            "x", type=kind, title=_title(experiment, figure), axis=_axis(alt, figure), sort=None,
            scale=_scale(alt, kind),
        ),
        "y": alt.Y("y:Q", title=measure.label, axis=alt.Axis(format="%" if measure.is_share else "~g", tickCount=5)),
        "color": alt.Color("strategy:N", title=None, scale=colours, legend=legend),
        "tooltip": [alt.Tooltip(name, type="nominal") for name in ("strategy", "place", "shown")],
    }  # fmt: skip


def _point(row: Row, figure: Figure) -> dict[str, Any]:
    mean, deviation = row.means[figure.y], row.deviations.get(figure.y, 0.0)
    shown = f"{mean:.1%}" if MEASURES[figure.y].is_share else f"{mean:.4g}"
    return {
        "x": _along(row, figure), "y": mean, "low": max(0.0, mean - deviation), "high": mean + deviation,
        "strategy": row.strategy, "rate": f"{row.rate:.0%}", "place": row.place(has_sweep=row.value != ""),
        "shown": shown,
    }  # fmt: skip


def _over_time(row: Row) -> list[dict[str, Any]]:
    about = {
        "strategy": row.strategy, "rate": f"{row.rate:.0%}", "place": row.place(has_sweep=row.value != "")
    }  # fmt: skip
    count = max(1, len(row.curve))
    return [
        {"x": (k + 0.5) / count, "y": latency, "low": 0.0, "high": 0.0, "shown": f"{latency:.3g} s", **about}
        for k, latency in enumerate(row.curve)
    ]


def _along(row: Row, figure: Figure) -> float | str:
    if figure.x == "rate":
        return row.rate
    return row.means["match_probability"] if figure.x == "match_probability" else _value(row.value)


def _value(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _kind(experiment: Experiment, figure: Figure) -> Any:
    is_text = experiment.sweep is not None and isinstance(experiment.sweep.values[0], str)
    return "nominal" if figure.x == "sweep" and is_text else "quantitative"


def _scale(alt: Any, kind: str) -> Any:
    return alt.Undefined if kind == "nominal" else alt.Scale(zero=False, nice=False, padding=12)


def _title(experiment: Experiment, figure: Figure) -> str:
    if figure.x == "sweep" and experiment.sweep is not None:
        return experiment.sweep.label
    if figure.x == "time":
        return "part of the run"
    return "event rate / throughput" if figure.x == "rate" else "match probability"


def _axis(alt: Any, figure: Figure) -> Any:
    if figure.x == "sweep":
        return alt.Axis(labelAngle=0, tickCount=6)
    return alt.Axis(format="%", tickCount=5)


def _stated(spec: Spec, figure: Figure, experiment: Experiment) -> list[dict[str, Any]]:
    """Return the paper's numbers, as far as the spec has them."""
    points = []
    for judgement in (each for claim in spec.claims for each in claim.judge):
        if not isinstance(judgement, Numbers) or (judgement.experiment, judgement.measure) != (experiment.id, figure.y):
            continue
        for each in judgement.stated:
            at = each.rate if figure.x == "rate" else each.value
            if at is not None and figure.x != "match_probability":
                shown = f"stated: {each.is_about:.1%}"
                points.append(
                    {"x": at, "y": each.is_about, "strategy": each.strategy, "place": "the paper", "shown": shown}
                )
    return points
