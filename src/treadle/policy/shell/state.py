"""What is known behind a command, a branch or a loop: the values of variables and the directory."""

import posixpath
from collections.abc import Iterable
from dataclasses import replace

from treadle.policy.marks import UNKNOWN, is_static
from treadle.policy.shell.changes import CHANGES_DIRECTORY
from treadle.policy.shell.expand import Variables, expand_text
from treadle.policy.shell.scene import Scene
from treadle.policy.shell.syntax import Simple

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
