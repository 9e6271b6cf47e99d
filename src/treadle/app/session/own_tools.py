"""Tools besides the built-in ones: of installed packages, and what a program that uses Treadle gives."""

import os
import site
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from treadle.engine.ports import Tool
from treadle.protocol.errors import ConfigError

_GROUP = b"[treadle.tools]"


class OwnTools(Struct, frozen=True, kw_only=True):
    """The tools found, and what could not be used and why."""

    tools: tuple[Tool, ...] = ()
    problems: tuple[str, ...] = ()


def own_tools(taken: Collection[str], given: Sequence[Tool] = ()) -> OwnTools:
    """Give the tools of a program, and after them those of installed packages; `taken` are names that are in use.

    Where no package offers one, this looks at the packages' descriptions and loads nothing. Raises `ConfigError` for a
    tool of the program that has a name in use; a package's is left out and told.
    """
    names = set(taken)
    for tool in given:
        if tool.spec.name in names:
            raise ConfigError(
                "tool-name",
                f"There is already a tool named {tool.spec.name}.",
                fix="Give yours another name: function_tool(function, name=...).",
            )
        names.add(tool.spec.name)
    directories = installed_directories()
    if not any(map(_offers_tools, directories)):
        return OwnTools(tools=tuple(given))
    from treadle.tools.plugins import installed_tools

    found = installed_tools(directories)
    free = tuple(tool for tool in found.tools if tool.spec.name not in names)
    clashes = (
        f"The tool {tool.spec.name} of an installed package is left out: the name is already used."
        for tool in found.tools
        if tool.spec.name in names
    )
    broken = (f"A tool of an installed package is left out: {problem}" for problem in found.problems)
    return OwnTools(tools=(*given, *free), problems=(*broken, *clashes))


def installed_directories() -> tuple[str, ...]:
    """Give the folders where packages are installed; the one that is worked in is none by being worked in."""
    user = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return tuple(dict.fromkeys((*site.getsitepackages(), *user)))


def _offers_tools(directory: str) -> bool:
    """Whether a package in this folder may offer a tool: far quicker than to load what reads descriptions."""
    return any(_GROUP in _read(description) for description in _descriptions(directory))


def _descriptions(directory: str) -> Iterator[str]:
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.name.endswith((".dist-info", ".egg-info")):
                    yield f"{entry.path}/entry_points.txt"
    except OSError:
        return


def _read(file: str) -> bytes:
    try:
        with open(file, "rb", buffering=0) as stream:  # noqa: PTH123 - there are hundreds, and this is quick
            return stream.read()
    except OSError:
        return b""
