"""A whole pipeline as a TOML file: where events come from, the queries, where results go, how it is run.

    [source]                        # parquet, csv, json, rate or kafka
    format = "json"
    path = "events"                 # paths are relative to the job file
    schema = "type string, ts timestamp, card string, amount double"
    options = { maxFilesPerTrigger = 10 }   # of Spark's reader
    columns = { hour = "hour(ts)" }         # more columns, in SQL; try_cast and the like give null where casts fail

    [detect]                        # see penstock.spark.detect
    query_file = "fraud.cep"        # or query = "PATTERN …"; both may be lists
    time = "ts"
    by = "card"                     # a name or a list
    watermark = "10 s"
    idle = "1 min"                  # if you want time to pass when no row comes; give run.trigger then

    [sink]                          # matches: parquet, json, postgres, kafka or console
    format = "postgres"
    table = "alerts"
    dsn = "host=db user=penstock password=${DB_PASSWORD}"   # ${NAME} is a variable of the environment

    [malformed]                     # rows that are no events, with the reason; and [late] likewise. Without these
    format = "json"                 # tables, such rows are only counted
    path = "malformed"

    [ended]                         # runs that ended without a match, if you want to see them: a sink as the others
    format = "parquet"
    path = "ended"

    [shedding]                      # keeps the latency bound; needs detect.arrival. [shed] is a sink for what goes
    bound = "2 s"
    strategy = "espice"             # see penstock.Shedding; random-event needs no model
    model = "model"                 # a folder that penstock train wrote
    drift = "matches"               # tells when it is out of date; or ADWIN, KSWIN, PageHinkley (of river), or none

    [run]
    checkpoint = "state"            # where a stream goes on from; mode = "batch" needs none
    trigger = "1 s"                 # or "available-now"; without it, one batch follows the other
    bound = "800 ms"                # the latency wished for, for the line on the terminal

    [spark]
    cores = 2
    conf = { spark.driver.memory = "4g" }

Of Kafka, a source has `servers`, `topic`, `schema` and `payload` ("json" or "binary"); a sink has `servers`, `topic`,
perhaps `key`, and `once = false` for Spark's own sink, which may write a batch twice.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError, model_validator

from penstock.errors import PenstockError, QueryError
from penstock.pattern import ast
from penstock.pattern.parser import parse
from penstock.spark.jobs.parts import AVAILABLE_NOW, Detection, Keeping, Part, Running, Sink, Source, SparkSettings
from penstock.spark.jobs.problems import describe, where
from penstock.spark.worker.results import ENDED, LATE, MALFORMED, MATCHES, SHED

_VARIABLE = re.compile(r"\$(\$?)\{(\w*)\}")
_REMOTE = re.compile(r"[A-Za-z][\w+.-]*:/")  # the scheme of another file system


class JobError(PenstockError):
    """A job file that cannot be used, with every place that is wrong and what may stand there."""


class Job(Part):
    """A pipeline; the tables are described in `penstock.spark.jobs.parts`.

    Examples:
        >>> Job.of({"source": {"format": "rate"}, "detect": {"query": "PATTERN A a WITHIN 1 s"}, "sink": {}})
        Traceback (most recent call last):
        penstock.spark.jobs.job.JobError: sink.format: is missing; write parquet, json, postgres, kafka or console
        run: is missing
    """

    source: Source
    detect: Detection
    sink: Sink
    late: Sink | None = None
    malformed: Sink | None = None
    shed: Sink | None = None
    ended: Sink | None = None
    shedding: Keeping | None = None
    run: Running
    spark: SparkSettings = SparkSettings()

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if self.detect.idle is not None and self.run.trigger == AVAILABLE_NOW:  # Spark would never end it
            raise ValueError('with trigger = "available-now" nobody waits for events; leave detect.idle out')
        return self

    @classmethod
    def of(cls, data: Mapping[str, Any], folder: str | Path = ".", name: str = "job") -> Self:
        """Check what a job file holds.

        Args:
            data: its tables.
            folder: what paths are relative to.
            name: what the stream is called, if the job does not say.

        Raises:
            JobError: with all that is wrong.
        """
        problems: list[str] = []
        filled = _filled(data, (), problems)
        if problems:
            raise JobError("\n".join(problems))
        try:
            job = cls.model_validate(_placed(filled, Path(folder).absolute()))
        except ValidationError as error:
            problems = [describe(each, data, cls) for each in error.errors(include_url=False)]
            raise JobError("\n".join(dict.fromkeys(problems))) from None
        run = job.run if job.run.name else job.run.model_copy(update={"name": name})
        return job.model_copy(update={"run": run})

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a job from a TOML file. Paths in it are relative to it; `${NAME}` is a variable of the environment.

        Raises:
            JobError: if there is no such file, if it is no TOML or no job.
        """
        path = Path(path)
        try:
            return cls.of(tomllib.loads(path.read_text(encoding="utf-8")), path.parent, path.stem)
        except OSError as error:
            raise JobError(f"{path}: cannot be read: {error.strerror or error}") from None
        except UnicodeDecodeError as error:
            raise JobError(f"{path}: is no UTF-8 text: {error.reason} at byte {error.start}") from None
        except tomllib.TOMLDecodeError as error:
            raise JobError(f"{path}: is no TOML: {error}") from None
        except JobError as error:
            raise JobError("\n".join(f"{path}: {line}" for line in str(error).splitlines())) from None

    def sinks(self) -> dict[str, Sink]:
        """Return the sinks by output."""
        given = {
            MATCHES: self.sink, LATE: self.late, MALFORMED: self.malformed, SHED: self.shed, ENDED: self.ended
        }  # fmt: skip
        return {output: sink for output, sink in given.items() if sink is not None}

    @property
    def bound_ms(self) -> float | None:
        """The latency to compare with, in milliseconds: the one to keep, or else the one that is wished for."""
        return self.run.bound_ms if self.shedding is None else self.shedding.bound_ms

    def queries(self) -> list[ast.Query]:
        """Read the queries. One of a file is called as the file, others as the run, with a number if there are several.

        Raises:
            QueryError: one of them is none.
            JobError: a file cannot be read.
        """
        return [self._parsed(name, place) for name, place in self._places().items()]

    def at_place(self, error: QueryError) -> QueryError:
        """Return an error of a query with the place of the query in the place of its name."""
        return QueryError(error.problems, error.source, self._places().get(error.name, error.name))

    def _places(self) -> dict[str, str]:
        """Return where the queries are, by their names."""
        if self.detect.query_file:
            return {Path(file).stem: file for file in self.detect.query_file}
        if len(self.detect.query) == 1:
            return {self.run.name: "detect.query"}
        return {f"{self.run.name}-{k + 1}": f"detect.query.{k}" for k in range(len(self.detect.query))}

    def _parsed(self, name: str, place: str) -> ast.Query:
        try:
            text = Path(place).read_text(encoding="utf-8-sig") if self.detect.query_file else self._text(place)
            return parse(text, name)
        except QueryError as error:
            raise self.at_place(error) from None
        except OSError as error:
            raise JobError(f"{place}: cannot be read: {error.strerror or error}") from None
        except UnicodeDecodeError as error:
            raise JobError(f"{place}: is no UTF-8 text: {error.reason} at byte {error.start}") from None

    def _text(self, place: str) -> str:
        number = place.rpartition(".")[2]
        return self.detect.query[int(number) if number.isdigit() else 0]


