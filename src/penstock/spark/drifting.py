"""Whether the model by which a stream sheds is out of date, from what is observed of its micro-batches."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.shedding.drift import MatchesDrift, MatchesSign
from penstock.spark.losing import TOGETHER

if TYPE_CHECKING:
    from penstock.spark.progress import Progress

BLOCKS = 50  # of rows; they stand for the windows that are not shed of eSPICE's sign, as micro-batches have no windows

logger = logging.getLogger(__name__)


@dataclass
class DriftWatch:
    """Watches how many matches come of the rows of a stream, and tells when that changes: a receiver of progress.

    Rows are those of keys that are never shed, which `Shedding(unshed=…)` marks. Where a strategy marks none, they are
    those of micro-batches that shed nothing, and neither did the few before, with which they may share matches.

    The first rows after the start are the reference: that the model was out of date by then is not seen.

    Attributes:
        sign: what tells from the matches of blocks of rows, as multiples of the reference, that they have changed, such
            as `penstock.shedding.drift.LibraryDrift`. Without it, that of eSPICE (thesis 4.2.6.3), `MatchesDrift`: the
            mean of 50 blocks deviates by more than 30 % from the reference.
        matches: how many make the reference. It lasts for 50 micro-batches at least; a block is a 50th of its rows.
        since: the micro-batch in which a sign was seen; None as long as there was none.

    Examples:
        >>> from penstock.spark.progress import Progress
        >>> watch = DriftWatch()
        >>> for number in range(150):
        ...     told = {"rows": 900, "processed": 900, "judged_rows": 20, "judged": 4 if number < 80 else 1}
        ...     watch(Progress.of(number, 500, told, held_before=0))
        >>> watch.since
        99
    """

    sign: MatchesSign | None = None
    matches: int = 200
    since: int | None = field(default=None, init=False)
    _size: float = field(default=0.0, init=False)  # rows of a block, once the reference is known
    _expected: float = field(default=0.0, init=False)  # matches of a row, likewise
    _sign: MatchesSign | None = field(default=None, init=False)
    _rows: int = field(default=0, init=False)  # since the last block; likewise the next two
    _found: int = field(default=0, init=False)
    _batches: int = field(default=0, init=False)
    _has_keys: bool = field(default=False, init=False)  # that are never shed
    _calm: int = field(default=TOGETHER, init=False)  # micro-batches in a row whose matches are not fewer by shedding

    def __call__(self, progress: Progress) -> None:
        """Take a micro-batch."""
        if progress.judged_rows and not self._has_keys:
            self._has_keys, self._rows, self._found, self._batches, self._size = True, 0, 0, 0, 0.0
        rows, found = self._unshed(progress)
        if not rows:
            return
        self._rows, self._found, self._batches = self._rows + rows, self._found + found, self._batches + 1
        if self._size:
            if self._rows < self._size:
                return
            self._observe(self._found / (self._expected * self._rows), progress.batch_id)
        elif self._found < self.matches or self._batches < BLOCKS:
            return
        else:
            self._size, self._expected = self._rows / BLOCKS, self._found / self._rows
            self._sign = self.sign or MatchesDrift(1.0, windows=BLOCKS)
        self._rows = self._found = self._batches = 0

    def _unshed(self, progress: Progress) -> tuple[int, int]:
        """Return how many rows count, and their matches."""
        if self._has_keys:  # rows that are overdue before the shuffle go whatever their key
            is_calm = not (progress.shed_early and progress.shed_overdue)
        else:
            is_calm = not (progress.shed or progress.shed_runs or progress.shed_partly)
        self._calm = self._calm + 1 if is_calm else 0
        if self._calm <= TOGETHER:
            return 0, 0
        return (progress.judged_rows, progress.judged) if self._has_keys else (progress.processed, progress.matches)

    def _observe(self, matches: float, batch_id: int) -> None:
        assert self._sign is not None, "there is a reference"
        if self._sign.observe(matches) and self.since is None:
            self.since = batch_id
            logger.warning(
                "since batch %d, rows have more or fewer matches than before: the model for shedding may be out of "
                "date; train a new one, and start the stream again from its checkpoint with it",
                batch_id,
            )
