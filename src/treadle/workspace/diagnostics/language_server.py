"""A language server: told of files as they are, asked or listened to for their problems."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from treadle.protocol.errors import ToolError
from treadle.workspace.commands.wrapping import UNWRAPPED, Wrapping
from treadle.workspace.diagnostics.checks import CHECK_SECONDS, NotReadyError, covered
from treadle.workspace.diagnostics.json_rpc import JsonRpc, Program, connect
from treadle.workspace.diagnostics.problems import Diagnostic, Severity
from treadle.workspace.files.text_files import read_text

_QUIET_SECONDS = 0.2
_SHUTDOWN_SECONDS = 1.0
_FULL_TEXT = 1
_LANGUAGES = {
    ".py": "python", ".pyi": "python", ".js": "javascript", ".jsx": "javascriptreact", ".mjs": "javascript",
    ".ts": "typescript", ".tsx": "typescriptreact", ".rs": "rust", ".rb": "ruby", ".cs": "csharp", ".kt": "kotlin",
    ".sh": "shellscript", ".yml": "yaml", ".md": "markdown", ".h": "c", ".cc": "cpp", ".hpp": "cpp", ".hs": "haskell",
    ".ex": "elixir", ".tf": "terraform",
}  # fmt: skip
"""Language ids that are not the file's ending itself."""

