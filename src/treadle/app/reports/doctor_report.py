"""The doctor: is everything there, and does each configured provider answer."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import assert_never

from treadle.app.config.addresses import require_bound
from treadle.app.config.layers import load_settings
from treadle.app.config.places import servers_file
from treadle.app.config.sections import Settings
from treadle.app.models.call_check import CallCheck, CheckOutcome, check_call
from treadle.app.models.known import LOCAL, OLD_DAYS, data_notice, day, known_models
from treadle.app.models.model_choice import Models
from treadle.app.models.model_rows import data_words, local_lines, local_servers, provider_lines
from treadle.app.models.provider_keys import check_stored, keyring_name
from treadle.app.reports.doctor_checks import Check, fail, failed_check, ok, warn
from treadle.app.reports.installation import installation_checks
from treadle.app.security.policy_files import FileState, PolicyFiles, usual_places
from treadle.app.security.trusting import session_trust, trust_command
from treadle.app.session.files.edit_diagnostics import require_diagnostics
from treadle.app.subagents.writer_copies import left_copies
from treadle.present.words import counted
from treadle.protocol.errors import ConfigError
from treadle.store.activation import SERVER_FILES
from treadle.workspace.files.text import visible
from treadle.workspace.gpus import gpu_devices, gpu_words
from treadle.workspace.installed import install_command
from treadle.workspace.programs.program_process import why_no_programs


async def examine(*, offline: bool) -> AsyncIterator[Check]:
    """Give each check as it is done; `offline` leaves out the calls of providers, not the servers on this machine."""
    async for check in _here():
        yield check
    try:
        settings = load_settings({})
        require_bound(settings)
        require_diagnostics(_settings_here().diagnostics)
        models = Models(settings)
        keys = list(_keys(models))
    except ConfigError as error:
        yield failed_check("settings", error)
        return
    own = [f"{key} for {action}" for action, key in settings.keys.items()]
    yield ok("settings", f"no mistakes{'; your own keys: ' if own else ''}{', '.join(own)}")
    yield _model_list()
    for check in (*_rules(), *_gpus(settings), *_programs(settings)):
        yield check
    for check in _servers():
        yield check
    try:
        check_stored()
    except ConfigError as error:
        yield failed_check("keys", error)
        return
    for check in keys:
        yield check
    async for check in _local(models):
        yield check
    if not offline:
        for check in await _calls(settings):
            yield check


async def _here() -> AsyncIterator[Check]:
    for check in installation_checks():
        yield check
    yield _this_folder()
    for check in await asyncio.to_thread(lambda: tuple(_writer_copies())):
        yield check


def _settings_here() -> Settings:
    """Give the settings with which a session would start in this folder; raises `ConfigError`."""
    try:
        trust = session_trust(Path.cwd())
    except OSError:  # said of the folder itself
        return load_settings({})
    return load_settings({}, workspace=trust.workspace, trusted=trust.trusted)


def _this_folder() -> Check:
    """Say whether the folder that the doctor was called in may act."""
    try:
        trust = session_trust(Path.cwd())
    except OSError as error:
        return warn("this folder", str(error), "Go to a folder that exists.")
    if trust.notice():
        return warn("this folder", trust.notice(), f"Check it and trust it: {trust_command(trust.workspace)}")
    return ok("this folder", "trusted" if trust.trusted else "not trusted; it has no rules, settings, servers or hooks")


def _writer_copies() -> Iterator[Check]:
    """Name the copies in which subagents and sessions wrote and that are kept, with what of them is not applied."""
    for one in left_copies():
        name = f"copy {visible(one.child_id)}"
        size = f"{one.size / 1_000_000:,.1f} MB in {visible(str(one.folder))}"
        if not one.whole:
            yield warn(name, f"unfinished, nobody worked in it; {size}", "Remove that folder.")
        elif one.unapplied == 0:
            yield ok(
                name, f"all of it is applied; {size}. To remove it: treadle copies discard {visible(one.child_id)}"
            )
        else:
            count = "some files" if one.unapplied is None else counted(one.unapplied, "file")
            folder = visible(str(one.workspace))
            yield warn(name, f"{count} not applied to {folder}; {size}", f"treadle copies show {visible(one.child_id)}")


def _model_list() -> Check:
    """Say how old the list of models is: new ones are missing in an old one, and retired ones look usable."""
    if data_notice():
        return warn("list of models", data_notice(), "Fetch it: treadle models --update")
    if known_models().data.date < day(-OLD_DAYS):
        return warn(
            "list of models", f"{data_words()} It is older than {OLD_DAYS} days.", "Run: treadle models --update"
        )
    return ok("list of models", data_words())


def _rules() -> Iterator[Check]:
    """Look at the administrator's and the user's rules; those of a project belong to its sessions."""
    found = PolicyFiles(usual_places(None), keep=False).in_force()
    for one in found.files:
        if one.state is FileState.BROKEN:
            fix = "Correct it (docs/policy.md shows the form). Until then nothing runs without asking."
            yield fail(f"rules {one.path}", one.why, fix)
        else:
            yield ok(f"rules {one.path}", f"{counted(one.rules, 'rule')}, all examples match")
    if not found.files:
        yield ok("rules", "no rule files; the built-in rules apply")


def _gpus(settings: Settings) -> Iterator[Check]:
    """Say which devices commands get, where they are to get those of GPUs."""
    if settings.gpu:
        found = gpu_words(gpu_devices())
        yield ok("GPU devices", found or "none are on this machine; gpu = true changes nothing here")


def _programs(settings: Settings) -> Iterator[Check]:
    """Say whether programs of code mode can be shut off here, where they are wanted."""
    if settings.code_mode:
        why = why_no_programs()
        if why:
            yield warn(
                "code mode", f"not offered: {why}", "Install bubblewrap (docs/code-mode.md), or turn code_mode off."
            )
        else:
            yield ok("code mode", "programs run shut off by bubblewrap")


def _servers() -> Iterator[Check]:
    """Say which MCP servers are configured for this folder; none is started."""
    if not os.access(servers_file(), os.F_OK) and not any((Path.cwd() / one).exists() for one in SERVER_FILES):
        return
    from treadle.app.servers.configured import configured_servers

    found = configured_servers(session_trust(Path.cwd()))
    if found.servers and find_spec("mcp") is None:
        yield warn("MCP servers", "the extra 'mcp' is not installed", f"Run: {install_command('mcp')}")
    for notice in found.notices:
        yield warn("MCP servers", notice, "docs/mcp.md shows the form of the file.")
    for one in found.servers:
        name = f"MCP server {visible(one.server.name)}"
        if one.problem:
            yield warn(name, one.problem, "Correct its entry, or remove it: treadle mcp remove NAME")
        else:
            yield ok(name, f"{one.server.transport}, of the {one.origin}; `treadle mcp list` shows whether it works")


def _keys(models: Models) -> Iterator[Check]:
    yield ok("keyring", keyring_name() or "none; keys are stored in a file that only you can read")
    lines = [line for line in provider_lines(models) if line.key_origin]
    for line in lines:
        yield ok(f"key {line.name}", f"from {line.key_origin}")
    if not lines:
        fix = "Store one with `treadle login PROVIDER`, use a local server, or try `treadle demo`."
        yield warn("keys", "no provider has a key", fix)


async def _local(models: Models) -> AsyncIterator[Check]:
    servers = await local_servers(models)
    if not servers:
        yield ok("local servers", "none found")
    for server in servers:
        yield ok(f"local {server.provider}", counted(len(server.models), "model"))
    for line in local_lines(servers):
        if line.problem:
            yield warn(f"local {line.ref}", line.problem, line.fix)


async def _calls(settings: Settings) -> list[Check]:
    """Call each provider that is configured, all at the same time."""
    models = Models(settings)
    chosen, refs = _chosen(models, settings), list(_refs(models, settings))
    try:
        calls = await asyncio.gather(*(check_call(models, ref) for ref in refs))
    finally:
        await models.close()
    return [_check(call, needed=_provider(call.ref) in chosen) for call in calls]


def _chosen(models: Models, settings: Settings) -> frozenset[str]:
    """Name the providers that are meant to be used: a variable such as GITHUB_TOKEN may be there for other reasons."""
    stored = {line.name for line in provider_lines(models) if line.key_origin not in ("", *line.key_variables)}
    named = {_provider(ref) for ref in _named(settings)}
    taken = {models.choose().spec.provider} if models.configured() else set()
    return frozenset(stored | named | taken)


def _named(settings: Settings) -> Iterator[str]:
    yield from dict.fromkeys(filter(None, (settings.model, *(said.model for said in settings.modes.values()))))


def _provider(ref: str) -> str:
    return ref.partition("/")[0]


def _refs(models: Models, settings: Settings) -> Iterator[str]:
    """Name each model that the settings choose, once, and one of each other provider with a key."""
    yield from _named(settings)
    seen = {_provider(ref) for ref in _named(settings)}
    for line in provider_lines(models):
        if line.key_origin and line.configured and line.name not in seen and line.name not in LOCAL:
            ref = models.usual_model(models.row(line.name))
            if ref:
                yield ref


def _check(call: CallCheck, *, needed: bool) -> Check:
    name, broken = f"call {call.ref}", fail if needed else warn
    match call.outcome:
        case CheckOutcome.WORKS:
            return ok(name, call.text)
        case CheckOutcome.LIMITED:
            return warn(name, call.text, call.fix or "The key works. Wait, or top up the account.")
        case CheckOutcome.UNCLEAR:
            fix = call.fix or "Check the model's name and the base URL: `treadle config` shows them."
            return warn(name, call.text, fix)
        case CheckOutcome.REFUSED | CheckOutcome.FORBIDDEN:
            return broken(name, call.text, call.fix or f"Store another key: treadle login {_provider(call.ref)}")
        case CheckOutcome.UNREACHABLE:
            return broken(name, call.text, call.fix or "Check the network, the proxy and the base URL.")
        case _:
            assert_never(call.outcome)
