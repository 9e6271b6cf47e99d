"""File views for tests: one in memory, one over the real file system; and where the shared cases lie."""

import json
import os
import posixpath
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from treadle.policy.decision_context import FileFacts, FileKind, PolicyContext
from treadle.policy.rules import Ruleset
from treadle.protocol.permissions import Mode

Record = Callable[[str, object], None]
"""Takes a figure for the end of the run, as `record_property` does."""

HOME = "/home/user"
ROOT = "/home/user/ws"
CASES = Path(os.environ.get("TREADLE_CASES", Path(__file__).resolve().parents[3] / "shared" / "cases"))


@dataclass(frozen=True)
class MemoryView:
    """Files by absolute path: text, or None for a directory; `links` point elsewhere; `counts` are hard links.

    `owners` are other users, by number.
    """

    files: Mapping[str, str | None] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    owners: Mapping[str, int] = field(default_factory=dict)

    def resolve(self, path: str) -> str:
        if not self.links:  # tables of thousands of lines ask this
            return posixpath.normpath("/" + posixpath.normpath(path).strip("/"))
        done = "/"
        for part in posixpath.normpath(path).strip("/").split("/"):
            done = posixpath.join(done, part)
            done = self.links.get(done, done)
        return posixpath.normpath(done)

    def facts(self, path: str) -> FileFacts | None:
        if path in self.links:
            return FileFacts(kind=FileKind.LINK)
        if path not in self.files:
            return None
        kind = FileKind.DIRECTORY if self.files[path] is None else FileKind.FILE
        return FileFacts(kind=kind, links=self.counts.get(path, 1), uid=self.owners.get(path, 0), mode=0o755)

    def names(self, path: str) -> tuple[str, ...] | None:
        prefix = path.rstrip("/") + "/"
        found = {name[len(prefix) :].split("/")[0] for name in (*self.files, *self.links) if name.startswith(prefix)}
        return tuple(sorted(found))

    def read_config(self, path: str) -> str | None:
        return self.files.get(path)

    def read_index(self, path: str) -> bytes | None:
        return os.fsencode(self.files.get(path) or "")


class RealView:
    """The file system as it is."""

    def resolve(self, path: str) -> str:
        return os.path.realpath(path)

    def facts(self, path: str) -> FileFacts | None:
        try:
            found = os.lstat(path)
        except (OSError, ValueError):
            return None
        kinds = {stat.S_IFLNK: FileKind.LINK, stat.S_IFDIR: FileKind.DIRECTORY, stat.S_IFREG: FileKind.FILE}
        return FileFacts(
            kind=kinds.get(stat.S_IFMT(found.st_mode), FileKind.OTHER),
            links=found.st_nlink,
            uid=found.st_uid,
            mode=stat.S_IMODE(found.st_mode),
            inode=(found.st_dev, found.st_ino),
        )

    def names(self, path: str) -> tuple[str, ...] | None:
        try:
            return tuple(entry.name for entry in Path(path).iterdir())
        except OSError:
            return ()

    def read_config(self, path: str) -> str | None:
        try:
            return Path(path).read_text()
        except (OSError, ValueError):
            return None

    def read_index(self, path: str) -> bytes | None:
        try:
            return Path(path).read_bytes()
        except (OSError, ValueError):
            return b""


def context(mode: Mode = Mode.ASK, files: MemoryView | None = None, **changes: Any) -> PolicyContext:
    """A trusted workspace at `ROOT` with nothing in it, unless said otherwise."""
    settings: dict[str, Any] = {"roots": (ROOT,), "trusted": True, "rules": Ruleset(), **changes}
    return PolicyContext(mode=mode, files=files or MemoryView(), home=HOME, **settings)


def labelled(name: str) -> list[dict[str, Any]]:
    """The labelled cases of one file; skips the test where they are missing."""
    path = CASES / name
    if not path.exists():
        pytest.skip(f"the labelled cases are not here: {path}")
    return [json.loads(line) for line in path.read_text().splitlines()]
