"""A second opinion: the commands that the tree-sitter grammar sees must be the ones the own parser saw."""

from functools import lru_cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from treadle.policy.marks import split_words

_ALLOWED = frozenset(
    split_words("""
    program list pipeline command command_name word string string_content raw_string ansi_c_string concatenation number
    comment redirected_statement file_redirect file_descriptor test_command unary_expression binary_expression
    test_operator negated_command subshell compound_statement if_statement else_clause elif_clause for_statement
    do_group variable_assignment variable_name simple_expansion expansion special_variable_name heredoc_redirect
    heredoc_start heredoc_body heredoc_content heredoc_end herestring_redirect command_substitution extglob_pattern
    regex brace_expression arithmetic_expansion parenthesized_expression escape_sequence
""")
)


@lru_cache(maxsize=1)
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


def grammar_commands(text: str) -> list[str] | None:
    """Give the first words of all commands in the order of the text, or None when the grammar finds it odd."""
    source = text.encode()
    root = _parser().parse(source).root_node
    if root.has_error:
        return None
    names: list[str] = []
    pending: list[Node] = [root]
    while pending:
        node = pending.pop()
        if node.is_named and node.type not in _ALLOWED:
            return None
        if node.type == "command_name":
            names.append(_name_of(node))
        elif node.type == "test_command":
            names.append((node.text or b"").decode().split(maxsplit=1)[0])
            continue
        pending.extend(reversed(node.children))
    return names


def _name_of(node: Node) -> str:
    """Give the first word of a command; `time` is a reserved word that the grammar takes for a program."""
    following: Node | None = node
    while following is not None and (following.text or b"") in (b"time", b"-p"):
        following = following.next_named_sibling
    return ((following.text if following else None) or b"time").decode()
