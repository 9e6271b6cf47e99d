"""Reads words: quotes, escapes and expansions, the way bash does."""

import re

from treadle.policy.shell.grammar.cursor import MAX_TRIED, Cursor
from treadle.policy.shell.grammar.syntax import (
    Arithmetic,
    Literal,
    Parameter,
    ProcessSubstitution,
    Segment,
    ShellScript,
    ShellSyntaxError,
    Substitution,
    TooLongError,
    Word,
)

_SIMPLE_ESCAPES = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_NUMBER_ESCAPES = (
    (re.compile(r"x([0-9A-Fa-f]{1,2})"), 16),
    (re.compile(r"u([0-9A-Fa-f]{1,4})"), 16),
    (re.compile(r"U([0-9A-Fa-f]{1,8})"), 16),
    (re.compile(r"([0-7]{1,3})"), 8),
)


def read_escaped(cursor: Cursor) -> str:
    """Read `'…'` behind a `$` and decode it. Raises `ShellSyntaxError`."""
    pos = cursor.pos + 1
    out: list[str] = []
    while pos < len(cursor.text):
        char = cursor.text[pos]
        if char == "'":
            cursor.pos = pos + 1
            return _as_utf8("".join(out))
        if char != "\\":
            out.append(char)
            pos += 1
            continue
        decoded, pos = _decode_escape(cursor.text, pos + 1)
        out.append(decoded)
    raise ShellSyntaxError("a $' quote is not closed")


def _decode_escape(text: str, pos: int) -> tuple[str, int]:
    if pos < len(text) and text[pos] in _SIMPLE_ESCAPES:
        return _SIMPLE_ESCAPES[text[pos]], pos + 1
    for pattern, base in _NUMBER_ESCAPES:
        if match := pattern.match(text, pos):
            code = int(match.group(1), base)
            if code == 0 or code > 0x10FFFF:
                raise ShellSyntaxError("a $' quote holds a character that ends the word early")
            return chr(code & 0xFF if base == 8 else code), match.end()
    if text[pos : pos + 1] == "c":
        return chr(ord(text[pos + 1 : pos + 2] or "@") & 0x1F), pos + 2
    return "\\", pos


def _as_utf8(text: str) -> str:
    """Join bytes that were written as escapes into the characters they encode."""
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text


_METACHARACTERS = frozenset(" \t\n;&|()<>")

_PLAIN = re.compile(r"[\w./,:=@%+-]+")
"""Characters that mean nothing to the shell inside a word."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")
_SPECIALS = frozenset("@*#?$!-0123456789")


class _Builder:
    """Collects segments; neighbouring text of one kind becomes one literal."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self._text: list[str] = []
        self._quoted = False

    def add_text(self, text: str, *, quoted: bool) -> None:
        if quoted is not self._quoted:
            self._flush()
            self._quoted = quoted
        self._text.append(text)

    def add(self, segment: Segment) -> None:
        self._flush()
        self.segments.append(segment)

    def _flush(self) -> None:
        if self._text:
            self.segments.append(Literal("".join(self._text), self._quoted))
            self._text = []

    def finish(self) -> tuple[Segment, ...]:
        self._flush()
        return tuple(self.segments)


def read_word(cursor: Cursor, extra: str = "") -> Word:
    """Read one word at the cursor; `extra` are metacharacters that belong to it here. It may be empty."""
    cursor.count(1)
    start = cursor.pos
    builder = _Builder()
    while cursor.pos < len(cursor.text):
        if cursor.looking_at("<(") or cursor.looking_at(">("):
            is_output = cursor.peek() == ">"
            cursor.pos += 2
            builder.add(ProcessSubstitution(_nested(cursor, ")"), is_output))
            continue
        char = cursor.peek()
        if char in _METACHARACTERS and char not in extra:
            break
        _read_piece(cursor, builder)
    return Word(cursor.text[start : cursor.pos], builder.finish())


def _read_piece(cursor: Cursor, builder: _Builder) -> None:
    char = cursor.peek()
    if char == "\\":
        _read_escape(cursor, builder)
    elif char == "'":
        builder.add_text(_single_quoted(cursor), quoted=True)
    elif char == '"':
        cursor.pos += 1
        builder.add_text("", quoted=True)
        for segment in _until(cursor, '"', quoted=True):
            builder.add(segment)
    elif char in "$`":
        _read_expansion(cursor, builder, quoted=False)
    else:
        run = _PLAIN.match(cursor.text, cursor.pos)
        text = run.group() if run else char
        builder.add_text(text, quoted=False)
        cursor.pos += len(text)


def _read_escape(cursor: Cursor, builder: _Builder) -> None:
    if cursor.looking_at("\\\n"):
        cursor.skip_joins()
        return
    following = cursor.peek(1)
    if not following:
        raise ShellSyntaxError("the text ends in a backslash")
    builder.add_text(following, quoted=True)
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
    builder = _Builder()
    cursor.enter()
    while not cursor.take(close):
        char = cursor.peek()
        if not char:
            raise ShellSyntaxError(f"{close!r} is missing at the end")
        if quoted:
            _read_quoted_piece(cursor, builder)
        else:
            _read_piece(cursor, builder)
    cursor.leave()
    return builder.finish()


