"""Plain queries: what does each run do with an event? Nothing is changed here; the answers are groups of candidates."""

from __future__ import annotations

from penstock.kernel.compiling import inlined, part
from penstock.kernel.filtering import holds_by_registers
from penstock.kernel.lean import hook
from penstock.kernel.plain_memory import STRIDE, PlainMemory
from penstock.kernel.scanning import scan
from penstock.plan.layout import (
    COPY_RUN,
    EVENT_HIGH,
    EVENT_LOW,
    GROUP_FROM,
    GROUP_KIND,
    GROUP_STEP,
    GROUP_TO,
    HAS_BATCH,
    HAS_GROUPS,
    HAS_STAMP,
    HELD_SEEN,
    LEAVE,
    NO_WAY,
    PICK_HIGH,
    PICK_LOW,
    PICK_ORDER,
    PICK_RUN,
    PICK_STEP,
    PLAIN_BIRTH,
    PLAIN_CONJUNCT,
    PLAIN_CONJUNCT_END,
    PLAIN_CONSUMES,
    PLAIN_CONSUMING,
    PLAIN_HIGH,
    PLAIN_LOW,
    PLAIN_MOVES,
    PLAIN_SHEDS,
    PLAIN_SKIPS,
    PLAIN_STEP,
    PLAIN_STEP_END,
    PLAIN_VARIABLE,
    SEGMENT_SIZE,
    SEVERAL_WAYS,
    SHRINK,
    SLOT_CONSUMED,
    SLOT_LEFT,
    SLOT_TAKEN,
    TAKE,
)
from penstock.plan.plain import PlainTables


@inlined
def add_group(m: PlainMemory, kind: int, step: int, start: int, stop: int) -> None:
    """Note that the candidates start .. stop-1 do the same."""
    g = m.sizes[HAS_GROUPS]
    m.groups[g, GROUP_KIND], m.groups[g, GROUP_STEP] = kind, step
    m.groups[g, GROUP_FROM], m.groups[g, GROUP_TO] = start, stop
    m.sizes[HAS_GROUPS] = g + 1


@inlined
def pick(m: PlainMemory, count: int, run: int, step: int, low: int, high: int) -> int:
    """Note a candidate; return how many there are then."""
    m.candidates[PICK_RUN, count], m.candidates[PICK_STEP, count] = run, step
    m.candidates[PICK_LOW, count], m.candidates[PICK_HIGH, count] = low, high
    return count + 1


@inlined
def add_windows(t: PlainTables, m: PlainMemory, event: int, start: int, stop: int) -> None:
    """Note for candidates in which windows they can take the event."""
    if t.options[PLAIN_LOW] < 0:
        return
    for c in range(start, stop):
        run = m.candidates[PICK_RUN, c]
        m.candidates[PICK_LOW, c] = max(int(m.registers[t.options[PLAIN_LOW], run]), m.events[EVENT_LOW, event])
        m.candidates[PICK_HIGH, c] = int(m.registers[t.options[PLAIN_HIGH], run])


@inlined
def drop_seen(m: PlainMemory, start: int, stop: int) -> int:
    """FIRST: keep the candidates that no earlier step has taken at this event."""
    kept = start
    for c in range(start, stop):
        run = m.candidates[PICK_RUN, c]
        m.candidates[PICK_RUN, kept] = run
        kept += m.runs[HELD_SEEN, run] != m.sizes[HAS_STAMP]
        m.runs[HELD_SEEN, run] = m.sizes[HAS_STAMP]
    return kept


@inlined
def is_resolved(t: PlainTables) -> bool:
    """Return whether runs take an event in some windows only: it is consumed by others there, or shed."""
    return bool(t.options[PLAIN_CONSUMES] or (t.options[PLAIN_MOVES] and hook(t.hooks, PLAIN_SHEDS)))


@inlined
def find_takers(m: PlainMemory, start: int, stop: int) -> None:
    """Note of a block of events which variable can take each: mostly there is one; else NO_WAY or SEVERAL_WAYS."""
    takers, size = m.takers, stop - start
    for i in range(size):
        takers[i] = NO_WAY
    for v in range(m.fits.shape[0]):
        fits = m.fits[v, start:stop]
        for i in range(size):
            only = v if takers[i] == NO_WAY else SEVERAL_WAYS
            takers[i] = only if fits[i] else takers[i]


