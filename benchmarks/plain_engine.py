"""The straightforward engine in plain Python that the kernel is measured against.

It is the eager automaton as one would write it without numba: runs are small tuples in a list per state, an event asks
only the states whose step takes its type, conditions are closures over what a run has kept, equality by key is a dict
from key to states, and a run knows when it ends. It handles sequences of steps, of which some repeat; ANY(n of m) is n
steps that all take the m types. Conditions keep what they need in the run's *value*.

It is honest about its limits: `Spec` refuses what it would get wrong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from math import nan
from typing import Any, TypeAlias

Event: TypeAlias = tuple[Any, ...]  # ts, seq, type, then the attributes in the order of the stream's columns
Bound: TypeAlias = tuple[tuple[str, int], ...]  # (variable, seq), in the order of binding
Run: TypeAlias = tuple[int, Any, Bound]  # last moment (ts or position) it may live to, value, what it has bound
States: TypeAlias = list[list[Run]]  # per state k: the runs that have bound the steps up to k
Found: TypeAlias = tuple[int | None, Bound]  # window and what was bound
Match: TypeAlias = tuple[int | None, frozenset[tuple[str, tuple[int, ...]]]]  # as Found, per variable: to compare

# How often per WITHIN the runs that have ended are thrown out: at 8, at most an eighth of a list is dead. With keys a
# sweep visits all of them, so it is done rarely, and a list is cleaned when it is asked and its oldest run has ended.
SWEEPS, SWEEPS_KEYED = 8, 1

TS, SEQ, TYPE, ATTRIBUTE = 0, 1, 2, 3  # places in an Event


def always(_value: Any, _event: Event) -> bool:
    """Hold for every run and event."""
    return True


def nothing(_value: Any, _event: Event) -> None:
    """Keep nothing in the run."""


@dataclass(frozen=True)
class Step:
    """One step: which types it takes, when, and what the run keeps then.

    `check` and `extend` get the run's value (None for the first step) and the event. `names` are the variables, one per
    type or one for all. A step that `repeats` is a list and takes more events while the next step has not been taken.
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    check: Callable[[Any, Event], bool] = always
    extend: Callable[[Any, Event], Any] = nothing
    repeats: bool = False
    consumes: bool = False

    def variable(self, kind: str) -> str:
        """Return the variable that an event of this type is bound to."""
        return self.names[self.types.index(kind)] if len(self.names) > 1 else self.names[0]


@dataclass(frozen=True)
class Spec:
    """A query, by hand.

    `within` is in microseconds, or in events if `by_count`. `same` and `previous` are places in an Event: of the key,
    and of the attribute whose value at the previous event of the type is put behind the event's attributes. Windows
    are opened by events of the types `opened_by` and last as many events as `within`.
    """

    steps: tuple[Step, ...]
    within: int
    by_count: bool = False
    greedy: bool = True  # EACH; else FIRST
    same: int | None = None
    previous: int | None = None
    opened_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        kinds = [kind for step in self.steps for kind in step.types]
        special = any(step.repeats or step.consumes for step in self.steps)
        if special and len(kinds) != len(set(kinds)):
            raise ValueError("steps that share a type can neither repeat nor consume")
        if self.steps[-1].repeats or len(self.steps) < 2:
            raise ValueError("a match must end with a step of its own")
        if self.greedy and any(step.consumes for step in self.steps):
            raise ValueError("consumption is known at binding only, so only with FIRST")
        if self.opened_by and not self.by_count:
            raise ValueError("windows are counted in events")


