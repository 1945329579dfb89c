"""Every spec loads, covers its figures, and has claims that can be judged."""

from __future__ import annotations

import re

import pytest

from penstock.lab.cells import settings
from penstock.lab.claims import outcomes
from penstock.lab.data import QueryFileError, halves_of, query_of, table_of
from penstock.lab.judging import Row, Verdict
from penstock.lab.measures import MEASURES
from penstock.lab.spec import Data, QueryText, SpecError, chosen, spec_of, specs
from tests.lab.tiny import tiny

# What issue 6 asks for.
THESIS = [
    *(f"3.{k}" for k in range(4, 9)), *(f"4.{k}" for k in range(5, 17)), *(f"5.{k}" for k in range(4, 11)),
    *(f"6.{k}" for k in range(4, 14)),
]  # fmt: skip
ESPICE = ["5", "6", "7"]


@pytest.mark.parametrize(("paper", "wanted"), [("thesis", THESIS), ("espice", ESPICE)])
def test_every_figure_has_a_spec(paper: str, wanted: list[str]) -> None:
    shown = {re.split(r"[a-z ]", f.id)[0] for spec in specs().values() if spec.paper == paper for f in spec.figures}
    assert shown == set(wanted)


def test_claims_have_ids_of_their_own() -> None:
    ids = [claim.id for spec in specs().values() for claim in spec.claims]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", specs())
def test_queries_of_a_spec_parse_with_every_value(name: str) -> None:
    for experiment in specs()[name].experiments:
        sweep = experiment.sweep
        kind, _, parameter = ("", "", "") if sweep is None else sweep.path.partition(".")
        values = [] if sweep is None or kind not in ("query", "test") else sweep.values
        for given in experiment.queries:
            query_of(given)
            for value in values:
                assert query_of(given, {parameter: value}) is not None


@pytest.mark.parametrize("is_quick", [True, False])
@pytest.mark.parametrize("name", specs())
def test_claims_of_a_spec_are_judged_by_its_runs(name: str, is_quick: bool) -> None:
    spec = specs()[name]
    cells = [cell for setting in settings(spec, 1, is_quick=is_quick) for cell, _ in setting.cells]
    rows = [
        Row(c.experiment, c.x, c.value, c.rate, c.strategy, 1, {**dict.fromkeys(MEASURES, 0.5), "truth": 100.0}, {})
        for c in cells
    ]
    judged = {outcome.claim.id: outcome.verdict for outcome in outcomes(spec, rows)}
    assert [claim for claim, verdict in judged.items() if verdict is Verdict.OPEN] == []
    assert all(outcome.seen for outcome in outcomes(spec, rows))


def test_a_quick_run_has_the_first_and_the_last_rate() -> None:
    for spec in specs().values():
        for experiment in spec.experiments:
            quick = experiment.chosen_rates(is_quick=True)
            assert (quick[0], quick[-1]) == (experiment.rates[0], experiment.rates[-1])


def test_an_unknown_spec_is_told_with_those_that_there_are() -> None:
    with pytest.raises(SpecError, match=r"no spec 'thesis-9\.9'[\s\S]*thesis-3\.4"):
        chosen(["thesis-9.9"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"figures": [{"id": "1", "experiment": "q9", "y": "strict_fn", "title": ""}]}, "q9/strict_fn"),
        ({"figures": [{"id": "1", "experiment": "q1", "y": "beauty", "title": ""}]}, "q1/beauty"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_spec_that_does_not_fit_together_is_refused(change: dict[str, object], message: str) -> None:
    given = {
        "paper": "thesis", "title": "", "about": "", "figures": [], "claims": [],
        "experiments": [
            {
                "id": "q1", "data": {"source": "synthetic", "rows": 10}, "queries": [{"file": "synthetic-q1"}],
                "strategies": ["espice"],
            }
        ],
    }  # fmt: skip
    spec_of(dict(given), "x")
    with pytest.raises(ValueError, match=message):
        spec_of({**given, **change}, "x")


@pytest.mark.parametrize("keep_moves", [0.0, 0.004])
def test_what_is_learned_from_comes_before_the_runs(keep_moves: float) -> None:
    half = Data(source="stocks", rows=4000, keep_moves=keep_moves, options={"symbols": 20, "followers": 10})
    past, events = halves_of(half, 1)
    assert past.num_rows + events.num_rows == table_of(half, 1).num_rows
    assert past.num_rows == table_of(half, 1).num_rows // 2
    past, events = halves_of(half.model_copy(update={"rows": 1000, "train_rows": 3000}), 1)
    assert past.num_rows > events.num_rows > 0
    assert past.column("ts")[-1].as_py() <= events.column("ts")[0].as_py()
    assert past.num_rows + events.num_rows == table_of(half, 1).num_rows


def test_a_quick_run_learns_from_as_much() -> None:
    given = {"source": "synthetic", "rows": 1000, "train_rows": 2000}
    quick, whole = (next(settings(tiny(data=given), 1, is_quick=each)).experiment.data for each in (True, False))
    assert (quick.rows, quick.train_rows, whole.rows, whole.train_rows) == (250, 2000, 1000, 2000)


def test_a_query_without_a_parameter_is_refused() -> None:
    with pytest.raises(QueryFileError, match="synthetic-q1: the parameter 'window' is not given"):
        query_of(QueryText(file="synthetic-q1", parameters={"within": "10 seconds"}))
    with pytest.raises(QueryFileError, match="no query 'nothing'"):
        query_of(QueryText(file="nothing"))
