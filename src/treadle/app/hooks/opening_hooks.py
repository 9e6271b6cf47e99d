"""The hooks of a session found and made ready: of the user, of a trusted folder, of the program that drives it."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.config.hook_settings import HookEvent, HookOrigin, HookSpec, all_hooks, hook_specs
from treadle.app.config.places import outputs, read_regular
from treadle.app.config.sections import Settings
from treadle.app.config.server_files import json_with_comments
from treadle.app.errors.error_report import print_notice
from treadle.app.hooks.hook_commands import CommandHook, ConfineHook, HookPlace
from treadle.app.hooks.hook_places import LogPlaces
from treadle.app.hooks.hook_rows import HookAnswer, HookFailedError, HookHandler, HookRow
from treadle.app.hooks.session_hooks import HookSession, SessionHooks
from treadle.app.security.hook_files import HookFiles
from treadle.app.security.trusting import SessionTrust
from treadle.protocol.errors import ConfigError
from treadle.store.activation import CLAUDE_SETTINGS
from treadle.store.active_items import read_item
from treadle.store.sqlite import SessionRow
from treadle.workspace.sandbox import probe
from treadle.workspace.workspace import Workspace

_LARGEST = 8 * 1024 * 1024
CLAUDE = "claude"


class FoundHooks(Struct, frozen=True, kw_only=True):
    """The hooks that settings have, and what a person should know of those that do not run."""

    specs: tuple[HookSpec, ...] = ()
    notices: tuple[str, ...] = ()


def found_hooks(settings: Settings, trust: SessionTrust) -> FoundHooks:
    """Read the hooks of a session: of a folder only what was trusted with it. Raises `ConfigError`."""
    if settings.disable_all_hooks:
        return FoundHooks()
    specs = [*_own(settings)]
    if CLAUDE in settings.hooks_from:
        specs += _of_claude(trust)
    problems = dict.fromkeys(_problem(spec) for spec in specs if spec.problem)
    return FoundHooks(specs=tuple(specs), notices=tuple(problems))


def _own(settings: Settings) -> Iterator[HookSpec]:
    try:
        yield from hook_specs(settings.hooks, origin=HookOrigin.USER, file="the settings", own=True)
    except ValueError as error:
        raise _wrong("the settings", error) from error


def _of_claude(trust: SessionTrust) -> Iterator[HookSpec]:
    """Give the hooks of Claude Code: the user's, and those of a trusted folder as they were trusted."""
    file = claude_settings_file()
    users = claude_table(file)
    if users.get("disableAllHooks") is True:
        return
    yield from claude_specs(users, str(file), HookOrigin.USER)
    if not trust.trusted:
        return
    folders = [
        (item.path, _table(read_item(trust.workspace, item) or b"", item.path))
        for item in trust.items
        if item.path.casefold() in CLAUDE_SETTINGS
    ]
    if not any(table.get("disableAllHooks") is True for _, table in folders):
        for path, table in folders:
            yield from claude_specs(table, path, HookOrigin.FOLDER)


def claude_settings_file() -> Path:
    """Give the place of the user's own settings of Claude Code."""
    folder = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(folder) if folder else Path.home() / ".claude") / "settings.json"


def claude_table(file: Path) -> dict[str, Any]:
    """Read a settings file of Claude Code; empty where there is none. Raises `ConfigError`."""
    return _table(_bounded(file), str(file))


def claude_specs(table: dict[str, Any], file: str, origin: HookOrigin) -> tuple[HookSpec, ...]:
    """Read the hooks of a settings file of Claude Code. Raises `ConfigError`."""
    try:
        found = table.get("hooks")
        return tuple(hook_specs({} if found is None else found, origin=origin, file=file, own=False))
    except ValueError as error:
        raise _wrong(file, error) from error


