"""What may be the case behind a command: each scene is a directory and the variables, and is judged for itself."""

import posixpath
from collections.abc import Iterable

from msgspec.structs import replace

from treadle.policy.marks import UNKNOWN, is_static
from treadle.policy.shell.grammar.expand import Variables, expand_text
from treadle.policy.shell.grammar.syntax import Simple
from treadle.policy.shell.judging.scene import Scene, Scenes

MAX_SCENES = 16

_CHANGES_DIRECTORY = frozenset({"cd", "pushd", "popd", "chdir"})
_DECLARES = frozenset({"export", "declare", "typeset", "readonly", "local"})
_SETS = frozenset({"read", "unset", "mapfile", "readarray", "getopts", "let", "wait"})


def together(*groups: Iterable[Scene]) -> Scenes:
    """Give each scene once; too many to follow become one, of which nothing is known that differs."""
    listed = [scene for group in groups for scene in group]
    if all(scene is listed[0] for scene in listed):
        return tuple(listed[:1])
    scenes = {_key(scene): scene for scene in listed}
    return tuple(scenes.values()) if len(scenes) <= MAX_SCENES else (widened(tuple(scenes.values())),)


def _key(scene: Scene) -> tuple[str, frozenset[tuple[str, str]]]:
    return scene.cwd, frozenset(scene.variables.values.items())


def widened(scenes: Scenes) -> Scene:
    """Give a scene that may be any of these, of which nothing is known that differs."""
    first, *others = scenes
    values = dict(first.variables.values)
    for other in others:
        known = other.variables.values
        values = {name: one if known[name] == one else UNKNOWN for name, one in values.items() if name in known}
    cwd = first.cwd if all(one.cwd == first.cwd for one in others) else UNKNOWN
    return replace(first, cwd=cwd, variables=Variables(first.variables.home, values))


def forgotten(scene: Scene) -> Scene:
    """Give a scene of which nothing is known but which variables are the line's own."""
    values = dict.fromkeys(scene.variables.values, UNKNOWN)
    return replace(scene, cwd=UNKNOWN, variables=Variables(scene.variables.home, values))


def with_values(scenes: Scenes, name: str, value: str) -> Scenes:
    """Set a variable in each scene, unless it has no name."""
    if not name:
        return scenes
    return tuple(replace(scene, variables=scene.variables.with_value(name, value)) for scene in scenes)


def behind(command: Simple, words: tuple[str, ...], scene: Scene) -> tuple[Scenes, Scenes]:
    """Give the scenes behind a simple command, `words` being what its words expand to: where it worked, and failed."""
    while words and (words[0] in ("command", "builtin") or words[0].startswith("-")):
        words = words[1:]
    name = words[0] if words else ""
    variables = scene.variables
    if not command.words or name in _DECLARES:
        variables = _assigned(command, scene)
    if name in _DECLARES:
        for word in words[1:]:
            variable, is_set, value = word.partition("=")
            if is_set and variable.removesuffix("+").isidentifier():
                unknown = "-n" in words or variable.endswith("+")
                variables = variables.with_value(variable.removesuffix("+"), UNKNOWN if unknown else value)
    elif name in _SETS or (name == "printf" and "-v" in words):
        for word in (*words[1:], "REPLY"):
            variables = variables.with_value(word.partition("=")[0], UNKNOWN)
    after = scene if variables is scene.variables else replace(scene, variables=variables)
    if name not in _CHANGES_DIRECTORY:
        return (after,), (after,)
    cwd = _directory(words, scene)
    return (replace(after, cwd=cwd, variables=variables.with_value("PWD", cwd)),), (after,)


def _assigned(command: Simple, scene: Scene) -> Variables:
    variables = scene.variables
    for assignment in command.assignments:
        value = UNKNOWN
        if len(assignment.values) == 1 and not assignment.is_array and not assignment.subscript:
            value = expand_text(assignment.values[0].segments, variables, scene.cwd, tilde=True)
        if assignment.appends:
            value = variables.get(assignment.name) + value
        variables = variables.with_value(assignment.name, value)
    return variables


def _directory(words: tuple[str, ...], scene: Scene) -> str:
    operands = [word for word in words[1:] if not (word.startswith("-") and len(word) > 1)]
    target = operands[0] if operands else scene.variables.get("HOME")
    unknown = words[0] == "popd" or target == "-" or len(operands) > 1 or not is_static(target)
    if unknown or (scene.cwd == UNKNOWN and not target.startswith("/")):
        return UNKNOWN
    # Like the shell, go by names: `cd link; cd ..` comes back. Only -P goes by where links lead.
    place = posixpath.normpath(posixpath.join(scene.cwd, target))
    return scene.context.files.resolve(place) if "-P" in words else place
