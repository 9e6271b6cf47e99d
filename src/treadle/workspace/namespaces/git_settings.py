"""_Settings that calls of git write into a repository, written by Treadle: no command writes git's configuration.

Only who commits and what a branch follows can be written, and only as plain text. Git itself works on a private copy
of the file alone; what comes of that is written into the file under git's own lock, and no link is followed on the way.
"""

import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from treadle.protocol.errors import ToolError

_USER = frozenset({"user.name", "user.email", "user.signingkey", "user.useconfigonly"})
_BRANCH = frozenset({"remote", "merge", "rebase", "description"})
_REBASE = frozenset({"true", "false", "yes", "no", "on", "off", "1", "0", "merges", "interactive"})
_LONGEST, _LARGEST = 1_000, 1_000_000
_SECONDS = 10.0
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_REF = re.compile(r"(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)))(?!-)[^\s~^:?*\[\\/.][^\s~^:?*\[\\]*")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OPTION = re.compile("-")
_NAMED = b"gitdir: "
_TAKE_VALUES = frozenset({"-o", "--push-option", "--repo", "--receive-pack", "--exec"})
_MANY = frozenset({"--all", "--branches", "--mirror", "--tags", "--delete", "-d", "--dry-run", "-n"})


_Settings = dict[str, tuple[str, ...]]
"""Values by key, as git lists them."""


class SettingWrite(Struct, frozen=True, kw_only=True):
    """What a call writes: by git itself first, in `before`, these words without what writes settings.

    `sets` are keys with their values, None to remove one. `follow` pairs a branch (empty: the present one) with what it
    is to follow, a remote and the name there, or with neither a name that git knows. `renames` is a branch (empty: the
    present one) that git renames, and its new name: its settings go along.
    """

    before: tuple[str, ...] = ()
    sets: tuple[tuple[str, str | None], ...] = ()
    follow: tuple[tuple[str, str, str], ...] = ()
    renames: tuple[str, str] | None = None


def setting_write(words: Sequence[str]) -> SettingWrite | None:
    """Read what a call of git, without `git`, writes into the settings; None for other calls, and for other forms."""
    match list(words):
        case ["config", *rest]:
            return _config(rest)
        case ["branch", "-u" | "--set-upstream-to", name, *branch] if len(branch) <= 1:
            return SettingWrite(follow=(("".join(branch), "", name),))
        case ["branch", option, *branch] if option.startswith("--set-upstream-to=") and len(branch) <= 1:
            return SettingWrite(follow=(("".join(branch), "", option.partition("=")[2]),))
        case ["branch", "--unset-upstream", *branch] if len(branch) <= 1:
            return SettingWrite(follow=(("".join(branch), "", ""),))
        case ["branch", "-m" | "--move", *names] if 1 <= len(names) <= 2 and not any(map(_OPTION.match, names)):
            return SettingWrite(renames=("".join(names[:-1]), names[-1]))
        case ["push", *rest] if not {"-u", "--set-upstream"}.isdisjoint(rest):
            return _push(rest)
        case _:
            return None


def _config(words: list[str]) -> SettingWrite | None:
    words = [word for word in words if word != "--local"]
    match words:
        case ["set", key, value] | ["--replace-all", key, value] | [key, value] if not key.startswith("-"):
            return SettingWrite(sets=((key, value),)) if "." in key else None
        case ["unset" | "--unset" | "--unset-all", key] if "." in key:
            return SettingWrite(sets=((key, None),))
        case _:
            return None


def _push(words: list[str]) -> SettingWrite | None:
    rest = [word for word in words if word not in ("-u", "--set-upstream")]
    options = [word for word in rest if word.startswith("-")]
    plain = [word for word in rest if not word.startswith("-")]
    if not plain or not (_TAKE_VALUES | _MANY).isdisjoint(word.partition("=")[0] for word in options):
        return None
    remote, *specs = plain
    if any(spec.startswith(":") for spec in specs):
        return None
    pairs = [spec.partition(":") for spec in specs or ["HEAD"]]
    follow = [("" if source == "HEAD" else source, remote, target) for source, _, target in pairs]
    # Without a name git would look for what the branch follows, which is to be written only then.
    return SettingWrite(before=("push", *rest, *([] if specs else ["HEAD"])), follow=tuple(follow))