_CAPABILITIES = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {"configuration": True, "workspaceFolders": True},
    "textDocument": {
        "synchronization": {"didSave": True},
        "publishDiagnostics": {"versionSupport": True},
        "diagnostic": {"dynamicRegistration": False},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCommand:
    """How a server is started, and for which files (globs of names). `variables` is its whole environment.

    `language` is told instead of what the file's ending says; `options` go along with the start, and `settings` are
    what it is answered when it asks for a section of them.
    """

    name: str
    argv: Sequence[str]
    patterns: Sequence[str]
    root: str
    variables: Mapping[str, str]
    seconds: float = CHECK_SECONDS
    language: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfinement:
    """What goes around a server: `wrap` may look at the disk; where `state` is another one, the server starts anew."""

    state: Callable[[], Hashable]
    wrap: Callable[[], Wrapping]


UNCONFINED = ServerConfinement(state=lambda: None, wrap=lambda: UNWRAPPED)


@dataclass(frozen=True, slots=True)
class _Document:
    """A file as the server knows it."""

    version: int
    text: str


@dataclass(frozen=True, slots=True)
class _Published:
    """What the server last said of a file; `version` is None where it does not tell."""

    version: int | None
    items: list[Any]


class LanguageServer:
    """A server that is started with the first file it covers and kept until the end of the session."""

    def __init__(self, command: ServerCommand, confinement: ServerConfinement = UNCONFINED) -> None:
        self._command = command
        self._confinement = confinement
        self._confined: Hashable = None
        self._waited = False
        self._starting: asyncio.Task[JsonRpc] | None = None
        self._pulls = False
        self._documents: dict[str, _Document] = {}
        self._published: dict[str, _Published] = {}
        self._news = asyncio.Event()

    @property
    def name(self) -> str:
        """The server's name."""
        return self._command.name

    @property
    def seconds(self) -> float:
        """How long an edit waits for it."""
        return self._command.seconds

    def covers(self, path: str) -> bool:
        """Whether it is meant for files of this kind."""
        return covered(path, self._command.patterns)

    async def check(self, paths: Sequence[str]) -> list[Diagnostic]:
        """Tell the server how the files are now, and take its answer. Raises `ToolError` when it does not work."""
        connection = await self._connected()
        texts = {path: await asyncio.to_thread(_text_of, path) for path in paths}
        for path, text in texts.items():
            self._synchronize(connection, path, text)
        there = [path for path, text in texts.items() if text is not None]
        answers = await asyncio.gather(*(self._problems_of(connection, path) for path in there))
        return [problem for problems in answers for problem in problems]

    async def close(self) -> None:
        """End the server."""
        starting, self._starting = self._starting, None
        self._waited = False
        self._documents.clear()
        self._published.clear()
        if starting is None:
            return
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        if starting.cancelled() or starting.exception() is not None:
            return
        connection = starting.result()
        with contextlib.suppress(TimeoutError, ToolError):
            async with asyncio.timeout(_SHUTDOWN_SECONDS):
                await connection.request("shutdown", None)
                connection.notify("exit", None)
        await connection.close()

    async def started(self) -> None:
        """Wait until the server has started, if it does so. Raises `ToolError` when that fails."""
        if self._starting is not None:
            await asyncio.shield(self._starting)

    async def _connected(self) -> JsonRpc:
        """Give the connection. Starting goes on when whoever waits for it has lost patience; nobody waits twice."""
        confined = self._confinement.state()
        if self._starting is not None and confined != self._confined:
            await self.close()
        if self._starting is None:
            self._confined = confined
            self._starting = asyncio.ensure_future(self._start())
        elif self._waited and not self._starting.done():
            raise NotReadyError(f"{self.name} is still starting")
        self._waited = True
        return await asyncio.shield(self._starting)

    async def _start(self) -> JsonRpc:
        command = self._command
        wrapping = await asyncio.to_thread(self._confinement.wrap)
        program = Program(
            name=command.name,
            argv=command.argv,
            directory=command.root,
            variables=command.variables,
            wrapping=wrapping,
        )
        connection = await connect(program, self._on_message, self._wake_waiting)
        root = Path(command.root).as_uri()
        about = {
            # In a sandbox there is no process of this number, and a server ends when it finds none.
            "processId": os.getpid() if wrapping == UNWRAPPED else None,
            "clientInfo": {"name": "treadle"},
            "rootUri": root,
            "workspaceFolders": [{"uri": root, "name": Path(command.root).name}],
            "capabilities": _CAPABILITIES,
            **({"initializationOptions": command.options} if command.options else {}),
        }
        try:
            answer = await connection.request("initialize", about)
        except BaseException:
            await connection.close()
            raise
        abilities = answer.get("capabilities", {}) if isinstance(answer, dict) else {}
        self._pulls = bool(abilities.get("diagnosticProvider"))
        connection.notify("initialized", {})
        if command.settings:
            connection.notify("workspace/didChangeConfiguration", {"settings": command.settings})
        return connection

    def _synchronize(self, connection: JsonRpc, path: str, text: str | None) -> None:
        """Bring the server's idea of a file up to date; None says that there is no such file."""
        uri = Path(path).as_uri()
        known = self._documents.get(path)
        if text is None:
            if self._documents.pop(path, None):
                connection.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        elif known is None:
            self._documents[path] = _Document(_FULL_TEXT, text)
            self._published.pop(path, None)
            language = self._command.language or _language_of(path)
            about = {"uri": uri, "languageId": language, "version": 1, "text": text}
            connection.notify("textDocument/didOpen", {"textDocument": about})
        elif known.text != text:
            version = known.version + 1
            self._documents[path] = _Document(version, text)
            self._published.pop(path, None)
            about = {"uri": uri, "version": version}
            connection.notify("textDocument/didChange", {"textDocument": about, "contentChanges": [{"text": text}]})
            connection.notify("textDocument/didSave", {"textDocument": {"uri": uri}})

    async def _problems_of(self, connection: JsonRpc, path: str) -> list[Diagnostic]:
        if self._pulls:
            about = {"textDocument": {"uri": Path(path).as_uri()}}
            answer = await connection.request("textDocument/diagnostic", about)
            items = answer.get("items", []) if isinstance(answer, dict) else []
        else:
            items = await self._heard_of(connection, path)
        return [problem for item in items if (problem := read_diagnostic(item, path, self.name))]

    async def _heard_of(self, connection: JsonRpc, path: str) -> list[Any]:
        """Wait until the server has said something of the file as it is now, and then no more for a moment."""
        while self._heard(path) is None:
            if not connection.alive:
                raise ToolError(connection.why_ended)
            await self._news.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_QUIET_SECONDS):
                while True:
                    await self._news.wait()
        return self._heard(path) or []

    def _heard(self, path: str) -> list[Any] | None:
        said, document = self._published.get(path), self._documents.get(path)
        if said is None or document is None or said.version not in (None, document.version):
            return None
        return said.items

    def _on_message(self, method: str, params: Any) -> Any:
        """Take what the server says or asks; it may register what it likes."""
        match method:
            case "textDocument/publishDiagnostics":
                self._on_published(params)
            case "workspace/configuration":
                items = params.get("items") if isinstance(params, dict) else None
                return [self._section(item) for item in items] if isinstance(items, list) else []
            case "workspace/workspaceFolders" | "client/registerCapability" | "client/unregisterCapability":
                return None
            case "window/workDoneProgress/create" | "workspace/diagnostic/refresh" | "window/showMessageRequest":
                return None
            case _:
                return NotImplemented
        return None

    def _section(self, item: Any) -> Any:
        """Give the part of the settings that a server asks for by a name with dots; None where nothing is said."""
        wanted = item.get("section") if isinstance(item, dict) else None
        found: Any = self._command.settings or None
        for key in wanted.split(".") if isinstance(wanted, str) and wanted else ():
            found = found.get(key) if isinstance(found, Mapping) else None
        return found

    def _on_published(self, params: Any) -> None:
        """Keep what is said of the files that it was told of; some servers speak of the whole project."""
        if not isinstance(params, dict):
            return
        uri, items = params.get("uri"), params.get("diagnostics")
        path = unquote(urlsplit(uri).path) if isinstance(uri, str) else ""
        if path in self._documents and isinstance(items, list):
            self._published[path] = _Published(params.get("version"), items)
            self._wake_waiting()

    def _wake_waiting(self) -> None:
        """Wake who waits, and begin anew: each waits for the next news, not for what others have seen."""
        news, self._news = self._news, asyncio.Event()
        news.set()


def read_diagnostic(item: Any, path: str, server: str) -> Diagnostic | None:
    """Read one diagnostic of the protocol; None when it is none."""
    match item:
        case {"range": {"start": {"line": int(line), "character": int(column)}}, "message": str(message)}:
            code = item.get("code")
            source = " ".join(map(str, filter(None, (item.get("source") or server, code))))
            level = item.get("severity")
            severity = Severity(level) if level in list(Severity) else Severity.ERROR
            return Diagnostic(
                path=path, line=line + 1, column=column + 1, severity=severity, message=message, source=source
            )
        case _:
            return None


def _language_of(path: str) -> str:
    suffix = Path(path).suffix.lower()
    return _LANGUAGES.get(suffix, suffix.lstrip("."))


def _text_of(path: str) -> str | None:
    """Read a file; None when there is none that is text."""
    try:
        return read_text(path, path).text
    except ToolError:
        return None