def with_hooks_said(settings: Settings, table: Any, file: str) -> Settings:
    """Add hooks, as Claude Code writes them, that whoever starts the program gives it. Raises `ConfigError`.

    They are the caller's own words: no folder has to be trusted for them.
    """
    for spec in claude_specs({"hooks": table}, file, HookOrigin.USER):
        if spec.event not in list(HookEvent):
            print_notice(f"Hooks of the event {spec.event} are not run: Treadle has no such moment.")
    known = {event: groups for event, groups in table.items() if event in list(HookEvent)}
    said = all_hooks([(file, {"hooks": known}, False)])
    hooks = {**settings.hooks, **{event: (*settings.hooks.get(event, ()), *said[event]) for event in said}}
    return replace(settings, hooks=hooks)


def _bounded(file: Path) -> bytes:
    try:
        found = read_regular(file, _LARGEST)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise _wrong(str(file), error) from error
    if found is None:
        raise _wrong(str(file), ValueError("it is not a file"))
    if len(found) > _LARGEST:
        raise _wrong(str(file), ValueError(f"it has more than {_LARGEST:,} bytes"))
    return found


def _table(content: bytes, file: str) -> dict[str, Any]:
    if not content.strip():
        return {}
    try:
        found = json_with_comments(content.decode("utf-8-sig"))
    except ValueError as error:
        raise _wrong(file, error) from error
    return found if isinstance(found, dict) else {}


def _wrong(file: str, error: Exception) -> ConfigError:
    return ConfigError(
        "config-hooks",
        f"The hooks in {file} cannot be used.",
        why=f"{error}.",
        fix="Correct them there. docs/hooks.md has examples; disable_all_hooks = true in your settings turns all off.",
    )


def _problem(spec: HookSpec) -> str:
    blocks = spec.policy and spec.on_failure != "continue" and spec.origin is not HookOrigin.HOST
    what = " What it would judge is blocked." if blocks else ""
    return f"The {spec.event} hook {spec.says} in {spec.file} does not run: {spec.problem}.{what}"


class HookParts(Protocol):
    """What a session is put together from, as far as hooks go."""

    @property
    def row(self) -> SessionRow:
        """The session in the store."""
        ...

    @property
    def settings(self) -> Settings:
        """The settings."""
        ...

    @property
    def trust(self) -> SessionTrust:
        """The user's word on the folder."""
        ...


def open_hooks(
    parts: HookParts,
    brought: tuple[HookRow, ...],
    workspace: Workspace,
    *,
    session: HookSession,
    confine: ConfineHook,
    tell: Callable[[str], None],
) -> SessionHooks | None:
    """Find the hooks of a session and get them ready; None where there are none. Raises `ConfigError`."""
    found = found_hooks(parts.settings, parts.trust)
    if not (found.specs or brought):
        return None
    place = HookPlace(
        launcher=lambda: workspace.launcher,
        confine=None if probe().backend is None else confine,
        logs=LogPlaces(workspace.root, claude_settings_file().parent),
        private=outputs() / parts.row.id / "hooks",
        root=workspace.root,
        session_id=parts.row.id,
        tell=tell,
        files=HookFiles(parts.trust.workspace, parts.trust.items),
    )
    return SessionHooks((*hook_rows(found.specs, place), *brought), session, found.notices)


def hook_rows(specs: Sequence[HookSpec], place: HookPlace) -> tuple[HookRow, ...]:
    """Make hooks ready to run; one that cannot run fails where its word would decide."""
    return tuple(
        HookRow(
            event=spec.event,
            matcher=spec.matcher,
            handler=_handler(spec, place),
            aside=CommandHook(spec, place, aside=True) if spec.kind == "command" and not spec.problem else None,
            timeout=spec.timeout,
            on_failure=spec.on_failure,
            origin=spec.origin,
            name=f"`{spec.says}`",
            place=spec.file,
            condition=spec.condition,
            once=spec.once,
            detached=spec.detached,
            changes_files=spec.kind != "http",
        )
        for spec in specs
        if not spec.problem or spec.policy
    )


def _handler(spec: HookSpec, place: HookPlace) -> HookHandler:
    if spec.problem:

        async def fail(given: dict[str, Any]) -> HookAnswer:  # noqa: ARG001 - as every hook
            raise HookFailedError(spec.problem)

        return fail
    if spec.kind == "http":
        from treadle.app.hooks.hook_requests import HttpHook

        return HttpHook(spec)
    return CommandHook(spec, place)
