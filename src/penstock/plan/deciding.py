"""When each condition is asked, and each negation (docs/language.md, section 5: decided)."""

from __future__ import annotations

from penstock.plan.automaton import Automaton, State, Transition
from penstock.plan.positions import Numbered
from penstock.plan.terms import Condition, Index, Terms

_CLOSING = (Index.LAST, Index.ALL)


class Deciding:
    """Says, for each step and each end of an automaton, what is decided there and not before."""

    def __init__(self, numbered: Numbered, machine: Automaton, terms: Terms) -> None:
        self.numbered, self.machine, self.terms = numbered, machine, terms
        self.negated = {info.variable: n for n, info in enumerate(numbered.negations)}
        self.members_bound = _members_bound(machine)
        self.positive = [
            (c, condition)
            for c, condition in enumerate(terms.conditions)
            if not condition.variables & self.negated.keys()
        ]
        self.naming = [
            [c for c, cond in enumerate(terms.conditions) if cond.same >= 0 or info.variable in cond.variables]
            for info in numbered.negations
        ]

    # --- conditions -------------------------------------------------------------------------------------------

    def is_own(self, condition: Condition) -> bool:
        """Whether a condition names one variable only, and of it the element that is being bound."""
        refs = [self.terms.references[r] for r in condition.references]
        return condition.same < 0 and len(condition.variables) == 1 and all(r.index == Index.CURRENT for r in refs)

    def own(self, variable: int) -> tuple[int, ...]:
        """Return the conditions that name a variable alone."""
        return tuple(c for c, each in self.positive if self.is_own(each) and variable in each.variables)

    def closing(self, condition: Condition) -> set[int]:
        """Return the lists that must be closed before a condition can be asked."""
        refs = (self.terms.references[r] for r in condition.references)
        return {r.variable for r in refs if r.index in _CLOSING}

    def is_missing(self, condition: Condition, state: State) -> bool:
        """Whether it names a variable that is no list and that no run in this state has bound."""
        scalars = {v for v in condition.variables if not self.numbered.variables[v].loops}
        return bool(scalars - state.bound - self.members_bound[state])

    def due(self, step: Transition) -> list[tuple[int, int]]:
        """Return the conditions to ask at a step; 1: only of the round that the event is bound in, 0: of all."""
        source, target = self.machine.states[step.source], self.machine.states[step.target]
        found = []
        for c, condition in self.positive:
            closing = self.closing(condition)
            has_closed = bool((closing & source.open) - target.open)
            is_touched = condition.same >= 0 or has_closed or step.variable in condition.variables
            is_ready = closing & target.open <= target.by_bag[0] and not self.is_missing(condition, target)
            if is_touched and is_ready and not self.is_own(condition):
                is_whole = has_closed or self.hinges_on_bag(c, step)
                found.append((c, int(not is_whole and self.is_of_one_round(condition, step.variable))))
        return found

    def hinges_on_bag(self, condition: int, step: Transition) -> bool:
        """Whether only a run knows, by the members of its bags, if the lists that must be closed are."""
        return bool(self.closing(self.terms.conditions[condition]) & self.machine.states[step.target].open)

    def is_of_one_round(self, condition: Condition, variable: int) -> bool:
        """Whether binding a variable can only touch what a condition says about the round it is bound in."""
        mine = [r for r in condition.references if self.terms.references[r].variable == variable]
        return condition.depth > 0 and all(self.terms.depth_of(r) == condition.depth for r in mine)

    def due_at_end(self, state: State) -> list[int]:
        """Return the conditions to ask when a run ends in a state."""
        return [
            c
            for c, condition in self.positive
            if condition.same < 0 and self.closing(condition) & state.open and not self.is_missing(condition, state)
        ]

    # --- negations --------------------------------------------------------------------------------------------

    def is_settled(self, negation: int, state: State) -> bool:
        """Whether everything that its conditions name is bound for good in this state, and something before it is."""
        info = self.numbered.negations[negation]
        if not {v for v, _ in info.before} & state.bound:
            return False
        for c in self.naming[negation]:
            for r in self.terms.conditions[c].references:
                ref = self.terms.references[r]
                is_scalar = not self.numbered.variables[ref.variable].loops and ref.variable in state.bound
                if ref.variable != info.variable and not is_scalar and ref.variable in state.open:
                    return False
                if ref.variable != info.variable and self.terms.depth_of(r) and info.loops:
                    return False
        return True

    def ask(self, step: Transition) -> list[tuple[int, int]]:
        """The negations to ask at a step; 1: only where the step passes it, 0: wherever the run has passed it."""
        source, target = self.machine.states[step.source], self.machine.states[step.target]
        asked = []
        for n in sorted(target.passed):
            if not self.is_settled(n, target) or (n in source.passed and not self.is_settled(n, source)):
                asked.append((n, 0))
            elif n in step.negations:
                asked.append((n, 1))
        return asked

    def ask_at_end(self, state: State) -> list[int]:
        """Return the negations to ask when a run ends in a state."""
        return [n for n in sorted(state.passed) if not self.is_settled(n, state)]


def _members_bound(machine: Automaton) -> dict[State, set[int]]:
    """Return, per state, the members of bags that some run there has bound."""
    members = {member for bag in machine.numbered.bags for member in bag.members}
    bound: dict[State, set[int]] = {state: set() for state in machine.states}
    is_news = True
    while is_news:
        is_news = False
        for step in machine.transitions:
            source, target = machine.states[step.source], machine.states[step.target]
            news = (bound[source] | ({step.variable} & members)) - bound[target]
            bound[target] |= news
            is_news = is_news or bool(news)
    return bound
