"""Parses a shell line into its tree; whatever is not understood is a `ShellSyntaxError`."""

import re

from msgspec.structs import replace

from treadle.policy.shell.shell_words import WORD_END, here_body, read_arithmetic, read_word
from treadle.policy.shell.syntax import (
    Assignment,
    Block,
    BrokenShellError,
    Command,
    Cursor,
    Literal,
    Pipeline,
    Redirect,
    ShellScript,
    ShellSyntaxError,
    Simple,
    Word,
)

_END = r"(?=[ \t\n;&|()<>]|\Z)"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BLANKS = re.compile(r"(?:[ \t]|\\\n|#[^\n]*)*")
_PREFIX = re.compile(rf"(?:!|time(?:[ \t]+-p)?){_END}")
_NO_COMMAND = re.compile(r"[\n;&|)]|\Z")
_PIPE = re.compile(r"\|(?!\|)&?")
_SEPARATOR = re.compile(r"&&|\|\||&|;(?![;&])|(?=(\n))")
_LIST_END = re.compile(rf"\Z|\)|;[;&]|(?:then|else|elif|fi|do|done|esac|\}}){_END}")
_RESERVED = re.compile(rf"\)|(?:[a-z]+|\}}){_END}")
_OPENING = re.compile(rf"\(\(?|(?:\{{|\[\[|if|while|until|for|case|function|select|coproc){_END}")
_FUNCTION = re.compile(r"([\w.:+-]++)[ \t]*\([ \t]*\)")
_NAMED_FUNCTION = re.compile(r"[ \t]+([\w.:+-]++)(?:[ \t]*\([ \t]*\))?(?=[ \t\n(])")
_ASSIGNED = re.compile(rf"{_NAME.pattern}(?=(?:\[[^\]]*\])?\+?=)")
_SETS = re.compile(r"\]?(\+?)=")
_SUBSCRIPT_END = re.compile(r"(?=\])")
_REDIRECT = re.compile(rf"(?>(\{{{_NAME.pattern}\}})?[0-9]*(<<<|<<-?|<>|<&|>>|>\||>&|<|>)|(&>>?))(?!\()")
_TEST_OPERATOR = re.compile(r"&&|\|\||[()]|[<>](?!\()")
_PATTERN_OPERATORS = frozenset({"=~", "==", "!=", "="})
_AFTER_PATTERN = re.compile(r"[ \t]*([|)])")
_DECLARING = frozenset({"declare", "typeset", "local", "readonly", "export"})
_ARRAY = re.compile(rf"{_NAME.pattern}\+?=\(")
_ARRAY_OPTION = re.compile(r"-[aAgrx]+")
_NOTHING = Word(":", (Literal(":", quoted=False),))
_FALLS_THROUGH = re.compile(r";;?&")
_PLAIN_COMMAND = re.compile(
    r"(?!(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|function|select|coproc|time)\b)"
    r"[\w./,:@%+-]{1,400}(?: [\w./,:=@%+-]{1,400}){0,40}"
)
_PATTERN_END = re.compile(r"(?=[ \t\n;&]|\Z)")


def parse(text: str) -> ShellScript:
    """Parse a whole line. Raises `ShellSyntaxError` and `BudgetError`.

    Most lines are one command of plain words, in which nothing means anything to the shell: those are split.
    """
    if _PLAIN_COMMAND.fullmatch(text):
        words = tuple(Word(word, (Literal(word, quoted=False),)) for word in text.split(" "))
        return ShellScript((Pipeline((Simple(text, (), words, ()),)),))
    return script_until(Cursor(text, script_until), "")


def script_until(cursor: Cursor, close: str) -> ShellScript:
    """Parse up to `close`, or to the end of the text when it is empty, and step over it."""
    outer, cursor.bodies = cursor.bodies, {}
    script = _read_list(cursor)
    if not cursor.take(close) or (not close and cursor.peek()):
        # What some builtins and options take in brackets, such as `declare -i x=(…)`, is not understood.
        raise cursor.unexpected(ShellSyntaxError if cursor.peek() == "(" else BrokenShellError)
    if cursor.bodies:
        raise ShellSyntaxError("a here-document does not begin behind the end of its line")
    cursor.bodies = outer
    return script


