"""What the agent asks of its client: to show updates, to ask the user, to read and save files."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import CancelledError as Cancelled
from concurrent.futures import TimeoutError as LateError
from typing import Any, TypeVar

from treadle.acp.rpc import METHOD_NOT_FOUND, ClientGoneError, RpcConnection, RpcError
from treadle.acp.shapes import (
    ChosenOption,
    ClientCapabilities,
    FileText,
    FormAnswer,
    PermissionAnswer,
    PermissionChoice,
    PermissionRequest,
    TerminalCreated,
    ToolCallShape,
)
from treadle.door.message_parts import BufferRefusedError
from treadle.present.escape import printable
from treadle.present.words import clip_text

_FILE_SECONDS = 10.0
"""Seconds that an editor has to read or save a file: it may ask its user."""

_T = TypeVar("_T")


class EditorClient:
    """The client, for one session."""

    def __init__(self, connection: RpcConnection, capabilities: ClientCapabilities, session_id: str) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self.capabilities = capabilities
        self.session_id = session_id

    def update(self, update: object) -> None:
        """Show what happened."""
        self._connection.notify("session/update", {"sessionId": self.session_id, "update": update})

    async def choose(self, call: ToolCallShape, choices: tuple[PermissionChoice, ...]) -> ChosenOption:
        """Ask the user. Raises `ClientGoneError`, and `RpcError` where the client did not show the question."""
        asked = PermissionRequest(session_id=self.session_id, tool_call=call, options=choices)
        return (await self._connection.ask("session/request_permission", asked, PermissionAnswer)).outcome

    @property
    def edits_files(self) -> bool:
        """Whether the client reads or saves files."""
        fs = self.capabilities.fs
        return fs is not None and (fs.read_text_file or fs.write_text_file)

    @property
    def shows_forms(self) -> bool:
        """Whether the client shows forms."""
        return self.capabilities.elicitation is not None and self.capabilities.elicitation.form is not None

    async def fill_in(self, message: str, schema: dict[str, Any], call_id: str) -> FormAnswer:
        """Have the user fill in a form; cancelled where the client cannot show it. Raises `ClientGoneError`."""
        asked: dict[str, Any] = {"requestedSchema": schema, "mode": "form", "message": message}
        return await self._elicit({**asked, "toolCallId": call_id} if call_id else asked)

    @property
    def opens_links(self) -> bool:
        """Whether the client opens addresses for a question."""
        return self.capabilities.elicitation is not None and self.capabilities.elicitation.url is not None

    async def open_link(self, message: str, url: str, number: str) -> FormAnswer:
        """Have the user open an address; cancelled where the client cannot. Raises `ClientGoneError`."""
        return await self._elicit({"message": message, "mode": "url", "url": url, "elicitationId": number})

    async def _elicit(self, asked: dict[str, Any]) -> FormAnswer:
        asked = {"sessionId": self.session_id, **asked}
        try:
            return await self._connection.ask("elicitation/create", asked, FormAnswer)
        except RpcError:
            return FormAnswer(action="cancel")

    @property
    def has_terminals(self) -> bool:
        """Whether the client runs programs in terminals."""
        return bool(self.capabilities.terminal)

    async def create_terminal(self, command: list[str], folder: str, kept: int) -> str:
        """Have the client run a program in a terminal that keeps so many bytes; gives its id. Raises `RpcError`."""
        asked = {"sessionId": self.session_id, "command": command[0], "args": command[1:], "cwd": folder}
        created = await self._connection.ask("terminal/create", {**asked, "outputByteLimit": kept}, TerminalCreated)
        return created.terminal_id

    async def wait_for_terminal(self, terminal: str) -> None:
        """Wait until the program in a terminal has ended. Raises `RpcError`."""
        await self._connection.ask("terminal/wait_for_exit", self._terminal(terminal), object)

    async def release_terminal(self, terminal: str) -> None:
        """Give a terminal back, which ends what runs in it. Raises `RpcError`."""
        await self._connection.ask("terminal/release", self._terminal(terminal), object)

    def _terminal(self, terminal: str) -> dict[str, str]:
        return {"sessionId": self.session_id, "terminalId": terminal}

    def read(self, path: str) -> str | None:
        """Give the text of a file in the editor; None where it has none, or does not answer in time."""
        fs = self.capabilities.fs
        if fs is None or not fs.read_text_file:
            return None
        asked = {"sessionId": self.session_id, "path": path}
        try:
            return self._wait(self._connection.ask("fs/read_text_file", asked, FileText)).content
        except (RpcError, ClientGoneError, LateError, Cancelled):
            return None

    def write(self, path: str, text: str) -> bool:
        """Save a text through the editor; False where it saves none. Raises `BufferRefusedError`."""
        fs = self.capabilities.fs
        if fs is None or not fs.write_text_file:
            return False
        asked = {"sessionId": self.session_id, "path": path, "content": text}
        try:
            self._wait(self._connection.ask("fs/write_text_file", asked, object))
        except RpcError as error:
            if error.code == METHOD_NOT_FOUND:
                return False
            raise BufferRefusedError(clip_text(printable(error.message), 200)) from error
        except (ClientGoneError, LateError, Cancelled) as error:
            raise BufferRefusedError("nothing, so whether it was saved is not known") from error
        return True

    def _wait(self, asking: Coroutine[Any, Any, _T]) -> _T:
        """Wait in a thread for what the loop does; never in the loop itself, which would wait for itself."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            asking.close()
            raise LateError
        future = asyncio.run_coroutine_threadsafe(asking, self._loop)
        try:
            return future.result(_FILE_SECONDS)
        except LateError:
            future.cancel()
            raise