def any_of(n: int, letter: str, members: int, reach: float | None = None) -> tuple[Step, ...]:
    """ANY(n of the types letter1, letter2, …) as n steps: a run keeps the members that it has, as bits.

    With a `reach` they follow an event that has left (its position, no bits), and each must be so near to it.
    """
    types = tuple(f"{letter}{k}" for k in range(1, members + 1))
    names = tuple(kind.lower() for kind in types)
    bit = {kind: 1 << k for k, kind in enumerate(types)}
    if reach is None:
        step = Step(names, types, lambda v, e: not v & bit[e[TYPE]], lambda v, e: v | bit[e[TYPE]])
        opening = Step(names, types, extend=lambda _, e: bit[e[TYPE]])
        return (opening, *(step,) * (n - 1))
    step = Step(
        names,
        types,
        lambda v, e: not v[1] & bit[e[TYPE]] and -reach <= v[0] - e[ATTRIBUTE] <= reach,
        lambda v, e: (v[0], v[1] | bit[e[TYPE]]),
    )
    return (step,) * n


class PlainEngine:
    """Finds the matches of a spec.

    `checks` counts how often a run was asked about an event, `created` how many runs were made.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.checks = self.created = 0
        self._states: dict[Any, States] = {}  # per key; one entry if there is no key
        self._position = -1
        self._next_sweep = 0
        self._last: dict[str, Any] = {}  # per type, the attribute at its previous event
        self._windows: deque[tuple[int, int]] = deque()  # (position, seq) of the events that opened those still open
        self._plans = {kind: self._plan(kind) for step in spec.steps for kind in step.types}

    def _plan(self, kind: str) -> list[tuple[int, Step, str]]:
        """Return the steps that take a type, last first: so that an event does not meet the run it has just made."""
        taking = [(k, step) for k, step in enumerate(self.spec.steps) if kind in step.types]
        return [(k, step, step.variable(kind)) for k, step in reversed(taking)]

    def process(self, events: Iterable[Event]) -> list[Found]:
        """Take events, in order, and return the matches that they complete."""
        spec, plans, keyed = self.spec, self._plans, self._states
        by_count, same, previous, opened_by = spec.by_count, spec.same, spec.previous, frozenset(spec.opened_by)
        ask = self._each if spec.greedy else self._first
        last_state = len(spec.steps) - 1
        found: list[Found] = []
        for event in events:
            self._position += 1
            kind = event[TYPE]
            now = self._position if by_count else event[TS]
            if now >= self._next_sweep:
                self._sweep(now)
            if kind in opened_by:
                self._windows.append((now, event[SEQ]))
            plan = plans.get(kind)
            if plan is None:
                continue
            if previous is not None:
                before = self._last.get(kind, nan)
                self._last[kind] = event[previous]
                event = (*event, before)
            key = None if same is None else event[same]
            states = keyed.get(key)
            if states is None:
                states = keyed[key] = [[] for _ in range(last_state)]
            for k, step, name in plan:
                item = (name, event[SEQ])
                if k:
                    runs = states[k - 1]
                    if key is not None and runs and runs[0][0] < now:
                        states[k - 1] = [run for run in runs if run[0] >= now]
                    complete = ask(states, k, step, event, item, now)
                    if complete:
                        found += self._emit(complete, now)
                elif step.check(None, event):
                    self._open(states, step, event, item, now)
        return found

    def _open(self, states: States, step: Step, event: Event, item: tuple[str, int], now: int) -> None:
        spec = self.spec
        ends = now + spec.within - (1 if spec.by_count else 0)
        if spec.opened_by:  # a run lives as long as the newest window that its first event is in
            ends = self._windows[-1][0] + spec.within - 1 if self._windows else now - 1
        if ends >= now:
            states[0].append((ends, step.extend(None, event), (item,)))
            self.created += 1

    def _each(self, states: States, k: int, step: Step, event: Event, item: tuple[str, int], now: int) -> list[Run]:
        """Copy every run that can take the event, with it, to state k; return those that are complete."""
        check, extend = step.check, step.extend
        runs, tail = states[k - 1], (item,)
        self.checks += len(runs)
        new = [
            (ends, extend(value, event), bound + tail)
            for ends, value, bound in runs
            if ends >= now and check(value, event)
        ]
        if k == len(states):
            return new
        if step.repeats:
            runs = states[k]
            self.checks += len(runs)
            new += [
                (ends, extend(value, event), bound + tail)
                for ends, value, bound in runs
                if ends >= now and check(value, event)
            ]
        self.created += len(new)
        states[k] += new
        return []

    def _first(self, states: States, k: int, step: Step, event: Event, item: tuple[str, int], now: int) -> list[Run]:
        """Move every run that can take the event (if it consumes: the oldest), with it, to state k."""
        check, extend, tail = step.check, step.extend, (item,)
        sources = [k - 1, k] if step.repeats else [k - 1]
        asked = [[run for run in states[s] if run[0] >= now and check(run[1], event)] for s in sources]
        self.checks += sum(len(states[s]) for s in sources)
        if step.consumes:
            oldest = min((run for runs in asked for run in runs), key=lambda run: run[2][0][1], default=None)
            asked = [[run for run in runs if run is oldest] for runs in asked]
        moved: list[Run] = []
        for source, runs in zip(sources, asked, strict=True):
            if runs:
                gone = set(map(id, runs))
                states[source] = [run for run in states[source] if id(run) not in gone]
                moved += [(ends, extend(value, event), bound + tail) for ends, value, bound in runs]
        if k == len(states):
            return moved
        states[k] += moved
        return []

    def _emit(self, complete: list[Run], now: int) -> Iterator[Found]:
        """Give each match once, or once per window that its first event and this one are both in."""
        if not self.spec.opened_by:
            return zip(repeat(None), (bound for _, _, bound in complete))
        self._close_windows(now)
        return ((opened, bound) for _, _, bound in complete for _, opened in self._windows if opened <= bound[0][1])

    def _close_windows(self, now: int) -> None:
        while self._windows and self._windows[0][0] + self.spec.within <= now:
            self._windows.popleft()

    def _sweep(self, now: int) -> None:
        """Throw out the runs that have ended, and the keys that have no runs."""
        sweeps = SWEEPS if self.spec.same is None else SWEEPS_KEYED
        self._next_sweep = now + max(1, self.spec.within // sweeps)
        self._close_windows(now)
        for key, states in list(self._states.items()):
            for k, runs in enumerate(states):
                if runs:
                    states[k] = [run for run in runs if run[0] >= now]
            if not any(states):
                del self._states[key]


def rows(stream: dict[str, Any], start: int = 0, stop: int | None = None) -> list[Event]:
    """Return events of a stream of columns as tuples; the sequence number counts from 0.

    Examples:
        >>> import numpy as np
        >>> rows({"type": np.array(["A", "B"]), "ts": np.array([5, 7]), "v": np.array([0.5, 1.5])}, start=1)
        [(7, 1, 'B', 1.5)]
    """
    attributes = [column[start:stop].tolist() for name, column in stream.items() if name not in ("type", "ts")]
    times = stream["ts"][start:stop].tolist()
    numbers = range(start, start + len(times))
    return list(zip(times, numbers, stream["type"][start:stop].tolist(), *attributes, strict=True))


def as_matches(found: Iterable[Found]) -> set[Match]:
    """Return matches in a form to compare: the window and, per variable, its events."""
    matches = set()
    for window, bound in found:
        lists: dict[str, tuple[int, ...]] = {}
        for name, seq in bound:
            lists[name] = (*lists.get(name, ()), seq)
        matches.add((window, frozenset(lists.items())))
    return matches


def matches_of(table: Any) -> set[Match]:
    """Return the matches in an Arrow table of `penstock.Engine` in the same form: its lists are the variables."""
    names = [field.name for field in table.schema if str(field.type).startswith(("list", "large_list"))]
    windows = table["window"].to_pylist() if "window" in table.column_names else [None] * len(table)
    lists = zip(*(table[name].to_pylist() for name in names), strict=True)
    return {
        (window, frozenset((name, tuple(seqs)) for name, seqs in zip(names, bound, strict=True) if seqs))
        for window, bound in zip(windows, lists, strict=True)
    }
