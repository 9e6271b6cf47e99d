"""Hooks that are commands: the event on their input, their answer on their output, as Claude Code has it."""

import asyncio
import json
import os
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.app.config.hook_settings import HookEvent, HookSpec
from treadle.app.hooks.hook_rows import HookFailedError
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import Confinement, Rights
from treadle.workspace.confinement import Confine, Setup
from treadle.workspace.launcher import Launcher
from treadle.workspace.process import CommandProcess
from treadle.workspace.wrapping import Caps

_MOST_BYTES = 1024 * 1024
_LARGEST_FILE = 256 * 1024 * 1024
_LONGEST_REASON = 10_000
_FOREVER = 1e9
_BLOCKS = 2
_WORK = Rights(confinement=Confinement.WORK)
_PLAIN_IS_CONTEXT = frozenset({HookEvent.USER_PROMPT_SUBMIT, HookEvent.SESSION_START})


class HookPlace(Struct, frozen=True, kw_only=True):
    """Where the commands of hooks run. `confine` is None where there is no sandbox; `tell` is for the person.

    `private` is a folder of the session in Treadle's own data, which no sandboxed command can read.
    """

    launcher: Callable[[], Launcher]
    confine: Confine | None
    private: Path
    root: str
    session_id: str
    tell: Callable[[str], None]

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
    """Runs one command with each event, in a session of its own; when it is cancelled nothing of it is left."""

    spec: HookSpec
    place: HookPlace

    async def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        """Run it until it ends. Raises `HookFailedError`."""
        spec = self.spec
        words = spec.arguments
        line = spec.command if words is None else shlex.join((spec.command, *words))
        files = _HookFiles(self.place.private)
        try:
            await asyncio.to_thread(files.write, given)
            command = await self._start(line, files)
            try:
                await command.finish(_FOREVER)
                errors = command.take_output(_LONGEST_REASON).strip()
                for said in await command.settle(errors):
                    self.place.tell(said.text)
                return self._answer(command, errors, await asyncio.to_thread(files.printed))
            finally:
                await command.close()
        except ToolError as error:
            raise HookFailedError(error.text.rstrip(".")) from error
        except OSError as error:
            raise HookFailedError(f"it could not be started ({error.strerror})") from error
        finally:
            await asyncio.to_thread(files.remove)

    async def _start(self, line: str, files: "_HookFiles") -> CommandProcess:
        confine = self.place.confine if self.spec.confined else None
        setup = Setup() if confine is None else await asyncio.to_thread(confine, line, _WORK, background=True)
        caps = setup.wrapping.caps or Caps()
        caps = replace(
            caps,
            file=min(caps.file or _LARGEST_FILE, _LARGEST_FILE),
            given=str(files.input),
            printed=str(files.output),
        )
        wrapping = replace(setup.wrapping, caps=caps)
        variables = {**setup.variables, **self.place.variables}
        return self.place.launcher().start(line, setup=replace(setup, wrapping=wrapping, variables=variables))

    def _answer(self, command: CommandProcess, errors: str, printed: bytes) -> dict[str, Any]:
        if command.status == _BLOCKS and not command.why_stopped:
            return {"decision": "block", "reason": errors or f"The hook `{self.spec.says}` blocks it."}
        if command.why_stopped or command.status != 0:
            end = command.describe().rstrip(".")
            raise HookFailedError(f"{end[:1].lower()}{end[1:]}{f': {errors}' if errors else ''}")
        return read_answer(printed, self.spec.event)


def read_answer(printed: bytes, event: str) -> dict[str, Any]:
    """Read what a hook printed: an object, or plain words, which at some events are context. Raises `HookFailedError`.

    More than a megabyte is no answer.
    """
    if len(printed) > _MOST_BYTES:
        raise HookFailedError(f"it printed more than {_MOST_BYTES:,} bytes")
    text = printed.decode(errors="replace").strip()
    if text.startswith("{"):
        try:
            found = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise HookFailedError(f"it printed broken JSON ({error})") from error
        return dict(found)
    if text and event in _PLAIN_IS_CONTEXT:
        return {"hookSpecificOutput": {"additionalContext": text}}
    return {}


class _HookFiles:
    """What one run of a command reads and prints to: files that no command can find."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        name = f"hook-{os.urandom(8).hex()}"
        self.input = folder / f"{name}-in"
        self.output = folder / f"{name}-out"

    def write(self, given: dict[str, Any]) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file, content in ((self.input, json.dumps(given).encode()), (self.output, b"")):
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                stream.write(content)

    def printed(self) -> bytes:
        with self.output.open("rb") as stream:
            return stream.read(_MOST_BYTES + 1)

    def remove(self) -> None:
        for file in (self.input, self.output):
            with suppress(OSError):
                file.unlink()
