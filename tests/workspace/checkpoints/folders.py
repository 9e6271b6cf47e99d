"""Folders as values: what is in them, how they are changed at random, and a store beside one."""

import os
import shutil
import stat
from pathlib import Path

from hypothesis import strategies as st

from treadle.workspace.checkpoints.store import CheckpointStore, open_checkpoints

State = dict[bytes, tuple[str, bytes, int]]
"""By path: kind, bytes or target, rights."""


def state(root: Path) -> State:
    """Read all files and links but those in `.git` folders; folders count by what is in them."""
    found: State = {}
    for folder, folders, files in os.walk(os.fsencode(root)):
        links = [name for name in folders if os.path.islink(folder + b"/" + name)]
        folders[:] = [name for name in folders if name not in links and name != b".git"]
        for name in (*files, *links):
            full = folder + b"/" + name
            mode = os.lstat(full).st_mode
            path = os.path.relpath(full, os.fsencode(root))
            if stat.S_ISLNK(mode):
                found[path] = ("link", os.readlink(full), 0)
            elif stat.S_ISREG(mode):
                with open(full, "rb") as file:
                    found[path] = ("file", file.read(), mode & 0o777)
    return found


def everything(folder: Path) -> State:
    """Read a folder such as `.git`, with its own folders of that name."""
    return {
        os.fsencode(os.path.relpath(path, folder)): ("file", path.read_bytes(), path.stat().st_mode & 0o777)
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def opened(tmp: Path, **settings: bool | int) -> tuple[Path, CheckpointStore]:
    """Make a root and the store of its checkpoints."""
    root = tmp / "root"
    root.mkdir(exist_ok=True)
    return root, open_checkpoints(tmp / "data" / "store", str(root), **settings)  # type: ignore[arg-type]


_SPECIAL = [b"a", b"b", b"-rf", b".GIT", b"x\ny", b'q"q', b"\xff\xfe", b"\xc3\xa9", b" ", b"n" * 200, b".gitattributes"]
names = st.sampled_from(_SPECIAL) | st.binary(min_size=1, max_size=4).filter(
    lambda name: b"/" not in name and b"\0" not in name and name not in (b".", b"..", b".git")
)
paths = st.lists(names, min_size=1, max_size=3).map(b"/".join)
contents = st.sampled_from(
    [b"", b"one\n", b"one\r\ntwo\r\n", b"\0\1binary", b"$Id$\n", b"x" * 70_000, b"* text eol=crlf filter=bad ident\n"]
) | st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d"]), max_size=8).map(b"".join)
Edit = tuple[str, bytes, bytes, bytes, int]
edits = st.tuples(
    st.sampled_from(["write", "write", "append", "remove", "link", "mode", "rename", "fifo"]),
    paths,
    paths,
    contents,
    st.sampled_from([0o644, 0o755, 0o600, 0o664]),
)


def change(root: Path, edit: Edit) -> None:
    """Make one change as a person or a command would, whatever is in the way."""
    kind, path, other, content, mode = edit
    full, second = os.fsencode(root) + b"/" + path, os.fsencode(root) + b"/" + other
    there = os.path.lexists(full)
    plain = there and stat.S_ISREG(os.lstat(full).st_mode)
    if kind == "append" and plain:
        with open(full, "ab") as file:
            file.write(content)
    elif kind == "mode" and plain:
        os.chmod(full, mode)
    elif kind == "rename" and there and not (second + b"/").startswith(full + b"/"):
        if not (full + b"/").startswith(second + b"/"):
            clear(root, second)
            os.rename(full, second)
    elif kind == "remove" and there:
        clear(root, full)
    elif kind in ("write", "link", "fifo"):
        clear(root, full)
        if kind == "link":
            os.symlink(other, full)
        elif kind == "fifo":
            os.mkfifo(full)
        else:
            with open(full, "wb") as file:
                file.write(content)
            os.chmod(full, mode)


def clear(root: Path, full: bytes) -> None:
    """Make room for something: remove what is there, and files that are where its folders will be."""
    at = os.fsencode(root)
    for part in full[len(at) + 1 :].split(b"/")[:-1]:
        at += b"/" + part
        if os.path.lexists(at) and (os.path.islink(at) or not os.path.isdir(at)):
            os.unlink(at)
        os.makedirs(at, exist_ok=True)
    if os.path.isdir(full) and not os.path.islink(full):
        shutil.rmtree(full)
    elif os.path.lexists(full):
        os.unlink(full)