def _skip_newlines(cursor: Cursor) -> None:
    """Step over blanks, comments, the ends of lines, and the here-documents behind them."""
    cursor.find(_BLANKS)
    while cursor.peek() == "\n":
        cursor.pos = cursor.bodies.pop(cursor.pos, cursor.pos + 1)
        cursor.find(_BLANKS)


def _take(cursor: Cursor, reserved: str) -> bool:
    """Step over a reserved word or a closing bracket if it stands here."""
    found = _RESERVED.match(cursor.text, cursor.pos)
    return found is not None and found[0] == reserved and cursor.take(reserved)


def _expect(cursor: Cursor, reserved: str) -> None:
    """Step over a reserved word, which may stand in a later line; raises `ShellSyntaxError` for anything else."""
    _skip_newlines(cursor)
    if not _take(cursor, reserved):
        raise BrokenShellError(f"{reserved!r} is missing at character {cursor.pos}")


def _some_word(cursor: Cursor, end: re.Pattern[str] = WORD_END) -> Word:
    """Read the word behind blanks; raises `ShellSyntaxError` where there is none."""
    cursor.find(_BLANKS)
    word = read_word(cursor, end)
    if not word.text:
        raise BrokenShellError(f"a word is missing at character {cursor.pos}")
    return word


def _read_list(cursor: Cursor) -> ShellScript:
    """Read pipelines until something that is no command: a closing word or character, or the end."""
    pipelines: list[Pipeline] = []
    _skip_newlines(cursor)
    while not _LIST_END.match(cursor.text, cursor.pos):
        pipelines.append(_read_pipeline(cursor))
        if not pipelines[-1].after:
            break
        _skip_newlines(cursor)
    if pipelines and pipelines[-1].after in ("&&", "||"):
        raise BrokenShellError(f"nothing follows {pipelines[-1].after!r}")
    return ShellScript(tuple(pipelines))


def _some_script(cursor: Cursor) -> ShellScript:
    script = _read_list(cursor)
    if not script.pipelines:
        raise BrokenShellError("a block is empty")
    return script


def _script_before(cursor: Cursor, reserved: str) -> ShellScript:
    """Read a script and the reserved word or bracket that ends it."""
    script = _some_script(cursor)
    _expect(cursor, reserved)
    return script


def _read_pipeline(cursor: Cursor) -> Pipeline:
    """Read commands and what separates them from the next; `|&` is read as `|`, since errors tell nothing."""
    negated = False
    while prefix := cursor.find(_PREFIX):
        negated ^= prefix[0] == "!"
        cursor.find(_BLANKS)
        if _NO_COMMAND.match(cursor.text, cursor.pos):
            raise ShellSyntaxError(f"nothing follows {prefix[0]!r}")
    commands = [_read_command(cursor)]
    while cursor.find(_PIPE):
        _skip_newlines(cursor)
        commands.append(_read_command(cursor))
    separator = cursor.find(_SEPARATOR)
    after = separator[1] or separator[0] if separator else ""
    return Pipeline(tuple(commands), after, negated)


def _read_command(cursor: Cursor) -> Command:
    """Read a command and the blanks behind it."""
    cursor.count(3)
    cursor.enter()
    command = _read_block(cursor) or _read_simple(cursor)
    cursor.leave()
    return command


