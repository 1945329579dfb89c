"""A query ready to run: the whole way from a valid query to tables, in one screen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.pattern import ast
from penstock.plan.automaton import Automaton, automaton
from penstock.plan.callees import names_called
from penstock.plan.deciding import Deciding
from penstock.plan.kills import asked_by_kill, kills
from penstock.plan.layout import LEAST, MOST
from penstock.plan.plain import PlainTables, plain_tables, why_not_plain
from penstock.plan.positions import Numbered, number
from penstock.plan.postponing import postponed, why_must_block
from penstock.plan.registers import Asked, Place, Registers
from penstock.plan.tables import Bools, Tables, tables
from penstock.plan.terms import Calls, Code, Column, Terms

_ORDERING = (Code.LT, Code.LE, Code.GT, Code.GE, Code.MIN, Code.MAX)


class Plan(NamedTuple):
    """A query ready to run: its tables, and what is needed to make columns of batches and matches of runs.

    `plain` are the tables of the plain kernel; if a query is not plain, `why_not_plain` says why, and the general
    kernel runs it. `own` are, per variable, the conditions that name it alone; `ordered` the columns
    whose order matters to a condition; `reads` the columns that each conjunct of `plain` reads.
    """

    query: ast.Query
    numbered: Numbered
    automaton: Automaton
    terms: Terms
    registers: Registers
    own: tuple[tuple[int, ...], ...]
    ordered: Bools  # (F,)
    reads: Bools  # (J, F)
    calling: Bools  # (J,) conjuncts of `plain` that call a function
    tables: Tables
    plain: PlainTables | None
    why_not_plain: str | None
    must_block: str | None = None  # why no condition can be postponed
    postpones: bool = False  # whether those that look something up are


def plan(query: ast.Query, calls: Calls = Calls.REFUSED, *, postpones: bool = False) -> Plan:
    """Turn a valid query into tables.

    Args:
        query: a valid one.
        calls: what becomes of calls of user functions and of REMOTE.
        postpones: whether conditions that look something up are postponed (penstock.plan.postponing), if they can be.
    """
    numbered = number(query.pattern)
    machine = automaton(numbered)
    must_block = why_must_block(query, numbered, machine)
    postpones = postpones and must_block is None and bool(names_called(query)[1])
    terms = Terms(numbered, calls)
    for conjunct in ast.conjuncts(query.where):
        terms.add(postponed(conjunct) if postpones else conjunct)
    deciding = Deciding(numbered, machine, terms)
    due = {step: deciding.due(step) for step in machine.transitions}
    due |= {kill: asked_by_kill(deciding, kill) for kill in kills(machine)}
    registers = Registers(numbered, machine, terms, due)
    reason = why_not_plain(query, deciding, registers, needs_rounds=bool(query.returns) or postpones)
    plain = plain_tables(query, numbered, machine, terms, registers) if reason is None else None
    own = tuple(deciding.own(variable) for variable in range(len(numbered.variables)))
    for column in columns_of_returns(query, numbered, calls):  # read from the same events
        terms.column(column.name, is_previous=column.is_previous)
    ordered, reads = ordered_columns(terms), conjunct_columns(machine, terms, registers)
    calling = calling_conjuncts(machine, terms, registers)
    packed = tables(query, deciding)
    return Plan(
        query, numbered, machine, terms, registers, own, ordered, reads, calling, packed, plain, reason, must_block,
        postpones,
    )  # fmt: skip


def columns_of_returns(query: ast.Query, numbered: Numbered, calls: Calls) -> list[Column]:
    """Return the columns that RETURN reads. What it calls, it calls for matches, which are few: not for all events."""
    terms = Terms(numbered, calls.without_columns)
    for each in query.returns:
        terms.add(each.expression)
    return terms.columns


def ordered_columns(terms: Terms) -> Bools:
    """Return which columns stand in a comparison by order, or in the least or most of a list."""
    ordered = np.zeros(len(terms.columns), np.bool_)
    for condition in terms.conditions:
        references = [terms.references[r] for r in condition.references]
        if any(code in _ORDERING for code, _ in condition.program):
            ordered[[r.column for r in references if r.column >= 0]] = True
        ordered[[r.column for r in references if r.aggregate in (LEAST, MOST)]] = True
    return ordered


def conjuncts_in_order(machine: Automaton, registers: Registers) -> list[Asked]:
    """Return the conjuncts in the order of the plain tables."""
    steps = (*sorted(machine.transitions, key=lambda t: t.source), *kills(machine))
    return [each for step in steps for each in registers.asked[step]]


def calling_conjuncts(machine: Automaton, terms: Terms, registers: Registers) -> Bools:
    """Return which conjuncts of the plain tables call a function."""
    asked = conjuncts_in_order(machine, registers)
    programs = [() if each.condition < 0 else terms.conditions[each.condition].program for each in asked]
    return np.array([any(code == Code.CALL for code, _ in program) for program in programs], np.bool_)


def conjunct_columns(machine: Automaton, terms: Terms, registers: Registers) -> Bools:
    """Return which columns each conjunct of the plain tables reads, in their order."""
    asked = conjuncts_in_order(machine, registers)
    reads = np.zeros((len(asked), len(terms.columns)), np.bool_)
    for row, each in zip(reads, asked, strict=True):
        for load in each.loads:
            column = load.number if load.register is None else load.register.column
            if load.place is not Place.CONSTANT and column >= 0:
                row[column] = True
    return reads
