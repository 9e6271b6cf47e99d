"""The one way in which tools read and save files: on the disk, or in whatever stands in for it, such as an editor."""

from collections.abc import Callable
from os.path import lexists
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from treadle.workspace.files.judged import JudgedPath
    from treadle.workspace.files.pages import Page, PageLimits
    from treadle.workspace.files.temporary_files import TemporaryFiles
    from treadle.workspace.files.text_files import TextFile


def _not_noted() -> "TemporaryFiles":
    from treadle.workspace.files.temporary_files import TemporaryFiles

    return TemporaryFiles()


class FileAccess(Protocol):
    """Reads what was judged and saves over what was expected. All may take their time, and raise `ToolError`.

    `name` is what a file is called to the model, `target` is absolute with every link resolved, and `expected` the
    SHA-256 of what is to be replaced or removed, empty where there is nothing.
    """

    def exists(self, place: "JudgedPath") -> bool:
        """Whether anything is there, be it a broken link."""
        ...

    def read_bytes(self, place: "JudgedPath", name: str) -> bytes:
        """Read a file whole."""
        ...

    def read_text(self, place: "JudgedPath", name: str) -> "TextFile":
        """Read a text file whole."""
        ...

    def read_page(self, place: "JudgedPath", name: str, *, first: int, limits: "PageLimits") -> "Page":
        """Read lines of a file from number `first` on."""
        ...

    def save(self, target: str, data: bytes, *, expected: str, name: str, mode: int | None) -> None:
        """Replace the file, or create it and its directories; a new one gets the `mode`."""
        ...

    def remove(self, target: str, *, expected: str, name: str) -> None:
        """Remove the file."""
        ...


FilesOver: TypeAlias = Callable[[FileAccess, tuple[str, ...]], FileAccess]
"""Gives what stands in for the disk below some folders, given what reads and saves there, and the folders."""


def on_disk(disk: FileAccess, folders: tuple[str, ...]) -> FileAccess:  # noqa: ARG001 - of any folder
    """Let nothing stand in for the disk."""
    return disk


class DiskFiles(Struct, frozen=True, kw_only=True):
    """The files as they are on the disk; `temporary_files` gives what notes a file that is being written.

    What reads and saves is loaded with the first call that needs it.
    """

    temporary_files: "Callable[[], TemporaryFiles]" = _not_noted

    def exists(self, place: "JudgedPath") -> bool:
        """Whether anything is there, be it a broken link."""
        return lexists(place.resolved)

    def read_bytes(self, place: "JudgedPath", name: str) -> bytes:
        """Read a file whole."""
        from treadle.workspace.files.text_files import read_bytes

        return read_bytes(place, name)

    def read_text(self, place: "JudgedPath", name: str) -> "TextFile":
        """Read a text file whole."""
        from treadle.workspace.files.text_files import read_text

        return read_text(place, name)

    def read_page(self, place: "JudgedPath", name: str, *, first: int, limits: "PageLimits") -> "Page":
        """Read lines of a file from number `first` on."""
        from treadle.workspace.files.pages import read_page

        return read_page(place, name, first=first, limits=limits)

    def save(self, target: str, data: bytes, *, expected: str, name: str, mode: int | None) -> None:
        """Replace the file, or create it and its directories; a new one gets the `mode`."""
        from treadle.workspace.files.saving import save

        save(target, data, expected=expected, name=name, temporary_files=self.temporary_files(), mode=mode)

    def remove(self, target: str, *, expected: str, name: str) -> None:
        """Remove the file."""
        from treadle.workspace.files.saving import remove

        remove(target, expected=expected, name=name)