@inlined
def steps_from(t: PlainTables, m: PlainMemory, state: int, variable: int) -> tuple[int, int]:
    """Return the range of steps from a state to ask, where `variable` is what `find_takers` says."""
    step = SEVERAL_WAYS if variable < 0 else m.ways[state, variable]
    if step == SEVERAL_WAYS:
        return t.states[state, PLAIN_STEP], t.states[state, PLAIN_STEP_END]
    return (0, 0) if step == NO_WAY else (step, step + 1)


@inlined
def is_taken_by(t: PlainTables, m: PlainMemory, step: int, event: int, variable: int) -> bool:
    """Return whether an event fits what a step takes; `variable` is what `find_takers` says, and spares a look."""
    taking = t.steps[step, PLAIN_VARIABLE]
    return taking == variable or (variable < 0 and m.fits[taking, event])


@inlined
def ask_runs(t: PlainTables, m: PlainMemory, event: int, variable: int) -> int:
    """Note, step by step, the runs that can take an event; return how many candidates, -1 if there is no room."""
    count, at = 0, event - m.sizes[HAS_BATCH]
    for s in range(1, len(t.states)):
        size, steps = m.segments[SEGMENT_SIZE, s], steps_from(t, m, s, variable)
        if size == 0 or steps[0] == steps[1] or (hook(t.hooks, PLAIN_SKIPS) and m.skips[s, at]):
            continue
        is_choice = t.options[PLAIN_MOVES] and not is_resolved(t)
        is_choice = is_choice and t.states[s, PLAIN_STEP_END] - t.states[s, PLAIN_STEP] > 1
        for step in range(steps[0], steps[1]):
            if not is_taken_by(t, m, step, event, variable):
                continue
            if count + size + STRIDE >= m.candidates.shape[1]:
                return -1
            first, count = count, scan(t, m, s, step, event, count)
            if is_choice:
                count = drop_seen(m, first, count)
            if count > first:
                add_windows(t, m, event, first, count)
                add_group(m, TAKE, step, first, count)
    return count


@inlined
def can_open(t: PlainTables, m: PlainMemory, step: int, event: int, variable: int) -> bool:
    """Return whether an event can open a run by a step."""
    if not is_taken_by(t, m, step, event, variable):
        return False
    for k in range(t.steps[step, PLAIN_CONJUNCT], t.steps[step, PLAIN_CONJUNCT_END]):
        if not holds_by_registers(t, m, k, 0, event):
            return False
    return True


@inlined
def ask_openings(t: PlainTables, m: PlainMemory, event: int, count: int, variable: int) -> int:
    """Note the runs that an event opens: all of them under EACH; else one per variable, where the event is free."""
    low, high = m.events[EVENT_LOW, event], m.events[EVENT_HIGH, event]
    at = event - m.sizes[HAS_BATCH]
    if (t.options[PLAIN_LOW] >= 0 and low > high) or (hook(t.hooks, PLAIN_SKIPS) and m.skips[0, at]):
        return count
    opened, steps = count, steps_from(t, m, 0, variable)
    for step in range(steps[0], steps[1]):
        if not can_open(t, m, step, event, variable):
            continue
        if t.options[PLAIN_MOVES]:
            is_again = False
            for c in range(opened, count):
                other = m.candidates[PICK_STEP, c]
                is_again |= t.steps[other, PLAIN_VARIABLE] == t.steps[step, PLAIN_VARIABLE]
            if is_again:
                continue
        if not is_resolved(t):
            count = pick(m, count, -1, step, low, high)
            add_group(m, TAKE, step, count - 1, count)
            continue
        if t.options[PLAIN_LOW] < 0:
            if takes_whole(t, m, step):
                count = pick(m, count, -1, step, low, high)
                add_group(m, TAKE, step, count - 1, count)
            continue
        for slot in range(high - low + 1):
            m.slots[SLOT_LEFT, slot] = True
        first, count = count, take_windows(t, m, count, -1, step, low, low, high)
        add_groups(m, TAKE, step, first, count)
    return count


@inlined
def add_groups(m: PlainMemory, kind: int, step: int, start: int, stop: int) -> None:
    """Note a group, if it has candidates."""
    if stop > start:
        add_group(m, kind, step, start, stop)


# --- windows that differ: CONSUME at binding, or the event is shed from some ------------------------------------
# A slot for each window of the event, its first window first.


