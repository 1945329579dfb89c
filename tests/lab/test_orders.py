"""The papers' order of the strategies, in virtual time, as means over five seeds. Minutes each: `make test-all`.

What does not hold here is not in this list: `docs/claims.md` says what and why.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.lab.claims import outcomes
from penstock.lab.judging import Verdict
from penstock.lab.results import found
from penstock.lab.running import Plan, execute
from penstock.lab.spec import specs

CLAIMS = {
    "thesis-3.6": ["3.6-bound"],
    "thesis-4.5": ["4.5-order", "4.5-relaxed", "4.5-random", "4.16-q1"],
    "thesis-4.6": ["4.6-order"],
    "thesis-4.8": ["4.8-order"],
    "thesis-5.4": ["5.4-best", "5.10-bound"],
    "thesis-6.4": ["6.4-sh-order", "6.4-sh-q1"],
    "thesis-6.7": ["6.7-sh"],
}
# Queries with ANY, and what pSPICE loses less than at every rate. The thesis says: than all others. On stocks that does
# not hold over five seeds: at 120 % eSPICE loses as much (41 %, pSPICE 43 to 44 %), beyond it less. A window holds
# hardly more of the twenty symbols than the query asks for, and leading symbols and others are worth nothing: events do
# differ in what they are worth (`docs/claims.md`, 4.9a).
ANY = {"thesis-4.9": ("ebl",), "thesis-4.10": ("espice", "ebl")}
# On soccer eSPICE loses a little less at 160 %: 28 %, pSPICE 31 %; at 120 % and 200 % it is 7 and 39 %, and 5 and 30 %.
# It lost more as long as a window that an event opens was taken to have all events up to the next one.
CLOSE = {("thesis-4.10", "espice", 1.6)}


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMS)
def test_claims_hold_over_five_seeds(name: str, tmp_path: Path) -> None:
    spec = specs()[name]
    execute(Plan((spec,), tmp_path, is_quick=True, seeds=5))
    judged = {each.claim.id: each.verdict for each in outcomes(spec, found(tmp_path, [spec], is_quick=True).rows[name])}
    assert {claim: judged[claim] for claim in CLAIMS[name]} == dict.fromkeys(CLAIMS[name], Verdict.HOLDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ANY)
def test_pspice_is_best_with_any_and_invents_nothing(name: str, tmp_path: Path) -> None:
    spec = specs()[name]
    execute(Plan((spec,), tmp_path, is_quick=True, seeds=5))
    rows = found(tmp_path, [spec], is_quick=True).rows[name]
    lost = {(row.rate, row.strategy): row.means["strict_fn"] for row in rows}
    rates = sorted({row.rate for row in rows})
    assert {row.seeds for row in rows} == {5}
    assert (rates[0], rates[-1]) == (1.2, 2.0)
    for rate in rates:
        for other in ANY[name]:
            slack = 0.05 if (name, other, rate) in CLOSE else 0.0
            assert lost[rate, "pspice"] < lost[rate, other] + slack, f"at {rate}, {other}"
    if "espice" not in ANY[name]:
        assert lost[2.0, "espice"] < lost[2.0, "pspice"]  # as the comment above says
    assert [row.means["relaxed_fp"] for row in rows if row.strategy == "pspice"] == [0.0] * len(rates)