def _read_quoted_piece(cursor: Cursor, builder: _Builder) -> None:
    char = cursor.peek()
    if char == "\\":
        if cursor.looking_at("\\\n"):
            cursor.skip_joins()
            return
        following = cursor.peek(1)
        if following and following in '$`"\\':
            builder.add_text(following, quoted=True)
            cursor.pos += 2
            return
    if char in "$`":
        _read_expansion(cursor, builder, quoted=True)
        return
    builder.add_text(char, quoted=True)
    cursor.pos += 1


def _read_expansion(cursor: Cursor, builder: _Builder, *, quoted: bool) -> None:
    if cursor.peek() == "`":
        builder.add(Substitution(_backticks(cursor), quoted))
        return
    cursor.pos += 1
    cursor.skip_joins()
    if not quoted and cursor.peek() in ("'", '"'):
        _read_dollar_quote(cursor, builder)
    else:
        _read_dollar(cursor, builder, quoted=quoted)


def _read_dollar_quote(cursor: Cursor, builder: _Builder) -> None:
    if cursor.peek() == "'":
        builder.add_text(read_escaped(cursor), quoted=True)
        return
    cursor.pos += 1
    for segment in _until(cursor, '"', quoted=True):
        builder.add(segment)
    # A translation may say anything.
    builder.add(Parameter("?locale", quoted=True, operator="translated"))


def _read_dollar(cursor: Cursor, builder: _Builder, *, quoted: bool) -> None:
    if cursor.take("(("):
        builder.add(_arithmetic_or_script(cursor, quoted=quoted))
    elif cursor.take("("):
        builder.add(Substitution(_nested(cursor, ")"), quoted))
    elif cursor.take("["):
        builder.add(_arithmetic(cursor, "]"))
    elif cursor.take("{"):
        builder.add(_braced(cursor, quoted=quoted))
    elif match := _NAME.match(cursor.text, cursor.pos):
        cursor.pos = match.end()
        builder.add(Parameter(match.group(), quoted))
    elif cursor.peek() and cursor.peek() in _SPECIALS:
        builder.add(Parameter(cursor.peek(), quoted))
        cursor.pos += 1
    else:
        builder.add_text("$", quoted=quoted)


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
    cursor.joined |= inside.joined
    cursor.leave()
    return script


def _arithmetic_or_script(cursor: Cursor, *, quoted: bool) -> Segment:
    """Read `$((` as arithmetic, or, when it does not end in `))`, as a substitution that starts with a subshell."""
    arithmetic = try_arithmetic(cursor)
    if arithmetic is not None:
        return arithmetic
    cursor.pos -= 1
    return Substitution(_nested(cursor, ")"), quoted)


def try_arithmetic(cursor: Cursor) -> Arithmetic | None:
    """Read the rest of `((…))`, the opening already consumed; None, with the cursor left alone, when it is none."""
    start, depth = cursor.pos, cursor.depth
    if start in cursor.not_arithmetic or "))" not in cursor.text[start:]:
        return None
    if cursor.spent.tried > MAX_TRIED:
        raise TooLongError
    try:
        return _arithmetic(cursor, "))")
    except ShellSyntaxError:
        cursor.spent.tried += cursor.pos - start
        cursor.pos, cursor.depth = start, depth
        cursor.not_arithmetic.add(start)
        return None


def _arithmetic(cursor: Cursor, close: str) -> Arithmetic:
    builder = _Builder()
    start = cursor.pos
    open_brackets = 0
    opening, closing = ("(", ")") if close == "))" else ("[", "]")
    cursor.enter()
    while open_brackets or not cursor.looking_at(close):
        char = cursor.peek()
        if not char:
            raise ShellSyntaxError(f"{close!r} is missing at the end")
        if char == opening:
            open_brackets += 1
        elif char == closing:
            open_brackets -= 1
        if open_brackets < 0:
            raise ShellSyntaxError("the brackets of an arithmetic expression do not match")
        _read_quoted_piece(cursor, builder)
    text = cursor.text[start : cursor.pos]
    cursor.pos += len(close)
    cursor.leave()
    return Arithmetic(text, builder.finish())


def _braced(cursor: Cursor, *, quoted: bool) -> Parameter:
    """Read the rest of `${…}`."""
    cursor.skip_joins()
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
    operator = _operator(cursor)
    operand = _until(cursor, "}", quoted=quoted)
    return Parameter(match.group(), quoted, prefix + operator, rest + operand)


_OPERATORS = (":-", ":=", ":?", ":+", "##", "%%", "//", "/#", "/%", "^^", ",,", "-", "=", "?", "+", "#", "%", "/", "^")


def _operator(cursor: Cursor) -> str:
    for operator in (*_OPERATORS, ",", "@", ":"):
        if cursor.take(operator):
            return operator
    raise ShellSyntaxError("an expansion in braces is not understood")


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
    builder = _Builder()
    while inside.pos < len(text):
        _read_quoted_piece(inside, builder)
    cursor.joined |= inside.joined
    return builder.finish()
