"""Whether a query can be used: every check of the language and, given a schema, of its names and types.

A check is a pure function from a `Subject` to the problems it finds; `CHECKS` is all there are, in the order of the
query's clauses; `STRICT_CHECKS` find what can be run, but to no purpose. They do not rely on one another: a query is
told all that is wrong with it at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import Problem, QueryError
from penstock.pattern import ast, clauses, conditions, expression_types, structure, vacuous
from penstock.pattern.parser import parse
from penstock.pattern.render import render
from penstock.pattern.subject import Check, Subject

if TYPE_CHECKING:
    from penstock.pattern.schema import Schema  # it loads pydantic, which takes a tenth of a second

CHECKS: tuple[Check, ...] = (
    *structure.CHECKS,
    *conditions.CHECKS,
    *clauses.CHECKS,
    *expression_types.CHECKS,
)
STRICT_CHECKS: tuple[Check, ...] = vacuous.CHECKS


def problems(query: ast.Query, schema: Schema | None = None, *, strict: bool = True) -> tuple[Problem, ...]:
    """Return everything that is wrong with a query, by its place in the text.

    Args:
        query: from text or from Python; one without text is rendered, and the places are those of that text.
        schema: what the stream holds. Without it, types, attributes, user functions and remotes are not checked.
        strict: whether conditions that never apply and spans that hold no match are wrong, though they can be run.

    Raises:
        QueryError: if a query from Python cannot be written as text.

    Examples:
        >>> query = parse("PATTERN SEQ(A a, B b) WHERE a.price > c.price")
        >>> [(problem.code, problem.position.column) for problem in problems(query)]
        [('unknown-variable', 39), ('no-within', 46)]
    """
    return _problems(_subject(query, schema), strict=strict)


def validate(query: ast.Query, schema: Schema | None = None, *, strict: bool = True) -> None:
    """Refuse a query that cannot be used.

    Args:
        query: from text or from Python; one without text is rendered, and the places are those of that text.
        schema: what the stream holds. Without it, types, attributes, user functions and remotes are not checked.
        strict: whether conditions that never apply and spans that hold no match are wrong, though they can be run.

    Raises:
        QueryError: with all problems at once, each with its place, an excerpt and a fix.

    Examples:
        >>> from penstock.pattern.schema import Schema
        >>> schema = Schema.model_validate({"types": {"A": {"price": "float"}, "B": {"price": "float"}}})
        >>> validate(parse("PATTERN SEQ(A a, B b) WHERE a.price < b.price WITHIN 5 min"), schema)
        >>> validate(parse("PATTERN SEQ(A a, B b) WHERE a.prise < b.price WITHIN 5 min"), schema)
        Traceback (most recent call last):
        penstock.errors.QueryError: query:1:29: A has no attribute prise
            PATTERN SEQ(A a, B b) WHERE a.prise < b.price WITHIN 5 min
                                        ^^^^^^^
          fix: did you mean a.price?
    """
    subject = _subject(query, schema)
    found = _problems(subject, strict=strict)
    if found:
        raise QueryError(found, subject.source, query.name)


def _subject(query: ast.Query, schema: Schema | None) -> Subject:
    if query.source is not None:
        return Subject(query, query.source, schema)
    text = render(query)
    return Subject(parse(text, query.name), text, schema)


def _problems(subject: Subject, *, strict: bool) -> tuple[Problem, ...]:
    checks = (*CHECKS, *STRICT_CHECKS) if strict else CHECKS
    found = dict.fromkeys(problem for check in checks for problem in check(subject))
    return tuple(sorted(found, key=lambda each: (each.position.start, each.code, each.message)))
