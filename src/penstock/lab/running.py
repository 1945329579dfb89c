"""Runs experiments: in processes of this machine, or as tasks of Spark; what is done already is left out."""

from __future__ import annotations

import multiprocessing
import os
import queue
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from penstock.errors import PenstockError
from penstock.lab.cells import Setting, settings
from penstock.lab.results import Results, circumstances
from penstock.lab.spec import Spec
from penstock.lab.trying import Row, tried
from penstock.runtime.costs import Costs

Place = Literal["processes", "spark", "here"]
FULL_SEEDS, QUICK_SEEDS = 5, 1
_POLL_SECONDS = 0.2
_FAILED = "failed"


@dataclass(frozen=True)
class Plan:
    """What to run, and how.

    Attributes:
        specs: the experiments.
        folder: where results are kept.
        is_quick: fewer rates and values, less data, one seed.
        seeds: how many; None: as many as that says.
        on: where: in processes, as Spark tasks, or here one after the other.
        processes: how many, or how many tasks at once.
        costs: of work in virtual time; None: those of the papers' operators.
        rows: the share of the data, for trying out.
        is_fresh: whether to run again what is done.
    """

    specs: tuple[Spec, ...]
    folder: Path
    is_quick: bool = False
    seeds: int | None = None
    on: Place = "processes"
    processes: int = min(2, os.cpu_count() or 1)
    costs: Costs | None = None
    rows: float = 1.0
    is_fresh: bool = False

    def settings(self) -> list[Setting]:
        """Return all that is to be run."""
        seeds = self.seeds or (QUICK_SEEDS if self.is_quick else FULL_SEEDS)
        how: dict[str, Any] = {"is_quick": self.is_quick, "rows": self.rows, "costs": self.costs}
        return [setting for spec in self.specs for setting in settings(spec, seeds, **how)]


def execute(plan: Plan, console: Console | None = None) -> Results:
    """Run what is not done yet, and store each run when it is over."""
    results = Results(plan.folder)
    done = set() if plan.is_fresh else results.done
    asked = plan.settings()
    left = [setting for setting in (each.without(done) for each in asked) if setting.cells]
    total, missing = sum(len(each.cells) for each in asked), sum(len(each.cells) for each in left)
    about = {**circumstances(), "is_quick": plan.is_quick}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console or Console(stderr=True)) as progress:
        bar = progress.add_task("experiments", total=total, completed=total - missing)
        for rows in _PLACES[plan.on](left, plan):
            results.failures += [f"{row['spec']} {row['experiment']}: {row[_FAILED]}" for row in rows if _FAILED in row]
            results.add({**row, **about} for row in rows if _FAILED not in row)
            progress.update(bar, advance=len(rows), description=f"{rows[0]['spec']} {rows[0]['experiment']}")
    return results


def _tried(setting: Setting) -> Iterator[Row]:
    """Run a setting; if it cannot be run, yield why: the others can."""
    try:
        yield from tried(setting)
    except PenstockError as error:
        yield {"spec": setting.spec, "experiment": setting.experiment.id, _FAILED: str(error)}


# --- where --------------------------------------------------------------------------------------------------------


def _here(left: list[Setting], _plan: Plan) -> Iterator[list[Row]]:
    for setting in left:
        for row in _tried(setting):
            yield [row]


_rows_out: Any = None  # in a worker: where rows are put


def _begin(rows: Any) -> None:
    global _rows_out
    _rows_out = rows


def _tell(setting: Setting) -> None:
    parent = multiprocessing.parent_process()
    for row in _tried(setting):
        if parent is not None and not parent.is_alive():  # it was killed, and nobody takes rows any more
            return
        _rows_out.put(row)


def _in_processes(left: list[Setting], plan: Plan) -> Iterator[list[Row]]:
    """Yield each run as soon as it is over, so that little is lost if all is broken off."""
    context = multiprocessing.get_context("spawn")
    rows = context.Queue()
    pool = ProcessPoolExecutor(plan.processes, context, initializer=_begin, initargs=(rows,))
    try:
        running: set[Future[None]] = {pool.submit(_tell, setting) for setting in left}
        while running:
            over, running = wait(running, _POLL_SECONDS, FIRST_COMPLETED)
            yield from _waiting(rows)
            for each in over:
                each.result()
        while missing := _later(rows):
            yield [missing]
        pool.shutdown()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # if it is broken off: what runs is not waited for


def _waiting(rows: Any) -> Iterator[list[Row]]:
    while True:
        try:
            yield [rows.get_nowait()]
        except queue.Empty:
            return


def _later(rows: Any) -> Row | None:
    """Return a row that was put but had not come through yet."""
    try:
        row: Row = rows.get(timeout=1.0)
    except queue.Empty:
        return None
    return row


def whole(setting: Setting) -> list[Row]:
    """Run a setting; return its rows. This is what a Spark task does."""
    return list(_tried(setting))


def _on_spark(left: list[Setting], plan: Plan) -> Iterator[list[Row]]:
    from penstock.spark import tasks

    return tasks(whole, left, at_once=plan.processes)


_PLACES: dict[Place, Callable[[list[Setting], Plan], Iterable[list[Row]]]] = {
    "here": _here, "processes": _in_processes, "spark": _on_spark,
}  # fmt: skip
