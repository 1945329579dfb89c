"""How many of the runs that a query opens become matches: the match probability of the thesis (section 3.3.2.1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batches import Reader
from penstock.engine.engine import Engine
from penstock.engine.hooks import Hooks
from penstock.engine.intake import Intake, attributes
from penstock.engine.matches import Matches
from penstock.pattern import ast
from penstock.pattern.variables import variables
from penstock.plan.layout import EVENT_HIGH, EVENT_LOW
from penstock.plan.planning import plan
from penstock.plan.tables import Bools


@dataclass(frozen=True)
class Completion:
    """What became of the runs of a query.

    Attributes:
        events: how many there were.
        opened: events that opened a run.
        completed: those of them that a match begins with.
        runs: what was opened, counted in each window that the opening event is in: what the thesis calls the number of
            partial matches. It is too high where a type comes back and the first event is consumed: then an event that
            a run has taken in some of its windows opens none there.
        matches: counted in each window likewise.
    """

    events: int
    opened: int
    completed: int
    runs: int
    matches: int

    @property
    def share(self) -> float:
        """The share of opening events that a match begins with."""
        return self.completed / self.opened if self.opened else 0.0

    @property
    def probability(self) -> float:
        """The match probability of the thesis: matches per run, both counted in each window."""
        return self.matches / self.runs if self.runs else 0.0


def completion(query: ast.Query, batches: Iterable[pa.RecordBatch]) -> Completion:
    """Return what becomes of the runs of a query in a stream.

    Args:
        query: one whose runs open with single events, which is any but those that begin with an optional part.
        batches: the stream, such as `Generator.batches`.

    Examples:
        >>> import penstock as pk
        >>> from penstock.lab.generators import Synthetic
        >>> query = pk.parse("PATTERN SEQ(A a, B b) WHERE a.V1 < b.V1 WITHIN 30 s SELECT FIRST CONSUME a")
        >>> completion(query, Synthetic("DS1", seed=1).batches(10_000))
        Completion(events=10000, opened=8122, completed=4637, runs=8122, matches=4637)
    """
    engine = Engine(query, plan="automaton")
    windows, states = _Windows(query), len(engine.states[0])
    events = opened = runs = 0
    matches = Matches()
    for batch in batches:
        counted = np.zeros((len(batch), states, 2), np.int64)
        matches += engine.process(batch, Hooks(cells=np.arange(len(batch)), counted=counted))
        opens = counted[:, 0, 1] > 0
        events, opened, runs = events + len(batch), opened + int(opens.sum()), runs + windows.count(batch, opens)
    matches += engine.flush()
    return Completion(events, opened, _first_events(query, matches), runs, len(matches))


class _Windows:
    """Counts the windows that events are in."""

    def __init__(self, query: ast.Query) -> None:
        planned = plan(query)
        self._reader = Reader(attributes(planned))
        self._intake = Intake(planned, self._reader)

    def count(self, batch: pa.RecordBatch, chosen: Bools) -> int:
        """Return in how many windows the chosen events of a batch are, added up; without windows, in one each."""
        taken = self._intake.take(self._reader.read(batch))
        low, high = taken.events[EVENT_LOW], taken.events[EVENT_HIGH]
        return int((high - low + 1)[chosen[taken.rows]].sum())


def _first_events(query: ast.Query, matches: Matches) -> int:
    """Return with how many different events matches begin."""
    if not len(matches):
        return 0
    table = matches.to_arrow()
    names = [variable for variable in variables(query.pattern) if variable in table.column_names]
    first = pc.min_element_wise(*(pc.list_element(table.column(name), 0) for name in names))
    return int(pc.count_distinct(first).as_py())
