"""The schema: what it says, and how it says what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.errors import SchemaError
from penstock.pattern.schema import Schema

TOML = """
[types.A]
price = "float"
limit = "int"
[types."BRK.B"]
[types."*"]
stop = "string"
[functions.overlap]
arguments = ["string", "string"]
returns = "bool"
[remotes.locations]
key = "string"
value = "string"
set = true
[remotes.cards]
key = "int"
row = { limit = "float", owner = "string" }
[remotes.limits]
key = "int"
value = "float"
"""
A = {"types": {"A": {"price": "float"}}}
TYPES = "int, float, string, bool, time or duration"


@pytest.fixture
def schema(tmp_path: Path) -> Schema:
    path = tmp_path / "schema.toml"
    path.write_text(TOML, encoding="utf-8")
    return Schema.read(path)


def test_it_reads_types(schema: Schema) -> None:
    assert schema.known_types() == ("A", "BRK.B")
    assert schema.attributes("A") == {
        "price": "float", "limit": "int", "stop": "string", "ts": "time", "seq": "int", "type": "string",
    }  # fmt: skip
    assert schema.attribute("A", "price") == "float"
    assert schema.attribute("BRK.B", "stop") == "string"
    assert schema.attribute("BRK.B", "price") is None
    assert schema.attribute("*", "stop") == "string"
    assert schema.attribute("*", "price") is None


def test_it_reads_functions_and_remotes(schema: Schema) -> None:
    assert schema.functions["overlap"].arguments == ("string", "string")
    assert schema.functions["overlap"].returns == "bool"
    assert schema.remotes["locations"].is_set
    assert not schema.remotes["limits"].is_set
    assert schema.remotes["limits"].value == "float"
    assert schema.remotes["cards"].row == {"limit": "float", "owner": "string"}


def test_it_knows_the_types_it_names(schema: Schema) -> None:
    assert schema.knows_type("A")
    assert not schema.knows_type("B")
    assert not schema.knows_type("*")
    assert not schema.is_open


def test_with_only_common_attributes_any_type_may_be_named() -> None:
    schema = Schema.model_validate({"types": {"*": {"price": "float"}}})
    assert schema.is_open
    assert schema.knows_type("anything")
    assert schema.known_types() == ()
    assert schema.attribute("anything", "price") == "float"


def test_it_cannot_be_changed() -> None:
    schema = Schema.model_validate(A)
    with pytest.raises(ValueError, match="frozen"):
        schema.types = {}


def test_what_is_built_in_may_be_said_again() -> None:
    schema = Schema.model_validate({"types": {"A": {"ts": "time", "x": "int"}, "*": {"x": "int"}}})
    assert schema.attribute("A", "ts") == "time"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "types: is missing"),
        ({"types": {}}, "types: is empty; name at least one"),
        ({"types": 5}, "types: 5 is no table of names"),
        ({"types": {"A": "float"}}, "types.A: 'float' is no table of names"),
        ({"types": {1: {}}}, "types.1.[key]: 1 is no name; write it in quotes"),
        ({"types": {"A": {"x": "real"}}}, f"types.A.x: 'real' is no type; write {TYPES}"),
        ({"types": {"A": {"x": ["int"]}}}, f"types.A.x: ['int'] is no type; write {TYPES}"),
        ({**A, "type": {}}, "type: unknown key; write types, functions or remotes"),
        (
            {"types": {"A": {"ts": "int"}}},
            "types.A.ts: every event has ts, of type time; drop it here",
        ),
        (
            {"types": {"A": {"x": "int"}, "*": {"x": "float"}}},
            "types.A.x: types.* says float, this int; say one",
        ),
        ({**A, "functions": {"f": 4}}, "functions.f: 4 is no table of names"),
        ({**A, "functions": {"f": {"arguments": []}}}, "functions.f.returns: is missing"),
        (
            {**A, "functions": {"f": {"arguments": "int", "returns": "int"}}},
            "functions.f.arguments: 'int' is no list; write [\"string\", …]",
        ),
        (
            {**A, "functions": {"f": {"arguments": ["int", "real"], "returns": "int"}}},
            f"functions.f.arguments.1: 'real' is no type; write {TYPES}",
        ),
        (
            {**A, "functions": {"f": {"arguments": [], "returns": "int", "pure": True}}},
            "functions.f.pure: unknown key; write arguments or returns",
        ),
        (
            {**A, "functions": {"Sqrt": {"arguments": [], "returns": "int"}}},
            "functions.Sqrt: sqrt is built in; choose another name",
        ),
        (
            {**A, "functions": {"prev": {"arguments": [], "returns": "int"}}},
            "functions.prev: prev is built in; choose another name",
        ),
        ({**A, "remotes": {"r": {"value": "int"}}}, "remotes.r.key: is missing"),
        ({**A, "remotes": {"r": {"key": "int"}}}, "remotes.r: a remote has either a value or a row; write one of them"),
        (
            {**A, "remotes": {"r": {"key": "int", "value": "int", "row": {"x": "int"}}}},
            "remotes.r: a remote has either a value or a row; write one of them",
        ),
        (
            {**A, "remotes": {"r": {"key": "int", "row": {"x": "int"}, "set": True}}},
            "remotes.r: only values come in sets; write value instead of row, or drop set",
        ),
        ({**A, "remotes": {"r": {"key": "int", "row": {}}}}, "remotes.r.row: is empty; name at least one"),
        (
            {**A, "remotes": {"r": {"key": "int", "row": {"x": "real"}}}},
            f"remotes.r.row.x: 'real' is no type; write {TYPES}",
        ),
        (
            {**A, "remotes": {"r": {"key": "int", "value": "int", "set": "yes"}}},
            "remotes.r.set: 'yes' is no boolean; write true or false",
        ),
        (
            {**A, "remotes": {"r": {"key": "int", "value": "int", "is_set": True}}},
            "remotes.r.is_set: unknown key; write key, value, set or row",
        ),
        ([], "the schema: [] is no table of names"),
    ],
)
def test_it_says_where_it_is_wrong_and_what_may_stand_there(data: Any, message: str) -> None:
    with pytest.raises(SchemaError) as raised:
        Schema.model_validate(data)
    assert str(raised.value) == message


def test_it_says_everything_that_is_wrong() -> None:
    with pytest.raises(SchemaError) as raised:
        Schema.model_validate({"types": {"A": {"x": "real", "y": "int", "z": "str"}}, "remote": {}})
    assert [line.split(":")[0] for line in str(raised.value).splitlines()] == ["types.A.x", "types.A.z", "remote"]


def test_contradictions_are_told_together() -> None:
    functions = {"abs": {"arguments": ["int"], "returns": "int"}}
    with pytest.raises(SchemaError) as raised:
        Schema.model_validate({"types": {"A": {"ts": "int", "seq": "float"}}, "functions": functions})
    places = [line.split(":")[0] for line in str(raised.value).splitlines()]
    assert places == ["types.A.ts", "types.A.seq", "functions.abs"]


def test_a_schema_from_python_is_told_the_same() -> None:
    with pytest.raises(SchemaError, match=r"^types\.A\.x: 'real' is no type"):
        Schema(types={"A": {"x": "real"}})  # type: ignore[dict-item]  # that is the mistake


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SchemaError) as raised:
        Schema.read(tmp_path / "none.toml")
    assert str(raised.value) == f"{tmp_path / 'none.toml'}: cannot be read: No such file or directory"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[types.A\n", r": is no TOML: .*line 1"),
        (b"[types.A]\nx = '\xff'\n", r": is no UTF-8 text: invalid start byte at byte 15$"),
        (b"[types.A]\nx = 'real'\ny = 'str'\n", r"schema.toml: types.A.x: .*\n.*schema.toml: types.A.y: "),
    ],
)
def test_a_file_that_is_no_schema(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "schema.toml"
    path.write_bytes(content)
    with pytest.raises(SchemaError, match=message):
        Schema.read(str(path))
