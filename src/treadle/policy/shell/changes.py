"""What a part of a line may change for what comes after it: variables, the directory, and the order of its steps."""

import re
from collections.abc import Iterable, Iterator

from treadle.policy.shell.syntax import (
    Block,
    Command,
    Literal,
    Pipeline,
    Script,
    Simple,
)

CHANGES_DIRECTORY = frozenset({"cd", "pushd", "popd", "chdir"})

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
