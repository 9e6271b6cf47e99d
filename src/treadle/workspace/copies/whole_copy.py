"""A whole copy of a folder, with its repository: nothing that is done in it reaches the folder itself.

Files share their blocks with the originals where the file system can (reflinks), else their bytes are copied. Only
objects of git that nobody may write have a second name instead of a copy, as git never writes into one again. Caches
that tools make again by themselves are left out.
"""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from treadle.workspace.checkpoints.scanning import FOLDER_FLAGS, MODE_BITS, READ_FLAGS
from treadle.workspace.copies.caches import CACHES
from treadle.workspace.files.names import shown_name
from treadle.workspace.files.private_file import write_private
from treadle.workspace.files.walking import walk
from treadle.workspace.files.whole_folders import copy_tree, remove_tree

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CLONE = 0x40049409
"""FICLONE of Linux, `linux/fs.h`: give a file the blocks of another one."""

_CHUNK = 16 * 1024 * 1024
_DEEPEST = 200
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""Why nothing more can be written: another way of copying would fail, too."""

_OWN = (
    *("index", "config.worktree", "rebase-apply", "rebase-merge", "sequencer"),
    *("info/sparse-checkout", "logs/HEAD", "refs/bisect", "refs/rewritten", "refs/worktree"),
)
"""What each worktree has by itself, besides names in capitals such as `MERGE_HEAD` (gitrepository-layout(5))."""

_PASSING = ("_HEAD", "_EDITMSG", "_MSG", ".lock", "gc.pid")
"""How files of a repository end that are of one command."""


class WholeCopy(Struct, frozen=True, kw_only=True):
    """What came of a copy: `notes` name what is not in it as it is in the folder, `repositories` each `.git` in it.

    It is the `same` where it has all that is in the folder, and no link in it another target.
    """

    notes: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()
    same: bool = True


def never() -> bool:
    """Say that nobody wants a copy stopped."""
    return False


def copy_folder(
    source: Path,
    target: Path,
    moved: Mapping[str, str],
    *,
    leave_out: Path | None = None,
    shares: bool = True,
    stopped: Callable[[], bool] = never,
) -> WholeCopy:
    """Copy a folder to one that is not there; both absolute and resolved. Raises `OSError`, once it is `stopped`, too.

    `moved` gives for each folder that is copied where it goes: an absolute link into one leads into its copy. The
    folder `leave_out` in it, absolute and resolved, is not copied. Unless it `shares`, no file gets a second name.
    """
    copier = _Copier(source, target, moved, stopped)
    copier.shares = shares
    if leave_out is not None and leave_out.is_relative_to(source):
        copier.leave_out = str(leave_out.relative_to(source))
    copier.copy()
    return WholeCopy(notes=tuple(copier.notes), repositories=tuple(copier.repositories), same=copier.same)


def retargeted(link: str, moved: Mapping[str, str]) -> str:
    """Give the target of a link in the copy; relative ones, and what leads elsewhere, stay."""
    if not link.startswith("/"):
        return link
    plain = os.path.normpath(link)
    for old, new in moved.items():
        if plain == old or plain.startswith(f"{old}/"):
            return new + plain[len(old) :]
    return link


class _Copier:
    def __init__(self, source: Path, target: Path, moved: Mapping[str, str], stopped: Callable[[], bool]) -> None:
        self.source = source
        self.target = target
        self.moved = moved
        self.stopped = stopped
        self.same = True
        self.notes: list[str] = []
        self.repositories: list[str] = []
        self.clones = True
        self.shares = True
        self.leave_out = ""

    def copy(self) -> None:
        """Copy all of it; what cannot be read is named."""
        fd = os.open(self.source, FOLDER_FLAGS)
        try:
            self.target.mkdir(mode=0o700)
            self._folder(fd, f"{self.target}/", "", in_git=False)
            _finish(self.target, os.fstat(fd))
        finally:
            os.close(fd)

    def _folder(self, fd: int, target: str, path: str, *, in_git: bool) -> None:
        """Copy what is in a folder; `target` ends with a slash, `path` too, or is empty."""
        with os.scandir(fd) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            name = path + entry.name
            if name == self.leave_out:
                continue
            if self.stopped():
                raise InterruptedError(errno.ECANCELED, "It was stopped")
            try:
                self._entry(entry, fd, target + entry.name, name, in_git=in_git)
            except FileNotFoundError:
                remove_tree(Path(target + entry.name))  # it went meanwhile
                self.same = False
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENOTDIR, errno.EIO):
                    raise
                remove_tree(Path(target + entry.name))  # no half of it stays
                self._lack(name, error.strerror or str(error))

    def _entry(self, entry: "os.DirEntry[str]", fd: int, target: str, name: str, *, in_git: bool) -> None:
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            self._link(os.readlink(entry.name, dir_fd=fd), Path(target), name)
        elif stat.S_ISDIR(status.st_mode):
            if not in_git and _is_cache(entry.name, fd):
                self.same = False
                return
            if name.count("/") > _DEEPEST:
                raise OSError(errno.ELOOP, "it is too deep in folders")
            below = os.open(entry.name, FOLDER_FLAGS, dir_fd=fd)
            try:
                new = Path(target)
                new.mkdir(mode=0o700)
                self._folder(below, f"{target}/", f"{name}/", in_git=in_git or entry.name == ".git")
                if entry.name == ".git" and not in_git:
                    self._own_repository(new, self.source / name)
                    self.repositories.append(name)
                _finish(new, status)
            finally:
                os.close(below)
        elif stat.S_ISREG(status.st_mode):
            if entry.name == ".git" and not in_git and self._pointer(Path(target), name):
                self.repositories.append(name)
                return
            shares = self.shares and in_git and "/objects/" in f"/{name}" and not status.st_mode & 0o222
            self._file(entry.name, fd, target, shares=shares)
        else:
            self._lack(name, "it is a pipe, a socket or a device")

    def _link(self, link: str, target: Path, name: str) -> None:
        new = retargeted(link, self.moved)
        self.same = self.same and new == link
        target.symlink_to(new)
        inside = os.path.normpath(self.source / Path(name).parent / link)
        if new == link and not any(inside == old or inside.startswith(f"{old}/") for old in self.moved):
            self._note(name, f"it is a link out of the folder, to {shown_name(link)}")

    def _file(self, name: str, fd: int, target: str, *, shares: bool) -> None:
        source = os.open(name, READ_FLAGS, dir_fd=fd)
        try:
            status = os.fstat(source)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EIO, "it is a pipe, a socket or a device")
            if shares and not self.clones and self._second_name(name, fd, target):
                return
            new = os.open(target, _NEW, 0o600)
            try:
                if not (self.clones and self._cloned(source, new)):
                    _copy_bytes(source, new)
                os.fchmod(new, status.st_mode & MODE_BITS)
                os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
            finally:
                os.close(new)
        finally:
            os.close(source)

    def _cloned(self, source: int, new: int) -> bool:
        try:
            fcntl.ioctl(new, _CLONE, source)
        except OSError as error:
            if error.errno in _FULL:
                raise
            self.clones = False
            return False
        return True

    def _second_name(self, name: str, fd: int, target: str) -> bool:
        try:
            os.link(name, target, src_dir_fd=fd, follow_symlinks=False)
        except OSError as error:
            if error.errno in _FULL:
                raise
            return False
        return True

    def _own_repository(self, git: Path, source: Path) -> None:
        """Make the copy of a repository stand by itself: no way in it leads back to the folder."""
        alternates = git / "objects/info/alternates"
        inside = alternates.resolve().is_relative_to(git.resolve())  # not through a link
        if inside and (found := _words_of(alternates)) is not None:
            lines = [line for line in found.splitlines() if line and line[0] != "#"]
            absolute = "".join(f"{os.path.normpath(source / 'objects' / line)}\n" for line in lines)
            write_private(alternates, os.fsencode(absolute), mode=0o644, follow=False)
        # The files and branches of other worktrees of this repository are not in the copy.
        remove_tree(git / "worktrees")
        _amend_config(git)

    def _pointer(self, target: Path, name: str) -> bool:
        """Turn a `.git` that names another folder into a repository, unless that folder is copied along.

        Gives whether it is one: a file of that name may be anything.
        """
        place = self.source / name
        words = (_words_of(place) or "")[:4096]
        if not words.startswith("gitdir:"):
            return False
        git = Path(os.path.realpath(place.parent / words.removeprefix("gitdir:").strip()))
        if not git.exists():
            return False
        common = git
        if (shared := _words_of(git / "commondir")) is not None:
            common = Path(os.path.realpath(git / shared.strip()))
        if common == git and (inside := retargeted(str(git), self.moved)) != str(git):
            relative = os.path.relpath(inside, target.parent)
            target.write_text(f"gitdir: {relative}\n", errors="surrogateescape")
            return True
        self._repository_from(common, git, target, name)
        self._note(name, "its repository lies outside of the folder; the copy has one of its own")
        return True

    def _repository_from(self, common: Path, git: Path, target: Path, name: str) -> None:
        """Copy the data of a repository, as a worktree or a submodule uses it, to be one of its own."""
        whole = _Copier(common, target, {}, self.stopped)
        whole.clones, whole.shares = self.clones, self.shares
        fd = os.open(common, FOLDER_FLAGS)
        try:
            target.mkdir(mode=0o700)
            whole._folder(fd, f"{target}/", "", in_git=True)
        finally:
            os.close(fd)
        self.same = self.same and whole.same
        self.notes += (f"{shown_name(name)}/{note}" for note in whole.notes)
        if git != common:
            _take_own_state(git, target)
        self._own_repository(target, common)

    def _lack(self, name: str, why: str) -> None:
        self.same = False
        self._note(name, f"it is not in the copy: {why}")

    def _note(self, name: str, why: str) -> None:
        self.notes.append(f"{shown_name(name)}: {why}")


def _is_cache(name: str, fd: int) -> bool:
    """Whether a folder holds nothing but what a tool makes again by itself: it says so, or Python's compiled files."""
    if name not in CACHES:
        return False
    try:
        os.stat(f"{name}/CACHEDIR.TAG", dir_fd=fd, follow_symlinks=False)
    except OSError:
        return name == "__pycache__"
    return True


