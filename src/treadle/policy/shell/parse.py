"""Parses a shell line into its tree; whatever is not understood is a `ShellSyntaxError`."""

import re
from dataclasses import replace

from treadle.policy.shell.cursor import Cursor
from treadle.policy.shell.syntax import (
    Assignment,
    Block,
    Calculation,
    Command,
    Conditional,
    HereDocument,
    Literal,
    Pipeline,
    Redirect,
    Script,
    Segment,
    ShellSyntaxError,
    Simple,
    Word,
)
from treadle.policy.shell.words import BLANKS, read_here_documents, read_word, try_arithmetic

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^\]]*\])?(\+?)=")
_REDIRECT = re.compile(r"([0-9]*|\{[A-Za-z_][A-Za-z0-9_]*\})(<<<|<<-|<<|<>|<&|>>|>\||>&|<|>)|()(&>>|&>)")
_CLOSERS = frozenset({"then", "else", "elif", "fi", "do", "done", "esac", "}"})
_ERRORS_TOO = Redirect(">&", Word("1", (Literal("1", quoted=False),)), "2")
_TEST_OPERATORS = ("&&", "||", "(", ")", "<", ">")
_PATTERN_OPERATORS = frozenset({"=~", "==", "!=", "="})


def parse(text: str) -> tuple[Script, bool]:
    """Parse a whole line. The flag says that a line continuation stood inside a word. Raises `ShellSyntaxError`."""
    cursor = Cursor(text, _script_until)
    script = _script_until(cursor, "")
    if cursor.pending:
        raise ShellSyntaxError("a here-document has no body")
    return script, cursor.joined


def _script_until(cursor: Cursor, close: str) -> Script:
    """Parse up to `close` (left standing), or to the end of the text when `close` is empty."""
    script = _read_list(cursor)
    if cursor.pos < len(cursor.text) and not (close and cursor.looking_at(close)):
        raise ShellSyntaxError(f"{cursor.peek()!r} is not expected at character {cursor.pos}")
    return script


def _read_list(cursor: Cursor) -> Script:
    """Read pipelines until something that is no command: a closing word or character, or the end."""
    pipelines: list[Pipeline] = []
    cursor.enter()
    _skip_newlines(cursor)
    while not _at_list_end(cursor):
        commands, negated = _read_pipeline(cursor)
        after = _read_separator(cursor)
        pipelines.append(Pipeline(commands, after, negated))
        if after in ("&&", "||"):
            _skip_newlines(cursor)
            if _at_list_end(cursor):
                raise ShellSyntaxError(f"nothing follows {after!r}")
        elif not after:
            break
    cursor.leave()
    return Script(tuple(pipelines))


def _at_list_end(cursor: Cursor) -> bool:
    if cursor.pos >= len(cursor.text) or cursor.peek() == ")" or cursor.looking_at(";;") or cursor.looking_at(";&"):
        return True
    return _peek_reserved(cursor) in _CLOSERS


def _read_separator(cursor: Cursor) -> str:
    _skip_blanks(cursor)
    for separator in ("&&", "||"):
        if cursor.take(separator):
            return separator
    if cursor.looking_at(";;") or cursor.looking_at(";&"):
        return ""
    for separator in ("&", ";"):
        if cursor.take(separator):
            _skip_newlines(cursor)
            return separator
    if cursor.peek() == "\n":
        _skip_newlines(cursor)
        return "\n"
    return ""


def _read_pipeline(cursor: Cursor) -> tuple[tuple[Command, ...], bool]:
    negated = False
    while (is_not := _take_reserved(cursor, "!")) or _take_time(cursor):
        negated |= is_not
        _skip_blanks(cursor)
    commands = [_read_command(cursor)]
    while True:
        _skip_blanks(cursor)
        if cursor.looking_at("||") or not cursor.looking_at("|"):
            return tuple(commands), negated
        if cursor.take("|&"):
            commands[-1] = replace(commands[-1], redirects=(*commands[-1].redirects, _ERRORS_TOO))
        else:
            cursor.take("|")
        _skip_newlines(cursor)
        commands.append(_read_command(cursor))


