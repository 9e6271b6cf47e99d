"""The settings that a person looks for, as rows in words: General, Budgets, Sandbox. Each is saved as it is changed."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from treadle.door.known_models import Models, check_setting, usable_models
from treadle.door.open_session import Reach
from treadle.door.reports import budget_report, sandbox_checks
from treadle.door.settings import (
    WORKSPACE_FILE,
    SettingRow,
    load_settings,
    read_layers,
    set_value,
    setting_rows,
    unset_value,
)
from treadle.present.mode_words import WIDE_MODES, mode_sentence
from treadle.protocol.errors import ConfigError
from treadle.protocol.permissions import Mode
from treadle.web.folders import trust_of
from treadle.web.page_requests import answer, body_of, book_of, page
from treadle.web.rights import PageRoute
from treadle.web.templating import render

_LONGEST_VALUE = 20_000
_MOST_MODELS = 100
_MOST_BESIDE = 5
"""Choices that stand side by side; more of them are a list to choose from."""

_NO_LIMIT, _LINES = "no limit", "none; one on a line"

_GROUPS: Mapping[str, Mapping[str, Sequence[tuple[str, str, str]]]] = MappingProxyType(
    {
        "General": {
            "New sessions": (
                ("model", "Model", "the first with a key"),
                ("mode", "Mode", ""),
                ("thinking_budget", "Thinking", "as the model does"),
                ("language", "Language", "the one you write in"),
                ("instructions", "Your own instructions", "none"),
                ("checklist", "Checklist", ""),
                ("web_search", "Searches of the web by the provider", ""),
                ("checkpoints.enabled", "Checkpoints", ""),
            ),
        },
        "Budgets": {
            "A turn": (
                ("budget.turn_cost", "Cost of a turn", _NO_LIMIT),
                ("budget.turn_tokens", "Tokens of a turn", _NO_LIMIT),
                ("max_steps", "Steps of a turn", _NO_LIMIT),
                ("max_seconds", "Time of a turn", _NO_LIMIT),
                ("max_auto_approved", "Calls without asking", _NO_LIMIT),
            ),
            "A session": (
                ("budget.session_cost", "Cost of a session", _NO_LIMIT),
                ("budget.session_tokens", "Tokens of a session", _NO_LIMIT),
            ),
            "A day": (
                ("budget.day_cost", "Cost of a day", _NO_LIMIT),
                ("budget.day_tokens", "Tokens of a day", _NO_LIMIT),
            ),
            "Before it is used up": (
                ("budget.ask_at", "Ask at a part of a budget", ""),
                ("context.costly_request", "Costly request", ""),
            ),
        },
        "Sandbox": {
            "Commands": (
                ("sandbox", "A sandbox is needed", ""),
                ("try_first", "Try commands in a copy", ""),
                ("add_dirs", "Further folders", _LINES),
                ("pass_variables", "Further variables", _LINES),
                ("gpu", "GPUs", ""),
            ),
            "Network": (
                ("network.allow", "Hosts that are allowed", _LINES),
                ("network.deny", "Hosts that are denied", _LINES),
                ("network.loopback_ports", "Ports of this computer", _LINES),
            ),
        },
    }
)
"""By screen and group: the key, its name in words, and what is so where nothing is said."""

_LEADS: Mapping[str, str] = MappingProxyType(
    {
        "General": "For new sessions, everywhere on this computer.",
        "Budgets": "Limits of new sessions, everywhere on this computer.",
        "Sandbox": "The sandbox confines the commands of the model in new sessions, everywhere on this computer.",
    }
)
_NEEDED: Mapping[str, str] = MappingProxyType({"auto": "In mode auto", "required": "Always"})
"""When a sandbox is needed, in words."""

_ABOUT: Mapping[str, str] = MappingProxyType(
    {
        "model": "Used where a session does not choose another.",
        "sandbox": "Where there is none, such a session does not start.",
        "network.deny": "Hosts that no command, no fetch of a page and no browser of the model reaches.",
    }
)
"""What some rows are for, where the words of All settings name what only that screen has."""

_OWN_FILE = "your own file"
_SWITCHED: Mapping[str, str] = MappingProxyType({"true": "On", "false": "Off"})

_NAMES = {
    key: (screen, name, empty)
    for screen, groups in _GROUPS.items()
    for rows in groups.values()
    for key, name, empty in rows
}

NAMED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {key: (name, f"/settings/{screen.lower()}#row-{key}") for key, (screen, name, _) in _NAMES.items()}
)
"""What a setting that has a row is called, and where that is."""


class _Shown(Struct, frozen=True, kw_only=True):
    """A row: its value as the user's own file says it or by default, and what comes before that, in words.

    `said` is the value for who only reads it; `typed` is in the field: the value, or one that was refused because of
    `problem`. `back` takes back what was just saved, or `undone`; None where nothing was.
    """

    key: str
    name: str
    about: str
    empty: str
    kind: str
    said: str
    typed: str
    choices: Sequence[tuple[str, str]]
    origin: str
    own: bool
    above: str
    problem: str = ""
    back: str | None = None
    undone: bool = False


class _Both(Struct, frozen=True):
    """Each setting as the user has it, and as it applies in the folder of the page."""

    own: Mapping[str, SettingRow]
    applies: Mapping[str, SettingRow]
    workspace: Path

    def came_from(self, origin: str) -> str:
        """Say where a value comes from, as a clause in the words of the page."""
        if origin == "the command line":
            return "as given to Treadle when it started"
        if origin.startswith(str(self.workspace / WORKSPACE_FILE)):
            return f"from the file of {self.workspace.name}"
        return "from the environment" if origin.isupper() else f"from {origin}"


def _both(request: Request) -> _Both:
    """Read the settings. Takes its time."""
    trust = trust_of(request)
    layers = read_layers(book_of(request).flags, workspace=trust.workspace, trusted=trust.trusted)
    own, applies = ({row.key: row for row in setting_rows(some)} for some in (layers[:1], layers))
    return _Both(own, applies, trust.workspace)


def _row(both: _Both, key: str, models: Sequence[str], **more: Any) -> _Shown:
    own, applies = both.own[key], both.applies[key]
    _, name, empty = _NAMES[own.key]
    kind, choices = _control(own, models, empty)
    differs = applies.origin != own.origin
    return _Shown(
        key=own.key,
        name=name,
        about=_ABOUT.get(own.key, own.about),
        empty=empty,
        choices=choices,
        kind=kind,
        said=_said(own) or empty.partition(";")[0],
        origin=_OWN_FILE if own.own else "",
        own=own.own,
        above=f"{_said(applies) or 'Nothing'} applies instead, {both.came_from(applies.origin)}." if differs else "",
        **{"typed": _words(own), **more},
    )


def _control(row: SettingRow, models: Sequence[str], empty: str) -> tuple[str, Sequence[tuple[str, str]]]:
    if row.choices == ("true", "false"):
        return "switch", ()
    if row.choices:
        kind = "beside" if len(row.choices) <= _MOST_BESIDE else "list"
        return kind, [(one, _choice(row, one)) for one in row.choices]
    if row.key in ("model", "fallback"):
        return "list", [("", empty.capitalize()), *((one, one) for one in models)]
    if row.wanted.startswith("a list"):
        return "lines", ()
    return ("text" if row.key == "instructions" else "number" if "number" in row.wanted else "line"), ()


def _choice(row: SettingRow, value: str) -> str:
    words = _NEEDED if row.key == "sandbox" else _SWITCHED
    return words.get(value, value.capitalize())


def _said(row: SettingRow) -> str:
    """Write a value for who reads it."""
    return _choice(row, row.text) if row.choices else _words(row)


def _words(row: SettingRow) -> str:
    """Write a value as it stands in its field: a list line by line, a number as short as it can be."""
    if not row.text:
        return ""
    if row.wanted.startswith("a list"):
        return "\n".join(str(one) for one in json.loads(row.text))
    return row.text.removesuffix(".0") if "number" in row.wanted else row.text


def _value(row: SettingRow, typed: str) -> str:
    """Read what was typed in a field as `treadle config set` takes it; empty takes the value out."""
    text = typed.strip()
    if not text or not row.wanted.startswith("a list"):
        return text
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    numbers = "numbers" in row.wanted and all(line.isdecimal() for line in lines)
    return json.dumps([int(line) for line in lines] if numbers else lines)


class _Change(Struct):
    key: str
    value: str = ""
    back: str | None = None
    sure: bool = False


async def _save(request: Request) -> Response:
    """Save a value, or undo that; gives the row as it is then. What is refused stays in its field with the reason."""
    said = await body_of(request, _Change)
    if said.key not in _NAMES or len(said.value) > _LONGEST_VALUE:
        raise ConfigError("config-value", "This value cannot be saved here.", fix="All settings has every setting.")
    row = await asyncio.to_thread(_saved, request, said)
    return answer({"row": render("settings_row.html", row=row)} if isinstance(row, _Shown) else row)


def wide_mode_asked(key: str, value: str) -> Mapping[str, str] | None:
    """Give what a person is asked before a mode that lets more run than edits becomes that of new sessions."""
    if key != "mode" or value not in WIDE_MODES:
        return None
    name = value.capitalize()
    return {"confirm": f"Start new sessions in mode {name}?", "why": mode_sentence(Mode(value)), "does": f"Yes, {name}"}


def _saved(request: Request, said: _Change) -> _Shown | Mapping[str, str]:
    both, models = _both(request), usable_refs()
    before = both.own[said.key]
    back = before.text if before.own else ""
    wanted = _value(before, said.value) if said.back is None else said.back
    if wanted == before.text if wanted else not before.own:
        return _row(both, said.key, models)
    if not said.sure and (asked := wide_mode_asked(said.key, wanted)):
        return asked
    try:
        if wanted:
            set_value(said.key, wanted, check_setting)
        else:
            unset_value(said.key, check_setting)
    except ConfigError as error:
        why = " ".join(filter(None, (_in_words(said.key, error.why or error.what), error.fix)))
        typed = said.value if said.back is None else _words(before)
        return _row(both, said.key, models, typed=typed, problem=why)
    return _row(_both(request), said.key, models, back=back, undone=said.back is not None)


def _in_words(key: str, why: str) -> str:
    """Name a setting by its row in what is said of its value."""
    begins = next((one for one in (key, key.partition(".")[0]) if why.startswith(f"{one} ")), "")
    return f"“{_NAMES[key][1]}”{why.removeprefix(begins)}" if begins else why


def usable_refs() -> Sequence[str]:
    """Name the models of providers that have a key; none where settings are at odds, which are corrected here."""
    try:
        return [one.ref for one in usable_models(Models(load_settings({})))][:_MOST_MODELS]
    except ConfigError:
        return ()


async def _show(request: Request) -> Response:
    screen = request.url.path.rpartition("/")[2].capitalize()

    def found() -> Mapping[str, Any]:
        both, models = _both(request), usable_refs()
        groups = _GROUPS[screen].items()
        return {
            "spent": budget_report(int(time.time() * 1_000), book_of(request).flags) if screen == "Budgets" else None,
            "screen": screen,
            "lead": _LEADS[screen],
            "groups": [(title, [_row(both, key, models) for key, _, _ in found]) for title, found in groups],
            "others": len(both.own) - len(_NAMES),
            "checks": tuple(sandbox_checks(book_of(request).folder)) if screen == "Sandbox" else (),
        }

    return await page(request, "settings_rows.html", **await asyncio.to_thread(found))


ROUTES = (
    PageRoute("/settings/general", _show, Reach.SEE),
    PageRoute("/settings/budgets", _show, Reach.SEE),
    PageRoute("/settings/sandbox", _show, Reach.SEE),
    PageRoute("/settings/row", _save, Reach.SETTINGS, methods=["POST"]),
)
