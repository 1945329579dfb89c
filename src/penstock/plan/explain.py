"""How a query is run: the automaton, where and how it asks each condition, and the tree plan with its cost.

These are the facts; `penstock.plan.words` puts them into words. What a query *asks* is said by
`penstock.pattern.explain`, which knows nothing of this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from penstock.errors import PenstockError
from penstock.pattern import ast
from penstock.pattern.render import quote_name, render_expression
from penstock.plan import layout
from penstock.plan.automaton import Op, State
from penstock.plan.deciding import Deciding
from penstock.plan.planning import Plan, conjuncts_in_order, plan
from penstock.plan.registers import Asked, Expression, Keep, Kept, Register
from penstock.plan.statistics import Statistics
from penstock.plan.terms import Calls, Code
from penstock.plan.tree import choose, render_plan, why_no_tree

How: TypeAlias = Literal["event", "index", "interval", "program", "elements"]

MOST_NAMES = 6  # members of AND and ANY that are named one by one
_SIGNS = {Code.ADD: "+", Code.SUB: "-", Code.MUL: "*", Code.DIV: "/", Code.MOD: "%"}
_KEPT = {Keep.COUNT: "COUNT", Keep.SUM: "SUM", Keep.LEAST: "MIN", Keep.MOST: "MAX", Keep.AVG: "AVG"}


@dataclass(frozen=True)
class Check:
    """A condition where it is asked.

    Attributes:
        text: the conjunct.
        how: "event" of the event alone, before any run is asked; "index": runs are looked up by it; "interval": a
            register of the run is compared with two bounds; "program": by the stack machine, on registers; "elements":
            by looking back at the elements of the run.
        register: what the run keeps for it, with "index" and "interval"; with "program", if an interval on it rules out
            most runs before.
        calls: whether it calls a user function or a remote source for each run.
    """

    text: str
    how: How
    register: str | None = None
    calls: bool = False


@dataclass(frozen=True)
class Step:
    """What a run may do next: bind an event to a variable; `forbids` are negations that are asked about then."""

    variable: str
    types: tuple[str, ...]
    target: int
    checks: tuple[Check, ...]
    forbids: tuple[str, ...] = ()


@dataclass(frozen=True)
class StateFacts:
    """A state of the automaton.

    Attributes:
        number: 0 is where runs open.
        bound: what is bound in every run here; "2 of b, c, d" where runs differ.
        keeps: the registers of a run.
        index: what runs are found by, if not by a scan.
        may_end: whether a run here is a match, if nothing at the end forbids it.
        at_end: conditions and negations that are asked only then.
        steps: what may come next, in the order that FIRST prefers.
    """

    number: int
    bound: tuple[str, ...]
    keeps: tuple[str, ...]
    index: str | None
    may_end: bool
    at_end: tuple[str, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class TreeFacts:
    """The tree plan, or why there is none; costs are in nanoseconds per event, at the rates (events per second).

    `chosen` is what the cost model prefers at these rates.
    """

    rates: dict[str, float]
    chosen: Literal["automaton", "tree"]
    why_none: str | None = None
    order: str | None = None
    tree_ns: float | None = None
    automaton_ns: float | None = None
    text: str | None = None


@dataclass(frozen=True)
class PlanFacts:
    """How a query is run; if it cannot be, `problem` says why, and the rest is empty.

    Attributes:
        kernel: that of the automaton.
        why_general: why the plain kernel does not run it.
        derived: calls that need one event only: made when it comes in, and then an attribute like others.
        states: of the automaton.
        tree: the other way to run it.
        problem: why it cannot be run at all.
    """

    kernel: Literal["plain", "general"] | None
    why_general: str | None = None
    derived: tuple[str, ...] = ()
    states: tuple[StateFacts, ...] = ()
    tree: TreeFacts | None = None
    problem: str | None = None


def explain_plan(query: ast.Query, rates: Mapping[str, float] | None = None) -> PlanFacts:
    """Say how a query is run.

    Args:
        query: a query in which `validate` finds no problem.
        rates: events per second, by type; 1 for a type that is not given.

    Examples:
        >>> from penstock.pattern.parser import parse
        >>> facts = explain_plan(parse("PATTERN SEQ(A a, B b) WHERE a.v < b.v WITHIN 5 s"))
        >>> facts.kernel, facts.states[1].keeps
        ('plain', ('a.v',))
        >>> facts.states[1].steps[0].checks
        (Check(text='a.v < b.v', how='interval', register='a.v', calls=False),)
    """
    try:
        planned = plan(query, Calls.DERIVED)
    except PenstockError as error:
        return PlanFacts(None, problem=str(error))
    reading = _Reading(planned)
    return PlanFacts(
        "general" if planned.plain is None else "plain",
        planned.why_not_plain,
        tuple(_of_variable(column.name, "") for column in planned.terms.columns if column.node is not None),
        tuple(reading.state(number, state) for number, state in enumerate(planned.automaton.states)),
        _tree(planned, rates or {}),
    )


class _Reading:
    """Reads what a plan says of its states."""

    def __init__(self, planned: Plan) -> None:
        self.plan, self.terms = planned, planned.terms
        self.deciding = Deciding(planned.numbered, planned.automaton, planned.terms)
        self.names = [quote_name(info.name) for info in planned.numbered.variables]
        self.texts = list(_condition_texts(planned.query))
        self.steps = sorted(planned.automaton.transitions, key=lambda step: step.source)  # as in the tables
        self.first = [0]  # where the conjuncts of a step start in the plain tables
        for step in self.steps:
            self.first.append(self.first[-1] + len(planned.registers.asked[step]))
        asked = [each for every in planned.registers.asked.values() for each in every]
        self.sides = {each.register: self.kept_side(each) for each in asked if each.register is not None}
        self.taken = self.members_taken()

    def state(self, number: int, state: State) -> StateFacts:
        plain = self.plan.plain
        slots = {} if plain is None else self.plan.registers.slots[number]
        return StateFacts(
            number,
            (*(self.names[v] for v in sorted(state.bound)), *self.members(number)),
            tuple(map(self.register, slots)),
            None if plain is None else self.index(number),
            bool(state.endings),
            self.at_end(state) if state.endings else (),
            tuple(self.step(place) for place, step in enumerate(self.steps) if step.source == number),
        )

    # --- what is bound ----------------------------------------------------------------------------------------

    def members_taken(self) -> dict[int, set[tuple[int, ...]]]:
        """Return, per state, how many members of each bag the runs there have: several, where runs differ."""
        bags = self.plan.numbered.bags
        taken: dict[int, set[tuple[int, ...]]] = {0: {(0,) * len(bags)}}
        waiting = [0]
        while waiting:
            source = waiting.pop()
            for step in self.plan.automaton.leaving(source):
                mine = {do.number for do in step.ops if do.op is Op.TAKE_MEMBER}
                news = {
                    tuple(min(n + (bag in mine), len(bags[bag].members)) for bag, n in enumerate(counts))
                    for counts in taken[source]
                } - taken.setdefault(step.target, set())
                if news:
                    taken[step.target] |= news
                    waiting.append(step.target)
        return taken

    def members(self, state: int) -> Iterator[str]:
        """Yield what runs of a state have of the members of AND and ANY."""
        variables = self.plan.numbered.variables
        for number, bag in enumerate(self.plan.numbered.bags):
            counts = {each[number] for each in self.taken[state]}
            names = [self.names[member] for member in bag.members]
            spelled = ", ".join(names) if len(names) <= MOST_NAMES else f"{names[0]} … {names[-1]}"
            if counts == {0} or variables[bag.members[0]].loops:  # in a loop they are bound like others
                continue
            if counts == {len(names)}:
                yield from names
            else:
                how_many = str(*counts) if len(counts) == 1 else "perhaps some" if 0 in counts else "some"
                yield f"{how_many} of {spelled}"

    # --- steps ------------------------------------------------------------------------------------------------

    def step(self, place: int) -> Step:
        step = self.steps[place]
        info = self.plan.numbered.variables[step.variable]
        own = [Check(self.texts[c], "event") for c in self.plan.own[step.variable]]
        asked = list(self.checks(place, self.plan.registers.asked[step]))
        deep = [self.looking_back(c) for c, _ in self.plan.registers.deep[step]]
        forbids = [self.forbidding(n) for n, _ in self.deciding.ask(step)]
        return Step(info.name, info.types, step.target, (*own, *asked, *deep), tuple(forbids))

    def checks(self, place: int, asked: list[Asked]) -> Iterator[Check]:
        """Yield what a step asks; intervals that a condition implies, which stand before it, are told with it."""
        implied: dict[str, None] = {}
        for k, each in enumerate(asked):
            if each.condition < 0 and each.register is not None and not _is_same(each):
                implied[self.register(each.register)] = None
                continue
            check = self.check(place, k, each)
            yield replace(check, register=", ".join(implied)) if implied and check.how == "program" else check
            implied = {}

    def check(self, place: int, k: int, asked: Asked) -> Check:
        text, plain = self.text(asked), self.plan.plain
        if plain is None:
            return self.looking_back(asked.condition) if asked.condition >= 0 else Check(text, "elements")
        calls = self.calls(asked.condition)
        if asked.register is None:
            return Check(text, "program", None, calls)
        is_key = plain.steps[place, layout.PLAIN_KEY] == self.first[place] + k
        return Check(text, "index" if is_key else "interval", self.register(asked.register))

    def looking_back(self, condition: int) -> Check:
        return Check(self.texts[condition], "elements", None, self.calls(condition))

    def calls(self, condition: int) -> bool:
        return condition >= 0 and any(code == Code.CALL for code, _ in self.terms.conditions[condition].program)

    def text(self, asked: Asked) -> str:
        if asked.condition >= 0:
            return self.texts[asked.condition]
        assert isinstance(asked.register, Register), "SAME asks for what the first event has"
        column = asked.register.column
        return next(self.texts[c] for c, each in enumerate(self.terms.conditions) if each.same == column)

    def forbidding(self, negation: int) -> str:
        info = self.plan.numbered.variables[self.plan.numbered.negations[negation].variable]
        asked = [self.texts[c] for c in self.deciding.naming[negation]]
        with_ = f" with {' AND '.join(asked)}" if asked else ""
        return f"no {types_text(info.types)} {quote_name(info.name)}{with_}"

    def at_end(self, state: State) -> tuple[str, ...]:
        due = [self.texts[c] for c in self.deciding.due_at_end(state)]
        trailing = {n for way in state.endings for n in way.negations}
        return (*due, *(self.forbidding(n) for n in sorted({*self.deciding.ask_at_end(state), *trailing})))

    # --- registers --------------------------------------------------------------------------------------------

    def index(self, state: int) -> str | None:
        plain = self.plan.plain
        assert plain is not None
        slot, part = int(plain.states[state, layout.PLAIN_INDEX]), int(plain.options[layout.PLAIN_PART])
        if state == 0 or slot < 0:
            return None
        if slot == part:
            return "partition"
        keys = (int(row[layout.PLAIN_KEY]) for row in plain.steps if row[layout.PLAIN_SOURCE] == state)
        asked = conjuncts_in_order(self.plan.automaton, self.plan.registers)
        found = next(asked[key].register for key in keys if key >= 0)
        return None if found is None else self.register(found)

    def register(self, kept: Kept) -> str:
        """Return what a register holds, in the words of the language."""
        if not isinstance(kept, Register):
            return self.sides[kept] or self.expression(kept)
        column = None if kept.column < 0 else self.terms.columns[kept.column]
        if kept.keep is Keep.OPENING:
            assert column is not None
            return f"{_of_variable(column.name, '')} of the first event"
        name, is_list = self.names[kept.variable], bool(self.plan.numbered.variables[kept.variable].loops)
        if kept.keep in _KEPT:
            return f"{_KEPT[kept.keep]}({name}[]{'' if column is None else f'.{quote_name(column.name)}'})"
        assert column is not None
        owner = name if not is_list else f"{name}[{'first' if kept.keep is Keep.FIRST else 'last'}]"
        if column.node is not None:
            return _of_variable(column.name, f"{owner}.")
        text = f"{owner}.{quote_name(column.name)}"
        return f"prev({text})" if column.is_previous else text

    def expression(self, kept: Expression) -> str:
        """Return an expression that the plan has made of registers: no part of the query's text."""
        loads, stack = {load.reference: load for load in kept.loads}, list[str]()
        for code, argument in kept.program:
            if code == Code.REF:
                register = loads[argument].register
                stack.append("0" if register is None else self.register(register))
            elif code == Code.CONST:
                constant = self.terms.constants[argument]
                stack.append(f"{constant:g}" if isinstance(constant, float) else repr(constant))
            elif code in _SIGNS:
                right, left = stack.pop(), stack.pop()
                stack.append(f"({left} {_SIGNS[Code(code)]} {right})")
            else:
                stack.append(f"{Code(code).name.lower()}({stack.pop()})")
        return ", ".join(stack).removeprefix("(").removesuffix(")") if len(kept.program) == 3 else ", ".join(stack)

    def kept_side(self, asked: Asked) -> str:
        """Return the side of a comparison that the run keeps."""
        node = None if asked.condition < 0 else self.terms.conditions[asked.condition].node
        if not isinstance(node, ast.Comparison):
            return ""
        is_right = self.terms.program(node.left)[0] == asked.program
        return render_expression(node.right if is_right else node.left)


