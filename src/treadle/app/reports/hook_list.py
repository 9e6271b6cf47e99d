"""The hooks that there are for a folder: what each runs and when, whose it is, and whether it runs at all."""

import json
from collections.abc import Iterator

from treadle.app.config.hook_settings import HookOrigin, HookSpec, hook_specs
from treadle.app.config.layers import WORKSPACE_FILE
from treadle.app.config.sections import Settings
from treadle.app.hooks.opening_hooks import CLAUDE, found_hooks
from treadle.app.security.trusting import SessionTrust
from treadle.protocol.base import Record
from treadle.store.activation import CLAUDE_SETTINGS
from treadle.store.active_items import read_item


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


def list_hooks(settings: Settings, trust: SessionTrust) -> tuple[HookLine, ...]:
    """List every hook of the user and of a folder; those of a folder that is not trusted are read and never run.

    Raises `ConfigError` for settings that cannot be used.
    """
    found = found_hooks(settings, trust).specs
    lines = [_line(spec, spec.problem) for spec in found]
    if settings.disable_all_hooks:
        return tuple(_line(spec, "disable_all_hooks is set") for spec in _user_specs(settings))
    if not trust.trusted:
        lines += [_line(spec, "the folder is not trusted") for spec in _folder_specs(settings, trust)]
    return tuple(lines)


def _user_specs(settings: Settings) -> Iterator[HookSpec]:
    yield from hook_specs(settings.hooks, origin=HookOrigin.USER, file="the settings", own=True)


def _folder_specs(settings: Settings, trust: SessionTrust) -> Iterator[HookSpec]:
    """Read what a folder would run; what cannot be read is left out, since nothing of it runs."""
    import tomllib

    for item in trust.items:
        name = item.path.casefold()
        own = name == str(WORKSPACE_FILE)
        if not own and (name not in CLAUDE_SETTINGS or CLAUDE not in settings.hooks_from):
            continue
        content = (read_item(trust.workspace, item) or b"").decode(errors="replace")
        try:
            table = tomllib.loads(content) if own else json.loads(content)
            yield from hook_specs(table.get("hooks", {}), origin=HookOrigin.FOLDER, file=item.path, own=False)
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
