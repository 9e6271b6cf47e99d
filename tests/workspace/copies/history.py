"""Random histories of file operations: run by this file as a program, bare or in a copy, with the same outcome.

`python history.py SEED COUNT make` makes a tree in the current directory, `... change` changes it.
"""

import contextlib
import os
import random
import sys

_NAMES = [
    *(b"a", b"b", b"c", b"src", b"deep", b"-rf", b"two words", b"line\nbreak", b"\xff\xfe", "é".encode(), b"*", b":"),
    *(
        b",",
        b"\\",
        b".hidden",
        b"CON",
        b"tab\t",
        b"quote'\"",
        b"n" * 200,
        b"=x",
        b"user.overlay.opaque",
        b"up",
        b"work",
    ),
]
_FILE_MODES = (0o644, 0o600, 0o755, 0o444, 0o000, 0o777, 0o4755)
_FOLDER_MODES = (0o755, 0o700, 0o777, 0o555, 0o000, 0o1777)


def _remove_tree(path: bytes) -> None:
    """Remove a folder in an order of its own: where one cannot be, the same must be left everywhere."""
    for name in sorted(os.listdir(path)):
        below = os.path.join(path, name)
        if os.path.isdir(below) and not os.path.islink(below):
            _remove_tree(below)
        else:
            os.unlink(below)
    os.rmdir(path)


class _History:
    """Chooses operations; what cannot be done is left out, as a program would that goes on."""

    def __init__(self, seed: str, *, links: bool) -> None:
        self.random = random.Random(seed)
        self.links = links

    def some(self, *, folders: bool) -> bytes:
        """Choose a path: often one that is there, sometimes a new one."""
        there = [b"."]
        for folder, names, files in os.walk(b"."):
            names.sort()
            there += [os.path.join(folder, name) for name in (*names, *sorted(files))]
        chosen = self.random.choice(there)
        if self.random.random() < 0.4:
            above = chosen if os.path.isdir(chosen) else os.path.dirname(chosen)
            return os.path.join(above, self.random.choice(_NAMES))
        if folders and not os.path.isdir(chosen):
            return os.path.dirname(chosen) or b"."
        return chosen

    def bytes(self) -> bytes:
        """Choose a content."""
        kind = self.random.random()
        if kind < 0.15:
            return b""
        if kind < 0.3:
            return self.random.randbytes(self.random.choice((1, 100, 70_000)))
        return b"".join(b"line %d\n" % self.random.randrange(50) for _ in range(self.random.randrange(30)))

    def step(self) -> None:
        """Do one thing."""
        doing = self.random.choice(
            [
                *(self.write, self.write, self.append, self.truncate, self.delete, self.rename, self.make_folder),
                *(
                    self.remove_folder,
                    self.replace_folder,
                    self.link,
                    self.chmod,
                    self.hard_link,
                    self.deepen,
                    self.touch,
                ),
            ]
        )
        if doing == self.hard_link and not self.links:
            return  # the first write to one of several names of the original breaks them apart in a copy
        with contextlib.suppress(OSError):
            doing()

    def write(self) -> None:
        path, data = self.some(folders=False), self.bytes()
        with open(path, "wb") as file:
            file.write(data)

    def append(self) -> None:
        path, data = self.some(folders=False), self.bytes()
        with open(path, "ab") as file:
            file.write(data)

    def truncate(self) -> None:
        path, size = self.some(folders=False), self.random.randrange(200)
        os.truncate(path, size)

    def delete(self) -> None:
        os.unlink(self.some(folders=False))

    def rename(self) -> None:
        old, new = self.some(folders=False), self.some(folders=False)
        if not os.path.isdir(old) or os.path.islink(old):
            os.rename(old, new)

    def make_folder(self) -> None:
        os.mkdir(self.some(folders=False))

    def remove_folder(self) -> None:
        path = self.some(folders=True)
        if path != b".":
            _remove_tree(path) if self.random.random() < 0.5 else os.rmdir(path)

    def replace_folder(self) -> None:
        path, names = self.some(folders=True), [self.random.choice(_NAMES) for _ in range(2)]
        data = self.bytes()
        if path == b".":
            return
        if os.path.isdir(path) and not os.path.islink(path):
            _remove_tree(path)
        os.mkdir(path)
        for name in names:
            with open(os.path.join(path, name), "wb") as file:
                file.write(data)

    def link(self) -> None:
        target = self.random.choice(_NAMES)
        if self.random.random() < 0.3:
            target = os.path.join(self.random.choice(_NAMES), target)
        os.symlink(target, self.some(folders=False))

    def chmod(self) -> None:
        path = self.some(folders=False)
        modes = _FOLDER_MODES if os.path.isdir(path) else _FILE_MODES
        mode = self.random.choice(modes)
        if path != b"." or mode & 0o700 == 0o700:
            os.chmod(path, mode & 0o777)

    def hard_link(self) -> None:
        os.link(self.some(folders=False), self.some(folders=False), follow_symlinks=False)

    def deepen(self) -> None:
        path = self.some(folders=True)
        for _ in range(self.random.randrange(12)):
            path = os.path.join(path, self.random.choice(_NAMES[:5]))
        os.makedirs(path)

    def touch(self) -> None:
        path = self.some(folders=False)
        os.utime(path, (1, self.random.randrange(10**9)))


def main() -> None:
    seed, count, doing = sys.argv[1:]
    os.umask(0o022)
    history = _History(f"{seed} {doing}", links=doing == "change")
    for _ in range(int(count)):
        history.step()


if __name__ == "__main__":
    main()
