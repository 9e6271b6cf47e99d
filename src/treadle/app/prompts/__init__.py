"""The texts of the system prompt."""

from pathlib import Path

from treadle.context.system import SystemParts

_FOLDER = Path(__file__).parent


def load_parts() -> SystemParts:
    """Read the texts that ship with Treadle."""
    return SystemParts(work=_read("work.md"), native=_read("native.md"), xml=_read("xml.md"))


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
