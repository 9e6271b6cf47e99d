"""The screen that lists all sessions, and starts new ones."""

import asyncio
import re
import uuid
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.history import discard_copy, found_copies, named_copy
from treadle.door.known_models import KEY_PAGES, Models, key_owners, usable_models, usable_providers
from treadle.door.open_session import Reach, mode_effect
from treadle.door.opening import (
    Opening,
    branch_of,
    check_workspace,
    last_scheduled,
    named_copy_trust,
    next_words,
    past_words,
    read_schedules,
    stopped_runs,
)
from treadle.door.settings import Settings, load_settings
from treadle.door.trust import SessionTrust
from treadle.present.mode_words import WIDE_MODES, mode_sentence
from treadle.protocol.errors import ConfigError, StoreError, TreadleError
from treadle.protocol.models import ModelSpec
from treadle.protocol.permissions import Mode
from treadle.web.book import SessionBook
from treadle.web.completion import MOST_TYPED, completions
from treadle.web.folder_trust import AnsweredTrust, folder_trust
from treadle.web.folders import folders_known, folders_there, folders_typed, names_apart, require_known, trust_of
from treadle.web.page_frame import page_column, page_look
from treadle.web.page_keys import Visitor
from treadle.web.page_requests import answer, body_of, book_of, folder_of, page, visitor_of
from treadle.web.rights import PageRoute, may, require
from treadle.web.screens.beside import model_words
from treadle.web.screens.saying import NewMessage, check_size, enter_message
from treadle.web.session_rows import STATES, ListFilter, page_rows
from treadle.web.status import effort_words
from treadle.web.templating import render

_MOST_MODELS = 100
"""Models that are offered for a new session; the settings have all."""


async def _typed(request: Request) -> Response:
    """Give the folders that a path which is being typed can become."""
    typed = request.query_params.get("typed", "").strip()[:MOST_TYPED]
    return answer(await asyncio.to_thread(folders_typed, book_of(request), typed))


async def _start_screen(request: Request) -> Response:
    """Show where a session is started."""
    found = await asyncio.to_thread(_starting, request)
    return await page(request, "start.html", **found)


def _starting(request: Request) -> dict[str, Any]:
    book, who = book_of(request), visitor_of(request)
    try:
        trust = trust_of(request)
        settings = load_settings(book.flags, workspace=trust.workspace, trusted=trust.trusted)
        models = Models(settings)
        own, model = settings.mode, _first_model(models, settings)
        offered = [(one.ref, _known_of(one)) for one in usable_models(models)]
        owners = [] if model else key_owners(settings)
    except ConfigError:
        models, own, model, offered, owners = None, next(iter(Mode)), "?", [], []  # starting says what is wrong
    copies = {str(copy.folder) for copy in found_copies()}
    there = [folder for folder in folders_there(book) if folder not in copies]
    folders = [
        {"path": folder, "name": name, "branch": branch_of(Path(folder))}
        for folder, name in zip(there, names_apart(there), strict=True)
    ]
    return {
        "folders": folders,
        "own": own,
        "model": model,
        "owners": [(one.provider, one.title, KEY_PAGES.get(one.provider, "")) for one in owners],
        "effort": effort_words(_budget(models, model)),
        "own_about": dict(offered).get(model, ""),
        "models": [one for one in offered if one[0] != model][:_MOST_MODELS],
        "modes": [(m, mode_sentence(m), m in WIDE_MODES) for m in Mode if may(who, mode_effect(m, own))],
    }


def _known_of(model: ModelSpec) -> str:
    prices = model.prices
    return model_words(model.context_window, *(None, None) if prices is None else (prices.input, prices.output))


def _budget(models: Models | None, model: str) -> int | None:
    """Say how many tokens a model may think that a session begins with; None where that is not known yet."""
    try:
        return None if models is None or "/" not in model else models.choose(model).thinking_budget
    except ConfigError:
        return None


def _first_model(models: Models, settings: Settings) -> str:
    """Name the model where none is chosen; the provider where only its server knows, empty without one."""
    if model := settings.in_mode(settings.mode).model:
        return model
    try:
        return models.first_model()
    except ConfigError:
        return min(usable_providers(models), default="")


async def _show(request: Request) -> Response:
    """List all sessions."""
    folders = await asyncio.to_thread(folders_known, book_of(request))
    listed = await _listed(request)
    scheduled = await asyncio.to_thread(_scheduled)
    return await page(request, "sessions.html", folders=folders, states=STATES, **scheduled, **listed)


