"""What a program that uses Treadle brings along: its functions as tools, and its model."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from treadle.app.config.places import check_workspace
from treadle.app.models.model_choice import OwnModel
from treadle.app.security.trusting import SessionTrust, session_trust, trusted_by_variable
from treadle.engine.ports import Provider, Tool
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ModelSpec
from treadle.protocol.tools import ToolSpec
from treadle.workspace.files.file_access import FileAccess, FilesOver

__all__ = ["Clock", "FileAccess", "OwnModel", "OwnTool", "Provider", "as_model", "as_tools", "only_these", "trust_for"]

Clock: TypeAlias = Callable[[], int]
"""Gives milliseconds since 1970."""

OwnTool: TypeAlias = Tool | Callable[..., Any]
"""A tool, or a function with type hints and a docstring that becomes one."""


def as_tools(given: Sequence[OwnTool]) -> tuple[Tool, ...]:
    """Make tools of what a program gives; raises `ConfigError` for a function of which no tool can be made."""
    return tuple(_as_tool(one) for one in given)


def _as_tool(given: OwnTool) -> Tool:
    from treadle.tools.functions import function_tool

    own: Any = given
    tool: Tool = own if isinstance(getattr(given, "spec", None), ToolSpec) else function_tool(own)
    return tool


def as_model(given: object) -> OwnModel:
    """Take a model of the program's own: an `OwnModel`, or anything with the `stream` and `close` of a `Provider`.

    Raises `ConfigError` for what is neither.
    """
    if isinstance(given, OwnModel):
        return given
    provider: Any = given
    if not callable(getattr(given, "stream", None)) or not callable(getattr(given, "close", None)):
        raise ConfigError(
            "own-model",
            f"A {type(given).__name__} cannot answer the calls of a model.",
            why="It has no `stream` and `close`.",
            fix="Give a name, 'PROVIDER/NAME', or a provider: docs/library.md shows one.",
        )
    return OwnModel(spec=ModelSpec(provider=_provider_name(provider), name="model"), provider=provider)


def _provider_name(provider: Provider) -> str:
    """Models of the provider `scripted` have no window that anybody could miss."""
    from treadle.providers.scripted.provider import ScriptedProvider

    return "scripted" if isinstance(provider, ScriptedProvider) else "own"


def only_these(files: FileAccess) -> FilesOver:
    """Let tools read and save through these alone."""
    return lambda disk, folders: files  # noqa: ARG005 - the port's shape


def trust_for(folder: Path, *, once: bool) -> SessionTrust:
    """Find out how a folder stands; `once` is the program's yes for its session. Raises `ConfigError`."""
    return session_trust(check_workspace(folder), once=once or trusted_by_variable())
