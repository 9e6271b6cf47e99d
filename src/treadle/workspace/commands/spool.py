"""The whole output of a command, kept in a file where it is long."""

import contextlib
import os
from pathlib import Path
from typing import IO

from treadle.workspace.files.private_file import make_private_folder


class Spool:
    """The whole output in a file, which is made only when the kept part overflows."""

    def __init__(self, path: Path, cap: int) -> None:
        self._path = path
        self._cap = cap
        self._early: list[bytes] = []
        self._file: IO[bytes] | None = None
        self._failed = False
        self._closed = False
        self._at_once = False
        self.size = 0

    @property
    def path(self) -> Path | None:
        """The file, when there is one."""
        return self._path if self._file is not None and not self._failed else None

    def add(self, data: bytes) -> None:
        """Take what came; after the end nothing comes."""
        if self._closed:
            return
        data = data[: max(0, self._cap - self.size)]
        self.size += len(data)
        if self._file is None:
            self._early.append(data)
            return
        try:
            self._file.write(data)
            if self._at_once:
                self._file.flush()
        except OSError:
            self._failed = True

    def open_for_others(self) -> None:
        """Make the file now, and from here on so that others can read all that came so far."""
        self._at_once = True
        self.open()
        self.flush()

    def open(self) -> None:
        """Move what came so far into the file. A full disk costs the file, not the command."""
        if self._file is not None or self._failed:
            return
        try:
            make_private_folder(self._path.parent)
            self._file = os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
            self._file.write(b"".join(self._early))
        except OSError:
            self._failed = True
        self._early.clear()
        if self._closed:
            self.close()

    def flush(self) -> None:
        """Make the file readable up to here."""
        if self._file is not None and not self._file.closed:
            with contextlib.suppress(OSError):
                self._file.flush()

    def close(self) -> None:
        self._closed = True
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
