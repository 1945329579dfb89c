"""The demo runs from end to end, and its page says what it saw. How fast it is depends on the machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import json, sys
from pathlib import Path
from rich.console import Console
from penstock.lab.demo.running import run, show
facts = run(Path(sys.argv[1]), Console(stderr=True), seconds=10.0, rows=200_000, history=60_000, overload=4.0)
print(json.dumps(facts))
show(facts, Console(stderr=True, width=200))
"""


def test_the_demo(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    facts = json.loads(done.stdout)
    assert facts["rate"] == 4 * facts["capacity"] > 0
    assert facts["truth"] > 0
    without, kept = facts["runs"]["without shedding"], facts["runs"]["with shedding"]
    assert without["shed"] == 0
    assert kept["shed"] > 0
    assert sum(each["events"] for each in facts["shed_by_cell"]) == kept["shed"]
    sent = {(each["role"], each["part"]): each["events"] for each in facts["sent_by_cell"]}
    assert {(each["role"], each["part"]) for each in facts["shed_by_cell"]} <= set(sent)
    for each in (without, kept):
        assert each["matches"] == facts["truth"] - each["false_negatives"] + each["false_positives"]
    assert without["false_positives"] == 0
    assert without["p99"] > facts["bound"], "four times as much as this machine can do"
    assert kept["p99"] < without["p99"]  # how many are found in time depends on how much time Spark leaves
    assert facts["is_kept"] == (kept["p99"] <= facts["bound"])

    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<polyline") == 2
    seconds = f"came within {kept['p99']:.2f} s, without it within {without['p99']:.2f} s"
    assert f"<b>The bound of 3 s was {'kept' if facts['is_kept'] else 'broken'}: with shedding 99 % of the" in page
    assert seconds in page
    assert seconds in done.stderr, "it is printed, too"
    assert all(len(points.split()) > 1 for points in re.findall(r'points="([^"]*)"', page))
    assert page.count("% in all") == 3
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")  # a name, not an address
    assert (tmp_path / "latency.svg").read_text(encoding="utf-8").rstrip("\n") in page