def _finish(folder: Path, status: os.stat_result) -> None:
    """Give a folder the rights and the time of its original, once all is in it; its owner can always work in it."""
    folder.chmod(status.st_mode & MODE_BITS | 0o700)
    os.utime(folder, ns=(status.st_atime_ns, status.st_mtime_ns))


def _copy_bytes(source: int, new: int) -> None:
    """Copy within the kernel where that can be done."""
    try:
        while os.copy_file_range(source, new, _CHUNK):
            pass
    except (AttributeError, OSError) as error:
        if getattr(error, "errno", None) in _FULL:
            raise
        os.lseek(source, 0, os.SEEK_SET)
        os.ftruncate(new, 0)
        os.lseek(new, 0, os.SEEK_SET)
        while data := os.read(source, _CHUNK):
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(new, rest) :]


def _take_own_state(git: Path, target: Path) -> None:
    """Give a copied repository the state of a worktree in place of the main one's, such as that of a merge."""
    for one in _own_state(target):
        if one.parent.resolve().is_relative_to(target.resolve()):  # not through a link
            remove_tree(one)
    for one in _own_state(git):
        new = target / one.relative_to(git)
        if not os.path.lexists(one) or not new.parent.resolve().is_relative_to(target.resolve()):
            continue
        new.parent.mkdir(parents=True, exist_ok=True)
        if one.is_dir():
            copy_tree(one, new)
        else:
            new.write_bytes(one.read_bytes())


