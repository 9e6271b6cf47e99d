"""The output of commands while they run: in terminals of the client where it has them, else in their calls."""

import asyncio

from treadle.acp.client import EditorClient
from treadle.acp.terminals import ShownCommand
from treadle.acp.updates import Updates
from treadle.present.words import note_of
from treadle.protocol.notifications import CallChanged, CallOutput, CallStatus, Notification
from treadle.protocol.tools import CallResult, Flow, ToolKind

_SHOW_AFTER = 0.1
"""Seconds between two looks at the output of a running command: each shows all of it again."""


class RunningCommands:
    """Shows what the running commands of a session print; `folder` is where terminals are opened."""

    def __init__(self, client: EditorClient, updates: Updates, folder: str) -> None:
        self._client = client
        self._updates = updates
        self._folder = folder
        self._drawing: asyncio.TimerHandle | None = None
        self._drawn: set[str] = set()
        self._commands: dict[str, ShownCommand] = {}
        self._showing: set[asyncio.Task[None]] = set()
        updates.terminal_of = self._terminal_of

    def take(self, notification: Notification) -> None:
        """Take what is said of a command."""
        match notification:
            case CallOutput():
                self._print(notification)
            case CallChanged():
                self._change(notification)
            case _:
                pass

    def _print(self, piece: CallOutput) -> None:
        """Show output, after a moment: a command may write thousands of lines in one."""
        command = self._commands.get(piece.call_id)
        if command is not None:
            command.show(piece.text)
        self._drawn.add(piece.call_id)
        if self._drawing is None:
            self._drawing = asyncio.get_running_loop().call_later(_SHOW_AFTER, self._draw)

    def _change(self, changed: CallChanged) -> None:
        """Open a terminal for a command that begins to run, and end that of one that has ended."""
        number = changed.call.id
        if changed.status is CallStatus.FINISHED:
            command = self._commands.pop(number, None)
            if command is not None:
                command.finish(_exit_status(changed.kind, changed.result))
        elif (
            changed.status is CallStatus.RUNNING
            and changed.kind is ToolKind.EXECUTE
            and changed.flow is Flow.RUN
            and self._client.has_terminals
            and number not in self._commands
        ):
            command = self._commands[number] = ShownCommand(self._client, self._folder)
            self._showing.add(task := asyncio.create_task(self._show(number, command), name="acp terminal"))
            task.add_done_callback(self._showing.discard)

    async def close(self) -> None:
        """Show no more."""
        if self._drawing is not None:
            self._drawing.cancel()
        for task in self._showing:
            task.cancel()
        await asyncio.gather(*self._showing, return_exceptions=True)

    async def _show(self, number: str, command: ShownCommand) -> None:
        await command.run()
        if not command.was_seen:
            self._commands.pop(number, None)
            if (update := self._updates.whole_output(number, lost=command.lost)) is not None:
                self._client.update(update)

    def _terminal_of(self, number: str) -> str:
        command = self._commands.get(number)
        return "" if command is None else command.terminal

    def _draw(self) -> None:
        self._drawing = None
        for number in self._drawn:
            if (update := self._updates.output_update(number)) is not None:
                self._client.update(update)
        self._drawn.clear()


def _exit_status(kind: ToolKind, result: CallResult | None) -> int:
    """Give the exit status of a command that has ended; 1 where another reason than its own ended it."""
    if result is None or not result.is_error:
        return 0
    status = note_of(kind, result).removeprefix("exit ")
    return int(status) if status.isdecimal() else 1
