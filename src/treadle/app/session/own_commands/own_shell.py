"""Commands of the person's own: run in the project with the person's environment, without approval and sandbox."""

import asyncio
import os
import re
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from treadle.protocol.errors import ToolError
from treadle.protocol.messages import OWN_COMMAND, Text
from treadle.protocol.patterns import regex
from treadle.workspace.commands.confinement import Setup
from treadle.workspace.commands.hiding import Hide, as_it_is
from treadle.workspace.commands.launcher import Launcher
from treadle.workspace.commands.redirected import RedirectedFiles
from treadle.workspace.commands.wrapping import Wrapping
from treadle.workspace.files.text import erased

if TYPE_CHECKING:
    from treadle.workspace.commands.process import CommandProcess

_FENCE = regex(r"^ {0,3}(`{3,})", re.MULTILINE)
_BYTES = 16_000
_FOREVER = 1e9
_RUNNING_AT_MOST = 16
_REMEMBERED = 3
_PRINTED = 64 * 1024
_ERRORS = 2_000


class Ended(Struct, frozen=True, kw_only=True):
    """How a command ended: its exit status, None where it was stopped or has none; what it printed; what is said of it.

    `seconds` is how long it ran.
    """

    line: str
    status: int | None
    said: str
    output: str
    seconds: float

    @property
    def block(self) -> Text:
        """What the model reads of it."""
        longest = max((len(found) for found in _FENCE.findall(self.output)), default=2)
        fence = "`" * (longest + 1)
        output = f"{self.output.rstrip(chr(10))}\n" if self.output.strip() else ""
        return Text(text=f"{OWN_COMMAND}{fence}\n$ {self.line}\n{output}{fence}\n{self.said}")


class Printed(Struct, frozen=True, kw_only=True):
    """What a command printed that was given something on its input; `failed` says why it did not end well, if so."""

    text: str
    failed: str = ""


class OwnShell:
    """Runs the person's commands: each in a session of its own, with empty input, ended when Treadle ends.

    `last` are those that ended last, the newest at the end.
    """

    def __init__(self, *, shell: str, directory: str, spool: Path, hide: Hide = as_it_is) -> None:
        self._launcher = Launcher(shell=shell, directory=directory, variables=os.environ, spool=spool, hide=hide)
        self._spool = spool
        self._commands: list[CommandProcess] = []
        self.last: deque[Ended] = deque(maxlen=_REMEMBERED)

    async def run(self, line: str, output: Callable[[str], None], stop: asyncio.Event) -> Ended:
        """Run a line until it ends or `stop` is set; `output` gets what it prints, carriage returns and all.

        Raises `ToolError`. When this is cancelled everything that it started is ended.
        """
        if sum(command.alive for command in self._commands) >= _RUNNING_AT_MOST:
            raise ToolError(f"{_RUNNING_AT_MOST} of your commands still run. Stop one first.")
        command = self._launcher.start(line)
        self._commands.append(command)
        command.show(output, settled=erased)
        try:
            await self._wait(command, stop)
        finally:
            command.show(None)
        left = ", ".join(command.left_behind)
        still = f" Still running after it: {left}. It ends with Treadle." if left else ""
        ended = Ended(
            line=line,
            status=None if command.why_stopped else command.status,
            said=f"{command.describe()}{still}",
            output=command.take_output(_BYTES),
            seconds=command.age,
        )
        self.last.append(ended)
        if not command.alive:
            self._commands.remove(command)
            await command.close()
        return ended

    async def answer(self, line: str, given: bytes, seconds: float) -> Printed:
        """Run a line with `given` on its input, no longer than some seconds; nothing that it started is left.

        Raises `ToolError`.
        """
        files = RedirectedFiles(self._spool)
        try:
            await asyncio.to_thread(files.write, given)
            caps = replace(files.caps, file=_PRINTED)
            command = self._launcher.start(line, setup=Setup(wrapping=Wrapping(caps=caps)))
            try:
                await command.finish(seconds)
                errors = command.take_output(_ERRORS).strip()
                printed = await asyncio.to_thread(files.printed, _PRINTED)
            finally:
                await command.close()
        except OSError as error:
            raise ToolError(f"The command was not run ({error.strerror}). Make room, or change it.") from error
        finally:
            await asyncio.to_thread(files.remove)
        well = command.status == 0 and not command.why_stopped
        failed = "" if well else f"{command.describe()} {errors}".strip()
        return Printed(text=printed.decode(errors="replace"), failed=failed)

    async def _wait(self, command: "CommandProcess", stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            ends = group.create_task(command.finish(_FOREVER))
            asked = group.create_task(stop.wait())
            await asyncio.wait({ends, asked}, return_when=asyncio.FIRST_COMPLETED)
            if not ends.done():
                await command.stop("you stopped it")
            asked.cancel()

    async def close(self) -> None:
        """End every command and what it left behind."""
        self._launcher.close()
        await asyncio.gather(*(command.close() for command in self._commands))
        self._commands.clear()
