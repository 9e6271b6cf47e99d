"""What a file with secrets shows in the sandbox: the text of the last commit, or nothing where git does not know it."""

import os
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from treadle.protocol.errors import ToolError
from treadle.workspace.files.private_file import write_private
from treadle.workspace.sandbox.reading_git import AskGit

_LARGEST = 4 * 1024 * 1024  # bytes of one file
_MOST_IN_A_FOLDER = 1_000
_LINK, _LINKS = b"120000", "commit-120000-"
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

    def instead(self, secrets: tuple[str, ...], *, folders: bool = False) -> tuple[tuple[str, str], ...]:
        """Pair each file that the last commit has with a file of that text.

        With `folders` also those of which it has files: git takes what is missing there for deleted.
        """
        if not secrets or not os.path.lexists(f"{self._root}/.git"):
            return ()
        try:
            head = self._head()
            if self._known is None or self._known[:2] != (secrets, head):
                self._known = (secrets, head, tuple(self._stored(secrets)) if head else ())
        except ToolError:
            return ()
        return tuple(pair for pair in self._known[2] if folders or not Path(pair[1]).is_dir())

    def _stored(self, secrets: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        names = {os.path.relpath(path, self._root): path for path in secrets}
        listed = self._ask("ls-tree", "-z", "-r", "-l", "HEAD", "--", *(f":(literal){name}" for name in names))
        inside: dict[str, list[tuple[str, Path]]] = {}
        for row in filter(None, (listed or b"").split(b"\0")):
            facts, _, name = row.partition(b"\t")
            mode, _, blob, size = facts.split()
            path = os.fsdecode(name)
            # The size of what is missing is a word.
            above = next((one for one in names if path.startswith(f"{one}/")), "")
            is_known = mode in _REGULAR or (above and mode == _LINK)
            if not is_known or not size.isdigit() or int(size) > _LARGEST:
                continue
            if (path not in names and not above) or len(inside.get(above, ())) >= _MOST_IN_A_FOLDER:
                continue
            file = self._text(mode, blob.decode())
            if file is not None and above:
                inside.setdefault(above, []).append((path[len(above) + 1 :], file))
            elif file is not None:
                yield names[path], str(file)
        for above, files in inside.items():
            yield names[above], str(self._filled(files))

    def _text(self, mode: bytes, blob: str) -> Path | None:
        """Give a file with a committed text, by the name that git has for it; None where git does not give it."""
        file = Path(self._folder, f"commit-{mode.decode()}-{blob}")
        if not file.exists():
            text = self._ask("cat-file", "blob", blob)
            if text is None:
                return None
            write_private(file, text, mode=0o500 if mode.endswith(b"755") else 0o400)
        return file

    def _filled(self, files: list[tuple[str, Path]]) -> Path:
        """Give a folder with files by their names in it, each with a text."""
        told = "\0".join(f"{name}\0{file.name}" for name, file in files)
        folder = Path(self._folder, f"commit-{sha256(told.encode(errors='surrogateescape')).hexdigest()[:32]}")
        if folder.exists():
            return folder
        with tempfile.TemporaryDirectory(dir=self._folder) as place:
            for name, file in files:
                target = Path(place, "made", name)
                target.parent.mkdir(parents=True, exist_ok=True)
                if file.name.startswith(_LINKS):
                    target.symlink_to(file.read_text(errors="surrogateescape"))
                else:
                    target.hardlink_to(file)
            Path(place, "made").replace(folder)
        return folder

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
