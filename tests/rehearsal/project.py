"""The small repository that the sessions work in, and the tree that they should leave."""

import os
from pathlib import Path

Tree = dict[bytes, bytes]
"""Files by path; links and folders are left out."""

CHECK = b"""#!/bin/sh
if grep -q "limit = $1" src/limits.py; then echo "all 12 passed"; else echo "1 failed, 11 passed"; exit 1; fi
"""
SHELF = "".join(f"def price_{number}():\n    return {number * 10}\n\n\n" for number in range(20))
LONG = 200_000
GIANT = 2_000_000


def files() -> Tree:
    """The files of the repository."""
    return {
        b".gitignore": b"*.pyc\nbuild/\n",
        b"README.md": b"# Shelf\n\nPrices of what is on the shelf.\n\n## Use\n\n```\nsh tests/check.sh 1\n```\n",
        b"src/limits.py": b"limit = 1\nstep = 2\nname = 'shelf'\n",
        b"src/shelf.py": SHELF.encode(),
        b"src/orders.py": b"from shelf import price_1\n\n\ndef total(count):\n    return price_1() * count\n",
        b"docs/notes.md": "# Notes\n\n- größer\n- 価格\n".encode(),
        b"tests/check.sh": CHECK,
    }


def odd_files() -> Tree:
    """Files with names that are no text, or odd text."""
    names = [
        b"caf\xe9.txt",
        b"\xff\xfe",
        b"new\nline.txt",
        b"tab\t.txt",
        b" blank ",
        b"-rf",
        b"\xe2\x80\xae.txt",
        b"a'b\"c",
    ]
    return {b"odd/" + name: b"odd content\n" for name in names}


def giant() -> bytes:
    """A log of two megabytes."""
    line = b"2026-01-01T00:00:00 service=shelf level=info message=nothing-happened\n"
    return line * (GIANT // len(line))


def long_line() -> bytes:
    """One line of two hundred thousand characters."""
    return b'{"prices": [' + b"10, " * (LONG // 4) + b"10]}\n"


def lay_out(folder: Path, tree: Tree) -> None:
    """Write the files into a new repository, with a loop of links beside them."""
    _repository(folder / ".git")
    for path, data in tree.items():
        file = folder / os.fsdecode(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    (folder / "links").mkdir()
    (folder / "links" / "self").symlink_to("self")
    (folder / "links" / "up").symlink_to("..")
    (folder / "links" / "there").symlink_to("back")
    (folder / "links" / "back").symlink_to("there")


def tree_of(folder: Path) -> Tree:
    """Read the files of a folder."""
    found: Tree = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        files = (Path(place) / name for name in names)
        found.update(
            {os.fsencode(file.relative_to(folder)): file.read_bytes() for file in files if not file.is_symlink()}
        )
    return found


def _repository(folder: Path) -> None:
    """Make an empty repository: what `git init` leaves, without a process."""
    for name in ("objects", "refs/heads"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
