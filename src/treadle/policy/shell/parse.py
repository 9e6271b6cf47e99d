"""Parses a shell line into its tree; whatever is not understood is a `ShellSyntaxError`."""

from collections.abc import Callable

from msgspec.structs import replace

from treadle.policy.shell.syntax import (
    Assignment,
    Block,
    Calculation,
    Command,
    Conditional,
    Cursor,
    Literal,
    Pipeline,
    Redirect,
    ShellScript,
    ShellSyntaxError,
    Simple,
    Word,
)
from treadle.policy.shell.tokens import (
    expect_reserved,
    peek_reserved,
    plain_text,
    read_assignment,
    read_redirect,
    read_redirects,
    skip_blanks,
    skip_newlines,
    some_word,
    take_reserved,
)
from treadle.policy.shell.words import read_arithmetic, read_word

_CLOSERS = frozenset({"then", "else", "elif", "fi", "do", "done", "esac", "}"})
_ERRORS_TOO = Redirect(">&", Word("1", (Literal("1", quoted=False),)), "2")
_TEST_OPERATORS = ("&&", "||", "(", ")", "<", ">")
_PATTERN_OPERATORS = frozenset({"=~", "==", "!=", "="})


def parse(text: str) -> ShellScript:
    """Parse a whole line. Raises `ShellSyntaxError` and `BudgetError`."""
    cursor = Cursor(text, script_until)
    script = script_until(cursor, "")
    if cursor.pending:
        raise ShellSyntaxError("a here-document has no body")
    return script


def script_until(cursor: Cursor, close: str) -> ShellScript:
    """Parse up to `close` (left standing), or to the end of the text when `close` is empty."""
    script = _read_list(cursor)
    if cursor.pos < len(cursor.text) and not (close and cursor.looking_at(close)):
        raise ShellSyntaxError(f"{cursor.peek()!r} is not expected at character {cursor.pos}")
    return script


def _read_list(cursor: Cursor) -> ShellScript:
    """Read pipelines until something that is no command: a closing word or character, or the end."""
    pipelines: list[Pipeline] = []
    cursor.enter()
    skip_newlines(cursor)
    while not _at_list_end(cursor):
        commands, negated = _read_pipeline(cursor)
        after = _read_separator(cursor)
        pipelines.append(Pipeline(commands, after, negated))
        if after in ("&&", "||"):
            skip_newlines(cursor)
            if _at_list_end(cursor):
                raise ShellSyntaxError(f"nothing follows {after!r}")
        elif not after:
            break
    cursor.leave()
    return ShellScript(tuple(pipelines))


def _at_list_end(cursor: Cursor) -> bool:
    if cursor.pos >= len(cursor.text) or cursor.peek() == ")" or cursor.looking_at(";;") or cursor.looking_at(";&"):
        return True
    return peek_reserved(cursor) in _CLOSERS


def _read_separator(cursor: Cursor) -> str:
    skip_blanks(cursor)
    for separator in ("&&", "||"):
        if cursor.take(separator):
            return separator
    if cursor.looking_at(";;") or cursor.looking_at(";&"):
        return ""
    for separator in ("&", ";"):
        if cursor.take(separator):
            skip_newlines(cursor)
            return separator
    if cursor.peek() == "\n":
        skip_newlines(cursor)
        return "\n"
    return ""


def _read_pipeline(cursor: Cursor) -> tuple[tuple[Command, ...], bool]:
    negated = False
    while (is_not := take_reserved(cursor, "!")) or _take_time(cursor):
        negated |= is_not
        skip_blanks(cursor)
    commands = [_read_command(cursor)]
    while True:
        skip_blanks(cursor)
        if cursor.looking_at("||") or not cursor.looking_at("|"):
            return tuple(commands), negated
        if cursor.take("|&"):
            commands[-1] = replace(commands[-1], redirects=(*commands[-1].redirects, _ERRORS_TOO))
        else:
            cursor.take("|")
        skip_newlines(cursor)
        commands.append(_read_command(cursor))


def _take_time(cursor: Cursor) -> bool:
    if not take_reserved(cursor, "time"):
        return False
    skip_blanks(cursor)
    take_reserved(cursor, "-p")
    return True


def _read_command(cursor: Cursor) -> Command:
    cursor.count(3)
    skip_blanks(cursor)
    start = cursor.pos
    cursor.enter()
    command = _read_compound(cursor) or _read_simple(cursor, start)
    cursor.leave()
    return command


def _read_compound(cursor: Cursor) -> Block | Conditional | Calculation | None:
    if cursor.take("(("):
        return Calculation(read_arithmetic(cursor), read_redirects(cursor))
    if cursor.take("("):
        return _read_subshell(cursor)
    word = peek_reserved(cursor)
    if word in ("coproc", "select"):
        raise ShellSyntaxError(f"{word} is not followed")
    reader = _COMPOUND.get(word)
    if reader is None:
        return None
    cursor.pos += len(word)
    command = reader(cursor, word)
    has_redirects = not (isinstance(command, Block) and command.kind == "function")
    return replace(command, redirects=read_redirects(cursor)) if has_redirects else command


