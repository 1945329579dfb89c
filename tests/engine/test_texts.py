"""Numbers and ranks of texts, whatever comes and goes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.texts import Texts


def check_ranks(texts: Texts) -> None:
    names = texts.state()
    order = sorted(names)
    assert texts.ranks().tolist() == [order.index(name) for name in names]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.text(max_size=3), max_size=6), max_size=5), st.data())
def test_ranks_are_those_of_python_whatever_comes_and_goes(batches: list[list[str]], data: st.DataObject) -> None:
    texts = Texts()
    for batch in batches:
        assert [texts[number] for number in texts.add_all(batch).tolist()] == batch
        step = data.draw(st.sampled_from(["rank", "cut", "forget", "nothing"]))
        before = texts.state()
        if step == "cut":
            texts.cut(data.draw(st.integers(0, len(texts))))
            assert texts.state() == before[: len(texts)]
        elif step == "forget":
            used = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
            numbers = texts.forget(np.array(used, np.bool_)).tolist()
            kept = {old: before[old] for old, number in enumerate(numbers) if number >= 0}
            assert list(kept) == [old for old, is_used in enumerate(used) if is_used]
            assert all(texts[numbers[old]] == text and texts.find(text) == numbers[old] for old, text in kept.items())
        if step != "nothing":
            check_ranks(texts)
    check_ranks(texts)


def test_ranks_are_only_worked_out_anew_when_there_are_new_texts() -> None:
    texts = Texts(["b", "a"])
    ranks = texts.ranks()
    texts.add("a")
    assert texts.ranks() is ranks
    texts.add("c")
    assert texts.ranks().tolist() == [1, 0, 2]
    texts.cut(2)
    texts.add("A")
    assert texts.ranks().tolist() == [2, 1, 0]


def test_texts_may_come_as_a_slice_of_an_arrow_array_and_leave_as_one() -> None:
    texts = Texts(["é"])
    assert texts.add_all(pa.array(["x", "y", "", "é", "y"])[1:]).tolist() == [1, 2, 0, 1]
    assert texts.add_all(pa.array([], pa.string())).tolist() == []
    assert texts.as_arrow().to_pylist() == ["é", "y", ""]
    assert texts.find("x") == -1
