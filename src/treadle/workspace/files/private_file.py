"""Writing a file that belongs to the user alone: whole or not at all."""

import contextlib
import os
from pathlib import Path


def make_private_folder(folder: Path) -> None:
    """Make a folder, and all above it that is missing, for the owner alone; one that is there stays. Raises `OSError`.

    `mkdir(parents=True)` takes the mode for the last one only: whoever came first made the data folder for everybody.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        make_private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def write_private(file: Path, data: bytes, *, mode: int = 0o600, follow: bool = True) -> None:
    """Replace a file in one step; its folder is made for the owner alone. Raises `OSError`, which names a file.

    With `follow` a link stays and what it leads to is replaced: people link their settings. Without, the link is.
    """
    target = file.resolve() if follow else file
    make_private_folder(target.parent)
    draft = target.with_name(f".{target.name}.{os.urandom(4).hex()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(target)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(target)  # a full disk names nothing
        raise
