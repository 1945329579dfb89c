"""The slow truth: matches by the definitions of docs/language.md, and how far a result is from them."""

from penstock.reference.events import Event, Match
from penstock.reference.find import find, runs
from penstock.reference.quality import Quality, quality

__all__ = ["Event", "Match", "Quality", "find", "quality", "runs"]
