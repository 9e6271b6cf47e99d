"""The state of the terminal, kept on disk while a surface changes it, so that the next start puts a crash right.

Most shells put it right by themselves; after a program of which nothing was left to tidy up, some do not.
"""

import contextlib
import os
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import msgspec

from treadle.workspace.files.owners import Owner, lives, owner_of
from treadle.workspace.files.private_file import make_private_folder

_RESET = "\x1b[?2004l\x1b[?1049l\x1b[?25h\x1b[?1l\x1b[0m"
"""No bracketed paste, no alternate screen, the cursor shown, usual cursor keys, no colours."""


class _Kept(msgspec.Struct, frozen=True):
    """The settings before a program changed them, as `tcgetattr` gives them, and that program."""

    owner: Owner
    flags: tuple[int, int, int, int, int, int]
    keys: tuple[int, ...]


@contextlib.contextmanager
def borrowed_terminal(folder: Path) -> Iterator[None]:
    """Keep the settings of the terminal in `folder` for the time of the block; what a crash left is put right before.

    Without a terminal, or where the folder cannot be written, nothing is kept.
    """
    note: Path | None = None
    with contextlib.suppress(OSError, termios.error):
        note = folder / os.ttyname(0).strip("/").replace("/", "-")
        _put_right(note)
        _keep(note)
    try:
        yield
    finally:
        if note is not None:
            with contextlib.suppress(OSError):
                note.unlink()


def _keep(note: Path) -> None:
    *flags, keys = termios.tcgetattr(0)
    kept = _Kept(
        owner_of(os.getpid()),
        (flags[0], flags[1], flags[2], flags[3], flags[4], flags[5]),
        tuple(key if isinstance(key, int) else key[0] for key in keys),
    )
    make_private_folder(note.parent)
    note.write_bytes(msgspec.json.encode(kept))


def _put_right(note: Path) -> None:
    """Restore what a program that is gone has kept here, if it did not get to it by itself."""
    try:
        kept = msgspec.json.decode(note.read_bytes(), type=_Kept)
    except (FileNotFoundError, msgspec.DecodeError):
        return
    if lives(kept.owner) or _answers_lines():
        return
    settings: list[int | list[bytes | int]] = [*kept.flags, list(kept.keys)]
    termios.tcsetattr(0, termios.TCSANOW, settings)
    sys.stdout.write(_RESET)
    sys.stdout.flush()


def _answers_lines() -> bool:
    """Whether the terminal gives whole lines and shows what is typed, as shells leave it."""
    usual = termios.ICANON | termios.ECHO
    return int(termios.tcgetattr(0)[3]) & usual == usual
