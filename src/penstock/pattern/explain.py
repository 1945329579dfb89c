"""A query in words: what its variables are, where its conditions are checked, what its clauses ask for.

`explain_json` gives the facts, `explain` the same facts for people. Neither says how an engine finds the matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from penstock.pattern import ast
from penstock.pattern.references import Reference, groups_of, references
from penstock.pattern.render import quote_name, render, render_expression, render_pattern, render_span, render_window
from penstock.pattern.variables import ANY_TYPE, Variable, variables

if TYPE_CHECKING:
    from penstock.pattern.schema import Schema  # it loads pydantic, which takes a tenth of a second

_SELECTIONS = {
    ast.Policy.EACH: "every assignment that satisfies the query, once",
    ast.Policy.FIRST: "a run for each possible first event; at each step it takes the first event that fits",
    ast.Policy.STRICT: "as FIRST, and a run ends at the first event that it does not take",
    ast.Policy.LAST: "for each event that completes a match, the latest match that ends there",
    ast.Policy.CUMULATIVE: "for each event that completes a match, one match with all events of those that end there",
}


def explain(query: ast.Query, schema: Schema | None = None) -> str:
    """Describe a query in words.

    Args:
        query: a query in which `validate` finds no problem.
        schema: if given, attributes are shown with their types.

    Examples:
        >>> from penstock.pattern.parser import parse
        >>> print(explain(parse("PATTERN SEQ(A a, NOT B b, C+ c[]) WHERE a.v < c[i].v AND b.v > 3 WITHIN 5 min")))
        PATTERN SEQ(A a, NOT B b, C+ c[])
        WHERE a.v < c[i].v AND b.v > 3
        WITHIN 5 min
        <BLANKLINE>
        Variables
          a    one event of type A; v
          b    no event of type B; v
          c[]  a list of events of type C; v
        <BLANKLINE>
        Conditions
          a.v < c[i].v  at c, for each element
          b.v > 3       says which b forbid the match
        <BLANKLINE>
        Clauses
          WITHIN   from the first to the last event of a match at most 5 min
          SELECT   EACH: every assignment that satisfies the query, once
          CONSUME  NONE: an event may be in any number of matches
    """
    facts = explain_json(query, schema)
    sections = [
        ("Variables", [(_heading(each), _variable_words(each)) for each in facts["variables"]]),
        ("Conditions", [(each["text"], each["checked"]) for each in facts["conjuncts"]]),
        ("Clauses", list(_clauses(query))),
    ]
    return "\n\n".join([facts["query"], *(_section(title, rows) for title, rows in sections if rows)])


def explain_json(query: ast.Query, schema: Schema | None = None) -> dict[str, Any]:
    """Return the facts that `explain` puts into words, as plain values that JSON can hold.

    Args:
        query: a query in which `validate` finds no problem.
        schema: if given, attributes have their types instead of null.

    Examples:
        >>> from penstock.pattern.parser import parse
        >>> facts = explain_json(parse("PATTERN SEQ(A a, B b) WHERE a.v < b.v WITHIN 5 s"))
        >>> facts["variables"][0]
        {'name': 'a', 'types': ['A'], 'list': False, 'negated': False, 'optional': False, 'attributes': {'v': None}}
        >>> facts["conjuncts"]
        [{'text': 'a.v < b.v', 'variables': ['a', 'b'], 'checked_at': ['b'], 'checked': 'at b'}]
    """
    scope = variables(query.pattern)
    optional, used = set(_optional(query.pattern, False)), _attributes(query, scope)
    return {
        "name": query.name,
        "query": render(query),
        "variables": [_variable(name, scope[name], used[name], name in optional, schema) for name in scope],
        "conjuncts": [_conjunct(each, query.pattern, scope) for each in ast.conjuncts(query.where)],
        "within": _span(query.within),
        "partition": [each.text for each in query.partition],
        "window": _window(query.window),
        "limit": query.limit,
        "select": {"policy": query.select.policy, "variables": {v.variable: v.policy for v in query.select.variables}},
        "consume": {"all": query.consume.all, "variables": [each.text for each in query.consume.variables]},
        "returns": [{"name": each.name or text, "text": text} for each, text in _returns(query)],
    }


# --- facts --------------------------------------------------------------------------------------------------


def _variable(
    name: str, variable: Variable, attributes: Iterable[str], optional: bool, schema: Schema | None
) -> dict[str, Any]:
    types = variable.event.types
    return {
        "name": name,
        "types": list(types),
        "list": variable.is_list,
        "negated": variable.negated,
        "optional": optional,
        "attributes": {each: schema and schema.attribute(types[0] if types else ANY_TYPE, each) for each in attributes},
    }


def _attributes(query: ast.Query, scope: Iterable[str]) -> dict[str, dict[str, None]]:
    """Return, per variable, the attributes that the query asks for, each once."""
    used = {name: dict.fromkeys(each.text for each in query.partition) for name in scope}
    for expression in (*ast.conjuncts(query.where), *(each.expression for each in query.returns)):
        if isinstance(expression, ast.Same):
            for attributes in used.values():
                attributes.update(dict.fromkeys(key.attribute for key in expression.keys))
        for ref in references(expression):
            if ref.name is not None:
                used[ref.variable][ref.name] = None
    return used


def _optional(node: ast.Node, optional: bool) -> Iterator[str]:
    """Yield the variables that a match may leave unbound."""
    if isinstance(node, ast.Event) and optional:
        yield node.variable
    match node:
        case ast.Option() | ast.Disjunction():
            optional = True
        case ast.AnyOf(count=count, parts=parts):
            optional = optional or count < len(parts)
    for child in ast.children(node):
        yield from _optional(child, optional)


def _conjunct(conjunct: ast.Expression, pattern: ast.Pattern, scope: dict[str, Variable]) -> dict[str, Any]:
    mentioned = ast.variables_of(conjunct)
    named = [name for name in scope if name in mentioned]
    negated = [name for name in named if scope[name].negated]
    if isinstance(conjunct, ast.Same):
        named = list(scope)
        at, words = named, "at every variable: equal for all events of a match"
    elif negated:
        at, words = negated, f"says which {negated[0]} forbid the match"
    elif _exclusive(pattern, named):
        at, words = [], "never: it names variables of different branches of OR"
    else:
        at = _last(pattern, _current(conjunct, named, scope))
        words = _place(conjunct, at, scope)
    return {"text": render_expression(conjunct), "variables": named, "checked_at": at, "checked": words}


def _place(conjunct: ast.Expression, at: Sequence[str], scope: dict[str, Variable]) -> str:
    if not at:
        return "at once: it names no event"
    growing = {group for name in at for group in scope[name].groups}
    refs = [ref for ref in references(conjunct) if growing & set(scope[ref.variable].groups)]
    one = len(at) == 1
    place = f"at {at[0]}" if one else f"when {' and '.join(at)} are bound"
    if any(_needs_all(ref) for ref in refs):
        return f"{place}{', when' if one else ' and'} no more elements can come"
    return f"{place}, for each element" if any(groups_of(ref, scope[ref.variable]) for ref in refs) else place


def _needs_all(ref: Reference) -> bool:
    return not ref.upto if isinstance(ref, ast.Aggregate) else ref.index == "last"


def _current(conjunct: ast.Expression, named: Sequence[str], scope: dict[str, Variable]) -> list[str]:
    """Return the variables of a conjunct without those of which it names only elements of an earlier round."""
    now = {ref.variable for ref in references(conjunct) if not _is_before(ref)}
    growing = {group for name in now for group in scope[name].groups}
    return [name for name in named if name in now or not growing & set(scope[name].groups)]


def _is_before(ref: Reference) -> bool:
    return (ref.upto if isinstance(ref, ast.Aggregate) else ref.index) == "i-1"


def _last(pattern: ast.Pattern, named: Sequence[str]) -> list[str]:
    """Return those of some variables, in the order of the text, that no sequence puts before another of them."""
    return [
        name
        for number, name in enumerate(named)
        if not any(isinstance(_meeting(pattern, name, later), ast.Sequence) for later in named[number + 1 :])
    ]


def _exclusive(pattern: ast.Pattern, named: Sequence[str]) -> bool:
    pairs = ((one, other) for number, one in enumerate(named) for other in named[number + 1 :])
    return any(isinstance(_meeting(pattern, *pair), ast.Disjunction) for pair in pairs)


def _meeting(pattern: ast.Node, one: str, other: str) -> ast.Node:
    """Return the smallest part of a pattern that holds two variables."""
    for child in ast.children(pattern):
        held = {each.variable for each in ast.walk(child) if isinstance(each, ast.Event)}
        if {one, other} <= held:
            return _meeting(child, one, other)
    return pattern


def _span(span: ast.Span | None) -> dict[str, int] | None:
    if span is None:
        return None
    return {"us": span.us} if isinstance(span, ast.TimeSpan) else {"events": span.events}


def _window(window: ast.Window | None) -> dict[str, Any] | None:
    if window is None:
        return None
    return {
        "text": render_window(window),
        "length": _span(window.length),
        "every": _span(window.every),
        "on": window.on and render_pattern(window.on.event),
        "where": window.on and window.on.where and render_expression(window.on.where),
        "distinct": window.distinct,
    }


def _returns(query: ast.Query) -> list[tuple[ast.Return, str]]:
    return [(each, render_expression(each.expression)) for each in query.returns]


# --- words --------------------------------------------------------------------------------------------------


def _section(title: str, rows: Sequence[tuple[str, str]]) -> str:
    width = min(max(len(left) for left, _ in rows), 60)
    return "\n".join([title, *(f"  {left:<{width}}  {right}" for left, right in rows)])


def _heading(variable: dict[str, Any]) -> str:
    return quote_name(variable["name"]) + "[]" * (variable["list"] and not variable["negated"])


def _variable_words(variable: dict[str, Any]) -> str:
    kind = f"of type {' or '.join(variable['types'])}" if variable["types"] else "of any type"
    what = "no event" if variable["negated"] else "a list of events" if variable["list"] else "one event"
    unbound = ", may be unbound" if variable["optional"] and not variable["negated"] else ""
    used = [name if type_ is None else f"{name} ({type_})" for name, type_ in variable["attributes"].items()]
    return f"{what} {kind}{unbound}" + ("; " + ", ".join(used) if used else "")


def _clauses(query: ast.Query) -> Iterator[tuple[str, str]]:
    if query.within is not None:
        yield "WITHIN", _within_words(query.within)
    if query.partition:
        names = ", ".join(each.text for each in query.partition)
        yield "PARTITION BY", f"each {names} is matched as if it were the only one"
    if query.window is not None:
        yield "WINDOW", _window_words(query.window)
    if query.limit is not None:
        yield "LIMIT", f"of each window the first {query.limit} to be known"
    yield "SELECT", f"{query.select.policy}: {_SELECTIONS[query.select.policy]}"
    if query.select.variables:
        kept = ", ".join(_kept(each) for each in query.select.variables)
        yield "", f"of those that agree on their last event and all other variables: {kept}"
    yield "CONSUME", _consume_words(query.consume)
    if query.returns:
        yield "RETURN", ", ".join(each.name or text for each, text in _returns(query))


def _kept(each: ast.SelectVariable) -> str:
    return f"{'all' if each.policy is ast.Policy.CUMULATIVE else f'the {each.policy.lower()}'} {each.variable}"


def _within_words(within: ast.Span) -> str:
    if isinstance(within, ast.CountSpan):
        return f"all events of a match in {within.events} consecutive events"
    return f"from the first to the last event of a match at most {render_span(within)}"


def _window_words(window: ast.Window) -> str:
    length = render_span(window.length).replace("EVENTS", "events")
    if window.on is not None:
        where = f" with {render_expression(window.on.where)}" if window.on.where is not None else ""
        words = f"{length}, from each {render_pattern(window.on.event)}{where}"
    elif window.every is not None:
        words = f"{length}, one every {render_span(window.every).replace('EVENTS', 'events')}"
    else:
        words = f"{length}, one after the other"
    return words + ("; a match in several windows counts once, in the earliest" if window.distinct else "")


def _consume_words(consume: ast.Consume) -> str:
    if consume.all:
        return "ALL: an event is in at most one match"
    if consume.variables:
        names = ", ".join(each.text for each in consume.variables)
        return f"{names}: an event bound there is in at most one match"
    return "NONE: an event may be in any number of matches"
