"""Buses of a city: lines that share stops, and delays that arise at a stop and go on with the buses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass

from penstock.lab.generators.fading import faded
from penstock.lab.generators.generator import SECOND_US, TYPE, Generator, types

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

REPORT_SECONDS = 20  # between two reports of a bus
HOUR_ROUNDS = 3600 // REPORT_SECONDS  # a block is an hour
STOP_SECONDS = 60  # from a stop to the next
LINE_STOPS = 30  # of each line, which is a loop
LINE_BUSES = 12
HUBS = 12  # stops of several lines
LINE_HUBS = 3
INCIDENT_SECONDS = (300, 1200)  # so long a stop holds up every bus that comes
HOLD_SECONDS = (60, 420)  # and so long it holds up a bus
CATCH_UP_ROUNDS = 1500 // REPORT_SECONDS  # a bus has made up for a hold after that time
USUAL_SECONDS = (20, 25)  # a bus is always a bit late: mean and deviation, by bus and by report


@dataclass(frozen=True)
class Buses(Generator):
    """Reports of buses, one every 20 s each: how late a bus is, and which stop it is at or comes to next.

    A type is a bus: B1, B2, … Twelve buses go round on each line, at equal distances; lines have stops of their own and
    share some with others. Now and then a stop is blocked for a while: all buses that come there are held up, stand
    still, go on late, and catch up slowly. So several buses are late at one stop, of several lines where these meet,
    and the same ones are late at the next stops some minutes later.

    Attributes:
        seed: of the random numbers.
        buses: how many there are.
        incidents: stops that get blocked, per hour and line.

    Examples:
        >>> Buses(seed=1).block(0).select(["type", "stop", "line"]).slice(0, 1).to_pylist()
        [{'type': 'B94', 'stop': 'stop 247', 'line': 8}]
    """

    seed: Annotated[int, Field(ge=0)] = 1
    buses: Annotated[int, Field(gt=0)] = 240
    incidents: Annotated[float, Field(ge=0)] = 0.5

    @property
    def block_rows(self) -> int:
        """A block is an hour."""
        return HOUR_ROUNDS * self.buses

    @property
    def schema(self) -> pa.Schema:
        """The columns of a block."""
        return pa.schema(
            [
                ("type", TYPE), ("ts", pa.int64()), ("delay", pa.duration("us")),
                ("stop", pa.dictionary(pa.int16(), pa.string())), ("line", pa.int16()),
            ]
        )  # fmt: skip

    def block(self, number: int) -> pa.RecordBatch:
        """Return the reports of an hour."""
        random, stops = self.numbers(number, 0), self._stops()
        at = (np.arange(HOUR_ROUNDS) + number * HOUR_ROUNDS)[:, None] * float(REPORT_SECONDS) + self._phase()
        late = self._late(number)
        place = ((at - late) / STOP_SECONDS + self._start()).astype(np.int64) % LINE_STOPS
        delay = late + self._usual(random)
        order = np.argsort(self._phase())
        line = self._lines()
        stop = stops[line, place][:, order].ravel()
        names = pa.array([f"stop {k}" for k in range(stops.max() + 1)], pa.string())
        return pa.record_batch(
            [
                types(np.tile(order, HOUR_ROUNDS), [f"B{k}" for k in range(1, self.buses + 1)]),
                pa.array((at[:, order] * SECOND_US).astype(np.int64).ravel()),
                pa.array(np.round(delay[:, order]).astype(np.int64).ravel() * SECOND_US, pa.duration("us")),
                pa.DictionaryArray.from_arrays(pa.array(stop.astype(np.int16)), names),
                pa.array(np.tile(line[order] + 1, HOUR_ROUNDS).astype(np.int16)),
            ],
            schema=self.schema,
        )

    # --- the timetable ------------------------------------------------------------------------------------------

    def _lines(self) -> Ints:
        """Return the line of each bus."""
        return np.arange(self.buses) // LINE_BUSES

    def _start(self) -> Floats:
        """Return where each bus is on its loop at the beginning, in stops."""
        return (np.arange(self.buses) % LINE_BUSES) * (LINE_STOPS / LINE_BUSES) + self._lines() * 0.37

    def _phase(self) -> Floats:
        """Return when each bus reports, in seconds after the beginning of a round."""
        return self.numbers(0).uniform(0, REPORT_SECONDS, self.buses)

    def _stops(self) -> Ints:
        """Return the stops of each line: (lines, stops). The first numbers are hubs, which several lines share."""
        random, lines = self.numbers(1), int(self._lines()[-1]) + 1
        stops = HUBS + np.arange(lines * LINE_STOPS).reshape(lines, LINE_STOPS)
        for line in stops:
            line[random.choice(LINE_STOPS, LINE_HUBS, replace=False)] = random.choice(HUBS, LINE_HUBS, replace=False)
        return stops

    # --- delays -------------------------------------------------------------------------------------------------

    def _late(self, number: int) -> Floats:
        """Return how late blocked stops have made each bus, in seconds: (rounds, buses).

        A bus that is held up stands still: it gets later as time passes. All that begins in an hour is over at the end
        of the next.
        """
        changes = np.zeros((3 * HOUR_ROUNDS, self.buses))  # +1 where a hold begins, -1 where it ends
        for hour in (number - 1, number):
            for bus, begins, lasts in self._holds(hour):
                first = np.maximum(np.ceil(begins / REPORT_SECONDS).astype(np.int64) - (number - 1) * HOUR_ROUNDS, 0)
                np.add.at(changes, (first, bus), 1)
                np.add.at(changes, (first + np.maximum(lasts // REPORT_SECONDS, 1).astype(np.int64), bus), -1)
        is_held = np.minimum(np.cumsum(changes, axis=0), 1)[: 2 * HOUR_ROUNDS]
        return faded(is_held[HOUR_ROUNDS - CATCH_UP_ROUNDS :] * REPORT_SECONDS, CATCH_UP_ROUNDS)

    def _holds(self, hour: int) -> Iterator[tuple[Ints, Floats, Floats]]:
        """Yield for each stop that gets blocked in an hour: the buses that are held up, from when and for how long."""
        if hour < 0:
            return
        random, stops = self.numbers(hour, 1), self._stops()
        start, line_of = self._start(), self._lines()
        for _ in range(random.poisson(self.incidents * len(stops))):
            blocked = stops[random.integers(len(stops)), random.integers(LINE_STOPS)]
            begins = hour * 3600 + random.uniform(0, 3600)
            ends = begins + random.uniform(*INCIDENT_SECONDS)
            for line, place in np.argwhere(stops == blocked):
                bus = np.flatnonzero(line_of == line)
                loop = LINE_STOPS * STOP_SECONDS
                first = (place - start[bus]) % LINE_STOPS * STOP_SECONDS
                comes = first + np.ceil((begins - first) / loop) * loop
                is_held = comes < ends
                yield bus[is_held], comes[is_held], random.uniform(*HOLD_SECONDS, int(is_held.sum()))

    def _usual(self, random: np.random.Generator) -> Floats:
        """Return how late buses are without any reason, in seconds."""
        mean, deviation = USUAL_SECONDS
        by_bus = self.numbers(2).normal(mean, deviation, self.buses)
        usual: Floats = by_bus + random.normal(0, deviation / 2, (HOUR_ROUNDS, self.buses))
        return usual