def _read_block(cursor: Cursor) -> Command | None:
    """Read a block with its redirections; None, with the cursor left alone, where there is none.

    A calculation is a command that does nothing with what it calculates.
    """
    opening = cursor.find(_OPENING)
    match opening and opening[0]:
        case "(" | "{" as bracket:
            kind, end = ("subshell", ")") if bracket == "(" else ("group", "}")
            block = Block(kind, (_script_before(cursor, end),))
        case "((":
            calculation = _read_calculation(cursor)
            return Simple(calculation.text, (), (_NOTHING, calculation), _read_redirects(cursor))
        case "[[":
            block = Block("[[", words=_read_test(cursor))
        case "if":
            block = Block("if", _read_branches(cursor))
        case "while" | "until" as kind:
            block = Block(kind, (_script_before(cursor, "do"), _script_before(cursor, "done")))
        case "for":
            block = _read_for(cursor)
        case "case":
            block = _read_case(cursor)
        case "function":
            return _read_function(cursor, cursor.read(_NAMED_FUNCTION)[1])
        case None:
            head = cursor.find(_FUNCTION)
            return _read_function(cursor, head[1]) if head else None
        case word:
            raise ShellSyntaxError(f"{word} is not followed")
    return replace(block, redirects=_read_redirects(cursor))


def _read_function(cursor: Cursor, name: str) -> Block:
    _skip_newlines(cursor)
    body = _read_command(cursor)
    if not isinstance(body, Block):
        raise BrokenShellError(f"the function {name} has no body")
    return Block("function", (ShellScript((Pipeline((body,)),)),), name=name)


def _read_calculation(cursor: Cursor) -> Word:
    expression = read_arithmetic(cursor)
    return Word(f"(({expression.text}))", (expression,))


def _read_branches(cursor: Cursor) -> tuple[ShellScript, ...]:
    scripts: list[ShellScript] = []
    while not scripts or _take(cursor, "elif"):
        scripts += [_script_before(cursor, "then"), _some_script(cursor)]
    if _take(cursor, "else"):
        scripts.append(_some_script(cursor))
    _expect(cursor, "fi")
    return tuple(scripts)


def _read_for(cursor: Cursor) -> Block:
    cursor.find(_BLANKS)
    words: list[Word] = []
    if cursor.take("(("):
        name = ""
        words.append(_read_calculation(cursor))
        cursor.find(_BLANKS)
    else:
        name = cursor.read(_NAME)[0]
        _expect(cursor, "in")
        cursor.find(_BLANKS)
        while (word := read_word(cursor)).text:
            words.append(word)
            cursor.find(_BLANKS)
    cursor.take(";")
    _expect(cursor, "do")
    return Block("for" if name else "calculated for", (_script_before(cursor, "done"),), tuple(words), name)


def _read_case(cursor: Cursor) -> Block:
    words = [_some_word(cursor)]
    scripts: list[ShellScript] = []
    _expect(cursor, "in")
    _skip_newlines(cursor)
    while not _take(cursor, "esac"):
        cursor.take("(")
        words.append(_some_word(cursor))
        while cursor.read(_AFTER_PATTERN)[1] == "|":
            words.append(_some_word(cursor))
        scripts.append(_read_list(cursor))
        if cursor.find(_FALLS_THROUGH):
            raise ShellSyntaxError("a case that continues into the next is not followed")
        if not cursor.take(";;"):
            _expect(cursor, "esac")
            break
        _skip_newlines(cursor)
    return Block("case", tuple(scripts), tuple(words))


def _read_test(cursor: Cursor) -> tuple[Word, ...]:
    """Read the words of `[[ … ]]`; behind some operators brackets belong to a pattern."""
    words: list[Word] = []
    while True:
        _skip_newlines(cursor)
        is_pattern = bool(words) and words[-1].text in _PATTERN_OPERATORS
        operator = None if is_pattern else cursor.find(_TEST_OPERATOR)
        if operator:
            words.append(Word(operator[0], (Literal(operator[0], quoted=False),)))
            continue
        words.append(_some_word(cursor, _PATTERN_END if is_pattern else WORD_END))
        if words[-1].text == "]]":
            return tuple(words[:-1])


def _read_redirects(cursor: Cursor) -> tuple[Redirect, ...]:
    redirects: list[Redirect] = []
    while redirect := _read_redirect(cursor):
        redirects.append(redirect)
    return tuple(redirects)


