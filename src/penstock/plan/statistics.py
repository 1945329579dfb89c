"""What a planner knows about the data: rates of types, selectivities of conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from penstock.pattern import ast
from penstock.plan.joins import JoinCondition, JoinQuery, Planned, Term, join_query, members
from penstock.plan.tables import Bools, Floats, Ints
from penstock.plan.terms import TEXT_BASE, Code

# What is guessed of a condition that nobody has looked at, by its operator.
EQUAL, UNEQUAL, ORDERED, OTHER = 0.1, 0.9, 1 / 3, 0.5
LEAST = 1e-6  # of what was never seen in a sample
NEAR = 1.5  # estimates of the same thing differ by less
SECOND_US = 1_000_000
_GUESSES = {Code.EQ: EQUAL, Code.NE: UNEQUAL} | dict.fromkeys((Code.LT, Code.LE, Code.GT, Code.GE), ORDERED)


@dataclass(frozen=True)
class Statistics:
    """Rates and selectivities; what is not known is guessed.

    Args:
        rates: events per second, by type; types that the query does not name count for WITHIN n EVENTS.
        selectivities: by the text of a conjunct, the share of combinations of events that satisfy it.
        distinct: by attribute, how many values it has: an equality of it holds for one in so many.
        partitions: how many values PARTITION BY has.
        rate: of a type that `rates` does not know.
    """

    rates: Mapping[str, float] = field(default_factory=dict)
    selectivities: Mapping[str, float] = field(default_factory=dict)
    distinct: Mapping[str, float] = field(default_factory=dict)
    partitions: float = 1.0
    rate: float = 1.0

    def rate_of(self, types: Sequence[str]) -> float:
        """Return the rate of events of some types; of none: of any type."""
        if types:
            return sum(self.rates.get(name, self.rate) for name in dict.fromkeys(types))
        return sum(self.rates.values()) or self.rate

    def selectivity(self, condition: JoinCondition, columns: Sequence[str] = ()) -> float:
        """Return the share of combinations that satisfy a condition; `columns` are the names of its columns."""
        if condition.text in self.selectivities:
            return self.selectivities[condition.text]
        known = [self.distinct[name] for name in columns if name in self.distinct]
        if condition.is_equality and known:
            return 1 / max(known)
        return EQUAL if condition.term is None else _GUESSES.get(Code(condition.term.code), OTHER)

    def is_near(self, other: Statistics) -> bool:
        """Whether all that is known differs by less than a half from what others say."""
        if self.rates.keys() != other.rates.keys() or self.selectivities.keys() != other.selectivities.keys():
            return False
        pairs = [(self.partitions, other.partitions)]
        pairs += [(x, other.rates[name]) for name, x in self.rates.items()]
        pairs += [(x, other.selectivities[text]) for text, x in self.selectivities.items()]
        return all(x < NEAR * y and y < NEAR * x for x, y in pairs)

    def window_s(self, query: ast.Query, types: Sequence[Sequence[str]]) -> float:
        """Return how many seconds a partial match lives: WITHIN, or a WINDOW that is shorter."""
        total = sum(self.rates.values()) or sum(self.rate_of(each) for each in types)
        total /= self.partitions  # positions are counted within a partition
        spans = [query.within, query.window.length if query.window else None]
        lengths = [
            span.us / SECOND_US if isinstance(span, ast.TimeSpan) else span.events / total
            for span in spans
            if span is not None
        ]
        return min(lengths)


@dataclass(frozen=True)
class Sample:
    """A stretch of a stream, in order.

    Args:
        names: the types; `types[i]` is the place in it of the type of event i.
        types: (n,)
        ts: (n,) event times in microseconds.
        columns: (F, n) in the order of the plan's columns; missing is NaN, texts from TEXT_BASE on.
        constants: (C,) those of the plan.
        ranks: the alphabetical rank of each text.
        parts: (n,) the partition of each event.
    """

    names: tuple[str, ...]
    types: Ints
    ts: Ints
    columns: Floats
    constants: Floats
    ranks: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    parts: Ints | None = None

    @cached_property
    def has_texts(self) -> bool:
        """Whether a value may be a text: else nobody has to look at each."""
        return bool(_is_text(self.columns).any() or _is_text(self.constants).any())


def estimate(
    plan: Planned, sample: Sample, query: JoinQuery | None = None, *, pairs: int = 1_000, seed: int = 0
) -> Statistics:
    """Estimate rates, and selectivities from random combinations of events that are near each other.

    Args:
        plan: of a query that `penstock.plan.joins.why_not` has nothing against.
        sample: a stretch of the stream.
        query: that of the plan, if it is at hand.
        pairs: how many combinations are looked at for each condition.
        seed: the same seed gives the same estimate.
    """
    query, rng = query or join_query(plan), np.random.default_rng(seed)
    seconds = max(1, int(sample.ts[-1] - sample.ts[0])) / SECOND_US if len(sample.ts) else 1.0
    counts = np.bincount(sample.types, minlength=len(sample.names))
    rates = {name: max(float(count), 0.5) / seconds for name, count in zip(sample.names, counts, strict=True)}
    partitions = 1.0 if sample.parts is None else float(max(1, len(np.unique(sample.parts))))
    near = int(Statistics(rates, partitions=partitions).window_s(plan.query, query.types) * SECOND_US)
    drawing = _Drawing(query, sample, near, pairs, rng)
    measured = {each.text: drawing.share(each) for each in query.conditions}
    return Statistics(rates, {k: v for k, v in measured.items() if v is not None}, partitions=partitions)


@dataclass(frozen=True)
class _Drawing:
    query: JoinQuery
    sample: Sample
    near_us: int
    pairs: int
    rng: np.random.Generator

    def share(self, condition: JoinCondition) -> float | None:
        """Return the share of random combinations that satisfy a condition; None if there are none to look at."""
        named = members(condition.variables) if condition.same < 0 else list(range(len(self.query.names)))[:2]
        events = self.combinations(named)
        if not events or (condition.same >= 0 and len(named) < 2):
            return None
        if condition.same >= 0:
            values = self.sample.columns[condition.same]
            holds = values[events[named[0]]] == values[events[named[1]]]
        else:
            assert condition.term is not None
            with np.errstate(all="ignore"):
                holds = np.asarray(self.value(condition.term, events) == 1.0)
        return max(float(np.mean(holds)), LEAST)

    def combinations(self, named: list[int]) -> dict[int, Ints] | None:
        """Draw events for some variables, each within reach of the first; None if there are none."""
        chosen: dict[int, Ints] = {}
        keep: Bools = np.ones(self.pairs, np.bool_)
        for variable in named:
            fitting = self.fitting(variable)
            if not len(fitting):
                return None
            low, high = np.zeros(self.pairs, np.int64), np.full(self.pairs, len(fitting), np.int64)
            if chosen:
                at, times = self.sample.ts[chosen[named[0]]], self.sample.ts[fitting]
                low = np.searchsorted(times, at - self.near_us)
                high = np.searchsorted(times, at + self.near_us, side="right")
            keep &= high > low
            drawn = low + (self.rng.random(self.pairs) * (high - low)).astype(np.int64)
            chosen[variable] = fitting[np.minimum(drawn, len(fitting) - 1)]
        return {v: events[keep] for v, events in chosen.items()} if keep.any() else None

    @cached_property
    def fitting(self) -> Callable[[int], Ints]:
        """Return, for a variable, the events of its types."""
        return cache(self._fitting)

    def _fitting(self, variable: int) -> Ints:
        types = self.query.types[variable]
        if not types:
            return np.arange(len(self.sample.types))
        is_wanted = np.array([name in types for name in self.sample.names], np.bool_)
        return np.flatnonzero(is_wanted[self.sample.types])

    def value(self, term: Term, events: Mapping[int, Ints]) -> Floats:
        """Compute an expression for all combinations at once; `penstock.kernel.values` says what it is worth."""
        if term.code == Code.CONST:
            return np.full(len(next(iter(events.values()))), self.sample.constants[term.argument])
        if term.code == Code.REF:
            return np.asarray(self.sample.columns[term.column].take(events[term.argument]))
        parts = [self.value(part, events) for part in term.parts]
        return _applied(Code(term.code), parts, self.sample)


_FUNCTIONS: dict[Code, Callable[..., Floats]] = {
    Code.NEG: np.negative, Code.ABS: np.abs, Code.SQRT: np.sqrt, Code.FLOOR: np.floor, Code.CEIL: np.ceil,
    Code.ROUND: np.rint, Code.EXP: np.exp, Code.LN: np.log, Code.SIGN: np.sign, Code.ADD: np.add,
    Code.SUB: np.subtract, Code.MUL: np.multiply, Code.DIV: np.divide, Code.MOD: np.mod, Code.POW: np.power,
    Code.MIN: np.minimum, Code.MAX: np.maximum,
}  # fmt: skip
_COMPARISONS: dict[Code, Callable[..., Bools]] = {
    Code.EQ: np.equal, Code.NE: np.not_equal, Code.LT: np.less, Code.LE: np.less_equal, Code.GT: np.greater,
    Code.GE: np.greater_equal,
}  # fmt: skip


def _is_text(x: Floats) -> Bools:
    return (x >= TEXT_BASE) & (x < TEXT_BASE + 2.0**40)


def _applied(code: Code, parts: list[Floats], sample: Sample) -> Floats:
    a, b = parts[0], parts[-1]
    if code in (Code.AND, Code.OR):
        return np.asarray((a == 1) & (b == 1) if code == Code.AND else (a == 1) | (b == 1), np.float64)
    if code == Code.NOT:
        return np.asarray(a != 1, np.float64)
    if Code.EQ <= code <= Code.GE:
        return _compared(code, a, b, sample).astype(np.float64)
    if sample.has_texts:
        a, b = (np.where(_is_text(x), np.nan, x) for x in (a, b))
    result: Floats = _FUNCTIONS[code](a) if len(parts) == 1 else _FUNCTIONS[code](a, b)
    return np.where(b == 0, np.nan, result) if code in (Code.DIV, Code.MOD) else result


def _compared(code: Code, a: Floats, b: Floats, sample: Sample) -> Bools:
    holds = _COMPARISONS[code](a, b)
    if code == Code.NE:
        holds &= ~np.isnan(a) & ~np.isnan(b)
    elif code != Code.EQ and sample.has_texts:
        texts = _is_text(a), _is_text(b)
        if texts[0].any() or texts[1].any():
            holds = _COMPARISONS[code](_ranked(a, sample.ranks), _ranked(b, sample.ranks)) & (texts[0] == texts[1])
    return np.asarray(holds)


def _ranked(x: Floats, ranks: Ints) -> Floats:
    texts = _is_text(x)
    if not texts.any():
        return x
    ranked = x.copy()
    ranked[texts] = ranks[(x[texts] - TEXT_BASE).astype(np.int64)]
    return ranked
