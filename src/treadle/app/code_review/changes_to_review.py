"""Which changes are to be reviewed: those of git, or of a file with a diff; only of files that may be read."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.code_review.diff_files import DiffFile, NumberedHunk, files_of_diff, fit_into
from treadle.app.config.layers import load_settings
from treadle.app.config.places import read_regular
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.commands.judging import policy_context
from treadle.app.session.known_values import session_redactor
from treadle.app.session.mentions.git_mentions import PLAIN_DIFF, counted_changes, last_commit
from treadle.app.session.mentions.repository_state import ask_git, programs_of_git
from treadle.policy.decide import decide
from treadle.present.words import counted
from treadle.protocol.errors import ConfigError, ToolError
from treadle.protocol.permissions import Mode, Standing, Verdict
from treadle.protocol.reasons import words_of_decision
from treadle.tools.declarations import READ_FILE
from treadle.workspace.files.judged import judge_path
from treadle.workspace.files.names import shown_name
from treadle.workspace.sandbox.reading_git import GitReader

_SECONDS = 20.0
_MOST = 200_000
"""Characters of a diff that a model is shown."""

_LONGEST = 5_000
"""Changed lines of one file: one that has more is left out, such as a lock file."""

_LARGEST_FILE = 1_000_000
_LARGEST_DIFF = 20_000_000
_MOST_FILES = 500
_DIFF_ENDINGS = (".diff", ".patch")
_FORM = ("--unified=5", "--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=dirty")


class ChangesToReview(Struct, frozen=True, kw_only=True):
    """A diff that is to be reviewed: what it is of, its files, and what is left out, each with the reason."""

    about: str
    files: tuple[DiffFile, ...] = ()
    left_out: tuple[str, ...] = ()


def changes_to_review(trust: SessionTrust, wanted: str = "", *, staged: bool = False) -> ChangesToReview:
    """Find the changes that `wanted` names: a range of git, a file that ends with .diff or .patch, or nothing.

    Nothing is what is not committed, new files too; with `staged` only what the next commit takes. Takes some seconds,
    and is to be called in a thread. Raises `ConfigError`.
    """
    wanted = wanted.strip()
    if wanted.startswith("-"):
        raise ConfigError(
            "review-range",
            f"{wanted!r} is no range of git.",
            why="A range does not begin with a hyphen.",
            fix="Name commits, such as main...HEAD or HEAD~2.",
        )
    if wanted.endswith(_DIFF_ENDINGS):
        found = _in_file(Path(trust.workspace, wanted).expanduser(), wanted)
    else:
        found = _Repository(trust).changes(wanted, staged=staged)
    files, cut = fit_into(found.files, _MOST)
    return replace(_without_secrets(replace(found, files=files), trust), left_out=(*found.left_out, *cut))


def _in_file(file: Path, name: str) -> ChangesToReview:
    try:
        data = read_regular(file, _LARGEST_DIFF)
    except OSError as error:
        raise _unusable(f"{name} cannot be read.", f"{error.strerror or error}.") from error
    if data is None or len(data) > _LARGEST_DIFF:
        raise _unusable(f"{name} cannot be read.", "It is not a regular file." if data is None else "It is too large.")
    files = files_of_diff(data.decode(errors="replace"))
    if not files and data.strip():
        raise _unusable(f"{name} is no diff.", "It has no hunk that begins with `@@ -` below a file.")
    return ChangesToReview(about=f"the diff in {shown_name(name)}", files=files)


def _unusable(what: str, why: str) -> ConfigError:
    return ConfigError("review-diff", what, why=why, fix="Write one with: git diff > FILE.diff")


def _without_secrets(found: ChangesToReview, trust: SessionTrust) -> ChangesToReview:
    """Hide what a session in the folder hides, line by line, so that each line keeps its number."""
    hide = session_redactor(str(trust.workspace), load_settings({})).redact

    def hidden(hunk: NumberedHunk) -> NumberedHunk:
        text = "\n".join(hunk.lines)
        redacted = hide(text)
        if redacted == text:
            return hunk
        lines = redacted.split("\n")
        same = len(lines) == len(hunk.lines)
        # What goes over several lines, such as a key, leaves the signs of its lines.
        kept = lines if same else [hide(line) if hide(line) != line else f"{line[:1]}[redacted]" for line in hunk.lines]
        return replace(hunk, lines=tuple(kept))

    files = tuple(replace(file, hunks=tuple(map(hidden, file.hunks))) for file in found.files)
    return replace(found, files=files)


class _Repository:
    """The repository around a folder, asked in a way that runs nothing of it."""

    def __init__(self, trust: SessionTrust) -> None:
        self._root = str(trust.workspace)
        folder = Path(self._root)
        if not any(os.path.lexists(one / ".git") for one in (folder, *folder.parents)):
            raise ConfigError(
                "review-repository",
                f"There is no git repository in {self._root} or around it.",
                why="What is to be reviewed comes from git.",
                fix="Work in a repository with --directory, or give a diff: treadle review FILE.diff",
            )
        if named := programs_of_git(self._root):
            raise ConfigError(
                "review-programs",
                f"git does not run in {self._root}: its repository could make it run a program.",
                why=f"It has {named[0]}.",
                fix="Give a diff: git diff > FILE.diff && treadle review FILE.diff",
            )
        self._trusted = trust.trusted
        if self._ask("rev-parse", "--git-dir") is None:
            raise ConfigError(
                "review-repository",
                f"git does not run in {self._root}.",
                why="It is not installed, or the folder is of another user.",
                fix="`git status` there says more. Or give a diff: treadle review FILE.diff",
            )
        self._policy = policy_context(self._root, Standing(mode=Mode.ASK), trusted=trust.trusted)

    def changes(self, wanted: str, *, staged: bool) -> ChangesToReview:
        """Read the diff of a range, or of what is not committed."""
        if wanted:
            return self._diff((wanted,), f"the changes of {shown_name(wanted)}", wanted)
        base = last_commit(self._ask)
        if base is None:
            raise _silent("git does not name the last commit.")
        if staged:
            return self._diff(("--cached", base), "the changes that the next commit takes")
        found = self._diff((base,), "the changes that are not committed")
        files, left_out = list(found.files), list(found.left_out)
        listed = self._ask("ls-files", "-z", "--others", "--exclude-standard", "--", ".")
        if listed is None:
            raise _silent("git does not list the new files.")
        new = [path for path in listed.split("\0") if path]
        for path in new[:_MOST_FILES]:
            file = self._new_file(path)
            if isinstance(file, DiffFile):
                files.append(file)
            else:
                left_out.append(file)
        left_out += [f"{len(new) - _MOST_FILES:,} more new files"] if len(new) > _MOST_FILES else []
        return replace(found, files=tuple(files), left_out=tuple(left_out))

    def _diff(self, which: tuple[str, ...], about: str, wanted: str = "") -> ChangesToReview:
        counted_ = self._ask("diff", *PLAIN_DIFF, "--numstat", "-z", *which, "--", ".")
        if counted_ is None:
            raise ConfigError(
                "review-range",
                f"git gives no changes for {wanted!r}." if wanted else "git gives no changes.",
                why=f"It knows no such commits, or did not answer within {_SECONDS:.0f} seconds.",
                fix="Name commits that are there, such as main...HEAD or HEAD~2: `git log --oneline` lists them.",
            )
        rows = list(counted_changes(counted_))
        paths, left_out = [], []
        for path, lines, counts in rows[:_MOST_FILES]:
            why = self._why_not(path)
            if why or lines > _LONGEST:
                left_out.append(f"{shown_name(path)} ({counts}): {why or 'it is too long'}")
            else:
                paths.append(f":(literal){path}")
        left_out += [f"{len(rows) - _MOST_FILES:,} more files"] if len(rows) > _MOST_FILES else []
        text = self._ask("diff", *PLAIN_DIFF, *_FORM, *which, "--", *paths) if paths else ""
        if text is None:
            raise ConfigError(
                "review-range", "git gives no changes.", why="It did not answer in time.", fix="Try again."
            )
        files = tuple(replace(one, path=shown_name(one.path)) for one in files_of_diff(text))
        return ChangesToReview(about=about, files=files, left_out=tuple(left_out))

    def _new_file(self, path: str) -> DiffFile | str:
        """Give a file that git does not know yet as one that was added, or why it is left out."""
        shown, whole = shown_name(path), Path(self._root, path)
        if why := self._why_not(path):
            return f"{shown}: {why}"
        try:
            if not stat.S_ISREG(whole.lstat().st_mode):
                return f"{shown}: it is no regular file"
            data = read_regular(whole, _LARGEST_FILE)
        except OSError as error:
            return f"{shown}: {error.strerror}"
        if data is None or len(data) > _LARGEST_FILE:
            return f"{shown}: it is too long"
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return f"{shown}: it is binary"
        if "\0" in text:
            return f"{shown}: it is binary"
        lines = tuple(f"+{line}" for line in text.removesuffix("\n").split("\n")) if text else ()
        hunks = (NumberedHunk(first=1, lines=lines),) if lines else ()
        return DiffFile(path=shown, kind="new", hunks=hunks)

    def _why_not(self, path: str) -> str:
        """Say why a file may not be read without asking; empty where it may."""
        whole = f"{self._root}/{path}"
        decision = decide(READ_FILE, {"path": whole}, judge_path(whole).accesses(), self._policy)
        return "" if decision.verdict is Verdict.ALLOW else words_of_decision(decision).headline

    def _ask(self, *arguments: str) -> str | None:
        said = ask_git(self._root, arguments, seconds=_SECONDS) if self._trusted else self._ask_confined(arguments)
        return None if said is None else said.decode(errors="surrogateescape")

    def _ask_confined(self, arguments: tuple[str, ...]) -> bytes | None:
        """Ask git in a folder that is not trusted: only where something confines it."""
        with tempfile.TemporaryDirectory(prefix="treadle-review-") as private:
            try:
                return GitReader(self._root, private)(*arguments)
            except ToolError as error:
                raise ConfigError(
                    "review-trust",
                    "git does not run in a folder that you do not trust.",
                    why=error.text,
                    fix="Trust the folder with `treadle trust`, or give a diff: treadle review FILE.diff",
                ) from error


def _silent(what: str) -> ConfigError:
    why = f"It failed, or did not answer within {_SECONDS:.0f} seconds."
    return ConfigError("review-range", what, why=why, fix="Try again, or name commits: treadle review HEAD~1")


def changes_in_words(changes: ChangesToReview) -> Iterator[str]:
    """Say what is reviewed, and what is not."""
    added, removed = (sum(file.changed(sign) for file in changes.files) for sign in "+-")
    yield f"Reviewing {changes.about}: {counted(len(changes.files), 'file')}, +{added} -{removed}."
    yield from (f"Left out: {one}." for one in changes.left_out)
