"""`penstock lab`: the experiments of the papers."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from penstock.cli_problems import told

if TYPE_CHECKING:
    from penstock.lab.spec import Spec

app = typer.Typer(
    help="The experiments of the papers: list them, run them, see what comes of their claims.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

FolderOption = Annotated[Path, typer.Option("--results", metavar="FOLDER", help="Where results are kept.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON.")]
RESULTS = Path("lab-results")


class Where(StrEnum):
    """Where experiments are run."""

    PROCESSES = "processes"
    SPARK = "spark"


@app.command("list")
def list_specs(as_json: JsonOption = False) -> None:
    """List the experiments: their figures, and how many claims the paper makes about them."""
    from penstock.lab.spec import specs

    known = specs().values()
    if as_json:
        rows = [
            {"name": s.name, "title": s.title, "figures": [f.id for f in s.figures], "claims": len(s.claims)}
            for s in known
        ]  # fmt: skip
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    table = Table("name", "what is asked", "figures", "claims")
    for spec in known:
        figures = ", ".join(figure.id for figure in spec.figures)
        table.add_row(spec.name, spec.title, figures, str(len(spec.claims)))
    Console().print(table)


@app.command()
def run(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="As `penstock lab list` has them.")
    ] = None,
    is_all: Annotated[bool, typer.Option("--all", help="Run all.")] = False,
    is_quick: Annotated[bool, typer.Option("--quick", help="Fewer rates and values, less data, one seed.")] = False,
    seeds: Annotated[int | None, typer.Option("--seeds", min=1, help="How many runs of each kind.")] = None,
    on: Annotated[
        Where, typer.Option("--on", help="In processes of this machine, or as tasks of Spark.")
    ] = Where.PROCESSES,
    processes: Annotated[int, typer.Option("--processes", min=1, help="How many at once.")] = 2,
    costs: Annotated[Path | None, typer.Option("--costs", help="Unit costs in TOML, as calibrate writes them.")] = None,
    is_fresh: Annotated[bool, typer.Option("--fresh", help="Run again what is done.")] = False,
    folder: FolderOption = RESULTS,
    as_json: JsonOption = False,
) -> None:
    """Run experiments. What is done already is left out, so that a run that was broken off goes on.

    With --all, experiments on recorded data are left out if the data are not there: they are no part of penstock.
    """
    from penstock.lab.calibrating import read_costs
    from penstock.lab.running import Plan, execute

    if bool(names) == is_all:
        raise typer.BadParameter("give names, or --all")
    with told("penstock lab run"):
        begun = time.perf_counter()
        unit_costs = None if costs is None else read_costs(costs)
        specs, left_out = _runnable(names)
        plan = Plan(
            tuple(specs), folder, is_quick=is_quick, seeds=seeds, on=on.value, processes=processes,
            costs=unit_costs, is_fresh=is_fresh,
        )  # fmt: skip
        results = execute(plan)
        seconds, runs = time.perf_counter() - begun, len(results.rows)
        facts = {
            "results": str(results.path), "runs": runs, "seconds": round(seconds, 1), "left_out": left_out,
            "failures": results.failures,
        }  # fmt: skip
        _say(facts, f"{runs} runs in {results.path}, {seconds:.0f} s", as_json)
        for failure in results.failures:
            typer.echo(failure, err=True)
        if results.failures:
            raise typer.Exit(1)


def _runnable(names: list[str] | None) -> tuple[list[Spec], list[str]]:
    """Return the specs of these names, or all that can be run, and the names of those that cannot, which are told."""
    from penstock.lab.data import lacking
    from penstock.lab.spec import chosen

    if names:
        return chosen(names), []
    lacks = [(spec, lacking(spec)) for spec in chosen()]
    for spec, why in lacks:
        if why:
            typer.echo(f"left out: {spec.name}: {why}", err=True)
    return [spec for spec, why in lacks if not why], [spec.name for spec, why in lacks if why]


@app.command()
def report(
    html: Annotated[Path, typer.Option("--html", help="The page with plots.")] = Path("lab-report.html"),
    claims: Annotated[
        Path | None, typer.Option("--claims", help="Write the claims and their verdicts as Markdown.")
    ] = None,
    store: Annotated[Path | None, typer.Option("--store", help="Write the means of the runs into this folder.")] = None,
    is_stored: Annotated[bool, typer.Option("--stored", help="Show the results that are part of penstock.")] = False,
    is_quick: Annotated[
        bool, typer.Option("--quick", help="Of quick runs; without it, of full ones if there are any.")
    ] = False,
    costs: Annotated[
        Path | None, typer.Option("--costs", help="Of runs with these unit costs, as run takes them.")
    ] = None,
    folder: FolderOption = RESULTS,
    as_json: JsonOption = False,
) -> None:
    """Write a page that needs no network: a plot per figure, a verdict per claim.

    It is about runs of one kind, as the specs of today ask for them; what is left out is said.
    """
    from penstock.lab.calibrating import read_costs
    from penstock.lab.claims import outcomes, page
    from penstock.lab.report import report as page_with_plots
    from penstock.lab.results import found, kind_of, stored
    from penstock.lab.results import store as store_means
    from penstock.lab.spec import specs

    with told("penstock lab report"):
        known = list(specs().values())
        unit_costs = None if costs is None else read_costs(costs)
        means = stored() if is_stored else found(folder, known, is_quick=is_quick, costs=unit_costs)
        for each in means.left_out:
            typer.echo(each, err=True)
        if store is not None:
            store_means(means, store)
            means = stored(store)  # so that what is written says what is stored, rounding included
        html.write_text(page_with_plots(known, means), "utf-8")
        if claims is not None:
            claims.write_text(page(known, means), "utf-8")
        judged = {o.claim.id: o.verdict.value for s in known for o in outcomes(s, means.rows.get(s.name, []))}
        counts = Counter(judged.values())
        words = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
        kind = kind_of(means.about)
        _say({"html": str(html), "of": kind, "claims": judged}, f"{html}, of {kind}: {words}", as_json)


@app.command()
def calibrate(
    out: Annotated[Path, typer.Option("--out", help="The file to write.")] = Path("costs.toml"),
    rows: Annotated[float, typer.Option("--rows", min=0.01, help="The share of the workloads' events.")] = 1.0,
    as_json: JsonOption = False,
) -> None:
    """Measure what the work of our engine costs on this machine, for `penstock lab run --costs`."""
    from penstock.lab.calibrating import calibrated

    with told("penstock lab calibrate"):
        measured = calibrated(rows)
        out.write_text(measured.text(), "utf-8")
        _say({"file": str(out), **asdict(measured)}, measured.text().rstrip("\n"), as_json)


def _say(facts: Any, words: str, as_json: bool) -> None:
    """Write what came out, for programs or for people."""
    typer.echo(json.dumps(facts, ensure_ascii=False, indent=2) if as_json else words)
