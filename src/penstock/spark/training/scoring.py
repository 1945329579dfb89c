"""`score`: how good matches are against the truth, counted where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from penstock.errors import PenstockError
from penstock.reference.quality import Mode, Quality
from penstock.spark.columns import quoted
from penstock.spark.outputs import output
from penstock.spark.worker.results import MATCHES, OUTPUT

_TRUTH, _FOUND, _STRICT, _RELAXED = "truth", "found", "strict", "relaxed"


class ScoreError(PenstockError):
    """Frames that cannot be compared as matches."""


@dataclass(frozen=True)
class Counts:
    """Matches of one query, each counted as often as it is there.

    Attributes:
        truth: that should have been found.
        found: that were found.
        strict: that are in both: with the same keys, window, and events for each variable.
        relaxed: that are in both if any match with the same keys and window will do.
    """

    truth: int
    found: int
    strict: int
    relaxed: int

    def true_positives(self, mode: Mode = "strict") -> int:
        """Return how many are in both."""
        return self.strict if mode == "strict" else self.relaxed

    def false_negatives(self, mode: Mode = "strict") -> int:
        """Return how many were missed."""
        return self.truth - self.true_positives(mode)

    def false_positives(self, mode: Mode = "strict") -> int:
        """Return how many were invented."""
        return self.found - self.true_positives(mode)


@dataclass(frozen=True)
class Score:
    """The quality of matches.

    Attributes:
        strict: a match is the same if query, keys, window and bound events are; weighted sums over the queries.
        relaxed: if query, keys and window are, counted with multiplicity; likewise.
        queries: what was counted for each query, by name, without weights.
    """

    strict: Quality
    relaxed: Quality
    queries: Mapping[str | None, Counts]


def score(
    truth: DataFrame,
    found: DataFrame,
    *,
    keys: str | Sequence[str] | None = None,
    weights: Mapping[str | None, float] | None = None,
    seq: str | None = None,
) -> Score:
    """Compare matches with the truth, such as those without shedding on the same events.

    Both frames are what `detect` gives, perhaps written and read again. A match that is there twice counts twice. Spark
    groups by the values themselves, so nothing depends on hashes, and what comes to the driver is a row for each query.

    Args:
        truth: the matches that should be found.
        found: those to judge.
        keys: the columns of the keys; those between `query` and `window`, where `detect` puts them, if not given.
        weights: how much a match counts, by the name of its query; 1 where none is given.
        seq: the field of an event that tells it from others: its number. Without it, events are compared whole; with
            it, less is compared, and matches may hold different things of the same events.

    Raises:
        ScoreError: the frames are no matches, or not of the same kind.

    Examples:
        >>> from penstock.spark.training.scoring import score
        >>> def loss(truth, found):
        ...     return 1 - score(truth, found, seq="id", weights={"fraud": 3.0}).strict.score
    """
    counts = {
        row["query"]: Counts(*(int(row[name]) for name in (_TRUTH, _FOUND, _STRICT, _RELAXED)))
        for row in scored(truth, found, keys=keys, seq=seq).collect()
    }
    return Score(_quality(counts, weights or {}, "strict"), _quality(counts, weights or {}, "relaxed"), counts)


def _quality(counts: Mapping[str | None, Counts], weights: Mapping[str | None, float], mode: Mode) -> Quality:
    """Add up the counts of queries by their weights (thesis, equations 2.1 and 2.2)."""
    pairs = [(weights.get(name, 1.0), each) for name, each in counts.items()]
    return Quality(
        truth=float(sum(weight * each.truth for weight, each in pairs)),
        found=float(sum(weight * each.found for weight, each in pairs)),
        false_negatives=float(sum(weight * each.false_negatives(mode) for weight, each in pairs)),
        false_positives=float(sum(weight * each.false_positives(mode) for weight, each in pairs)),
    )


def scored(
    truth: DataFrame, found: DataFrame, *, keys: str | Sequence[str] | None = None, seq: str | None = None
) -> DataFrame:
    """Return a frame with a row for each query: `query`, and how many matches are in the truth, found, and in both.

    The columns are those of `Counts`; the arguments are those of `score`.
    """
    truth, found = _matches(truth, "truth"), _matches(found, "found")
    names = _keys(truth) if keys is None else [keys] if isinstance(keys, str) else list(keys)
    window = ["query", *names, "window"]
    variables = list(dict.fromkeys([*_variables(truth, window), *_variables(found, window)]))
    types = _types(truth, found, window, variables, seq)
    sides = [
        frame.select(
            *(_column(frame, name, kind, seq).alias(f"_{place}") for place, (name, kind) in enumerate(types.items())),
            sf.lit(int(is_truth)).alias(_TRUTH), sf.lit(int(not is_truth)).alias(_FOUND),
        )
        for frame, is_truth in ((truth, True), (found, False))
    ]  # fmt: skip
    both = sides[0].unionByName(sides[1])
    places = [f"_{place}" for place in range(len(types))]
    same = sf.least(_TRUTH, _FOUND)
    matches = both.groupBy(*places).agg(*_sums(_TRUTH, _FOUND)).withColumn(_STRICT, same)
    windows = matches.groupBy(*places[: len(window)]).agg(*_sums(_TRUTH, _FOUND, _STRICT)).withColumn(_RELAXED, same)
    queries = windows.groupBy(places[0]).agg(*_sums(_TRUTH, _FOUND, _STRICT, _RELAXED))
    return queries.withColumnRenamed(places[0], "query")


def _sums(*names: str) -> list[Column]:
    return [sf.sum(name).alias(name) for name in names]


def _matches(frame: DataFrame, role: str) -> DataFrame:
    """Return the matches of a frame, which may have other outputs, too."""
    if frame.isStreaming:
        raise ScoreError(f"{role} is a stream\n  fix: write it, and read it as a batch: spark.read")
    missing = [name for name in ("query", "window") if name not in frame.columns]
    if missing:
        raise ScoreError(
            f"{role} is no frame of matches: it has no column {', '.join(missing)}\n  fix: give what detect returned"
        )
    return output(frame, MATCHES) if OUTPUT in frame.columns else frame


def _keys(frame: DataFrame) -> list[str]:
    names = frame.columns
    return names[names.index("query") + 1 : names.index("window")]


def _variables(frame: DataFrame, others: Sequence[str]) -> list[str]:
    """Return the columns with the events of a variable: arrays of structs."""
    fields = [field for field in frame.schema.fields if field.name not in others]
    return [field.name for field in fields if _event(field.dataType) is not None]


def _event(data_type: st.DataType) -> st.StructType | None:
    if isinstance(data_type, st.ArrayType) and isinstance(data_type.elementType, st.StructType):
        return data_type.elementType
    return None


def _types(
    truth: DataFrame, found: DataFrame, window: Sequence[str], variables: Sequence[str], seq: str | None
) -> dict[str, st.DataType]:
    """Return the columns that make a match what it is, with the types that they have in both frames.

    Raises:
        ScoreError: they have different types.
    """
    chosen: dict[str, st.DataType] = {}
    for name in [*window, *variables]:
        here = [_type(frame, name, seq) for frame in (truth, found) if name in frame.columns]
        if name in window and len(here) < 2:
            raise ScoreError(f"only one of the frames has the key {name}\n  fix: score(…, keys=…)")
        spelled = [each.simpleString() for each in here]  # without regard to whether values may be null
        if len(set(spelled)) > 1:
            told = " and ".join(spelled)
            fix = "score(…, seq=…) compares events by their number" if seq is None else "cast one of them to the other"
            raise ScoreError(f"{name} is {told}\n  fix: {fix}")
        chosen[name] = here[0]
    return chosen


def _type(frame: DataFrame, name: str, seq: str | None) -> st.DataType:
    kind = frame.schema[name].dataType
    event = _event(kind)
    if event is None or seq is None:
        return kind
    if seq not in event.names:
        known = ", ".join(map(repr, event.names))
        raise ScoreError(f"the events of {name} have no {seq!r}\n  fix: seq= one that they have: {known}")
    return st.ArrayType(event[seq].dataType)


def _column(frame: DataFrame, name: str, kind: st.DataType, seq: str | None) -> Column:
    """Return what is compared of a column; null if the frame does not have it: it has no query with the variable."""
    if name not in frame.columns:
        return sf.lit(None).cast(kind)
    if seq is None or _event(frame.schema[name].dataType) is None:
        return quoted(name)
    return sf.transform(quoted(name), lambda event: event[seq])
