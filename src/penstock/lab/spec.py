"""What an experiment is: data, queries, load, strategies, a sweep, and what the paper says came of it.

Specs are TOML files in `specs/`, one for each experiment of a paper; figures that show the same runs share one.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from penstock.errors import PenstockError
from penstock.lab.judging import Judgement
from penstock.lab.measures import MEASURES
from penstock.shedding.strategies.catalogue import STRATEGIES

Value = bool | int | float | str
Rate = Annotated[float, Field(gt=0)]
Made = Literal["stocks", "soccer", "buses", "synthetic"]
Recorded = Literal["minute-bars", "soccer-match"]


class SpecError(PenstockError):
    """A spec that does not exist or makes no sense."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Data(_Part):
    """A stream: made from a seed, or recorded.

    Attributes:
        source: the name of a generator, or of a recorded data set's reader.
        rows: how many events are made, or read at most; the first half is for training, the second for the runs. With
            `train_rows`, all of them are for the runs.
        train_rows: how many more come before and are learned from; a quick run has as many. 0: half of the rows.
        keep_moves: of stock quotes, keep those that moved by this share (thesis 6.3.1 keeps moves of 0.4 %).
        options: the parameters of the generator, or of the reader.
    """

    source: Made | Recorded
    rows: Annotated[int, Field(gt=0)]
    train_rows: Annotated[int, Field(ge=0)] = 0
    keep_moves: Annotated[float, Field(ge=0, lt=1)] = 0.0
    options: dict[str, Value] = {}

    @property
    def is_recorded(self) -> bool:
        """Whether it is read from a file that is no part of the project; it is the same for every seed."""
        return self.source in get_args(Recorded)


class QueryText(_Part):
    """A query of the lab with its parameters; see `queries/`.

    Attributes:
        file: its name there, without `.cep`.
        weight: of its matches.
        cost: how much more than others its checks cost.
        parameters: what its `$names` stand for; a text may name other parameters in turn.
    """

    file: str
    weight: Annotated[float, Field(gt=0)] = 1.0
    cost: Annotated[float, Field(gt=0)] = 1.0
    parameters: dict[str, Value] = {}


class StrategyChoice(_Part):
    """A strategy and what is set of it.

    Attributes:
        name: in the catalogue.
        options: of `Strategy.fitted`.
    """

    name: str
    options: dict[str, Value | tuple[str, ...]] = {}

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.name not in STRATEGIES:
            raise ValueError(f"there is no strategy {self.name!r}; there are {', '.join(STRATEGIES)}")
        return self


