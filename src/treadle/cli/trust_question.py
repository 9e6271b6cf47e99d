"""The question whether a folder is trusted, in words that are true for what is in it, and the line that it leaves."""

from collections.abc import Iterator

from treadle.door.trust import NOTHING_RUNS, allow_lines, allow_rules, shown_path, trust_lines
from treadle.store.activation import ActiveKind
from treadle.store.trusted_folders import Trust, TrustState
from treadle.tui.lists.choice_list import Choosing, ListRow
from treadle.tui.paint.lines import Line, line
from treadle.tui.paint.theme import Signs
from treadle.tui.session.greeting import short_path
from treadle.workspace.files.text import visible_name

_KINDS = {
    ActiveKind.RULES: ("rules for the model", "its rules are sent to the model"),
    ActiveKind.SKILL: ("skills", "its skills are offered to the model"),
    ActiveKind.COMMAND: ("commands", "its commands can be entered"),
    ActiveKind.AGENT: ("agents", "its agents can be given work"),
    ActiveKind.SETTINGS: ("settings", "its settings apply and can start programs"),
    ActiveKind.SERVERS: ("servers", "its servers start"),
    ActiveKind.HOOK: ("git hooks", "git runs its hooks"),
    ActiveKind.SESSION_HOOK: ("hooks", "its hooks run where your settings want those of Claude Code"),
    ActiveKind.GIT: ("git settings", "git uses its settings, which can start programs"),
}
_MOST_NAMED = 3
_LONGEST_RULE = 80


def trust_question(trust: Trust, problem: str = "") -> Choosing:
    """Put the question about a folder; Esc is not now."""
    changed = trust.state is TrustState.CHANGED
    return Choosing(
        title="Do you still trust this folder?" if changed else "Do you trust this folder?",
        about=short_path(shown_path(str(trust.workspace))),
        text=tuple(_sentences(trust)),
        problem=problem,
        details=(*trust_lines(trust), *allow_lines(trust)),
        rows=(ListRow("Not now"), ListRow("Yes, trust it"), ListRow("Never for this folder")),
        leaving="not now",
        approves=True,
    )


def said_line(trust: Trust, signs: Signs) -> Line:
    """Say what was answered, for the scrollback."""
    folder = short_path(shown_path(str(trust.workspace)))
    if trust.state is TrustState.TRUSTED:
        return line(("add", signs.ok), ("dim", f" Trusted: {folder}"))
    said = "Not trusted yet: {}"
    if trust.refused:
        said = "Not trusted: {}. Treadle asks again only when its files change."
    return line(("warn", signs.refused), ("dim", f" {said.format(folder)}"))


def _sentences(trust: Trust) -> Iterator[str]:
    if trust.changed:
        yield f"Changed since you trusted it: {_listed(list(_changes(trust)))}."
    if trust.copy_of is not None:
        yield f"It is a copy of {short_path(shown_path(str(trust.copy_of)))}."
    kinds = [kind for kind in _KINDS if any(item.kind is kind for item in trust.listed)]
    if not kinds:
        yield NOTHING_RUNS
        return
    yield f"It has {_joined([_named(trust, kind) for kind in kinds])}."
    yield f"If you trust it, {_joined([_KINDS[kind][1] for kind in kinds])}. A change asks again."
    rules = [visible_name(rule.matches) for rule in allow_rules(trust)]
    if rules:
        cut = [rule if len(rule) <= _LONGEST_RULE else f"{rule[:_LONGEST_RULE]}…" for rule in rules]
        yield f"Its rules let this run without asking: {_listed(cut)}."


def _named(trust: Trust, kind: ActiveKind) -> str:
    """Name what there is of a kind: the files where they are few."""
    paths = [shown_path(item.path) for item in trust.listed if item.kind is kind]
    return f"{_KINDS[kind][0]} ({', '.join(paths) if len(paths) < _MOST_NAMED else f'{len(paths)} files'})"


def _changes(trust: Trust) -> Iterator[str]:
    present = {item.path for item in trust.listed}
    for path in trust.changed:
        how = "gone" if path not in present else "changed" if path in trust.known else "new"
        yield f"{shown_path(path)} ({how})"


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return _joined([*names[:_MOST_NAMED], *([f"{more} more"] if more > 0 else [])])


def _joined(parts: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