# --- variables and paths ----------------------------------------------------------------------------------------


def _filled(value: Any, place: tuple[str | int, ...], problems: list[str]) -> Any:
    """Return values with variables of the environment in the place of `${NAME}`; `$${NAME}` stays as `${NAME}`."""
    if isinstance(value, Mapping):
        return {name: _filled(each, (*place, name), problems) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, (*place, number), problems) for number, each in enumerate(value)]

    def fill(found: re.Match[str]) -> str:
        if found[1]:
            return found[0][1:]
        if found[2] not in os.environ:
            problems.append(f"{where(place)}: the environment has no variable {found[2]!r}")
        return os.environ.get(found[2], "")

    return _VARIABLE.sub(fill, value) if isinstance(value, str) else value


_PATHS = (
    ("source", "path"), ("sink", "path"), ("late", "path"), ("malformed", "path"), ("shed", "path"), ("ended", "path"),
    ("run", "checkpoint"), ("detect", "query_file"), ("shedding", "model"), ("spark", "jars"),
)  # fmt: skip


def _placed(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return a job with paths that do not hang on the folder of the process."""

    def placed(path: Any) -> Any:
        if isinstance(path, list):
            return [placed(each) for each in path]
        return str(folder / path) if isinstance(path, str) and not _REMOTE.match(path) else path

    for table, name in _PATHS:
        if isinstance(data.get(table), dict) and name in data[table]:
            data = {**data, table: {**data[table], name: placed(data[table][name])}}
    return data
