"""The hash by which a file's content is known."""

import hashlib
from pathlib import Path

from treadle.workspace.names import logged_path


def hash_of_file(path: str) -> str:
    """Hash a file's bytes (SHA-256, hex) by the path that the log has for it; empty where there is no file."""
    try:
        with Path(logged_path(path)).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
