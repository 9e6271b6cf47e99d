"""The hash by which a file's content is known."""

import hashlib
from pathlib import Path


def hash_of_file(path: str) -> str:
    """Hash a file's bytes (SHA-256, hex); empty where there is no file."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
