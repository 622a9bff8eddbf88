"""Relative links in the documents lead to files, links to headings lead to headings, and files named in code exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^()\s]+)(?: \"[^\"]*\")?\)")
PATH = re.compile(r"`((?:seqloom|tests|docs|bench|results)/[\w/.-]+)`")
EXAMPLES = {"seqloom/nn/attention/cosine.py", "seqloom/objectives/word_dropout.py"}  # files for the reader to add
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def links(text: str) -> list[str]:
    """The targets of links and pictures, without those in code and those to other sites."""
    return [link for link in LINK.findall(FENCE.sub("", text)) if not re.match(r"[a-z]+:", link)]


def anchors(text: str) -> set[str]:
    """The headings of a page as links name them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    found = []
    for link in links(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (
            anchor and target.suffix == ".md" and anchor not in anchors(target.read_text(encoding="utf-8"))
        ):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert broken(page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_named_in_code_exist(page):
    named = {
        path
        for path in PATH.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
        if not re.search("[A-Z]{4}", path)
    }
    assert {path for path in named - EXAMPLES if not (ROOT / path).exists()} == set()


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A heading, here\n[a](page.md#a-heading-here) [b](none.md) ![c](c.png) [d](#nothing)\n")
    page.write_text(page.read_text() + "[e](https://example.org)\n```\n[f](code.md)\n```\n[g](page.md)\n")
    assert broken(page) == ["none.md", "c.png", "#nothing"]
