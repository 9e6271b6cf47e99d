"""What a part of a line may change for what comes after it: variables, the directory, and the order of its steps."""

import re
from collections.abc import Iterable, Iterator
from typing import assert_never

from treadle.policy.shell.syntax import (
    Arithmetic,
    Block,
    Calculation,
    Command,
    Conditional,
    Literal,
    Parameter,
    Pipeline,
    ProcessSubstitution,
    Script,
    Segment,
    Simple,
    Substitution,
    Word,
)

CHANGES_DIRECTORY = frozenset({"cd", "pushd", "popd", "chdir"})

_JUMPS = frozenset({"break", "continue", "return"})
_ASSIGNS = frozenset(
    {"read", "export", "declare", "typeset", "local", "readonly", "unset", "printf", "mapfile", "readarray", "getopts",
     "let", "wait"}
)  # fmt: skip
_IN_A_SHELL_OF_ITS_OWN = frozenset({"subshell", "coproc"})
_NAME = re.compile(r"[A-Za-z_]\w*")


def assigned_names(scripts: Iterable[Script]) -> frozenset[str]:
    """Name every variable that scripts may set, whichever of their steps run."""
    names: set[str] = set()
    for command in _commands(scripts):
        match command:
            case Simple(assignments=assignments, words=words):
                names.update(assignment.name for assignment in assignments)
                if _word(command) == "read":
                    names.add("REPLY")
                if _word(command) in _ASSIGNS:
                    names.update(match.group() for word in words[1:] if (match := _NAME.match(_text(word.segments))))
                if _word(command) in CHANGES_DIRECTORY:
                    names.add("PWD")
            case Block(name=name) if name:
                names.add(name)
            case _:
                pass
    return frozenset(names)


def changes_directory(scripts: Iterable[Script]) -> bool:
    """Whether scripts may change the directory of the shell they run in."""
    return any(isinstance(one, Simple) and _word(one) in CHANGES_DIRECTORY for one in _commands(scripts))


def jumps(scripts: Iterable[Script]) -> bool:
    """Whether scripts may leave out steps of a loop."""
    return any(isinstance(one, Simple) and _word(one) in _JUMPS for one in _commands(scripts))


def runs_read(command: Simple) -> bool:
    """Whether a command is the builtin `read`, plainly spelled: what is set before it holds for it alone."""
    return bool(command.words) and command.words[0].text == "read"


def reads_its_input(block: Block) -> bool:
    """Whether a loop is `while read`: it ends with its input, as nothing gives `read` another one in every round."""
    match block:
        case Block(
            kind="while", scripts=(Script(pipelines=(Pipeline(commands=(Simple() as condition,), negated=False),)), _)
        ):
            return runs_read(condition) and not condition.redirects
        case _:
            return False


def stands_alone(name: str, scripts: Iterable[Script]) -> bool:
    """Whether a variable is only used as a whole word, or where words are only printed: never as a part of a path."""
    return all(
        _stands_alone(name, word, is_printed=is_printed) for word, is_printed in _words(scripts)
    ) and name not in assigned_names(scripts)


def _stands_alone(name: str, word: Word, *, is_printed: bool) -> bool:
    parts = [segment for segment in word.segments if not (isinstance(segment, Literal) and not segment.text)]
    used = [segment for segment in parts if isinstance(segment, Parameter) and segment.name == name]
    return not used or ((is_printed or len(parts) == 1) and all(not segment.operator for segment in used))


def _words(scripts: Iterable[Script]) -> Iterator[tuple[Word, bool]]:
    """Give every word of scripts, inner ones included; whether its command only prints it."""
    for script in scripts:
        for pipeline in script.pipelines:
            for command in pipeline.commands:
                yield from _words_of(command)


def _words_of(command: Command) -> Iterator[tuple[Word, bool]]:
    match command:
        case Simple(words=words, assignments=assignments, redirects=redirects):
            is_printed = bool(words) and words[0].text in ("echo", "printf")
            own = [(word, is_printed) for word in words]
            own += [(value, False) for assignment in assignments for value in assignment.values]
        case Block(words=words, redirects=redirects, scripts=scripts):
            own = [(word, False) for word in words]
            yield from _words(scripts)
        case Conditional(words=words, redirects=redirects):
            own = [(word, False) for word in words]
        case Calculation(expression=expression, redirects=redirects):
            own = [(Word(expression.text, (*expression.inner, Literal(" ", quoted=False))), False)]
        case _:
            assert_never(command)
    own += [(redirect.target, False) for redirect in redirects]
    own += [
        (Word("", (*redirect.here.body, Literal(" ", quoted=False))), False) for redirect in redirects if redirect.here
    ]
    for word, is_printed in own:
        yield word, is_printed
        yield from _words_in(word.segments)


def _words_in(segments: Iterable[Segment]) -> Iterator[tuple[Word, bool]]:
    for segment in segments:
        match segment:
            case Literal():
                continue
            case Substitution(script=script) | ProcessSubstitution(script=script):
                yield from _words((script,))
            case Parameter(operand=inner) | Arithmetic(inner=inner):
                yield Word("", (*inner, Literal(" ", quoted=False))), False
                yield from _words_in(inner)
            case _:
                assert_never(segment)


def read_name(block: Block) -> str | None:
    """Give the variable that a `while read` loop fills with each whole line; None where it does more or else."""
    (pipeline,) = block.scripts[0].pipelines
    (condition,) = pipeline.commands
    if not isinstance(condition, Simple):
        return None
    texts = [word.text for word in condition.words]
    plain = texts[1:-1] in ([], ["-r"]) and len(texts) > 1 and _NAME.fullmatch(texts[-1]) is not None
    return texts[-1] if plain else None


def _commands(scripts: Iterable[Script]) -> Iterator[Command]:
    """Give the commands that run in the same shell, inner ones included."""
    for script in scripts:
        for pipeline in script.pipelines:
            for command in pipeline.commands:
                yield command
                if isinstance(command, Block) and command.kind not in _IN_A_SHELL_OF_ITS_OWN:
                    yield from _commands(command.scripts)


def _word(command: Simple) -> str:
    """Give the program, looking through `command` and `builtin`."""
    texts = [_text(word.segments) for word in command.words]
    while texts[:1] and texts[0] in ("command", "builtin"):
        texts.pop(0)
    return texts[0] if texts else ""


def _text(segments: Iterable[object]) -> str:
    return "".join(segment.text for segment in segments if isinstance(segment, Literal))