class Sweep(_Part):
    """What is varied besides the rate.

    Attributes:
        label: what it is called in a plot.
        path: what it sets: "query.NAME" (a parameter of all queries), "test.NAME" (the same, but not in training),
            "data.NAME" (an option of the stream), "strategy.NAME" (an option of all strategies), "cost" (of the first
            query), "bin" (how many positions are one cell).
        values: one after the other.
        quick: those of a quick run; None: the first, the middle and the last.
    """

    label: str
    path: Annotated[str, Field(pattern=r"^((query|test|data|strategy)\.\w+|cost|bin)$")]
    values: list[Value]
    quick: list[Value] | None = None

    def chosen(self, *, is_quick: bool) -> list[Value]:
        """Return the values of a run."""
        if not is_quick or len(self.values) <= 3:
            return self.values
        middle = self.values[len(self.values) // 2]
        return self.quick if self.quick is not None else [self.values[0], middle, self.values[-1]]


class Experiment(_Part):
    """Runs over one stream.

    Attributes:
        id: unique in the spec.
        data: the stream.
        queries: of the operator.
        strategies: that are compared.
        rates: of arrivals, as shares of what the operator can process.
        quick_rates: those of a quick run; None: the first, the middle and the last.
        sweep: what else is varied.
        bound: LB, in seconds.
        f: the share of the bound from which on is shed.
        capacity: events that the operator can process in a second of virtual time. It should be many windows of
            events: then a bound of a second evens out what comes in bursts, as it does in the papers.
    """

    id: Annotated[str, Field(pattern=r"^[a-z0-9.-]+$")]
    data: Data
    queries: Annotated[list[QueryText], Field(min_length=1)]
    strategies: Annotated[list[StrategyChoice], Field(min_length=1)]
    rates: list[Rate] = [1.2, 1.4, 1.6, 1.8, 2.0]
    quick_rates: list[Rate] | None = None
    sweep: Sweep | None = None
    bound: Annotated[float, Field(gt=0)] = 1.0
    f: Annotated[float, Field(gt=0, lt=1)] = 0.8
    capacity: Annotated[float, Field(gt=0)] = 1000.0

    def chosen_rates(self, *, is_quick: bool) -> list[float]:
        """Return the rates of a run."""
        if not is_quick or len(self.rates) <= 3:
            return self.rates
        if self.quick_rates is not None:
            return self.quick_rates
        return [self.rates[0], self.rates[len(self.rates) // 2], self.rates[-1]]


class Figure(_Part):
    """A plot.

    Attributes:
        id: the paper's number of it.
        experiment: whose runs it shows.
        x: what is along the x axis: the rate, the sweep, the match probability that was measured, or the time.
        y: a measure; over time, latency_max.
        title: what it shows.
    """

    id: str
    experiment: str
    x: Literal["rate", "sweep", "match_probability", "time"] = "rate"
    y: str
    title: str


class Claim(_Part):
    """What the paper says.

    Attributes:
        id: unique over all specs.
        figure: where it can be seen.
        section: where it is said.
        text: in our words.
        stated: the paper's numbers, as text, if it gives any.
        judge: how it is judged; all must hold.
        why: what to say if it does not hold here.
    """

    id: str
    figure: str
    section: str
    text: str
    stated: str = ""
    judge: Annotated[list[Judgement], Field(min_length=1)]
    why: str = ""


class Spec(_Part):
    """An experiment of a paper.

    Attributes:
        name: that of its file.
        paper: "thesis" or "espice".
        title: what is asked.
        about: how it differs from the paper's, and why.
        not_rebuilt: parts of the paper's figures that are not rebuilt, with the reason.
        experiments: the runs.
        figures: the plots.
        claims: what the paper says.
    """

    name: str
    paper: Literal["thesis", "espice"]
    title: str
    about: str
    not_rebuilt: list[str] = []
    experiments: list[Experiment]
    figures: list[Figure]
    claims: list[Claim]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        known = {each.id: each for each in self.experiments}
        shown = {figure.id for figure in self.figures}
        for figure in self.figures:
            if figure.experiment not in known or figure.y not in MEASURES:
                raise ValueError(f"figure {figure.id} asks for {figure.experiment}/{figure.y}, which is not there")
            if figure.x == "time" and figure.y != "latency_max":
                raise ValueError(f"figure {figure.id}: over time, there is latency_max only")
        for claim in self.claims:
            if claim.figure not in shown:
                raise ValueError(f"claim {claim.id} is about {claim.figure}, which is not there")
            for judgement in claim.judge:
                if judgement.experiment not in known:
                    raise ValueError(f"claim {claim.id} asks for {judgement.experiment}, which is not there")
                names = {each.name for each in known[judgement.experiment].strategies}
                if missing := set(judgement.strategies()) - names:
                    raise ValueError(f"claim {claim.id} asks for {missing}, which {judgement.experiment} does not run")
        return self

    def experiment(self, name: str) -> Experiment:
        """Return one of its experiments."""
        return next(each for each in self.experiments if each.id == name)


@cache
def specs() -> dict[str, Spec]:
    """Return all specs, by name, in the order of the papers."""
    found = {}
    for path in files("penstock.lab").joinpath("specs").iterdir():
        if path.name.endswith(".toml"):
            name = path.name.removesuffix(".toml")
            found[name] = spec_of(tomllib.loads(path.read_text("utf-8")), name)
    return dict(sorted(found.items(), key=lambda item: _order(item[0])))


def spec_of(given: dict[str, Any], name: str) -> Spec:
    """Return a spec as its file says it; `defaults` of the file are in every experiment that does not say otherwise."""
    defaults = given.pop("defaults", {})
    given["experiments"] = [_filled(each, defaults) for each in given.get("experiments", [])]
    return Spec(name=name, **given)


def _filled(experiment: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    filled = defaults | experiment
    filled["strategies"] = [{"name": s} if isinstance(s, str) else s for s in filled.get("strategies", [])]
    return filled


def chosen(names: list[str] | None = None) -> list[Spec]:
    """Return specs by name; all, if none is named.

    Raises:
        SpecError: there is none of that name.
    """
    known = specs()
    if missing := [name for name in names or [] if name not in known]:
        raise SpecError(f"there is no spec {missing[0]!r}\n  fix: give one of {', '.join(known)}")
    return [known[name] for name in names] if names else list(known.values())


def _order(name: str) -> tuple[str, list[int]]:
    paper, _, number = name.partition("-")
    return {"thesis": "a"}.get(paper, "b"), [int(part) for part in number.split(".") if part.isdigit()]
