"""Reads words: quotes, escapes and expansions, the way bash does."""

import re
from itertools import groupby

from treadle.policy.shell.syntax import (
    Arithmetic,
    Cursor,
    Literal,
    Parameter,
    ProcessSubstitution,
    Segment,
    ShellScript,
    ShellSyntaxError,
    Substitution,
    Word,
)

_LETTERS = {"e": "\x1b", "E": "\x1b", "n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
_ESCAPED = re.compile(r"'((?:[^'\\]|\\(?!x00|000)(?:x[01][0-9a-fA-F]|0[0-3][0-7]|[eEnrt\\'\"]))*)'")
_NUMBERED = re.compile(r"\\(?:x(..)|(0..)|(.))")


def _read_escaped(cursor: Cursor) -> str:
    """Read `'…'` behind a `$`. Raises `ShellSyntaxError`, also for letters that are written as numbers.

    Signs that have no letter may be: they are what separates fields and colours a terminal. Of number 0 shells differ.
    """
    match = _ESCAPED.match(cursor.text, cursor.pos)
    if match is None:
        raise ShellSyntaxError("a $' quote is not closed, or hides what it says")
    cursor.pos = match.end()
    return _NUMBERED.sub(_letter, match[1])


def _letter(escape: re.Match[str]) -> str:
    hexadecimal, octal, letter = escape.groups()
    return _LETTERS[letter] if letter else chr(int(hexadecimal or octal, 16 if hexadecimal else 8))


_METACHARACTERS = frozenset(" \t\n;&|()<>")

_PLAIN = re.compile(r"[\w./,:=@%+-]+")
"""Characters that mean nothing to the shell inside a word."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")
_SPECIALS = frozenset("@*#?$!-0123456789")


_QUOTED = re.compile(r"[^\\$`\"{}()\[\]]+")
"""Characters that mean nothing inside double quotes, and end nothing that is read like them."""


def _joined(pieces: list[Segment]) -> tuple[Segment, ...]:
    """Put neighbouring text of one kind together."""
    if len(pieces) < 2:
        return tuple(pieces)
    found: list[Segment] = []
    for quoted, group in groupby(pieces, lambda one: one.quoted if isinstance(one, Literal) else None):
        run = list(group)
        text = "".join(one.text for one in run if isinstance(one, Literal))
        found.extend(run if quoted is None else [Literal(text, quoted)])
    return tuple(found)


def read_word(cursor: Cursor, extra: str = "") -> Word:
    """Read one word at the cursor; `extra` are metacharacters that belong to it here. It may be empty."""
    cursor.count(1)
    start = cursor.pos
    pieces: list[Segment] = []
    while cursor.pos < len(cursor.text):
        if cursor.looking_at("<(") or cursor.looking_at(">("):
            is_output = cursor.peek() == ">"
            cursor.pos += 2
            pieces.append(ProcessSubstitution(_nested(cursor, ")"), is_output))
            continue
        char = cursor.peek()
        if char in _METACHARACTERS and char not in extra:
            break
        _read_piece(cursor, pieces)
    return Word(cursor.text[start : cursor.pos], _joined(pieces))


def _read_piece(cursor: Cursor, pieces: list[Segment]) -> None:
    char = cursor.peek()
    if char == "\\":
        _read_escape(cursor, pieces)
    elif char == "'":
        pieces.append(Literal(_single_quoted(cursor), quoted=True))
    elif char == '"':
        cursor.pos += 1
        pieces.append(Literal("", quoted=True))
        pieces.extend(_until(cursor, '"', quoted=True))
    elif char in "$`":
        _read_expansion(cursor, pieces, quoted=False)
    else:
        run = _PLAIN.match(cursor.text, cursor.pos)
        text = run.group() if run else char
        pieces.append(Literal(text, quoted=False))
        cursor.pos += len(text)


def _read_escape(cursor: Cursor, pieces: list[Segment]) -> None:
    following = cursor.peek(1)
    if following in ("", "\n"):
        raise ShellSyntaxError("a line or the text ends in a backslash inside a word")
    pieces.append(Literal(following, quoted=True))
    cursor.pos += 2


def _single_quoted(cursor: Cursor) -> str:
    end = cursor.text.find("'", cursor.pos + 1)
    if end < 0:
        raise ShellSyntaxError("a single quote is not closed")
    text = cursor.text[cursor.pos + 1 : end]
    cursor.pos = end + 1
    return text


def _until(cursor: Cursor, close: str, *, quoted: bool) -> tuple[Segment, ...]:
    """Read up to `close` (consumed), as inside double quotes, `${…}` or arithmetic."""
    pieces: list[Segment] = []
    cursor.enter()
    while not cursor.take(close):
        char = cursor.peek()
        if not char:
            raise ShellSyntaxError(f"{close!r} is missing at the end")
        if quoted:
            _read_quoted_piece(cursor, pieces)
        else:
            _read_piece(cursor, pieces)
    cursor.leave()
    return _joined(pieces)


def _read_quoted_piece(cursor: Cursor, pieces: list[Segment]) -> None:
    char = cursor.peek()
    if char == "\\":
        following = cursor.peek(1)
        if following == "\n":
            raise ShellSyntaxError("a line ends in a backslash inside quotes")
        if following and following in '$`"\\':
            pieces.append(Literal(following, quoted=True))
            cursor.pos += 2
            return
    if char in "$`":
        _read_expansion(cursor, pieces, quoted=True)
        return
    run = _QUOTED.match(cursor.text, cursor.pos)
    text = run.group() if run else char
    pieces.append(Literal(text, quoted=True))
    cursor.pos += len(text)


def _read_expansion(cursor: Cursor, pieces: list[Segment], *, quoted: bool) -> None:
    if cursor.peek() == "`":
        pieces.append(Substitution(_backticks(cursor), quoted))
        return
    cursor.pos += 1
    if not quoted and cursor.looking_at("'"):
        pieces.append(Literal(_read_escaped(cursor), quoted=True))
    elif cursor.looking_at("[") or (not quoted and cursor.looking_at('"')):
        raise ShellSyntaxError("an old form of arithmetic, or a text that may be translated")
    elif cursor.take("(("):
        pieces.append(read_arithmetic(cursor))
    elif cursor.take("("):
        pieces.append(Substitution(_nested(cursor, ")"), quoted))
    elif cursor.take("{"):
        pieces.append(_braced(cursor, quoted=quoted))
    elif match := _NAME.match(cursor.text, cursor.pos):
        cursor.pos = match.end()
        pieces.append(Parameter(match.group(), quoted))
    elif cursor.peek() and cursor.peek() in _SPECIALS:
        pieces.append(Parameter(cursor.peek(), quoted))
        cursor.pos += 1
    else:
        pieces.append(Literal("$", quoted=quoted))


def _nested(cursor: Cursor, close: str) -> ShellScript:
    cursor.enter()
    script = cursor.nested(cursor, close)
    cursor.expect(close)
    cursor.leave()
    return script


def _backticks(cursor: Cursor) -> ShellScript:
    end = cursor.pos + 1
    while end < len(cursor.text) and cursor.text[end] != "`":
        end += 2 if cursor.text[end] == "\\" else 1
    if end >= len(cursor.text):
        raise ShellSyntaxError("a backtick is not closed")
    inner = re.sub(r"\\([$`\\])", r"\1", cursor.text[cursor.pos + 1 : end])
    cursor.pos = end + 1
    cursor.enter()
    inside = Cursor(inner, cursor.nested, depth=cursor.depth, spent=cursor.spent)
    script = inside.nested(inside, "")
    cursor.leave()
    return script


def read_arithmetic(cursor: Cursor) -> Arithmetic:
    """Read the rest of `((…))`; a subshell in another one is written with a blank between their brackets."""
    pieces: list[Segment] = []
    start = cursor.pos
    open_brackets = 0
    cursor.enter()
    while open_brackets or not cursor.looking_at("))"):
        open_brackets += {"(": 1, ")": -1}.get(cursor.peek(), 0)
        if not cursor.peek() or open_brackets < 0:
            raise ShellSyntaxError("the brackets of an arithmetic expression do not match")
        _read_quoted_piece(cursor, pieces)
    text = cursor.text[start : cursor.pos]
    cursor.expect("))")
    cursor.leave()
    return Arithmetic(text, _joined(pieces))


_OPERATORS = (":-", ":=", ":?", ":+", "##", "%%", "//", "/#", "/%", "^^", ",,", *"-=?+#%/^,@:")


def _braced(cursor: Cursor, *, quoted: bool) -> Parameter:
    """Read the rest of `${…}`."""
    prefix = ""
    if cursor.peek() in ("!", "#") and cursor.peek(1) not in ("}", ""):
        prefix = cursor.peek()
        cursor.pos += 1
    match = _PARAMETER.match(cursor.text, cursor.pos)
    if match is None:
        raise ShellSyntaxError("an expansion in braces has no name")
    cursor.pos = match.end()
    rest: tuple[Segment, ...] = ()
    start = cursor.pos
    if cursor.take("["):
        rest = _until(cursor, "]", quoted=False)
    if cursor.take("}"):
        return Parameter(match.group(), quoted, prefix + cursor.text[start : cursor.pos - 1], rest)
    operator = next(filter(cursor.take, _OPERATORS), "")
    if not operator:
        raise ShellSyntaxError("an expansion in braces is not understood")
    operand = _until(cursor, "}", quoted=quoted)
    return Parameter(match.group(), quoted, prefix + operator, rest + operand)


def read_here_documents(cursor: Cursor) -> None:
    """Read the bodies of the open here-documents; the cursor stands behind the newline that ends their line."""
    pending, cursor.pending = cursor.pending, []
    for document in pending:
        lines: list[str] = []
        while True:
            if cursor.pos >= len(cursor.text):
                raise ShellSyntaxError(f"the here-document {document.delimiter!r} is not closed")
            line, _, _ = cursor.text[cursor.pos :].partition("\n")
            cursor.pos = min(len(cursor.text), cursor.pos + len(line) + 1)
            if document.strips_tabs:
                line = line.lstrip("\t")
            if line == document.delimiter:
                break
            lines.append(line + "\n")
        document.body = _here_body("".join(lines), cursor, expands=document.expands)


def _here_body(text: str, cursor: Cursor, *, expands: bool) -> tuple[Segment, ...]:
    if not expands:
        return (Literal(text, quoted=True),)
    inside = Cursor(text, cursor.nested, depth=cursor.depth, spent=cursor.spent)
    pieces: list[Segment] = []
    while inside.pos < len(text):
        _read_quoted_piece(inside, pieces)
    return _joined(pieces)
