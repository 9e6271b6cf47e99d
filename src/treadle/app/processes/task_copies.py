"""A task's own copy of a project, and the patch of what was changed in it. The project itself is only read.

Git runs nothing that a copy names: the patch is made with a repository of our own beside the copy, which knows no
hooks, filters or drivers, whatever was written into the copy's own.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from treadle.protocol.errors import ConfigError
from treadle.workspace.commands.variables import HARDENED_GIT, child_variables, find_outside
from treadle.workspace.copies.whole_copy import copy_folder
from treadle.workspace.files.walking import walk
from treadle.workspace.files.whole_folders import remove_tree

_SECONDS = 900.0
_OURS: Mapping[str, str] = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_ALLOW_PROTOCOL": "none"}
_WHO = ("-c", "user.name=treadle", "-c", "user.email=treadle@localhost", "-c", "commit.gpgSign=false")
_AS_IT_IS = ("-c", "core.autocrlf=false", "-c", f"core.excludesFile={os.devnull}", "-c", "advice.addEmbeddedRepo=false")
_CACHES = "__pycache__/\n.pytest_cache/\n.mypy_cache/\n.ruff_cache/\n"
"""What programs write beside the files that they read; in a patch it has no place unless it was there before."""
_NAMED = ("--pathspec-from-file=-", "--pathspec-file-nul")
_DIFF = ("diff", "--cached", "--binary", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")


class ProjectCopy(Struct, frozen=True, kw_only=True):
    """Where a copy is, and the repository of ours that knows what it was like; `tree` is the object of that there.

    `notes` name what is not in it as it is in the project.
    """

    folder: Path
    base: Path
    tree: str = ""
    notes: tuple[str, ...] = ()


def copy_project(source: str, commit: str, wanted: ProjectCopy, *, leave_out: Path) -> ProjectCopy:
    """Copy a project to a folder that is not there yet, all of it or nothing; without a source the copy is empty.

    With a commit the copy is a clone that holds it and what came before it, without any name of what came after, or of
    where it is from; else it is the folder as it is, without `leave_out`. Raises `ConfigError`.
    """
    # Made under names of its own: git of a process that was killed may still write to those of that.
    end = f"{os.getpid()}-{os.urandom(4).hex()}"
    new, base = (one.with_name(f".new-{one.name}~{end}") for one in (wanted.folder, wanted.base))
    notes: tuple[str, ...] = ()
    try:
        for place in (wanted.folder, wanted.base):
            place.parent.mkdir(parents=True, exist_ok=True)
            for old in (place, *place.parent.glob(f".new-{place.name}~*")):
                remove_tree(old)
        if commit:
            _clone(Path(source), commit, new)
        elif source:
            notes = _copy_folder(Path(source), new, wanted.folder, leave_out)
        else:
            new.mkdir()
        if not os.path.lexists(new / ".git"):  # else git would find the repository that the copy happens to lie in
            _git(new, "init", "--quiet", "--template=")
            _add_all(new, new / ".git", new / ".git" / "index")
            _git(new, *_WHO, "commit", "--quiet", "--allow-empty", "--message", "The folder as it was copied")
        _git(new.parent, "init", "--quiet", "--bare", "--template=", str(base))
        tree = _tree(new, base, force=bool(commit))
        (base / "info").mkdir(exist_ok=True)
        (base / "info" / "exclude").write_text(_CACHES)
        base.rename(wanted.base)
        new.rename(wanted.folder)
    except OSError as error:
        raise _failed(f"{source or 'An empty folder'} cannot be copied.", str(error)) from error
    return ProjectCopy(folder=wanted.folder, base=wanted.base, tree=tree, notes=notes)


def project_patch(copy: ProjectCopy) -> bytes:
    """Give what was changed in a copy, as `git apply` takes it: UTF-8 text, without what git ignores.

    Of repositories within it, also those that were made there, it has the files.

    Where a changed text has another encoding all changes are written in git's binary form. Raises `ConfigError`.
    """
    index = copy.base / f"index-{os.getpid()}-{os.urandom(4).hex()}"  # a process that was killed may have left a lock
    try:
        # With its time: under a younger index git misses a change of the same size within the same second.
        shutil.copy2(copy.base / "index", index)
        _tree(copy.folder, copy.base, index=index)
        patch = _in_base(copy.folder, copy.base, *_DIFF, copy.tree, index=index)
        try:
            patch.decode()
        except UnicodeDecodeError:
            (copy.base / "info" / "attributes").write_text("* binary\n")
            return _in_base(copy.folder, copy.base, *_DIFF, copy.tree, index=index)
        return patch
    except OSError as error:
        raise _failed(f"The changes in {copy.folder} cannot be read.", str(error)) from error
    finally:
        index.unlink(missing_ok=True)


def mirror_of(address: str, mirrors: Path) -> Path:
    """Give a bare clone of a repository that is elsewhere, made once for all tasks. Raises `ConfigError`."""
    mirrors.mkdir(parents=True, exist_ok=True)
    mirror = mirrors / f"{hashlib.sha256(address.encode()).hexdigest()[:16]}.git"
    with (mirrors / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mirror.is_dir():
            for old in mirrors.glob(f".new-{mirror.name}~*"):
                remove_tree(old)
            new = mirror.with_name(f".new-{mirror.name}~{os.getpid()}-{os.urandom(4).hex()}")
            protocols = {"GIT_ALLOW_PROTOCOL": "https:ssh:git:file"}
            _git(mirrors, "clone", "--quiet", "--mirror", "--template=", "--", address, str(new), more=protocols)
            new.rename(mirror)
    return mirror


def remove_project_copy(copy: ProjectCopy) -> None:
    """Remove a copy, also where something in it cannot be written. Raises `OSError`."""
    for folder in (copy.folder, copy.base):
        remove_tree(folder)


def apply_project_patch(copy: ProjectCopy, patch: bytes) -> None:
    """Change a copy that is as it was made by what `project_patch` gave elsewhere. Raises `ConfigError`."""
    if not patch:
        return
    file = copy.base / f"patch-{os.getpid()}-{os.urandom(4).hex()}"
    try:
        file.write_bytes(patch)
        _in_base(copy.folder, copy.base, "apply", "--whitespace=nowarn", str(file), index=copy.base / "index")
    except OSError as error:
        raise _failed(f"The changes cannot be written to {copy.folder}.", str(error)) from error
    finally:
        file.unlink(missing_ok=True)


def _clone(source: Path, commit: str, new: Path) -> None:
    """Fetch a commit into a repository of its own: what came after it is not there, and no file is shared."""
    if not source.is_dir():
        raise _failed(f"There is no folder {source}.", "A task names it as its `repo`.")
    asked_for = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    try:
        name = _git(source, *asked_for).decode().strip()
    except ConfigError as error:
        raise _failed(f"{source} has no commit {commit}.", error.why) from error
    new.mkdir()
    _git(new, "init", "--quiet", "--template=")
    asked = {"GIT_ALLOW_PROTOCOL": "file", **_setting("uploadpack.allowAnySHA1InWant", "true")}
    _git(new, "fetch", "--quiet", "--no-tags", "--", str(source.absolute()), name, more=asked)
    _git(new, "checkout", "--quiet", "--detach", name)
    (new / ".git" / "FETCH_HEAD").unlink(missing_ok=True)  # it names the source


def _setting(name: str, value: str) -> dict[str, str]:
    number = int(HARDENED_GIT["GIT_CONFIG_COUNT"])
    return {
        "GIT_CONFIG_COUNT": str(number + 1),
        f"GIT_CONFIG_KEY_{number}": name,
        f"GIT_CONFIG_VALUE_{number}": value,
    }


def _copy_folder(source: Path, new: Path, folder: Path, leave_out: Path) -> tuple[str, ...]:
    """Copy a folder to `new`, which becomes `folder`; gives what is not in the copy as it was."""
    if not source.is_dir():
        raise _failed(f"There is no folder {source}.", "A task names it as its `repo`.")
    source = source.resolve()
    return copy_folder(source, new, {str(source): str(folder)}, leave_out=leave_out, shares=False).notes


def _tree(folder: Path, base: Path, *, force: bool = False, index: Path | None = None) -> str:
    """Put a folder as it is into our repository; gives the object of it.

    Git takes a repository within another one for a commit, or refuses it: the files of each are put in by themselves.
    """
    index = base / "index" if index is None else index
    inner = _add_all(folder, base, index, *(("--force",) if force else ()))
    if inner:
        named = _listed(f":(literal){one}" for one in inner)
        _in_base(folder, base, "rm", "-rfq", "--cached", "--ignore-unmatch", *_NAMED, index=index, told=named)
    for one in inner:
        beside = index.with_name(f"{index.name}-inner")
        try:
            tree = _tree(folder / one, base, force=force, index=beside)
        finally:
            beside.unlink(missing_ok=True)
        _in_base(folder, base, "read-tree", f"--prefix={one}/", tree, index=index)
    return _in_base(folder, base, "write-tree", index=index).decode().strip()


def _add_all(folder: Path, base: Path, index: Path, *flags: str) -> list[str]:
    """Put a folder into an index, but not the repositories below it, which it gives, without those that are ignored."""
    inner = _inner_repositories(folder)
    if inner:
        asked = _listed(inner)
        found = _in_base(folder, base, "check-ignore", "-z", "--stdin", index=index, told=asked, codes=(0, 1))
        ignored = set(found.split(b"\0"))
        inner = [one for one in inner if os.fsencode(one) not in ignored]
    paths = _listed((".", *(f":(exclude,literal){one}" for one in inner)))
    _in_base(folder, base, "add", "--all", *_NAMED, *flags, index=index, told=paths)
    return inner


def _inner_repositories(folder: Path) -> list[str]:
    """Find the outermost repositories below a folder, without itself; no link is followed."""
    found = []
    for place, folders, files in walk(folder):
        if Path(place) != folder and ".git" in (*folders, *files):
            found.append(os.path.relpath(place, folder))
            folders.clear()
        folders[:] = [name for name in folders if name != ".git"]
    return sorted(found)


def _listed(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _in_base(
    folder: Path, base: Path, *words: str, index: Path, told: bytes = b"", codes: Collection[int] = (0,)
) -> bytes:
    more = {**_OURS, "GIT_INDEX_FILE": str(index)}
    own = (f"--git-dir={base}", f"--work-tree={folder}", *_AS_IT_IS)
    return _git(folder, *own, *words, more=more, told=told, codes=codes)


_NONE: Mapping[str, str] = {}


def _git(
    folder: Path, *words: str, more: Mapping[str, str] = _NONE, told: bytes = b"", codes: Collection[int] = (0,)
) -> bytes:
    """Run git in a folder, which reads what it is `told`; gives what it prints. Raises `ConfigError`."""
    git = find_outside("git", str(folder))
    if not git:
        raise _failed("git is not installed.", "Copies and patches are made with it.")
    try:
        done = subprocess.run(
            (git, *words),
            cwd=folder,
            env={**child_variables(os.environ), **HARDENED_GIT, **more},
            input=told,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _failed(f"git cannot be run in {folder}.", str(error)) from error
    if done.returncode not in codes:
        said = done.stderr.decode(errors="replace").strip() or "git did not say why."
        raise _failed(f"git failed in {folder}.", said)
    return done.stdout


def _failed(what: str, why: str) -> ConfigError:
    return ConfigError("task-copy", what, why=why, fix="Check `repo` and `commit` of the task, and free space.")
