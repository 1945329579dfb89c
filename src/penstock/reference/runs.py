"""SELECT FIRST and STRICT: runs that take the first event they can (docs/language.md, section 5).

A run that branches instead, one copy taking the event and one passing it by, finds what EACH finds; `all_runs` does
that, as a second way to the same truth and to list the partial matches that an engine would keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.pattern import ast
from penstock.reference.assignments import Known, Question
from penstock.reference.conditions import World, holds, is_decided
from penstock.reference.events import Binding, Bound, Forbidden
from penstock.reference.rest import InOrder, Passed, Rest, Step, Whole, endings, open_variables, steps

NOTHING = InOrder()  # what is left of a pattern that is done


@dataclass(frozen=True)
class Run:
    """A partial match and what is left of the pattern."""

    binding: Binding
    rest: Rest

    @property
    def first(self) -> int:
        """The position of the event that opened it."""
        return self.binding.bound[0].at


def can_go_on(run: Run) -> bool:
    """Return whether a run may take further events."""
    return any(True for _ in steps(run.rest))


@dataclass(frozen=True)
class Runner:
    """The rules by which runs go through one window."""

    asked: Question
    world: World
    window: range

    def end_of(self, run: Run) -> int:
        """Return the position after the last event that WITHIN lets a run take."""
        return self.world.stream.reach_on(run.first, self.asked.within)

    def extended(self, run: Run, step: Step, at: int) -> Run | None:
        """Return the run with the event at a position bound as a step says, or None if it cannot take it so."""
        if step.event.types and self.world.stream.events[at].type not in step.event.types:
            return None
        if run.binding.bound and at >= self.end_of(run):
            return None
        binding = Binding(
            (*run.binding.bound, Bound(step.event.variable, step.rounds, at)),
            run.binding.lists | step.passed.lists,
            run.binding.forbidden + step.passed.forbidden,
        )
        longer = Run(binding, step.rest)
        return longer if self._is_possible(longer) else None

    def _is_possible(self, run: Run) -> bool:
        """Return whether nothing that is decided speaks against a run; if it must end here, everything is."""
        if not can_go_on(run):
            return any(self._is_sound(self._ended(run, ending), NOTHING) for ending in endings(run.rest))
        return self._is_sound(run.binding, run.rest)

    def _is_sound(self, binding: Binding, rest: Rest) -> bool:
        still_open = open_variables(rest)
        if not all(holds(c, binding, self.world, open_variables=still_open) for c in self.asked.conjuncts):
            return False
        return not any(self._is_violated_now(f, binding, rest) for f in binding.forbidden)

    def _is_violated_now(self, forbidden: Forbidden, binding: Binding, rest: Rest) -> bool:
        """Return whether a negation is violated for good: not while its span or a conjunct on it can still change."""
        asked = self.asked.negations
        if asked.is_trailing(forbidden, binding) or (open_variables(rest) and asked.is_leading(forbidden, binding)):
            return False
        return self.is_decided(forbidden, binding, rest) and asked.is_violated(
            forbidden, binding, self.world, asked.span(forbidden, binding, self.world, self.window)
        )

    def is_decided(self, forbidden: Forbidden, binding: Binding, rest: Rest) -> bool:
        """Return whether no conjunct on a negated variable can change its mind about an event."""

        def is_open(variable: str, rounds: tuple[int, ...]) -> bool:
            return variable in open_variables(rest, rounds)

        conjuncts = self.asked.negations.naming[forbidden.negation.event.variable]
        return all(is_decided(c, binding, self.world, forbidden.rounds, is_open) for c in conjuncts)

    @staticmethod
    def _ended(run: Run, ending: Passed) -> Binding:
        return Binding(run.binding.bound, run.binding.lists | ending.lists, run.binding.forbidden + ending.forbidden)

    def match_of(self, run: Run) -> Binding | None:
        """Return the match that a run is if it takes no more events, or None; trailing negations are asked too."""
        asked = self.asked.negations
        for ending in endings(run.rest):
            binding = self._ended(run, ending)
            spans = [(f, asked.span(f, binding, self.world, self.window)) for f in binding.forbidden]
            if self._is_sound(binding, NOTHING) and not any(
                asked.is_violated(f, binding, self.world, span) for f, span in spans
            ):
                return binding
        return None

    def all_openings(self, at: int) -> Iterator[tuple[Step, Run]]:
        """Yield the runs that an event can open, in every way to read it, in the order of the text."""
        whole = Whole(self.asked.pattern)
        for step in steps(whole):
            run = self.extended(Run(Binding(), whole), step, at)
            if run is not None:
                yield step, run

    def openings(self, at: int) -> Iterator[tuple[Step, Run]]:
        """Yield the runs that an event can open, one per variable, in the order of the text."""
        seen: set[str] = set()
        for step, run in self.all_openings(at):
            if step.event.variable not in seen:
                seen.add(step.event.variable)
                yield step, run

    def preferred(self, run: Run) -> list[Step]:
        """Return the next steps of a run: variables bound for the first time, then lists that go on, as in the text."""
        bound = {b.variable for b in run.binding.bound}
        text = list(self.world.variables)
        return sorted(steps(run.rest), key=lambda s: (s.event.variable in bound, text.index(s.event.variable)))


@dataclass
class FirstRuns:
    """SELECT FIRST or STRICT over a window. After `go`: the matches, and the runs that were open at its end."""

    runner: Runner
    consume: ast.Consume
    is_strict: bool
    matches: list[Known] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)  # the oldest first
    taken: set[int] = field(default_factory=set)
    consumed: set[int] = field(default_factory=set)

    def go(self) -> FirstRuns:
        """Take the window's events one after the other."""
        for at in self.runner.window:
            self.runs = [after for run in self.runs if (after := self._meet(run, at)) is not None]
            for step, run in self.runner.openings(at):
                if self._is_free(step, at):
                    self._take(step, at)
                    kept = self._unless_done(run, at)
                    self.runs += [] if kept is None else [kept]
        return self

    def finish(self) -> list[Known]:
        """End the runs that are still open, and return all matches."""
        for run in self.runs:
            self._end(run, None)
        return self.matches

    def _meet(self, run: Run, at: int) -> Run | None:
        """Offer an event to a run; return the run as it goes on, or None if it ended."""
        if at >= self.runner.end_of(run):
            self._end(run, None)
            return None
        for step in self.runner.preferred(run):
            longer = self.runner.extended(run, step, at) if self._is_free(step, at) else None
            if longer is not None:
                self._take(step, at)
                return self._unless_done(longer, at)
        if self.is_strict:
            self._end(run, at - 0.5)
            return None
        return run

    def _unless_done(self, run: Run, at: int) -> Run | None:
        if can_go_on(run):
            return run
        self._end(run, at)
        return None

    def _end(self, run: Run, at: float | None) -> None:
        binding = self.runner.match_of(run)
        if binding is not None:
            self.matches.append(self.runner.asked.known(binding, self.runner.world, at))

    def _is_free(self, step: Step, at: int) -> bool:
        return at not in (self.taken if self._consumes(step) else self.consumed)

    def _take(self, step: Step, at: int) -> None:
        self.taken.add(at)
        if self._consumes(step):
            self.consumed.add(at)

    def _consumes(self, step: Step) -> bool:
        return self.consume.all or step.event.variable in {name.text for name in self.consume.variables}


def all_runs(runner: Runner) -> Iterator[Run]:
    """Yield every run, whole or partial, of SELECT EACH: each event is taken in every way, and passed by."""
    runs: list[Run] = []
    for at in runner.window:
        longer = [r for run in runs for step in steps(run.rest) if (r := runner.extended(run, step, at)) is not None]
        opened = [run for _, run in runner.all_openings(at)]
        yield from longer + opened
        runs += longer + opened


def is_abandoned(run: Run, runner: Runner, now: int) -> bool:
    """Return whether a negation that every way on must pass is violated by an event up to `now`."""
    asked, binding = runner.asked.negations, run.binding
    until_now = range(runner.window.start, now + 1)

    def is_violated(forbidden: Forbidden) -> bool:
        if asked.is_leading(forbidden, binding) or not runner.is_decided(forbidden, binding, run.rest):
            return False
        return asked.is_violated(
            forbidden, binding, runner.world, asked.span(forbidden, binding, runner.world, until_now)
        )

    return not endings(run.rest) and all(any(map(is_violated, step.passed.forbidden)) for step in steps(run.rest))
