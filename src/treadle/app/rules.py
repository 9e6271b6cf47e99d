"""Rules files of the workspace: what AGENTS.md, or CLAUDE.md in its place, tells the model."""

from pathlib import Path

from treadle.context.system import Rules

_NAMES = ("AGENTS.md", "CLAUDE.md")
_LONGEST = 32_768


def load_rules(workspace: Path) -> tuple[Rules, ...]:
    """Read the rules from the top of the repository down to the workspace; each folder gives its first file found."""
    folders = [workspace, *workspace.parents]
    top = next((index for index, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    found = []
    for folder in reversed(folders[: top + 1]):
        rules = _first(folder, workspace)
        if rules is not None:
            found.append(rules)
    return tuple(found)


def _first(folder: Path, workspace: Path) -> Rules | None:
    for name in _NAMES:
        file = folder / name
        try:
            with file.open("rb") as stream:
                text = stream.read(_LONGEST + 1).decode(errors="replace")
        except OSError:
            continue
        if len(text) > _LONGEST:
            text = f"{text[:_LONGEST]}\n[cut after {_LONGEST} characters]"
        origin = name if folder == workspace else str(file)
        return Rules(origin=origin, text=text)
    return None