def _is_same(asked: Asked) -> bool:
    return isinstance(asked.register, Register) and asked.register.keep is Keep.OPENING


def _condition_texts(query: ast.Query) -> Iterator[str]:
    """Yield the text of each condition of `Terms`: SAME is one per key."""
    for conjunct in ast.conjuncts(query.where):
        parts = [ast.Same((key,)) for key in conjunct.keys] if isinstance(conjunct, ast.Same) else [conjunct]
        yield from map(render_expression, parts)


def types_text(types: tuple[str, ...]) -> str:
    """Return the types of a variable as a query writes them."""
    return "|".join(map(quote_name, types)) or "*"


def _of_variable(text: str, owner: str) -> str:
    """Return a derived column, which is written with `_` for its event, with what its event is called."""
    return re.sub(r"(?<![\w`])_\.", owner, text)


# --- the tree ---------------------------------------------------------------------------------------------------


def _tree(planned: Plan, rates: Mapping[str, float]) -> TreeFacts:
    named = [name for info in planned.numbered.variables for name in info.types]
    known = {**dict.fromkeys(named, 1.0), **rates}
    reason = why_no_tree(planned)
    if reason is not None:
        return TreeFacts(known, "automaton", reason)
    choice = choose(planned, Statistics(known))
    assert choice.tree is not None
    assert choice.automaton_cost is not None
    total = sum(known.values()) or 1.0
    return TreeFacts(
        known,
        "tree" if choice.is_tree else "automaton",
        None,
        choice.tree.tree.render(choice.tree.query.names),
        choice.tree.cost / total,
        choice.automaton_cost / total,
        render_plan(choice.tree),
    )
