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
    while_statement c_style_for_statement case_statement case_item function_definition declaration_command unset_command
    array subscript process_substitution postfix_expression ternary_expression
""")
)


@lru_cache(maxsize=1)
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


def here_documents(text: str) -> int:
    """Count the here-documents that the grammar sees begin, also in a text that it does not follow otherwise."""
    pending = [_parser().parse(text.encode()).root_node]
    count = 0
    while pending:
        node = pending.pop()
        count += node.type == "heredoc_start"
        pending.extend(node.children)
    return count


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
        names.extend(_name_of(node))
        pending.extend(reversed(node.children))
    return names


def _name_of(node: Node) -> list[str]:
    """Give the first word of the command that a node begins, or nothing."""
    match node.type:
        case "command_name":
            return _program(node)
        case "test_command":
            return [_text(node).split(maxsplit=1)[0]]
        case "declaration_command" | "unset_command":
            return [_text(node).split(maxsplit=1)[0]]
        case "compound_statement" if _text(node).startswith("(("):
            return ["(("]
        case "c_style_for_statement":
            return ["(("]
        case _:
            return []


def _program(node: Node) -> list[str]:
    """Give the program; `time` is a reserved word that the grammar takes for one."""
    following: Node | None = node
    while following is not None and _text(following) in ("time", "-p"):
        following = following.next_named_sibling
    if following is None:
        return ["time"]
    return [] if following.type == "subshell" else [_text(following)]


def _text(node: Node) -> str:
    return (node.text or b"").decode()
