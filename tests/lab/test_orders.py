"""The papers' order of the strategies, in virtual time, as means over five seeds. Minutes each: `make test-all`.

What does not hold here is not in this list: `docs/claims.md` says what and why.
"""

from __future__ import annotations

from itertools import pairwise
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
# Queries with ANY: by rate, who loses fewer matches than who, the fewest first. The thesis: pSPICE, of all.
# - On stocks that does not hold over five seeds: at 120 % eSPICE loses as much (41 %, pSPICE 43 to 44 %), beyond less.
#   A window holds hardly more of the twenty symbols than the query asks for, and leading symbols and others are worth
#   nothing: events do differ in what they are worth (`docs/claims.md`, 4.9a).
# - On soccer it does not hold at 160 %: eSPICE loses 28 %, pSPICE 31 %. Of the runs that pSPICE drops there, 95 to 98 %
#   go when nine of ten that are open must go: it hardly chooses, while eSPICE chooses among events (there, 4.10a).
ANY: dict[str, dict[float, tuple[str, ...]]] = {
    "thesis-4.9": {1.2: ("pspice", "ebl"), 1.6: ("pspice", "ebl"), 2.0: ("espice", "pspice", "ebl")},
    "thesis-4.10": {
        1.2: ("pspice", "espice", "ebl"),
        1.6: ("espice", "pspice", "ebl"),
        2.0: ("pspice", "espice", "ebl"),
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMS)
def test_claims_hold_over_five_seeds(name: str, tmp_path: Path) -> None:
    spec = specs()[name]
    execute(Plan((spec,), tmp_path, is_quick=True, seeds=5))
    judged = {each.claim.id: each.verdict for each in outcomes(spec, found(tmp_path, [spec], is_quick=True).rows[name])}
    assert {claim: judged[claim] for claim in CLAIMS[name]} == dict.fromkeys(CLAIMS[name], Verdict.HOLDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ANY)
def test_the_order_with_any_is_this_and_pspice_invents_nothing(name: str, tmp_path: Path) -> None:
    spec = specs()[name]
    execute(Plan((spec,), tmp_path, is_quick=True, seeds=5))
    rows = found(tmp_path, [spec], is_quick=True).rows[name]
    lost = {(row.rate, row.strategy): row.means["strict_fn"] for row in rows}
    assert {row.seeds for row in rows} == {5}
    assert {row.rate for row in rows} == set(ANY[name])
    for rate, order in ANY[name].items():
        for better, worse in pairwise(order):
            assert lost[rate, better] < lost[rate, worse], f"at {rate}, {better} and {worse}"
    assert [row.means["relaxed_fp"] for row in rows if row.strategy == "pspice"] == [0.0] * len(ANY[name])
