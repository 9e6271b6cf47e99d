"""The image in the clipboard, through the program that this machine has for it."""

import asyncio
import os
import re
import shutil
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress

from treadle.protocol.errors import ConfigError

_SECONDS = 3.0
_LARGEST = 16 * 1024 * 1024
_HEX = re.compile(rb"PNGf([0-9A-Fa-f]+)")

_NOTHING = "There is no image in the clipboard."


def reader_of(environment: Mapping[str, str], platform: str) -> tuple[str, ...]:
    """Choose the program that writes the clipboard's image to its output; empty where there is none."""
    path = environment.get("PATH", os.defpath)
    if platform == "darwin":
        known = [("pngpaste", "-"), ("osascript", "-e", "get the clipboard as «class PNGf»")]
    else:
        known = [("wl-paste", "--no-newline", "--type", "image/png")] if environment.get("WAYLAND_DISPLAY") else []
        if environment.get("DISPLAY"):
            known.append(("xclip", "-selection", "clipboard", "-t", "image/png", "-o"))
    return next((command for command in known if shutil.which(command[0], path=path)), ())


async def clipboard_image() -> bytes:
    """Read the image in the clipboard; raises `ConfigError` where there is none, or no program that can read it."""
    command = reader_of(os.environ, sys.platform)
    if not command:
        raise ConfigError(
            "clipboard",
            "The clipboard's image cannot be read here.",
            why="It needs wl-paste (Wayland), xclip (X11) or pngpaste (macOS).",
            fix="Save the image to a file and paste its path.",
        )
    try:
        async with asyncio.timeout(_SECONDS):
            raw = await _output_of(command)
    except TimeoutError as error:
        raise ConfigError("clipboard", f"{command[0]} did not answer in {_SECONDS:g} s.", fix="Try again.") from error
    except OSError as error:
        raise ConfigError("clipboard", f"{command[0]} could not be started.", why=str(error)) from error
    found = _HEX.search(raw) if command[0] == "osascript" else None
    raw = bytes.fromhex(found[1].decode()) if found is not None else raw
    if not raw:
        raise ConfigError("clipboard", _NOTHING, fix="Copy an image first.")
    return raw


async def _output_of(command: tuple[str, ...]) -> bytes:
    """Give what a program prints, as far as an image may be long; it does not outlive this."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None  # noqa: S101 - it was asked for
    pieces: list[bytes] = []
    size = 0
    try:
        while size <= _LARGEST and (piece := await process.stdout.read(64 * 1024)):
            pieces.append(piece)
            size += len(piece)
        return b"" if size <= _LARGEST and await process.wait() else b"".join(pieces)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):  # not `process.kill`, of which asyncio would know nothing
                os.kill(process.pid, signal.SIGKILL)
            await process.wait()
