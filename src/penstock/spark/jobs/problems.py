"""What is wrong with a job file, in words: the place, what is there, what may be there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel

_OPEN = ("options", "conf")  # tables in which any key may stand


def describe(error: Mapping[str, Any], data: Any, model: type[BaseModel]) -> str:
    """Return a problem that pydantic found as a line.

    Args:
        error: one of `ValidationError.errors()`.
        data: what was checked, as it was before variables were filled in: no secret is shown.
        model: what it was checked against.
    """
    place = _place(error["loc"], model)
    at = f"{where(place)}: "
    given = repr(_given(data, place))
    if len(place) == 3 and place[1] in _OPEN:
        return f"{at}{given} is no setting; write a text, a number, true or false"
    context = error.get("ctx", {})
    match error["type"]:
        case "missing":
            return at + "is missing"
        case "extra_forbidden":
            return f"{at}unknown key; write {_alternatives(_keys(error['loc'][:-1], model))}"
        case "union_tag_not_found":
            return f"{where((*place, 'format'))}: is missing; write {_alternatives(_tags(place, model))}"
        case "union_tag_invalid":
            there = repr(_given(data, (*place, "format")))
            return f"{where((*place, 'format'))}: {there} is no format; write {_alternatives(_tags(place, model))}"
        case "literal_error":
            return f"{at}{given} is not known; write {context['expected'].replace(chr(39), '')}"
        case "value_error":
            return f"{at}{context['error']}"
        case "string_type" | "tuple_type":
            return f"{at}{given} is no text; write it in quotes"
        case "float_type" | "float_parsing":
            return f"{at}{given} is no number; write one without quotes"
        case "less_than":
            return f"{at}{given} is too much; write a number below {context['lt']:g}"
        case "greater_than" if isinstance(context["gt"], float):
            return f"{at}{given} is too little; write a number above {context['gt']:g}"
        case "int_type" | "int_parsing" | "int_from_float" | "greater_than":
            return f"{at}{given} is no number of things; write 1 or more"
        case "bool_type":
            return f"{at}{given} is no boolean; write true or false"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"{at}{given} is no table; write [{where(place)}]"
        case _:
            return f"{at}{given} cannot be used: {error['msg']}"


def where(place: Sequence[str | int]) -> str:
    """Return the name of a place."""
    return ".".join(map(str, place)) or "the job"


def _place(found: Sequence[str | int], model: type[BaseModel]) -> tuple[str | int, ...]:
    """Return a place without what pydantic adds to it: the format that was chosen, the type that was tried."""
    table, *rest = (*found, "")[:-1] or ("",)
    if rest and rest[0] in _tags((table,), model):
        rest = rest[1:]
    if len(rest) == 3 and rest[0] in _OPEN:  # a value that is none of the types that it may have
        rest = rest[:2]
    return (table, *rest) if table != "" else ()


def _models(place: Sequence[str | int], model: type[BaseModel]) -> list[type[BaseModel]]:
    """Return what a table may be."""
    field = model.model_fields.get(str(place[0])) if place else None
    if field is None:
        return []
    return [each for each in _flat(field.annotation) if isinstance(each, type) and issubclass(each, BaseModel)]


def _flat(annotation: Any) -> list[Any]:
    """Return the types in a type."""
    inner = [each for argument in get_args(annotation) for each in _flat(argument)]
    return inner or [annotation]


def _tags(place: Sequence[str | int], model: type[BaseModel]) -> list[str]:
    """Return the formats that a table may have."""
    fields = [each.model_fields.get("format") for each in _models(place, model)]
    return [tag for field in fields if field is not None for tag in get_args(field.annotation)]


def _keys(found: Sequence[str | int], model: type[BaseModel]) -> list[str]:
    """Return what may stand in a table."""
    if not found:
        return list(model.model_fields)
    chosen = [each for each in _models(found, model) if len(found) == 1 or found[1] in _own_tags(each)]
    return [field.alias or name for name, field in chosen[0].model_fields.items()] if chosen else []


def _own_tags(model: type[BaseModel]) -> tuple[str, ...]:
    field = model.model_fields.get("format")
    return get_args(field.annotation) if field is not None else ()


def _given(data: Any, place: Sequence[str | int]) -> Any:
    """Return what stands at a place."""
    for each in place:
        try:
            data = data[each]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def _alternatives(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + f" or {words[-1]}" if len(words) > 1 else "".join(words)
