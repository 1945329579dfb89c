"""How long it takes to write and to restore a million runs. Exits with 1 if a bar is missed."""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import penstock as pk

RUNS = 1_000_000
BAR_MS = 100.0
QUERY = "PATTERN SEQ(A a, B b) WHERE a.v < b.v WITHIN 1 h"  # and only A: every event is a run that waits


def engine_with(runs: int) -> Any:
    """Return an engine that holds so many runs."""
    engine = pk.Engine(pk.parse(QUERY))
    engine.process(
        {
            "type": np.full(runs, "A"),
            "ts": np.arange(runs, dtype=np.int64) * 1000,
            "v": np.random.default_rng(1).random(runs),
        }
    )
    return engine


def completes(engine: Any, runs: int) -> int:
    """Return how many runs one B completes: all of them, if they are there."""
    batch = {"type": np.array(["B"]), "ts": np.array([runs * 1000]), "v": np.array([2.0])}
    return len(engine.process(batch)) + len(engine.flush())


def best_ms(work: Callable[[], object], rounds: int) -> float:
    """Return the shortest time of several rounds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def main() -> int:
    """Write, restore, and see that nothing was lost."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json", action="store_true", help="write the results as JSON")
    options.add_argument("--quick", action="store_true", help="best of two instead of seven")
    asked = options.parse_args()
    rounds = 2 if asked.quick else 7
    engine = engine_with(RUNS)
    gc.collect()
    blob = engine.snapshot()
    times = {
        "snapshot": best_ms(engine.snapshot, rounds),
        "restore": best_ms(lambda: pk.Engine.restore(blob), rounds),
    }
    kept = completes(pk.Engine.restore(blob), RUNS)
    passed = {name: ms <= BAR_MS for name, ms in times.items()} | {"nothing lost": kept == RUNS}
    if asked.json:
        print(json.dumps({"ms": times, "bytes": len(blob), "runs": RUNS, "kept": kept, "passed": passed}, indent=1))
    else:
        for name, ms in times.items():
            print(f"{'PASS' if passed[name] else 'FAIL'} {name} of {RUNS:,} runs: {ms:.1f} ms, at most {BAR_MS:.0f} ms")
        verdict = "PASS" if passed["nothing lost"] else "FAIL"
        print(f"{verdict} {kept:,} runs go on after it; {len(blob) / RUNS:.1f} bytes a run")
    return 0 if all(passed.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
