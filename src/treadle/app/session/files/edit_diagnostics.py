"""Diagnostics as the settings say: which programs look at each edit, and the edit tools that tell what they find."""

import asyncio
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from treadle.app.config.places import data_directory
from treadle.app.config.sections import DiagnosticSettings
from treadle.app.security.command_confinement import confine_server
from treadle.app.security.command_folders import CommandFolders
from treadle.engine.ports import Tool
from treadle.protocol.errors import ConfigError
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Confinement, Rights, ToolKind
from treadle.tools.diagnosed import with_diagnostics
from treadle.workspace.commands.confinement import OPEN, Setup
from treadle.workspace.commands.process import Bounds, CommandProcess
from treadle.workspace.commands.variables import child_variables
from treadle.workspace.diagnostics.checks import Diagnostics, DiagnosticSource
from treadle.workspace.diagnostics.language_server import LanguageServer, ServerCommand, ServerConfinement
from treadle.workspace.diagnostics.linter import FILES_PLACEHOLDER, Linter
from treadle.workspace.diagnostics.problems import PATTERN
from treadle.workspace.sandbox import probe
from treadle.workspace.workspace import Workspace

_LOOKS = Rights(confinement=Confinement.LOOK)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckerFolders:
    """Where checkers run: in the sandbox of the mode, like commands. `private` is the session's own folder."""

    workspace: Workspace
    private: Path
    mode: Callable[[], Mode]


def open_diagnostics(settings: Mapping[str, DiagnosticSettings], around: CheckerFolders) -> Diagnostics:
    """Set every source up; none starts before the first edit. Raises `ConfigError` for one that cannot be."""
    sources = [_source(name, wanted, around) for name, wanted in settings.items()]
    return Diagnostics(sources, elsewhere=around.workspace.roots)


def diagnosed(tools: Mapping[str, Tool], diagnostics: Diagnostics, workspace: Workspace) -> dict[str, Tool]:
    """Let the results of the tools that change files tell what the change brought."""
    return {
        name: with_diagnostics(tool, diagnostics, workspace.paths.display)
        if tool.spec.traits.kind is ToolKind.EDIT
        else tool
        for name, tool in tools.items()
    }


def require_diagnostics(settings: Mapping[str, DiagnosticSettings]) -> None:
    """Raise `ConfigError` for a source that cannot be set up."""
    for name, wanted in settings.items():
        _require(name, wanted)


def _require(name: str, wanted: DiagnosticSettings) -> None:
    if bool(wanted.command) == bool(wanted.server):
        raise _wrong(
            name, "It needs either `command`, a linter's shell line, or `server`, a language server's program."
        )
    if not wanted.files:
        raise _wrong(name, 'It needs `files`, the names of the files that it checks, such as ["*.py"].')
    unused = [key for key in ("language", "options", "settings") if getattr(wanted, key)]
    if wanted.command and unused:
        raise _wrong(name, f"A linter has no {' or '.join(unused)}.")
    if wanted.server and wanted.pattern:
        raise _wrong(name, "A language server has no `pattern`.")
    if any(FILES_PLACEHOLDER in word for word in wanted.server):
        raise _wrong(name, f"{FILES_PLACEHOLDER} is for linters. A language server is notified of the files.")


def _source(name: str, wanted: DiagnosticSettings, around: CheckerFolders) -> DiagnosticSource:
    _require(name, wanted)
    return _server(name, wanted, around) if wanted.server else _linter(name, wanted, around)


def _linter(name: str, wanted: DiagnosticSettings, around: CheckerFolders) -> Linter:
    workspace = around.workspace

    def confine(line: str) -> Setup:
        rights = OPEN if around.mode() is Mode.FULL or probe().backend is None else _LOOKS
        return workspace.confine(line, rights, background=True)

    async def start(line: str, bounds: Bounds) -> CommandProcess:
        return workspace.launcher.start(line, bounds, await asyncio.to_thread(confine, line))

    return Linter(
        name=name,
        line=wanted.command,
        patterns=wanted.files,
        root=workspace.root,
        start=start,
        seconds=wanted.seconds,
        pattern=re.compile(wanted.pattern) if wanted.pattern else PATTERN,
    )


def _server(name: str, wanted: DiagnosticSettings, around: CheckerFolders) -> LanguageServer:
    command = ServerCommand(
        name=name,
        argv=wanted.server,
        patterns=wanted.files,
        root=around.workspace.root,
        variables=child_variables(os.environ),
        seconds=wanted.seconds,
        language=wanted.language,
        options=wanted.options,
        settings=wanted.settings,
    )
    place = CommandFolders(
        root=around.workspace.root, roots=around.workspace.roots, data=data_directory(), private=around.private
    )
    return LanguageServer(
        command, ServerConfinement(state=around.mode, wrap=lambda: confine_server(around.mode(), place))
    )


def _wrong(name: str, why: str) -> ConfigError:
    return ConfigError(
        "config-diagnostics",
        f"The setting diagnostics.{name} cannot be used.",
        why=why,
        fix="docs/diagnostics.md has examples to copy.",
    )
