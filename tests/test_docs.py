"""The documentation holds: its Python runs, its queries parse, its links and commands lead somewhere."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer.main

from penstock.cli import app
from penstock.errors import QueryError
from penstock.pattern.parser import parse

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "tests/queries/*.md")
    for page in ROOT.glob(pattern)
)
FENCE = re.compile(r"^```(?P<language>[^\n]*)\n(?P<text>.*?)^```\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, with the line of its first line of text."""

    language: str
    text: str
    line: int


def blocks(page: str) -> Iterator[Block]:
    for found in FENCE.finditer(page):
        yield Block(found["language"].strip(), found["text"], page.count("\n", 0, found.start("text")) + 1)


def is_query(block: Block) -> bool:
    """A block marked penstock, or an unmarked one that starts like a query; not the outline `[WHERE …]` of one."""
    unmarked = not block.language and block.text.lstrip().startswith("PATTERN") and "\n[" not in block.text
    return block.language == "penstock" or unmarked


def run_python(page: str, name: str) -> int:
    """Run the Python blocks of a page in order, in one namespace; blocks with `>>>` as doctests."""
    namespace: dict[str, Any] = {"__name__": f"page {name}"}
    count = 0
    for block in (each for each in blocks(page) if each.language == "python"):
        count += 1
        if ">>> " in block.text:
            example = doctest.DocTestParser().get_doctest(block.text, namespace, name, name, block.line)
            doctest.DebugRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, clear_globs=False)
            namespace = example.globs
        else:
            code = compile("\n" * (block.line - 1) + block.text, name, "exec", dont_inherit=True)
            exec(code, namespace)
    return count


def parse_queries(page: str) -> int:
    queries = [block.text for block in blocks(page) if is_query(block)]
    for text in queries:
        parse(text)
    return len(queries)


def broken_links(page: str, folder: Path) -> list[str]:
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", page))
    targets = [found["target"] for found in LINK.finditer(prose)]
    return [
        target for target in targets if not re.match(r"[a-z]+:", target) and not leads_somewhere(target, page, folder)
    ]


def leads_somewhere(target: str, page: str, folder: Path) -> bool:
    path, _, anchor = target.partition("#")
    if path and not (folder / path).exists():
        return False
    return not anchor or anchor in anchors((folder / path).read_text(encoding="utf-8") if path else page)


def anchors(page: str) -> set[str]:
    """The names that headings get: lower case, no signs but dashes, a dash for each blank."""
    headings = re.findall(r"^#+ +(.*?) *$", FENCE.sub("", page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_the_python_of_a_page_runs(page: Path) -> None:
    run_python(page.read_text(encoding="utf-8"), page_id(page))


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_the_queries_of_a_page_parse(page: Path) -> None:
    parse_queries(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert broken_links(page.read_text(encoding="utf-8"), page.parent) == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_the_commands_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE)) <= targets
    commands = set(typer.main.get_group(app).commands)
    assert set(re.findall(r"(?:`|^\$ )penstock ([a-z]+)", text, re.MULTILINE)) <= commands


def test_the_readme_has_examples_that_run() -> None:
    assert run_python((ROOT / "README.md").read_text(encoding="utf-8"), "README.md") == 2


def test_help_names_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony
    described = set(re.findall(r'@echo "make ([a-z-]+) ', makefile))
    assert set(phony[1].split()) - {"help", "java"} == described


class TestTheChecksCanFail:
    def test_python(self) -> None:
        with pytest.raises(ZeroDivisionError):
            run_python("```python\n1 / 0\n```\n", "page")
        with pytest.raises(doctest.DocTestFailure):
            run_python("```python\n>>> 1 + 1\n3\n```\n", "page")

    def test_names_carry_over_from_block_to_block(self) -> None:
        assert run_python("```python\n>>> x = 1\n```\n\n```python\nassert x == 1\n```\n", "page") == 2

    @pytest.mark.parametrize("language", ["", "penstock"])
    def test_queries(self, language: str) -> None:
        with pytest.raises(QueryError):
            parse_queries(f"```{language}\nPATTERN SEQ(A a WITHIN 5 s\n```\n")

    def test_links(self) -> None:
        page = (
            "# One two\n[a](no.md) [b](#one-two) [c](#three) [d](https://example.org) [e](Makefile) [f](README.md#no)"
        )
        assert broken_links(page, ROOT) == ["no.md", "#three", "README.md#no"]