class GitSettings:
    """Writes the settings of repositories in some folders, by a real `git` (absolute). To be used in threads."""

    def __init__(self, folders: Sequence[str], git: str) -> None:
        self._folders = folders
        self._git = git

    def write(self, wanted: SettingWrite, cwd: str) -> None:
        """Write what a call that was made in a folder wants. Raises `ToolError`, and nothing is written then."""
        with _told_to_model(), self._opened(cwd) as (own, common):
            self._write(wanted, own, common)

    def branch(self, name: str, cwd: str) -> str:
        """Give a branch as it is named, or the present one. Raises `ToolError`."""
        with _told_to_model(), self._opened(cwd) as (own, _):
            return name.removeprefix("refs/heads/") or _head(own)

    def is_renamed(self, old: str, new: str, cwd: str) -> bool:
        """Whether a branch has its new name, also one without a commit. Raises `ToolError`."""
        with _told_to_model(), self._opened(cwd) as (own, common):
            there = _has_ref(common, f"refs/heads/{new}") or _read(own, "HEAD") == f"ref: refs/heads/{new}\n".encode()
            return there and not _has_ref(common, f"refs/heads/{old}")

    def _write(self, wanted: SettingWrite, own: int, common: int) -> None:
        with tempfile.TemporaryDirectory() as private, _locked(common):
            copy = Path(private, "config")
            before = _read(common, "config")
            copy.write_bytes(before)
            known = self._settings(copy)
            sets = list(wanted.sets)
            for follow in wanted.follow:
                sets += _followed(follow, known, own, common)
            expected = dict(known)
            for given, value in sets:
                key = _checked((given, value), known, own, common)
                kept = [key, value] if value is not None else ["--unset-all", key]
                if value is None and key not in known:
                    continue
                self._run(copy, "--replace-all" if value is not None else "", *kept)
                expected.pop(key, None)
                expected |= {key: (value,)} if value is not None else {}
            if wanted.renames is not None:
                expected = self._moved(copy, expected, *wanted.renames)
            if self._settings(copy) != expected:
                raise ToolError(
                    "git would have written more than the setting, so nothing was written. Tell the user of it."
                )
            _rewrite(common, before, copy.read_bytes())

    def _moved(self, copy: Path, known: _Settings, old: str, new: str) -> _Settings:
        """Give what a branch is set to its new name."""
        before, after = f"branch.{old}.", f"branch.{new}."
        if not _REF.fullmatch(new) or not any(key.startswith(before) for key in known):
            return known
        self._run(copy, "--rename-section", before[:-1], after[:-1])
        moved = {key: value for key, value in known.items() if not key.startswith(before)}
        return moved | {after + key.removeprefix(before): value for key, value in known.items() if key not in moved}

    def _settings(self, file: Path) -> _Settings:
        """Read all settings of a file, by key; a name with letters of both cases keeps them between the dots."""
        found: dict[str, tuple[str, ...]] = {}
        for entry in self._run(file, "--list", "--null").split("\0")[:-1]:
            key, _, value = entry.partition("\n")
            found[key] = (*found.get(key, ()), value)
        return found

    def _run(self, file: Path, *words: str) -> str:
        """Run git on a private file alone: it sees no repository, no other settings, and starts nothing."""
        bare = {
            "PATH": os.defpath,
            "HOME": str(file.parent),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        done = subprocess.run(
            (self._git, "config", "--file", str(file), "--no-includes", *filter(None, words)),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            cwd=file.parent,
            env={**bare, "GIT_CEILING_DIRECTORIES": str(file.parent.parent)},
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            raise ToolError(f"git config failed: {done.stderr.decode(errors='replace').strip()}. Check the call.")
        return done.stdout.decode(errors="surrogateescape")

    @contextmanager
    def _opened(self, cwd: str) -> Iterator[tuple[int, int]]:
        """Open the data of the repository that a folder is in: its own part, and what its checkouts share."""
        root = next((one for one in self._folders if cwd == one or cwd.startswith(f"{one}/")), None)
        here = Path(cwd)
        top = next((one for one in (here, *here.parents) if os.path.lexists(one / ".git")), None)
        if root is None or top is None or not f"{top}/".startswith(f"{root}/"):
            raise ToolError(f"{cwd} is in no repository of the workspace. Call git in one.")
        own = str(top / ".git")
        if stat.S_ISREG(os.lstat(own).st_mode):
            named = Path(own).read_bytes()[:_LARGEST]
            own = os.path.normpath(top / os.fsdecode(named.removeprefix(_NAMED).strip()))
        with self._folder(own) as folder:
            shared = _read(folder, "commondir", missing=b"").strip()
            if not shared:
                yield folder, folder
                return
            with self._folder(os.path.normpath(f"{own}/{os.fsdecode(shared)}")) as common:
                yield folder, common

    @contextmanager
    def _folder(self, path: str) -> Iterator[int]:
        """Open a folder of the workspace, part by part."""
        root = next((one for one in self._folders if path.startswith(f"{one}/")), None)
        if root is None:
            raise ToolError("the data of this repository is outside the workspace. Tell the user if the task needs it.")
        opened = os.open(root, _FOLDER)
        try:
            for part in path.removeprefix(f"{root}/").split("/"):
                below = os.open(part, _FOLDER, dir_fd=opened)
                os.close(opened)
                opened = below
            yield opened
        finally:
            os.close(opened)


@contextmanager
def _told_to_model() -> Iterator[None]:
    try:
        yield
    except (OSError, subprocess.SubprocessError) as error:
        text = f"git's configuration cannot be written: {error}. Tell the user if the task needs it."
        raise ToolError(text) from error


def _followed(
    follow: tuple[str, str, str], known: _Settings, own: int, common: int
) -> Iterator[tuple[str, str | None]]:
    """Give the settings with which a branch follows another one."""
    given, remote, name = follow
    branch = given.removeprefix("refs/heads/") or _head(own)
    if not remote and not name:
        yield from ((f"branch.{branch}.{key}", None) for key in ("remote", "merge"))
        return
    if not remote:  # a name that git knows: a branch of a remote, or one of this repository
        plain = name.removeprefix("refs/remotes/").removeprefix("refs/heads/")
        found = sorted((one for one in _remotes(known) if plain.startswith(f"{one}/")), key=len)
        if found and _has_ref(common, f"refs/remotes/{plain}"):
            remote, name = found[-1], plain.removeprefix(f"{found[-1]}/")
        elif _has_ref(common, f"refs/heads/{plain}"):
            remote, name = ".", plain
        else:
            raise ToolError(f"there is no branch {name!r} to follow. Choose one that is there.")
    yield f"branch.{branch}.remote", remote
    yield f"branch.{branch}.merge", f"refs/heads/{(name or branch).removeprefix('refs/heads/')}"


def _checked(wanted: tuple[str, str | None], known: _Settings, own: int, common: int) -> str:
    """Give the key as git writes it; raises `ToolError` for what is not written."""
    given, value = wanted
    first, _, rest = given.partition(".")
    name, _, last = rest.rpartition(".")
    key = f"{first.lower()}.{name}.{last.lower()}" if name else given.lower()
    if key not in _USER and not (first.lower() == "branch" and name and last.lower() in _BRANCH):
        what = f"only user.* and branch.* are written into it for a command, not {given!r}"
        raise ToolError(
            f'{what}. Call it on its own with needs: ["host"], which asks the user to run it without the sandbox.'
        )
    if value is not None and (len(value) > _LONGEST or _CONTROL.search(value) or not value.isprintable()):
        raise ToolError(f"the value of {key} is not one plain line. Write it as one.")
    if key in _USER:
        return key
    if not _REF.fullmatch(name) or not (name == _head(own) or _has_ref(common, f"refs/heads/{name}")):
        raise ToolError(f"there is no branch {name!r}. Use one that is there.")
    if value is None or last.lower() == "description":
        return key
    if last.lower() == "remote" and value != "." and value not in _remotes(known):
        raise ToolError(f"there is no remote {value!r}. Choose one that `git remote` lists.")
    if last.lower() == "merge" and not (value.startswith("refs/") and _REF.fullmatch(value)):
        raise ToolError(f"{value!r} is no name of a branch. Write it like refs/heads/main.")
    if last.lower() == "rebase" and value.lower() not in _REBASE:
        raise ToolError(f"{value!r} is no way to rebase. Use true, false, merges or interactive.")
    return key


def _remotes(known: _Settings) -> set[str]:
    return {key.removeprefix("remote.").removesuffix(".url") for key in known if re.fullmatch(r"remote\..+\.url", key)}


def _head(own: int) -> str:
    said = _read(own, "HEAD").decode(errors="replace").strip()
    if not said.startswith("ref: refs/heads/"):
        raise ToolError("no branch is checked out. Name the branch.")
    return said.removeprefix("ref: refs/heads/")


def _has_ref(common: int, ref: str) -> bool:
    if not _REF.fullmatch(ref):
        return False
    opened = os.dup(common)
    try:
        *above, name = ref.split("/")
        for part in above:
            below = os.open(part, _FOLDER, dir_fd=opened)
            os.close(opened)
            opened = below
        if stat.S_ISREG(os.lstat(name, dir_fd=opened).st_mode):
            return True
    except (FileNotFoundError, NotADirectoryError):
        pass
    finally:
        os.close(opened)
    packed = _read(common, "packed-refs", missing=b"").split(b"\n")
    return any(line.endswith(b" " + ref.encode(errors="surrogateescape")) for line in packed)


def _read(folder: int, name: str, *, missing: bytes | None = None) -> bytes:
    """Read a plain file of a folder; raises `OSError`, and `ToolError` for what is none."""
    try:
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except FileNotFoundError:
        if missing is None:
            raise
        return missing
    with os.fdopen(descriptor, "rb") as stream:
        found = os.fstat(stream.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1 or found.st_size > _LARGEST:
            raise ToolError(f"{name} of the repository is no plain file. Tell the user.")
        return stream.read()


@contextmanager
def _locked(common: int) -> Iterator[None]:
    """Hold the lock of the configuration as git does, so that no other git writes meanwhile."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        os.close(os.open("config.lock", flags, 0o600, dir_fd=common))
    except FileExistsError:
        raise ToolError("another git writes the configuration (config.lock is there). Call it again.") from None
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            os.unlink("config.lock", dir_fd=common)


def _rewrite(common: int, before: bytes, data: bytes) -> None:
    """Write into the file itself: commands may make names beside it, and a file that takes its place could be theirs.

    One write has all of it, ended by empty lines where it is shorter, so that the file can be read at any moment.
    """
    descriptor = os.open("config", os.O_RDWR | _FILE & ~os.O_RDONLY, dir_fd=common)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1 or os.pread(descriptor, _LARGEST, 0) != before:
            raise ToolError("git's configuration was changed meanwhile. Call it again.")
        os.pwrite(descriptor, data.ljust(len(before), b"\n"), 0)
        os.ftruncate(descriptor, len(data))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
