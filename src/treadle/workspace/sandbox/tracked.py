"""What a file with secrets shows in the sandbox: the text of the last commit, or nothing where git does not know it."""

import os
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain
from pathlib import Path

from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.workspace.files.private_file import write_private
from treadle.workspace.sandbox.reading_git import AskGit

_LARGEST = 4 * 1024 * 1024  # bytes of one file
_MOST_IN_A_FOLDER, _MOST_NAMED = 5_000, 500
_REGULAR, _LINK, _REPOSITORY = ("100644", "100755"), "120000", "160000"


class _Entry(Struct, frozen=True, kw_only=True):
    """What a commit has of a secret: of itself, or by a `name` of what is in it; `size` is -1 where that is missing."""

    secret: str
    name: str
    mode: str
    blob: str
    size: int

    @property
    def has_text(self) -> bool:
        """Whether there is a text, and not too large a one."""
        return 0 <= self.size <= _LARGEST and (self.mode in _REGULAR or (bool(self.name) and self.mode == _LINK))


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

        With `folders` also those of which it has files: git takes what is missing there for deleted. So `ToolError` is
        raised then where git does not say what it has.
        """
        if not secrets or not os.path.lexists(f"{self._root}/.git"):
            return ()
        try:
            head = self._head()
            if self._known is None or self._known[:2] != (secrets, head):
                self._known = (secrets, head, tuple(self._stored(secrets)) if head else ())
        except ToolError:
            if folders and any(map(os.path.isdir, secrets)):
                raise
            return ()
        return tuple(pair for pair in self._known[2] if folders or not Path(pair[1]).is_dir())

    def _stored(self, secrets: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        inside: dict[str, list[_Entry]] = {}
        alone: list[_Entry] = []
        for one in self._entries(secrets):
            (inside.setdefault(one.secret, []) if one.name else alone).append(one)
        with_text = [*alone, *chain.from_iterable(files[:_MOST_IN_A_FOLDER] for files in inside.values())]
        self._keep({self._file(one): one for one in with_text if one.has_text and not self._file(one).exists()})
        yield from ((one.secret, str(self._file(one))) for one in alone if self._file(one).exists())
        yield from ((folder, str(self._filled(files))) for folder, files in inside.items())

    def _entries(self, secrets: tuple[str, ...]) -> Iterator["_Entry"]:
        """Give what the last commit has of the files and folders. Raises `ToolError`."""
        names = {os.path.relpath(path, self._root): path for path in secrets}
        every = [f":(literal){name}" for name in names]
        for at in range(0, len(every), _MOST_NAMED):
            listed = self._ask("ls-tree", "-z", "-r", "-l", "HEAD", "--", *every[at : at + _MOST_NAMED])
            if listed is None:
                raise ToolError(f"Git did not say what of {self._root} is in the last commit. Tell the user.")
            for row in filter(None, listed.split(b"\0")):
                facts, _, name = row.partition(b"\t")
                mode, _, blob, size = facts.decode().split()
                path = os.fsdecode(name)
                above = next(one for one in (path, *map(str, Path(path).parents)) if one in names)
                # The size of what is missing is a word.
                length = int(size) if size.isdigit() else -1
                yield _Entry(secret=names[above], name=path[len(above) + 1 :], mode=mode, blob=blob, size=length)

    def _file(self, one: "_Entry") -> Path:
        return Path(self._folder, f"commit-{one.mode}-{one.blob}")

    def _keep(self, wanted: Mapping[Path, "_Entry"]) -> None:
        """Write the texts that git gives: of many at a time, as each time a sandbox is set up."""
        some: list[_Entry] = []
        for one in wanted.values():
            if len(some) == _MOST_NAMED or sum(each.size for each in some) + one.size > _LARGEST:
                self._keep_some(some)
                some = []
            some.append(one)
        self._keep_some(some)

    def _keep_some(self, some: Sequence["_Entry"]) -> None:
        text = self._ask("show", *(one.blob for one in some)) if some else b""
        if text is not None and len(text) == sum(one.size for one in some):
            for one in some:
                write_private(self._file(one), text[: one.size], mode=0o500 if one.mode.endswith("755") else 0o400)
                text = text[one.size :]
        elif len(some) > 1:  # it is only one of them that git does not give
            self._keep_some(some[: len(some) // 2])
            self._keep_some(some[len(some) // 2 :])

    def _filled(self, files: Sequence["_Entry"]) -> Path:
        """Give a folder with files by their names; what has no text is there, too, and git adds it to no commit."""
        known = {one: file for one in files if (file := self._file(one)).exists()}
        told = "\0".join(f"{one.name}\0{one.mode if one in known else ''}\0{one.blob}" for one in files)
        folder = Path(self._folder, f"commit-{sha256(told.encode(errors='surrogateescape')).hexdigest()[:32]}")
        if folder.exists():
            return folder
        with tempfile.TemporaryDirectory(dir=self._folder) as place:
            for one in files:
                target = Path(place, "made", one.name)
                target.parent.mkdir(parents=True, exist_ok=True)
                if one.mode == _REPOSITORY:
                    target.mkdir()
                elif one not in known:
                    os.mknod(target, stat.S_IFSOCK | 0o400)
                elif one.mode == _LINK:
                    target.symlink_to(known[one].read_text(errors="surrogateescape"))
                else:
                    target.hardlink_to(known[one])
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
