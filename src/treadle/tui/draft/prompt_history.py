"""Earlier messages, in a file that only the user can read: those of a folder first, and behind them all others."""

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes

from prompt_toolkit.history import History, InMemoryHistory

_FOLDER = "# folder: "
_TEXT = "+"


class FolderHistory(History):
    """The messages in `file`, each with the folder in which it was entered; earlier files do not say which.

    Those of `folder` come first, the newest of them before all; another one's are not repeated where they are the same.
    """

    def __init__(self, file: Path, folder: Path) -> None:
        super().__init__()
        self._file = file
        self._folder = str(folder)
        self._elsewhere: dict[str, str] = {}

    def load_history_strings(self) -> Iterable[str]:
        """Give the messages in the order in which they are gone through."""
        try:
            kept = list(_read(self._file.read_bytes().decode(errors="replace")))
        except OSError:
            return
        here = [text for text, folder in reversed(kept) if folder == self._folder]
        yield from here
        known = set(here)
        for text, folder in reversed(kept):
            if text not in known:
                known.add(text)
                self._elsewhere[text] = folder
                yield text

    def store_string(self, string: str) -> None:
        """Keep a message."""
        lines = "".join(f"{_TEXT}{line}\n" for line in string.split("\n"))
        folder = quote_from_bytes(os.fsencode(self._folder))
        entry = f"\n# {datetime.now(UTC):%Y-%m-%d %H:%M:%S}\n{_FOLDER}{folder}\n{lines}"
        with self._file.open("ab") as file:
            file.write(entry.encode(errors="replace"))
        self._elsewhere.pop(string, None)

    def elsewhere(self, text: str) -> str:
        """Name the folder in which a message was entered, if it was another one, and known."""
        return self._elsewhere.get(text, "")


def _read(text: str) -> Iterator[tuple[str, str]]:
    folder, lines = "", list[str]()
    for line in [*text.split("\n"), ""]:
        if line.startswith(_TEXT):
            lines.append(line.removeprefix(_TEXT))
            continue
        if lines:
            yield "\n".join(lines), folder
            folder, lines = "", []
        if line.startswith(_FOLDER):
            folder = os.fsdecode(unquote_to_bytes(line.removeprefix(_FOLDER)))


def open_history(file: Path, folder: Path) -> History:
    """Open the history in `file`, for a folder; where it cannot be written, it lasts as long as the program."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.touch(mode=0o600)
        file.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return FolderHistory(file, folder)
