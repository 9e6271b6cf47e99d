"""Tools that installed packages offer, found by the entry point group `treadle.tools`."""

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, distributions
from typing import Any

from treadle.engine.ports import Tool
from treadle.protocol.errors import ConfigError
from treadle.protocol.tools import ToolSpec
from treadle.tools.functions import function_tool

GROUP = "treadle.tools"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugins:
    """The tools found, by the order of their entry points' names, and what could not be used and why."""

    tools: tuple[Tool, ...] = ()
    problems: tuple[str, ...] = ()


def installed_tools(directories: Sequence[str]) -> Plugins:
    """Load the tools of installed packages: each entry point is a tool, a function, or a list or tuple of these.

    Only `directories` are looked at, which are those where packages are installed: a package's description in the
    folder that is worked in names nothing to load.
    """
    tools: dict[str, Tool] = {}
    problems: list[str] = []
    for entry in _entry_points(directories):
        try:
            # What a package prints while it is loaded must not get into our own output.
            with contextlib.redirect_stdout(sys.stderr):
                loaded = _as_tools(entry.load())
        except ConfigError as error:
            problems.append(f"{entry.name} ({entry.value}): {error.what} {error.fix}".strip())
            continue
        except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code; one broken package stops no other
            problems.append(f"{entry.name} ({entry.value}) cannot be loaded: {type(error).__name__}: {error}")
            continue
        for tool in loaded:
            if tool.spec.name in tools:
                problems.append(f"{entry.name} ({entry.value}): there is another tool named {tool.spec.name}")
            tools.setdefault(tool.spec.name, tool)
    return Plugins(tools=tuple(tools.values()), problems=tuple(problems))


def _entry_points(directories: Sequence[str]) -> list[EntryPoint]:
    found = [
        entry
        for distribution in distributions(path=list(directories))
        for entry in distribution.entry_points
        if entry.group == GROUP
    ]
    return sorted(found, key=lambda entry: (entry.name, entry.value))


def _as_tools(loaded: Any) -> list[Tool]:
    match loaded:
        case list() | tuple():
            return [tool for each in loaded for tool in _as_tools(each)]
        case _ if isinstance(getattr(loaded, "spec", None), ToolSpec):
            return [loaded]
        case _ if callable(loaded):
            return [function_tool(loaded)]
        case _:
            raise ConfigError(
                "tool-plugin",
                f"It names a {type(loaded).__name__}, which is not a tool.",
                fix="Name a function with type hints, a tool, or a list of them.",
            )
