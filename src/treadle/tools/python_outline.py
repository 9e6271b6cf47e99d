"""What Python source defines, by the standard library's parser, or by its indentation where it does not parse."""

import ast
import warnings
from collections.abc import Iterator

from treadle.protocol.patterns import regex

_DEFINITION = regex(r"(?:async[ \t]+def|def|(class))[ \t]+[^\W\d]\w*")
_QUOTES = regex(r'"""|\'\'\'')


def python_definitions(text: str) -> list[tuple[int, int]]:
    """Give the line (from 0) and the depth of each class, method and function that is in no other function."""
    text = text.replace("\r\n", "\n")
    try:
        with warnings.catch_warnings(action="ignore"):  # of strange escapes in strings
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):  # 3.11: two threads that parse at once
        return list(_by_indentation(text))
    # The parser ends lines at a carriage return too.
    return list(_by_indentation(text) if "\r" in text else _by_tree(tree))


def _by_tree(tree: ast.Module) -> Iterator[tuple[int, int]]:
    todo: list[tuple[ast.AST, int]] = [(tree, 0)]
    while todo:
        node, depth = todo.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.lineno - 1, depth
                continue
            case ast.ClassDef():
                yield node.lineno - 1, depth
                depth += 1
            case _:
                pass
        below = (each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.expr))
        todo += reversed([(each, depth) for each in below])


def _by_indentation(text: str) -> Iterator[tuple[int, int]]:
    around: list[tuple[int, bool]] = []
    """The definitions that a line is in: how far each is indented, and whether it is a class."""
    quote = ""
    for row, line in enumerate(text.split("\n")):
        in_text = bool(quote)
        for found in _QUOTES.findall(line):
            quote = found if not quote else "" if found == quote else quote
        code = line.lstrip()
        if in_text or not code or code.startswith("#"):
            continue
        indent = len(line.expandtabs()) - len(code.expandtabs())
        while around and around[-1][0] >= indent:
            around.pop()
        definition = _DEFINITION.match(code)
        if definition and all(is_class for _, is_class in around):
            yield row, len(around)
            around.append((indent, definition[1] is not None))
