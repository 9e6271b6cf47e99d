"""Outlines of source files: what they define, on which line. All but Python need the grammars of the extra `code`."""

import importlib
import time
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.tools.python_outline import python_definitions
from treadle.workspace.installed import install_command

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser

_WIDTH = 160
_SECONDS = 2.0
_CHUNK = 64 * 1024


class Grammar(Struct, frozen=True, kw_only=True):
    """A language: its endings, its package (none for Python), and the kinds of syntax nodes that define something.

    `functions` are not looked into; `containers` are. Kinds in `with_body` count only where they have one, and a
    `variable` only where its value is a function or a class.
    """

    name: str
    endings: frozenset[str]
    package: str
    functions: frozenset[str] = frozenset()
    containers: frozenset[str] = frozenset()
    with_body: frozenset[str] = frozenset()
    variable: str = ""
    entry: str = "language"


def how_to_install() -> str:
    """Say how the user gets the grammars."""
    return f"the user can install it with `{install_command('code')}`"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_JS_FUNCTIONS = _words("function_declaration generator_function_declaration method_definition")
_TS_FUNCTIONS = _JS_FUNCTIONS | _words("function_signature method_signature abstract_method_signature")
_TS_CONTAINERS = _words(
    "class_declaration abstract_class_declaration interface_declaration type_alias_declaration enum_declaration "
    "internal_module"
)
_C_BODIED = _words("struct_specifier union_specifier enum_specifier")

GRAMMARS = (
    Grammar(name="Python", endings=_words(".py .pyi"), package=""),
    Grammar(
        name="JavaScript",
        endings=_words(".js .jsx .mjs .cjs"),
        package="tree_sitter_javascript",
        functions=_JS_FUNCTIONS,
        containers=_words("class_declaration"),
        variable="variable_declarator",
    ),
    Grammar(
        name="TypeScript",
        endings=_words(".ts .mts .cts"),
        package="tree_sitter_typescript",
        entry="language_typescript",
        functions=_TS_FUNCTIONS,
        containers=_TS_CONTAINERS,
        variable="variable_declarator",
    ),
    Grammar(
        name="TypeScript",
        endings=_words(".tsx"),
        package="tree_sitter_typescript",
        entry="language_tsx",
        functions=_TS_FUNCTIONS,
        containers=_TS_CONTAINERS,
        variable="variable_declarator",
    ),
    Grammar(
        name="Go",
        endings=_words(".go"),
        package="tree_sitter_go",
        functions=_words("function_declaration method_declaration"),
        containers=_words("type_spec type_alias"),
    ),
    Grammar(
        name="Rust",
        endings=_words(".rs"),
        package="tree_sitter_rust",
        functions=_words("function_item function_signature_item macro_definition"),
        containers=_words("struct_item enum_item union_item trait_item impl_item mod_item type_item"),
    ),
    Grammar(
        name="Java",
        endings=_words(".java"),
        package="tree_sitter_java",
        functions=_words("method_declaration constructor_declaration compact_constructor_declaration"),
        containers=_words(
            "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration"
        ),
    ),
    Grammar(
        name="C",
        endings=_words(".c .h"),
        package="tree_sitter_c",
        functions=_words("function_definition"),
        containers=_words("type_definition"),
        with_body=_C_BODIED,
    ),
    Grammar(
        name="C++",
        endings=_words(".cc .cpp .cxx .hh .hpp .hxx"),
        package="tree_sitter_cpp",
        functions=_words("function_definition"),
        containers=_words("namespace_definition type_definition alias_declaration concept_definition"),
        with_body=_C_BODIED | {"class_specifier"},
    ),
    Grammar(
        name="C#",
        endings=_words(".cs"),
        package="tree_sitter_c_sharp",
        functions=_words("method_declaration constructor_declaration operator_declaration local_function_statement"),
        containers=_words(
            "namespace_declaration file_scoped_namespace_declaration class_declaration struct_declaration "
            "interface_declaration enum_declaration record_declaration delegate_declaration"
        ),
    ),
    Grammar(
        name="Ruby",
        endings=_words(".rb .rake"),
        package="tree_sitter_ruby",
        functions=_words("method singleton_method"),
        containers=_words("class module singleton_class"),
    ),
    Grammar(
        name="PHP",
        endings=_words(".php"),
        package="tree_sitter_php",
        entry="language_php",
        functions=_words("function_definition method_declaration"),
        containers=_words(
            "namespace_definition class_declaration interface_declaration trait_declaration enum_declaration"
        ),
    ),
    Grammar(
        name="Kotlin",
        endings=_words(".kt .kts"),
        package="tree_sitter_kotlin",
        functions=_words("function_declaration secondary_constructor"),
        containers=_words("class_declaration object_declaration companion_object type_alias"),
    ),
    Grammar(
        name="Swift",
        endings=_words(".swift"),
        package="tree_sitter_swift",
        functions=_words("function_declaration init_declaration protocol_function_declaration"),
        containers=_words("class_declaration protocol_declaration typealias_declaration"),
    ),
)


