"""Letting one process at a time change the files of a folder."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from treadle.workspace.files.private_file import make_private_folder

_PAUSE = 0.05
"""Seconds between two attempts of somebody who waits and may be stopped."""


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let one process at a time change files of a folder, so that none loses what another wrote. Raises `OSError`.

    The folder is made where there is none.
    """
    descriptor = _opened(folder)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@asynccontextmanager
async def alone_in_turn(folder: Path) -> AsyncIterator[None]:
    """Let one task of one process at a time have a folder, for as long as it takes; who waits may be cancelled.

    Raises `OSError`.
    """
    descriptor = _opened(folder)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                await asyncio.sleep(_PAUSE)
            else:
                break
        yield
    finally:
        os.close(descriptor)


def _opened(folder: Path) -> int:
    make_private_folder(folder)
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