def _take_time(cursor: Cursor) -> bool:
    if not _take_reserved(cursor, "time"):
        return False
    _skip_blanks(cursor)
    _take_reserved(cursor, "-p")
    return True


def _read_command(cursor: Cursor) -> Command:
    _skip_blanks(cursor)
    start = cursor.pos
    cursor.enter()
    command = _read_compound(cursor)
    if command is None:
        command = _read_simple(cursor, start)
    cursor.leave()
    return command


def _read_compound(cursor: Cursor) -> Command | None:
    if cursor.take("(("):
        return _read_calculation_or_subshell(cursor)
    if cursor.take("("):
        return _read_subshell(cursor)
    reader = _COMPOUND.get(_peek_reserved(cursor))
    if reader is None:
        return None
    word = _peek_reserved(cursor)
    cursor.pos += len(word)
    return reader(cursor, word)


def _read_calculation_or_subshell(cursor: Cursor) -> Command:
    expression = try_arithmetic(cursor)
    if expression is None:
        cursor.pos -= 1
        return _read_subshell(cursor)
    return Calculation(expression, _read_redirects(cursor))


def _read_subshell(cursor: Cursor) -> Command:
    script = _nonempty(_read_list(cursor))
    cursor.expect(")")
    return Block("subshell", (script,), redirects=_read_redirects(cursor))


def _read_group(cursor: Cursor, _word: str) -> Command:
    script = _nonempty(_read_list(cursor))
    _expect_reserved(cursor, "}")
    return Block("group", (script,), redirects=_read_redirects(cursor))


def _read_if(cursor: Cursor, _word: str) -> Command:
    scripts = [_nonempty(_read_list(cursor))]
    _expect_reserved(cursor, "then")
    scripts.append(_nonempty(_read_list(cursor)))
    while _take_reserved(cursor, "elif"):
        scripts.append(_nonempty(_read_list(cursor)))
        _expect_reserved(cursor, "then")
        scripts.append(_nonempty(_read_list(cursor)))
    if _take_reserved(cursor, "else"):
        scripts.append(_nonempty(_read_list(cursor)))
    _expect_reserved(cursor, "fi")
    return Block("if", tuple(scripts), redirects=_read_redirects(cursor))


def _read_while(cursor: Cursor, word: str) -> Command:
    condition = _nonempty(_read_list(cursor))
    body = _read_do(cursor)
    return Block(word, (condition, body), redirects=_read_redirects(cursor))


def _read_do(cursor: Cursor) -> Script:
    _expect_reserved(cursor, "do")
    body = _nonempty(_read_list(cursor))
    _expect_reserved(cursor, "done")
    return body


def _read_for(cursor: Cursor, word: str) -> Command:
    _skip_blanks(cursor)
    if word == "for" and cursor.take("(("):
        expression = try_arithmetic(cursor)
        if expression is None:
            raise ShellSyntaxError("the head of a loop is not understood")
        head = Script((Pipeline((Calculation(expression),), ";"),))
        _skip_list_end(cursor)
        return Block("calculated for", (head, _read_do(cursor)), redirects=_read_redirects(cursor))
    name = _plain_text(read_word(cursor))
    _skip_newlines(cursor)
    words: list[Word] = []
    if _take_reserved(cursor, "in"):
        _skip_blanks(cursor)
        while cursor.peek() and cursor.peek() not in ";\n":
            words.append(_some_word(cursor))
            _skip_blanks(cursor)
    else:
        words.append(Word('"$@"', ()))
    _skip_list_end(cursor)
    return Block(word, (_read_do(cursor),), tuple(words), name, _read_redirects(cursor))


def _skip_list_end(cursor: Cursor) -> None:
    _skip_blanks(cursor)
    cursor.take(";")
    _skip_newlines(cursor)


