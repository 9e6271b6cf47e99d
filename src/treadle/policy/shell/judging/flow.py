"""What is known behind a command, a branch or a loop: variables and the directory."""

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from treadle.policy.marks import UNKNOWN, is_glob, is_static
from treadle.policy.shell.grammar.expand import Variables, expand_text, expand_word
from treadle.policy.shell.grammar.syntax import Block, Command, Literal, ShellScript, Simple
from treadle.policy.shell.judging.scene import Follow, Scene

CHANGES_DIRECTORY = frozenset({"cd", "pushd", "popd", "chdir"})

_ASSIGNS = frozenset(
    {"read", "export", "declare", "typeset", "local", "readonly", "unset", "printf", "mapfile", "readarray", "getopts",
     "let", "wait"}
)  # fmt: skip
_IN_A_SHELL_OF_ITS_OWN = frozenset({"subshell", "coproc"})
_NAME = re.compile(r"[A-Za-z_]\w*")


def assigned_names(scripts: Iterable[ShellScript]) -> frozenset[str]:
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


def changes_directory(scripts: Iterable[ShellScript]) -> bool:
    """Whether scripts may change the directory of the shell they run in."""
    return any(isinstance(one, Simple) and _word(one) in CHANGES_DIRECTORY for one in _commands(scripts))


def runs_read(command: Simple) -> bool:
    """Whether a command is the builtin `read`, plainly spelled: what is set before it holds for it alone."""
    return bool(command.words) and command.words[0].text == "read"


def _commands(scripts: Iterable[ShellScript]) -> Iterator[Command]:
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


MAX_DIRECTORIES = 16


def state_after(command: Simple, words: tuple[str, ...], scene: Scene) -> Scene:
    """Give the scene behind a simple command, `words` being what its words expand to."""
    variables = scene.variables
    if not command.words or (words and words[0] in ("export", "declare", "typeset", "readonly", "local")):
        for assignment in command.assignments:
            value = UNKNOWN
            if len(assignment.values) == 1 and not assignment.is_array and not assignment.subscript:
                value = expand_text(assignment.values[0].segments, variables, scene.cwd, tilde=True)
            if assignment.appends:
                value = variables.get(assignment.name) + value
            variables = variables.with_value(assignment.name, value)
        for word in words[1:]:
            name, is_set, value = word.partition("=")
            value = UNKNOWN if "-n" in words or name.endswith("+") else value
            name = name.removesuffix("+")
            variables = variables.with_value(name, value) if is_set and name.isidentifier() else variables
    elif words and words[0] in ("read", "unset", "mapfile", "readarray", "getopts"):
        for word in (*words[1:], "REPLY"):
            variables = variables.with_value(word, UNKNOWN)
    if words and words[0] in CHANGES_DIRECTORY:
        cwds = _directories(words, scene)
        known = cwds[0] if len(cwds) == 1 else UNKNOWN
        return replace(scene, cwds=cwds, variables=variables.with_value("PWD", known))
    return scene if variables is scene.variables else replace(scene, variables=variables)


def agreed(*states: Variables) -> Variables:
    """Keep what is the same in all states, one of which holds; what differs is not known any more."""
    first, *others = states
    if not others:
        return first
    same = {
        name: value
        for name, value in first.values.items()
        if all(name in other.values and other.values[name] == value for other in others)
    }
    return Variables(first.home, same)


def forget(variables: Variables, names: Iterable[str]) -> Variables:
    """Forget the values of variables; that they belong to the line stays known."""
    unsure = frozenset(names)
    return Variables(
        variables.home, {name: UNKNOWN if name in unsure else value for name, value in variables.values.items()}
    )


def either(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Give the directories of both; too many to follow count as unknown."""
    together = tuple(dict.fromkeys((*first, *second)))
    return together if len(together) <= MAX_DIRECTORIES else (UNKNOWN,)


def _directories(words: tuple[str, ...], scene: Scene) -> tuple[str, ...]:
    operands = [word for word in words[1:] if not (word.startswith("-") and len(word) > 1)]
    if words[0] == "popd" or operands[:1] == ["-"] or len(operands) > 1:
        return (UNKNOWN,)
    target = operands[0] if operands else scene.variables.get("HOME")
    if not is_static(target) or UNKNOWN in scene.cwds:
        return (UNKNOWN,) if not target.startswith("/") or not is_static(target) else (target,)
    # Like the shell, go by names: `cd link; cd ..` comes back. Only -P goes by where links lead.
    places = [posixpath.normpath(_join(cwd, target)) for cwd in scene.cwds]
    if "-P" in words:
        places = [scene.context.files.resolve(place) for place in places]
    return tuple(dict.fromkeys(places))


def _join(cwd: str, target: str) -> str:
    return target if target.startswith("/") else f"{cwd.rstrip('/')}/{target}"


MAX_LOOP_VALUES = 16

_IN_ORDER = frozenset({"subshell", "group"})
_LOOPS = frozenset({"for", "select", "while", "until", "calculated for"})


def follow_block(block: Block, scene: Scene, follow: Follow) -> Scene:
    """Judge the scripts of a block as often as they may run; gives the scene as it is afterwards.

    What a branch or a round of a loop sets may be set or not, so afterwards it is not known any more.
    """
    if block.kind in _IN_ORDER:
        return _scripts(block, scene, follow)
    names = assigned_names([*block.scripts])
    if block.kind not in _LOOPS:
        after = _scripts(block, scene, follow)
        return replace(after, variables=forget(after.variables, names))
    if changes_directory(block.scripts):
        scene = replace(scene, cwds=(UNKNOWN,))
    after = scene
    values = _values(block, scene)
    # Two rounds show what a later one reads of an earlier one; a third one what holds whichever of their steps ran.
    for unsure in (False, False, True) if names else (False,):
        for value in values:
            variables = forget(after.variables, names) if unsure else after.variables
            variables = variables.with_value(block.name, value) if block.name else variables
            after = _scripts(block, replace(after, variables=variables), follow)
    return replace(after, variables=forget(after.variables, (*names, block.name)))


def _scripts(block: Block, scene: Scene, follow: Follow) -> Scene:
    """Judge the scripts of a block; a branch may run or not, so both directories stay possible."""
    for script in block.scripts:
        after = follow(script, scene)
        scene = after if block.kind in _IN_ORDER else replace(after, cwds=either(scene.cwds, after.cwds))
    return scene


def _values(block: Block, scene: Scene) -> list[str]:
    """Give what the variable of a loop is set to, as far as it is known; one round for a loop without any."""
    values = [value for word in block.words for value in expand_word(word, scene.variables, scene.cwd)]
    if len(values) > MAX_LOOP_VALUES or not values:
        values = [*values[:MAX_LOOP_VALUES], UNKNOWN]
    # A name with blanks in it falls apart where it is not quoted.
    return [value if not is_glob(value) or scene.fits_plain_names(value) else UNKNOWN for value in values]
