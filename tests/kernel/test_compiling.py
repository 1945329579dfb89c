"""The compiled kernel is stale when any of its sources has changed."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from penstock.kernel import compiling, machine


def test_the_stamp_is_of_all_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = compiling.stamp()
    (tmp_path / "joins.py").touch()
    (tmp_path / "layout.py").write_text("TS = 1")
    monkeypatch.setattr(compiling, "files", lambda _: tmp_path)
    compiling.stamp.cache_clear()
    first = compiling.stamp()
    (tmp_path / "layout.py").write_text("TS = 2")
    compiling.stamp.cache_clear()
    assert len({before, first, compiling.stamp()}) == 3
    compiling.stamp.cache_clear()


@pytest.mark.skipif(not hasattr(machine.process, "_cache"), reason="numba is switched off by NUMBA_DISABLE_JIT")
def test_numba_keeps_the_stamp_with_the_cache() -> None:
    kept = getattr(machine.process, "_cache")._cache_file._source_stamp  # noqa: B009 - for mypy
    assert kept.startswith(compiling.stamp())
    own = sha256(Path(machine.__file__).read_bytes()).hexdigest()
    assert kept == compiling.stamp() + own
