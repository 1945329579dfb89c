"""Where things stand in the kernel's arrays.

The kernel's data are a few wide arrays and not many narrow ones, because numba's compile time grows with the number
of arrays that a function is given. Names that end in `_END` close the half-open range that the name before them opens.
"""

# columns of Tables.variables
VAR_DEPTH, VAR_CONSUMING, VAR_OWN, VAR_OWN_END, VAR_BAG, VAR_BIT, VAR_WIDTH = range(7)
# columns of Tables.steps
STEP_TARGET, STEP_VARIABLE, STEP_PASSES, STEP_OP, STEP_OP_END, STEP_DUE, STEP_DUE_END = range(7)
STEP_ASK, STEP_ASK_END, STEP_WIDTH = range(7, 10)
# columns of Tables.states
STATE_STEP, STATE_STEP_END, STATE_WAY, STATE_WAY_END, STATE_WIDTH = range(5)
# columns of Tables.ways
WAY_DUE, WAY_DUE_END, WAY_ASK, WAY_ASK_END, WAY_TRAILING, WAY_TRAILING_END, WAY_WIDTH = range(7)
# columns of Tables.counters: loops, then bags, whose counter is a bit per member
COUNTER_INNER, COUNTER_INNER_END, COUNTER_WIDTH = range(3)
# columns of Tables.conditions
COND_CODE, COND_CODE_END, COND_REF, COND_REF_END, COND_DEPTH, COND_SAME, COND_WIDTH = range(7)
# columns of Tables.references
REF_VARIABLE, REF_INDEX, REF_NUMBER, REF_COLUMN, REF_AGGREGATE, REF_DEPTH, REF_WIDTH = range(7)
# columns of Tables.negations
NEG_VARIABLE, NEG_DEPTH, NEG_DUE, NEG_DUE_END, NEG_BEFORE, NEG_BEFORE_END, NEG_WIDTH = range(7)
# in Tables.open: no more events; some; some, if the bag at hand does not have the variable yet
CLOSED, OPEN, OPEN_BY_BAG = range(3)
# places in Tables.options
BY_COUNT, BY_RUNS, STRICT, CONSUME, WINDOWS, PER_WINDOW, WITHIN = range(7)
# and hooks: whether runs of some states skip an event, it is shed from some windows, what happens to it is counted;
# the place of the first event that Memory.hooks is about
SKIPS, SHEDS, OBSERVES, HOOKS_FROM, OPTIONS = range(7, 12)

# rows of Memory.events; then one row per negation: the event before this one that fits it
EVENT_TS, EVENT_POS, EVENT_SEQ, EVENT_PART, EVENT_LOW, EVENT_HIGH, EVENT_BEFORE = range(7)
# rows of Memory.segments
SEGMENT_START, SEGMENT_SIZE, SEGMENT_ROOM, SEGMENT_WIDTH = range(4)
# rows of Memory.runs; then one row per counter
RUN_FIRST, RUN_LOW, RUN_HIGH, RUN_NODE, RUN_LENGTH, RUN_BIRTH, RUN_COUNTER = range(7)
# rows of Memory.nodes; then one row per depth of loops
NODE_EVENT, NODE_VARIABLE, NODE_PASSED, NODE_PARENT, NODE_STATE, NODE_ROUND = range(6)
# rows of Memory.chain; then one row per depth of loops
CHAIN_EVENT, CHAIN_VARIABLE, CHAIN_PASSED, CHAIN_STATE, CHAIN_ROUND = range(5)
# rows of Memory.waiting
WAIT_NODE, WAIT_FIRST, WAIT_LENGTH, WAIT_WAY, WAIT_LOW, WAIT_HIGH, WAIT_WIDTH = range(7)
# rows of Memory.found and Memory.known
FOUND_NODE, FOUND_LENGTH, FOUND_LOW, FOUND_HIGH, FOUND_WIDTH = range(5)
KNOWN_TS, KNOWN_POS, KNOWN_WIDTH = range(3)
# rows of Memory.candidates
CAND_RUN, CAND_STEP, CAND_LOW, CAND_HIGH, CAND_WIDTH = range(5)
# rows of Memory.hooks
HOOK_SHED, HOOK_CELL, HOOK_WIDTH = range(3)
# places in Memory.sizes
SIZE_EVENTS, SIZE_NODES, SIZE_WAITING, SIZE_FOUND, SIZE_BIRTHS, SIZE_CHECKS, SIZE_CREATED, SIZE_MATCHES, SIZES = range(
    9
)

