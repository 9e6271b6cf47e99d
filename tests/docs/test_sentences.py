"""People and programs act in the sentences of documents: no sentence begins with a clause as its subject."""

import re

import pytest

from tests.docs.pages import Page, pages

CLAUSE = re.compile(r"(?:^|(?<=[.:;] )|(?<=\| )|(?<=- )|(?<=\. \n)|(?<=\.\n))(?:What|Whatever) [a-z]+ [^.?|]*")
"""A sentence such as `What is not shown is lost.`; questions are none, and neither is the cell of a table."""


def clauses(page: Page) -> list[str]:
    text = re.sub(r"^#.*$", "", page.prose, flags=re.MULTILINE)
    text = re.sub(r"(?<!\n)\n(?![\n|#-])", " ", text)
    found = []
    for match in CLAUSE.finditer(text):
        ended = text[match.end() : match.end() + 1]
        if ended == "." and not match[0].startswith("What works today"):
            found.append(f"{page.path}: {match[0][:80]}")
    return found


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.path)
def test_no_sentence_begins_with_a_clause(page: Page) -> None:
    assert clauses(page) == [], "Begin with the one who acts: `Treadle drops the keys that you typed before`."


def test_such_a_sentence_is_found() -> None:
    bad = Page("docs/x.md", "A rule.\nWhat is not\nshown is lost. What now? It ends. What you allow runs.\n")
    assert len(clauses(bad)) == 2
    assert clauses(Page("docs/x.md", "## What it is\n\nWhat now?\n\n| What | it |\n")) == []
