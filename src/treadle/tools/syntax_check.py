"""Whether an edit broke the syntax of a file, by the parsers that are at hand: nothing is set up, nothing is run."""

import ast
import json
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.protocol.patterns import regex
from treadle.tools.outlines import Grammar, grammar_for, is_ready, syntax_tree
from treadle.workspace.files.text import visible

if TYPE_CHECKING:
    from tree_sitter import Node

_KB = 1024
_MOST = 256 * _KB
"""Characters; parsing takes time in proportion to them, and this many take a fifth of a second."""

_MOST_JSON = 4 * 1024 * _KB
_MOST_YAML = 64 * _KB
_SECONDS = 0.25
"""That a grammar may take: odd texts take it far longer than others."""

_SHOWN = 60
_WITH_MACROS = ("C", "C++")
"""Languages in which what looks like a fault may be a macro."""

_AT_LINE = regex(r" \(at line (\d+), column \d+\)$")
_AT_END = " (at end of document)"


class _Fault(Struct, frozen=True):
    """Where a text does not parse, from line 1, and why; `is_open`: something from there on does not end."""

    line: int
    why: str
    is_open: bool = False


class _Parser(Struct, frozen=True):
    """What finds the first fault of a text of at most so many characters; None for none. `name` is what it reads."""

    name: str
    find: Callable[[str], _Fault | None]
    most: int = _MOST
    doubt: str = ""


def broken_syntax(name: str, before: str, after: str) -> str:
    """Say in a line where a text does not parse that did before; empty for nothing, or nothing that is known."""
    parser = _parser_for(name)
    if not before or parser is None or max(len(before), len(after)) > parser.most:
        return ""
    try:
        fault = parser.find(after)
        if fault is None or parser.find(before) is not None:
            return ""
    except (ToolError, RecursionError, MemoryError, SystemError):  # 3.11: two threads that parse at once
        return ""
    line = max(fault.line, _first_difference(before, after)) if fault.is_open else fault.line
    why = visible(fault.why)
    return (
        f"{_beginning(name)}{line}: no longer parses as {parser.name}: {why}. Fix it now, unless a later step "
        f"will{parser.doubt}.]"
    )


def _first_difference(before: str, after: str) -> int:
    """Give the line, from 1, from which on two texts differ."""
    pairs = zip(before.split("\n"), after.split("\n"), strict=False)
    return next((line for line, (old, new) in enumerate(pairs, 1) if old != new), 1)


def is_about(note: str, name: str) -> bool:
    """Whether a text is what `broken_syntax` says of a file."""
    return note.startswith(_beginning(name))


def _beginning(name: str) -> str:
    return f"\n\n[{name}:"


def _parser_for(name: str) -> _Parser | None:
    match PurePath(name).suffix.lower():
        case ".py" | ".pyi":
            return _Parser(f"Python {sys.version_info[0]}.{sys.version_info[1]}", _in_python)
        case ".json":
            return _Parser("JSON", _in_json, _MOST_JSON)
        case ".toml":
            return _Parser("TOML", _in_toml)
        case ".yaml" | ".yml":
            return _Parser("YAML", _in_yaml, _MOST_YAML) if find_spec("yaml") is not None else None
        case _:
            grammar = grammar_for(name)
            if grammar is None or not is_ready(grammar):
                return None
            doubt = " or the grammar does not know what is written there"
            return _Parser(grammar.name, lambda text: _by_grammar(text, grammar), doubt=doubt)


def _in_python(text: str) -> _Fault | None:
    try:
        with warnings.catch_warnings(action="ignore"):  # of strange escapes in strings
            ast.parse(text)
    except SyntaxError as error:
        return _Fault(error.lineno or 1, error.msg)
    except ValueError as error:
        return _Fault(1, str(error))
    return None


def _in_json(text: str) -> _Fault | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return _Fault(error.lineno, error.msg)
    except ValueError:  # a number that is too long to be read
        return None
    return None


def _in_toml(text: str) -> _Fault | None:
    toml: Any = import_module("tomllib")
    try:
        toml.loads(text)
    except ValueError as error:
        said = str(error)
        found = _AT_LINE.search(said)
        line = int(found[1]) if found else text.count("\n") + 1
        return _Fault(line, said[: found.start()] if found else said.removesuffix(_AT_END))
    return None


def _in_yaml(text: str) -> _Fault | None:
    yaml: Any = import_module("yaml")
    try:
        for _ in yaml.parse(text):
            pass
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        return _Fault(1 if mark is None else mark.line + 1, getattr(error, "problem", None) or "it cannot be read")
    return None


def _by_grammar(text: str, grammar: Grammar) -> _Fault | None:
    root = syntax_tree(text, grammar, _SECONDS)
    return _first_error(root, text.split("\n"), grammar) if root.has_error else None


def _first_error(root: "Node", lines: list[str], grammar: Grammar) -> _Fault | None:
    """Go down to the first node that is missing, or that could not be read and has no such node below it."""
    node = root
    while True:
        below = next((child for child in node.children if child.has_error or child.is_missing), None)
        if below is None:
            break
        node = below
    row = node.start_point.row
    if node.is_missing:
        return _Fault(row + 1, f"`{node.type}` is missing")
    if grammar.name in _WITH_MACROS:
        return None
    end = node.end_point
    if node.end_byte >= root.end_byte - 1 and end.row - (end.column == 0) > row:
        return _Fault(row + 1, "something is not closed or not complete", is_open=True)
    return _Fault(row + 1, f"unexpected `{lines[row].strip()[:_SHOWN]}`")
