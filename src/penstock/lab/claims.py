"""The papers' claims with their verdicts, and the page docs/claims.md that lists them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from penstock.lab.judging import Judged, Row, Verdict
from penstock.lab.results import Means, kind_of
from penstock.lab.spec import Claim, Spec

PAPERS = {"thesis": "Thesis", "espice": "eSPICE paper"}
MARKS = {
    Verdict.HOLDS: "**holds**",
    Verdict.PART: "in part",
    Verdict.NOT: "**does not hold here**",
    Verdict.OPEN: "not judged",
}


@dataclass(frozen=True)
class Outcome:
    """What became of a claim.

    Attributes:
        claim: the claim.
        verdict: on it.
        seen: what was measured, in words.
        contrary: what speaks against it, in words.
    """

    claim: Claim
    verdict: Verdict
    seen: str
    contrary: str

    @property
    def why(self) -> str:
        """Why it does not hold in full: what speaks against it, and what the spec says about that."""
        if self.verdict in (Verdict.HOLDS, Verdict.OPEN):
            return ""
        return f"{self.contrary}. {self.claim.why}".strip()


def outcomes(spec: Spec, rows: Iterable[Row]) -> list[Outcome]:
    """Judge the claims of a spec by means of its runs."""
    known = list(rows)
    found = []
    for claim in spec.claims:
        judged = Judged.joined(judgement.judged(known) for judgement in claim.judge)
        seen = "; ".join(_seen(claim, known))
        found.append(Outcome(claim, judged.verdict, seen, judged.reason))
    return found


def _seen(claim: Claim, rows: list[Row]) -> list[str]:
    """Return what each judgement is about, in words; the experiment is named where there are several."""
    texts: dict[str, None] = {}
    several = len({judgement.experiment for judgement in claim.judge}) > 1
    for judgement in claim.judge:
        if text := judgement.seen(rows):
            texts[f"{judgement.experiment}: {text}" if several else text] = None
    return list(texts)


def page(specs: Iterable[Spec], given: Means) -> str:
    """Return docs/claims.md."""
    judged = [(spec, outcomes(spec, given.rows.get(spec.name, []))) for spec in specs]
    counts = Counter(outcome.verdict for _, each in judged for outcome in each)
    said = [
        "# What the papers claim, and what comes of it here",
        "Made by `penstock lab report --stored --claims docs/claims.md` from the results that are stored in "
        "`src/penstock/lab/results`; do not edit. `penstock lab run --all --quick` runs the experiments anew, "
        "`penstock lab report` makes a page with plots of them.",
        origin(given.about),
        f"Of {sum(counts.values())} claims, {counts[Verdict.HOLDS]} hold, {counts[Verdict.PART]} hold in part "
        f"(at least half of what was observed agrees), {counts[Verdict.NOT]} do not hold here, "
        f"{counts[Verdict.OPEN]} are not judged.",
        "*Here* are the values at both ends of what was varied: the lowest and the highest rate, the first and the "
        "last value of a sweep. `ebl` is the papers' BL or E-BL, `random-run` PM-BL.",
    ]
    lines = [line for text in said for line in (text, "")]
    for spec, each in judged:
        lines += [f"## {spec.name}: {spec.title}", "", _line(spec.about), ""]
        lines += [f"Not rebuilt: {text}." for text in spec.not_rebuilt] + ([""] if spec.not_rebuilt else [])
        lines += ["| figure | claim | stated | here | verdict |", "| --- | --- | --- | --- | --- |"]
        lines += [_table_line(outcome) for outcome in each]
        lines.append("")
    return "\n".join(lines)


def _table_line(outcome: Outcome) -> str:
    claim = outcome.claim
    verdict = MARKS[outcome.verdict] + (f": {_line(outcome.why)}" if outcome.why else "")
    cells = (f"{claim.figure} ({claim.section})", claim.text, claim.stated, outcome.seen, verdict)
    return "| " + " | ".join(_line(cell).replace("|", "\\|") for cell in cells) + " |"


def origin(about: dict[str, Any]) -> str:
    """Return where results come from, in words."""

    def said(name: str) -> str:
        return ", ".join(about.get(name, ["?"]))

    kind = kind_of(about)
    runs, seeds = about.get("runs", 0), about.get("seeds", 0)
    return (
        f"The results are of {runs} {kind} with {seeds} {'seed' if seeds == 1 else 'seeds'}, commit {said('commit')}, "
        f"on {said('machine')} ({said('cores')} cores), Python {said('python')}, {said('libraries')}."
    )


def _line(text: str) -> str:
    return " ".join(text.split())
