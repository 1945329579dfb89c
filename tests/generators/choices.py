"""Where random decisions come from: a seed, for speed, or hypothesis, which can shrink what it draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from random import Random
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

T = TypeVar("T")


class Choices(ABC):
    """A source of decisions. Of every decision, the simplest outcome comes first, so that shrinking ends there."""

    @abstractmethod
    def below(self, count: int) -> int:
        """Return one of 0, 1, …, count - 1."""

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options; one that is listed twice is twice as likely."""
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        """Return True in that many of 100 cases; False is simpler."""
        return self.below(100) >= 100 - percent

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in any order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in items]


class Seeded(Choices):
    """Decisions that follow from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random

    def below(self, count: int) -> int:
        return int(self._random() * count)


_RANDOMS = st.randoms(use_true_random=False)


class Drawn(Choices):
    """Decisions that hypothesis makes.

    They come through `st.randoms` and not each from a strategy, because of values of one strategy hypothesis likes
    to make copies: of a hundred cases, a third would have the same stream.
    """

    def __init__(self, draw: DrawFn) -> None:
        self._randint = draw(_RANDOMS).randint

    def below(self, count: int) -> int:
        return self._randint(0, count - 1) if count > 1 else 0
