"""Query to text, in one canonical form: a clause per line, prefix patterns, no needless parentheses.

`parse(render(query), query.name) == query` for every query that the parser can produce, as long as the
canonical text is no longer than `parser.MAX_LENGTH`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from penstock.pattern import ast
from penstock.pattern.variables import RESERVED

# How strongly an expression holds together; an operand that holds less than its place asks for is parenthesised.
_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _UNARY, _ATOM = range(8)

_UNITS_US = {
    "w": 604_800_000_000, "d": 86_400_000_000, "h": 3_600_000_000, "min": 60_000_000, "s": 1_000_000, "ms": 1_000,
}  # fmt: skip
_PLAIN = re.compile(r"[^\W\d]\w*")
_CONSUME_WORDS = {"ALL", "NONE", "ZERO"}  # keywords after CONSUME only


def render(query: ast.Query) -> str:
    """Return the canonical text of a query.

    Args:
        query: from `parse` or the builder.

    Examples:
        >>> from penstock.pattern.parser import parse
        >>> print(render(parse("pattern (A a; B+ b[]) where (a.v < 2k), [id] within 60 sec select each")))
        PATTERN SEQ(A a, B+ b[])
        WHERE a.v < 2000 AND SAME[id]
        WITHIN 1 min
    """
    return "\n".join(f"{keyword} {text}" for keyword, text in render_clauses(query).items())


def render_clauses(query: ast.Query) -> dict[str, str]:
    """Return the canonical text of each clause by its keyword, in the order of the text; only those that say something.

    Args:
        query: from `parse` or the builder.

    Examples:
        >>> render_clauses(ast.Query(ast.Event(("A",), "a"), within=ast.CountSpan(8), limit=1))
        {'PATTERN': 'A a', 'WITHIN': '8 EVENTS', 'LIMIT': '1 PER WINDOW'}
    """
    return dict(_clauses(query))


def render_pattern(pattern: ast.Pattern) -> str:
    """Return the canonical text of a pattern.

    Args:
        pattern: any part of a query's pattern, or all of it.

    Examples:
        >>> render_pattern(ast.Repetition(ast.Event(("A", "B"), "x"), 2, 5))
        'A|B{2,5} x[]'
    """
    match pattern:
        case ast.Event():
            return _event(pattern, "", "")
        case ast.Negation(event=event):
            return f"NOT {render_pattern(event)}"
        case ast.Sequence(parts=parts):
            return f"SEQ({_patterns(parts)})"
        case ast.Conjunction(parts=parts):
            return f"AND({_patterns(parts)})"
        case ast.Disjunction(parts=parts):
            return f"OR({_patterns(parts)})"
        case ast.AnyOf(count=count, parts=parts):
            return f"ANY({count}, {_patterns(parts)})"
        case ast.Repetition(part=part):
            sign = repetition_sign(pattern)
            return _event(part, sign, "[]") if isinstance(part, ast.Event) else f"({render_pattern(part)}){sign}"
        case ast.Option(part=part):
            return _event(part, "?", "") if isinstance(part, ast.Event) else f"({render_pattern(part)})?"


def render_expression(expression: ast.Expression) -> str:
    """Return the canonical text of an expression.

    Args:
        expression: a condition, a returned value or any part of them.

    Examples:
        >>> a, b = ast.Attribute("a", "x"), ast.Attribute("b", "x", "i-1")
        >>> render_expression(ast.Arithmetic("*", ast.Arithmetic("-", a, ast.Minus(b)), ast.Duration(5_000)))
        '(a.x - -b[i-1].x) * 5 ms'
    """
    return _rendered(expression, _OR)


def render_span(span: ast.Span) -> str:
    """Return the canonical text of a span.

    Args:
        span: a time or a number of events.

    Examples:
        >>> render_span(ast.TimeSpan(90_000_000)), render_span(ast.CountSpan(8))
        ('90 s', '8 EVENTS')
    """
    return f"{span.events} EVENTS" if isinstance(span, ast.CountSpan) else _duration(span.us)


def render_window(window: ast.Window) -> str:
    """Return the canonical text of a window, without the word WINDOW.

    Args:
        window: of a query.

    Examples:
        >>> render_window(ast.Window(ast.CountSpan(20), on=ast.Opening(ast.Event(("S",), "s")), distinct=True))
        '20 EVENTS ON S s DISTINCT'
    """
    parts = [render_span(window.length)]
    if window.every is not None:
        parts.append(f"EVERY {render_span(window.every)}")
    if window.on is not None:
        parts.append(f"ON {render_pattern(window.on.event)}")
        if window.on.where is not None:
            parts.append(f"WHERE {render_expression(window.on.where)}")
    if window.distinct:
        parts.append("DISTINCT")
    return " ".join(parts)


def render_select(select: ast.Select) -> str:
    """Return the canonical text of a selection, without the word SELECT.

    Args:
        select: of a query.

    Examples:
        >>> render_select(ast.Select(ast.Policy.EACH, (ast.SelectVariable(ast.Policy.LAST, "b"),)))
        'EACH, LAST b'
    """
    return ", ".join([select.policy, *(f"{each.policy} {quote_name(each.variable)}" for each in select.variables)])


def render_consume(consume: ast.Consume) -> str:
    """Return the canonical text of what is consumed, without the word CONSUME.

    Args:
        consume: of a query.

    Examples:
        >>> render_consume(ast.Consume(variables=(ast.Name("a"), ast.Name("all"))))
        'a, `all`'
    """
    if consume.all:
        return "ALL"
    words = _CONSUME_WORDS | RESERVED
    return ", ".join(_quoted_if(each.text.upper() in words, each.text) for each in consume.variables) or "NONE"


def quote_name(name: str) -> str:
    """Return a type, variable, function or column as a query must write it.

    Args:
        name: what it is called.

    Examples:
        >>> quote_name("price"), quote_name("BRK.B"), quote_name("limit")
        ('price', '`BRK.B`', '`limit`')
    """
    return _quoted_if(name.upper() in RESERVED, name)


def quote_attribute(name: str) -> str:
    """Return an attribute as a query must write it after a dot, in SAME and in PARTITION BY.

    Args:
        name: what it is called.

    Examples:
        >>> quote_attribute("limit"), quote_attribute("unit price")
        ('limit', '`unit price`')
    """
    return _quoted_if(False, name)


def repetition_sign(repetition: ast.Repetition) -> str:
    """Return what stands after the type for a repetition.

    Args:
        repetition: of an event or a group.

    Examples:
        >>> bounds = [(1, None), (0, None), (2, None), (3, 3)]
        >>> [repetition_sign(ast.Repetition(ast.Event(("A",), "a"), *each)) for each in bounds]
        ['+', '*', '{2,}', '{3}']
    """
    match repetition.low, repetition.high:
        case 0, None:
            return "*"
        case 1, None:
            return "+"
        case low, None:
            return f"{{{low},}}"
        case low, high:
            return f"{{{low}}}" if low == high else f"{{{low},{high}}}"


def _clauses(query: ast.Query) -> Iterator[tuple[str, str]]:
    yield "PATTERN", render_pattern(query.pattern)
    if query.where is not None:
        yield "WHERE", render_expression(query.where)
    if query.within is not None:
        yield "WITHIN", render_span(query.within)
    if query.partition:
        yield "PARTITION BY", ", ".join(quote_attribute(each.text) for each in query.partition)
    if query.window is not None:
        yield "WINDOW", render_window(query.window)
    if query.limit is not None:
        yield "LIMIT", f"{query.limit} PER WINDOW"
    if query.select != ast.Select():
        yield "SELECT", render_select(query.select)
    if query.consume != ast.Consume():
        yield "CONSUME", render_consume(query.consume)
    if query.returns:
        yield "RETURN", ", ".join(map(_returned, query.returns))


def _returned(column: ast.Return) -> str:
    text = render_expression(column.expression)
    return text if column.name is None else f"{text} AS {quote_name(column.name)}"


def _quoted_if(keyword: bool, name: str) -> str:
    if keyword or not _PLAIN.fullmatch(name):
        return "`" + name.replace("`", "``") + "`"
    return name


# --- patterns -----------------------------------------------------------------------------------------------


def _patterns(parts: Iterable[ast.Pattern]) -> str:
    return ", ".join(map(render_pattern, parts))


def _event(event: ast.Event, sign: str, brackets: str) -> str:
    types = "|".join(map(quote_name, event.types)) or "*"
    if event.types == (event.variable,):
        return types + sign
    return f"{types}{sign} {quote_name(event.variable)}{brackets}"


# --- expressions --------------------------------------------------------------------------------------------


def _rendered(expression: ast.Expression, place: int) -> str:
    """Return the text of an expression, parenthesised if it holds together less than its place asks for."""
    text, strength = _operation(expression)
    return text if strength >= place else f"({text})"


def _operation(expression: ast.Expression) -> tuple[str, int]:
    match expression:
        case ast.Or(items=items):
            return " OR ".join(_rendered(item, _AND) for item in items), _OR
        case ast.And(items=items):
            return " AND ".join(_rendered(item, _NOT) for item in items), _AND
        case ast.Not(item=ast.Not() as item):
            return f"NOT {_rendered(item, _NOT)}", _NOT
        case ast.Not(item=item):  # in front of a comparison, parentheses are for the reader
            return f"NOT {_rendered(item, _SUM)}", _NOT
        case ast.Comparison(operator=operator, left=left, right=right):
            return f"{_rendered(left, _SUM)} {operator} {_rendered(right, _SUM)}", _COMPARISON
        case ast.Membership(item=item, members=members, negated=negated):
            within = _atom(members) if isinstance(members, ast.Remote) else f"({_expressions(members)})"
            return f"{_rendered(item, _SUM)} {'NOT IN' if negated else 'IN'} {within}", _COMPARISON
        case ast.Arithmetic(operator=operator, left=left, right=right):
            strength = _SUM if operator in "+-" else _PRODUCT
            return f"{_rendered(left, strength)} {operator} {_rendered(right, strength + 1)}", strength
        case ast.Minus(operand=operand):  # of a minus, parenthesised: two signs would start a comment
            return f"-{_rendered(operand, _ATOM)}", _UNARY
        case _:
            return _atom(expression), _ATOM


def _atom(atom: ast.Expression) -> str:
    match atom:
        case ast.Number(value=value):
            return repr(value)
        case ast.Duration(us=us):
            return _duration(us)
        case ast.Text(value=value):
            return "'" + value.replace("'", "''") + "'"
        case ast.Boolean(value=value):
            return "TRUE" if value else "FALSE"
        case ast.Attribute(variable=variable, name=name, index=index):
            element = "" if index is None else f"[{index}]"
            return f"{quote_name(variable)}{element}.{quote_attribute(name)}"
        case ast.Aggregate(function=function, variable=variable, name=name, upto=upto):
            column = "" if name is None else f".{quote_attribute(name)}"
            return f"{function}({quote_name(variable)}[{upto and '..'}{upto}]{column})"
        case ast.Previous(attribute=attribute):
            return f"prev({_atom(attribute)})"
        case ast.Call(function=function, arguments=arguments):
            return f"{quote_name(function)}({_expressions(arguments)})"
        case ast.Remote(source=source, key=key, column=column_name):
            column = "" if column_name is None else f".{quote_attribute(column_name)}"
            return f"REMOTE[{quote_name(source)}, {render_expression(key)}]{column}"
        case ast.Same(keys=keys):
            return f"SAME[{', '.join(map(_same_key, keys))}]"
        case _:
            return f"({render_expression(atom)})"


def _same_key(key: ast.SameKey) -> str:
    attribute = quote_attribute(key.attribute)
    return attribute if key.function is None else f"{quote_attribute(key.function)}({attribute})"


def _expressions(expressions: Iterable[ast.Expression]) -> str:
    return ", ".join(map(render_expression, expressions))


def _duration(us: int) -> str:
    for unit, length_us in _UNITS_US.items():
        if us % length_us == 0 and us:
            return f"{us // length_us} {unit}"
    return f"{us} us" if us else "0 s"
