"""Earlier prompts, in a file that only the user can read."""

from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory


def open_history(file: Path) -> History:
    """Open the history in `file`; where it cannot be written, it lasts as long as the program."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.touch(mode=0o600)
        file.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))
