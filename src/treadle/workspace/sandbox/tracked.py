"""What a file with secrets shows in the sandbox: the text of the last commit, or nothing where git does not know it."""

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from treadle.protocol.errors import ToolError
from treadle.workspace.files.private_file import write_private
from treadle.workspace.sandbox.reading_git import AskGit

_LARGEST = 4 * 1024 * 1024  # bytes of one file
_REGULAR = (b"100644", b"100755")


class Committed:
    """The committed text of files, kept in a private folder; asked of git again when the commit is another one.

    A file of which git does not give the text, such as one whose data are missing, is not known.
    """

    def __init__(self, root: str, folder: str, ask: AskGit) -> None:
        self._root = root
        self._folder = folder
        self._ask = ask
        self._known: tuple[tuple[str, ...], str, tuple[tuple[str, str], ...]] | None = None

    def instead(self, secrets: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """Pair each file that the last commit has with a file of that text."""
        if not secrets or not os.path.lexists(f"{self._root}/.git"):
            return ()
        try:
            head = self._head()
            if self._known is None or self._known[:2] != (secrets, head):
                self._known = (secrets, head, tuple(self._stored(secrets)) if head else ())
        except ToolError:
            return ()
        return self._known[2]

    def _stored(self, secrets: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        names = {os.path.relpath(path, self._root): path for path in secrets}
        listed = self._ask("ls-tree", "-z", "-r", "-l", "HEAD", "--", *(f":(literal){name}" for name in names))
        for row in filter(None, (listed or b"").split(b"\0")):
            facts, _, name = row.partition(b"\t")
            mode, _, blob, size = facts.split()
            path = names.get(os.fsdecode(name))
            # The size of what is missing is a word.
            if path is None or mode not in _REGULAR or not size.isdigit() or int(size) > _LARGEST:
                continue
            text = self._ask("cat-file", "blob", blob.decode())
            if text is None:
                continue
            file = Path(self._folder, f"commit-{sha256(mode + text).hexdigest()[:32]}")
            if not file.exists():
                write_private(file, text, mode=0o500 if mode.endswith(b"755") else 0o400)
            yield path, str(file)

    def _head(self) -> str:
        """Name the last commit: read from plain files, or else asked of git; empty where there is none."""
        repository = Path(self._root, ".git")
        try:
            text = (repository / "HEAD").read_text().strip()
            if text.startswith("ref: "):
                text = (repository / text.removeprefix("ref: ")).read_text().strip()
        except (OSError, ValueError):
            return (self._ask("rev-parse", "--verify", "--quiet", "HEAD") or b"").decode().strip()
        return text
