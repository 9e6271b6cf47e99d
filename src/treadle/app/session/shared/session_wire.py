"""The local socket of a live session: where it is, who may use it, and messages as lines of JSON."""

import asyncio
import hmac
import os
import secrets
import socket
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from treadle.app.config.places import data_directory
from treadle.protocol.codec import encode
from treadle.workspace.files.private_file import make_private_folder, write_private

WIRE_VERSION = 1
"""Of the messages; both sides must have the same."""

MOST_MESSAGE_BYTES = 256 * 1024 * 1024
"""Bytes of one message; an image in a prompt is the longest part of one."""

_BACKGROUND = ".background"

_YOUNG = 60.0
"""Seconds."""

_T = TypeVar("_T")


class Address:
    """Where a session is attached to. The folder is the user's alone; the key keeps out what may enter it all the same.

    A confined command may reach a socket that it can name, but it cannot read the key.
    """

    def __init__(self, session_id: str) -> None:
        self._folder = data_directory() / "live"
        self._socket = f"{session_id}.sock"
        self._key = self._folder / f"{session_id}.key"
        self._mark = self._folder / f"{session_id}{_BACKGROUND}"

    def listen(self, *, background: bool = False) -> tuple[socket.socket, str]:
        """Open the socket, with a new key; one that a killed process left is replaced. Raises `OSError`.

        `background` marks the session as one that runs without a terminal.
        """
        make_private_folder(self._folder)
        self._folder.chmod(0o700)
        key = secrets.token_hex(32)
        write_private(self._key, key.encode())
        for left in (self._folder / self._socket, self._mark):
            with suppress(FileNotFoundError):
                left.unlink()
        if background:
            self._mark.touch(mode=0o600)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with _short(self._folder, self._socket) as path:
                listening.bind(path)
            (self._folder / self._socket).chmod(0o600)
        except OSError:
            listening.close()
            raise
        return listening, key

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, str]:
        """Reach the session; raises `OSError` where it does not listen."""
        key = self._key.read_text()
        with _short(self._folder, self._socket) as path:
            reader, writer = await asyncio.open_unix_connection(path, limit=MOST_MESSAGE_BYTES)
        return reader, writer, key

    def remove(self) -> None:
        """Take socket and key away."""
        for file in (self._folder / self._socket, self._key, self._mark):
            with suppress(OSError):
                file.unlink()


def sharing_changed() -> float:
    """Say when a session of any process last got a socket or lost it (seconds since 1970); 0 is never."""
    try:
        return (data_directory() / "live").stat().st_mtime
    except OSError:
        return 0.0


def remove_stale_sockets(open_sessions: Collection[str]) -> None:
    """Take away what killed processes left: sockets and keys of sessions that are not open.

    What is young may be of a session that was opened since it was found out which ones are.
    """
    with suppress(OSError):
        for file in (data_directory() / "live").iterdir():
            if file.stem not in open_sessions and time.time() - file.stat().st_mtime > _YOUNG:
                file.unlink()


def background_sessions() -> frozenset[str]:
    """Name the sessions that were last opened in the background; of those that are open, they still are."""
    with suppress(OSError):
        names = (file.name for file in (data_directory() / "live").iterdir())
        return frozenset(name.removesuffix(_BACKGROUND) for name in names if name.endswith(_BACKGROUND))
    return frozenset()


@contextmanager
def _short(folder: Path, name: str) -> Iterator[str]:
    """Name a socket in at most some hundred bytes, which is all that its address may have."""
    direct = str(folder / name)
    links = Path("/proc/self/fd")
    if len(os.fsencode(direct)) < 100 or not links.is_dir():
        yield direct
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"{links}/{opened}/{name}"
    finally:
        os.close(opened)


def same_key(given: str, key: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given.encode(errors="replace"), key.encode())


async def send_message(writer: asyncio.StreamWriter, message: object) -> None:
    """Send a message, as fast as the other side reads."""
    writer.write(encode(message) + b"\n")
    await writer.drain()


async def receive(reader: asyncio.StreamReader, decoder: msgspec.json.Decoder[_T]) -> _T | None:
    """Receive a message; None at the end. Raises `OSError` for what is no message."""
    try:
        line = await reader.readuntil(b"\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    except asyncio.LimitOverrunError as error:
        raise OSError("a message is too long") from error
    try:
        return decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise OSError(f"a message cannot be read: {error}") from error
