"""How a claim of a paper is judged by results: orders, trends, limits and numbers, each with a verdict and a reason."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from penstock.lab.measures import MEASURES

_SHOWN = 3  # contrary observations that a reason names
_LEAST_TRUTH = 20  # matches that the unshed run must have, so that shares of them say anything
_OF_TRUTH = ("strict_fn", "strict_fp", "relaxed_fn", "relaxed_fp")


class Verdict(StrEnum):
    """What became of a claim."""

    HOLDS = "holds"
    PART = "holds in part"
    NOT = "does not hold here"
    OPEN = "not judged"


@dataclass(frozen=True)
class Row:
    """The mean of some runs that differ in their seed alone.

    Attributes:
        experiment: their experiment.
        x: the place of the sweep's value among its values; 0 without a sweep.
        value: the value.
        rate: of arrivals.
        strategy: its name.
        seeds: how many runs.
        means: by measure.
        deviations: likewise.
        curve: the greatest latency in each of some equal parts of the run, one after the other, in seconds.
    """

    experiment: str
    x: int
    value: str
    rate: float
    strategy: str
    seeds: int
    means: dict[str, float]
    deviations: dict[str, float]
    curve: tuple[float, ...] = ()

    @property
    def point(self) -> tuple[int, float]:
        """Where in the plot it is."""
        return self.x, self.rate

    def place(self, *, has_sweep: bool) -> str:
        """Return where it is, in words."""
        at = f"{self.value}, " if has_sweep else ""
        return f"{at}{self.rate:.0%}".replace("%", " %")


@dataclass(frozen=True)
class Judged:
    """A verdict.

    Attributes:
        right: observations that agree.
        all: observations.
        contrary: those that do not, in words.
    """

    right: int
    all: int
    contrary: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """Holds if all agree; in part if at least half do."""
        if not self.all:
            return Verdict.OPEN
        if self.right == self.all:
            return Verdict.HOLDS
        return Verdict.PART if 2 * self.right >= self.all else Verdict.NOT

    @property
    def reason(self) -> str:
        """What speaks against it."""
        more = len(self.contrary) - _SHOWN
        return "; ".join(self.contrary[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")

    @classmethod
    def of(cls, observations: Iterable[tuple[bool, str]]) -> Judged:
        """Count observations: whether it agrees, and what to say if not."""
        seen = list(observations)
        return cls(sum(ok for ok, _ in seen), len(seen), tuple(text for ok, text in seen if not ok))

    @classmethod
    def joined(cls, parts: Iterable[Judged]) -> Judged:
        """Return one verdict: each part counts the same, and one that is not judged leaves the whole so."""
        each = list(parts)
        if len(each) == 1:
            return each[0]
        if any(not part.all for part in each):
            return cls(0, 0, ())
        whole = 1
        for part in each:
            whole *= part.all
        right = sum(whole * part.right // part.all for part in each)
        return cls(right, whole * len(each), tuple(text for part in each for text in part.contrary))


class _Judgement(BaseModel):
    """What all have.

    Attributes:
        experiment: whose results are looked at.
        measure: which of them.
        rates: at these rates only.
        values: at these values of the sweep only.
        slack: differences up to this are none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    experiment: str
    measure: str
    rates: list[float] | None = None
    values: list[str | float | int] | None = None
    slack: Annotated[float, Field(ge=0)] = 0.01

    @field_validator("measure")
    @classmethod
    def _is_measured(cls, name: str) -> str:
        if name not in MEASURES:
            raise ValueError(f"{name!r} is not measured; {', '.join(MEASURES)} are")
        return name

    def strategies(self) -> list[str]:
        """Return the strategies that it is about."""
        raise NotImplementedError

    def observations(self, rows: list[Row]) -> Iterator[tuple[bool, str]]:
        """Yield what the rows say: whether each observation agrees, and what to say if it does not."""
        raise NotImplementedError

    def asked(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows that it is about."""
        values = None if self.values is None else {str(value) for value in self.values}
        return [
            row for row in rows
            if row.experiment == self.experiment and row.strategy in self.strategies()
            and (self.rates is None or any(abs(row.rate - rate) < 1e-9 for rate in self.rates))
            and (values is None or row.value in values)
            and (self.measure not in _OF_TRUTH or row.means.get("truth", math.inf) >= _LEAST_TRUTH)
        ]  # fmt: skip

    def judged(self, rows: Iterable[Row]) -> Judged:
        """Judge by the rows of a spec."""
        return Judged.of(self.observations(self.asked(rows)))

    def of(self, row: Row) -> float:
        """Return what was measured."""
        return row.means[self.measure]

    def show(self, value: float) -> str:
        """Return a measured value in words."""
        return f"{100 * value:.1f} %" if MEASURES[self.measure].is_share else f"{value:.3g}"

    def seen(self, rows: Iterable[Row]) -> str:
        """Return what was measured, in words: of each strategy, at the ends of what was varied."""
        texts = []
        asked = self.asked(rows)
        for strategy in dict.fromkeys(self.strategies()):
            mine = sorted((row for row in asked if row.strategy == strategy), key=lambda row: row.point)
            if mine:
                ends = dict.fromkeys(self.show(self.of(row)) for row in (mine[0], mine[-1]))
                texts.append(f"{strategy} {' … '.join(ends)}")
        return ", ".join(texts)

    def at(self, row: Row, rows: list[Row]) -> str:
        """Return where a row is, in words."""
        return row.place(has_sweep=len({each.value for each in rows}) > 1 or row.value != "")

    def paired(self, rows: list[Row], one: str, other: str) -> Iterator[tuple[Row, Row]]:
        """Yield the rows of two strategies at the same place."""
        by_place = {(row.point, row.strategy): row for row in rows}
        for (point, strategy), row in by_place.items():
            if strategy == one and (point, other) in by_place:
                yield row, by_place[point, other]


class Order(_Judgement):
    """The first strategies are better (less) than the others, or at least as good, wherever both were run."""

    kind: Literal["order"]
    less: list[str]
    more: list[str]

    def strategies(self) -> list[str]:
        """Return both sides."""
        return [*self.less, *self.more]

    def observations(self, rows: list[Row]) -> Iterator[tuple[bool, str]]:
        """Yield a comparison per place and pair."""
        for one in self.less:
            for other in self.more:
                for row, against in self.paired(rows, one, other):
                    ok = self.of(row) <= self.of(against) + self.slack
                    shown = f"{one} {self.show(self.of(row))}, {other} {self.show(self.of(against))}"
                    yield ok, f"{self.at(row, rows)}: {shown}"


class Alike(_Judgement):
    """Two strategies differ by no more than `slack`."""

    kind: Literal["alike"]
    one: str
    other: str

    def strategies(self) -> list[str]:
        """Return both."""
        return [self.one, self.other]

    def observations(self, rows: list[Row]) -> Iterator[tuple[bool, str]]:
        """Yield a comparison per place."""
        for row, against in self.paired(rows, self.one, self.other):
            ok = abs(self.of(row) - self.of(against)) <= self.slack
            shown = f"{self.one} {self.show(self.of(row))}, {self.other} {self.show(self.of(against))}"
            yield ok, f"{self.at(row, rows)}: {shown}"


class Gain(_Judgement):
    """Somewhere, a strategy is `times` as good as another: up to so many times fewer."""

    kind: Literal["gain"]
    better: str
    than: str
    times: Annotated[float, Field(gt=1)]

    def strategies(self) -> list[str]:
        """Return both."""
        return [self.better, self.than]

    def observations(self, rows: list[Row]) -> Iterator[tuple[bool, str]]:
        """Yield whether it is better at all, and whether by so much: half of it is a claim that holds in part."""
        pairs = list(self.paired(rows, self.better, self.than))
        if pairs:
            gains = [self.of(b) / max(self.of(a), 1e-3) for a, b in pairs if self.of(b) > self.slack]
            most = max(gains, default=0.0)
            yield most > 1.1, f"{self.better} is nowhere better than {self.than}"
            yield most >= self.times, f"{self.than} / {self.better} is {most:.1f} at most"


class Trend(_Judgement):
    """A measure rises (falls, stays) along the rates or along the sweep, for each of some strategies."""

    kind: Literal["rises", "falls", "stays"]
    of_strategies: list[str]
    along: Literal["rate", "sweep", "match_probability"] = "rate"

    def strategies(self) -> list[str]:
        """Return them."""
        return self.of_strategies

    def observations(self, rows: list[Row]) -> Iterator[tuple[bool, str]]:
        """Yield one per strategy and line: no step against it, and the ends in order."""
        for strategy in self.of_strategies:
            mine = [row for row in rows if row.strategy == strategy]
            for key in dict.fromkeys(self._line(row) for row in mine):
                line = sorted((row for row in mine if self._line(row) == key), key=self._along)
                if len(line) > 1:
                    yield self._agrees([self.of(row) for row in line]), self._told(strategy, line)

    def _line(self, row: Row) -> float:
        return row.x if self.along == "rate" else row.rate

    def _along(self, row: Row) -> float:
        if self.along == "match_probability":
            return row.means["match_probability"]
        return row.rate if self.along == "rate" else row.x

    def _agrees(self, values: list[float]) -> bool:
        if self.kind == "stays":
            return max(values) - min(values) <= self.slack
        sign = 1 if self.kind == "rises" else -1
        steps = all(sign * (after - before) >= -self.slack for before, after in pairwise(values))
        return steps and sign * (values[-1] - values[0]) > 0

    def _told(self, strategy: str, line: list[Row]) -> str:
        shown = ", ".join(self.show(self.of(row)) for row in line)
        where = f" at {line[0].rate:.0%}".replace("%", " %") if self.along != "rate" else ""
        return f"{strategy}{where}: {shown}"


class Limit(_Judgement):
    """A measure of each strategy is nowhere above (below) a limit."""

    kind: Literal["at most", "at least"]
    of_strategies: list[str]
    limit: float

    def strategies(self) -> list[str]:
        """Return them."""
        return self.of_strategies

    def observations(self, rows: list[Row]) -> Iterator[tuple[bool, str]]:
        """Yield one per place and strategy."""
        for row in rows:
            value = self.of(row)
            ok = value <= self.limit + self.slack if self.kind == "at most" else value >= self.limit - self.slack
            yield ok, f"{row.strategy} at {self.at(row, rows)}: {self.show(value)}"


class Stated(BaseModel):
    """A number of the paper.

    Attributes:
        strategy: of which strategy.
        rate: at which rate.
        value: at which value of the sweep, if there is one.
        is_about: what the paper measured.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    strategy: str
    rate: float
    value: str | float | int | None = None
    is_about: float


class Numbers(_Judgement):
    """The paper's own numbers, within `slack`."""

    kind: Literal["numbers"]
    stated: Annotated[list[Stated], Field(min_length=1)]

    def strategies(self) -> list[str]:
        """Return those that numbers are stated of."""
        return [each.strategy for each in self.stated]

    def observations(self, rows: list[Row]) -> Iterator[tuple[bool, str]]:
        """Yield one per number that was run."""
        for each in self.stated:
            for row in rows:
                is_there = row.strategy == each.strategy and abs(row.rate - each.rate) < 1e-9
                if is_there and (each.value is None or row.value == str(each.value)):
                    ok = abs(self.of(row) - each.is_about) <= self.slack
                    shown = f"{self.show(self.of(row))}, stated {self.show(each.is_about)}"
                    yield ok, f"{each.strategy} at {self.at(row, rows)}: {shown}"


Judgement = Annotated[Order | Alike | Gain | Trend | Limit | Numbers, Field(discriminator="kind")]