@inlined
def is_shed(t: PlainTables, m: PlainMemory, event: int, slot: int) -> bool:
    """Return whether an event is shed from one of its windows."""
    return bool(hook(t.hooks, PLAIN_SHEDS) and (m.sheds[event - m.sizes[HAS_BATCH]] >> slot) & 1)


@part
def shed_windows(t: PlainTables, m: PlainMemory, event: int, count: int) -> int:
    """EACH: cut the candidates to the windows from which the event is not shed; return how many, -1 if no room."""
    base, groups = m.events[EVENT_LOW, event], m.sizes[HAS_GROUPS]
    span = max(1, m.events[EVENT_HIGH, event] - base + 1)
    if 2 * groups >= len(m.groups) or count * (1 + span) >= m.candidates.shape[1] or span >= m.slots.shape[1]:
        return -1
    for slot in range(span):
        m.slots[SLOT_TAKEN, slot] = m.slots[SLOT_CONSUMED, slot] = is_shed(t, m, event, slot)
    for g in range(groups):
        first = count
        for c in range(m.groups[g, GROUP_FROM], m.groups[g, GROUP_TO]):
            run, low, high = m.candidates[PICK_RUN, c], base, base
            if t.options[PLAIN_LOW] >= 0:
                low, high = m.candidates[PICK_LOW, c], m.candidates[PICK_HIGH, c]
            start = -1
            for slot in range(low - base, high - base + 2):
                if slot <= high - base and not m.slots[SLOT_CONSUMED, slot]:
                    start = slot if start < 0 else start
                elif start >= 0:
                    count = pick(m, count, run, m.groups[g, GROUP_STEP], base + start, base + slot - 1)
                    start = -1
        m.groups[g, GROUP_FROM], m.groups[g, GROUP_TO] = first, count
    return count


@inlined
def takes_whole(t: PlainTables, m: PlainMemory, step: int) -> bool:
    """Without WINDOW: return whether the event is free for a step; if so, it is taken now."""
    consuming = bool(t.steps[step, PLAIN_CONSUMING])
    if m.slots[SLOT_TAKEN, 0] if consuming else m.slots[SLOT_CONSUMED, 0]:
        return False
    m.slots[SLOT_TAKEN, 0] = True
    m.slots[SLOT_CONSUMED, 0] |= consuming
    return True


@inlined
def is_simple(t: PlainTables, m: PlainMemory) -> bool:
    """Return whether all candidates are of one step, without WINDOW and shedding; then nothing has to be sorted."""
    return m.sizes[HAS_GROUPS] <= 1 and t.options[PLAIN_LOW] < 0 and not hook(t.hooks, PLAIN_SHEDS)


@inlined
def oldest(t: PlainTables, m: PlainMemory, count: int) -> int:
    """Return the oldest run of the candidates, of which there are some."""
    best, born = m.candidates[PICK_RUN, 0], m.registers[t.options[PLAIN_BIRTH]]
    for c in range(1, count):
        run = m.candidates[PICK_RUN, c]
        if born[run] < born[best] or (born[run] == born[best] and run < best):
            best = run
    return best


@inlined
def resolve_simple(t: PlainTables, m: PlainMemory, event: int, count: int, variable: int) -> int:
    """Like `resolve`, if `is_simple`: all candidates take the event and leave; if it is consumed, the oldest does."""
    m.slots[SLOT_TAKEN, 0] = m.slots[SLOT_CONSUMED, 0] = False
    if count > 0:
        step = m.groups[0, GROUP_STEP]
        if t.steps[step, PLAIN_CONSUMING] and count > 1:
            m.candidates[PICK_RUN, 0] = oldest(t, m, count)
            m.groups[0, GROUP_TO] = count = 1
        takes_whole(t, m, step)
        add_group(m, LEAVE, step, 0, count)
    return ask_openings(t, m, event, count, variable)


@part
def take_windows(
    t: PlainTables, m: PlainMemory, count: int, run: int, step: int, base: int, low: int, high: int
) -> int:
    """Take the event in the windows that are left to a run and in which the event is free; return how many candidates.

    A candidate is a stretch of neighbouring windows.
    """
    consuming = bool(t.steps[step, PLAIN_CONSUMING])
    blocked = m.slots[SLOT_TAKEN] if consuming else m.slots[SLOT_CONSUMED]
    first = -1
    for slot in range(low - base, high - base + 2):
        if slot <= high - base and m.slots[SLOT_LEFT, slot] and not blocked[slot]:
            m.slots[SLOT_LEFT, slot], m.slots[SLOT_TAKEN, slot] = False, True
            m.slots[SLOT_CONSUMED, slot] |= consuming
            first = slot if first < 0 else first
        elif first >= 0:
            count = pick(m, count, run, step, base + first, base + slot - 1)
            first = -1
    return count


