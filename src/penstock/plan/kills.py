"""Negations that end runs at once: an event that may not come, comes, and the runs that wait there are abandoned.

That is right where nothing that comes later can change it: the negation stands between two steps of a sequence, all
that a run can do next would pass it, and its conditions name what is bound before it. Then a *kill* is asked like a
step from a state to itself that binds the negated variable, and the runs that it finds leave.
"""

from __future__ import annotations

from penstock.plan.automaton import Automaton, Transition
from penstock.plan.deciding import Deciding


def kills(machine: Automaton) -> list[Transition]:
    """Return the kills of an automaton, by state; right only if `why_no_kills` has nothing to say."""
    found = []
    for number in range(1, len(machine.states)):
        passed = {negation for step in machine.leaving(number) for negation in step.negations}
        variables = sorted(machine.numbered.negations[negation].variable for negation in passed)
        found += [Transition(number, number, variable, (), ()) for variable in variables]
    return found


def why_no_kills(deciding: Deciding) -> str | None:
    """Return why the negations of a pattern do not end runs at once; None if they do, or if there are none."""
    machine, negations = deciding.machine, deciding.numbered.negations
    if any(way.negations for state in machine.states for way in state.endings):
        return "a negation at the end waits for time to pass"
    if any(step.negations for step in machine.leaving(0)):
        return "a negation at the start looks back"
    if any(info.loops for info in negations):
        return "a negation is repeated"
    for number, state in enumerate(machine.states):
        passed = {frozenset(step.negations) for step in machine.leaving(number)}
        if len(passed) > 1:
            return "a negation stands beside something that may still come"
        if not all(deciding.is_settled(negation, state) for each in passed for negation in each):
            return "what a negation forbids depends on what comes later"
    return None


def asked_by_kill(deciding: Deciding, kill: Transition) -> list[tuple[int, int]]:
    """Return the conditions that the event of a kill must satisfy: all that name the negated variable."""
    number = next(n for n, info in enumerate(deciding.numbered.negations) if info.variable == kill.variable)
    return [(condition, 0) for condition in deciding.naming[number]]
