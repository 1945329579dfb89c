"""What hooks cost: when nobody uses them, and each when it is used and nothing is shed by it.

Unused: against a copy of penstock from which the code that asks for them is taken out (each `hook(...)` becomes
False), in turns, each time in a process of its own. Used: against the same engine without hooks, in turns.
Time is the process's own. Exits with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from cases import Case, kleene, rising_sum, same_id, ten_steps

import penstock as pk
from penstock.engine.hooks import LEDGER_WIDTH

BATCH = 16_384
BAR_UNUSED = 1.03  # cost per event with the hooks' code, and without
HOOKED = r"hook\(t\.hooks, PLAIN_(?:SKIPS|SHEDS|OBSERVES|TALLIES|TRACES|REPORTS)\)"
CASES = (
    rising_sum(250, "EACH", 500_000),
    rising_sum(250, "FIRST", 800_000),
    rising_sum(2_500, "EACH", 60_000),
    kleene(760, 60_000),
    same_id(10_000, 500_000),
    ten_steps(60, 400, "EACH", 300_000),  # with 1,200 an event is in more windows than shedding tells apart
)
USED = (0, 4, 5)  # of these


@dataclass(frozen=True)
class Unused:
    """Nanoseconds per event of a case: with the hooks' code, and without it."""

    name: str
    with_code: float
    without: float

    @property
    def times(self) -> float:
        """How many times as much an event costs."""
        return self.with_code / self.without


@dataclass(frozen=True)
class Used:
    """Nanoseconds per event of a case without hooks, and with each."""

    name: str
    none: float
    each: dict[str, float]


# --- one engine ---------------------------------------------------------------------------------------------


def batches(case: Case) -> tuple[list[pa.Table], list[pa.Table]]:
    """Return the stream of a case as tables: those before the clock starts, and those that are timed."""
    stream = case.stream(case.warm + case.timed)
    table = pa.table({name: pa.array(column) for name, column in stream.items()})
    table = table.set_column(0, "type", table["type"].dictionary_encode())
    warm, timed = table.slice(0, case.warm), table.slice(case.warm)
    return [[part.slice(at, BATCH) for at in range(0, len(part), BATCH)] for part in (warm, timed)]  # type: ignore[return-value]


def engine_of(case: Case, warm: list[pa.Table]) -> Any:
    """Return an engine that has seen so much."""
    engine = pk.Engine(pk.parse(case.text), plan="automaton")
    for batch in warm:
        engine.process(batch)
    return engine


def ns_per_event(case: Case, rounds: int, hooks: Callable[[int, int], pk.Hooks | None]) -> float:
    """Return what an event costs, the best of several; `hooks` are those of a batch of so many events and states."""
    warm, timed = batches(case)
    best, events = np.inf, sum(map(len, timed))
    for _ in range(rounds):
        engine = engine_of(case, warm)
        states = len(engine.states[0])
        given = [hooks(len(batch), states) for batch in timed]
        start = time.process_time()
        for batch, each in zip(timed, given, strict=True):
            engine.process(batch, hooks=each)
        best = min(best, time.process_time() - start)
    return 1e9 * best / events


# --- hooks that change nothing --------------------------------------------------------------------------------


def without_effect(n: int, states: int) -> dict[str, pk.Hooks]:
    """Return each hook, for a batch of n events, with which nothing is shed."""
    cells = np.arange(n) % 64
    return {
        "shed events": pk.Hooks(events=np.zeros(n, np.bool_)),
        "shed from windows": pk.Hooks(windows=np.zeros(n, np.int64)),
        "hide from runs": pk.Hooks(states=np.zeros((states, n), np.bool_)),
        "count, 1 of 16 events": pk.Hooks(
            cells=np.where(np.arange(n) % 16 == 0, cells, -1), counted=np.zeros((64, states, 2), np.int64)
        ),
        "count": pk.Hooks(cells=cells, counted=np.zeros((64, states, 2), np.int64)),
        "moves": pk.Hooks(moves=np.zeros((states, states), np.int64)),
        "open runs": pk.Hooks(cells=cells, open_runs=np.zeros((64, states), np.int64)),
        "worth": pk.Hooks(worth=np.ones((states, n)), least=0.0),
        "ledger": pk.Hooks(ledger=np.zeros((n, LEDGER_WIDTH), np.int64)),
    }


