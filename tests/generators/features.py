"""What a query uses of the language, by name, to count what random queries cover."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.pattern import ast

GROUPS: dict[type[ast.Node], str] = {
    ast.Sequence: "SEQ",
    ast.Conjunction: "AND",
    ast.Disjunction: "OR",
    ast.AnyOf: "ANY",
    ast.Repetition: "repetition",
    ast.Option: "option",
}
# What may not stand directly in what: the repetition or choice of something that can be nothing is refused.
IMPOSSIBLE = {"option in repetition", "option in ANY"}
NESTINGS = {f"{inner} in {outer}" for inner in GROUPS.values() for outer in GROUPS.values()} - IMPOSSIBLE
CONSTRUCTS = {
    "A", "A|B", "*", "SEQ", "AND", "OR", "ANY of all", "ANY of some", "event?", "group?",
    *(f"{what}{bounds}" for what in ("event", "group") for bounds in ("*", "+", "{n}", "{n,}", "{n,m}", "{0,m}")),
    "NOT first", "NOT between", "NOT last", "NOT with a condition", "NOT without conditions",
}  # fmt: skip
NEGATIONS = {f"NOT below {group}" for group in GROUPS.values()}
_SELECT = ("EACH", "EACH per variable", "FIRST", "LAST", "CUMULATIVE", "STRICT")
_STEPS = ("one after the other", "EVERY", "EVERY with gaps", "ON", "ON WHERE")
CLAUSES = {
    "WITHIN time", "WITHIN count", "PARTITION BY 0", "PARTITION BY 1", "PARTITION BY 2", "no WINDOW",
    *(f"WINDOW {unit} {step}" for unit in ("time", "count") for step in _STEPS),
    "DISTINCT", "not DISTINCT", "LIMIT", "no LIMIT", "RETURN", "no RETURN",
    *(f"SELECT {select}{window}" for select in _SELECT for window in ("", " WINDOW")),
    *(f"SELECT {select} CONSUME {consume}" for select in _SELECT for consume in ("NONE", "some", "ALL")),
    *(f"SELECT {policy} a" for policy in ("FIRST", "LAST", "CUMULATIVE")),
}  # fmt: skip
WORDS = {
    ".n", ".x", ".k", ".flag", ".ts", ".seq", ".type", "[None]", "[i]", "[i-1]", "[first]", "[last]", "[number]",
    "Number", "Duration", "Text", "Boolean", "Previous", "Remote", "Same", "SAME", "SAME of a function", "Minus",
    "+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "And", "Or", "Not",
    "IN ()", "NOT IN ()", "IN REMOTE", "NOT IN REMOTE",
    "COUNT", "SUM", "AVG", "MIN", "MAX", "aggregate of all", "aggregate i", "aggregate i-1",
    "abs()", "sqrt()", "floor()", "ceil()", "round()", "exp()", "ln()", "pow()", "sign()", "min()", "max()", "dist()",
    "half()", "near()",
}  # fmt: skip


def of_query(query: ast.Query) -> set[str]:
    """Return the constructs, policies and forms of windows that a query uses."""
    return {*of_pattern(query), *_of_clauses(query)}


def of_pattern(query: ast.Query) -> Iterator[str]:
    """Yield the constructs of a pattern and where its negations stand."""
    named = {name for each in ast.conjuncts(query.where) for name in ast.variables_of(each)}
    for path in _paths(query.pattern):
        node = path[-1]
        match node:
            case ast.Event(types=types):
                yield "*" if not types else "A|B" if len(types) > 1 else "A"
            case ast.AnyOf(count=count, parts=parts):
                yield "ANY of all" if count == len(parts) else "ANY of some"
            case ast.Repetition(part=part, low=low, high=high):
                yield f"{'event' if isinstance(part, ast.Event) else 'group'}{_bounds(low, high)}"
            case ast.Option(part=part):
                yield "event?" if isinstance(part, ast.Event) else "group?"
            case ast.Negation(event=event):
                yield from _of_negation(path)
                yield "NOT with a condition" if event.variable in named else "NOT without conditions"
            case _:
                yield GROUPS[type(node)]


def nestings(query: ast.Query) -> set[str]:
    """Return which groups stand directly in which."""
    pairs = (path[-2:] for path in _paths(query.pattern) if len(path) > 1)
    return {f"{GROUPS[type(b)]} in {GROUPS[type(a)]}" for a, b in pairs if type(b) in GROUPS and type(a) in GROUPS}


def words(query: ast.Query) -> set[str]:
    """Return what the conditions and columns of a query are made of."""
    conditions = [*ast.conjuncts(query.where), *(column.expression for column in query.returns)]
    if query.window and query.window.on and query.window.on.where:
        conditions += ast.conjuncts(query.window.on.where)
    return {word for each in conditions for node in ast.walk(each) for word in _words_of(node)}


def _paths(node: ast.Node, above: tuple[ast.Node, ...] = ()) -> Iterator[tuple[ast.Node, ...]]:
    """Yield every pattern below a node with those around it, outermost first."""
    path = (*above, node)
    yield path
    if not isinstance(node, ast.Negation):
        for child in ast.children(node):
            yield from _paths(child, path)


def _bounds(low: int, high: int | None) -> str:
    if high is None:
        return {0: "*", 1: "+"}.get(low, "{n,}")
    return "{0,m}" if low == 0 else "{n}" if low == high else "{n,m}"


def _of_negation(path: tuple[ast.Node, ...]) -> Iterator[str]:
    *above, sequence, negation = path
    assert isinstance(sequence, ast.Sequence)
    place = sequence.parts.index(negation)
    positive = [not isinstance(part, ast.Negation) for part in sequence.parts]
    yield "NOT first" if not any(positive[:place]) else "NOT last" if not any(positive[place:]) else "NOT between"
    for kind in (ast.Disjunction, ast.Conjunction, ast.AnyOf, ast.Repetition, ast.Option, ast.Sequence):
        if any(isinstance(node, kind) for node in above):
            yield f"NOT below {GROUPS[kind]}"


def _of_clauses(query: ast.Query) -> Iterator[str]:
    yield f"WITHIN {_unit(query.within)}"
    yield f"PARTITION BY {len(query.partition)}"
    window = query.window
    if window is None:
        yield "no WINDOW"
    else:
        step = "one after the other" if window.every is None else "EVERY"
        if window.every is not None and _amount(window.every) > _amount(window.length):
            step = "EVERY with gaps"
        if window.on is not None:
            step = "ON" if window.on.where is None else "ON WHERE"
        yield f"WINDOW {_unit(window.length)} {step}"
        yield "DISTINCT" if window.distinct else "not DISTINCT"
        yield "LIMIT" if query.limit else "no LIMIT"
    consumed = "ALL" if query.consume.all else "some" if query.consume.variables else "NONE"
    select = f"{query.select.policy}{' per variable' if query.select.variables else ''}"
    yield f"SELECT {select} CONSUME {consumed}"
    yield f"SELECT {select}{' WINDOW' if window else ''}"
    yield from (f"SELECT {each.policy} a" for each in query.select.variables)
    yield "RETURN" if query.returns else "no RETURN"


def _unit(span: ast.Span | None) -> str:
    return "time" if isinstance(span, ast.TimeSpan) else "count"


def _amount(span: ast.Span) -> int:
    return span.us if isinstance(span, ast.TimeSpan) else span.events


def _words_of(node: ast.Node) -> Iterator[str]:
    match node:
        case ast.Attribute(name=name, index=index):
            yield f".{name}"
            yield f"[{'number' if isinstance(index, int) else index}]"
        case ast.Aggregate(function=function, upto=upto):
            yield function
            yield f"aggregate {upto or 'of all'}"
        case ast.Call(function=name):
            yield f"{name}()"
        case ast.Arithmetic(operator=sign) | ast.Comparison(operator=sign):
            yield sign
        case ast.Membership(members=members, negated=negated):
            yield f"{'NOT ' if negated else ''}IN {'REMOTE' if isinstance(members, ast.Remote) else '()'}"
        case ast.SameKey(function=function):
            yield "SAME" if function is None else "SAME of a function"
        case _:
            yield type(node).__name__
