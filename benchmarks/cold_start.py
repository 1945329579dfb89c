"""How long a fresh process waits for its first match: with a warm disk cache, and the very first time ever.

Each is a process of its own. The cache is in a folder made for this run (NUMBA_CACHE_DIR), so nobody else's is used or
lost. Exits with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass

BAR_WARM_SECONDS = 2.0
BAR_EVER_SECONDS = 30.0

# Run by `python -c`: prints the seconds that the import, the engine and the first match took.
PROGRAM = """
import time
start = time.perf_counter()
import numpy as np
import penstock as pk
imported = time.perf_counter()
engine = pk.Engine(pk.parse("PATTERN SEQ(A a, B b, C c) WHERE a.v < b.v AND a.v + b.v < c.v WITHIN 250 s"))
made = time.perf_counter()
batch = {"type": np.array(["A", "B", "C"]), "ts": np.arange(3) * 1_000_000, "v": np.array([1.0, 2.0, 4.0])}
matches = len(engine.process(batch)) + len(engine.flush())
assert matches == 1, matches
print(imported - start, made - imported, time.perf_counter() - made)
"""


@dataclass(frozen=True)
class Start:
    """Seconds from the start of a process to its first match, and of its parts inside Python."""

    name: str
    total: float  # with the start and the end of Python itself
    importing: float
    making: float
    matching: float
    bar: float

    @property
    def passed(self) -> bool:
        """Whether the first match came in time."""
        return self.total <= self.bar


def fresh_process(name: str, cache: str, bar: float) -> Start:
    """Run the program in a new process."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=False,
    )
    total = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{name}: no match\n{done.stderr}")
    importing, making, matching = map(float, done.stdout.split())
    return Start(name, total, importing, making, matching, bar)


def main() -> int:
    """Measure the first start ever, then the best of several later ones."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json", action="store_true", help="write the results as JSON")
    options.add_argument("--quick", action="store_true", help="one warm start instead of the best of five")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-cold-start-") as cache:
        ever = fresh_process("first ever, empty cache", cache, BAR_EVER_SECONDS)
        warm = [fresh_process("warm disk cache", cache, BAR_WARM_SECONDS) for _ in range(1 if asked.quick else 5)]
    starts = [ever, min(warm, key=lambda start: start.total)]
    if asked.json:
        print(json.dumps([asdict(start) | {"passed": start.passed} for start in starts], indent=1))
    else:
        for s in starts:
            parts = f"import {s.importing:.2f}, engine {s.making:.2f}, first match {s.matching:.2f}"
            verdict = "PASS" if s.passed else "FAIL"
            print(f"{verdict} {s.name}: {s.total:.2f} s, at most {s.bar:.0f} s ({parts})")
    return 0 if all(start.passed for start in starts) else 1


if __name__ == "__main__":
    sys.exit(main())
