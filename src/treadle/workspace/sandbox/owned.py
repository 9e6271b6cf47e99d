"""Which tools of a line own installed programs: only these may change virtual environments and `node_modules/.bin`."""

import posixpath
import re
from collections.abc import Sequence
from enum import StrEnum


class Installer(StrEnum):
    """What installs programs into a workspace."""

    PYTHON = "python"
    NODE = "node"


_WHOLLY_PYTHON = frozenset(("virtualenv", "tox", "nox", "conda", "mamba", "micromamba"))
_SUBCOMMANDS = {
    "uv": ("add", "remove", "sync", "pip", "venv", "lock"),
    "poetry": ("add", "remove", "install", "update", "lock", "sync"),
    "pdm": ("add", "remove", "install", "update", "sync", "lock", "venv"),
    "pipenv": ("install", "uninstall", "update", "sync", "clean", "lock"),
    "hatch": ("env",),
    "pixi": ("add", "remove", "install", "update"),
    "rye": ("add", "remove", "sync", "lock"),
}
_INSTALLS = frozenset(
    (
        *("install", "i", "ci", "add", "remove", "rm", "uninstall", "un", "update", "up", "upgrade"),
        *("dedupe", "prune", "rebuild", "link", "import"),
    )
)
_NODE = frozenset(("npm", "pnpm", "yarn", "bun"))
_MODULES = frozenset(("pip", "venv", "virtualenv", "ensurepip", "tox", "nox"))
_PIP = re.compile(r"pip3?(?:\.\d+)?")
_INTERPRETER = re.compile(r"python[23]?(?:\.\d+)?")
_BESIDE = frozenset(("cd", "echo", "printf", "true", "test", "[", ":", "pwd"))


def tools_of(commands: Sequence[Sequence[str]]) -> frozenset[Installer]:
    """Name what the simple commands of a line own, from their literal words; nothing where others stand beside them.

    A program that is named by a path owns nothing, unless it is an interpreter or installer of an environment.
    """
    found: set[Installer] = set()
    for words in commands:
        if not words or words[0] in _BESIDE:
            continue
        owner = _owner(words)
        if owner is None:
            return frozenset()
        found.add(owner)
    return frozenset(found)


def _owner(words: Sequence[str]) -> Installer | None:
    name, subcommand = posixpath.basename(words[0]), _subcommand(words)
    if _PIP.fullmatch(name) or name in _WHOLLY_PYTHON:
        return Installer.PYTHON
    if _INTERPRETER.fullmatch(name):
        return Installer.PYTHON if tuple(words[1:2]) == ("-m",) and words[2:3] and words[2] in _MODULES else None
    if "/" in words[0]:
        return None
    if name in _SUBCOMMANDS:
        return Installer.PYTHON if subcommand in _SUBCOMMANDS[name] else None
    bare_yarn = name == "yarn" and not subcommand
    return Installer.NODE if name in _NODE and (bare_yarn or subcommand in _INSTALLS) else None


def _subcommand(words: Sequence[str]) -> str:
    return next((word for word in words[1:] if not word.startswith("-")), "")
