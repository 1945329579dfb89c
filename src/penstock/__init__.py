"""Complex event processing that keeps its latency bound.

Examples:
    >>> import penstock as pk
    >>> from penstock.testing import stream
    >>> query = pk.parse("PATTERN SEQ(A a, B b) WHERE a.v < b.v WITHIN 1 min")
    >>> [match.bindings for match in pk.reference.find(query, stream("A1(v=3) B2(v=2) B3(v=5)"))]
    [(('a', (1,)), ('b', (3,)))]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock import reference
    from penstock.engine.answers import PENDING, MustBlockError, StillPendingError
    from penstock.engine.batches import BatchError
    from penstock.engine.engine import Engine, EngineError
    from penstock.engine.functions import FunctionError, SlowFunctionWarning
    from penstock.engine.hooks import HookError, Hooks
    from penstock.engine.matcher import TooManyRunsError
    from penstock.engine.matches import Matches
    from penstock.engine.snapshots import SnapshotError
    from penstock.errors import PenstockError, QueryError, SchemaError
    from penstock.pattern.ast import Query
    from penstock.pattern.builder import (
        BuilderError,
        all_of,
        any_of,
        average,
        call,
        count,
        duration,
        event,
        literal,
        maximum,
        minimum,
        one_of,
        prev,
        query,
        remote,
        same,
        seq,
        total,
        window,
    )  # fmt: skip
    from penstock.pattern.parser import parse
    from penstock.pattern.render import render
    from penstock.pattern.schema import Schema
    from penstock.pattern.validate import validate
    from penstock.shedding.configuration import Shedding

__all__ = [
    "PENDING", "BatchError", "BuilderError", "Engine", "EngineError", "FunctionError", "HookError", "Hooks", "Matches",
    "MustBlockError", "PenstockError", "Query", "QueryError", "Schema", "SchemaError", "Shedding",
    "SlowFunctionWarning", "SnapshotError", "StillPendingError", "TooManyRunsError", "all_of", "any_of",
    "average", "call", "count", "duration", "event", "literal", "maximum", "minimum", "one_of",
    "parse", "prev", "query", "reference", "remote", "render", "same", "seq", "total", "validate", "window",
]  # fmt: skip

# Where each name comes from. It is loaded at first use: a program pays only for what it uses.
_ELSEWHERE = {
    "PENDING": "penstock.engine.answers",
    "BatchError": "penstock.engine.batches",
    "Engine": "penstock.engine.engine",
    "EngineError": "penstock.engine.engine",
    "FunctionError": "penstock.engine.functions",
    "HookError": "penstock.engine.hooks",
    "Hooks": "penstock.engine.hooks",
    "Matches": "penstock.engine.matches",
    "MustBlockError": "penstock.engine.answers",
    "PenstockError": "penstock.errors",
    "Query": "penstock.pattern.ast",
    "QueryError": "penstock.errors",
    "Schema": "penstock.pattern.schema",
    "SchemaError": "penstock.errors",
    "Shedding": "penstock.shedding.configuration",
    "SlowFunctionWarning": "penstock.engine.functions",
    "SnapshotError": "penstock.engine.snapshots",
    "StillPendingError": "penstock.engine.answers",
    "TooManyRunsError": "penstock.engine.matcher",
    "parse": "penstock.pattern.parser",
    "render": "penstock.pattern.render",
    "validate": "penstock.pattern.validate",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    if name == "reference":
        return import_module("penstock.reference")
    return getattr(import_module(_ELSEWHERE.get(name, "penstock.pattern.builder")), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
