"""The papers' queries, for the streams of the lab."""

from __future__ import annotations

from pathlib import Path

import penstock as pk

QUERIES = Path(__file__).parents[1] / "queries"


def query(name: str) -> pk.Query:
    """Return a query of the corpus."""
    return pk.parse((QUERIES / f"{name}.cep").read_text(encoding="utf-8"))