def _scheduled() -> dict[str, Any]:
    """Give the schedules, or what keeps them from being read."""
    try:
        found = read_schedules()
    except StoreError as error:
        return {"schedules": (), "schedules_problem": f"{error.what} {error.why} {error.fix}"}
    stopped = stopped_runs(found)
    rows = [
        {"one": one, "next": next_words(one), "past": past_words(one, stopped), "last": last_scheduled(one)}
        for one in found
    ]
    return {"schedules": rows, "schedules_problem": ""}


async def _column(request: Request) -> Response:
    """Give the sessions of the column, for a page that is open already."""
    session_id = request.query_params.get("session", "")
    column = await asyncio.to_thread(page_column, book_of(request), session_id, look=page_look(request.cookies))
    return HTMLResponse(render("column_rows.html", column=column, here=""))


async def _rows(request: Request) -> Response:
    """Give the rows alone, for a page that is open already."""
    return HTMLResponse(render("session_rows.html", **await _listed(request)))


async def _listed(request: Request) -> dict[str, Any]:
    asked, book = request.query_params, book_of(request)
    wish = ListFilter(
        folder=asked.get("folder", ""),
        state=asked.get("state", ""),
        search=asked.get("search", "")[:200],
        archived=asked.get("archived", "") == "yes",
        all=asked.get("all", "") == "yes",
    )
    found = await asyncio.to_thread(page_rows, book, wish)
    filtered = bool(wish.folder or wish.state or wish.search.strip())
    return {"wish": wish, "rows": found.lines, "left_out": found.left_out, "filtered": filtered}


class _Start(NewMessage):
    folder: str = ""
    copy: bool = False
    mode: Mode | None = None
    model: str = ""


async def _start(request: Request) -> Response:
    """Start a session with its first message; before that, what the user says of the folder is asked for.

    What comes a second time with the same id, because its answer was lost, starts no second one.
    """
    wanted = await body_of(request, _Start)
    if not wanted.text.strip() and not wanted.files:
        raise ConfigError("task-empty", "There is no message.", fix="Write what is to be done.")
    check_size(wanted)
    book, who = book_of(request), visitor_of(request)
    workspace = await asyncio.to_thread(check_workspace, folder_of(wanted.folder))
    await asyncio.to_thread(require_known, request, workspace)
    trust = await folder_trust(book, workspace, AnsweredTrust(wanted.trust, wanted.seen), who)
    if isinstance(trust, dict):
        return answer({"trust": trust})
    opening = book.opening(trust, mode=wanted.mode, model=wanted.model)
    require(who, mode_effect(opening.settings.mode, book.own_mode(trust)))
    wanted.id = wanted.id or uuid.uuid4().hex

    def begun() -> Awaitable[dict[str, Any]]:
        return _in_copy(book, trust, wanted, who) if wanted.copy else _begun(book, opening, wanted, who)

    return answer(await book.once(wanted.id, begun))


async def _begun(book: SessionBook, opening: Opening, said: NewMessage, who: Visitor) -> dict[str, Any]:
    """Start it; one whose message is refused is closed again."""
    session = await book.start(opening)
    try:
        came = await enter_message(said, said.id, session, who)
    except BaseException:
        await book.close(session.session.id)
        raise
    return {"session": session.session.id, **came}


async def _in_copy(book: SessionBook, trust: SessionTrust, said: _Start, who: Visitor) -> dict[str, Any]:
    """Start it in a copy of the folder, as `treadle -w NAME` does; where it is not started no copy is left."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", trust.workspace.name).strip("-._")[:40] or "work"
    name = f"{plain}-{uuid.uuid4().hex[:6]}"
    within = await asyncio.to_thread(named_copy_trust, name, trust)
    try:
        came = await _begun(book, book.opening(within, mode=said.mode, model=said.model), said, who)
    except BaseException:
        with suppress(TreadleError, OSError):
            await asyncio.to_thread(lambda: discard_copy(named_copy(name)))
        raise
    takes = "Its changes stay there until you take them in its review."
    about = f"This session works in {name}, a copy of {trust.workspace}. {takes}"
    return {**came, "shown": "\n".join(filter(None, [about, came["shown"]]))}


async def _complete(request: Request) -> Response:
    """Say what the text before the cursor can go on with, in a folder that may be chosen."""
    trust = await asyncio.to_thread(trust_of, request)
    text = request.query_params.get("text", "")[-MOST_TYPED:]
    return answer(await completions(text, trust, book_of(request).files))


ROUTES = (
    PageRoute("/", _start_screen, Reach.SEE),
    PageRoute("/sessions", _show, Reach.SEE),
    PageRoute("/sessions", _start, Reach.WORK, methods=["POST"]),
    PageRoute("/complete", _complete, Reach.SEE),
    PageRoute("/folders", _typed, Reach.TRUST),
    PageRoute("/sessions/rows", _rows, Reach.SEE),
    PageRoute("/sessions/column", _column, Reach.SEE),
)
