"""Files as an editor has them: what is not saved there yet is what tools read and change."""

import hashlib
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, TypeAlias

from msgspec import Struct

from treadle.app.config.places import outputs
from treadle.protocol.errors import ToolError
from treadle.workspace.commands.background_jobs import read_jobs
from treadle.workspace.files.encodings import Encoding
from treadle.workspace.files.file_access import DiskFiles, FileAccess
from treadle.workspace.files.judged import JudgedPath, judge_path
from treadle.workspace.files.pages import Page, PageLimits, page_of
from treadle.workspace.files.text_files import MAX_WHOLE, TextFile


class BufferRefusedError(Exception):
    """The editor knows the file and does not save it; the text says why."""


class EditorBuffers(Protocol):
    """The texts of an editor; called from threads, and bounded in time."""

    def read(self, path: str) -> str | None:
        """Give the text of a file as it is in the editor; None where the editor has none, or does not say."""
        ...

    def write(self, path: str, text: str) -> bool:
        """Save a text through the editor; False where it cannot. Raises `BufferRefusedError`."""
        ...


SavesTyped: TypeAlias = Callable[[str, bytes], AbstractContextManager[None]]
"""Goes around saving a file that has a text of a person which the disk has not: given its path and that text.

It notes that the text is the person's. Called in a thread, and raises `ToolError` where the text is not to be saved.
"""


def editor_files(disk: FileAccess, roots: tuple[str, ...], buffers: EditorBuffers, typed: SavesTyped) -> FileAccess:
    """Let a session's tools read and save what an editor has."""
    return EditorFiles(disk=disk, buffers=buffers, roots=roots, typed=typed, busy=_background_commands_run)


def unsaved_files(buffers: EditorBuffers, paths: Iterable[str]) -> frozenset[str]:
    """Give those of the paths (absolute) of which the editor has a text that is not saved; for a thread."""
    disk = DiskFiles()
    return frozenset(path for path in paths if _held(disk, buffers, judge_path(path), path).unsaved is not None)


def _background_commands_run() -> bool:
    """Whether a command of any session runs in the background."""
    folder = outputs()
    sessions = folder.iterdir() if folder.is_dir() else ()
    return any(job.runs for session in sessions for job in read_jobs(session))


class _Held(Struct, frozen=True):
    """What the editor has of a file: whether it knows it, and its text where that is not the one on the disk."""

    known: bool = False
    unsaved: TextFile | None = None