def grammar_for(name: str) -> Grammar | None:
    """Find the grammar for a file by the ending of its name."""
    ending = PurePath(name).suffix.lower()
    return next((grammar for grammar in GRAMMARS if ending in grammar.endings), None)


def is_ready(grammar: Grammar) -> bool:
    """Whether the language can be outlined here."""
    return not grammar.package or find_spec(grammar.package) is not None


def outline(text: str, grammar: Grammar) -> list[str]:
    """List the definitions of a source text as `LINE | first line of it`, indented by nesting.

    Raises `ToolError` when the grammar is not installed.
    """
    lines = text.split("\n")
    found = _definitions(syntax_tree(text, grammar), grammar) if grammar.package else iter(python_definitions(text))
    rows: dict[int, int] = {}
    for row, depth in found:
        rows.setdefault(row, depth)
    return [f"{row + 1} | {'  ' * depth}{lines[row].strip()[:_WIDTH]}" for row, depth in rows.items()]


def syntax_tree(text: str, grammar: Grammar, seconds: float = _SECONDS) -> "Node":
    """Parse a text of a language other than Python.

    Raises `ToolError` when the grammar is not installed, and when it takes so long: odd texts take a grammar minutes,
    and so much depth that the process would end.
    """
    raw, until = text.encode(errors="replace"), time.monotonic() + seconds

    def is_late(at: int, has_error: bool) -> bool:  # noqa: ARG001, FBT001 - the library's shape
        return time.monotonic() > until

    try:
        return _parser(grammar).parse(lambda at, _: raw[at : at + _CHUNK], progress_callback=is_late).root_node
    except ValueError as error:
        raise ToolError(
            f"It takes too long to parse this as {grammar.name}. Use search_files for definitions."
        ) from error


def _definitions(root: "Node", grammar: Grammar) -> Iterator[tuple[int, int]]:
    """Give the line (from 0) and the depth of each definition, in the order of the text."""
    todo = [(root, 0)]
    while todo:
        node, depth = todo.pop()
        defines = _defines(node, grammar)
        if defines:
            anchor = node.child_by_field_name("name") or node.child_by_field_name("declarator") or node
            yield anchor.start_point.row, depth
        if not (defines and node.type not in grammar.containers | grammar.with_body):
            todo += [(child, depth + defines) for child in reversed(node.named_children)]


def _defines(node: "Node", grammar: Grammar) -> bool:
    kind = node.type
    if kind in grammar.with_body:
        return node.child_by_field_name("body") is not None
    if kind == grammar.variable:
        value = node.child_by_field_name("value")
        return value is not None and value.type in {"arrow_function", "function_expression", "class"}
    return kind in grammar.functions or kind in grammar.containers


def _parser(grammar: Grammar) -> "Parser":
    """Make a parser: one is for one thread at a time."""
    from tree_sitter import Parser

    return Parser(_language(grammar))


@cache
def _language(grammar: Grammar) -> "Language":
    # Grammars are optional and heavy: each is loaded when a file of its language is first asked for.
    try:
        package: Any = importlib.import_module(grammar.package)
    except ModuleNotFoundError as error:
        raise ToolError(
            f"Outlines of {grammar.name} need the extra `code`, which is not installed: {how_to_install()}. "
            "Until then use search_files for definitions."
        ) from error
    from tree_sitter import Language

    return Language(getattr(package, grammar.entry)())
