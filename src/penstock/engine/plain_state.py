"""What the plain kernel keeps, for snapshots. Indexes are not in them: they are rebuilt."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.kernel.plain_memory import PlainMemory, new_registers, starts_of
from penstock.plan import layout
from penstock.plan.layout import HELD_NEXT, HELD_WIDTH, REACH, SEGMENT_ROOM, SEGMENT_SIZE, SEGMENT_START


def state_of(memory: PlainMemory, nodes: int) -> dict[str, Any]:
    """Return all that must survive of a memory that has just been swept, with so many elements."""
    m = memory
    spans = [slice(s, s + n) for s, n in zip(m.segments[SEGMENT_START], m.segments[SEGMENT_SIZE], strict=True)]
    is_packed = not any(np.isnan(m.registers[REACH, span]).any() for span in spans)
    assert is_packed, "a sweep leaves no gaps"
    runs = m.runs[:HELD_WIDTH].copy()
    runs[HELD_NEXT] = -1  # without an index it holds what the last sweep left there
    return {
        "sizes": m.sizes,
        "newest": m.newest,
        "segment_sizes": m.segments[SEGMENT_SIZE],
        "nodes": m.nodes[:, :nodes],
        **{f"runs.{s}": runs[:, span] for s, span in enumerate(spans)},
        **{f"registers.{s}": m.registers[:, span] for s, span in enumerate(spans)},
    }


def restored(memory: PlainMemory, state: dict[str, Any]) -> PlainMemory:
    """Return a memory with what a state holds; a sweep must follow, which builds the indexes."""
    sizes, m = state["segment_sizes"], memory
    rooms = np.maximum(m.segments[SEGMENT_ROOM], sizes + sizes // 2)
    segments = m.segments.copy()
    segments[SEGMENT_START], places = starts_of(rooms)
    segments[SEGMENT_SIZE], segments[SEGMENT_ROOM] = sizes, rooms
    runs = np.zeros((HELD_WIDTH, places), np.int32)
    registers = new_registers(m.registers.shape[0], places)
    for s, (start, size) in enumerate(zip(segments[SEGMENT_START], sizes, strict=True)):
        runs[:, start : start + size] = state[f"runs.{s}"]
        registers[:, start : start + size] = state[f"registers.{s}"]
    kept = state["nodes"].shape[1]
    nodes = np.zeros((layout.LINK_WIDTH, max(m.nodes.shape[1], kept + kept // 2)), np.int32)
    nodes[:, :kept] = state["nodes"]
    sizes_now = np.zeros_like(m.sizes)
    sizes_now[: len(state["sizes"])] = state["sizes"]  # an older snapshot has fewer
    return m._replace(
        sizes=sizes_now, newest=state["newest"].copy(), segments=segments, runs=runs,
        registers=registers, nodes=nodes, heads=np.full(runs.shape[1], -1, np.int32),
    )  # fmt: skip
