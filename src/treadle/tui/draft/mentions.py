"""The files that a text names, `@path` or `@"path with blanks"`, and their colour."""

from collections.abc import Callable, Iterator

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer

from treadle.door.message_parts import find_named
from treadle.tui.paint.lines import Line


def mentioned(text: str) -> Iterator[str]:
    """Give the paths that a text names, as they are written in it, without quotes and lines."""
    return (named.target for named in find_named(text))


def accented(text: str, role: str = "") -> Line:
    """Give a text in a role, its mentions in accent besides."""
    pieces: list[tuple[str, str]] = []
    at = 0
    for named in find_named(text):
        pieces += [(role, text[at : named.start]), (f"{role} accent".strip(), text[named.start : named.end])]
        at = named.end
    pieces.append((role, text[at:]))
    return tuple(piece for piece in pieces if piece[1])


class MentionLexer(Lexer):
    """Colours the mentions of the draft."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """Give the pieces of each line."""
        lines = document.lines

        def get_line(number: int) -> StyleAndTextTuples:
            if number >= len(lines):
                return []
            return [(f"class:{role}" if role else "", text) for role, text in accented(lines[number])]

        return get_line
