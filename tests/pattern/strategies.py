"""Random queries over the whole language, in every form that the parser can produce and in no other."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from penstock.pattern import ast
from penstock.pattern.tree_to_query import MAX_DIGITS, MAX_FLOAT, MAX_INTEGER
from penstock.pattern.variables import RESERVED

# --- names and literals -------------------------------------------------------------------------------------

# Words with a meaning somewhere in the language, letters that fold to ASCII ones, and what needs back quotes.
_WORDS = [
    *RESERVED, "a", "b", "x", "price", "i", "I", "first", "Last", "each", "all", "none", "zero", "by", "per", "events",
    "min", "s", "d", "k", "M", "e5", "prev_", "sum", "COUNT", "ts", "_", "été", "ſEQ", "ıN", "K", "²", "BRK.B", "a b",
    "5", "5 min", "-", "--", "#", "``", "`", "'", '"', "a`b", "[]", "\t", "\x0b", "\x0c", "\x00", "\u2028", "\x85", "*",
    "×", "∧", "¬a", "a\\", "<b>", "a&b", "&lt;",
]  # fmt: skip

_letters = st.text("abcXYZ_", min_size=1, max_size=3)
_wild = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1, max_size=4)
names: SearchStrategy[str] = _letters | st.sampled_from(sorted(_WORDS)).flatmap(
    lambda word: st.sampled_from([word, word.lower(), word.title()])
) | _wild  # fmt: skip
function_names = names.filter(lambda name: name.lower() != "prev")
counts = st.integers(1, 5) | st.integers(1, MAX_INTEGER)
microseconds = (
    st.integers(0, 100)
    | st.integers(0, MAX_INTEGER)
    | st.builds(int.__mul__, st.integers(0, 999), st.sampled_from([1_000, 1_000_000, 60_000_000, 86_400_000_000]))
)
numbers: SearchStrategy[int | float] = (
    st.integers(0, 20)
    | st.integers(0, 10**MAX_DIGITS - 1)
    | st.floats(0, MAX_FLOAT, allow_nan=False).map(abs)  # abs: the minus of -0.0 is no part of a number
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["'", "''", '"', "\n", "--", "`"]
)

# --- patterns -----------------------------------------------------------------------------------------------


def _event(types: list[str], variable: str, named_after_type: bool) -> ast.Event:
    return ast.Event(tuple(types), types[0] if types and named_after_type else variable)


events = st.builds(_event, st.lists(names, max_size=3), names, st.booleans())


def _repetition(part: ast.Pattern, low: int, more: int | None) -> ast.Repetition:
    high = None if more is None else min(max(low + more, 1), MAX_INTEGER)
    return ast.Repetition(part, low, high)


def _composed(parts: SearchStrategy[ast.Pattern]) -> SearchStrategy[ast.Pattern]:
    some = st.lists(parts, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(ast.Sequence, some),
        st.builds(ast.Conjunction, some),
        st.builds(ast.Disjunction, some),
        st.builds(ast.AnyOf, counts, some),
        st.builds(_repetition, parts, st.integers(0, 3) | counts, st.none() | st.integers(0, 3) | counts),
        st.builds(ast.Option, parts),
    )


patterns: SearchStrategy[ast.Pattern] = st.recursive(events | st.builds(ast.Negation, events), _composed, max_leaves=6)

# --- expressions --------------------------------------------------------------------------------------------

_index_words: list[ast.Index] = [None, "i", "i-1", "first", "last"]
indices: SearchStrategy[ast.Index] = st.sampled_from(_index_words) | counts
attributes = st.builds(ast.Attribute, names, names, indices)
_ranges: SearchStrategy[Any] = st.sampled_from(["", "i", "i-1"])
_aggregates = st.builds(
    ast.Aggregate, st.sampled_from(["COUNT", "SUM", "AVG", "MIN", "MAX"]), names, names, _ranges
) | st.builds(ast.Aggregate, st.just("COUNT"), names, st.none(), _ranges)
_same = st.builds(
    ast.Same, st.lists(st.builds(ast.SameKey, names, st.none() | names), min_size=1, max_size=3).map(tuple)
)
atoms: SearchStrategy[ast.Expression] = st.one_of(
    st.builds(ast.Number, numbers),
    st.builds(ast.Duration, microseconds),
    st.builds(ast.Text, texts),
    st.builds(ast.Boolean, st.booleans()),
    attributes,
    _aggregates,
    st.builds(ast.Previous, attributes),
    _same,
)


def _operations(parts: SearchStrategy[ast.Expression]) -> SearchStrategy[ast.Expression]:
    two_or_more = st.lists(parts, min_size=2, max_size=3).map(tuple)
    remote = st.builds(ast.Remote, names, parts, st.none() | names)
    members = st.lists(parts, min_size=1, max_size=3).map(tuple) | remote
    return st.one_of(
        remote,
        st.builds(ast.Call, function_names, st.lists(parts, max_size=3).map(tuple)),
        st.builds(ast.Minus, parts),
        st.builds(ast.Arithmetic, st.sampled_from(["+", "-", "*", "/", "%"]), parts, parts),
        st.builds(ast.Comparison, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), parts, parts),
        st.builds(ast.Membership, parts, members, st.booleans()),
        st.builds(ast.And, two_or_more),
        st.builds(ast.Or, two_or_more),
        st.builds(ast.Not, parts),
    )


expressions: SearchStrategy[ast.Expression] = st.recursive(atoms, _operations, max_leaves=8)

# --- clauses ------------------------------------------------------------------------------------------------

spans: SearchStrategy[ast.Span] = st.builds(ast.TimeSpan, microseconds) | st.builds(ast.CountSpan, counts)
_openings = st.builds(ast.Opening, events, st.none() | expressions)
windows = st.builds(ast.Window, spans, st.none() | spans, st.none(), st.booleans()) | st.builds(
    ast.Window, spans, st.none(), _openings, st.booleans()
)
policies = st.sampled_from(ast.Policy)
selects = st.builds(
    ast.Select, policies, st.lists(st.builds(ast.SelectVariable, policies, names), max_size=2).map(tuple)
)
_name_nodes = st.lists(st.builds(ast.Name, names), min_size=1, max_size=3).map(tuple)
consumes = st.builds(ast.Consume, st.booleans(), st.just(())) | st.builds(ast.Consume, st.just(False), _name_nodes)
_returns = st.lists(st.builds(ast.Return, expressions, st.none() | names), max_size=2).map(tuple)

queries: SearchStrategy[ast.Query] = st.builds(
    ast.Query,
    pattern=patterns,
    where=st.none() | expressions,
    within=st.none() | spans,
    partition=st.just(()) | _name_nodes,
    window=st.none() | windows,
    limit=st.none() | counts,
    select=st.just(ast.Select()) | selects,
    consume=st.just(ast.Consume()) | consumes,
    returns=_returns,
    name=st.none() | st.just("q"),
)