class EditorFiles(Struct, frozen=True, kw_only=True):
    """Text files of the `roots` as the editor has them; all other files, and what the editor has not, on the `disk`.

    A file whose text in the editor is that of the disk is read and hashed from the disk. Only plain UTF-8 goes through
    the editor: how it would write anything else is not known.

    While a confined command runs beside the tools (`busy`) all is read and saved on the disk: it could put a link in
    the place of a file just when the editor, which is not confined, opens it. What is typed is still not overwritten.
    """

    disk: FileAccess
    buffers: EditorBuffers
    roots: tuple[str, ...]
    typed: SavesTyped
    busy: Callable[[], bool]

    def exists(self, place: JudgedPath) -> bool:
        """Whether anything is there, be it a text that was never saved."""
        return self.disk.exists(place) or self._unsaved(place, place.asked) is not None

    def read_bytes(self, place: JudgedPath, name: str) -> bytes:
        """Read a file whole."""
        unsaved = self._unsaved(place, name)
        return self.disk.read_bytes(place, name) if unsaved is None else unsaved.encode(unsaved.text)

    def read_text(self, place: JudgedPath, name: str) -> TextFile:
        """Read a text file whole."""
        return self._unsaved(place, name) or self.disk.read_text(place, name)

    def read_page(self, place: JudgedPath, name: str, *, first: int, limits: PageLimits) -> Page:
        """Read lines of a file from number `first` on."""
        unsaved = self._unsaved(place, name)
        if unsaved is None:
            return self.disk.read_page(place, name, first=first, limits=limits)
        return page_of(unsaved.text, unsaved.digest, first=first, limits=limits)

    def save(self, target: str, data: bytes, *, expected: str, name: str, mode: int | None) -> None:
        """Replace the file, through the editor where that can be; nothing else than was expected is replaced."""
        place = judge_path(target)
        held = self._held(place, name)
        if self._goes_through(place, held, data, expected) and mode is None and self._write(held, target, data, name):
            return
        self.disk.save(target, data, expected=expected, name=name, mode=mode)

    def remove(self, target: str, *, expected: str, name: str) -> None:
        """Remove the file; one with a text that is not saved stays."""
        if self._held(judge_path(target), name).unsaved is not None:
            raise ToolError(f"{name} has changes in the editor that are not saved. It was not deleted; tell the user.")
        self.disk.remove(target, expected=expected, name=name)

    def _goes_through(self, place: JudgedPath, held: _Held, data: bytes, expected: str) -> bool:
        """Whether the editor saves this file; raises `ToolError` where it has another text than was expected."""
        if held.unsaved is not None and held.unsaved.digest != expected:
            raise ToolError(
                f"{held.unsaved.name} was changed in the editor in the meantime. Nothing was written; their text "
                "stays. Read the file again and base the change on it."
            )
        if place.resolved != place.asked or not _is_plain(data) or self.busy():
            return False
        if held.unsaved is not None:
            return True
        if self.disk.exists(place):
            return held.known and _sha256(self.disk.read_bytes(place, place.asked)) == expected
        return not expected and self._inside(place.asked) and Path(place.asked).parent.is_dir()

    def _write(self, held: _Held, target: str, data: bytes, name: str) -> bool:
        if held.unsaved is None:
            return self._saved(target, data, name)
        with self.typed(target, held.unsaved.encode(held.unsaved.text)):
            if self._saved(target, data, name):
                return True
            raise ToolError(
                f"{name} was not saved: it has changes in the editor that are not saved, and the editor saves nothing "
                "for others. Ask the user to save it, then read it again."
            )

    def _saved(self, target: str, data: bytes, name: str) -> bool:
        try:
            return self.buffers.write(target, data.decode())
        except BufferRefusedError as refusal:
            raise ToolError(f"{name} was not saved: the editor says {refusal}. Tell the user.") from refusal

    def _inside(self, path: str) -> bool:
        return any(Path(path).is_relative_to(root) for root in self.roots)

    def _unsaved(self, place: JudgedPath, name: str) -> TextFile | None:
        """Give the text of a file that is not saved yet, as far as it can be known for what it is."""
        return None if self.busy() else self._held(place, name).unsaved

    def _held(self, place: JudgedPath, name: str) -> _Held:
        return _held(self.disk, self.buffers, place, name) if self._inside(place.resolved) else _Held()


def _held(disk: FileAccess, buffers: EditorBuffers, place: JudgedPath, name: str) -> _Held:
    """Ask the editor for a file; a text of nothing for a file that is missing is none."""
    text = buffers.read(place.resolved)
    if text is None or len(text) > MAX_WHOLE:
        return _Held()
    if not disk.exists(place):
        return _Held(bool(text), _file(name, text) if text else None)
    try:
        saved = disk.read_text(place, name)
    except ToolError:
        return _Held()
    if saved.read_as != Encoding():
        return _Held()
    if _unix(text) == _unix(saved.text):
        return _Held(known=True)
    return _Held(True, _file(name, _unix(text).replace("\n", "\r\n") if saved.newline == "\r\n" else text))


def _file(name: str, text: str) -> TextFile:
    text = text.encode(errors="replace").decode()
    return TextFile(name=name, text=text, digest=_sha256(text.encode()))


def _unix(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _is_plain(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return not data.startswith(b"\xef\xbb\xbf") and b"\0" not in data


def _sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
