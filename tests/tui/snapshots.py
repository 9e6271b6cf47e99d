"""Pictures of the screen as text, kept in files: `TREADLE_SNAPSHOTS=write` writes them anew."""

import os
from pathlib import Path

_FOLDER = Path(__file__).with_name("snapshots")


def same_as_before(name: str, text: str) -> None:
    """Compare with what is kept under a name; fails with both."""
    file = _FOLDER / f"{name}.txt"
    if os.environ.get("TREADLE_SNAPSHOTS") == "write":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), f"{file} shows something else (TREADLE_SNAPSHOTS=write keeps it)"