def measure_used(case: Case, rounds: int) -> Used:
    """Measure a case with each of the hooks, in turns with none."""
    names = list(without_effect(1, 1))
    times = dict.fromkeys(["", *names], np.inf)
    for _ in range(rounds):
        for name in times:
            hooks = (lambda n, s, name=name: without_effect(n, s)[name]) if name else (lambda n, s: None)
            times[name] = min(times[name], ns_per_event(case, 1, hooks))
    return Used(f"{case.name} {case.policy}", times.pop(""), times)


# --- hooks that nobody uses -----------------------------------------------------------------------------------


def copy_without_hooks(folder: Path) -> int:
    """Copy penstock into a folder, without the code that asks for hooks; return how many places there were."""
    package = Path(pk.__file__).parent
    shutil.copytree(package, folder / "penstock", ignore=shutil.ignore_patterns("__pycache__", "*.nb?"))
    places = 0
    for path in (folder / "penstock" / "kernel").glob("*.py"):
        text, count = re.subn(HOOKED, "False", path.read_text(encoding="utf-8"))
        path.write_text(text, encoding="utf-8")
        places += count
    return places


def in_a_process(source: Path, cache: str, case: int, rounds: int) -> float:
    """Return what an event of a case costs with the penstock of a folder."""
    here = os.pathsep.join([str(source), str(Path(__file__).parent)])
    done = subprocess.run(
        [sys.executable, __file__, "--case", str(case), "--rounds", str(rounds)],
        env={**os.environ, "PYTHONPATH": here, "NUMBA_CACHE_DIR": cache}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr)
    used, ns = done.stdout.split()
    assert Path(used).parents[1] == source.resolve(), used
    return float(ns)


def measure_unused(turns: int) -> list[Unused]:
    """Measure all cases with the hooks' code and without it."""
    found: list[Unused] = []
    with tempfile.TemporaryDirectory(prefix="penstock-hooks-") as name:
        bare, whole = Path(name) / "bare", Path(pk.__file__).resolve().parents[1]
        places = copy_without_hooks(bare)
        if places < 10:
            raise SystemExit(f"only {places} places were found that ask for hooks: is HOOKED still right?")
        caches = {bare: str(Path(name) / "cache-bare"), whole: str(Path(name) / "cache-whole")}
        for source, cache in caches.items():
            in_a_process(source, cache, 0, 1)  # compiles
        for at, case in enumerate(CASES):
            best = dict.fromkeys(caches, np.inf)
            for _ in range(turns):
                for source, cache in caches.items():
                    best[source] = min(best[source], in_a_process(source, cache, at, 2))
            found.append(Unused(f"{case.name} {case.policy}", best[whole], best[bare]))
            print(found[-1].name, f"{found[-1].times:.3f}", file=sys.stderr)
    return found


def main() -> int:
    """Measure, and judge what must be free."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json", action="store_true", help="write the results as JSON")
    options.add_argument("--quick", action="store_true", help="fewer turns")
    options.add_argument("--case", type=int, default=-1, help="print what an event of this case costs without hooks")
    options.add_argument("--rounds", type=int, default=2, help="with --case: the best of so many")
    asked = options.parse_args()
    gc.disable()
    if asked.case >= 0:
        print(pk.__file__, ns_per_event(CASES[asked.case], asked.rounds, lambda n, s: None))
        return 0
    unused = measure_unused(2 if asked.quick else 4)
    used = [measure_used(CASES[at], 1 if asked.quick else 3) for at in USED]
    if asked.json:
        print(json.dumps({"unused": [asdict(each) for each in unused], "used": [asdict(each) for each in used]}))
    else:
        show(unused, used)
    return 0 if all(each.times <= BAR_UNUSED for each in unused) else 1


def show(unused: list[Unused], used: list[Used]) -> None:
    """Print what was measured."""
    for each in unused:
        verdict = "PASS" if each.times <= BAR_UNUSED else "FAIL"
        print(
            f"{verdict} {each.name}: {each.with_code:,.0f} ns an event with the hooks' code, {each.without:,.0f} "
            f"without: {each.times:.3f} times, at most {BAR_UNUSED}"
        )
    for one in used:
        print(f"{one.name}: {one.none:,.0f} ns an event without hooks; with one that changes nothing")
        for name, ns in one.each.items():
            print(f"  {name:22} {ns - one.none:+8,.0f} ns  {ns / one.none:5.2f} times")


if __name__ == "__main__":
    sys.exit(main())
