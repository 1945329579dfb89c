"""What a stream holds: the attributes of each type, user functions, data outside the stream.

A schema is what users give, in TOML or as a dict, and what `validate` checks a query against.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from penstock.errors import SchemaError
from penstock.pattern.functions import RESERVED_FUNCTIONS
from penstock.pattern.variables import ANY_TYPE, BUILT_IN, VALUE_TYPES, ValueType


def _known_type(value: Any) -> Any:
    if value not in VALUE_TYPES:
        raise ValueError(f"{value!r} is no type; write {_alternatives(VALUE_TYPES)}")
    return value


_Value: TypeAlias = Annotated[ValueType, BeforeValidator(_known_type)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FunctionSchema(_Part):
    """A registered user function: the types of its arguments and of what it returns."""

    arguments: tuple[_Value, ...]
    returns: _Value


class RemoteSchema(_Part):
    """Data outside the stream, by key: a value, with `set = true` a set of them, or a row of named values."""

    key: _Value
    value: _Value | None = None
    is_set: bool = Field(default=False, alias="set", strict=True)
    row: dict[str, _Value] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _one_shape(self) -> Self:
        if (self.value is None) == (self.row is None):
            raise ValueError("a remote has either a value or a row; write one of them")
        if self.is_set and self.row is not None:
            raise ValueError("only values come in sets; write value instead of row, or drop set")
        return self


class Schema(_Part):
    """The types of events and their attributes, user functions and remotes.

    Args:
        types: attributes by type; those of the type `*` are attributes of every type. If `*` is the only
            one, a query may name any type.
        functions: registered user functions by name.
        remotes: data outside the stream by source.

    Raises:
        SchemaError: with every place that is wrong and what may stand there.

    Examples:
        >>> schema = Schema.model_validate({"types": {"A": {"price": "float"}, "*": {"stop": "string"}}})
        >>> schema.attribute("A", "stop")
        'string'
        >>> schema.attribute("A", "prise") is None
        True
        >>> Schema.model_validate({"types": {"A": {"price": "real"}}})
        Traceback (most recent call last):
        penstock.errors.SchemaError: types.A.price: 'real' is no type; write int, float, string, bool, time or duration
    """

    types: dict[str, dict[str, _Value]] = Field(min_length=1)
    functions: dict[str, FunctionSchema] = Field(default_factory=dict)
    remotes: dict[str, RemoteSchema] = Field(default_factory=dict)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a schema from a TOML file.

        Args:
            path: the file.

        Raises:
            SchemaError: if there is no such file, if it is no TOML or no schema.

        Examples:
            >>> from tempfile import TemporaryDirectory
            >>> with TemporaryDirectory() as folder:
            ...     path = Path(folder, "stocks.toml")
            ...     _ = path.write_text('[types.A]\\nprice = "float"\\n')
            ...     Schema.read(path).known_types()
            ('A',)
        """
        try:
            data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
            return cls.model_validate(data)
        except OSError as error:
            raise SchemaError(f"{path}: cannot be read: {error.strerror or error}") from None
        except UnicodeDecodeError as error:
            raise SchemaError(f"{path}: is no UTF-8 text: {error.reason} at byte {error.start}") from None
        except tomllib.TOMLDecodeError as error:
            raise SchemaError(f"{path}: is no TOML: {error}") from None
        except SchemaError as error:
            raise SchemaError("\n".join(f"{path}: {line}" for line in str(error).splitlines())) from None

    @property
    def is_open(self) -> bool:
        """Whether a query may name any type: only `*` is described."""
        return set(self.types) == {ANY_TYPE}

    def known_types(self) -> tuple[str, ...]:
        """Return the types that have a name, in the order of the schema."""
        return tuple(name for name in self.types if name != ANY_TYPE)

    def knows_type(self, name: str) -> bool:
        """Return whether a query may name this type."""
        return self.is_open or (name in self.types and name != ANY_TYPE)

    def attributes(self, type_name: str) -> dict[str, str]:
        """Return the attributes of a type by name: its own, those of every type, and `ts`, `seq` and `type`."""
        return {**self.types.get(type_name, {}), **self.types.get(ANY_TYPE, {}), **BUILT_IN}

    def attribute(self, type_name: str, name: str) -> str | None:
        """Return the type of an attribute of a type, or None if there is none; the type `*` is any type."""
        return self.attributes(type_name).get(name)

    @model_validator(mode="after")
    def _no_contradiction(self) -> Self:
        everywhere = self.types.get(ANY_TYPE, {})
        wrong = []
        for type_name, attributes in self.types.items():
            for name, value_type in attributes.items():
                place, fixed = f"types.{type_name}.{name}", BUILT_IN.get(name)
                if fixed not in (None, value_type):
                    wrong.append(f"{place}: every event has {name}, of type {fixed}; drop it here")
                elif everywhere.get(name, value_type) != value_type:
                    wrong.append(f"{place}: types.{ANY_TYPE} says {everywhere[name]}, this {value_type}; say one")
        for name in self.functions:
            if name.lower() in RESERVED_FUNCTIONS:
                wrong.append(f"functions.{name}: {name.lower()} is built in; choose another name")
        if wrong:
            raise SchemaError("\n".join(wrong))
        return self

    @model_validator(mode="wrap")
    @classmethod
    def _say_where(cls, data: Any, handler: Callable[[Any], Self]) -> Self:
        try:
            return handler(data)
        except ValidationError as error:
            raise SchemaError("\n".join(map(_describe, error.errors()))) from None


# What may stand where, for keys that are not known.
_KEYS: dict[int, dict[str, tuple[str, ...]]] = {
    1: {"": tuple(Schema.model_fields)},
    3: {"functions": ("arguments", "returns"), "remotes": ("key", "value", "set", "row")},
}


def _describe(error: Any) -> str:
    place = error["loc"]
    where = ".".join(map(str, place)) or "the schema"
    match error["type"]:
        case "extra_forbidden":
            allowed = _KEYS[len(place)]["" if len(place) == 1 else str(place[0])]
            return f"{where}: unknown key; write {_alternatives(allowed)}"
        case "missing":
            return f"{where}: is missing"
        case "value_error":
            return f"{where}: {error['ctx']['error']}"
        case "too_short":
            return f"{where}: is empty; name at least one"
        case "bool_type":
            return f"{where}: {error['input']!r} is no boolean; write true or false"
        case "tuple_type":
            return f'{where}: {error["input"]!r} is no list; write ["string", …]'
        case "string_type":
            return f"{where}: {error['input']!r} is no name; write it in quotes"
        case _:
            return f"{where}: {error['input']!r} is no table of names"


def _alternatives(words: tuple[str, ...]) -> str:
    return ", ".join(words[:-1]) + f" or {words[-1]}"
