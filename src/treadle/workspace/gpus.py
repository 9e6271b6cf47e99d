"""The devices of the GPUs of this machine, which commands get only where the user wants that."""

import stat
from collections.abc import Iterator
from pathlib import Path

_PATTERNS = ("nvidia*", "dri", "kfd")
_DEV = Path("/dev")


def gpu_devices(folder: Path = _DEV) -> tuple[str, ...]:
    """Give the devices, and folders of them, that are there: those of NVIDIA, of the kernel's own drivers, of AMD."""
    return tuple(sorted(_found(folder)))


def _found(folder: Path) -> Iterator[str]:
    for path in (path for pattern in _PATTERNS for path in folder.glob(pattern)):
        try:
            mode = path.lstat().st_mode
        except OSError:
            continue
        if stat.S_ISCHR(mode) or stat.S_ISDIR(mode):
            yield str(path)


def gpu_words(devices: tuple[str, ...]) -> str:
    """Say which devices commands get."""
    return f"Commands can use the GPU devices {', '.join(devices)}." if devices else ""
