"""Reads words: quotes, escapes and expansions, the way bash does."""

import re
from collections.abc import Iterator

from treadle.policy.shell.syntax import (
    Arithmetic,
    BrokenShellError,
    Cursor,
    Literal,
    Parameter,
    Segment,
    ShellSyntaxError,
    Substitution,
    Word,
)

WORD_END = re.compile(r"(?![<>]\()(?=[ \t\n;&|()<>])|\Z")
"""Where a word ends, but for a process substitution that it may hold."""

_DOUBLE_QUOTE = re.compile('"')
_CLOSING_BRACE = re.compile(r"\}")
_CLOSING_BRACKET = re.compile(r"\]")
_ROUND_BRACKET = re.compile(r"[()]")
_TEXT_END = re.compile(r"\Z")

_OUTSIDE = re.compile(r"\\([^\n])|'([^']*)'|([\w./,:=@%+-]+|[^\\'\"$`])")
"""What stands for itself outside double quotes: a run of characters that mean nothing, or one that may end a part."""

_INSIDE = re.compile(r"\\([$`\"\\])|([^\\$`\"{}()\[\]]+|\\(?!\n)|[\"{}()\[\]])")
"""The same inside double quotes, and in what is read like them."""

_PROCESS = re.compile(r"([<>])\(")
_BACKTICKS = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]")
_IN_BRACES = re.compile(r"([!#](?!\}))?+([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])")
_OPERATOR = re.compile(r":[-=?+]|##?|%%?|/[/#%]?|\^\^?|,,?|[-=?+@:]|(?=\})")
_ESCAPED = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_CONTROL = re.compile(r"\\(?:x(?!00)[01][0-9a-fA-F]|0(?!00)[0-3][0-7]|[eEr])")
"""Signs that have no letter: they separate fields and colour a terminal. Of number 0 shells differ."""

_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}


def unescaped(text: str) -> str | None:
    """Read the escapes of a text; None where one is not plain."""
    try:
        return re.sub(r"\\(.?)", lambda one: _ESCAPES[one[1]], text, flags=re.DOTALL)
    except KeyError:
        return None


def read_word(cursor: Cursor, end: re.Pattern[str] = WORD_END) -> Word:
    """Read one word at the cursor, up to `end`. It may be empty."""
    cursor.count(1)
    start = cursor.pos
    segments = tuple(_pieces(cursor, end, quoted=False))
    return Word(cursor.text[start : cursor.pos], segments)


def here_body(cursor: Cursor, text: str) -> tuple[Segment, ...]:
    """Read the body of a here-document in which the shell expands."""
    return tuple(_pieces(cursor.inside(text), _TEXT_END, quoted=True))


def _pieces(cursor: Cursor, end: re.Pattern[str], *, quoted: bool) -> Iterator[Segment]:
    """Read up to `end`, as outside or inside double quotes."""
    while not cursor.find(end):
        if cursor.peek() in ("$", "`"):
            cursor.enter()
            yield _expansion(cursor, quoted=quoted)
            cursor.leave()
        elif not quoted and cursor.take('"'):
            yield Literal("", quoted=True)
            yield from _pieces(cursor, _DOUBLE_QUOTE, quoted=True)
        elif not quoted and (process := cursor.find(_PROCESS)):
            yield Substitution(cursor.nested(cursor, ")"), quoted=True, direction=process[1])
        elif found := cursor.find(_INSIDE if quoted else _OUTSIDE):
            yield Literal(found[found.lastindex or 0], quoted or found.lastindex != 3)
        else:
            if cursor.peek() == "\\":
                raise ShellSyntaxError("the line ends in a backslash inside a word")
            raise BrokenShellError("a quote or bracket is not closed")


def _in_backticks(cursor: Cursor, text: str, *, quoted: bool) -> Substitution:
    """Read what the shell reads only when it runs it: a mistake in there does not make the line invalid."""
    inside = cursor.inside(re.sub(r"\\([$`\\])", r"\1", text))
    try:
        return Substitution(inside.nested(inside, ""), quoted)
    except BrokenShellError as error:
        raise ShellSyntaxError(str(error)) from error


def _expansion(cursor: Cursor, *, quoted: bool) -> Segment:
    if script := cursor.find(_BACKTICKS):
        return _in_backticks(cursor, script[1], quoted=quoted)
    if not cursor.take("$"):
        raise BrokenShellError("a backtick is not closed")
    if cursor.take("(("):
        return read_arithmetic(cursor)
    if cursor.take("("):
        return Substitution(cursor.nested(cursor, ")"), quoted)
    if cursor.take("{"):
        return _braced(cursor, quoted=quoted)
    if name := cursor.find(_PARAMETER):
        return Parameter(name[0], quoted)
    if cursor.peek() == "[" or (not quoted and cursor.peek() == '"'):
        raise ShellSyntaxError("an old form of arithmetic, or a text that may be translated")
    if quoted or cursor.peek() != "'":
        return Literal("$", quoted)
    escaped = cursor.find(_ESCAPED)
    text = unescaped(_CONTROL.sub("\x1b", escaped[1])) if escaped else None
    if text is None:
        raise ShellSyntaxError("a $' quote is not closed, or hides what it says")
    return Literal(text, quoted=True)


def _braced(cursor: Cursor, *, quoted: bool) -> Parameter:
    """Read the rest of `${…}`."""
    found = cursor.read(_IN_BRACES)
    start = cursor.pos
    try:
        subscript = tuple(_pieces(cursor, _CLOSING_BRACKET, quoted=False)) if cursor.take("[") else ()
    except BrokenShellError as error:  # the shell reads it only when it runs it
        raise ShellSyntaxError(str(error)) from error
    subscript_text = cursor.text[start : cursor.pos]
    operator = cursor.read(_OPERATOR)[0] or subscript_text
    operand = tuple(_pieces(cursor, _CLOSING_BRACE, quoted=quoted))
    return Parameter(found[2], quoted, (found[1] or "") + operator, subscript + operand)


def read_arithmetic(cursor: Cursor) -> Arithmetic:
    """Read the rest of `((…))`; a subshell in another one is written with a blank between their brackets."""
    start = cursor.pos
    inner: list[Segment] = []
    open_brackets = 0
    while open_brackets >= 0:
        inner += _pieces(cursor, _ROUND_BRACKET, quoted=True)
        open_brackets += 1 if cursor.text[cursor.pos - 1] == "(" else -1
    if not cursor.take(")"):
        raise ShellSyntaxError("the brackets of an arithmetic expression do not match")
    return Arithmetic(cursor.text[start : cursor.pos - 2], tuple(inner))