def _read_subshell(cursor: Cursor) -> Block:
    script = _some_script(cursor)
    cursor.expect(")")
    return Block("subshell", (script,), redirects=read_redirects(cursor))


def _script_before(cursor: Cursor, word: str) -> ShellScript:
    """Read a script and the reserved word that ends it."""
    script = _some_script(cursor)
    expect_reserved(cursor, word)
    return script


def _read_group(cursor: Cursor, _word: str) -> Block:
    return Block("group", (_script_before(cursor, "}"),))


def _read_if(cursor: Cursor, _word: str) -> Block:
    scripts = [_script_before(cursor, "then"), _some_script(cursor)]
    while take_reserved(cursor, "elif"):
        scripts += [_script_before(cursor, "then"), _some_script(cursor)]
    if take_reserved(cursor, "else"):
        scripts.append(_some_script(cursor))
    expect_reserved(cursor, "fi")
    return Block("if", tuple(scripts))


def _read_while(cursor: Cursor, word: str) -> Block:
    return Block(word, (_script_before(cursor, "do"), _script_before(cursor, "done")))


def _read_do(cursor: Cursor) -> ShellScript:
    skip_blanks(cursor)
    cursor.take(";")
    expect_reserved(cursor, "do")
    return _script_before(cursor, "done")


def _read_for(cursor: Cursor, word: str) -> Block:
    skip_blanks(cursor)
    if word == "for" and cursor.take("(("):
        head = ShellScript((Pipeline((Calculation(read_arithmetic(cursor)),), ";"),))
        return Block("calculated for", (head, _read_do(cursor)))
    name = plain_text(read_word(cursor))
    skip_newlines(cursor)
    words: list[Word] = []
    if take_reserved(cursor, "in"):
        skip_blanks(cursor)
        while cursor.peek() and cursor.peek() not in ";\n":
            words.append(some_word(cursor))
            skip_blanks(cursor)
    else:
        words.append(Word('"$@"', ()))
    return Block(word, (_read_do(cursor),), tuple(words), name)


def _read_case(cursor: Cursor, _word: str) -> Block:
    skip_blanks(cursor)
    words = [some_word(cursor)]
    scripts: list[ShellScript] = []
    skip_newlines(cursor)
    expect_reserved(cursor, "in")
    skip_newlines(cursor)
    while not take_reserved(cursor, "esac"):
        cursor.take("(")
        words.extend(_read_patterns(cursor))
        scripts.append(_read_list(cursor))
        skip_newlines(cursor)
        if not any(cursor.take(end) for end in (";;&", ";;", ";&")):
            expect_reserved(cursor, "esac")
            break
        skip_newlines(cursor)
    return Block("case", tuple(scripts), tuple(words))


def _read_patterns(cursor: Cursor) -> list[Word]:
    patterns: list[Word] = []
    while True:
        skip_blanks(cursor)
        patterns.append(some_word(cursor))
        skip_blanks(cursor)
        if cursor.take(")"):
            return patterns
        cursor.expect("|")


def _read_function(cursor: Cursor, _word: str) -> Block:
    skip_blanks(cursor)
    name = plain_text(some_word(cursor))
    skip_blanks(cursor)
    if cursor.take("("):
        skip_blanks(cursor)
        cursor.expect(")")
    return _read_function_body(cursor, name)


def _read_function_body(cursor: Cursor, name: str) -> Block:
    skip_newlines(cursor)
    body = _read_compound(cursor)
    if body is None:
        raise ShellSyntaxError(f"the function {name} has no body")
    return Block("function", (ShellScript((Pipeline((body,)),)),), name=name)


def _read_test(cursor: Cursor, _word: str) -> Conditional:
    words: list[Word] = []
    while True:
        skip_newlines(cursor)
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
            return Conditional(tuple(words))
        words.append(word)


_COMPOUND: dict[str, Callable[[Cursor, str], Block | Conditional]] = {
    "{": _read_group,
    "if": _read_if,
    "while": _read_while,
    "until": _read_while,
    "for": _read_for,
    "case": _read_case,
    "function": _read_function,
    "[[": _read_test,
}


def _read_simple(cursor: Cursor, start: int) -> Command:
    assignments: list[Assignment] = []
    words: list[Word] = []
    redirects: list[Redirect] = []
    end = start
    while True:
        skip_blanks(cursor)
        redirect = read_redirect(cursor)
        if redirect is not None:
            redirects.append(redirect)
        elif not words and (assignment := read_assignment(cursor)) is not None:
            assignments.append(assignment)
        elif cursor.peek() == "(" and len(words) == 1 and not assignments and not redirects:
            cursor.pos += 1
            skip_blanks(cursor)
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


def _some_script(cursor: Cursor) -> ShellScript:
    script = _read_list(cursor)
    if not script.pipelines:
        raise ShellSyntaxError("a block is empty")
    return script
