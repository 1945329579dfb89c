"""Where things stand in the kernel's arrays.

The kernel's data are a few wide arrays and not many narrow ones, because numba's compile time grows with the number
of arrays that a function is given. Names that end in `_END` close the half-open range that the name before them opens.
"""

# columns of Tables.variables
VAR_DEPTH, VAR_CONSUMING, VAR_OWN, VAR_OWN_END, VAR_WIDTH = range(5)
# columns of Tables.steps
STEP_TARGET, STEP_VARIABLE, STEP_PASSES, STEP_OP, STEP_OP_END, STEP_DUE, STEP_DUE_END = range(7)
STEP_ASK, STEP_ASK_END, STEP_WIDTH = range(7, 10)
# columns of Tables.states
STATE_STEP, STATE_STEP_END, STATE_WAY, STATE_WAY_END, STATE_WIDTH = range(5)
# columns of Tables.ways
WAY_OP, WAY_OP_END, WAY_DUE, WAY_DUE_END, WAY_ASK, WAY_ASK_END, WAY_TRAILING, WAY_TRAILING_END, WAY_WIDTH = range(9)
# columns of Tables.counters: loops, then bags, whose counter is a bit per member
COUNTER_LOW, COUNTER_LIMIT, COUNTER_INNER, COUNTER_INNER_END, COUNTER_WIDTH = range(5)
# columns of Tables.conditions
COND_CODE, COND_CODE_END, COND_REF, COND_REF_END, COND_DEPTH, COND_SAME, COND_WIDTH = range(7)
# columns of Tables.references
REF_VARIABLE, REF_INDEX, REF_NUMBER, REF_COLUMN, REF_AGGREGATE, REF_DEPTH, REF_WIDTH = range(7)
# columns of Tables.negations
NEG_VARIABLE, NEG_DEPTH, NEG_DUE, NEG_DUE_END, NEG_BEFORE, NEG_BEFORE_END, NEG_WIDTH = range(7)
# places in Tables.options
BY_COUNT, BY_RUNS, STRICT, CONSUME, WINDOWS, PER_WINDOW, WITHIN, OPTIONS = range(8)

# rows of Memory.events; then one row per negation: the event before this one that fits it
EVENT_TS, EVENT_POS, EVENT_SEQ, EVENT_PART, EVENT_LOW, EVENT_HIGH, EVENT_BEFORE = range(7)
# rows of Memory.segments
SEGMENT_START, SEGMENT_SIZE, SEGMENT_ROOM, SEGMENT_WIDTH = range(4)
# rows of Memory.runs; then one row per counter
RUN_FIRST, RUN_LOW, RUN_HIGH, RUN_NODE, RUN_LENGTH, RUN_BIRTH, RUN_COUNTER = range(7)
# rows of Memory.nodes; then one row per depth of loops
NODE_EVENT, NODE_VARIABLE, NODE_PASSED, NODE_PARENT, NODE_ROUND = range(5)
# rows of Memory.chain; then one row per depth of loops
CHAIN_EVENT, CHAIN_VARIABLE, CHAIN_PASSED, CHAIN_ROUND = range(4)
# rows of Memory.waiting
WAIT_NODE, WAIT_FIRST, WAIT_LENGTH, WAIT_WAY, WAIT_LOW, WAIT_HIGH, WAIT_WIDTH = range(7)
# rows of Memory.found and Memory.known
FOUND_NODE, FOUND_LENGTH, FOUND_LOW, FOUND_HIGH, FOUND_WIDTH = range(5)
KNOWN_TS, KNOWN_POS, KNOWN_WIDTH = range(3)
# rows of Memory.candidates
CAND_RUN, CAND_STEP, CAND_LOW, CAND_HIGH, CAND_WIDTH = range(5)
# places in Memory.sizes
SIZE_EVENTS, SIZE_NODES, SIZE_WAITING, SIZE_FOUND, SIZE_BIRTHS, SIZES = range(6)

# plan.automaton.Op, plan.terms.Code and plan.terms.Index as plain numbers, which numba compiles faster
LEAVE_LOOP, ENTER_LOOP, TAKE_MEMBER = range(3)
CONST, REF, NEG, ADD, SUB, MUL, DIV, MOD, EQ, NE, LT, LE, GT, GE, AND, OR, NOT = range(17)
ABS, SQRT, FLOOR, CEIL, ROUND, EXP, LN, POW, SIGN, MIN, MAX = range(17, 28)
CURRENT, BEFORE, FIRST, LAST, NUMBER, ALL, UPTO_BEFORE, UPTO = range(8)
COUNT, SUM, AVG, LEAST, MOST = range(5)
TEXT_LOW, TEXT_HIGH = 2.0**52, 2.0**52 + 2.0**40

# what `process` may say
DONE, MORE_CANDIDATES, MORE_RUNS, MORE_NODES, MORE_FOUND, MORE_WAITING, LONGER_CHAINS = range(7)
# in place of a step: what else a run may do at an event
ENDS_BY_TIME, ENDS_AT_GAP = -2, -3
# in place of a node: the run has moved or ended
GONE = -1
# in place of a window: in none
NEVER = 2**62
