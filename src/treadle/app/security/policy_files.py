"""The rule files in force: found, checked, kept while they are good, and read again when they change."""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from treadle.app.config.places import config_file, data_directory, name_for, read_regular
from treadle.protocol.permissions import Verdict

if TYPE_CHECKING:
    from treadle.policy.rulefile import RuleFile
    from treadle.policy.rules import Rule, Ruleset

ADMIN = Path("/etc/treadle")
PROJECT_FILE = Path(".treadle") / "policy.toml"
_LARGEST = 256 * 1024
_LARGEST_OF_PROJECT = 64 * 1024
_Signature = tuple[int, ...]


class FileState(StrEnum):
    """What became of a rule file; of a `broken` one the last good text is in force, if there ever was one."""

    IN_FORCE = "in force"
    BROKEN = "broken"


class RuleFilePlaces(Struct, frozen=True, kw_only=True):
    """Where rule files are looked for, and where their last good texts are `kept`."""

    admin: Path
    user: Path
    kept: Path
    workspace: Path | None = None

    @property
    def approved(self) -> Path:
        """The file of the rules that the user's answers made."""
        return self.user / "policy.d" / "approved.toml"


class FoundFile(Struct, frozen=True, kw_only=True):
    """A rule file that is there. `scope` is admin, user or project; `why` says what is wrong with it."""

    path: str
    scope: str
    state: FileState
    rules: int = 0
    why: str = ""


class InForce(Struct, frozen=True, kw_only=True):
    """All that was found: the rules, the files, and the project's rules that allow but do not count."""

    ruleset: "Ruleset"
    files: tuple[FoundFile, ...]
    ignored: tuple["Rule", ...] = ()


class _Candidate(Struct, frozen=True):
    path: Path
    scope: str
    signature: _Signature


def usual_places(workspace: Path | None) -> RuleFilePlaces:
    """Give the places that count for this user."""
    return RuleFilePlaces(admin=ADMIN, user=config_file().parent, kept=data_directory() / "policy", workspace=workspace)


class PolicyFiles:
    """The rule files around a workspace. Making one looks only at the project's file; the rest waits until it is asked.

    With `keep` the text of a good file is kept, for the day when it breaks. What the project's file allows counts as it
    was when this was made: trust was given to that text.
    """

    def __init__(
        self, places: RuleFilePlaces, *, keep: bool = True, admin_problem: "Callable[[Path], str] | None" = None
    ) -> None:
        self._places = places
        self._keep = keep
        self._admin_problem = admin_problem or why_not_admin
        self._project = None if places.workspace is None else _signature(places.workspace / PROJECT_FILE)
        self._seen: tuple[_Candidate, ...] | None = None
        self._found: InForce | None = None
        self.changed: Callable[[Path, str], None] = lambda path, scope: None  # noqa: ARG005 - nobody is told

    def in_force(self) -> InForce:
        """Give what counts now; files are read again only when one of them is another than before."""
        candidates = tuple(self._candidates())
        if self._found is None or candidates != self._seen:
            changed = {} if self._seen is None else {one.path: one.scope for one in {*candidates} ^ {*self._seen}}
            self._found = self._load(candidates)
            self._seen = candidates
            for path, scope in changed.items():
                self.changed(path, scope)
        return self._found

    def ruleset(self) -> "Ruleset":
        """Give the rules that count now."""
        return self.in_force().ruleset

    def notices(self) -> tuple[str, ...]:
        """Say what is wrong with the files; where all are as they were when they were good, no rule is read."""
        texts = [self._read(candidate) for candidate in self._candidates()]
        if all(not why and self._kept(path) == text for path, text, why in texts):
            return ()
        return tuple(
            f"{one.why}. {_IN_FORCE_STILL if one.rules else _NOTHING_IN_FORCE}"
            for one in self.in_force().files
            if one.state is FileState.BROKEN
        )

    def _candidates(self) -> Iterator[_Candidate]:
        places = self._places
        found = [("admin", path) for path in rule_files(places.admin)]
        found += [("user", path) for path in rule_files(places.user)]
        if places.workspace is not None:
            found.append(("project", places.workspace / PROJECT_FILE))
        for scope, path in found:
            if (signature := _signature(path)) is not None:
                yield _Candidate(path, scope, signature)

    def _read(self, candidate: _Candidate) -> tuple[Path, str, str]:
        """Read one file; gives its path, its text, and why it cannot be used."""
        path = candidate.path
        match candidate.scope:
            case "admin":
                why = self._admin_problem(path)
            case "user":
                why = _why_not_own(path)
            case _:
                why = ""
        if why:
            return path, "", f"{path} is not used: {why}"
        try:
            return path, _text(path, _LARGEST_OF_PROJECT if candidate.scope == "project" else _LARGEST), ""
        except (OSError, ValueError) as error:
            return path, "", f"{path} cannot be read: {error}"

    def _load(self, candidates: Sequence[_Candidate]) -> InForce:
        from treadle.policy.rulefile import RuleFile, load_rules
        from treadle.policy.rules import Ruleset, Scope

        files: list[RuleFile] = []
        found: list[FoundFile] = []
        last_good: dict[str, str] = {}
        for candidate in candidates:
            path, text, why = self._read(candidate)
            remembered = path == self._places.approved
            file = RuleFile(name=str(path), text=text, scope=Scope(candidate.scope), remembered=remembered)
            files.append(file)
            last_good[file.name] = self._kept(path) or ""
            found.append(self._examine(file, path, why, last_good))
        # A file that may not be used is one that cannot be read: its last good text stands in for it.
        texts = [
            replace(file, text=_UNUSABLE if one.why else file.text) for file, one in zip(files, found, strict=True)
        ]
        loaded = load_rules(texts, last_good)
        problems = tuple(one.why for one in found if one.state is FileState.BROKEN)
        kept, ignored = self._without_new_allowances(loaded.rules)
        version = sha256(repr((loaded.version, problems, bool(ignored))).encode()).hexdigest()
        return InForce(
            ruleset=Ruleset(rules=kept, problems=problems, version=version), files=tuple(found), ignored=ignored
        )

    def _examine(self, file: "RuleFile", path: Path, why: str, last_good: dict[str, str]) -> FoundFile:
        from treadle.policy.rulefile import RuleFileError, read_rules

        scope = file.scope.value
        if not why:
            try:
                count = len(read_rules(file))
            except RuleFileError as error:
                why = str(error)
            else:
                self._keep_text(path, file.text)
                return FoundFile(path=file.name, scope=scope, state=FileState.IN_FORCE, rules=count)
        try:
            count = len(read_rules(replace(file, text=last_good[file.name])))
        except RuleFileError:
            count = 0
        return FoundFile(path=file.name, scope=scope, state=FileState.BROKEN, rules=count, why=why)

    def _without_new_allowances(self, rules: Sequence["Rule"]) -> tuple[tuple["Rule", ...], tuple["Rule", ...]]:
        """Part from what counts what a project's file allows that has changed since its folder was trusted."""
        from treadle.policy.rules import Scope

        workspace = self._places.workspace
        if workspace is None or _signature(workspace / PROJECT_FILE) == self._project:
            return tuple(rules), ()
        new = [rule for rule in rules if rule.scope is Scope.PROJECT and rule.verdict is Verdict.ALLOW]
        return tuple(rule for rule in rules if rule not in new), tuple(new)

    def _kept_file(self, path: Path) -> Path:
        return self._places.kept / name_for(path, ".toml")

    def _kept(self, path: Path) -> str | None:
        try:
            return _text(self._kept_file(path), _LARGEST)
        except (OSError, ValueError):
            return None

    def _keep_text(self, path: Path, text: str) -> None:
        if self._keep and self._kept(path) != text:
            from treadle.workspace.files.private_file import write_private

            with suppress(OSError):  # without it a file that breaks has no last good text, and is told all the same
                write_private(self._kept_file(path), text.encode())


