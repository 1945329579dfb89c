"""Snapshots as bytes: nested dicts of arrays, texts and numbers, with a version and a checksum. Nothing is pickled.

Layout: magic, version (2 bytes), length of the header (8), checksum of that length and of all that follows (8); then
the header (JSON: the tree, in which an array is its type, shape and place), then the arrays, row by row.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import xxhash

from penstock.errors import PenstockError

MAGIC = b"penstock"
VERSION = 3
_HEAD = struct.Struct("<8sHQQ")
_LENGTH = struct.Struct("<Q")
_TYPES = {"int64": np.int64, "int32": np.int32, "float64": np.float64, "bool": np.bool_, "uint8": np.uint8}
_ARRAY = "\0array"


class SnapshotError(PenstockError):
    """A snapshot that cannot be restored."""


def pack(tree: dict[str, Any]) -> bytes:
    """Return a tree of dicts, lists of texts, numbers, texts and arrays as bytes."""
    pieces: list[Any] = []
    header = json.dumps(_described(tree, pieces, [0]), separators=(",", ":")).encode()
    digest = xxhash.xxh3_64(_LENGTH.pack(len(header)))
    for piece in (header, *pieces):
        digest.update(piece)
    head = _HEAD.pack(MAGIC, VERSION, len(header), digest.intdigest())
    return b"".join([head, header, *pieces])


def unpack(blob: bytes) -> dict[str, Any]:
    """Return the tree that `pack` made bytes of; arrays are read-only.

    Raises:
        SnapshotError: not a snapshot, of another version, truncated, or altered.
    """
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise SnapshotError(f"no snapshot: a {type(blob).__name__} and not bytes")
    data = memoryview(blob)
    if len(data) < _HEAD.size:
        raise SnapshotError(f"no snapshot: {len(data)} bytes are too few")
    magic, version, length, digest = _HEAD.unpack(data[: _HEAD.size])
    if magic != MAGIC:
        raise SnapshotError("no snapshot: it does not begin like one of penstock")
    if version != VERSION:
        raise SnapshotError(
            f"the snapshot has format {version}, and this version of penstock reads format {VERSION}\n"
            "  fix: restore it with the version of penstock that made it"
        )
    found = xxhash.xxh3_64(_LENGTH.pack(length))
    found.update(data[_HEAD.size :])
    if found.intdigest() != digest:
        raise SnapshotError(
            "the snapshot is truncated or was altered: its checksum does not fit\n  fix: take an older one"
        )
    start = _HEAD.size + length
    try:
        tree = _restored(json.loads(bytes(data[_HEAD.size : start])), data[start:])
    except (KeyError, TypeError, ValueError) as error:
        raise SnapshotError(f"the snapshot does not hold what it should: {error}") from error
    if not isinstance(tree, dict):
        raise SnapshotError(f"the snapshot does not hold what it should: a {type(tree).__name__}")
    return tree


def _described(value: Any, pieces: list[Any], at: list[int]) -> Any:
    """Return a value as JSON has it; put the bytes of arrays to the pieces."""
    if isinstance(value, dict):
        return {key: _described(each, pieces, at) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        assert value.dtype.name in _TYPES, f"no array of {value.dtype.name} can be restored"
        start = at[0]
        at[0] += value.nbytes
        rows = [value] if value.flags.c_contiguous else list(np.atleast_2d(value))
        flat: list[Any] = [np.ascontiguousarray(row) for row in rows if row.size]
        pieces += [memoryview(row).cast("B") for row in flat]
        return {_ARRAY: [value.dtype.name, list(value.shape), start]}
    if isinstance(value, list):
        return list(value)
    return value.item() if isinstance(value, np.generic) else value


def _restored(value: Any, data: memoryview) -> Any:
    if not isinstance(value, dict):
        return value
    if _ARRAY in value:
        name, shape, start = value[_ARRAY]
        return np.frombuffer(data, _TYPES[name], int(np.prod(shape)), start).reshape(shape)
    return {key: _restored(each, data) for key, each in value.items()}
