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
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMS)
def test_claims_hold_over_five_seeds(name: str, tmp_path: Path) -> None:
    spec = specs()[name]
    execute(Plan((spec,), tmp_path, is_quick=True, seeds=5))
    judged = {each.claim.id: each.verdict for each in outcomes(spec, found(tmp_path, [spec], is_quick=True).rows[name])}
    assert {claim: judged[claim] for claim in CLAIMS[name]} == dict.fromkeys(CLAIMS[name], Verdict.HOLDS)