def _read_redirect(cursor: Cursor) -> Redirect | None:
    """Read the redirection behind blanks; None where there is none."""
    cursor.find(_BLANKS)
    found = cursor.find(_REDIRECT)
    if found is None:
        return None
    if found[1]:
        raise ShellSyntaxError("a redirection that sets a variable is not followed")
    operator, target = found[2] or found[3], _some_word(cursor)
    if operator not in ("<<", "<<-"):
        return Redirect(operator, target)
    return Redirect("<<", _read_here_document(cursor, target, strips_tabs=operator == "<<-"))


def _read_here_document(cursor: Cursor, word: Word, *, strips_tabs: bool) -> Word:
    """Read the body, which stands behind this line and the bodies before, up to the delimiter that the word holds."""
    delimiter = "".join(segment.text for segment in word.segments if isinstance(segment, Literal))
    if not delimiter or any(not isinstance(segment, Literal) for segment in word.segments):
        raise ShellSyntaxError("the delimiter of a here-document is not plain")
    newline = cursor.text.find("\n", cursor.pos)
    start = cursor.bodies.get(newline, newline + 1)
    tabs = r"\t*" if strips_tabs else ""
    end = re.compile(f"^{tabs}{re.escape(delimiter)}$", re.MULTILINE).search(cursor.text, start)
    if newline < 0 or end is None:
        raise ShellSyntaxError(f"the here-document {delimiter!r} is not closed")
    cursor.bodies[newline] = min(end.end() + 1, len(cursor.text))
    body = re.sub(f"^{tabs}", "", cursor.text[start : end.start()], flags=re.MULTILINE)
    is_quoted = any(char in word.text for char in "'\"\\")
    if is_quoted:
        return Word(word.text, (Literal(body, quoted=True),))
    try:
        return Word(word.text, here_body(cursor, body))
    except BrokenShellError as error:
        raise ShellSyntaxError(str(error)) from error


def _read_assignment(cursor: Cursor) -> Assignment | None:
    name = cursor.find(_ASSIGNED)
    if name is None:
        return None
    is_array = cursor.take("[")
    # A subscript is evaluated as arithmetic: it is read as a word so that what it runs is seen.
    values = [read_word(cursor, _SUBSCRIPT_END)] if is_array else []
    appends = cursor.read(_SETS)[1] != ""
    if not cursor.take("("):
        return Assignment(name[0], (*values, read_word(cursor)), is_array, appends)
    _skip_newlines(cursor)
    while not cursor.take(")"):
        values.append(_some_word(cursor))
        _skip_newlines(cursor)
    return Assignment(name[0], tuple(values), is_array=True, appends=appends)


def _only_declares(word: Word, *, declares: bool | None) -> bool:
    """Whether a command sets names alone with this word, too: `declares` says it of those before, None of the first."""
    if declares is None:
        return word.text in _DECLARING
    return declares and (_ARRAY_OPTION.fullmatch(word.text) or _NAME.fullmatch(word.text)) is not None


def _may_assign(cursor: Cursor, *, declares: bool | None) -> bool:
    """Whether an assignment may be next: before the command, or as `name=(…)` behind a builtin that only sets names."""
    return declares is None or (declares and _ARRAY.match(cursor.text, cursor.pos) is not None)


def _read_simple(cursor: Cursor) -> Simple:
    start = end = cursor.pos
    assignments: list[Assignment] = []
    words: list[Word] = []
    redirects: list[Redirect] = []
    declares: bool | None = None
    while True:
        if redirect := _read_redirect(cursor):
            redirects.append(redirect)
        elif _may_assign(cursor, declares=declares) and (assignment := _read_assignment(cursor)):
            assignments.append(assignment)
            if words:  # the builtin has the name among its words, as in `declare -a x; x=(…)`
                words.append(Word(assignment.name, (Literal(assignment.name, quoted=False),)))
        elif (word := read_word(cursor)).text:
            words.append(word)
            declares = _only_declares(word, declares=declares)
        else:
            break
        end = cursor.pos
        cursor.find(_BLANKS)
    if start == end:
        raise BrokenShellError(f"a command is missing at character {cursor.pos}")
    return Simple(cursor.text[start:end], tuple(assignments), tuple(words), tuple(redirects))
