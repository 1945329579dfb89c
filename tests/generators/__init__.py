"""Random valid queries with small streams, to check engines and laws on.

`cases()` is a hypothesis strategy, which shrinks; `seeded(count)` yields cases fast, for large comparisons.
"""

from tests.generators.cases import Case, cases, queries, seeded, streams
from tests.generators.expressions import FUNCTIONS, REMOTES, SCHEMA
from tests.generators.profile import EVERYTHING, Profile

__all__ = ["EVERYTHING", "FUNCTIONS", "REMOTES", "SCHEMA", "Case", "Profile", "cases", "queries", "seeded", "streams"]