@part
def is_after(t: PlainTables, m: PlainMemory, one: int, other: int) -> bool:
    """Return whether one candidate comes after another: oldest run first; those of a run as they were asked."""
    a, b = m.candidates[PICK_RUN, one], m.candidates[PICK_RUN, other]
    if t.options[PLAIN_BIRTH] >= 0:
        born, other_born = m.registers[t.options[PLAIN_BIRTH], a], m.registers[t.options[PLAIN_BIRTH], b]
        if born != other_born:
            return bool(born > other_born)
    return bool(a > b or (a == b and one > other))


@part
def sort_by_birth(t: PlainTables, m: PlainMemory, count: int) -> None:
    """Put the order of the candidates into their row ORDER: a shell sort, for it needs no room."""
    for g in range(m.sizes[HAS_GROUPS]):
        for c in range(m.groups[g, GROUP_FROM], m.groups[g, GROUP_TO]):
            m.candidates[PICK_STEP, c], m.candidates[PICK_ORDER, c] = m.groups[g, GROUP_STEP], c
    gap = 1
    while 3 * gap < count:
        gap = 3 * gap + 1
    while gap > 0:
        for c in range(gap, count):
            moved, at = m.candidates[PICK_ORDER, c], c
            while at >= gap and is_after(t, m, m.candidates[PICK_ORDER, at - gap], moved):
                m.candidates[PICK_ORDER, at] = m.candidates[PICK_ORDER, at - gap]
                at -= gap
            m.candidates[PICK_ORDER, at] = moved
        gap //= 3


@part
def resolve(t: PlainTables, m: PlainMemory, event: int, count: int, variable: int) -> int:
    """Give the event to the oldest runs that can take it, window by window; then ask who opens a run.

    What was asked becomes the lower part of the candidates; what is done stands behind it. Return how many there are
    in all, -1 if there is no room.
    """
    base, span = m.events[EVENT_LOW, event], max(1, m.events[EVENT_HIGH, event] - m.events[EVENT_LOW, event] + 1)
    needed = (3 * count + t.states[0, PLAIN_STEP_END] - t.states[0, PLAIN_STEP]) * span
    if count + needed >= m.candidates.shape[1] or 3 * needed >= len(m.groups) or span >= m.slots.shape[1]:
        return -1
    for slot in range(span):
        m.slots[SLOT_TAKEN, slot] = m.slots[SLOT_CONSUMED, slot] = is_shed(t, m, event, slot)
    sort_by_birth(t, m, count)
    order = m.candidates[PICK_ORDER]
    m.sizes[HAS_GROUPS] = 0
    done, k = count, 0
    while k < count:
        run, low, high = m.candidates[PICK_RUN, order[k]], base, base
        if t.options[PLAIN_LOW] >= 0:
            low, high = m.candidates[PICK_LOW, order[k]], m.candidates[PICK_HIGH, order[k]]
        for slot in range(low - base, high - base + 1):
            m.slots[SLOT_LEFT, slot] = True
        before = done
        while k < count and m.candidates[PICK_RUN, order[k]] == run:
            step = m.candidates[PICK_STEP, order[k]]
            first, done = done, take_windows(t, m, done, run, step, base, low, high)
            add_groups(m, TAKE, step, first, done)
            k += 1
        if done > before:
            done = keep_rest(m, done, run, base, low, high)
    return ask_openings(t, m, event, done, variable)


@part
def keep_rest(m: PlainMemory, count: int, run: int, base: int, low: int, high: int) -> int:
    """Note what becomes of a run that has taken an event in some windows: it goes on in the others, or leaves."""
    before, first = count, -1
    for slot in range(low - base, high - base + 2):
        if slot <= high - base and m.slots[SLOT_LEFT, slot]:
            first = slot if first < 0 else first
        elif first >= 0:
            count = pick(m, count, run, -1, base + first, base + slot - 1)
            first = -1
    if count == before:
        count = pick(m, count, run, -1, 0, 0)
        add_group(m, LEAVE, -1, before, count)
        return count
    add_groups(m, COPY_RUN, -1, before + 1, count)
    add_group(m, SHRINK, -1, before, before + 1)
    return count
