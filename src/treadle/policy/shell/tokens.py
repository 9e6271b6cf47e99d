"""Reads what commands are made of: assignments, redirections, reserved words, and the blanks in between."""

import re

from treadle.policy.shell.syntax import (
    Assignment,
    Cursor,
    HereDocument,
    Literal,
    Redirect,
    Segment,
    ShellSyntaxError,
    Word,
)
from treadle.policy.shell.words import read_here_documents, read_word

_BLANKS = " \t"
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^\]]*\])?(\+?)=")
_REDIRECT = re.compile(r"([0-9]*|\{[A-Za-z_][A-Za-z0-9_]*\})(<<<|<<-|<<|<>|<&|>>|>\||>&|<|>)|()(&>>|&>)")
_RESERVED = re.compile(r"[^\s;&|()<>'\"\\$`#]+")


def read_assignment(cursor: Cursor) -> Assignment | None:
    """Read `name=value` or `name=(…)`; None, with the cursor left alone, where there is none."""
    match = _ASSIGNMENT.match(cursor.text, cursor.pos)
    if match is None:
        return None
    subscript: tuple[Segment, ...] = ()
    if match.group(2):
        # A subscript is evaluated as arithmetic: read it as a word so that what it runs is seen.
        inside = Cursor(match.group(2)[1:-1], cursor.nested, depth=cursor.depth, spent=cursor.spent)
        subscript = read_word(inside, " \t\n;&|()<>").segments
    cursor.pos = match.end()
    appends = match.group(3) != ""
    if not cursor.take("("):
        return Assignment(match.group(1), (read_word(cursor),), subscript=subscript, appends=appends)
    values: list[Word] = []
    while True:
        skip_newlines(cursor)
        if cursor.take(")"):
            return Assignment(match.group(1), tuple(values), is_array=True, subscript=subscript, appends=appends)
        values.append(some_word(cursor))


def read_redirects(cursor: Cursor) -> tuple[Redirect, ...]:
    """Read all redirections that stand here, as behind a block."""
    redirects: list[Redirect] = []
    while True:
        skip_blanks(cursor)
        redirect = read_redirect(cursor)
        if redirect is None:
            return tuple(redirects)
        redirects.append(redirect)


def read_redirect(cursor: Cursor) -> Redirect | None:
    """Read one redirection; None where there is none. The body of a here-document is left open."""
    match = _REDIRECT.match(cursor.text, cursor.pos)
    if match is None or cursor.text[match.end() - 1 : match.end() + 1] in ("<(", ">("):
        return None
    fd, operator = (match.group(1), match.group(2)) if match.group(2) else ("", match.group(4))
    cursor.pos = match.end()
    skip_blanks(cursor)
    target = some_word(cursor)
    if operator not in ("<<", "<<-"):
        return Redirect(operator, target, fd)
    quoted = any(char in target.text for char in "'\"\\")
    delimiter = "".join(segment.text for segment in target.segments if isinstance(segment, Literal))
    if any(not isinstance(segment, Literal) for segment in target.segments):
        raise ShellSyntaxError("the delimiter of a here-document is not plain")
    here = HereDocument(delimiter, expands=not quoted, strips_tabs=operator == "<<-")
    cursor.pending.append(here)
    return Redirect(operator, target, fd, here)


def some_word(cursor: Cursor) -> Word:
    """Read a word; raises `ShellSyntaxError` where there is none."""
    word = read_word(cursor)
    if not word.text:
        raise ShellSyntaxError(f"a word is missing at character {cursor.pos}")
    return word


def plain_text(word: Word) -> str:
    """Give the text of a word without quotes and expansions; raises `ShellSyntaxError` for another one."""
    match word.segments:
        case (Literal(text=text, quoted=False),):
            return text
        case _:
            raise ShellSyntaxError(f"{word.text!r} is not a plain name")


def skip_blanks(cursor: Cursor) -> None:
    """Step over blanks, line continuations and a comment."""
    while True:
        char = cursor.peek()
        if char and char in _BLANKS:
            cursor.pos += 1
        elif cursor.looking_at("\\\n"):
            cursor.pos += 2
        elif char == "#":
            end = cursor.text.find("\n", cursor.pos)
            cursor.pos = len(cursor.text) if end < 0 else end
        else:
            return


def skip_newlines(cursor: Cursor) -> None:
    """Step over blanks and the ends of lines, reading the here-documents that are open."""
    skip_blanks(cursor)
    while cursor.take("\n"):
        read_here_documents(cursor)
        skip_blanks(cursor)


def peek_reserved(cursor: Cursor) -> str:
    """Give the plain word ahead, or an empty string; a reserved word must end at a metacharacter."""
    match = _RESERVED.match(cursor.text, cursor.pos)
    if match is None:
        return ""
    following = cursor.text[match.end() : match.end() + 1]
    return match.group() if following in ("", " ", "\t", "\n", ";", "&", "|", "(", ")", "<", ">") else ""


def take_reserved(cursor: Cursor, word: str) -> bool:
    """Step over a reserved word if it stands here."""
    if peek_reserved(cursor) != word:
        return False
    cursor.pos += len(word)
    return True


def expect_reserved(cursor: Cursor, word: str) -> None:
    """Step over a reserved word, which may stand in a later line; raises `ShellSyntaxError` for anything else."""
    skip_newlines(cursor)
    if not take_reserved(cursor, word):
        raise ShellSyntaxError(f"{word!r} is missing at character {cursor.pos}")
