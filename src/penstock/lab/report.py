"""The report: one HTML page that needs no network, with a plot per figure and a verdict per claim."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import Any

from penstock.lab.claims import PAPERS, Outcome, origin, outcomes
from penstock.lab.judging import Row, Verdict
from penstock.lab.plots import PlotError, plot
from penstock.lab.results import Means
from penstock.lab.spec import Spec

_CLASSES = {Verdict.HOLDS: "holds", Verdict.PART: "part", Verdict.NOT: "not", Verdict.OPEN: "open"}


def report(specs: Iterable[Spec], given: Means) -> str:
    """Return the page.

    Raises:
        PlotError: altair or vl-convert is not installed.
    """
    plots: dict[str, Any] = {}
    judged = [(spec, outcomes(spec, given.rows.get(spec.name, []))) for spec in specs]
    sections = [_section(spec, each, given.rows.get(spec.name, []), plots) for spec, each in judged]
    costs = "the unit costs named above" if any(given.about.get("costs", [])) else "the costs of the papers' operators"
    body = [
        "<h1>The papers' experiments, rebuilt</h1>",
        f"<p class=soft>{escape(origin(given.about))}</p>",
        "<p>Each plot shows what was measured here; hollow diamonds are numbers that the paper states. Operators run "
        f"in virtual time, by {costs}: the same seed gives the same numbers on any machine. "
        "<b>ebl</b> is the papers' BL or E-BL, <b>random-run</b> PM-BL.</p>",
        _summary(judged), *sections,
    ]  # fmt: skip
    data = json.dumps(plots, separators=(",", ":")).replace("</", "<\\/")
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>penstock lab</title>"
        f"<link rel=icon href='data:,'><style>{_file('report.css')}</style><script>{_javascript()}</script>"
        "</head>\n<body>\n"
        + "\n".join(body)
        + f"\n<script>const PLOTS = {data};\n{_file('report.js')}</script>\n</body></html>\n"
    )


def _file(name: str) -> str:
    return files("penstock.lab").joinpath("page", name).read_text("utf-8")


def _javascript() -> str:
    """Return Vega, Vega-Lite and vega-embed as one script."""
    try:
        import altair as alt
        import vl_convert
    except ImportError as error:
        raise PlotError("the report needs altair and vl-convert\n  fix: pip install 'penstock[lab]'") from error
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", version)
    return script.replace("</script", "<\\/script")


def _summary(judged: list[tuple[Spec, list[Outcome]]]) -> str:
    counts = Counter(outcome.verdict for _, each in judged for outcome in each)
    lines = []
    for spec, each in judged:
        mine = Counter(outcome.verdict for outcome in each)
        cells = "".join(f"<td class=number>{mine[verdict] or ''}</td>" for verdict in Verdict)
        figures = ", ".join(figure.id for figure in spec.figures)
        link = f"<a href='#{spec.name}'>{spec.name}</a>"
        lines.append(f"<tr><td>{link}</td><td>{escape(spec.title)}</td><td class=small>{figures}</td>{cells}</tr>")
    totals = "".join(f"<span>{_badge(verdict)} {counts[verdict]}</span>" for verdict in Verdict)
    heads = "".join(f"<th>{verdict.value}</th>" for verdict in Verdict)
    return (
        f"<p class=counts>{sum(counts.values())} claims: {totals}</p>"
        f"<table><tr><th>spec</th><th>what is asked</th><th>figures</th>{heads}</tr>{''.join(lines)}</table>"
    )


def _section(spec: Spec, judged: list[Outcome], rows: list[Row], plots: dict[str, Any]) -> str:
    divs = []
    for figure in spec.figures:
        if any(row.experiment == figure.experiment for row in rows):
            name = f"plot-{len(plots)}"
            plots[name] = plot(spec, figure, rows)
            divs.append(f"<div class=plot id={name}></div>")
    left = "".join(f"<p class=small>Not rebuilt: {escape(text)}.</p>" for text in spec.not_rebuilt)
    none = "" if divs else "<p class=soft>Not run yet.</p>"
    claims = "".join(map(_claim, judged))
    return (
        f"<h2 id='{spec.name}'>{PAPERS[spec.paper]}: {escape(spec.title)}</h2>"
        f"<p class=soft>{escape(spec.about)}</p>{left}{none}"
        f"<div class=plots>{''.join(divs)}</div>"
        f"<table><tr><th>figure</th><th>claim</th><th>stated</th><th>here</th><th>verdict</th></tr>{claims}</table>"
    )


def _claim(outcome: Outcome) -> str:
    claim = outcome.claim
    why = f"<div class=small>{escape(outcome.why)}</div>" if outcome.why else ""
    return (
        f"<tr id='claim-{escape(claim.id)}'>"
        f"<td>{escape(claim.figure)}<div class=small>{escape(claim.section)}</div></td>"
        f"<td class=claim>{escape(claim.text)}</td><td class=stated>{escape(claim.stated)}</td>"
        f"<td class=here>{escape(outcome.seen)}</td><td>{_badge(outcome.verdict)}{why}</td></tr>"
    )


def _badge(verdict: Verdict) -> str:
    return f"<span class='verdict {_CLASSES[verdict]}'>{verdict.value}</span>"
