"""The texts of the system prompt."""

from pathlib import Path

from treadle.context.system import SystemParts

_FOLDER = Path(__file__).parent


def load_parts(*, checklist: bool = True) -> SystemParts:
    """Read the texts that ship with Treadle."""
    return SystemParts(
        work=_read("work.md"),
        native=_read("native.md"),
        xml=_read("xml.md"),
        checklist=_read("checklist.md") if checklist else "",
    )


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def prompt_of(command: str) -> str:
    """Read the text of a slash command that is a prompt for the model."""
    return _read(f"command-{command}.md").strip()
