"""Every text of the source that a model reads as an error says what to do next."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.test_shape import source_modules
from tests.next_step import says_what_to_do

FOR_THE_MODEL = ("ToolError", "EditError", "_error")
NOT_FOR_THE_MODEL = ("workspace/diagnostics/",)
"""What a checker that does not work says is told as a part of another text; the second is no tool."""


def shown(text: ast.expr) -> str | None:
    """A literal text with `X` for each value in it; None for what only running it can tell."""
    match text:
        case ast.Constant(value=str(value)):
            return value
        case ast.JoinedStr(values=values):
            whole = "".join(str(one.value) if isinstance(one, ast.Constant) else "X" for one in values)
            # A value before a new sentence is a sentence of its own.
            return re.sub(r"X (?=[A-Z])", "X. ", whole)
        case _:
            return None


def error_texts() -> Iterator[tuple[str, str]]:
    """Each literal text with its place."""
    for name, tree in source_modules():
        if name.startswith(NOT_FOR_THE_MODEL):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FOR_THE_MODEL:
                for argument in node.args:
                    if (text := shown(argument)) is not None:
                        yield f"{name}:{node.lineno}", text


def test_every_error_text_says_what_to_do_next() -> None:
    found = dict(error_texts())
    assert len(found) > 50
    assert [(place, text) for place, text in found.items() if not says_what_to_do(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "notes.txt cannot be listed: Permission denied.",
        "The patch names no file.",
        "There is no command 3 in the background. There is: none.",
        "It needs `url`.",
        "Use it. But that failed. It is gone.",
        "",
    ],
)
def test_the_rule_finds_a_text_without_a_next_step(text: str) -> None:
    assert not says_what_to_do(text)


@pytest.mark.parametrize(
    "text",
    [
        "a.txt is a directory. Use list_files to see what is in it.",
        "The command is longer than 9 bytes. Write it to a file and run that.",
        "Refused [not_found]: nothing was changed. Copy it from below.\nNearest:\n 1 | x = 1",
        "If you want that place, give a URL with localhost.",
        "a.tx does not exist. Did you mean a.txt?",
    ],
)
def test_the_rule_knows_a_next_step(text: str) -> None:
    assert says_what_to_do(text)
