"""What a file with secrets shows in the sandbox: the text of the last commit, or nothing where git does not know it."""

import os
import subprocess
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

from treadle.workspace.private_file import write_private
from treadle.workspace.variables import HARDENED_GIT, child_variables, find_outside, path_outside

_PATIENCE = 2.0  # seconds
_LARGEST = 4 * 1024 * 1024  # bytes of one file
_EMPTY = "empty"
_REGULAR = (b"100644", b"100755")


def empty_file(folder: str) -> str:
    """Give the path of an empty file that can be read and not written."""
    path = Path(folder, _EMPTY)
    if not path.exists():
        write_private(path, b"", mode=0o400)
    return str(path)


class Committed:
    """The committed text of files, kept in a private folder; asked of git again when the commit is another one."""

    def __init__(self, root: str, folder: str) -> None:
        self._root = root
        self._folder = folder
        self._known: tuple[tuple[str, ...], str, tuple[tuple[str, str], ...]] | None = None

    def instead(self, secrets: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """Pair each file that the last commit has with a file of that text."""
        if not secrets or not os.path.lexists(f"{self._root}/.git"):
            return ()
        head = _head(self._root)
        if self._known is None or self._known[:2] != (secrets, head):
            self._known = (secrets, head, tuple(self._stored(secrets)) if head else ())
        return self._known[2]

    def _stored(self, secrets: tuple[str, ...]) -> Iterable[tuple[str, str]]:
        names = {os.path.relpath(path, self._root): path for path in secrets}
        listed = run_git(
            self._root, "ls-tree", "-z", "-r", "-l", "HEAD", "--", *(f":(literal){name}" for name in names)
        )
        for row in filter(None, listed.split(b"\0")):
            facts, _, name = row.partition(b"\t")
            mode, _, blob, size = facts.split()
            path = names.get(os.fsdecode(name))
            if path is None or mode not in _REGULAR or int(size) > _LARGEST:
                continue
            text = run_git(self._root, "cat-file", "blob", blob.decode())
            file = Path(self._folder, f"commit-{sha256(mode + text).hexdigest()[:32]}")
            if not file.exists():
                write_private(file, text, mode=0o500 if mode.endswith(b"755") else 0o400)
            yield path, str(file)


def _head(root: str) -> str:
    """Name the last commit: read from plain files, or else asked of git; empty where there is none."""
    repository = Path(root, ".git")
    try:
        text = (repository / "HEAD").read_text().strip()
        if text.startswith("ref: "):
            text = (repository / text.removeprefix("ref: ")).read_text().strip()
    except (OSError, ValueError):
        return run_git(root, "rev-parse", "--verify", "--quiet", "HEAD").decode().strip()
    return text


def run_git(root: str, *words: str, variables: Mapping[str, str] = HARDENED_GIT) -> bytes:
    """Run git outside of the sandbox so that it runs nothing of the repository; empty where it fails or takes long."""
    environment = {**child_variables(os.environ), **variables}
    environment["PATH"] = path_outside(environment.get("PATH", os.defpath), os.path.realpath(root))
    try:
        done = subprocess.run(
            (find_outside("git", os.path.realpath(root)), "-C", root, *words),
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return done.stdout if done.returncode == 0 else b""
