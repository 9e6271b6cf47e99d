"""What people and models read is plain product English: none of the words below is in it.

Read are the string literals of the source, what each command says of itself, the prompts, and the documents. Not read
are docstrings, comments, and names. `docs/decisions/` are records of their time.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.test_shape import ROOT, source_modules

SAY_INSTEAD = {
    r"mend(s|ed|ing)?": "fix, correct",
    r"unasked": "without asking",
    r"told|tells|tell (?!the user)|telling": "shown, said, sent; shows, says",
    r"(do|does|did|may|not|what|which|that|it|they|also|answer|mode) counts?": "applies, is used, is treated as",
    r"counts? (for|over|as|with|at|when|in|here|there)": "applies, overrides, is treated as",
    r"(the )?ids? of no": "there is no … with the id",
    r"no longer matters?": "was withdrawn",
    r"stands?(?! for)|stood|standing": "is, is written, applies",
    r"belongs? into": "belongs in",
    r"(what|that) (comes|would|will|does|may)? ?(to )?acts?": "files that run or configure something; take effect",
    r"acts? by (itself|themselves)": "run or configure something",
    r"(is|are) (always |never )?asked(?! (about|to|once|at|for))": "asks",
    r"(is|are|was|were) asked for": "is requested",
    r"works? (\w+ )?off": "do",
    r"at once": "immediately; together; in one call",
    r"(messages|client|reader) (that )?(has |have )?(leaves?|left) (the|meanwhile|in|it)": "are removed; quits",
    r"leave the (session|program|terminal|prompt)": "quit",
    r"(is|are|was|were) said": "a notice says",
    r"said (with it|anew|once|again)": "shown",
    r"goes on": "continues",
    r"what is lacking|lacked": "is missing, needs",
    r"anew": "again",
    r"left alone": "not called, not changed",
    r"talked into": "manipulated",
    r"(?<!there )(is|are) no (tool|file|model|directory|folder|command|key|image|text|JSON|program)": "is not a",
    r"(a|of|is) texts?(?= in quotes|, such)": "a string",
    r"make room on": "free space on",
    r"takes? (it |that |trust )?back": "remove, undo",
    r"for ever": "forever",
    r"purse|desk|strays?|scene|story": "a word of the field",
}
"""Patterns between word boundaries, in any case, and what to say instead."""

DATA = ("app/demo/project/", "editing/elision.py", "providers/provider_problems.py", "workspace/sandbox/denial.py")
"""Sample files, and tables of what models and other programs write."""

PAGES = [
    page
    for folder in ("", "docs", "src/treadle")
    for page in (ROOT / folder).glob("**/*.md" if folder == "src/treadle" else "*.md")
    if page.name not in ("AGENTS.md", "CHANGELOG.md") and DATA[0] not in page.as_posix()
]


def banned(text: str) -> list[str]:
    """Each banned word of a text with what to say instead."""
    flat = " ".join(text.split())
    return [
        f"{match[0]!r} -> {better}"
        for pattern, better in SAY_INSTEAD.items()
        for match in re.finditer(rf"(?<![\w`-])(?:{pattern})(?![\w`-])", flat, re.IGNORECASE)
    ]


def literals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Each string that is a sentence or a part of one, with its line; not docstrings."""
    unread = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            unread |= {id(value) for value in node.values}
            yield node.lineno, "".join(str(one.value) if isinstance(one, ast.Constant) else "X" for one in node.values)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in unread:
            yield node.lineno, node.value


def is_prose(text: str) -> bool:
    """Whether a string has words as sentences have them, not a table, a regular expression or a type."""
    return " " in text.strip() and re.search(r"\(\?|\n {4}|Callable\[", text) is None


def product_texts() -> Iterator[tuple[str, str]]:
    """Each text of the source with its place."""
    for name, tree in source_modules():
        if name.startswith(DATA):
            continue
        if name.startswith("cli/"):
            yield name, ast.get_docstring(tree) or ""
        for line, text in literals(tree):
            if is_prose(text):
                yield f"{name}:{line}", text


def test_no_text_of_the_source_has_a_banned_word() -> None:
    texts = list(product_texts())
    assert len(texts) > 1500
    assert [(place, found, text) for place, text in texts if (found := banned(text))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_page_has_a_banned_word(page: Path) -> None:
    assert banned(page.read_text(encoding="utf-8")) == []


def test_the_unreleased_changes_have_no_banned_word() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert banned(changes.partition("## [Unreleased]")[2].partition("\n## [")[0]) == []


@pytest.mark.parametrize(
    "text",
    [
        "Mend that line.",
        "Mode auto runs commands unasked.",
        "rules are told to the model",
        "The answer counts for this session only.",
        "'a1' is the id of no session.",
        "The question no longer matters.",
        "Each rule must stand under its own line.",
        "Put calls that belong into one reply together.",
        "Trusted, git may read here; what comes to act later asks again.",
        "What is not proven harmless is asked.",
        "work TASK off without asking",
        "calls are refused at once",
        "older messages that leave the prompt",
    ],
)
def test_the_rule_finds_what_costs_a_second_look(text: str) -> None:
    assert banned(text) != []


@pytest.mark.parametrize(
    "text",
    [
        "Check the path, or tell the user.",
        "A placeholder such as `...` stands for lines.",
        "The setting `max_auto_approved` limits the calls in a row.",
        "search_files counts all matches.",
        "Leave it out, or correct it.",
        "Treadle asks once.",
    ],
)
def test_the_rule_leaves_plain_words_alone(text: str) -> None:
    assert banned(text) == []
