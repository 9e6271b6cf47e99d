"""What lies between two checkpoints, file by file and change by change, and the wish to take a part of it back."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import sha256

from msgspec import Struct

from treadle.app.checkpoints.checkpoint_files import FileCheckpoints
from treadle.app.checkpoints.conflicts import FileConflict, FileVersion, conflict_of
from treadle.app.checkpoints.own_files import KeptRoot, OwnFiles
from treadle.editing.shown_edits import defined_in
from treadle.protocol.checkpoints import CheckpointTaken, Restore
from treadle.protocol.errors import ConfigError, ToolError
from treadle.workspace.checkpoints.comparing import TreeChange
from treadle.workspace.checkpoints.merging import LineChange, is_binary, line_edits, split_lines
from treadle.workspace.checkpoints.planning import ClashError
from treadle.workspace.checkpoints.revising import RevisedFile, revise_lines
from treadle.workspace.checkpoints.store import CheckpointStore
from treadle.workspace.checkpoints.trees import TreeEntry, TreeKind
from treadle.workspace.files.names import shown_name
from treadle.workspace.files.text_files import TextFile, decode

_CRLF = b"\r\n"


class FileToReview(Struct, frozen=True, kw_only=True):
    """A file that differs. `path` is as it is shown: below the first folder of the workspace, or absolute.

    `own` says that something of it is the session's; `added` and `removed` count the lines of that.
    """

    path: str
    root: int
    change: TreeChange
    own: bool
    added: int = 0
    removed: int = 0

    @property
    def kind(self) -> str:
        """Say what became of it."""
        return "added" if self.change.before is None else "deleted" if self.change.after is None else "changed"

    @property
    def mixed(self) -> bool:
        """Whether others changed lines of it, too."""
        lines = self.change.added, self.change.removed
        return self.own and self.change.added is not None and lines != (self.added, self.removed)

    @property
    def notes(self) -> tuple[str, ...]:
        """Say what is special about it, beside its lines."""
        before, after = self.change.before, self.change.after
        found: list[str] = []
        kinds = {entry.kind for entry in (before, after) if entry is not None}
        if TreeKind.LINK in kinds:
            found.append("a link" if len(kinds) == 1 else "a file and a link")
        elif not self.change.by_lines:
            what = "binary" if self.change.added is None else "UTF-16 or UTF-32"
            found.append(f"{what}, {_size(before)} to {_size(after)}")
        if before is not None and after is not None and before.mode != after.mode and len(kinds) == 1:
            found.append(f"mode {before.mode:o} to {after.mode:o}")
        return tuple(found)


class ReviewedHunk(Struct, frozen=True, kw_only=True):
    """One change of a file: `old` and `new` are its lines, `above` and `below` some that are the same around it.

    Lines are numbered from 1: `old_first` and `new_first` are those of the change itself. `key` names the change by
    what it says, wherever it is shown; `within` is the nearest definition at or above its first line, as git has it;
    `editable` says that its new lines can be written in a field of text.
    """

    index: int
    key: str
    old_first: int
    new_first: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    above: tuple[str, ...]
    below: tuple[str, ...]
    within: str
    editable: bool


class HunkChoice(Struct, frozen=True):
    """A change that is not to stay as it is: it goes, or with a `text` its new lines become this."""

    index: int
    text: str | None = None


class FileChoice(Struct, frozen=True):
    """What is to be taken back of a file: some of its changes, or with none of them all of it."""

    path: str
    hunks: tuple[HunkChoice, ...] = ()


class SessionReview:
    """The changes of a session between two checkpoints, or up to the files as they are. All of it takes its time."""

    def __init__(
        self,
        kept: FileCheckpoints,
        taken: Sequence[CheckpointTaken],
        old: Sequence[str],
        new: Sequence[str],
    ) -> None:
        self.old, self.new = tuple(old), tuple(new)
        self._kept = kept
        self._own = OwnFiles(kept.roots, taken)
        self._own.look(new, by_session=kept.background_ran())
        numbers = {root.path: number for number, root in enumerate(kept.roots)}
        self.files = tuple(self._file(numbers[root.path], change) for root, change in kept.changes(old, new))

    def _file(self, root: int, change: TreeChange) -> FileToReview:
        mine = self._own.change(root, os.fsencode(change.path))
        return FileToReview(
            path=_path(self._kept.roots, root, change.path),
            root=root,
            change=change,
            own=mine is not None,
            added=0 if mine is None else mine.added or 0,
            removed=0 if mine is None else mine.removed or 0,
        )

    def close(self) -> None:
        """Close the files of the checkpoints."""
        self._kept.close()

    def file(self, path: str) -> FileToReview:
        """Find a file by its shown path; raises `ConfigError`."""
        found = next((one for one in self.files if one.path == path), None)
        if found is None:
            raise ConfigError("review-gone", f"{path} has not changed here.", fix="Load the changes again.")
        return found

    def hunks(self, file: FileToReview, context: int = 3) -> tuple[ReviewedHunk, ...]:
        """Give the changes of a file of text, in order; none of what is no text."""
        text = self._text(file)
        return () if text is None else tuple(text.hunks(file.path, context))

    def lines(self, file: FileToReview) -> tuple[Sequence[str], Sequence[str]]:
        """Give all lines of a file of text before and after, as its changes show them; none of what is no text."""
        text = self._text(file)
        return ((), ()) if text is None else text.lines()

    def conflict(self, path: str) -> FileConflict:
        """Compare the three versions of a file that could not be merged: before, after, and as it is in the folder now.

        Raises `ConfigError`, `StoreError`.
        """
        file = self.file(path)
        root = self._kept.roots[file.root]
        now = file.change.after
        for at, change in self._kept.changes(self.new, self._kept.look()):
            if at is root and change.path == file.change.path:
                now = change.after
        return conflict_of(path, *(_read(root.kept, entry) for entry in (file.change.before, file.change.after, now)))

    def amendable(self, path: str, index: int) -> str:
        """Give the new lines of a change as a field of text has them; raises `ConfigError`."""
        text = self._text(self.file(path))
        if text is None or not 0 <= index < len(text.changes) or (found := text.editable(index)) is None:
            raise ConfigError(
                "review-text",
                "This change cannot be edited here.",
                why="It is not text in an encoding that is known, or it mixes line ends.",
                fix="Edit the file in an editor, or reject the change.",
            )
        return found

    def take_back(self, choices: Sequence[FileChoice]) -> Restore:
        """Keep what the files are to become; gives the wish to post.

        What is in the folder by then is merged with it, line by line. Raises `ConfigError`, `StoreError`.
        """
        revisions: list[dict[bytes, RevisedFile | None]] = [{} for _ in self._kept.roots]
        for choice in choices:
            file = self.file(choice.path)
            if not file.own:
                raise ConfigError(
                    "review-others",
                    f"{file.path} was not changed by this session.",
                    fix="Change it in an editor: only the session's own changes are taken back here.",
                )
            revisions[file.root][os.fsencode(file.change.path)] = self._revised(file, choice.hunks)
        wanted, blocked = self._kept.keep_part(self.new, revisions)
        if blocked:
            raise ConfigError(
                "review-blocked",
                f"{blocked[0]} cannot be brought back by itself.",
                why="Something that stays is in its place.",
                fix="Reject what is in its place together with it.",
            )
        return wanted

    def _revised(self, file: FileToReview, hunks: Sequence[HunkChoice]) -> RevisedFile | None:
        before, after = file.change.before, file.change.after
        text = self._text(file)
        if not hunks:
            return self._without_own(file)
        wanted = {one.index: one.text for one in hunks}
        if text is None or not all(0 <= index < len(text.changes) for index in wanted):
            raise ConfigError("review-gone", f"There is no such change in {file.path}.", fix="Load the changes again.")
        entry = after or before
        assert entry is not None  # noqa: S101 - one of them is there
        if len(wanted) == len(text.changes) and set(wanted.values()) == {None} and None in (before, after):
            return self._without_own(file)
        made = {index: None if given is None else text.bytes_of(index, given) for index, given in wanted.items()}
        return RevisedFile(entry=entry, content=revise_lines(text.old, text.new, text.changes, made))

    def _without_own(self, file: FileToReview) -> RevisedFile | None:
        """Give what a file is without all that is the session's in it. Raises `ConfigError`."""
        try:
            wanted = self._own.without(file.root, os.fsencode(file.change.path))
        except ClashError as error:
            raise ConfigError(
                "review-mixed",
                f"{file.path} is not taken back as a whole: others changed the same lines as the session.",
                fix="Reject single changes, or change the file in an editor.",
            ) from error
        return None if wanted.entry is None else RevisedFile(entry=wanted.entry, content=wanted.content)

    def _text(self, file: FileToReview) -> "TextVersions | None":
        before, after = file.change.before, file.change.after
        if not file.change.by_lines or TreeKind.LINK in {entry.kind for entry in (before, after) if entry is not None}:
            return None
        kept = self._kept.roots[file.root].kept
        old, new = (b"" if entry is None else kept.read(entry.what) for entry in (before, after))
        return TextVersions(old, new)


