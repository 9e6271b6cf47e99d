"""The screens of the settings: values, providers and their keys, models; and the screens beside them."""

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.known_models import (
    CallCheck,
    CheckOutcome,
    Models,
    catalogue_models,
    check_setting,
    checked_name,
    clean_key,
    data_words,
    keep_key,
    key_stored,
    local_lines,
    local_servers,
    provider_lines,
    remove_key,
    replacement,
    said_elsewhere,
    try_key,
    usable_models,
    usable_providers,
    winning_origin,
)
from treadle.door.open_session import Reach
from treadle.door.program import is_loopback
from treadle.door.settings import (
    WORKSPACE_FILE,
    Saved,
    SettingRow,
    Settings,
    config_file,
    key_path,
    load_settings,
    read_layers,
    redirects,
    set_value,
    setting_rows,
    unset_value,
)
from treadle.present.escape import printable
from treadle.protocol.errors import ConfigError, TreadleError
from treadle.protocol.permissions import Mode
from treadle.web.folders import folders_there, trust_of
from treadle.web.page_requests import answer, body_of, book_of, page
from treadle.web.rights import PageRoute
from treadle.web.screens.settings_rows import wide_mode_asked
from treadle.web.templating import render

_MOST_MODELS = 100
_LONGEST_VALUE = 20_000
_GENERAL = "General"
_HIDDEN = "(hidden)"
_ASKED: Mapping[str, str] = MappingProxyType(
    {
        "base_url": "{value} gets the key and all that the model is sent.",
        "proxy": "All that is sent to the model goes through {value}.",
        "ca_file": "Whoever has a certificate by {value} can read the key and all that the model is sent.",
        "api_key_env": "The key in {value} is sent to the address of this provider.",
        "token_command": "{value} is run, and what it prints is sent to the address of this provider.",
        "headers": "This is sent to the address of this provider with every request.",
    }
)
"""What settings do that say where a key goes, which one, or what else does: they are asked about."""

_ASKED_OF_ALL = "This says where a key goes, and which one."
_SURE = "Is that what you want?"


async def _show(request: Request) -> Response:
    found = await asyncio.to_thread(_values, request)
    return await page(request, "settings.html", **found)


def _values(request: Request) -> Mapping[str, Any]:
    trust = trust_of(request)
    layers = read_layers(book_of(request).flags, workspace=trust.workspace, trusted=trust.trusted)
    sections: dict[str, list[SettingRow]] = {}
    for row in setting_rows(layers):
        sections.setdefault(row.section or _GENERAL, []).append(row)
    project = trust.workspace / WORKSPACE_FILE
    return {
        "sections": sections,
        "hidden": _HIDDEN,
        "file": str(config_file()),
        "there": config_file().exists(),
        "folder": str(trust.workspace),
        "folders": folders_there(book_of(request)),
        "project": str(project) if project.exists() else "",
        "trusted": trust.trusted,
    }


async def _notifications(request: Request) -> Response:
    """Show what this browser tells: it keeps that itself."""
    return await page(request, "settings_notifications.html")


class _Setting(Struct):
    key: str
    value: str = ""
    sure: bool = False
    host: str = ""


def _host_to_type(path: tuple[str, ...], value: str) -> str:
    """Name the host to which a key would go with an address of another computer: whoever sets it types it."""
    try:
        host = urlsplit(value).hostname if path[-1] in ("base_url", "proxy") else None
    except ValueError:
        return ""
    return "" if host is None or host == "localhost" or is_loopback(host) else host


async def _set(request: Request) -> Response:
    """Write one value into the user's own file, as `treadle config set` does."""
    said = await body_of(request, _Setting)
    if len(said.value) > _LONGEST_VALUE or len(said.key) > _LONGEST_VALUE:
        raise ConfigError("config-value", "This value is too long.", fix=f"At most {_LONGEST_VALUE:,} characters.")
    path = key_path(said.key)
    host = _host_to_type(path, said.value.strip())
    sure = said.sure and said.host.strip().lower() == host
    if not sure and redirects(path) and said.value.strip():
        about = next((_ASKED[name] for name in path[-1:-3:-1] if name in _ASKED), _ASKED_OF_ALL)
        asked = f"Type its host to go on: {host}" if host else _SURE
        return answer({"confirm": f"{about.format(value=printable(said.value))} {asked}", "host": host})
    if not said.sure and (question := wide_mode_asked(said.key, said.value.strip())):
        return answer(question)
    saved = await asyncio.to_thread(set_value, said.key, said.value, check_setting)
    return answer({"said": _saved(said.key, saved)})


async def _unset(request: Request) -> Response:
    """Remove one value from the user's own file, as `treadle config unset` does."""
    said = await body_of(request, _Setting)
    saved = await asyncio.to_thread(unset_value, said.key, check_setting)
    return answer({"said": _saved(said.key, saved)})


