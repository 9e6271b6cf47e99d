"""The clipboard, through the program that this machine has for it or the terminal: an image out, a text in."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress

from treadle.present.words import counted
from treadle.protocol.errors import ConfigError
from treadle.protocol.patterns import regex

_SECONDS = 3.0
_LARGEST = 16 * 1024 * 1024
_HEX = re.compile(rb"PNGf([0-9A-Fa-f]+)")

_NOTHING = "There is no image in the clipboard."

_LONGEST = 74_994
"""Characters of base64 that terminals take for their clipboard."""

_CONTROL = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Where it is pasted these would be keys: the end of a paste, and then a command."""


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


def clean_text(text: str) -> tuple[str, int]:
    """Give a text without control characters but line feeds and tabs, and how many were left out."""
    return _CONTROL.subn("", text.replace("\r\n", "\n"))


def terminal_copy(text: str, environment: Mapping[str, str]) -> str:
    """Give what lets a terminal copy a text (OSC 52); empty where it takes none, or not that much."""
    encoded = b64encode(text.encode()).decode()
    mute = environment.get("TERM", "") in ("", "dumb", "linux") or "STY" in environment
    return "" if mute or len(encoded) > _LONGEST else f"\x1b]52;c;{encoded}\a"


def writer_of(environment: Mapping[str, str], platform: str) -> tuple[str, ...]:
    """Choose the program that puts its input into the clipboard; empty where there is none."""
    path = environment.get("PATH", os.defpath)
    known: list[tuple[str, ...]] = [("pbcopy",)] if platform == "darwin" else []
    if environment.get("WAYLAND_DISPLAY"):
        known.append(("wl-copy",))
    if environment.get("DISPLAY"):
        known += [("xclip", "-selection", "clipboard", "-in"), ("xsel", "--clipboard", "--input")]
    if environment.get("TMUX"):
        known.append(("tmux", "load-buffer", "-w", "-"))
    return next((command for command in known if shutil.which(command[0], path=path)), ())


def fill_clipboard(text: str) -> str:
    """Put a text into the clipboard with a program; gives its name, empty where there is none that can. In a thread."""
    command = writer_of(os.environ, sys.platform)
    if not command:
        return ""
    try:
        # Some leave a process behind that has the text until something else is copied.
        process = subprocess.run(
            command,
            input=text.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if process.returncode else command[0]


def copied_words(what: str, text: str, left_out: int, *, program: str, terminal: bool) -> str:
    """Say what was copied, and where to."""
    size = counted(len(text), "character")
    if left_out:
        size += f" ({counted(left_out, 'control character')} left out)"
    if program:
        return f"{what}: {size} copied to the clipboard by {program}{', and sent to the terminal' if terminal else ''}."
    if terminal:
        return f"{what}: {size} sent to the terminal (OSC 52), which copies them if it lets programs do that."
    return (
        f"{what} is not copied: {size} are too many for this terminal, or it takes none, and no program for the "
        "clipboard works here (wl-copy, xclip, xsel, pbcopy). /export writes the session to a file."
    )
