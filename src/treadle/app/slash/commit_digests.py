"""Says whether a file to be committed is still as a person was shown it."""

import os
import stat
from collections.abc import Mapping
from hashlib import file_digest, sha256
from pathlib import Path

from treadle.protocol.errors import ConfigError
from treadle.workspace.files.names import shown_name

_LARGE = 50_000_000
"""Bytes from which on a file is known by its size and time, since it would take long to read."""


def shown_digest(root: str, path: str, beside: str) -> str:
    """Give what another content, kind or mode of a file changes, or what is `beside` it, such as the commit before."""
    file = Path(root, path)
    try:
        found = file.lstat()
        kept = f"{found.st_mode} {_content(file, found)}"
    except OSError:  # it is deleted, or cannot be read, which git says by itself
        kept = ""
    return sha256(f"{beside} {kept}".encode()).hexdigest()


def require_shown(root: str, digests: Mapping[str, str], beside: str) -> None:
    """Raise `ConfigError` where a file is not as it was when a person chose it."""
    changed = [shown_name(path) for path, digest in digests.items() if shown_digest(root, path, beside) != digest]
    if changed:
        raise ConfigError(
            "commit-changed",
            f"{changed[0]} is not as it was listed. Nothing was committed.",
            why=f"It, or the last commit, has changed since. So have {len(changed) - 1} more of the chosen files."
            if changed[1:]
            else "It, or the last commit, has changed since.",
            fix="Look again at the files, then commit.",
        )


def _content(file: Path, found: os.stat_result) -> str:
    if stat.S_ISLNK(found.st_mode):
        return sha256(os.fsencode(file.readlink())).hexdigest()
    if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGE:
        return f"{found.st_size} {found.st_mtime_ns}"
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()
