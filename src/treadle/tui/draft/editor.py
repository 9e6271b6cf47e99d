"""The person's own editor on a text: it has the terminal until it ends."""

import asyncio
import os
import shlex
import signal
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from prompt_toolkit.application import in_terminal

from treadle.protocol.errors import ConfigError


async def edit_text(text: str, suffix: str) -> str:
    """Let the person change a text, in a file whose name ends in `suffix`; an editor that fails changes nothing.

    Raises `ConfigError` when the editor cannot be started, or what it leaves cannot be read.
    """
    # Editors end the last line: where the text does not, that line feed is none of the person's.
    end = "" if text.endswith("\n") else "\n"
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with TemporaryDirectory(prefix="treadle-") as folder:
        file = Path(folder, f"text{suffix}")
        _write(file, text + end)
        try:
            status = await _run([*shlex.split(command), str(file)])
            edited = _read(file)
        except (OSError, ValueError) as error:
            raise ConfigError(
                "editor", f"The text could not be edited with {command!r}.", why=str(error), fix="Set VISUAL or EDITOR."
            ) from error
    return text if status else edited.removesuffix(end)


async def _run(command: list[str]) -> int:
    async with in_terminal():
        process = await asyncio.create_subprocess_exec(*command)
        try:
            return await process.wait()
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):  # not `process.terminate`, of which asyncio would know nothing
                os.kill(process.pid, signal.SIGTERM)
            await process.wait()
            raise


def _write(file: Path, text: str) -> None:
    file.write_bytes(text.encode())


def _read(file: Path) -> str:
    return file.read_bytes().decode()