def _read_case(cursor: Cursor, _word: str) -> Command:
    _skip_blanks(cursor)
    words = [_some_word(cursor)]
    scripts: list[Script] = []
    _skip_newlines(cursor)
    _expect_reserved(cursor, "in")
    _skip_newlines(cursor)
    while not _take_reserved(cursor, "esac"):
        cursor.take("(")
        words.extend(_read_patterns(cursor))
        scripts.append(_read_list(cursor))
        _skip_newlines(cursor)
        if not any(cursor.take(end) for end in (";;&", ";;", ";&")):
            _expect_reserved(cursor, "esac")
            break
        _skip_newlines(cursor)
    return Block("case", tuple(scripts), tuple(words), redirects=_read_redirects(cursor))


def _read_patterns(cursor: Cursor) -> list[Word]:
    patterns: list[Word] = []
    while True:
        _skip_blanks(cursor)
        patterns.append(_some_word(cursor))
        _skip_blanks(cursor)
        if cursor.take(")"):
            return patterns
        cursor.expect("|")


def _read_function(cursor: Cursor, _word: str) -> Command:
    _skip_blanks(cursor)
    name = _plain_text(_some_word(cursor))
    _skip_blanks(cursor)
    if cursor.take("("):
        _skip_blanks(cursor)
        cursor.expect(")")
    return _read_function_body(cursor, name)


def _read_function_body(cursor: Cursor, name: str) -> Command:
    _skip_newlines(cursor)
    body = _read_compound(cursor)
    if body is None:
        raise ShellSyntaxError(f"the function {name} has no body")
    return Block("function", (Script((Pipeline((body,)),)),), name=name)


def _read_coproc(cursor: Cursor, _word: str) -> Command:
    _skip_blanks(cursor)
    return Block("coproc", (Script((Pipeline((_read_command(cursor),)),)),))


def _read_test(cursor: Cursor, _word: str) -> Command:
    words: list[Word] = []
    while True:
        _skip_newlines(cursor)
        pattern_follows = bool(words) and words[-1].text in _PATTERN_OPERATORS
        if not pattern_follows:
            operator = next((text for text in _TEST_OPERATORS if cursor.take(text)), "")
            if operator:
                words.append(Word(operator, (Literal(operator, quoted=False),)))
                continue
        word = read_word(cursor, "()|<>" if pattern_follows else "")
        if not word.text:
            raise ShellSyntaxError("[[ is not closed")
        if word.text == "]]":
            return Conditional(tuple(words), _read_redirects(cursor))
        words.append(word)


_COMPOUND = {
    "{": _read_group,
    "if": _read_if,
    "while": _read_while,
    "until": _read_while,
    "for": _read_for,
    "select": _read_for,
    "case": _read_case,
    "function": _read_function,
    "coproc": _read_coproc,
    "[[": _read_test,
}


def _read_simple(cursor: Cursor, start: int) -> Command:
    assignments: list[Assignment] = []
    words: list[Word] = []
    redirects: list[Redirect] = []
    end = start
    while True:
        _skip_blanks(cursor)
        redirect = _read_redirect(cursor)
        if redirect is not None:
            redirects.append(redirect)
        elif not words and (assignment := _read_assignment(cursor)) is not None:
            assignments.append(assignment)
        elif cursor.peek() == "(" and len(words) == 1 and not assignments and not redirects:
            cursor.pos += 1
            _skip_blanks(cursor)
            cursor.expect(")")
            return _read_function_body(cursor, words[0].text)
        else:
            word = read_word(cursor)
            if not word.text:
                break
            words.append(word)
        end = cursor.pos
    if not (assignments or words or redirects):
        raise ShellSyntaxError(f"a command is missing at character {cursor.pos}")
    return Simple(cursor.text[start:end], tuple(assignments), tuple(words), tuple(redirects))


