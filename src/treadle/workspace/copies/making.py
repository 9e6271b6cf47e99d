"""Setting up a throw-away copy for one command: what is copied, how large it may become, and what goes around it."""

import marshal
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from treadle.workspace.commands.wrapping import Wrapping
from treadle.workspace.copies import overlay
from treadle.workspace.copies.caches import CACHES
from treadle.workspace.copies.staging import new_folder, remove_folder
from treadle.workspace.files.owners import Owner
from treadle.workspace.sandbox import Profile, SandboxState, prepare
from treadle.workspace.sandbox.profile import is_within

_LEAST, _MOST = 512 * 1024 * 1024, 1024 * 1024 * 1024
_MOST_FILES = 200_000
_MOST_CHANGES = 100_000


Masks = list[tuple[bytes, bytes | None]]
"""Paths in a root, and what a command reads there: other bytes, or an empty folder."""


@dataclass(frozen=True, slots=True)
class Copy:
    """The throw-away copy of one command: what goes around the command, and where its changes are read from."""

    folder: Path
    roots: tuple[str, ...]
    wrapping: Wrapping


def make_copy(
    profile: Profile,
    state: SandboxState,
    data: Path,
    *,
    shown: Mapping[str, bytes] | None = None,
    size: int = 0,
    holder: Owner | None = None,
) -> Copy:
    """Prepare a copy of the folders of `profile`, which bubblewrap shows in their place.

    What the profile masks in these folders reads as `shown` says by its path, else as empty; what it protects can be
    changed, in the copy. `size` bounds the copy in bytes; 0 chooses by the memory that is free. The command joins the
    namespaces of a `holder`. Nothing runs or is mounted yet. Raises `ToolError` or `OSError`.
    """
    folder = new_folder(data)
    inside = tuple(path for path in profile.masked if profile.root_of(path))
    masked = tuple(path for path in profile.masked if path not in inside)
    try:
        write_job(folder, profile.folders, [_masks(root, inside, shown or {}) for root in profile.folders], size)
        contents = tuple((root, f"{folder}/mount/{number}/all") for number, root in enumerate(profile.folders))
        shown_as = replace(profile, contents=contents, change_root=True, protected=(), masked=masked)
        around = prepare(shown_as, state, holder)
    except BaseException:
        remove_folder(folder)
        raise
    return Copy(folder, profile.folders, structs.replace(around, inner=(*copy_command(folder), *around.inner)))


def write_job(folder: Path, roots: Sequence[str], masks: Sequence[Masks], size: int = 0) -> None:
    """Write down what `overlay.py` is to copy."""
    size = size or default_size()
    job = {
        "roots": list(map(os.fsencode, roots)),
        "masks": list(masks),
        "size": size,
        "files": _MOST_FILES,
        "keep_bytes": size,
        "keep_entries": _MOST_CHANGES,
        "caches": frozenset(map(os.fsencode, CACHES)),
    }
    (folder / "mount").mkdir(mode=0o700)
    with os.fdopen(os.open(folder / "job", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        marshal.dump(job, file)


def copy_command(folder: Path) -> tuple[str, ...]:
    """Give the beginning of the command line that makes a copy."""
    return sys.executable, "-I", "-S", overlay.__file__, str(folder), "--"


def _masks(root: str, masked: tuple[str, ...], shown: Mapping[str, bytes]) -> Masks:
    """Say what stands in for the masked paths of a root, relative to it, the outermost only."""
    found: Masks = []
    last = ""
    for path in sorted({os.path.realpath(path) for path in masked if is_within(os.path.realpath(path), root)}):
        if path == root or not os.path.lexists(path) or (last and is_within(path, last)):
            continue
        last = path
        name = os.fsencode(path)[len(os.fsencode(root)) :].lstrip(b"/")
        found.append((name, None if Path(path).is_dir() else shown.get(path, b"")))
    return found


def default_size() -> int:
    """Bound a copy to a quarter of the memory that is free: half a gigabyte at least where it is there, one at most."""
    free = _free_memory()
    return max(min(_LEAST, free), min(_MOST, free // 4))


def _free_memory() -> int:
    """Read how many bytes of memory programs may take."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return _LEAST
