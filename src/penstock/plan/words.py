"""The facts of `penstock.plan.explain`, for people."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from penstock.pattern.render import quote_name
from penstock.plan.explain import Check, PlanFacts, StateFacts, Step, TreeFacts, types_text

MOST_STEPS = 12  # of a state that are shown
_UNITS = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}
_HOW_WORDS = {
    "index": "by index",
    "interval": "by interval",
    "program": "by the stack machine, run by run",
    "elements": "by the elements of the run",
}


def plan_words(facts: PlanFacts) -> str:
    """Put the facts of `explain_plan` into words.

    Examples:
        >>> from penstock.pattern.parser import parse
        >>> from penstock.plan.explain import explain_plan
        >>> query = parse("PATTERN SEQ(A a, A b) WHERE a.v < b.v AND b.v > 3 WITHIN 5 s SELECT FIRST")
        >>> print(plan_words(explain_plan(query)))
        Automaton, on the plain kernel
          of an event alone, when it comes in
               b.v > 3
          0  nothing is bound
               A a -> 1
          1  a is bound; kept: a.v
               A b -> 2
                 a.v < b.v, by interval on a.v
          2  a, b are bound: a match
        <BLANKLINE>
        Tree plan
          none: SELECT FIRST is about runs
    """
    if facts.problem is not None or facts.tree is None:
        return f"Plan\n  none: {facts.problem}"
    return "\n\n".join("\n".join(lines) for lines in (_automaton_words(facts), _tree_words(facts.tree)))


def _automaton_words(facts: PlanFacts) -> Iterator[str]:
    why = f": {facts.why_general}" if facts.why_general else ""
    yield f"Automaton, on the {facts.kernel} kernel{why}"
    yield from _intake_words(facts)
    width = len(str(len(facts.states) - 1))
    for state in facts.states:
        yield f"  {state.number:>{width}}  {_state_words(state)}"
        indent = " " * (width + 6)
        yield from (f"{indent}at the end: {each}" for each in state.at_end)
        groups = [list(alike) for _, alike in groupby(state.steps, _what_runs_are_asked)]
        for group in groups[:MOST_STEPS]:
            yield from (indent + line for line in _step_words(group))
        if len(groups) > MOST_STEPS:
            yield f"{indent}… and {len(groups) - MOST_STEPS} more"


def _intake_words(facts: PlanFacts) -> Iterator[str]:
    """Yield what is asked of each event once, before any run is asked."""
    steps = [step for state in facts.states for step in state.steps]
    own = dict.fromkeys(check.text for step in steps for check in step.checks if check.how == "event")
    if facts.derived or own:
        yield "  of an event alone, when it comes in"
    yield from (f"       {call}, to be used like an attribute" for call in facts.derived)
    yield from (f"       {text}" for text in own)


def _what_runs_are_asked(step: Step) -> tuple[int, tuple[Check, ...], tuple[str, ...]]:
    return step.target, tuple(check for check in step.checks if check.how != "event"), step.forbids


def _state_words(state: StateFacts) -> str:
    is_one = len(state.bound) == 1 and (" of " not in state.bound[0] or state.bound[0].startswith("1 of "))
    verb = "is" if is_one else "are"
    words = f"{', '.join(state.bound)} {verb} bound" if state.bound else "nothing is bound"
    words += ": a match" if state.may_end and not state.steps else ", perhaps a match" if state.may_end else ""
    words += f"; kept: {', '.join(state.keeps)}" if state.keeps else ""
    return words + (f"; found by {state.index}" if state.index else "")


def _step_words(alike: list[Step]) -> Iterator[str]:
    named = [f"{types_text(step.types)} {quote_name(step.variable)}" for step in (alike[0], alike[-1])]
    target, checks, forbids = _what_runs_are_asked(alike[0])
    yield f"{named[0] if len(alike) == 1 else f'{named[0]} … {named[1]} ({len(alike)} variables)'} -> {target}"
    for check in checks:
        how, called = _HOW_WORDS[check.how], ", with a call" if check.calls else ""
        if check.register and check.how == "program":
            how = f"by interval on {check.register}, then {how}"
        elif check.register:
            how += f" on {check.register}"
        yield f"  {check.text}, {how}{called}"
    yield from (f"  {each}" for each in forbids)


def _tree_words(tree: TreeFacts) -> Iterator[str]:
    if tree.why_none is not None or tree.tree_ns is None or tree.automaton_ns is None:
        yield f"Tree plan\n  none: {tree.why_none}"
        return
    yield f"Tree plan, at {', '.join(f'{name} {rate:g}/s' for name, rate in tree.rates.items()) or 'any rate'}"
    costs = f"the tree {tree.order} costs {_time(tree.tree_ns)} an event, the automaton {_time(tree.automaton_ns)}"
    yield f"  {'chosen' if tree.chosen == 'tree' else 'not chosen'}: {costs}"
    yield from (f"  {line}" for line in (tree.text or "").splitlines())


def _time(ns: float) -> str:
    unit = next((unit for unit in _UNITS if ns < 1000 * _UNITS[unit]), "s")
    return f"{ns / _UNITS[unit]:.3g} {unit}"