def _read_assignment(cursor: Cursor) -> Assignment | None:
    match = _ASSIGNMENT.match(cursor.text, cursor.pos)
    if match is None:
        return None
    subscript: tuple[Segment, ...] = ()
    if match.group(2):
        # A subscript is evaluated as arithmetic: read it as a word so that what it runs is seen.
        inside = Cursor(match.group(2)[1:-1], cursor.nested, depth=cursor.depth)
        subscript = read_word(inside, " \t\n;&|()<>").segments
    cursor.pos = match.end()
    appends = match.group(3) != ""
    if not cursor.take("("):
        return Assignment(match.group(1), (read_word(cursor),), subscript=subscript, appends=appends)
    values: list[Word] = []
    while True:
        _skip_newlines(cursor)
        if cursor.take(")"):
            return Assignment(match.group(1), tuple(values), is_array=True, subscript=subscript, appends=appends)
        values.append(_some_word(cursor))


def _read_redirects(cursor: Cursor) -> tuple[Redirect, ...]:
    redirects: list[Redirect] = []
    while True:
        _skip_blanks(cursor)
        redirect = _read_redirect(cursor)
        if redirect is None:
            return tuple(redirects)
        redirects.append(redirect)


def _read_redirect(cursor: Cursor) -> Redirect | None:
    match = _REDIRECT.match(cursor.text, cursor.pos)
    if match is None or cursor.text[match.end() - 1 : match.end() + 1] in ("<(", ">("):
        return None
    fd, operator = (match.group(1), match.group(2)) if match.group(2) else ("", match.group(4))
    cursor.pos = match.end()
    _skip_blanks(cursor)
    target = _some_word(cursor)
    if operator not in ("<<", "<<-"):
        return Redirect(operator, target, fd)
    quoted = any(char in target.text for char in "'\"\\")
    delimiter = "".join(segment.text for segment in target.segments if isinstance(segment, Literal))
    if any(not isinstance(segment, Literal) for segment in target.segments):
        raise ShellSyntaxError("the delimiter of a here-document is not plain")
    here = HereDocument(delimiter, expands=not quoted, strips_tabs=operator == "<<-")
    cursor.pending.append(here)
    return Redirect(operator, target, fd, here)


def _some_word(cursor: Cursor) -> Word:
    word = read_word(cursor)
    if not word.text:
        raise ShellSyntaxError(f"a word is missing at character {cursor.pos}")
    return word


def _nonempty(script: Script) -> Script:
    if not script.pipelines:
        raise ShellSyntaxError("a block is empty")
    return script


def _plain_text(word: Word) -> str:
    match word.segments:
        case (Literal(text=text, quoted=False),):
            return text
        case _:
            raise ShellSyntaxError(f"{word.text!r} is not a plain name")


def _skip_blanks(cursor: Cursor) -> None:
    while True:
        char = cursor.peek()
        if char and char in BLANKS:
            cursor.pos += 1
        elif cursor.looking_at("\\\n"):
            cursor.pos += 2
        elif char == "#":
            end = cursor.text.find("\n", cursor.pos)
            cursor.pos = len(cursor.text) if end < 0 else end
        else:
            return


def _skip_newlines(cursor: Cursor) -> None:
    _skip_blanks(cursor)
    while cursor.take("\n"):
        read_here_documents(cursor)
        _skip_blanks(cursor)


_RESERVED = re.compile(r"[^\s;&|()<>'\"\\$`#]+")


def _peek_reserved(cursor: Cursor) -> str:
    """Give the plain word ahead, or an empty string; a reserved word must end at a metacharacter."""
    match = _RESERVED.match(cursor.text, cursor.pos)
    if match is None:
        return ""
    following = cursor.text[match.end() : match.end() + 1]
    return match.group() if following in ("", " ", "\t", "\n", ";", "&", "|", "(", ")", "<", ">") else ""


def _take_reserved(cursor: Cursor, word: str) -> bool:
    if _peek_reserved(cursor) != word:
        return False
    cursor.pos += len(word)
    return True


def _expect_reserved(cursor: Cursor, word: str) -> None:
    _skip_newlines(cursor)
    if not _take_reserved(cursor, word):
        raise ShellSyntaxError(f"{word!r} is missing at character {cursor.pos}")