# plan.automaton.Op, plan.terms.Code and plan.terms.Index as plain numbers, which numba compiles faster
ENTER_LOOP, TAKE_MEMBER = range(2)
CONST, REF, NEG, ADD, SUB, MUL, DIV, MOD, EQ, NE, LT, LE, GT, GE, AND, OR, NOT = range(17)
ABS, SQRT, FLOOR, CEIL, ROUND, EXP, LN, POW, SIGN, MIN, MAX, CALL = range(17, 29)
CURRENT, BEFORE, FIRST, LAST, NUMBER, ALL, UPTO_BEFORE, UPTO = range(8)
COUNT, SUM, AVG, LEAST, MOST = range(5)
# of a call: places behind its first constant
CALL_ARITY, CALL_COMPILED, CALL_PYTHON = range(3)
TEXT_LOW, TEXT_HIGH = 2.0**52, 2.0**52 + 2.0**40

# what `process` may say
DONE, MORE_CANDIDATES, MORE_RUNS, MORE_NODES, MORE_FOUND, MORE_WAITING, LONGER_CHAINS = range(7)
# in place of a step: what else a run may do at an event
ENDS_BY_TIME, ENDS_AT_GAP = -2, -3
# or that it stays as it is in some windows, from which the event is shed
STAYS = -4
# in place of a node: the run has moved or ended
GONE = -1
# in place of a window: in none
NEVER = 2**62

# --- plain queries (penstock.plan.plain, penstock.kernel.plain) ---------------------------------------------------

# columns of PlainTables.steps; steps with one ASK have the same intervals
PLAIN_SOURCE, PLAIN_TARGET, PLAIN_VARIABLE, PLAIN_CONSUMING, PLAIN_MASK, PLAIN_BIT = range(6)
PLAIN_CONJUNCT, PLAIN_CONJUNCT_END, PLAIN_SETTER, PLAIN_SETTER_END = range(6, 10)
PLAIN_KEY, PLAIN_ASK, PLAIN_STEP_WIDTH = range(10, 13)
# columns of PlainTables.states
PLAIN_STEP, PLAIN_STEP_END, PLAIN_ENDS, PLAIN_INDEX, PLAIN_KILL, PLAIN_KILL_END, PLAIN_STATE_WIDTH = range(7)
# columns of PlainTables.conjuncts; a slot of -1: no interval; conjuncts with one SIDE ask the same of the event
CONJ_SLOT, CONJ_OP, CONJ_COLUMN, CONJ_CODE, CONJ_CODE_END = range(5)
CONJ_WHOLE, CONJ_WHOLE_END, CONJ_LOAD, CONJ_LOAD_END, CONJ_SIDE, CONJ_WIDTH = range(5, 11)
# columns of PlainTables.setters
SET_SLOT, SET_KIND, SET_FROM, SET_COLUMN, SET_CODE, SET_CODE_END, SET_LOAD, SET_LOAD_END, SET_WIDTH = range(9)
# kinds of setters; MEMBER: copied, with the step's member added
SET_COPY, SET_READ, SET_COUNT, SET_SUM, SET_LEAST, SET_MOST, SET_AVG, SET_RUN, SET_MEMBER = range(9)
# places in PlainTables.options; slots are -1 where a query has no need of them
PLAIN_BY_COUNT, PLAIN_MOVES, PLAIN_CONSUMES, PLAIN_WITHIN, PLAIN_LOW, PLAIN_HIGH, PLAIN_PART = range(7)
PLAIN_LAST, PLAIN_BIRTH, PLAIN_MAX_RUNS = range(7, 10)
# and hooks: whether runs of some states skip an event, it is shed from some windows, what happens to it is counted;
# whether there is a ledger (0, or how open runs are counted for it); whether it is counted from where to where runs go
PLAIN_SKIPS, PLAIN_SHEDS, PLAIN_OBSERVES, PLAIN_TALLIES, PLAIN_TRACES = range(10, 15)
# whether runs that end without a match are reported; whether HELD_SEEN is in use, for one reason or another
PLAIN_REPORTS, PLAIN_SEEN, PLAIN_OPTIONS = range(15, 18)
PLAIN_HOOKS = (PLAIN_SKIPS, PLAIN_SHEDS, PLAIN_OBSERVES, PLAIN_TALLIES, PLAIN_TRACES, PLAIN_REPORTS)
# how open runs are counted: as they come and go; or anew at each event, where more than WITHIN ends them
TALLY_KEPT, TALLY_ANEW = 1, 2
# places in PlainMemory.last: the ASK and the event whose bounds were last worked out, and how many there are
LAST_ASK, LAST_EVENT, LAST_BOUNDS, LAST_WIDTH = range(4)
# the register of every run: the time, or position, of its first event
REACH = 0

