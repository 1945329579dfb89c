"""Any query is valid or told what is wrong with it; nothing else comes out of `validate`."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from penstock.errors import QueryError
from penstock.pattern.parser import parse
from penstock.pattern.schema import Schema
from penstock.pattern.validate import problems, validate

SCHEMA = Schema.read(Path(__file__).parent / "golden_validate" / "rules.toml")


def one(words: str) -> SearchStrategy[str]:
    """Draw one of the words; _ is the empty one."""
    return st.sampled_from([word.replace("_", "") for word in words.split()])


def filled(form: str, *parts: SearchStrategy[str]) -> SearchStrategy[str]:
    return st.builds(form.format, *parts)


variables, types = one("a b c A q"), one("A B C D A|C *")
attributes = one("x y name flag took at odd ts type only limit z")
patterns = st.recursive(
    filled("{}{} {}", types, one("_ _ ?"), variables)
    | filled("{}{} {}[]", types, one("+ * {2,3}"), variables)
    | filled("NOT {} {}", types, variables),
    lambda inner: st.builds(
        lambda form, parts: form.format(", ".join(parts)),
        st.sampled_from(["SEQ({})", "SEQ({})", "AND({})", "OR({})", "ANY(2, {})", "(SEQ({}))+", "(SEQ({}))?"]),
        st.lists(inner, min_size=1, max_size=4),
    ),
    max_leaves=6,
)
values = st.recursive(
    filled("{}{}.{}", variables, one("_ _ [i] [i-1] [last] [2]"), attributes)
    | filled("{}({}[{}].{})", one("SUM COUNT AVG"), variables, one("_ ..i"), attributes)
    | filled("prev({}.{})", variables, attributes)
    | st.sampled_from(["1", "0", "2.5", "5 min", "'x'", "'7'", "TRUE"]),
    lambda inner: (
        filled("({} {} {})", inner, one("+ - * / %"), inner)
        | filled("{}({})", one("abs near cell foo min -"), inner)
        | filled("REMOTE[{}, {}]{}", one("places limits cards x"), inner, one("_ .limit"))
    ),
    max_leaves=4,
)
conditions = st.recursive(
    filled("{} {} {}", values, one("= <> <"), values)
    | filled("{} IN ({}, {})", values, values, values)
    | filled("{} NOT IN REMOTE[places, {}]", values, values)
    | one("SAME[x] SAME[cell(name),odd] SAME[foo(z)]")
    | values,
    lambda inner: filled("({} AND {})", inner, inner) | filled("({} OR {})", inner, inner) | filled("NOT {}", inner),
    max_leaves=4,
)
openings = filled("ON {} c WHERE {}", types, conditions) | st.sampled_from(["", "EVERY 1 s"])
queries = filled(
    "PATTERN {} WHERE {} {} {} {} {} {} {} {}",
    patterns,
    conditions,
    st.sampled_from(["", "WITHIN 5 s", "WITHIN 0 s", "WITHIN 5 EVENTS"]),
    st.sampled_from(["", "PARTITION BY x", "PARTITION BY id, only"]),
    filled("WINDOW {} {}", st.sampled_from(["0 s", "5 s", "5 EVENTS"]), openings) | st.just(""),
    st.sampled_from(["", "LIMIT 1 PER WINDOW"]),
    st.sampled_from(["", "SELECT FIRST, LAST a", "SELECT EACH, STRICT b, LAST b"]),
    st.sampled_from(["", "CONSUME a, q"]),
    filled("RETURN {}, {}", values, conditions) | st.just(""),
)


@given(queries, st.sampled_from([None, SCHEMA]))
@settings(max_examples=100, deadline=None)
@example("PATTERN SEQ(A a, B+ b[]) WHERE a.x < b.x, SAME[id] WITHIN 5 s RETURN a.x", SCHEMA)
@example("PATTERN A a WHERE a.x > 1 LIMIT 1 PER -- why\nWINDOW", None)
def test_any_query_is_valid_or_told_what_is_wrong(text: str, schema: Schema | None) -> None:
    try:
        query = parse(text)
    except QueryError:
        return
    found = problems(query, schema)
    assert list(found) == sorted(found, key=lambda each: each.position.start)
    assert all(0 <= each.position.start <= len(text) and each.fix for each in found)
    if found:
        with pytest.raises(QueryError):
            validate(query, schema)
    else:
        validate(query, schema)
