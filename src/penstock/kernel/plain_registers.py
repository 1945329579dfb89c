"""Plain queries: the registers of the runs that a step makes (penstock.plan.registers), a column at a time."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from penstock.kernel.compiling import inlined, part
from penstock.kernel.lanes import operand, run_lanes
from penstock.kernel.plain_memory import BLOCK, PlainMemory
from penstock.kernel.stack import arithmetic, is_less, is_text
from penstock.plan.layout import (
    ADD,
    CONST,
    MUL,
    PICK_RUN,
    PLAIN_BIT,
    PLAIN_SETTER,
    PLAIN_SETTER_END,
    REF,
    SET_AVG,
    SET_CODE,
    SET_CODE_END,
    SET_COLUMN,
    SET_COPY,
    SET_COUNT,
    SET_FROM,
    SET_KIND,
    SET_LEAST,
    SET_LOAD,
    SET_LOAD_END,
    SET_MEMBER,
    SET_READ,
    SET_RUN,
    SET_SLOT,
    SET_SUM,
    SUB,
)
from penstock.plan.plain import PlainTables


@inlined
def set_registers(t: PlainTables, m: PlainMemory, step: int, event: int, start: int, stop: int, to: int) -> None:
    """Write the registers of the runs from place `to` on, which candidates start .. stop-1 become by a step."""
    for k in range(t.steps[step, PLAIN_SETTER], t.steps[step, PLAIN_SETTER_END]):
        slot, kind, source = t.setters[k, SET_SLOT], t.setters[k, SET_KIND], t.setters[k, SET_FROM]
        row = m.registers[slot]
        if kind == SET_READ:
            x = m.columns[t.setters[k, SET_COLUMN], event]
            for i in range(to, to + stop - start):
                row[i] = x
        elif kind == SET_COPY:
            copy_register(m, row, source, start, stop, to, 0.0)
        elif kind == SET_MEMBER:
            copy_register(m, row, source, start, stop, to, float(t.steps[step, PLAIN_BIT]))
        elif kind == SET_AVG:
            for i in range(to, to + stop - start):
                count = m.registers[t.setters[k, SET_COLUMN], i]
                row[i] = m.registers[source, i] / count if count > 0 else math.nan
        elif kind == SET_RUN:
            work_out(t, m, k, row, event, to, to + stop - start)
        else:
            gather(t, m, k, row, event, start, stop, to)


@inlined
def copy_register(
    m: PlainMemory, row: NDArray[np.float64], source: int, start: int, stop: int, to: int, more: float
) -> None:
    """Copy a register of the candidates, and so much more; it is 0 if there is none yet."""
    if source < 0:
        for i in range(to, to + stop - start):
            row[i] = more
        return
    column, picked = m.registers[source], m.candidates[PICK_RUN]
    for c in range(start, stop):
        row[to + c - start] = column[picked[c]] + more


@inlined
def gather(
    t: PlainTables, m: PlainMemory, k: int, row: NDArray[np.float64], event: int, start: int, stop: int, to: int
) -> None:
    """Take an event into a running aggregate; missing values do not count."""
    kind, source, column = t.setters[k, SET_KIND], t.setters[k, SET_FROM], t.setters[k, SET_COLUMN]
    x = 1.0 if column < 0 else m.columns[column, event]
    is_there = not math.isnan(x)
    for c in range(start, stop):
        before = math.nan if source < 0 else m.registers[source, m.candidates[PICK_RUN, c]]
        i = to + c - start
        if kind == SET_COUNT:
            row[i] = (0.0 if source < 0 else before) + is_there
        elif kind == SET_SUM:
            row[i] = arithmetic(ADD, 0.0 if source < 0 else before, x) if is_there else (0.0 if source < 0 else before)
        elif not is_there or (not math.isnan(before) and not is_better(m, kind, x, before)):
            row[i] = before
        else:
            row[i] = x


@part
def is_better(m: PlainMemory, kind: int, x: float, than: float) -> bool:
    """Return whether a value is a new least, or a new most."""
    return is_less(x, than, m.ranks) if kind == SET_LEAST else is_less(than, x, m.ranks)


@inlined
def work_out(
    t: PlainTables, m: PlainMemory, k: int, row: NDArray[np.float64], event: int, start: int, stop: int
) -> None:
    """Work out a register of runs start .. stop-1 from their other registers."""
    code, end = t.setters[k, SET_CODE], t.setters[k, SET_CODE_END]
    if end - code == 3 and t.rows[code + 1, 0] in (REF, CONST) and t.rows[code + 2, 0] in (ADD, SUB, MUL):
        work_out_pair(t, m, k, row, event, start, stop)
    else:
        work_out_any(t, m, k, row, event, start, stop)


@inlined
def work_out_pair(
    t: PlainTables, m: PlainMemory, k: int, row: NDArray[np.float64], event: int, start: int, stop: int
) -> None:
    """Work out a sum, a difference or a product: most are one, for few runs, to which the machine takes long."""
    at, loads = t.setters[k, SET_CODE], (t.setters[k, SET_LOAD], t.setters[k, SET_LOAD_END])
    op, (left, x) = t.rows[at + 2, 0], operand(t, m, t.rows, m.constants, loads, at, event)
    right, y = operand(t, m, t.rows, m.constants, loads, at + 1, event)
    a, b = m.registers[max(left, 0)], m.registers[max(right, 0)]
    for i in range(start, stop):
        u, v = a[i] if left >= 0 else x, b[i] if right >= 0 else y
        z = u * v if op == MUL else (u - v if op == SUB else u + v)
        row[i] = math.nan if is_text(u) or is_text(v) else z


@part
def work_out_any(
    t: PlainTables, m: PlainMemory, k: int, row: NDArray[np.float64], event: int, start: int, stop: int
) -> None:
    """Work out a register by the stack machine."""
    for at in range(start, stop, BLOCK):
        size = min(BLOCK, stop - at)
        for lane in range(size):
            m.block[lane] = at + lane
        loads, code = (
            (t.setters[k, SET_LOAD], t.setters[k, SET_LOAD_END]),
            (t.setters[k, SET_CODE], t.setters[k, SET_CODE_END]),
        )
        run_lanes(t, m, t.rows, m.constants, code, loads, event, size)
        for lane in range(size):
            row[at + lane] = m.lanes[0, lane]