def _own_state(git: Path) -> list[Path]:
    """Name what each worktree has by itself, there or not."""
    return [*(one for one in git.iterdir() if one.name.isupper()), *(git / name for name in _OWN)]


def _amend_config(git: Path) -> None:
    """Take out of a repository's settings where its files are: they are beside it now."""
    config = git / "config"
    if (found := _words_of(config)) is None:
        return
    lines = found.split("\n")
    kept = [line for line in lines if not _is_place(line)]
    if kept != lines:
        write_private(config, os.fsencode("\n".join(kept)), mode=0o644, follow=False)


def _words_of(file: Path) -> str | None:
    """Read a file of a repository; None where there is none."""
    try:
        return os.fsdecode(file.read_bytes())
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None


def _is_place(line: str) -> bool:
    name, _, value = (part.strip().casefold() for part in line.partition("="))
    return name == "worktree" or (name == "bare" and value == "true")


def repository_state(git: Path) -> dict[str, bytes]:
    """Give what a repository says of itself: its branches, settings and hooks by path; not its objects or its index."""
    if git.is_file():
        with contextlib.suppress(OSError):
            return {"": git.read_bytes()}
    found = dict(_repository_files(git))
    for packed in [name for name in found if name.rpartition("/")[2] == "packed-refs"]:
        # That branches were packed changes none of them.
        above = packed.removesuffix("packed-refs")
        for line in found.pop(packed).splitlines():
            digest, _, name = line.partition(b" ")
            if not line.startswith((b"#", b"^")):
                found.setdefault(above + os.fsdecode(name), digest + b"\n")
    return found


def _repository_files(git: Path) -> Iterator[tuple[str, bytes]]:
    for folder, folders, files in walk(git):
        below = os.path.relpath(folder, git)
        is_repository = {"objects", "refs"} <= set(folders)  # itself, or that of a submodule
        if is_repository:
            folders[:] = [name for name in folders if name not in ("objects", "logs", "lfs")]
        folders.sort()
        for name in sorted(files):
            if is_repository and (name == "index" or name.endswith(_PASSING)):
                continue
            if name == "refs" and below.rpartition("/")[2] == "info":
                continue
            with contextlib.suppress(OSError):
                file = Path(folder, name)
                data = os.fsencode(file.readlink()) if file.is_symlink() else file.read_bytes()
                yield os.path.normpath(f"{below}/{name}"), data