class TextVersions:
    """A file of text before and after."""

    def __init__(self, old: bytes, new: bytes) -> None:
        self.old, self.new = old, new
        self._before, self._after = split_lines(old), split_lines(new)
        self._known = _known_text(old, new)
        ended = [line for line in (*self._before, *self._after) if line.endswith(b"\n")]
        self._crlf = bool(ended) and all(line.endswith(_CRLF) for line in ended)

    @cached_property
    def changes(self) -> list[LineChange]:
        return line_edits(self._before, self._after)

    def lines(self) -> tuple[Sequence[str], Sequence[str]]:
        return self._shown(self._before), self._shown(self._after)

    def hunks(self, path: str, context: int) -> Iterator[ReviewedHunk]:
        last, within, read, text = -1, "", 0, self._shown(self._after)
        known: Counter[str] = Counter()
        for index, change in enumerate(self.changes):
            after = self.changes[index + 1] if index + 1 < len(self.changes) else None
            until = len(self._after) if after is None else after.new_start
            # What lies between two changes is shown once: behind the first, and from there on before the second.
            shown = min(until, change.new_end + context)
            first = max(0, last, change.new_start - context)
            old, new = self._before[change.start : change.end], self._after[change.new_start : change.new_end]
            for line in text[read : change.new_start]:
                within = defined_in(line) or within
            read = change.new_start
            said = _key(path, old, new)
            known[said] += 1
            yield ReviewedHunk(
                index=index,
                key=said if known[said] == 1 else f"{said}-{known[said]}",
                old_first=change.start + 1,
                new_first=change.new_start + 1,
                old=self._shown(old),
                new=self._shown(new),
                above=self._shown(self._after[first : change.new_start]),
                below=self._shown(self._after[change.new_end : shown]),
                within=(defined_in(text[read]) if new else "") or within,
                editable=self.editable(index) is not None,
            )
            last = shown

    def editable(self, index: int) -> str | None:
        """Give the new lines of a change as text, with line feeds; None where that would not be the same lines."""
        change = self.changes[index]
        lines = self._after[change.new_start : change.new_end]
        if self._known is None:
            return None
        try:
            text = b"".join(lines).decode(self._known.read_as.name)
        except UnicodeDecodeError:
            return None
        text = text.replace("\r\n", "\n") if self._crlf else text
        return None if "\r" in text or "\0" in text else text

    def bytes_of(self, index: int, text: str) -> bytes:
        """Give what a person wrote in the place of a change as bytes, with the line ends and the encoding of the file.

        Raises `ConfigError` where the encoding has no such characters.
        """
        if self._known is None or self.editable(index) is None:
            raise ConfigError("review-text", "This change cannot be edited here.", fix="Edit the file in an editor.")
        change = self.changes[index]
        text = text.replace("\r\n", "\n")
        at_end = change.new_end == len(self._after)
        open_end = at_end and not self.new.endswith(b"\n") and change.new_end > change.new_start
        if text and not text.endswith("\n") and not open_end:
            text += "\n"
        text = text.replace("\n", "\r\n") if self._crlf else text
        try:
            return self._known.encode(text)
        except ToolError as error:
            raise ConfigError("review-encoding", error.text, fix="Edit the file in an editor.") from error

    def _shown(self, lines: Sequence[bytes]) -> tuple[str, ...]:
        return tuple(self._shown_line(line) for line in lines)

    def _shown_line(self, line: bytes) -> str:
        ended = line.endswith(b"\n")
        line = line.removesuffix(_CRLF) if self._crlf else line.removesuffix(b"\n")
        text = line.decode(self._known.read_as.name if self._known else "utf-8", errors="backslashreplace")
        return text if ended else f"{text}\n\\ No newline at end of file"


