"""Each command that the program itself names, in an explanation, an error or a notice, is one that it takes."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.test_shape import source_modules
from tests.docs.command_lines import mistake, parts

QUOTED = re.compile(r"`(treadle [^`\n]+)`")
BEHIND_A_COLON = re.compile(r": (treadle [^`\n]+)")
ENDS = re.compile(r"[,;.:](?= |$)| or | \(")
"""What ends a command that has no quotes around it."""

FINE = re.compile(r"7'|'MODE'|Something is missing: (?!.*\|)|needs a value")
"""A place in which one of a few words stands when the program says it, and the name of a command without its operands.

One of which a part is to be named, such as `treadle audit`, is none to type.
"""


def texts() -> Iterator[tuple[str, str]]:
    """Each text of the source that is no docstring, with its place; a value in it is 7, a number and a name."""
    for name, tree in source_modules():
        within = {id(one) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for one in ast.walk(node)}
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            match node:
                case ast.JoinedStr(values=values):
                    yield f"{name}:{node.lineno}", "".join(_part(one) for one in values)
                case ast.Constant(value=str(value)) if not {id(node)} & (within | docs):
                    yield f"{name}:{node.lineno}", value
                case _:
                    pass


def _part(value: ast.expr) -> str:
    return str(value.value) if isinstance(value, ast.Constant) else "7"


def commands(text: str) -> list[str]:
    """The commands that a text names."""
    return [*QUOTED.findall(text), *(ENDS.split(one)[0] for one in BEHIND_A_COLON.findall(text))]


def wrong(text: str) -> list[str]:
    """What is wrong with them."""
    found = [(line, mistake(words, ())) for line in commands(text) for words in parts(line) if words[:1] != ["7"]]
    return [f"{line}: {said}" for line, said in found if said and not FINE.search(said)]


def test_each_command_that_the_program_names_is_one_that_it_takes() -> None:
    named = [(place, text) for place, text in texts() if commands(text)]
    assert len(named) > 100
    assert [f"{place}: {one}" for place, text in named for one in wrong(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "`treadle audit ID` says where.",
        "`treadle audit` does.",
        "Use: treadle --no-such",
        "Look: treadle replay --from x 7",
    ],
)
def test_a_command_that_is_not_there_is_found(text: str) -> None:
    assert wrong(text)