def _saved(key: str, saved: Saved) -> str:
    """Say where it was saved, and what a person would otherwise wonder about."""
    more = "" if saved.left is None else f" The file still has a mistake: {saved.left.why}"
    return f"Saved in {saved.file}.{said_elsewhere(key)}{more} It applies to new sessions."


async def _providers(request: Request) -> Response:
    lines = await asyncio.to_thread(lambda: list(provider_lines(Models(load_settings({})))))
    configured = sorted(lines, key=lambda line: not line.configured)
    return await page(request, "settings_providers.html", lines=configured)


class _Key(Struct):
    provider: str
    key: str
    model: str = ""
    untried: bool = False
    sure: bool = False


async def _add_key(request: Request) -> Response:
    """Store a key after one call showed that it works; one that could not be tried where a person is `sure`.

    It never comes back to the page.
    """
    said = await body_of(request, _Key)
    settings = load_settings({})
    provider = checked_name(settings, said.provider)
    key = clean_key(said.key)
    check: CallCheck | None = None
    if not said.untried and not said.sure:
        check = await asyncio.to_thread(lambda: asyncio.run(try_key(settings, provider, key, said.model.strip())))
        if check.outcome in (CheckOutcome.UNREACHABLE, CheckOutcome.UNCLEAR):
            why = f"Calling {check.ref} failed: {check.text.rstrip('.')}.".replace(key, "(the key)")
            return answer(
                {"confirm": "The key could not be tried. Save it all the same?", "why": why, "does": "Save it"}
            )
    try:
        place = await asyncio.to_thread(keep_key, provider, key, check)
    except TreadleError as error:
        raise _without_key(error, key) from None
    text = key_stored(provider, place, check)
    origin = winning_origin(settings, provider)
    if origin and origin != place:
        text += f" {origin} is set in the environment and overrides it."
    return answer({"said": text.replace(key, "(the key)")})


def _without_key(error: TreadleError, key: str) -> TreadleError:
    """Take the key out of what a provider said of it."""
    what, why, fix = (text.replace(key, "(the key)") for text in (error.what, error.why, error.fix))
    return ConfigError(error.code, what, why=why, fix=fix)


class _Provider(Struct):
    provider: str


async def _remove_key(request: Request) -> Response:
    """Forget a stored key, as `treadle logout` does."""
    provider = (await body_of(request, _Provider)).provider

    def remove(settings: Settings) -> str:
        removed = remove_key(settings, provider)
        origin = winning_origin(settings, provider)
        left = f" The key in {origin} is still there." if origin else ""
        return f"{'The stored key was removed.' if removed else 'No key was stored.'}{left}"

    return answer({"said": await asyncio.to_thread(remove, load_settings({}))})


async def _models(request: Request) -> Response:
    query = request.query_params.get("query", "").strip()[:200]
    found = await asyncio.to_thread(_catalogue, query)
    return await page(request, "settings_models.html", query=query, **found)


def _catalogue(query: str) -> Mapping[str, Any]:
    settings = load_settings({})
    models = Models(settings)
    usable = usable_providers(models)
    found = catalogue_models(models, query)
    listed = found if query else usable_models(models)
    return {
        "default": settings.model,
        "fallback": settings.fallback,
        "modes": [(mode, settings.modes[mode].model if mode in settings.modes else "") for mode in Mode],
        "models": listed[:_MOST_MODELS],
        "more": max(0, len(listed) - _MOST_MODELS),
        "usable": usable,
        "data": data_words(),
        "ends": {spec.ref: replacement(models, spec) for spec in listed[:_MOST_MODELS] if spec.retires},
    }


async def _local(request: Request) -> Response:  # noqa: ARG001 - as Starlette calls it
    """Look for servers of models on this machine."""
    models = await asyncio.to_thread(lambda: Models(load_settings({})))
    lines = list(local_lines(await local_servers(models)))
    return HTMLResponse(render("local_models.html", lines=lines))


ROUTES = (
    PageRoute("/settings/notifications", _notifications, Reach.SEE),
    PageRoute("/settings", _show, Reach.SEE),
    PageRoute("/settings/set", _set, Reach.SETTINGS, methods=["POST"]),
    PageRoute("/settings/unset", _unset, Reach.SETTINGS, methods=["POST"]),
    PageRoute("/settings/providers", _providers, Reach.SEE),
    PageRoute("/settings/key", _add_key, Reach.KEYS, methods=["POST"]),
    PageRoute("/settings/key/remove", _remove_key, Reach.KEYS, methods=["POST"]),
    PageRoute("/settings/models", _models, Reach.SEE),
    PageRoute("/settings/models/local", _local, Reach.SEE),
)