def _known_text(old: bytes, new: bytes) -> TextFile | None:
    """Both versions as one text, in the one encoding that they have; None where there is none."""
    both = old + new
    try:
        return TextFile(name="The file", text=both.decode(), digest="")
    except UnicodeDecodeError:
        pass
    try:
        read = decode(both, "The file")
    except ToolError:
        return None
    return None if read.read_as.name.startswith("utf") else read


def _key(path: str, old: Sequence[bytes], new: Sequence[bytes]) -> str:
    sides = (path.encode(errors="surrogateescape"), b"".join(old), b"".join(new))
    return sha256(b"\0".join(sha256(side).digest() for side in sides)).hexdigest()[:32]


def _read(kept: CheckpointStore, entry: TreeEntry | None) -> FileVersion:
    if entry is None:
        return FileVersion(about="It is not there.")
    content = kept.read(entry.what)
    if entry.kind is TreeKind.LINK:
        return FileVersion(about=f"It is a link to {shown_name(os.fsdecode(content))}.")
    return (
        FileVersion(about=f"It is binary: {entry.size:,} bytes.")
        if is_binary(content)
        else FileVersion(content=content)
    )


def _size(entry: TreeEntry | None) -> str:
    return "nothing" if entry is None else f"{entry.size:,} bytes"


def _path(roots: Sequence[KeptRoot], number: int, path: str) -> str:
    return shown_name(path) if number == 0 else roots[number].shown(path)
