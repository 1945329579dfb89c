"""`penstock train`: a model for shedding, from a history; and what a model says."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from penstock.cli_problems import read_text, told
from penstock.errors import PenstockError
from penstock.pattern import ast
from penstock.pattern.parser import parse

if TYPE_CHECKING:
    from penstock.shedding.showing import Heat

_SHADES = " ░▒▓█"


def train(
    history: Annotated[
        Path | None, typer.Argument(help="Events, in Parquet or CSV; with --spark, a folder too.")
    ] = None,
    query: Annotated[
        list[Path] | None, typer.Option("--query", help="A file with a query; several may be given.")
    ] = None,
    weight: Annotated[
        list[float] | None, typer.Option("--weight", help="What a match of a --query is worth; one for each, or none.")
    ] = None,
    strategy: Annotated[str, typer.Option(help="What the model is for: ebl, espice, pspice, hspice-pm, …")] = "espice",
    out: Annotated[Path | None, typer.Option("--out", help="The folder to write the model to.")] = None,
    by: Annotated[list[str] | None, typer.Option("--by", help="A key, as PARTITION BY has it.")] = None,
    type_name: Annotated[str, typer.Option("--type", help="The column with the type of an event.")] = "type",
    time: Annotated[str, typer.Option("--time", help="The column with its time.")] = "ts",
    bins: Annotated[int | None, typer.Option(help="Cells of positions; as many as a window has events.")] = None,
    attribute: Annotated[list[str] | None, typer.Option(help="For gSPICE: a numeric column that counts.")] = None,
    spark: Annotated[bool, typer.Option("--spark", help="As a Spark job, for a history of any size.")] = False,
    show: Annotated[Path | None, typer.Option("--show", help="Show a model instead of training one.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write the model as a page with heat maps, too.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write what the model says as JSON.")] = False,
) -> None:
    """Learn from a history what events or runs are worth, for the shedding of `penstock detect` and for pk.Shedding."""
    with told("penstock train"):
        if show is not None:
            _show(show, html, as_json)
            return
        if history is None or not query or out is None:
            given = {"a history": history, "--query": query, "--out": out}
            missing = ", ".join(name for name, value in given.items() if not value)
            raise typer.BadParameter(f"give {missing} as well; or --show MODEL, to look at one")
        queries = _queries(query, weight or [1.0] * len(query), by or [])
        options: dict[str, Any] = {"attributes": tuple(attribute or ())} if strategy.startswith("gspice") else {}
        learn = _with_spark if spark else _in_memory
        fitted, rows = learn(strategy, queries, history, type_name, time, bins, options)
        from penstock.runtime.learning import about
        from penstock.shedding.storing import save

        save(fitted.strategy, out, about(fitted, queries, rows))
        _show(out, html, as_json)
        typer.echo(f"the model: {out}", err=True)


def _queries(files: list[Path], weights: list[float], by: list[str]) -> list[tuple[ast.Query, float]]:
    if len(weights) != len(files):
        raise PenstockError(
            f"{len(files)} of --query and {len(weights)} of --weight\n"
            "  fix: give --weight once for each --query, in the same order, or not at all"
        )
    found = []
    for file, weight in zip(files, weights, strict=True):
        if not 0 < weight < math.inf:
            raise PenstockError(f"--weight {weight:g} of {file} says nothing\n  fix: give a number above 0")
        query = parse(read_text(str(file), str(file)), file.stem)
        if by and not query.partition:
            query = replace(query, partition=tuple(map(ast.Name, by)), source=None)
        found.append((query, weight))
    return found


def _in_memory(
    strategy: str, queries: list[tuple[ast.Query, float]], path: Path, kind: str, time: str, bins: int | None,
    options: dict[str, Any],
) -> tuple[Any, int]:  # fmt: skip
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    from penstock.runtime.learning import learned

    try:
        table: pa.Table = csv.read_csv(path) if path.suffix == ".csv" else pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise PenstockError(
            f"{path}: cannot be read: {error}\n  fix: give Parquet, or CSV whose name ends with .csv"
        ) from None
    for option, name in (("--type", kind), ("--time", time)):
        if name not in table.schema.names:
            known = ", ".join(table.schema.names)
            raise PenstockError(f"{path} has no column {name!r}\n  fix: give {option} one that it has: {known}")
    renamed = {kind: "type", time: "ts"}
    table = table.rename_columns([renamed.get(name, name) for name in table.schema.names]).sort_by("ts")
    return learned(strategy, queries, table, bins=bins, **options), len(table)


def _with_spark(
    strategy: str, queries: list[tuple[ast.Query, float]], path: Path, kind: str, time: str, bins: int | None,
    options: dict[str, Any],
) -> tuple[Any, int]:  # fmt: skip
    from penstock.spark import learn
    from penstock.spark.session import borrowed
    from penstock.spark.training.histories import history_of

    with borrowed("penstock-train") as running:
        frame = history_of(running, path)
        learned = learn(frame, queries, strategy, type=kind, time=time, positions=bins or 100, **options)
    return learned.fitted, learned.rows


def _show(path: Path, html: Path | None, as_json: bool) -> None:
    from penstock.shedding.showing import heats, page
    from penstock.shedding.storing import load

    strategy, about = load(path)
    tables = heats(strategy, about.get("types", []))
    if html is not None:
        html.write_text(page(f"{strategy.name}: {path.name}", tables), encoding="utf-8")
    if as_json:
        facts = {"model": str(path), "strategy": strategy.name, **about, "tables": [_table(each) for each in tables]}
        typer.echo(json.dumps(facts, ensure_ascii=False, indent=2))
        return
    console = Console(highlight=False)
    console.print(
        f"{strategy.name}, learned from {about.get('rows', '?'):,} rows" if "rows" in about else strategy.name
    )
    for each in tables:
        _draw(each, console)


def _table(heat: Heat) -> dict[str, Any]:
    return {"title": heat.title, "columns": heat.columns, "rows": list(heat.rows), "values": heat.values.tolist()}


def _draw(heat: Heat, console: Console) -> None:
    """Draw a table as rows of blocks that are the darker the greater a value is."""
    width = max(map(len, heat.rows), default=0)
    narrow = heat.narrowed(max(10, min(100, console.width - 2 - width)))
    greatest = f"█ is the greatest value, {float(heat.values.max(initial=0)):.4g}"
    console.print(f"\n{narrow.title}; columns: {narrow.columns}; {greatest}", soft_wrap=True)
    for name, shades in zip(narrow.rows, narrow.shades, strict=True):
        marks = "".join(_SHADES[min(4, int(shade * 4 + 0.999) if shade > 0 else 0)] for shade in shades)
        console.print(Text(f"{name:>{width}} {marks}", no_wrap=True))
