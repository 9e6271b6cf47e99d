"""Rules files of a trusted workspace: what AGENTS.md, or CLAUDE.md in its place, tells the model."""

from pathlib import Path

from treadle.app.security.trusting import SessionTrust
from treadle.context.system import Rules
from treadle.store.activation import ActiveFile, ActiveKind
from treadle.store.trust import read_item

_NAMES = ("AGENTS.md", "CLAUDE.md")
_LONGEST = 32_768


def load_project_rules(trust: SessionTrust) -> tuple[Rules, ...]:
    """Read the rules from the top of the repository down to the workspace; each folder gives its first file found.

    Only what was trusted counts, byte for byte; in a folder that is not trusted there are none.
    """
    if not trust.trusted:
        return ()
    folders: dict[Path, list[ActiveFile]] = {}
    for item in trust.items:
        if item.kind is ActiveKind.RULES and Path(item.path).name in _NAMES:
            folders.setdefault((trust.workspace / item.path).parent, []).append(item)
    outermost_first = sorted(folders, key=lambda folder: len(folder.parts))
    found = (_first(trust.workspace, sorted(folders[folder])) for folder in outermost_first)
    return tuple(rules for rules in found if rules is not None)


def _first(workspace: Path, items: list[ActiveFile]) -> Rules | None:
    for item in items:
        content = read_item(workspace, item)
        if content is None:
            continue
        text = content[: _LONGEST + 1].decode(errors="replace")
        if len(text) > _LONGEST:
            text = f"{text[:_LONGEST]}\n[cut after {_LONGEST} characters]"
        return Rules(origin=item.path, text=text)
    return None
