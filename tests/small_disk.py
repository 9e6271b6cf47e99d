"""A file system that is soon full, for tests of what is written then."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[Path]:
    """Mount a small file system at a folder, which is made; skips the test where that is not permitted."""
    place.mkdir(parents=True)
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place)]
    if subprocess.run(mounting, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system is not permitted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path) -> Path:
    """Fill a file system to its end; gives the file that does."""
    file = place / "full"
    with suppress(OSError), file.open("ab", buffering=0) as stream:
        for size in (65_536, 512):
            with suppress(OSError):
                while stream.write(bytes(size)) == size:
                    pass
    return file
