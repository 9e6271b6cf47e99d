"""The hooks that there are for a folder: what each runs and when, whose it is, and whether it runs at all."""

import json
import tomllib
from collections.abc import Iterator

from msgspec.structs import replace

from treadle.app.config.hook_settings import HookOrigin, HookSpec, hook_specs
from treadle.app.config.layers import WORKSPACE_FILE
from treadle.app.config.sections import Settings
from treadle.app.hooks.opening_hooks import CLAUDE, found_hooks
from treadle.app.reports.foreign_hooks import foreign_hooks, unreadable_settings
from treadle.app.security.trusting import SessionTrust
from treadle.protocol.base import Record
from treadle.store.activation import CLAUDE_SETTINGS
from treadle.store.active_items import read_item

_FOLDER = HookOrigin.FOLDER
_NOT_WANTED = 'your setting hooks_from does not name "claude"'


class HookLine(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One hook. `active` says whether it runs, and `why_not` why it does not; `timeout` is seconds."""

    event: str
    matcher: str
    type: str
    command: str
    origin: HookOrigin
    file: str
    timeout: float
    blocks: bool
    confined: bool
    active: bool
    why_not: str = ""


NO_HOOKS = "There are no hooks. docs/hooks.md says how to set one."


def hook_text(line: HookLine) -> str:
    """Write a hook in two lines: when it runs and what, then whose it is and how."""
    facts = [f"{line.origin}, {line.file}"]
    facts += [f"{line.timeout:g} s"] if line.timeout else []
    facts += ["a failure blocks"] if line.blocks else []
    if line.type == "command" and line.timeout:
        facts += ["in the sandbox" if line.confined else "not in the sandbox"]
    facts += [] if line.active else [f"does not run: {line.why_not}"]
    return f"{line.event}  {line.matcher}  {line.command}\n    {'; '.join(facts)}"


def list_hooks(settings: Settings, trust: SessionTrust) -> tuple[HookLine, ...]:
    """List every hook of the user and of a folder, and why one does not run: also those of other programs.

    Those of a folder that is not trusted are read and never run. Raises `ConfigError` for settings that cannot be used.
    """
    found = found_hooks(settings, trust).specs
    lines = [_line(spec, spec.problem) for spec in found]
    if settings.disable_all_hooks:
        lines = [_line(spec, "disable_all_hooks is set") for spec in _user_specs(settings)]
        lines += [_line(spec, "disable_all_hooks is set") for spec in _folder_specs(trust)]
    else:
        unwanted = CLAUDE_SETTINGS if CLAUDE not in settings.hooks_from else ()
        for spec in _folder_specs(trust):
            if spec.file.casefold() in unwanted:
                lines.append(_line(spec, _NOT_WANTED))
            elif not trust.trusted:
                lines.append(_line(spec, "the folder is not trusted"))
    return (*lines, *_not_used(trust))


def _not_used(trust: SessionTrust) -> Iterator[HookLine]:
    """Name what a folder has for other programs, and its settings that cannot be read."""
    for one in foreign_hooks(trust.workspace):
        spec = HookSpec(event=one.event, matcher=one.matcher, command=one.command, origin=_FOLDER, file=one.file)
        yield replace(_line(spec, one.why), timeout=0, blocks=False, confined=False)
    for file, why in unreadable_settings(trust.workspace):
        spec = HookSpec(event="?", command="", place="the hooks of this file", origin=_FOLDER, file=file)
        yield replace(_line(spec, why), timeout=0, blocks=False, confined=False)


def _user_specs(settings: Settings) -> Iterator[HookSpec]:
    yield from hook_specs(settings.hooks, origin=HookOrigin.USER, file="the settings", own=True)


def _folder_specs(trust: SessionTrust) -> Iterator[HookSpec]:
    """Read what a folder would run; what cannot be read is named by itself."""
    for item in trust.items:
        name = item.path.casefold()
        own = name == str(WORKSPACE_FILE)
        if not own and name not in CLAUDE_SETTINGS:
            continue
        content = (read_item(trust.workspace, item) or b"").decode("utf-8-sig", errors="replace")
        try:
            table = tomllib.loads(content) if own else json.loads(content)
            yield from hook_specs(table.get("hooks") or {}, origin=HookOrigin.FOLDER, file=item.path, own=False)
        except (ValueError, AttributeError, RecursionError):
            continue


def _line(spec: HookSpec, why_not: str) -> HookLine:
    return HookLine(
        event=spec.event,
        matcher=spec.matcher or "*",
        type=spec.kind,
        command=spec.says,
        origin=spec.origin,
        file=spec.file,
        timeout=spec.timeout,
        blocks=spec.policy and spec.on_failure != "continue",
        confined=spec.confined and spec.kind == "command",
        active=not why_not,
        why_not=why_not,
    )