_UNUSABLE = "["
_IN_FORCE_STILL = "Its last valid version stays in force. Until the file is fixed, nothing runs without asking."
_NOTHING_IN_FORCE = "None of its rules is in force. Until the file is fixed, nothing runs without asking."


def why_not_admin(path: Path) -> str:
    """Say why an administrator's file does not count: it and its folders must be root's, and only root's to change."""
    for part in dict.fromkeys(part for way in (path, path.resolve()) for part in (way, *way.parents)):
        try:
            found = part.lstat()
        except OSError as error:
            return f"{part}: {error.strerror}"
        if found.st_uid != 0:
            return f"{part} does not belong to root"
        if not stat.S_ISLNK(found.st_mode) and found.st_mode & 0o022:
            return f"{part} can be changed by others than root"
    return ""


def _why_not_own(path: Path) -> str:
    try:
        found = path.stat()
    except OSError as error:
        return str(error.strerror)
    if found.st_uid not in (0, os.getuid()):
        return "it belongs to another user"
    return "everybody can change it" if found.st_mode & 0o002 else ""


def rule_files(folder: Path) -> list[Path]:
    """Give where rules stand in a folder of settings; a `policy.d` that cannot be listed stands for its files."""
    several = folder / "policy.d"
    try:
        found = sorted(entry for entry in several.iterdir() if entry.suffix == ".toml")
    except (FileNotFoundError, NotADirectoryError):
        found = []
    except OSError:
        found = [several]
    return [folder / "policy.toml", *found]


def _signature(path: Path) -> _Signature | None:
    """Tell one state of a file from another; None where there is nothing."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return (error.errno or 0,)
    return (
        found.st_ino,
        found.st_dev,
        found.st_mode,
        found.st_uid,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


def _text(path: Path, largest: int) -> str:
    """Read a regular file without waiting at what is none, such as a pipe. Raises `OSError` or `ValueError`."""
    raw = read_regular(path, largest)
    if raw is None:
        raise ValueError("it is not a file")
    if len(raw) > largest:
        raise ValueError(f"it is larger than {largest // 1024} KiB")
    return raw.decode()
