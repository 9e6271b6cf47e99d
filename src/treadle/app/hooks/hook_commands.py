"""Hooks that are commands: the event on their input, their answer on their output, as Claude Code has it."""

import asyncio
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.config.hook_settings import HookOrigin, HookSpec
from treadle.app.hooks.hook_answers import MOST_ANSWERED, read_answer
from treadle.app.hooks.hook_places import HookAccess, LogPlaces
from treadle.app.hooks.hook_rows import HookAnswer, HookFailedError
from treadle.app.security.hook_files import HookFiles
from treadle.app.security.trusting import shown_path
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import SandboxDenial
from treadle.workspace.commands.confinement import Setup, describe_denial
from treadle.workspace.commands.launcher import Launcher
from treadle.workspace.commands.process import CommandProcess
from treadle.workspace.commands.redirected import RedirectedFiles
from treadle.workspace.commands.wrapping import TIMES_AGAIN, Caps

_LARGEST_FILE = 256 * 1024 * 1024
_LONGEST_REASON = 10_000
_FOREVER = 1e9
_BLOCKS = 2


class ConfineHook(Protocol):
    """Sets up the run of a hook in the sandbox; may look at the disk for some milliseconds. Raises `ToolError`."""

    def __call__(self, line: str, readable: Sequence[str], writable: Sequence[str], *, aside: bool) -> Setup:
        """Give it what every command may do that changes the workspace, and these paths.

        What it changes `aside` is in a copy of the workspace, which `changes` of the setup throws away.
        """
        ...


class HookPlace(Struct, frozen=True, kw_only=True):
    """Where the commands of hooks run. `confine` is None where there is no sandbox; `tell` is for the person.

    `logs` opens what a hook of the user's own file may append to; `files` compares what a folder's hook runs with what
    was trusted. `private` is a folder of the session in Treadle's own data, which no sandboxed command can read.
    """

    launcher: Callable[[], Launcher]
    confine: ConfineHook | None
    logs: LogPlaces
    private: Path
    root: str
    session_id: str
    tell: Callable[[str], None]
    files: HookFiles

    @property
    def variables(self) -> Mapping[str, str]:
        """What a hook finds in its environment, beside what every command does."""
        return {
            "CLAUDE_PROJECT_DIR": self.root,
            "CLAUDE_CODE_SESSION_ID": self.session_id,
            "CLAUDECODE": "1",
            "TREADLE_PROJECT_DIR": self.root,
            "TREADLE_SESSION_ID": self.session_id,
        }


class CommandHook(Struct, frozen=True):
    """Runs one command with each event, in a session of its own; when it is cancelled nothing of it is left.

    Where it runs `aside` and confined, the workspace stays as it is.
    """

    spec: HookSpec
    place: HookPlace
    aside: bool = False

    async def __call__(self, given: dict[str, Any]) -> HookAnswer:
        """Run it until it ends. Raises `HookFailedError`."""
        spec = self.spec
        if spec.origin is not HookOrigin.FOLDER:
            return await self._run(given)
        texts = (spec.command, *(spec.arguments or ()))
        if name := await asyncio.to_thread(self.place.files.begin, texts):
            raise HookFailedError(
                f"it was not run, since {shown_path(name)} is not what you trusted with this folder. To use it, look "
                f"at the change, run `treadle trust` and start a new session"
            )
        try:
            return await self._run(given)
        finally:
            await asyncio.to_thread(self.place.files.end, texts)

    async def _run(self, given: dict[str, Any]) -> HookAnswer:
        spec = self.spec
        words = spec.arguments
        line = spec.command if words is None else shlex.join((spec.command, *words))
        files = RedirectedFiles(self.place.private)
        confined = self.place.confine is not None and spec.confined
        access = await asyncio.to_thread(self.place.logs.open, spec) if confined else HookAccess()
        try:
            await asyncio.to_thread(files.write, json.dumps(given).encode())
            return await self._answered(line, files, access)
        except ToolError as error:
            raise HookFailedError(error.text.rstrip(".")) from error
        except OSError as error:
            raise HookFailedError(f"it could not be started ({error.strerror})") from error
        finally:
            await asyncio.to_thread(files.remove)
            await asyncio.to_thread(self.place.logs.close, access)

    async def _answered(
        self, line: str, files: RedirectedFiles, access: HookAccess, *, again: int = TIMES_AGAIN
    ) -> HookAnswer:
        """Run it to its end; `again` so often where its sandbox was not set up."""
        setup = await self._setup(line, files, access)
        command = self.place.launcher().start(line, setup=setup)
        try:
            await command.finish(_FOREVER)
            errors = command.take_output(_LONGEST_REASON).strip()
            for said in await command.settle(errors):
                self.place.tell(said.text)
            answer = self._answer(command, errors, await asyncio.to_thread(files.printed, MOST_ANSWERED + 1), setup)
        finally:
            await command.close()
            if setup.changes is not None:
                await asyncio.to_thread(setup.changes, "", failed=False)
        if again and command.status and await asyncio.to_thread(setup.wrapping.lacks_place, errors):
            return await self._answered(line, files, access, again=again - 1)
        return answer

    async def _setup(self, line: str, files: RedirectedFiles, access: HookAccess) -> Setup:
        confine = self.place.confine if self.spec.confined else None
        setup = Setup()
        if confine is not None:
            setup = await asyncio.to_thread(confine, line, access.readable, access.writable, aside=self.aside)
        caps = setup.wrapping.caps or Caps()
        caps = replace(
            caps,
            file=min(caps.file or _LARGEST_FILE, _LARGEST_FILE),
            given=files.caps.given,
            printed=files.caps.printed,
        )
        wrapping = replace(setup.wrapping, caps=caps)
        return replace(setup, wrapping=wrapping, variables={**setup.variables, **self.place.variables})

    def _answer(self, command: CommandProcess, errors: str, printed: bytes, setup: Setup) -> HookAnswer:
        """Read what it says by its exit status and its output; with what the sandbox kept it from, if that shows."""
        found = read_answer(printed, self.spec.event)
        said = f"{printed.decode(errors='replace')}\n{errors}"
        stopped = setup.find_denial(said)
        found = replace(found, stopped="" if stopped is None else self._stopped(stopped))
        if command.status == _BLOCKS and not command.why_stopped:
            blocks = {"decision": "block", "reason": errors or f"The hook `{self.spec.says}` blocks it."}
            return replace(found, objects=(blocks,), unread="")
        if command.why_stopped or command.status != 0:
            end = command.describe().rstrip(".")
            why = f"{end[:1].lower()}{end[1:]}{f': {errors}' if errors else ''}"
            return replace(found, unread=why)
        return found

    def _stopped(self, denial: SandboxDenial) -> str:
        what = f"The sandbox stopped this hook. {describe_denial(denial)}"
        if self.spec.origin is HookOrigin.FOLDER:
            file = self.spec.file or "its settings"
            return (
                f"{what} A folder's hooks always run in the sandbox. They may write in the workspace, in .claude/logs "
                'and to logs in .claude. To let calls pass when it fails, set onFailure = "continue" for it in '
                f"{file}. To run it without the sandbox, move it to your own settings with confined = false."
            )
        return (
            f"{what} A hook may write in the workspace, in ~/.claude/logs and to logs in ~/.claude. To run it without "
            f"the sandbox, set confined = false for it in {self.spec.file or 'your settings'}."
        )
