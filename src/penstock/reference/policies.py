"""SELECT and CONSUME where they choose among whole matches (docs/language.md, sections 5 and 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.reference.assignments import Known
from penstock.reference.events import Binding, Bound


def in_order(matches: Iterable[Known]) -> list[Known]:
    """Sort matches as they become known; at the same moment, by their events, then by their variables."""
    return sorted(matches, key=lambda m: (m.when, m.binding.positions, _spelled(m.binding)))


def distinct(matches: Iterable[Known]) -> list[Known]:
    """Keep one match of each assignment: of several ways to read it, the one that is known first."""
    latest_first = sorted(matches, key=lambda m: m.when, reverse=True)
    return list({_spelled(m.binding): m for m in latest_first}.values())


def _spelled(binding: Binding) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((b.variable, b.at) for b in binding.bound))


# --- SELECT -------------------------------------------------------------------------------------------------


def select(matches: list[Known], chosen: ast.Select, order: list[str]) -> list[Known]:
    """Apply SELECT to the EACH matches. `order` are the variables in the order of the text."""
    if chosen.policy is Policy.LAST:
        return [max(group, key=lambda m: _lateness(m.binding, order)) for group in _groups(matches, _last)]
    if chosen.policy is Policy.CUMULATIVE:
        return [_together(group, set(order)) for group in _groups(matches, _last)]
    if chosen.variables:
        return _select_per_variable(matches, chosen.variables, order)
    return matches


def _groups(matches: list[Known], key: Callable[[Binding], Any]) -> list[list[Known]]:
    ordered = sorted(matches, key=lambda m: key(m.binding))
    return [list(group) for _, group in groupby(ordered, key=lambda m: key(m.binding))]


def _last(binding: Binding) -> int:
    return binding.positions[-1]


def _at(binding: Binding, variable: str) -> tuple[int, ...]:
    return tuple(b.at for b in binding.of(variable))


def _lateness(binding: Binding, order: list[str]) -> tuple[Any, ...]:
    """A key by which a later match is greater: its events from the last backwards, then its variables likewise."""
    return tuple(reversed(binding.positions)), tuple(_at(binding, v)[::-1] for v in reversed(order))


def _together(group: list[Known], gathered: set[str]) -> Known:
    """Bind to each gathered variable, as a list, all events that it has in the group; leave the rest as it is."""
    first = group[0]
    kept = {b for b in first.binding.bound if b.variable not in gathered}
    added = [
        Bound(name, (number,), at)
        for name in sorted(gathered)
        for number, at in enumerate(sorted({at for m in group for at in _at(m.binding, name)}), start=1)
    ]
    bound = tuple(sorted(kept | set(added), key=lambda b: (b.at, b.variable)))
    when = max(m.when for m in group)
    lists = first.binding.lists | {b.variable for b in added}
    return Known(Binding(bound, lists, first.binding.forbidden), when)


def _select_per_variable(matches: list[Known], listed: tuple[ast.SelectVariable, ...], order: list[str]) -> list[Known]:
    policies = {each.variable: each.policy for each in listed}
    others = [name for name in order if name not in policies]
    compared = [name for name in reversed(order) if policies.get(name) in (Policy.FIRST, Policy.LAST)]
    gathered = {name for name, policy in policies.items() if policy is Policy.CUMULATIVE}

    def preference(match: Known) -> tuple[Any, ...]:
        return tuple(_preferred(_at(match.binding, name), policies[name]) for name in compared)

    kept = []
    for group in _groups(matches, lambda b: (_last(b), tuple(_at(b, name) for name in others))):
        best = max(preference(match) for match in group)
        kept.append(_together([match for match in group if preference(match) == best], gathered))
    return kept


def _preferred(events: tuple[int, ...], policy: Policy) -> tuple[int, ...]:
    """A key by which later events are greater (LAST), or earlier ones (FIRST)."""
    return events[::-1] if policy is Policy.LAST else tuple(-at for at in events)


# --- CONSUME ------------------------------------------------------------------------------------------------


def consume(matches: list[Known], consumed: ast.Consume, chosen: ast.Select, order: list[str]) -> list[Known]:
    """Apply SELECT and CONSUME at emission: what an earlier match consumed, no later one may hold."""
    if not consumed.all and not consumed.variables:
        return select(matches, chosen, order)
    consuming = set(order) if consumed.all else {name.text for name in consumed.variables}
    used: set[int] = set()
    gone: set[int] = set()

    def is_left(match: Known) -> bool:
        own = {b.at for b in match.binding.bound if b.variable in consuming}
        return not gone.intersection(match.binding.positions) and not used & own

    def emit(match: Known) -> Known:
        used.update(match.binding.positions)
        gone.update(b.at for b in match.binding.bound if b.variable in consuming)
        return match

    if chosen.policy is Policy.CUMULATIVE:
        groups = sorted(_groups(matches, _last), key=lambda group: max(match.when for match in group))
        left = ([match for match in group if is_left(match)] for group in groups)
        return [emit(_together(group, set(order))) for group in left if group]
    return [emit(match) for match in in_order(select(matches, chosen, order)) if is_left(match)]
