"""The report of the stored results: drawn by a browser, and docs/claims.md is what they say."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from penstock.lab.claims import outcomes, page
from penstock.lab.judging import Row, Verdict
from penstock.lab.measures import MEASURES
from penstock.lab.report import report
from penstock.lab.results import Means, stored
from penstock.lab.spec import specs
from tests.lab.tiny import tiny

CLAIMS = Path(__file__).parents[2] / "docs" / "claims.md"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def recorded() -> set[str]:
    """Return the specs on recorded data, which may not have been there when the stored results were made."""
    return {spec.name for spec in specs().values() if any(each.data.is_recorded for each in spec.experiments)}


def browser() -> str:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser to open the report with: none of {', '.join(BROWSERS)} is installed")
    return found


def opened(html: Path, folder: Path) -> tuple[str, str]:
    """Return the page as it is when its scripts are done, and what the console says."""
    options = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={folder}",
    ]
    options += ["--enable-logging=stderr", "--virtual-time-budget=60000", "--dump-dom"]
    done = subprocess.run(
        [browser(), *options, html.as_uri()], capture_output=True, text=True, timeout=180, check=True
    )  # fmt: skip
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


def test_every_plot_is_drawn_without_errors(tmp_path: Path) -> None:
    browser()
    known, given = list(specs().values()), stored()
    html = tmp_path / "report.html"
    html.write_text(report(known, given), "utf-8")
    dom, console = opened(html, tmp_path / "profile")
    assert {spec.name for spec in known} - set(given.rows) <= recorded()
    wanted = sum(len(spec.figures) for spec in known if spec.name in given.rows)
    body = re.findall(r"<body[^>]*>", dom)[-1]  # the scripts in the head have one in their text
    assert (f'data-drawn="{wanted}"' in body, 'data-failed="0"' in body) == (True, True), body
    assert console == ""


def test_a_plot_that_cannot_be_drawn_is_seen(tmp_path: Path) -> None:
    """The check above can fail."""
    browser()
    html = tmp_path / "report.html"
    broken = report([tiny()], means_of(0.5)).replace('"mark":{"type":"line"', '"mark":{"type":"no such mark"', 1)
    html.write_text(broken, "utf-8")
    dom, console = opened(html, tmp_path / "profile")
    assert 'data-drawn="1" data-failed="0"' not in dom
    assert console


def test_the_page_needs_no_network() -> None:
    html = report([tiny()], means_of(0.5))
    without_scripts = re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r"(src|href)=['\"]?(https?:)?//", without_scripts)
    assert "vegaEmbed" in html
    assert "cdn.jsdelivr" not in without_scripts


def means_of(espice: float) -> Means:
    rows = [
        Row("q1", 0, "", rate, name, 1, {**dict.fromkeys(MEASURES, 0.5), "truth": 100.0, "strict_fn": value}, {})
        for rate in (1.2, 2.0)
        for name, value in (("espice", espice), ("random-event", 0.6), ("pspice", 0.5))
    ]
    return Means({"tiny": rows}, {"runs": 6, "seeds": 1})


def test_verdicts_and_reasons_are_on_the_page() -> None:
    assert "verdict holds'>holds" in report([tiny()], means_of(0.5))
    html = report([tiny()], means_of(0.8))
    assert "verdict not'>does not hold here" in html
    assert "120 %: espice 80.0 %, random-event 60.0 %" in html
    text = page([tiny()], means_of(0.8))
    assert (
        "| 1 (1) | eSPICE is better than chance. |  | espice 80.0 %, random-event 60.0 % | **does not hold here**"
        in text
    )


def test_what_was_not_run_is_not_judged() -> None:
    nothing = Means({}, {"runs": 0, "seeds": 0})
    assert [outcome.verdict for outcome in outcomes(tiny(), [])] == [Verdict.OPEN]
    assert "Not run yet" in report([tiny()], nothing)


def test_the_page_of_claims_is_what_the_stored_results_say() -> None:
    assert CLAIMS.read_text("utf-8") == page(specs().values(), stored()), (
        "run: penstock lab report --stored --claims docs/claims.md"
    )


def test_every_claim_has_a_verdict() -> None:
    given = stored()
    made = [spec for spec in specs().values() if spec.name not in recorded()]
    judged = {o.claim.id: o.verdict for spec in made for o in outcomes(spec, given.rows.get(spec.name, []))}
    assert len(judged) > 100
    assert [claim for claim, verdict in judged.items() if verdict is Verdict.OPEN] == []


def test_what_does_not_hold_has_a_reason() -> None:
    """If none was found, that is said."""
    given = stored()
    judged = [o for spec in specs().values() for o in outcomes(spec, given.rows.get(spec.name, []))]
    failed = [o for o in judged if o.verdict in (Verdict.PART, Verdict.NOT)]
    assert len(failed) > 20
    assert [o.claim.id for o in failed if not o.claim.why] == []
