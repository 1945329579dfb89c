"""The command line: results on stdout, notes on stderr; every command also speaks JSON. Exit codes: `cli_problems`."""

from __future__ import annotations

import json
import math
import platform
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.cli_problems import PROBLEMS, STDIN, UNUSABLE, read_text, told
from penstock.cli_train import train
from penstock.errors import PenstockError, QueryError
from penstock.lab.commands import app as lab_app
from penstock.pattern import ast
from penstock.pattern.diagram import dot, mermaid
from penstock.pattern.explain import explain as explain_query
from penstock.pattern.explain import explain_json
from penstock.pattern.parser import parse
from penstock.pattern.schema import Schema
from penstock.pattern.validate import validate
from penstock.spark.checkup import java_facts, session_facts

app = typer.Typer(
    help="Complex event processing that keeps its latency bound.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(lab_app, name="lab")

SchemaOption = Annotated[
    Path | None,
    typer.Option("--schema", help="Schema in TOML. Without it, the one beside the query is used, if there is one."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON.")]
RateOption = Annotated[
    list[str] | None,
    typer.Option(
        "--rate", metavar="TYPE=NUMBER", help="Events per second of a type, to compare plans by; 1 if not given."
    ),
]


class Format(StrEnum):
    """What `penstock explain` writes."""

    TEXT = "text"
    MERMAID = "mermaid"
    DOT = "dot"
    JSON = "json"


# --- check --------------------------------------------------------------------------------------------------


@app.command()
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files with one query each; - is stdin.")],
    schema: SchemaOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say whether queries can be used, and what is wrong with those that cannot."""
    problems: list[dict[str, Any]] = []
    code = 0
    for file in files:
        try:
            source = _open(file, schema)
            _query(source)
        except QueryError as error:
            code = max(code, PROBLEMS)
            problems += _as_json(error)
            if not as_json:
                typer.echo(str(error))
        except PenstockError as error:
            code = UNUSABLE
            _note(str(error))
        else:
            if not as_json:
                typer.echo(f"{source.name}: fine")
    if as_json:
        _write_json(problems)
    raise typer.Exit(code)


def _as_json(error: QueryError) -> Iterator[dict[str, Any]]:
    for each in error.problems:
        place = {"line": each.position.line, "column": each.position.column}
        yield {"file": error.name, "code": each.code, "message": each.message, **place, "fix": each.fix}


# --- explain ------------------------------------------------------------------------------------------------


@app.command()
def explain(
    file: Annotated[str, typer.Argument(help="A file with a query; - is stdin.")],
    output: Annotated[Format, typer.Option("--format", help="Words, a diagram or facts.")] = Format.TEXT,
    schema: SchemaOption = None,
    rate: RateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say in words, or draw, what a query asks for, and how it will be run."""
    from penstock.plan.explain import explain_plan  # needs numpy, which no other command does
    from penstock.plan.words import plan_words

    rates = dict(map(_rate, rate or []))
    with told("penstock explain"):
        source = _open(file, schema)
        query = _query(source)
    match Format.JSON if as_json else output:
        case Format.TEXT:
            typer.echo(f"{explain_query(query, source.schema)}\n\n{plan_words(explain_plan(query, rates))}")
        case Format.MERMAID:
            typer.echo(mermaid(query))
        case Format.DOT:
            typer.echo(dot(query))
        case Format.JSON:
            _write_json({**explain_json(query, source.schema), "plan": asdict(explain_plan(query, rates))})


def _rate(text: str) -> tuple[str, float]:
    """Read TYPE=NUMBER."""
    name, _, number = text.rpartition("=")
    try:
        rate = float(number)
    except ValueError:
        rate = math.nan
    if not name or not 0 < rate < math.inf:
        raise typer.BadParameter(f"'{text}' is no rate: give a type and events per second, as in --rate A=10")
    return name, rate


# --- detect -------------------------------------------------------------------------------------------------


@app.command()
def detect(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="A job file in TOML: source, query, sinks, checkpoint.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object for each batch, and one with the sums at the end.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Run a job on Spark: events in, matches out, until the source ends or you stop it.

    Ctrl-C or SIGTERM stops it after the batch that is being processed, with exit code 0.
    A second one stops it at once, with exit code 130.
    Either way the next run goes on from the checkpoint, and nothing is lost or written twice.
    """
    with told("penstock detect"):
        from penstock.spark.jobs.terminal import run_job  # needs pyspark

        code = run_job(job, as_json, quiet)
    raise typer.Exit(code)


app.command()(train)

# --- demo ---------------------------------------------------------------------------------------------------


@app.command()
def demo(
    small: Annotated[
        bool, typer.Option("--small", help="Without Spark: a query and its matches in six events.")
    ] = False,
    folder: Annotated[Path, typer.Option("--out", help="Where report.html is written.")] = Path("demo"),
    seconds: Annotated[float, typer.Option(min=6.0, help="How long each stream is fed.")] = 20.0,
    as_json: JsonOption = False,
) -> None:
    """Overload a stream on this machine, without shedding and with it, and write a report."""
    if small:
        from penstock.lab.demo import small as small_demo

        query, facts = small_demo.facts()
        if as_json:
            _write_json(facts)
        else:
            small_demo.show(query, facts, _table)
        return
    with told("penstock demo", ", or penstock demo --small"):
        from penstock.lab.demo.running import run, show  # needs pyspark

        facts = run(folder, Console(stderr=True, highlight=False), seconds)
    if as_json:
        _write_json(facts)
        return
    show(facts, Console(highlight=False))
    typer.echo(f"\nThe report: {folder / 'report.html'}")


# --- doctor -------------------------------------------------------------------------------------------------


@app.command()
def doctor(
    spark: Annotated[bool, typer.Option("--spark", help="Start a Spark session too, and ask it something.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Say which Python, packages and Java are in use, which optional ones are missing, and whether Spark starts."""
    required, extras = _requirements()
    facts: dict[str, Any] = {
        "penstock": metadata.version("penstock"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in required},
        "extras": {extra: {name: _version(name) for name in names} for extra, names in extras.items()},
        "pyspark": _version("pyspark"),
        "java": java_facts(),
        "session": session_facts() if spark else None,
    }
    if as_json:
        _write_json(facts)
    else:
        _show_doctor(facts)
    if spark and not facts["session"]["starts"]:
        raise typer.Exit(UNUSABLE)


def _show_doctor(facts: dict[str, Any]) -> None:
    rows: list[tuple[str, ...]] = [(name, facts[name], "") for name in ("penstock", "python", "platform")]
    rows += [(name, version or "missing", "") for name, version in facts["packages"].items()]
    for extra, packages in facts["extras"].items():
        versions = ", ".join(f"{name} {version or 'missing'}" for name, version in packages.items())
        rows.append((f"extra {extra}", versions, "" if all(packages.values()) else f'pip install "penstock[{extra}]"'))
    java, session = facts["java"], facts["session"]
    found = f"{java['version']}, from {java['source']}: {java['home']}" if java["version"] else "missing"
    rows.append(("java, for Spark", found, "" if java["version"] else 'pip install "penstock[spark]"'))
    if session is not None:
        rows.append(
            ("Spark session", f"starts in {session['seconds']} s" if session["starts"] else "does not start", "")
        )
    _table(("part", "version", "to install"), rows)
    for each in java["passed_over"]:
        _note(f"Java, passed over: {each}")
    if session is not None and session["problem"]:
        _note(f"Spark does not start: {session['problem']}")
    _note(
        "The extras spark, kafka and postgres are for penstock.spark; lab is for penstock lab, and for trees and drift "
        "in shedding; redis and serve are for parts that are planned."
    )


def _requirements() -> tuple[list[str], dict[str, list[str]]]:
    """Return the packages that penstock needs, and those of each extra but `all`, from its own metadata."""
    required: list[str] = []
    extras: dict[str, list[str]] = {}
    for line in metadata.requires("penstock") or []:
        name, extra = re.split(r"[^\w.-]", line)[0], re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        if extra is None:
            required.append(name)
        elif extra[1] != "all":
            extras.setdefault(extra[1], []).append(name)
    return required, extras


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


# --- what the commands share --------------------------------------------------------------------------------


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"penstock {metadata.version('penstock')}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Complex event processing that keeps its latency bound."""


@dataclass(frozen=True)
class Source:
    """A query's text, what to call it, and the schema to check it against."""

    name: str
    text: str
    schema: Schema | None


def _open(file: str, schema: Path | None) -> Source:
    """Read a query and its schema."""
    name = "stdin" if file == STDIN else file
    text = read_text(file, name)
    path = schema or (None if file == STDIN else schema_beside(Path(file)))
    if path is None:
        _note(f"{name}: no schema, so types and attributes are not checked")
    return Source(name, text, None if path is None else Schema.read(path))


def schema_beside(file: Path) -> Path | None:
    """Return the schema that belongs to a query file, if there is one.

    For `a-b.cep` the first of `a-b.schema.toml`, `a.schema.toml` and `schema.toml` in the same folder.
    """
    parts = file.stem.split("-")
    stems = ["-".join(parts[:length]) for length in range(len(parts), 0, -1)]
    candidates = [*(f"{stem}.schema.toml" for stem in stems), "schema.toml"]
    return next((path for path in map(file.with_name, candidates) if path.is_file()), None)


def _query(source: Source) -> ast.Query:
    query = parse(source.text, source.name)
    validate(query, source.schema)
    return query


def _write_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def _note(text: str) -> None:
    typer.echo(text, err=True)


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    table = Table(show_lines=any("\n" in cell for row in rows for cell in row))
    for name in header:
        table.add_column(name, overflow="fold")  # never cut off: paths are to be copied
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
