"""What is measured of a run, by the names that specs and results use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """A column of the results.

    Attributes:
        label: in a plot.
        is_share: whether it is shown in per cent.
        is_timed: whether it is measured by a real clock, and so differs from run to run.
    """

    label: str
    is_share: bool = False
    is_timed: bool = False


MEASURES: dict[str, Measure] = {
    "strict_fn": Measure("false negatives, strict", is_share=True),
    "strict_fp": Measure("false positives, strict", is_share=True),
    "relaxed_fn": Measure("false negatives, relaxed", is_share=True),
    "relaxed_fp": Measure("false positives, relaxed", is_share=True),
    "drop_ratio": Measure("dropped events or runs", is_share=True),
    "runs_dropped": Measure("dropped runs"),
    "overdue": Measure("events let go unseen", is_share=True),
    "latency_max": Measure("greatest latency (s)"),
    "latency_p50": Measure("median latency (s)"),
    "latency_p99": Measure("99 % of latencies below (s)"),
    "latency_p999": Measure("99.9 % of latencies below (s)"),
    "over_bound": Measure("events later than the bound", is_share=True),
    "match_probability": Measure("match probability", is_share=True),
    "truth": Measure("matches of the unshed run"),
    "events": Measure("events"),
    "pairs": Measure("events in windows"),
    "overhead": Measure("time of decisions", is_share=True, is_timed=True),
    "model_seconds": Measure("time to build the model (s)", is_timed=True),
    "run_seconds": Measure("time of the run (s)", is_timed=True),
}
"""`overdue` is a share of all events. Shares of matches are of the unshed run's, counted in windows that open once
the operator is late enough to shed."""

COUNTED = tuple(name for name, measure in MEASURES.items() if not measure.is_timed)
TIMED = tuple(name for name, measure in MEASURES.items() if measure.is_timed)