# rows of PlainMemory.runs and .nodes
HELD_NODE, HELD_NEXT, HELD_SEEN, HELD_WIDTH = range(4)  # SEEN: the last event asked about (FIRST), or see `ending.py`
HELD_FIRST = HELD_WIDTH  # a row that is there from the first time that runs are tallied, and right while they are
LINK_EVENT, LINK_VARIABLE, LINK_PARENT, LINK_WIDTH = range(4)
# rows of PlainMemory.segments, behind START, SIZE and ROOM; KEPT: by the last sweep; SCANS: since, of the whole segment
# PAST: so many of the first runs are out of reach for good
SEGMENT_SWEEP, SEGMENT_DEAD, SEGMENT_NEED, SEGMENT_KEPT, SEGMENT_SCANS, SEGMENT_PAST, PLAIN_SEGMENT_WIDTH = range(3, 10)
# rows of PlainMemory.found: of each match, the node before its last element; then of each group of matches that one
# event completes, its first match, the event and the variable. Rows of PlainMemory.spans: of each match, its windows
MATCH_NODE, ENDED_FIRST, ENDED_EVENT, ENDED_VARIABLE, MATCH_WIDTH = range(5)
SPAN_LOW, SPAN_HIGH, SPAN_WIDTH = range(3)
# rows of PlainMemory.over: of each run that ended without a match, its newest element, the windows in which it ended,
# why, and the event that forbade it or -1
OVER_NODE, OVER_LOW, OVER_HIGH, OVER_WHY, OVER_BY, OVER_WIDTH = range(6)
TIMED_OUT, ABANDONED = range(2)
# rows of PlainMemory.candidates and .groups
PICK_RUN, PICK_LOW, PICK_HIGH, PICK_STEP, PICK_ORDER, PICK_WIDTH = range(6)
GROUP_KIND, GROUP_STEP, GROUP_FROM, GROUP_TO, GROUP_WIDTH = range(5)
# kinds of groups: a run takes the event (and leaves its state), is copied, shrinks to some windows, leaves
TAKE, COPY_RUN, SHRINK, LEAVE = range(4)
# in PlainMemory.ways in place of a step; and of a variable, if not exactly one takes an event
NO_WAY, SEVERAL_WAYS = -1, -2
# places in the last dimension of PlainMemory.hints: a state with an index, the column of events that is the key (-1:
# the partition), whether its runs take the event; NO_STATE ends the hints of a variable
HINT_STATE, HINT_COLUMN, HINT_TAKES, HINT_WIDTH = range(4)
NO_STATE = -1
# rows of PlainMemory.slots
SLOT_TAKEN, SLOT_CONSUMED, SLOT_LEFT, SLOT_WIDTH = range(4)
# places in the last dimension of `observed`: runs that were asked, runs that took the event
WERE_ASKED, HAVE_TAKEN, OBSERVED_WIDTH = range(3)
# columns of PlainMemory.ledger
LEDGER_CHECKS, LEDGER_CREATED, LEDGER_MATCHES, LEDGER_OPEN, LEDGER_SHED, LEDGER_WIDTH = range(6)
# columns of PlainMemory.summary behind those of the states; and of PlainMemory.tallies, in place of state 0
OLDEST_OPENER, NEWEST_OPENER, SUMMARY_WIDTH = range(3)
NEXT_OPENER = 0
# rows of PlainMemory.newest
NEWEST_POS, NEWEST_LOW, NEWEST_WIDTH = range(3)
# places in PlainMemory.sizes
HAS_EVENTS, HAS_NODES, HAS_FOUND, HAS_BIRTHS, HAS_GROUPS, HAS_STAMP, HAS_BATCH = range(7)
HAS_CHECKS, HAS_CREATED, HAS_MATCHES, HAS_ENDED, HAS_OVER, HAS_SIZES = range(7, 13)
# what `process` may say besides DONE, MORE_CANDIDATES, MORE_RUNS, MORE_NODES, MORE_FOUND
TOO_MANY_RUNS, MORE_OVER = 7, 8
